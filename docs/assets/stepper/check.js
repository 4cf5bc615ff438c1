// Judges a trace: names the first event that the specification does not allow, and the clause that it breaks.
//
// The rules of reference/oracle/walk.py, in the same order; a test holds that both name the same event and the same
// clause. What this does not do: report the freedoms that a trace takes, compare tokens with a model, count. Numbers
// beyond 2^53 are refused here, and 1.0 is taken for 1, since that is how browsers read JSON.

import { NotAllowed, advanced, begin, sameLane, scheduleOf, verifyOldest } from "./schedule.js";
import { clauseOf, describe, listed } from "./words.js";

/** Which clause of a decoder says what. */
const CLAUSES = {
  ar: { advance: "AR-01", verify: "AR-01", readDraft: "AR-01", inject: "AR-01" },
  dtv: { advance: "DTV-05", verify: "DTV-05", readDraft: "DTV-04", inject: "DTV-04" },
  wfd: { advance: "WFD-03", verify: "WFD-04", readDraft: "WFD-04", inject: "WFD-05" },
};

/** Gives null for a right trace, else {index, clause, reason}; `index` is the number of events if the end is missing. */
export function checkTrace(events) {
  let index = 0;
  try {
    if (events[0]?.event !== "start") {
      const found = events.length ? describe(events[0]) : "nothing";
      throw new NotAllowed("NOT-03", `a trace opens with a start event, not with ${found}`);
    }
    const walk = new Walk(scheduleOf(events[0]));
    for (const [place, event] of judgedOrder(events)) {
      index = place;
      walk.take(event);
    }
    index = events.length;
    walk.close();
  } catch (error) {
    if (!(error instanceof NotAllowed)) throw error;
    return { index, clause: error.clause, reason: error.message };
  }
  return null;
}

/** All events but the start, numbered; a flush that is written before its rejection is put behind it. */
function judgedOrder(events) {
  const numbered = [...events.entries()].slice(1);
  const ordered = [];
  for (let from = 0; from < numbered.length; ) {
    let to = from;
    while (to < numbered.length && numbered[to][1].tick === numbered[from][1].tick) to += 1;
    const tick = numbered.slice(from, to);
    const rejection = tick.findIndex(([, event]) => event.event === "reject");
    const flushes = [...tick.keys()].filter((place) => tick[place][1].event === "flush");
    if (flushes.length === 1 && flushes[0] < rejection) tick.splice(rejection, 0, ...tick.splice(flushes[0], 1));
    ordered.push(...tick);
    from = to;
  }
  return ordered;
}

/** A trace followed so far. `take` and `close` throw NotAllowed; after that the walk is over. */
class Walk {
  state = null; // before the first token
  owed = []; // what the last commit brings about and has not come yet
  due = []; // the readouts of this tick
  rows = new Map(); // the lanes that this tick has still to move, as they will be
  planned = new Set(); // the positions of all that it moves
  proposals = new Map(); // drafts that have not started a lane, by their source
  dropped = new Map(); // the tick in which a position was flushed

  constructor(schedule) {
    this.schedule = schedule;
    this.clauses = CLAUSES[schedule.name];
    if (schedule.end === schedule.first) this.#follow(begin(schedule, null), 0);
  }

  take(event) {
    const { schedule } = this;
    if (event.event === "start") throw new NotAllowed("NOT-03", "a run is opened once");
    if (!this.state) {
      if (event.event !== "commit" || event.tick !== 0 || event.position !== schedule.first) {
        const what = `${describe(event)} where the prefill's token is committed, at position ${schedule.first}, tick 0`;
        throw new NotAllowed("SMP-11", what);
      }
      this.#follow(begin(schedule, event.token), 1);
      return;
    }
    if (this.state.finished && !this.owed.length) {
      throw new NotAllowed("SMP-14", `${describe(event)} although the run has finished`);
    }
    this.#checkTime(event);
    const place = this.owed.findIndex((owed) => sameEvent(owed, event));
    if (place >= 0) {
      if (event.event === "finish" && this.owed.length > 1) throw missing(this.owed[0]);
      this.owed.splice(place, 1);
    } else if (event.event === "advance") {
      this.#advance(event);
    } else if (this.owed.length) {
      throw this.#instead(event);
    } else if (this.rows.size) {
      throw this.#leftBehind(); // a call must be whole before anything is read out
    } else {
      this.#decide(event);
    }
  }

  close() {
    if (!this.state) throw new NotAllowed("SMP-11", "the first token, at tick 0, is missing");
    this.#closeTick();
    if (!this.state.finished) throw new NotAllowed("NOT-03", "the trace ends before the run: no finish");
  }

  #follow({ state, events }, numTaken) {
    this.state = state;
    this.owed = events.slice(numTaken);
  }

  #checkTime(event) {
    const { ticks } = this.state;
    if (event.tick < ticks) {
      throw new NotAllowed("NOT-03", `${describe(event)} belongs to tick ${event.tick}, after tick ${ticks}`);
    }
    if (event.tick > ticks + 1) {
      throw new NotAllowed("COST-01", `tick ${event.tick} follows tick ${ticks}: ticks are numbered without gaps`);
    }
    if (event.tick === ticks + 1 && event.event !== "advance") {
      this.#closeTick();
      throw new NotAllowed("NOT-03", `${describe(event)} before tick ${event.tick} has advanced anything`);
    }
  }

  #decide(event) {
    switch (event.event) {
      case "commit":
        return this.#commit(event);
      case "draft":
        return this.#draft(event);
      case "inject":
        return this.#inject(event);
      case "flush":
        return this.#flush(event);
      case "finish":
        throw new NotAllowed("SMP-14", `${describe(event)} although the run goes on`);
      default:
        throw new NotAllowed("SMP-12", `${describe(event)} although no draft was compared with a commit here`);
    }
  }

  /** Moves lanes: all that the schedule plans and no others, in one call or in several. */
  #advance(event) {
    if (event.tick > this.state.ticks) {
      this.#closeTick();
      const { lanes, readouts } = this.schedule.plan(this.state);
      this.rows = new Map(lanes.map((lane) => [lane.position, advanced(lane)]));
      this.planned = new Set(this.rows.keys());
      this.due = readouts;
      this.state = { ...this.state, ticks: event.tick };
    } else if (event.tick === 0) {
      throw new NotAllowed("COST-01", `${describe(event)} in tick 0: recurrent calls are numbered from 1`);
    } else if (this.owed.length) {
      throw this.#instead(event);
    }
    if (!event.lanes.length) throw new NotAllowed(this.#advanceClause(), "a recurrent call without rows");
    for (const row of event.lanes) {
      const expected = this.rows.get(row.position);
      this.rows.delete(row.position);
      if (!expected || !sameLane(row, expected)) throw this.#wrongRow(row, expected);
    }
    const after = new Map(event.lanes.map((row) => [row.position, row]));
    const lanes = this.state.lanes.map((lane) => after.get(lane.position) ?? lane);
    for (const row of event.lanes) {
      const late = lanes.find((older) => older.position < row.position && older.depth < row.depth);
      if (late) {
        const what = `position ${row.position} runs recurrence ${row.depth - 1} before position ${late.position}`;
        throw new NotAllowed("KV-03", `${what}, whose cell of that recurrence it reads`);
      }
    }
    this.state = { ...this.state, lanes };
  }

  #wrongRow(row, expected) {
    const { state } = this;
    const lane = state.lanes.find(({ position }) => position === row.position);
    const who = `position ${row.position} advances to depth ${row.depth}`;
    if (!lane && row.position < state.frontier - 1) {
      return new NotAllowed("SMP-12", `${who}, but it is finished: its lane retired when it was verified`);
    }
    if (!lane && this.dropped.has(row.position)) {
      return new NotAllowed("SMP-13", `${who}, but it was flushed in tick ${this.dropped.get(row.position)}`);
    }
    if (!lane) return new NotAllowed("KV-04", `${who}, but no lane was started there`);
    if (!expected && this.planned.has(row.position)) return new NotAllowed("KV-04", `${who} twice in one tick`);
    if (!expected) return new NotAllowed(this.#advanceClause(), `${who}, but this tick does not move it`);
    if (row.depth !== expected.depth) {
      return new NotAllowed(this.#advanceClause(), `${who} from depth ${lane.depth}: a tick adds 1 to each lane`);
    }
    const clause = row.position >= state.frontier ? this.clauses.inject : "SMP-13";
    return new NotAllowed(clause, `${who} with token ${row.token}, but token ${lane.token} was started there`);
  }

  #leftBehind() {
    const [lane] = this.rows.values();
    const what = `position ${lane.position} does not advance to depth ${lane.depth} with the others`;
    return new NotAllowed(this.#advanceClause(), what);
  }

  /** The clause that says which lanes this tick advances; in DtV each phase has its own. */
  #advanceClause() {
    const isDrafting = this.planned.size < this.state.lanes.length;
    return this.schedule.name === "dtv" && isDrafting ? "DTV-04" : this.clauses.advance;
  }

  #commit(event) {
    const { frontier, lanes } = this.state;
    if (event.position !== frontier) {
      const what = `${describe(event)} where the next token to commit is that of position ${frontier}`;
      throw new NotAllowed("NOT-01", what);
    }
    const [oldest] = lanes;
    if (!this.#isDue(oldest, "verify")) {
      const what = `${describe(event)} from position ${oldest.position} at depth ${oldest.depth}`;
      throw new NotAllowed(this.clauses.verify, `${what}, which is not depth T = ${this.schedule.full}`);
    }
    this.#follow(verifyOldest(this.schedule, this.state, event.token), 1);
    for (const owed of this.owed) if (owed.event === "flush") this.#drop(owed.positions, event.tick);
    this.proposals.delete(oldest.position);
  }

  /** Takes a draft readout: one that is due, or one more, which may be ignored or used later. */
  #draft(event) {
    const { name, full, depth } = this.schedule;
    const { lanes } = this.state;
    const lane = lanes.find(({ position }) => position === event.position);
    if (!lane) throw new NotAllowed(this.clauses.inject, `${describe(event)}, where no lane is in flight`);
    const isPlanned = this.#isDue(lane, "draft");
    const mayBeIgnored = {
      ar: false,
      dtv: lane === lanes.at(-1) && lane.depth === depth && depth < full,
      wfd: 0 < lane.depth && lane.depth < full,
    };
    if (!isPlanned && !mayBeIgnored[name]) {
      throw new NotAllowed(this.clauses.readDraft, `${describe(event)} at depth ${lane.depth}`);
    }
    this.proposals.set(event.position, { token: event.token, depth: lane.depth, tick: event.tick, isPlanned });
  }

  /** Starts a lane behind the youngest one, with the token that was drafted there. */
  #inject(event) {
    const { schedule, clauses } = this;
    const youngest = this.state.lanes.at(-1);
    const refuse = (clause, why) => new NotAllowed(clause, `${describe(event)}${why}`);
    if (!schedule.mayInject(event.position)) {
      throw refuse("SMP-15", ", whose own prediction can no longer be committed");
    }
    if (event.position !== youngest.position + 1) {
      throw refuse(clauses.inject, ` although the youngest lane is at ${youngest.position}`);
    }
    if (this.#verificationIsDue()) {
      throw refuse(clauses.inject, " before the verification that is due in the same tick");
    }
    const proposal = this.proposals.get(youngest.position);
    this.proposals.delete(youngest.position);
    if (!proposal) throw refuse(clauses.inject, ", which nobody drafted or committed");
    if (proposal.token !== event.token) throw refuse(clauses.inject, ` where token ${proposal.token} was drafted`);
    if (proposal.depth < schedule.depth) {
      throw refuse(clauses.readDraft, `, drafted at depth ${proposal.depth}, not d = ${schedule.depth}`);
    }
    if (schedule.name === "dtv") {
      if (proposal.tick < event.tick) throw refuse("DTV-04", `, drafted in tick ${proposal.tick}`);
      if (!proposal.isPlanned) throw refuse("DTV-03", ", one draft more than this round has");
    }
    const lanes = [...this.state.lanes, { position: event.position, token: event.token, depth: 0 }];
    this.state = { ...this.state, lanes };
  }

  /** Drops drafted lanes before anything demands it; younger ones are built on older ones, so they go too. */
  #flush(event) {
    const drafted = this.state.lanes.slice(1).map((lane) => lane.position);
    const { positions } = event;
    const tail = drafted.slice(drafted.length - positions.length);
    if (!positions.length || positions.length > drafted.length || !sameList(ascending(positions), tail)) {
      const what = `${describe(event)} is not the tail of the drafted lanes, which are at ${listed(drafted)}`;
      throw new NotAllowed("SMP-13", what);
    }
    this.#drop(positions, event.tick);
    this.state = { ...this.state, lanes: this.state.lanes.slice(0, -positions.length) };
  }

  #closeTick() {
    if (this.owed.length) throw missing(this.owed[0]);
    if (this.rows.size) throw this.#leftBehind();
    if (this.#verificationIsDue()) {
      const [{ position }] = this.state.lanes;
      const what = `position ${position} has depth T and is not verified: commit at ${this.state.frontier} is missing`;
      throw new NotAllowed(this.clauses.verify, what);
    }
    this.due = [];
  }

  #isDue(lane, purpose) {
    return this.due.some((readout) => readout.purpose === purpose && sameLane(readout.lane, lane));
  }

  #verificationIsDue() {
    return this.state.lanes.length > 0 && this.#isDue(this.state.lanes[0], "verify");
  }

  #drop(positions, tick) {
    for (const position of positions) {
      this.proposals.delete(position);
      this.dropped.set(position, tick);
    }
  }

  #instead(event) {
    const owed = this.owed.find((one) => one.event === event.event) ?? this.owed[0];
    const clause = event.event === "finish" ? "SMP-14" : clauseOf(owed);
    return new NotAllowed(clause, `${describe(event)} where ${describe(owed)} follows from the commit`);
  }
}

const missing = (owed) => new NotAllowed(clauseOf(owed), `${describe(owed)} is missing`);
const ascending = (numbers) => [...numbers].sort((one, other) => one - other);
const sameList = (one, other) => one.length === other.length && one.every((item, place) => item === other[place]);

/** Compares an event that must come with one that came; the order in which lanes are dropped says nothing. */
function sameEvent(owed, event) {
  return Object.entries(owed).every(([name, value]) =>
    Array.isArray(value) ? Array.isArray(event[name]) && sameList(value, ascending(event[name])) : value === event[name],
  );
}
