// The schedules, as in reference/schedule.py, ar.py, dtv.py, wfd.py and stopping.py: integers and nothing else.
//
// A lane is {position, token, depth}. A state is {frontier, lanes, ticks, finished}; lanes stand oldest first. Both are
// never changed, only replaced.

/** An event breaks a clause. */
export class NotAllowed extends Error {
  constructor(clause, reason) {
    super(reason);
    this.clause = clause;
  }
}

export const advanced = (lane) => ({ ...lane, depth: lane.depth + 1 });
export const sameLane = (one, other) =>
  one.position === other.position && one.token === other.token && one.depth === other.depth;

/** Makes the schedule that a start event names, or throws NotAllowed where its parameters break a rule. */
export function scheduleOf(start) {
  const refuse = (isWrong, clause, reason) => {
    if (isWrong) throw new NotAllowed(clause, reason);
  };
  const { decoder, recurrence_depth: full, draft_depth: depth, draft_length: length } = start;
  refuse(start.max_new_tokens < 0, "SMP-04", `max_new_tokens=${start.max_new_tokens} is below 0`);
  refuse(start.prompt_length < 1, "SMP-05", `prompt_length=${start.prompt_length}: the prompt is empty`);
  refuse(
    start.prompt_length > start.context_length,
    "SMP-06",
    `prompt_length=${start.prompt_length} exceeds context_length=${start.context_length}`,
  );
  refuse(!(decoder in PLANS), "NOT-03", `decoder "${decoder}" is none of ar, dtv, wfd`);
  refuse(decoder === "dtv" && length === null, "DTV-02", "dtv without a draft_length");
  refuse(full < 1, "MOD-01", `recurrence_depth=${full} is below 1`);
  if (decoder !== "ar") {
    const clause = decoder === "dtv" ? "DTV-01" : "WFD-01";
    refuse(depth < 1, clause, `draft_depth=${depth} is below 1`);
    refuse(depth > full, clause, `draft_depth=${depth} exceeds recurrence_depth=${full}`);
  }
  refuse(decoder === "dtv" && length < 1, "DTV-02", `draft_length=${length} is below 1`);
  refuse(decoder === "ar" && depth !== full, "NOT-03", `draft_depth of ar is ${full}, not ${depth}`);
  refuse(decoder !== "dtv" && length !== null, "NOT-03", `draft_length of ${decoder} is null, not ${length}`);

  const end = Math.min(start.prompt_length + start.max_new_tokens, start.context_length + 1);
  const isLength = start.prompt_length + start.max_new_tokens <= start.context_length + 1;
  const schedule = {
    name: decoder,
    full,
    depth,
    length,
    end,
    first: start.prompt_length,
    stops: new Set(start.stop_ids),
    endReason: isLength ? "length" : "context",
    mayInject: (position) => position + 1 < end,
  };
  return { ...schedule, plan: (state) => PLANS[decoder](schedule, state) };
}

/** What the next tick does: {lanes, readouts}; a readout is {lane, purpose}, its lane as it is after the call. */
const PLANS = {
  ar({ full }, { lanes }) {
    const after = advanced(lanes[0]);
    return { lanes, readouts: after.depth === full ? [{ lane: after, purpose: "verify" }] : [] };
  },

  dtv({ full, depth, length, end }, { lanes, frontier }) {
    const youngest = lanes.at(-1);
    const numDrafts = depth === full ? 0 : Math.min(length, end - frontier - 1);
    if (youngest.depth < depth) {
      const after = advanced(youngest);
      const isLastSource = lanes.length === numDrafts + 1;
      const purpose = after.depth === full ? "verify" : after.depth === depth && !isLastSource ? "draft" : null;
      return { lanes: [youngest], readouts: purpose ? [{ lane: after, purpose }] : [] };
    }
    const after = lanes.map(advanced);
    return { lanes, readouts: after[0].depth === full ? after.map((lane) => ({ lane, purpose: "verify" })) : [] };
  },

  wfd({ full, depth, mayInject }, { lanes }) {
    const [oldest, youngest] = [advanced(lanes[0]), advanced(lanes.at(-1))];
    const readouts = oldest.depth === full ? [{ lane: oldest, purpose: "verify" }] : [];
    if (youngest.depth === depth && depth < full && mayInject(youngest.position + 1)) {
      readouts.push({ lane: youngest, purpose: "draft" });
    }
    return { lanes, readouts };
  },
};

/** Opens a run after its prefill (SMP-10, SMP-11): the state and the events that follow. */
export function begin(schedule, firstToken) {
  const { first, full, endReason } = schedule;
  if (firstToken === null) {
    const finish = { event: "finish", tick: 0, reason: endReason, abandoned: [] };
    return { state: { frontier: first, lanes: [], ticks: 0, finished: endReason }, events: [finish] };
  }
  const lanes = [{ position: first - 1, token: -1, depth: full }];
  return verifyOldest(schedule, { frontier: first, lanes, ticks: 0, finished: null }, firstToken);
}

/** Commits the full-depth token of the oldest lane and judges the lane behind it (SMP-12, SMP-13, SMP-14). */
export function verifyOldest(schedule, state, token) {
  const { frontier: position, ticks: tick } = state;
  let behind = state.lanes.slice(1);
  const events = [{ event: "commit", tick, position, token }];
  if (behind.length && behind[0].token === token) {
    events.push({ event: "accept", tick, position });
  } else if (behind.length) {
    events.push({ event: "reject", tick, position, draft_token: behind[0].token, verified_token: token });
    events.push({ event: "flush", tick, positions: behind.map((lane) => lane.position) });
    behind = [];
  }
  const finished = schedule.stops.has(token) ? "eos" : position + 1 < schedule.end ? null : schedule.endReason;
  if (finished) {
    events.push({ event: "finish", tick, reason: finished, abandoned: behind.map((lane) => lane.position) });
    behind = [];
  } else if (!behind.length) {
    events.push({ event: "inject", tick, position, token });
    behind = [{ position, token, depth: 0 }];
  }
  return { state: { frontier: position + 1, lanes: behind, ticks: tick, finished }, events };
}
