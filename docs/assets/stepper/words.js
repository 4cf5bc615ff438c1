// Events in words, and the clause that governs each.

/** Gives positions in words. */
export const listed = (positions) =>
  positions.length ? `position${positions.length > 1 ? "s" : ""} ${positions.join(", ")}` : "no positions";

/** Tells what happened, in a sentence without its full stop; `label` gives the text of a token id. */
export function tell(event, label) {
  switch (event.event) {
    case "advance":
      return `${listed(event.lanes.map((lane) => lane.position))} to depth ${event.lanes.map((lane) => lane.depth).join(", ")}`;
    case "draft":
      return `position ${event.position} drafts ${label(event.token)}`;
    case "commit":
      return `${label(event.token)} committed at ${event.position}`;
    case "accept":
      return `the draft at ${event.position} accepted`;
    case "reject":
      return `the draft at ${event.position} rejected: ${label(event.draft_token)}, not ${label(event.verified_token)}`;
    case "flush":
      return `${listed(event.positions)} flushed`;
    case "inject":
      return `position ${event.position} starts with ${label(event.token)}`;
    default:
      return `finished: ${event.reason}`;
  }
}

/** Gives an event in a few words; `label` gives the text of a token id. */
export function describe(event, label = String) {
  switch (event.event) {
    case "start":
      return `start of ${event.decoder}`;
    case "advance":
      return `advance of ${listed(event.lanes.map((lane) => lane.position))}`;
    case "draft":
      return `draft ${label(event.token)} at position ${event.position}`;
    case "commit":
      return `commit of ${label(event.token)} at position ${event.position}`;
    case "accept":
      return `acceptance at position ${event.position}`;
    case "reject":
      return `rejection at position ${event.position}, ${label(event.draft_token)} against ${label(event.verified_token)}`;
    case "flush":
      return `flush of ${listed(event.positions)}`;
    case "inject":
      return `lane at position ${event.position} with token ${label(event.token)}`;
    default:
      return `finish, ${event.reason}, ${listed(event.abandoned)} abandoned`;
  }
}

/** Gives the clause that asks for an event which a commit brings about. */
export function clauseOf(event) {
  switch (event.event) {
    case "accept":
    case "reject":
      return "SMP-12";
    case "inject":
      return event.tick === 0 ? "SMP-11" : "SMP-13";
    case "flush":
      return "SMP-13";
    default:
      return "SMP-14";
  }
}
