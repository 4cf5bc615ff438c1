// Draws one snapshot as SVG, in the shapes of reference/figures/svg.py: guesses are round, final tokens square, dropped
// lanes crossed out, what this tick computed is in full colour. Colours are in stepper.css.

import { frame } from "./grid.js";

const STEP = 52; // from one column to the next
const GAP = 4;
const LEFT = 30;
const TOP = 44;
const LONGEST = 6; // most characters shown of a token

const svg = (name, attributes, text) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
};

/** Gives a token's text in a few visible characters. */
export function short(text, longest = LONGEST) {
  const seen = text.trim().replaceAll("\n", "↵").replaceAll("\t", "⇥") || (text.includes("\n") ? "↵" : text ? "␣" : "");
  return [...seen].length <= longest ? seen : `${[...seen].slice(0, longest - 1).join("")}…`;
}

/** Draws `width` columns of a snapshot; `label` gives the text of a token id. */
export function draw(snapshot, width, label) {
  const full = snapshot.start.recurrence_depth;
  const cell = full > 8 ? 12 : 20;
  const row = cell + GAP;
  const shown = frame(snapshot, width);
  const size = [LEFT + width * STEP, TOP + full * row];
  const picture = svg("svg", { viewBox: `0 0 ${size.join(" ")}`, role: "img", "aria-label": inWords(snapshot, label) });
  for (let level = 1; level <= full; level += 1) {
    if (full <= 8 || level % 4 === 0) {
      const y = TOP + level * row - GAP - cell / 2;
      picture.append(svg("text", { class: "quiet", x: LEFT - 8, y: y + 4, "text-anchor": "end" }, level));
    }
  }
  shown.forEach((column, place) => {
    const x = LEFT + place * STEP;
    const middle = x + (STEP - GAP) / 2;
    picture.append(svg("text", { class: "quiet", x: middle, y: 11, "text-anchor": "middle" }, column.position));
    const isGone = column.token === null && column.dropped;
    const mark = isGone ? "flushed" : column.mark;
    if (mark !== "empty") {
      const token = isGone ? column.dropped.token : column.token;
      picture.append(...box(x, 16, 20, mark, true));
      const text = token === null ? "prompt" : short(label(token));
      picture.append(svg("text", { class: `on-${mark}`, x: middle, y: 30, "text-anchor": "middle" }, text));
    }
    const depth = column.dropped ? column.dropped.depth : column.depth;
    for (let level = 1; level <= full; level += 1) {
      const kind = level > depth ? "empty" : column.dropped ? "flushed" : column.mark;
      picture.append(...box(x, TOP + (level - 1) * row, cell, kind, column.moved && level === depth));
    }
  });
  return picture;
}

function box(x, y, height, mark, isNew) {
  const width = STEP - GAP;
  const kind = isNew || mark === "empty" || mark === "flushed" ? mark : `${mark} old`;
  const parts = [svg("rect", { class: kind, x, y, width, height, rx: mark === "drafting" ? height / 2 : 3 })];
  if (mark === "flushed") {
    parts.push(svg("path", { class: kind, d: `M${x + 3} ${y + height - 3}L${x + width - 3} ${y + 3}` }));
  }
  return parts;
}

/** Says what the picture shows. */
export function inWords({ columns, tick }, label) {
  const lanes = columns
    .filter(({ mark }) => mark === "drafting" || mark === "verifying")
    .map(({ position, token, mark, depth }) => `position ${position} “${short(label(token), 20)}” ${mark}, depth ${depth}`);
  return `After tick ${tick}: ${lanes.length ? lanes.join("; ") : "no lane in flight"}.`;
}
