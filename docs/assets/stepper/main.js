// The stepper: plays traces side by side on one clock, and judges a trace of the reader's own.

import { checkTrace } from "./check.js";
import { clauseLink, governing } from "./clauses.js";
import { draw, short } from "./draw.js";
import { FormatError, parseTrace } from "./format.js";
import { numUnfinished, snapshots } from "./grid.js";
import { tell } from "./words.js";

const NAMES = { ar: "AR", dtv: "DtV", wfd: "WFD" };
const NARROWEST = 6; // columns of a picture

/** Makes an element with attributes and children. */
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

const counted = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

class Stepper {
  tick = 0;
  runs = []; // {name, snapshots, label}
  timer = null;

  constructor(host, { index, clauses, root }) {
    Object.assign(this, { host, index, clauses, root });
    this.#build();
  }

  #build() {
    const button = (id, text, title, action) => {
      const made = make("button", { type: "button", id: `stepper-${id}`, title, "aria-label": title }, text);
      made.addEventListener("click", action);
      return made;
    };
    const choice = (id, text) => {
      const select = make("select", { id: `stepper-${id}` });
      select.addEventListener("change", () => this.#choose());
      return [make("label", { for: select.id }, text, select), select];
    };
    const [textLabel, text] = choice("text", "Text ");
    const [fullLabel, full] = choice("recurrences", "Recurrences T ");
    const [depthLabel, depth] = choice("depth", "Draft depth d ");
    const [lengthLabel, length] = choice("length", "Draft length γ ");
    Object.assign(this, { text, full, depth, length });
    this.index.forEach(({ name }, place) => text.append(make("option", { value: place }, name)));

    this.file = make("input", { type: "file", id: "stepper-file", accept: ".jsonl,.json,.txt,text/plain" });
    this.file.addEventListener("change", () => this.#open(this.file.files[0]));
    this.back = button("examples", "Back to the examples", "Back to the examples", () => this.#choose());

    this.play = button("play", "▶ Play", "Play or pause (space)", () => this.#toggle());
    this.slider = make("input", { type: "range", id: "stepper-tick", min: 0, value: 0, "aria-label": "Tick" });
    this.slider.addEventListener("input", () => this.#go(Number(this.slider.value)));
    this.clock = make("output", { for: "stepper-tick", id: "stepper-clock" });
    this.verdict = make("div", { id: "stepper-verdict", role: "status", hidden: true });
    this.panels = make("div", { class: "stepper-panels" });
    this.spoken = make("div", { id: "stepper-spoken", class: "stepper-spoken", "aria-live": "polite" });
    this.shown = make("details", { class: "stepper-prompt" }, make("summary", {}, "The prompt"), make("pre"));

    const controls = make(
      "div",
      { class: "stepper-controls", role: "group", "aria-label": "Steps" },
      button("first", "|◀", "To the first tick (Home)", () => this.#go(0)),
      button("back", "◀ Back", "One tick back (left arrow)", () => this.#go(this.tick - 1)),
      this.play,
      button("step", "Step ▶", "One tick on (right arrow)", () => this.#go(this.tick + 1)),
      button("last", "▶|", "To the last tick (End)", () => this.#go(this.last)),
      this.clock,
    );
    const own = make("span", { class: "stepper-own" }, make("label", { for: "stepper-file" }, "Your own trace "), this.file, this.back);
    const choices = make("div", { class: "stepper-choices" }, textLabel, fullLabel, depthLabel, lengthLabel, own);
    this.host.replaceChildren(choices, controls, this.slider, this.verdict, this.panels, this.#legend(), this.shown, this.spoken);
    this.host.tabIndex = 0;
    this.host.setAttribute("role", "region");
    this.host.setAttribute("aria-label", "Stepper: arrow keys step, space plays, Home and End jump");
    this.host.addEventListener("keydown", (event) => this.#key(event));
    for (const kind of ["dragover", "dragleave", "drop"]) this.host.addEventListener(kind, (event) => this.#drag(event));
  }

  #legend() {
    const meanings = {
      drafting: "drafting: a guess",
      verifying: "verifying: a final token on its way",
      committed: "committed",
      flushed: "flushed",
    };
    const items = Object.entries(meanings).map(([mark, text]) =>
      make("span", {}, make("i", { class: `sample ${mark}`, "aria-hidden": "true" }), text),
    );
    return make("p", { class: "stepper-legend" }, ...items, make("span", {}, "full colour: computed in this tick"));
  }

  /** Loads the chosen text, if it is another one, and shows its runs with the chosen T, d and γ. */
  async #choose() {
    const entry = this.index[this.text.value];
    if (this.story?.entry !== entry) {
      const response = await fetch(new URL(`assets/traces/${entry.file}`, this.root));
      this.story = { entry, ...(await response.json()) };
      const own = this.story.runs[0][0].recurrence_depth; // the model's own comes first
      offer(this.full, this.story.runs.map((run) => run[0].recurrence_depth));
      this.full.value = own;
    }
    const full = Number(this.full.value);
    const starts = this.story.runs.map((run) => run[0]).filter((start) => start.recurrence_depth === full);
    offer(this.depth, starts.filter((start) => start.decoder === "wfd").map((start) => start.draft_depth));
    offer(this.length, starts.filter((start) => start.decoder === "dtv").map((start) => start.draft_length));
    const [depth, length] = [Number(this.depth.value), Number(this.length.value)];
    const isChosen = ({ decoder, recurrence_depth, draft_depth, draft_length }) =>
      recurrence_depth === full &&
      (decoder === "ar" || (draft_depth === depth && (decoder === "wfd" || draft_length === length)));
    const chosen = this.story.runs.filter((run) => isChosen(run[0]));
    const label = (token) => this.story.labels[token] ?? String(token);
    this.file.value = "";
    this.verdict.hidden = true;
    this.shown.hidden = false;
    this.shown.lastChild.textContent = this.story.prompt;
    this.#show(chosen.map((run) => parseTrace(run.map((event) => JSON.stringify(event)).join("\n"))), label);
    this.back.hidden = true;
  }

  /** Shows a trace of the reader's own, with the verdict on it. */
  async #open(file) {
    if (!file) return;
    this.back.hidden = false;
    this.shown.hidden = true;
    this.verdict.hidden = false;
    let events;
    try {
      events = parseTrace(await file.text());
    } catch (error) {
      if (!(error instanceof FormatError)) throw error;
      this.#judge(file.name, false, `${error.message}. What cannot be read cannot be judged.`);
      this.#show([], String);
      return;
    }
    const objection = checkTrace(events);
    const right = objection ? events.slice(0, objection.index) : events;
    if (objection) {
      const line = events[objection.index]?.line;
      const where = line ? `event ${objection.index}, line ${line}` : "the end";
      this.#judge(file.name, false, `${where}: ${objection.reason} (`, clauseLink(objection.clause, this.clauses, this.root), ").");
    } else {
      this.#judge(file.name, true, `all ${events.length} events are ones that the specification allows.`);
    }
    this.#show(right.length > 1 ? [right] : [], String);
    if (objection) this.#go(this.last);
  }

  #judge(name, isRight, ...said) {
    this.verdict.className = isRight ? "right" : "wrong";
    this.verdict.replaceChildren(make("strong", {}, isRight ? "exact" : "wrong"), ` ${name}: `, ...said);
  }

  /** Makes one panel for each run and goes to the first tick. */
  #show(runs, label) {
    this.#pause();
    this.runs = runs.map((events) => ({ name: NAMES[events[0].decoder], snapshots: snapshots(events), label }));
    this.last = Math.max(0, ...this.runs.map((run) => run.snapshots.at(-1).tick));
    this.columns = Math.max(NARROWEST, ...this.runs.flatMap((run) => run.snapshots.map((one) => 2 + numUnfinished(one))));
    this.slider.max = this.last;
    this.#go(0);
  }

  #go(tick) {
    this.tick = Math.min(Math.max(tick, 0), this.last);
    this.slider.value = this.tick;
    this.clock.textContent = `tick ${this.tick} of ${this.last}`;
    this.slider.setAttribute("aria-valuetext", this.clock.textContent);
    this.panels.replaceChildren(...this.runs.map((run) => this.#panel(run)));
    if (this.tick === this.last) this.#pause();
    if (!this.timer) this.spoken.textContent = this.#inWords();
  }

  #panel({ name, snapshots: taken, label }) {
    const one = taken[Math.min(this.tick, taken.length - 1)];
    const { counts, start } = one;
    const isOver = this.tick > one.tick;
    const parameters = [`T = ${start.recurrence_depth}`];
    if (start.decoder !== "ar") parameters.push(`d = ${start.draft_depth}`);
    if (start.draft_length !== null) parameters.push(`γ = ${start.draft_length}`);
    const state = isOver ? `finished at tick ${one.tick}` : one.tick ? counted(counts.rows, "row") : "after the prompt";
    const after = counts.tokens - 1;
    const rate = after > 0 && counts.ticks ? (counts.ticks / after).toFixed(2) : "–";
    const numbers = {
      ticks: counts.ticks,
      tokens: counts.tokens,
      "ticks per token": rate,
      drafted: counts.drafted,
      accepted: counts.accepted,
      rejected: counts.rejected,
      flushed: counts.flushed,
    };
    const table = make("dl", {}, ...Object.entries(numbers).map(([key, value]) => make("div", {}, make("dt", {}, key), make("dd", {}, value))));
    const events = make("ol", { class: "stepper-events" }, ...(isOver ? [] : this.#events(one, label)));
    const head = make("h3", {}, name, make("small", {}, ` ${parameters.join(", ")} · ${state}`));
    const flushes = !isOver && one.events.some((event) => event.event === "flush");
    return make(
      "article",
      { class: flushes ? "flushes" : undefined, "data-decoder": start.decoder },
      head,
      table,
      draw(isOver ? atRest(one) : one, this.columns, label),
      this.#tokens(one, label),
      events,
    );
  }

  #events(one, label) {
    return one.events.map((event, place) => {
      const id = governing(event, one.events.slice(0, place), one.start);
      const quoted = (token) => (label === String ? token : `“${short(label(token), 20)}”`);
      return make("li", { class: event.event }, `${tell(event, quoted)} `, clauseLink(id, this.clauses, this.root));
    });
  }

  /** The text so far: final tokens, then the guesses in flight; those that a finish leaves behind are not part of it. */
  #tokens({ columns, reason }, label) {
    const space = label === String ? " " : "";
    const spans = columns
      .filter(({ token, mark }) => token !== null && !(reason && mark === "drafting"))
      .map(({ token, mark }) => make("span", { class: mark === "drafting" ? "guess" : "final" }, label(token) + space));
    return make("p", { class: "stepper-tokens" }, ...spans);
  }

  #inWords() {
    const said = this.runs.map(({ name, snapshots: taken, label }) => {
      const one = taken[this.tick];
      if (!one) return `${name} has finished.`;
      const news = one.events.filter((event) => !["advance", "inject"].includes(event.event));
      const quoted = (token) => short(label(token), 20);
      const text = news.map((event) => tell(event, quoted)).join(", ");
      return `${name}: ${counted(one.counts.rows, "row")}${text ? `, ${text}` : ""}.`;
    });
    return `Tick ${this.tick} of ${this.last}. ${said.join(" ")}`;
  }

  #toggle() {
    if (this.timer) return this.#pause();
    if (this.tick === this.last) this.#go(0);
    this.timer = setInterval(() => this.#go(this.tick + 1), 700);
    this.play.textContent = "⏸ Pause";
  }

  #pause() {
    clearInterval(this.timer);
    this.timer = null;
    this.play.textContent = "▶ Play";
  }

  #key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || ["SELECT", "SUMMARY"].includes(event.target.tagName)) return;
    if (event.target === this.file || (event.target.tagName === "BUTTON" && event.key === " ")) return;
    const actions = {
      ArrowRight: () => this.#go(this.tick + 1),
      ArrowLeft: () => this.#go(this.tick - 1),
      Home: () => this.#go(0),
      End: () => this.#go(this.last),
      " ": () => this.#toggle(),
    };
    if (!(event.key in actions)) return;
    event.preventDefault();
    event.stopPropagation();
    actions[event.key]();
  }

  #drag(event) {
    event.preventDefault();
    this.host.classList.toggle("dropping", event.type === "dragover");
    if (event.type === "drop") this.#open(event.dataTransfer.files[0]);
  }

  start() {
    return this.#choose();
  }
}

/** A snapshot some ticks after the end of its run: nothing is new in it. */
function atRest(one) {
  const columns = one.columns.map((column) => ({ ...column, moved: false, dropped: null }));
  return { ...one, columns };
}

/** Fills a choice with the different numbers of a list, keeping what was chosen if it is among them. */
function offer(select, numbers) {
  const chosen = select.value;
  const offered = [...new Set(numbers)].sort((one, other) => one - other);
  select.replaceChildren(...offered.map((number) => make("option", { value: number }, number)));
  if (offered.map(String).includes(chosen)) select.value = chosen;
}

async function begin() {
  const host = document.getElementById("stepper");
  const root = new URL("../../", import.meta.url);
  const load = async (place) => (await fetch(new URL(place, root))).json();
  const [index, clauses] = await Promise.all([load("assets/traces/index.json"), load("assets/clauses.json")]);
  await new Stepper(host, { index, clauses, root }).start();
  host.dataset.ready = "true";
}

begin();
