// From a question, the text of every field by its name, to everything that the page says; nothing here knows the page.

"use strict";

const MOST_DEPTH = 256; // every tick of a wave is priced by itself: more would make a reader wait
const MOST_DRAFTS = 128;

const PARTS = {
  weights: "weights",
  cells: "KV cells",
  compute: "arithmetic beyond bytes",
  kernels: "kernels",
  waiting: "waiting for launches",
};

const DECODERS = { ar: "AR", dtv: "DtV", wfd: "WFD" };

const number = (value, digits = 3) => new Intl.NumberFormat("en", { maximumSignificantDigits: digits }).format(value);
const whole = (value) => new Intl.NumberFormat("en", { maximumFractionDigits: 0 }).format(value);
const fixed = (value) => (value < 1000 ? value.toFixed(2) : whole(value));
const ms = (seconds) => `${number(1000 * seconds)} ms`;
const gb = (bytes) => `${number(bytes / 1e9)} GB`;
const flops = (count) => (count < 1e12 ? `${number(count / 1e9)} GFLOP` : `${number(count / 1e12)} TFLOP`);

/** Gives what is wrong with a question, by field; nothing if it can be answered. */
function problems(question, tables) {
  const found = {};
  const among = (name, table) => {
    if (!(question[name] in table)) found[name] = "Choose one of the list.";
  };
  const counted = (name, most, why = "") => {
    const text = question[name];
    if (!/^\d+$/.test(text) || Number(text) < 1) found[name] = "Needs a whole number of at least 1.";
    else if (Number(text) > most) found[name] = `${text} exceeds ${why || whole(most)}.`;
  };
  among("model", tables.shapes);
  among("hardware", tables.machines);
  among("software", tables.software);
  among("dtype", tables.precisions);
  const machine = tables.machines[question.hardware];
  if (machine && !found.dtype && !(question.dtype in machine.peakFlopsPerSecond)) {
    const known = Object.keys(machine.peakFlopsPerSecond).join(", ");
    found.dtype = `Of ${machine.name} only the peak for ${known} is known.`;
  }
  const rate = question.alpha.trim() === "" ? NaN : Number(question.alpha);
  if (!(rate >= 0 && rate <= 1)) found.alpha = "Needs a rate from 0 to 1.";
  counted("recurrence-depth", MOST_DEPTH, `${MOST_DEPTH}, the most that this page prices`);
  const depth = found["recurrence-depth"] ? Infinity : Number(question["recurrence-depth"]);
  counted("draft-depth", depth, `T = ${depth}: a draft is read out at or before full depth`);
  if (question.slots !== "") counted("slots", depth, `T = ${depth}, the slots that there are without sharing`);
  counted("draft-length", MOST_DRAFTS);
  counted("context", 2 ** 40);
  counted("batch", 2 ** 20);
  return found;
}

/** Gives what runs where, as `wfd cost` understands the same words. */
function settingOf(question, tables) {
  const software = tables.software[question.software];
  return {
    shape: cost.withDepth(tables.shapes[question.model], Number(question["recurrence-depth"])),
    machine: tables.machines[question.hardware],
    precision: tables.precisions[question.dtype],
    software: question.launch === "captured" ? { ...software, isCaptured: true } : software,
    context: Number(question.context),
    batch: Number(question.batch),
    recurrenceSlots: question.slots === "" ? null : Number(question.slots),
  };
}

/** Gives all numbers of the page for a question without problems. */
function answers(question, tables) {
  const setting = settingOf(question, tables);
  const { shape, precision, machine, recurrenceSlots, batch, context } = setting;
  const how = {
    draftDepth: Number(question["draft-depth"]),
    draftLength: Number(question["draft-length"]),
    acceptanceRate: Number(question.alpha),
  };
  const costs = { ar: cost.ar(setting), dtv: cost.dtv(setting, how), wfd: cost.wfd(setting, how) };
  const decoders = {};
  for (const [name, { seconds, ticks, rows }] of Object.entries(costs)) {
    const speedup = costs.ar.seconds.total / seconds.total;
    decoders[name] = { seconds: { ...seconds }, total: seconds.total, ticks, rows, speedup };
  }
  const { running, restart } = cost.wave(setting, how.draftDepth);
  const room = { memoryBytes: machine.memoryBytes, batch, recurrenceSlots };
  const longest = cost.longestContext(shape, precision, room);
  const firstFull = cost.laneDepths(shape.recurrenceDepth + 1, { fullDepth: shape.recurrenceDepth, ...how });
  const lanes = how.draftDepth === shape.recurrenceDepth ? [0] : firstFull.map((depth) => depth - 1);
  return {
    setting,
    how,
    decoders,
    running: running.seconds.total,
    restart: restart.seconds.total,
    breakEven: cost.breakEvenRate(setting, how.draftDepth),
    bestLength: cost.bestDraftLength(setting, how),
    batchCrossover: cost.batchCrossover(setting, how).value,
    contextCrossover: cost.contextCrossover(setting, how).value,
    weightBytes: cost.weightBytes(shape, precision),
    cellBytes: batch * context * cost.kvBytesPerPosition(shape, precision, recurrenceSlots),
    longest,
    fits: context <= longest,
    bounds: {
      ar: bound(cost.callOf(setting, cost.Part.RECURRENT, [1, 1]), setting),
      wfd: bound(cost.callOf(setting, cost.Part.RECURRENT, ...cost.groupsOf(lanes, recurrenceSlots)), setting),
    },
  };
}

/** Tells what a call waits for most: `launches`, or on the device `weights`, `cells`, `arithmetic` or `kernels`. */
function bound(call, setting) {
  const { machine, software, precision, shape } = setting;
  const seconds = cost.secondsOf(call, setting);
  const work = cost.workOf(call, shape, precision);
  const peak = machine.peakFlopsPerSecond[precision.name] * machine.overheads.computeEfficiency;
  const [linear, attention] = [work.linearFlops / peak, work.attentionFlops / peak];
  const count = cost.numKernels(software, call, shape);
  const launching = software.isCaptured ? 0 : count * machine.overheads.launchSeconds;
  const rivals = {
    weights: linear > seconds.weights ? 0 : seconds.weights,
    cells: attention > seconds.cells ? 0 : seconds.cells,
    arithmetic: Math.max(linear > seconds.weights ? linear : 0, attention > seconds.cells ? attention : 0),
    kernels: seconds.kernels,
  };
  if (!machine.overheads.isAsynchronous) rivals.launches = launching;
  const longest = Object.keys(rivals).reduce((one, other) => (rivals[other] > rivals[one] ? other : one));
  const binds = machine.overheads.isAsynchronous && launching > seconds.busy ? "launches" : longest;
  const passes = call.numGroups > 1 ? software.passesOverCells : 1;
  return { binds, rows: call.rows, seconds, total: seconds.total, work, passes, linear, attention, count, launching };
}

/** Says what is gained, in a sentence or two. */
function verdictInWords({ setting, how, decoders: { ar, dtv, wfd }, bestLength }) {
  if (how.draftDepth === setting.shape.recurrenceDepth) {
    return `With d = T nothing is drafted: DtV and WFD are AR, ${ms(ar.total)} a token. Choose a smaller d.`;
  }
  const ticks = `Counted in ticks a token takes ${number(wfd.ticks)} with WFD, ${number(dtv.ticks)} with DtV, ${number(ar.ticks)} with AR.`;
  const beside = `DtV takes ${ms(dtv.total)}, ${fixed(dtv.speedup)} times the speed of AR; its best γ here is ${bestLength}.`;
  const gain =
    wfd.speedup > 1
      ? `WFD takes ${ms(wfd.total)} a token, ${fixed(wfd.speedup)} times the speed of AR, which takes ${ms(ar.total)}.`
      : `WFD is slower than AR here: it takes ${ms(wfd.total)} a token, ${fixed(wfd.speedup)} times the speed of AR, which takes ${ms(ar.total)}.`;
  return `${gain} ${beside} ${ticks}`;
}

/** Says when WFD is slower than AR. */
function slownessInWords({ setting, how, running, restart, breakEven, batchCrossover, contextCrossover, decoders }) {
  if (how.draftDepth === setting.shape.recurrenceDepth) return "Never: it is AR.";
  const [right, wrong] = [how.acceptanceRate, 1 - how.acceptanceRate];
  const prices = `A token whose draft was right takes S = ${ms(running)}, one whose draft was wrong A = ${ms(restart)}`;
  const mean =
    setting.batch === 1
      ? `${prices}: ${number(right)} × ${number(1000 * running)} + ${number(wrong)} × ${number(1000 * restart)} = ${ms(decoders.wfd.total)}.`
      : `${prices}, if all waves restarted together.`;
  const alone = setting.batch === 1 ? "" : " (one sequence)";
  const rate =
    breakEven === null
      ? `It is slower than AR here at every acceptance rate, even with every draft right${alone}.`
      : breakEven === 0
        ? `It is slower than AR here at no acceptance rate${alone}.`
        : `It is slower than AR below alpha = ${breakEven.toFixed(2)}${alone}.`;
  const crossing = (value, what, most) =>
    value === null ? `every ${what} up to ${whole(most)} gains` : `nothing is gained from a ${what} of ${whole(value)} on`;
  const crossings =
    `At this context ${crossing(batchCrossover, "batch", 4096)}; ` +
    `at this batch ${crossing(contextCrossover, "context", 2 ** 20)}.`;
  return `${rate} ${crossings} ${mean}`;
}

/** Says whether it fits. */
function memoryInWords({ setting, weightBytes, cellBytes, longest, fits }) {
  const sequences = setting.batch === 1 ? "" : ` in each of ${whole(setting.batch)} sequences`;
  const sizes = `${gb(weightBytes)} of weights and ${gb(cellBytes)} of KV cells, of ${gb(setting.machine.memoryBytes)}`;
  if (fits) return `It fits: ${sizes}. At most ${whole(longest)} positions${sequences} do.`;
  const most = longest ? `At most ${whole(longest)} positions${sequences} fit.` : "Not one position fits beside the weights.";
  return `It does not fit: ${sizes}. ${most} All times here are those of a machine with more memory.`;
}

const BINDS = {
  launches: "the host, which launches kernels",
  weights: "memory, by the weights",
  cells: "memory, by the KV cells",
  arithmetic: "arithmetic",
  kernels: "kernels, by their number",
};

/** Says how long a call takes and why, in lines whose numbers can be multiplied by hand; the first one is the outcome. */
function boundInWords(call, { machine, software, precision }) {
  const { binds, rows, seconds, work, passes, linear, attention, count } = call;
  const { overheads } = machine;
  const bandwidth = `${number(overheads.bandwidthEfficiency)} × ${number(machine.bandwidthBytesPerSecond / 1e9)} GB/s`;
  const peak = `${number(overheads.computeEfficiency)} × ${number(machine.peakFlopsPerSecond[precision.name] / 1e12)} TFLOP/s`;
  const weightBytes = work.weightBytes + work.activationBytes;
  const moved = passes > 1 ? `, copied first and so moved ${number(passes)} times` : "";
  const rule = overheads.isAsynchronous ? "The device works while the host launches: the longer counts." : "Both add up.";
  return [
    `${number(rows)} ${rows === 1 ? "row" : "rows"}: ${ms(call.total)}. What binds is ${BINDS[binds]}.`,
    `Weights and rows: ${gb(weightBytes)} at ${bandwidth} = ${ms(seconds.weights)}. Their products: ${flops(work.linearFlops)} at ${peak} = ${ms(linear)}. The longer counts.`,
    `KV cells: ${gb(work.kvReadBytes + work.kvWriteBytes)}${moved}: ${ms(seconds.cells)}. Their products: ${flops(work.attentionFlops)}: ${ms(attention)}. The longer counts.`,
    `Kernels: ${whole(count)} × ${number(1e6 * overheads.kernelSeconds)} µs = ${ms(seconds.kernels)}. All on the device: ${ms(seconds.busy)}.`,
    software.isCaptured
      ? "The host: nothing, a captured graph is launched at once."
      : `The host: ${whole(count)} launches × ${number(1e6 * overheads.launchSeconds)} µs = ${ms(call.launching)}. ${rule}`,
  ];
}

/** Gives the command that says the same. */
function commandOf(question) {
  const said = Object.entries(question).filter(([name, text]) => name !== "launch" && text !== "");
  const captured = question.launch === "captured" ? " --captured" : "";
  return `wfd cost ${said.map(([name, text]) => `--${name} ${text}`).join(" ")}${captured}`;
}
