// The one picture as data: position across, recurrence down, and what every cell is after a tick.
//
// A port of `snapshots` in reference/figures/grid.py. It draws what the events say and judges nothing.

/**
 * Replays events, which begin with a start and may end anywhere: one snapshot for tick 0 and one for every tick after.
 *
 * A snapshot is {tick, start, events, columns, counts, reason}; a column is
 * {position, token, mark, depth, moved, dropped}, where mark is empty, drafting, verifying or committed.
 */
export function snapshots(events) {
  const [start, ...rest] = events;
  const tokens = new Map(); // final tokens by position
  const lanes = new Map(); // lanes in flight by position
  const counts = { ticks: 0, tokens: 0, drafted: 0, accepted: 0, rejected: 0, flushed: 0, rowsInAll: 0, rows: 0 };
  const taken = [];
  for (let from = 0; from < rest.length; ) {
    const { tick } = rest[from];
    let to = from;
    while (to < rest.length && rest[to].tick === tick) to += 1;
    const news = rest.slice(from, to);
    from = to;
    const moved = new Set(news.flatMap((event) => (event.event === "advance" ? event.lanes : [])).map((lane) => lane.position));
    const dropped = replay(news, tokens, lanes);
    count(counts, news, moved.size);
    taken.push({
      tick,
      start,
      events: news,
      columns: columns(start, tokens, lanes, tick === 0 ? new Set([start.prompt_length - 1]) : moved, dropped),
      counts: { ...counts },
      reason: news.find((event) => event.event === "finish")?.reason ?? null,
    });
  }
  return taken;
}

/** Applies the events of one tick; gives the lanes that were dropped. */
function replay(news, tokens, lanes) {
  const dropped = new Map();
  for (const event of news) {
    if (event.event === "advance") for (const lane of event.lanes) lanes.set(lane.position, lane);
    if (event.event === "inject") lanes.set(event.position, { position: event.position, token: event.token, depth: 0 });
    if (event.event === "commit") {
      tokens.set(event.position, event.token);
      lanes.delete(event.position - 1);
    }
    if (event.event === "flush") {
      for (const position of event.positions) {
        if (lanes.has(position)) dropped.set(position, lanes.get(position));
        lanes.delete(position);
      }
    }
  }
  return dropped;
}

function count(counts, news, rows) {
  const number = (kind) => news.filter((event) => event.event === kind).length;
  counts.rows = rows;
  counts.rowsInAll += rows;
  counts.ticks = Math.max(counts.ticks, ...news.map((event) => event.tick));
  counts.tokens += number("commit");
  counts.drafted += number("draft");
  counts.accepted += number("accept");
  counts.rejected += number("reject");
  for (const event of news) if (event.event === "flush") counts.flushed += event.positions.length;
}

function columns(start, tokens, lanes, moved, dropped) {
  const first = start.prompt_length;
  const full = start.recurrence_depth;
  const last = Math.max(first - 1, ...tokens.keys(), ...lanes.keys(), ...dropped.keys());
  const shown = [{ position: first - 1, token: null, mark: "committed", depth: full, moved: moved.has(first - 1), dropped: null }];
  for (let position = first; position <= last; position += 1) {
    const lane = lanes.get(position);
    const isFinal = tokens.has(position);
    shown.push({
      position,
      token: lane ? lane.token : isFinal ? tokens.get(position) : null,
      mark: lane ? (isFinal ? "verifying" : "drafting") : isFinal ? "committed" : "empty",
      // The last token of a run is final without having been computed: it has no successor to predict.
      depth: lane ? lane.depth : isFinal && tokens.has(position + 1) ? full : 0,
      moved: moved.has(position),
      dropped: dropped.get(position) ?? null,
    });
  }
  return shown;
}

/** How many columns are not finished after a tick: the width of the wave, or of the round. */
export const numUnfinished = ({ columns }) => columns.filter(({ mark }) => mark !== "committed").length;

/** The `width` columns around the wave: two finished ones to its left, empty ones to its right. */
export function frame({ columns, start }, width) {
  const unfinished = columns.find(({ mark }) => mark !== "committed")?.position ?? columns.at(-1).position + 1;
  const first = Math.max(start.prompt_length - 1, unfinished - 2);
  const known = new Map(columns.map((column) => [column.position, column]));
  const empty = { token: null, mark: "empty", depth: 0, moved: false, dropped: null };
  return Array.from({ length: width }, (_, place) => known.get(first + place) ?? { ...empty, position: first + place });
}
