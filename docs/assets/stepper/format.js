// Reads a trace: JSON lines in the format that `wfd trace` writes (reference/trace.py, trace.schema.json).

/** The fields of each event beside "event", in the published order, and what each holds. */
export const FIELDS = {
  start: {
    version: "version",
    decoder: "text",
    recurrence_depth: "whole",
    draft_depth: "whole",
    draft_length: "whole or null",
    prompt_length: "whole",
    max_new_tokens: "whole",
    context_length: "whole",
    stop_ids: "list",
  },
  advance: { tick: "whole", lanes: "lanes" },
  draft: { tick: "whole", position: "whole", token: "whole" },
  commit: { tick: "whole", position: "whole", token: "whole" },
  accept: { tick: "whole", position: "whole" },
  reject: { tick: "whole", position: "whole", draft_token: "whole", verified_token: "whole" },
  flush: { tick: "whole", positions: "list" },
  inject: { tick: "whole", position: "whole", token: "whole" },
  finish: { tick: "whole", reason: "reason", abandoned: "list" },
};

const isWhole = Number.isSafeInteger;

const IS_A = {
  version: (value) => value === 1 || value === 2,
  text: (value) => typeof value === "string",
  whole: isWhole,
  "whole or null": (value) => value === null || isWhole(value),
  reason: (value) => ["eos", "length", "context"].includes(value),
  list: (value) => Array.isArray(value) && value.every(isWhole),
  lanes: (value) =>
    Array.isArray(value) && value.every((lane) => Array.isArray(lane) && lane.length === 3 && lane.every(isWhole)),
};

/** Fields that may be left out, and are not looked at here: which KV cells were read, in format 2. */
const OPTIONAL = { advance: ["reads"] };

/** A line is not an event of this format. What cannot be read cannot be judged. */
export class FormatError extends Error {}

/** Gives the events of a text, each with the number of its `line`; lanes become {position, token, depth}. */
export function parseTrace(text) {
  const events = [];
  text.split(/\r\n|\r|\n/).forEach((line, index) => {
    if (!line.trim()) return;
    try {
      events.push({ ...event(JSON.parse(line)), line: index + 1 });
    } catch (error) {
      throw new FormatError(`line ${index + 1} is not an event of trace format 1 or 2: ${error.message}`);
    }
  });
  return events;
}

function event(record) {
  const fields = FIELDS[record?.event];
  if (!fields) throw new Error(`no event "${record?.event}"`);
  const strange = Object.keys(record).find((name) => name !== "event" && !(name in fields || OPTIONAL[record.event]?.includes(name)));
  if (strange) throw new Error(`no field "${strange}" in ${record.event}`);
  const read = { event: record.event };
  for (const [name, kind] of Object.entries(fields)) {
    if (!IS_A[kind](record[name])) throw new Error(`"${name}" is ${JSON.stringify(record[name])}`);
    read[name] = kind === "lanes" ? record[name].map(([position, token, depth]) => ({ position, token, depth })) : record[name];
  }
  return read;
}
