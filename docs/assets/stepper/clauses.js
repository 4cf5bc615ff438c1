// Which clause governs an event of a right trace, and a link to it.

const READ = {
  ar: { advance: "AR-01", draft: "AR-01", inject: "AR-01" },
  dtv: { advance: "DTV-05", draft: "DTV-04", inject: "DTV-04" },
  wfd: { advance: "WFD-03", draft: "WFD-04", inject: "WFD-05" },
};

/** Gives the clause by which an event happens; `before` are the events of its tick that came before it. */
export function governing(event, before, { decoder, draft_depth: depth }) {
  const own = READ[decoder] ?? {};
  switch (event.event) {
    case "advance": {
      const isDrafting = decoder === "dtv" && event.lanes.every((lane) => lane.depth <= depth);
      return isDrafting ? "DTV-04" : own.advance;
    }
    case "draft":
      return own.draft;
    case "commit":
      return event.tick === 0 ? "SMP-11" : "SMP-12";
    case "accept":
    case "reject":
      return "SMP-12";
    case "flush":
      return "SMP-13";
    case "inject": {
      if (event.tick === 0) return "SMP-11";
      return before.at(-1)?.event === "draft" ? own.inject : "SMP-13";
    }
    case "finish":
      return "SMP-14";
    default:
      return "NOT-03";
  }
}

/** Makes a link to a clause; `places` is what the site says of clauses, {id: {place, opening}}. */
export function clauseLink(id, places, root) {
  const link = document.createElement("a");
  link.textContent = id;
  link.className = "clause";
  if (places[id]) {
    link.href = new URL(places[id].place, root).href;
    link.title = places[id].opening;
  }
  return link;
}
