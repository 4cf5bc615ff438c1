// The cost model, function for function and in the order of reference/cost: shapes, work, memory, latency, decoding,
// analysis. Methods of a Python class are functions of its record here; what each gives is said there. A test holds that
// both give the same numbers.
//
// A plain script, no module, so that the page also works when it is opened as a file.

"use strict";

const cost = (() => {
  const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
  const range = (from, to) => Array.from({ length: Math.max(0, to - from) }, (_, place) => from + place);

  // ---- reference/cost/shapes.py

  const Part = { PRELUDE: "prelude", RECURRENT: "recurrent", READOUT: "readout" };
  const Family = { OURO: "ouro", HUGINN: "huginn_raven" };

  const qkvSize = (shape) => (shape.numHeads + 2 * shape.numKvHeads) * shape.headDim;

  const kvSize = (shape) => 2 * shape.numKvHeads * shape.headDim;

  function layerMatrices(shape) {
    const [hidden, inner, width] = [shape.hiddenSize, shape.intermediateSize, shape.numHeads * shape.headDim];
    return [[hidden, qkvSize(shape)], [width, hidden], [hidden, 2 * inner], [inner, hidden]];
  }

  function layerVectorElements(shape) {
    const bias = shape.family === Family.HUGINN ? (shape.numHeads + shape.numKvHeads) * shape.headDim : 0;
    return 4 * shape.hiddenSize + bias;
  }

  function outerMatrices(shape, part) {
    if (part === Part.READOUT) return [[shape.hiddenSize, shape.vocabSize]];
    if (part === Part.RECURRENT && shape.family === Family.HUGINN) return [[2 * shape.hiddenSize, shape.hiddenSize]];
    return [];
  }

  function outerVectorElements(shape, part) {
    const normed = shape.family === Family.OURO ? Part.RECURRENT : Part.READOUT;
    return part === normed ? shape.hiddenSize : 0;
  }

  const numLayers = (shape, part) =>
    ({ prelude: shape.preludeLayers, recurrent: shape.recurrentLayers, readout: shape.codaLayers })[part];

  function numSlots(shape, recurrenceSlots = null) {
    const slots = recurrenceSlots === null ? shape.recurrenceDepth : recurrenceSlots;
    return shape.preludeLayers + slots * shape.recurrentLayers + shape.codaLayers;
  }

  function numParameters(shape) {
    const parts = Object.values(Part);
    const layers = sum(parts.map((part) => numLayers(shape, part)));
    const elements = (matrices) => sum(matrices.map(([fanIn, fanOut]) => fanIn * fanOut));
    const layer = elements(layerMatrices(shape)) + layerVectorElements(shape);
    const outside = sum(parts.map((part) => elements(outerMatrices(shape, part)) + outerVectorElements(shape, part)));
    const own = shape.family === Family.OURO ? shape.vocabSize * shape.hiddenSize + shape.hiddenSize + 1 : 0;
    return layers * layer + outside + own;
  }

  const withDepth = (shape, recurrenceDepth) => ({ ...shape, recurrenceDepth });

  // ---- reference/cost/work.py

  const Group = (rows, cells, count = 1) => ({ rows, cells, count });

  function Call(part, groups, batch = 1) {
    return {
      part,
      groups,
      batch,
      rows: batch * sum(groups.map((group) => group.count * group.rows)),
      numGroups: sum(groups.map((group) => group.count)),
    };
  }

  function workOf(call, shape, precision) {
    const [layers, rows] = [numLayers(shape, call.part), call.rows];
    const listed = products(call, shape);
    const matrixElements = sum(listed.map(([times, , fanIn, fanOut]) => times * fanIn * fanOut));
    let vectorElements = layers * layerVectorElements(shape) + outerVectorElements(shape, call.part);
    if (call.part === Part.PRELUDE) vectorElements += rows * shape.hiddenSize;
    const cells = call.batch * sum(call.groups.map((group) => group.count * group.cells));
    const scores = call.batch * sum(call.groups.map((group) => group.count * group.rows * group.cells));
    return {
      linearFlops: sum(listed.map(([times, n, fanIn, fanOut]) => times * 2 * n * fanIn * fanOut)),
      attentionFlops: layers * 4 * scores * shape.numHeads * shape.headDim,
      weightBytes: (matrixElements + vectorElements) * precision.weightBytes,
      kvReadBytes: layers * cells * kvSize(shape) * precision.cellBytes,
      kvWriteBytes: layers * rows * kvSize(shape) * precision.cellBytes,
      activationBytes: sum(listed.map(([times, n, fanIn, fanOut]) => times * n * (fanIn + fanOut))) * precision.weightBytes,
    };
  }

  function products(call, shape) {
    const layers = numLayers(shape, call.part);
    return [
      ...layerMatrices(shape).map((matrix) => [layers, call.rows, ...matrix]),
      ...outerMatrices(shape, call.part).map((matrix) => [1, call.rows, ...matrix]),
    ];
  }

  // ---- reference/cost/memory.py

  const weightBytes = (shape, precision) => numParameters(shape) * precision.weightBytes;

  const kvBytesPerPosition = (shape, precision, recurrenceSlots = null) =>
    numSlots(shape, recurrenceSlots) * kvSize(shape) * precision.cellBytes;

  function longestContext(shape, precision, { memoryBytes, batch = 1, recurrenceSlots = null }) {
    const room = memoryBytes - weightBytes(shape, precision);
    const each = batch * kvBytesPerPosition(shape, precision, recurrenceSlots);
    return Math.max(0, Math.floor(room / each));
  }

  // ---- reference/cost/latency.py

  const cellsRead = (software, context) =>
    software.capturedCells === null ? context : Math.max(context, software.capturedCells);

  function numKernels(software, call, shape) {
    const further = Math.max(0, call.numGroups - 1);
    const layer = software.kernelsPerLayer + further * software.kernelsPerFurtherGroup;
    return software.kernelsPerCall + numLayers(shape, call.part) * layer;
  }

  /** Where time goes; the parts add up to `total`. */
  class Seconds {
    constructor({ weights, cells, compute, kernels, waiting }) {
      this.weights = weights;
      this.cells = cells;
      this.compute = compute;
      this.kernels = kernels;
      this.waiting = waiting;
    }

    get busy() {
      return this.weights + this.cells + this.compute + this.kernels;
    }

    get total() {
      return this.busy + this.waiting;
    }

    plus(other) {
      return new Seconds({
        weights: this.weights + other.weights,
        cells: this.cells + other.cells,
        compute: this.compute + other.compute,
        kernels: this.kernels + other.kernels,
        waiting: this.waiting + other.waiting,
      });
    }

    times(factor) {
      return new Seconds({
        weights: this.weights * factor,
        cells: this.cells * factor,
        compute: this.compute * factor,
        kernels: this.kernels * factor,
        waiting: this.waiting * factor,
      });
    }
  }

  /** Gives the call of a setting in which every sequence has groups of rows: (how many groups, rows in each). */
  function callOf(setting, part, ...groups) {
    const cells = cellsRead(setting.software, setting.context);
    return Call(part, groups.map(([count, rows]) => Group(rows, cells, count)), setting.batch);
  }

  const timed = (setting, part, ...groups) => secondsOf(callOf(setting, part, ...groups), setting);

  function secondsOf(call, setting) {
    const { machine, software } = setting;
    const { overheads } = machine;
    const work = workOf(call, setting.shape, setting.precision);
    const bandwidth = machine.bandwidthBytesPerSecond * overheads.bandwidthEfficiency;
    const peak = machine.peakFlopsPerSecond[setting.precision.name] * overheads.computeEfficiency;
    const passes = call.numGroups > 1 ? software.passesOverCells : 1;
    const weights = (work.weightBytes + work.activationBytes) / bandwidth;
    const cells = (work.kvReadBytes * passes + work.kvWriteBytes) / bandwidth;
    const compute = Math.max(0, work.linearFlops / peak - weights) + Math.max(0, work.attentionFlops / peak - cells);
    const kernelCount = numKernels(software, call, setting.shape);
    const kernels = kernelCount * overheads.kernelSeconds;
    const busy = weights + cells + compute + kernels;
    const launching = software.isCaptured ? 0 : kernelCount * overheads.launchSeconds;
    const waiting = overheads.isAsynchronous ? Math.max(0, launching - busy) : launching;
    return new Seconds({ weights, cells, compute, kernels, waiting });
  }

  // ---- reference/cost/decoding.py

  function ar(setting) {
    const depth = setting.shape.recurrenceDepth;
    const seconds = timed(setting, Part.RECURRENT, [1, 1]).times(depth).plus(ends(setting));
    return { seconds, ticks: depth, rows: depth };
  }

  function dtv(setting, { draftDepth, draftLength, acceptanceRate }) {
    const full = setting.shape.recurrenceDepth;
    if (draftDepth === full) return ar(setting);
    const [sources, one] = [draftLength + 1, [1, 1]];
    const drafting = timed(setting, Part.RECURRENT, one).times(sources * draftDepth);
    const starts = timed(setting, Part.PRELUDE, one).times(sources);
    const proposals = timed(setting, Part.READOUT, one).times(draftLength);
    const together = [1, sources];
    const verifying = timed(setting, Part.RECURRENT, together).times(full - draftDepth);
    const verdicts = timed(setting, Part.READOUT, together);
    const tokens = sum(range(0, draftLength + 1).map((power) => acceptanceRate ** power));
    return {
      seconds: drafting.plus(starts).plus(proposals).plus(verifying).plus(verdicts).times(1 / tokens),
      ticks: (draftLength * draftDepth + full) / tokens,
      rows: (sources * full) / tokens,
    };
  }

  /** WaveCost.at: the mean of `S` and `A`. */
  function at({ running, restart }, acceptanceRate) {
    const [alpha, beta] = [acceptanceRate, 1 - acceptanceRate];
    return {
      seconds: running.seconds.times(alpha).plus(restart.seconds.times(beta)),
      ticks: running.ticks * alpha + restart.ticks * beta,
      rows: running.rows * alpha + restart.rows * beta,
    };
  }

  function wave(setting, draftDepth) {
    const full = setting.shape.recurrenceDepth;
    if (draftDepth === full) return { running: ar(setting), restart: ar(setting) };
    const start = timed(setting, Part.PRELUDE, [1, 1]);
    const numEarly = Math.floor((full - 1) / draftDepth);
    return {
      running: block(setting, draftDepth, range(full + 1, full + draftDepth + 1), start),
      restart: block(setting, draftDepth, range(1, full + 1), start.times(1 + numEarly)),
    };
  }

  function wfd(setting, { draftDepth, acceptanceRate }) {
    if (setting.batch > 1 && draftDepth < setting.shape.recurrenceDepth) return waves(setting, draftDepth, acceptanceRate);
    return at(wave(setting, draftDepth), acceptanceRate);
  }

  function laneDepths(tick, { fullDepth, draftDepth }) {
    const oldest = Math.max(0, Math.ceil((tick - fullDepth) / draftDepth));
    const youngest = Math.floor((tick - 1) / draftDepth);
    return range(oldest, youngest + 1).map((lane) => tick - lane * draftDepth);
  }

  /** Counts how often each value is among `values`. */
  function counter(values) {
    const counts = new Map();
    for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
    return counts;
  }

  function groupsOf(depths, recurrenceSlots) {
    const slots = counter(recurrenceSlots === null ? depths : depths.map((depth) => depth % recurrenceSlots));
    return [...counter(slots.values())].sort(([one], [other]) => one - other).map(([rows, count]) => [count, rows]);
  }

  function block(setting, draftDepth, ticks, starts) {
    const full = setting.shape.recurrenceDepth;
    let [seconds, rows] = [starts, 0];
    for (const tick of ticks) {
      const depths = laneDepths(tick, { fullDepth: full, draftDepth });
      const before = depths.map((depth) => depth - 1);
      seconds = seconds.plus(timed(setting, Part.RECURRENT, ...groupsOf(before, setting.recurrenceSlots)));
      const numDue = (depths[0] === full) + (depths.at(-1) === draftDepth);
      if (numDue) seconds = seconds.plus(timed(setting, Part.READOUT, [1, numDue]));
      rows += depths.length;
    }
    return { seconds, ticks: ticks.length, rows };
  }

  function waves(setting, draftDepth, acceptanceRate) {
    const [alpha, beta] = [acceptanceRate, 1 - acceptanceRate];
    const full = setting.shape.recurrenceDepth;
    const numTicks = alpha * draftDepth + beta * full;
    let [rows, numGroups, readouts] = [0, 0, 0];
    for (const [share, ticks] of [[beta, range(1, full + 1)], [alpha, range(full + 1, full + draftDepth + 1)]]) {
      for (const tick of ticks) {
        const depths = laneDepths(tick, { fullDepth: full, draftDepth });
        const groups = groupsOf(depths.map((depth) => depth - 1), setting.recurrenceSlots);
        rows += share * depths.length;
        numGroups += share * sum(groups.map(([count]) => count));
        readouts += share * ((depths[0] === full) + (depths.at(-1) === draftDepth));
      }
    }
    const starts = alpha + beta * (1 + Math.floor((full - 1) / draftDepth));
    const numMeetings = full % draftDepth === 0 ? numTicks / draftDepth : numTicks;
    const recurrence = timed(setting, Part.RECURRENT, [numGroups / numTicks, rows / numGroups]);
    const readout = timed(setting, Part.READOUT, [1, readouts / numMeetings]);
    const prelude = timed(setting, Part.PRELUDE, [1, starts / numMeetings]);
    return { seconds: recurrence.times(numTicks).plus(readout.plus(prelude).times(numMeetings)), ticks: numTicks, rows };
  }

  const ends = (setting) => timed(setting, Part.PRELUDE, [1, 1]).plus(timed(setting, Part.READOUT, [1, 1]));

  // ---- reference/cost/analysis.py

  const LONGEST_DRAFT = 128;

  const wfdSpeedup = (setting, how) => ar(setting).seconds.total / wfd(setting, how).seconds.total;

  function bestDraftLength(setting, { draftDepth, acceptanceRate }) {
    const seconds = (draftLength) => dtv(setting, { draftDepth, draftLength, acceptanceRate }).seconds.total;
    let best = seconds(1);
    for (const longer of range(2, LONGEST_DRAFT + 1)) {
      const time = seconds(longer);
      if (time >= best) return longer - 1;
      best = time;
    }
    return LONGEST_DRAFT;
  }

  function breakEvenRate(setting, draftDepth) {
    const alone = { ...setting, batch: 1 };
    const [price, plain] = [wave(alone, draftDepth), ar(alone)];
    const [restart, running] = [price.restart.seconds.total, price.running.seconds.total];
    if (running >= plain.seconds.total) return null;
    return Math.max(0, (restart - plain.seconds.total) / (restart - running));
  }

  const batchCrossover = (setting, how, most = 4096) =>
    firstWithoutGain((batch) => ({ ...setting, batch }), how, most);

  const contextCrossover = (setting, how, most = 2 ** 20) =>
    firstWithoutGain((context) => ({ ...setting, context }), how, most);

  function firstWithoutGain(change, how, most) {
    const gains = (value) => wfdSpeedup(change(value), how) > 1;
    let [low, high] = [0, 1];
    while (gains(high)) {
      if (high >= most) return { value: null, searched: most };
      [low, high] = [high, Math.min(2 * high, most)];
    }
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      [low, high] = gains(middle) ? [middle, high] : [low, middle];
    }
    return { value: high, searched: most };
  }

  // ---- reference/schedule.py

  const defaultDraftDepth = (recurrenceDepth) => Math.max(1, Math.floor(recurrenceDepth / 8));

  return {
    Part, withDepth, workOf, weightBytes, kvBytesPerPosition, longestContext, numKernels, callOf, secondsOf,
    ar, dtv, wave, wfd, laneDepths, groupsOf,
    wfdSpeedup, bestDraftLength, breakEvenRate, batchCrossover, contextCrossover, defaultDraftDepth,
  };
})();
