// The page: fields, what they lead to, and the address that holds them.

"use strict";

(() => {
  const tables = JSON.parse(document.getElementById("calculator-tables").textContent);

  const named = (table) => Object.entries(table).map(([name, entry]) => [name, entry.name ?? name]);
  const FIELDSETS = {
    "The model": [
      { name: "model", label: "Shape", options: named(tables.shapes) },
      { name: "recurrence-depth", label: "Recurrence depth T", min: 1 },
      { name: "slots", label: "Shared KV slots", min: 1, hint: "Empty: every recurrence has its own." },
    ],
    "The machine": [
      { name: "hardware", label: "Hardware", options: named(tables.machines) },
      { name: "dtype", label: "Type of numbers", options: named(tables.precisions) },
      { name: "software", label: "Software", options: named(tables.software) },
      { name: "launch", label: "Calls are", options: [["eager", "eager"], ["captured", "captured graphs"]] },
    ],
    "The load": [
      { name: "context", label: "Context", min: 1, hint: "Positions, on average." },
      { name: "batch", label: "Batch", min: 1 },
    ],
    "The decoders": [
      { name: "alpha", label: "Acceptance alpha", min: 0, max: 1, step: 0.01, hint: "Share of right drafts." },
      { name: "draft-depth", label: "Draft depth d", min: 1 },
      { name: "draft-length", label: "Draft length γ", min: 1, hint: "Of DtV." },
    ],
  };
  const FIELDS = Object.values(FIELDSETS).flat();

  /** What is asked before anybody asks; as `wfd cost` has it. */
  const FIRST = {
    model: "ouro-2.6b",
    "recurrence-depth": "4",
    slots: "",
    hardware: "a6000",
    dtype: "bf16",
    software: "research",
    launch: "eager",
    context: "500",
    batch: "1",
    alpha: "0.9",
    "draft-depth": "1",
    "draft-length": "8",
  };

  const EXAMPLES = {
    "Ouro, as reported": { ...FIRST, alpha: "0.92" },
    "Huginn, 16k tokens, shared slots": {
      ...FIRST, model: "huginn-3.5b", "recurrence-depth": "32", "draft-depth": "4", slots: "4", context: "16384", alpha: "0.96",
    },
    "A serving engine": { ...FIRST, hardware: "h100", software: "fused", launch: "captured", context: "4096", batch: "8" },
    "Slower than AR": { ...FIRST, context: "16384", alpha: "0.7" },
  };

  const CALLS = { ar: "A recurrence of AR", wfd: "A tick of the full wave" };

  /** Makes an element with attributes and children. */
  function make(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) if (value !== undefined) element.setAttribute(key, value);
    element.append(...children);
    return element;
  }

  const svg = (name, attributes, ...children) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };

  const at = (name) => document.getElementById(`calculator-${name}`);
  const addressOf = (question) => `#${new URLSearchParams(question)}`;

  function field({ name, label, options, hint, ...limits }) {
    const id = `calculator-${name}`;
    const described = { id, name, "aria-describedby": hint ? `${id}-hint ${id}-problem` : `${id}-problem` };
    const input = options
      ? make("select", described, ...options.map(([value, text]) => make("option", { value }, text)))
      : make("input", { type: "number", step: 1, ...limits, ...described });
    const problem = make("small", { id: `${id}-problem`, class: "problem", "aria-live": "polite" });
    const told = hint ? [make("small", { id: `${id}-hint` }, hint)] : [];
    return make("div", { class: "field" }, make("label", { for: id }, label), input, ...told, problem);
  }

  function build(host) {
    const form = make("form", { novalidate: "", "aria-label": "What runs where" });
    for (const [legend, fields] of Object.entries(FIELDSETS)) {
      form.append(make("fieldset", {}, make("legend", {}, legend), ...fields.map(field)));
    }
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", (event) => changed(event.target.name));
    const links = Object.entries(EXAMPLES).map(([name, question]) => make("a", { href: addressOf(question) }, name));
    const spoken = make(
      "div",
      { role: "status", "aria-live": "polite", "aria-atomic": "true", class: "calculator-said" },
      make("p", { id: "calculator-verdict" }),
      make("p", { id: "calculator-memory" }),
    );
    const rest = make(
      "div",
      { id: "calculator-rest" },
      make("h3", {}, "Where the time of a token goes"),
      make("div", { id: "calculator-bars" }),
      make("table", { id: "calculator-table" }),
      make("h3", {}, "When is WFD slower than AR?"),
      make("p", { id: "calculator-slow" }),
      make("h3", {}, "What binds?"),
      ...Object.keys(CALLS).map((name) => make("div", { id: `calculator-bound-${name}` })),
      make("h3", {}, "The same from the command line"),
      make("pre", {}, make("code", { id: "calculator-command" })),
    );
    host.replaceChildren(make("p", { class: "examples" }, "For example: ", ...links), form, spoken, rest);
  }

  /** Gives the fields on depth for a model that is run at a depth. */
  const depthsOf = (depth) => ({ "recurrence-depth": String(depth), "draft-depth": String(cost.defaultDraftDepth(depth)) });

  const asked = () => Object.fromEntries(FIELDS.map(({ name }) => [name, at(name).value]));

  function fill(question) {
    for (const [name, text] of Object.entries(question)) at(name).value = text;
  }

  /** A field was changed: those that follow from it change too, then all is told anew. */
  function changed(name) {
    const shape = tables.shapes[at("model").value];
    if (name === "model") {
      fill(depthsOf(shape.recurrenceDepth));
    }
    if (name === "software") fill({ launch: tables.software[at("software").value].isCaptured ? "captured" : "eager" });
    if (show()) history.replaceState(null, "", addressOf(asked()));
  }

  /** Tells everything that follows from the fields; gives whether anything did. */
  function show() {
    const question = asked();
    const found = problems(question, tables);
    // A field that holds letters reads as empty, which is fine where empty means something.
    if (at("slots").validity.badInput) found.slots = "Needs a whole number of at least 1, or nothing.";
    const isAlwaysCaptured = Boolean(tables.software[question.software]?.isCaptured);
    at("launch").disabled = isAlwaysCaptured;
    if (isAlwaysCaptured) question.launch = at("launch").value = "captured";
    for (const { name } of FIELDS) {
      at(`${name}-problem`).textContent = found[name] ?? "";
      at(name).setAttribute("aria-invalid", String(name in found));
    }
    const isRight = Object.keys(found).length === 0;
    at("rest").hidden = !isRight;
    if (!isRight) {
      at("verdict").textContent = "No answer until the marked fields are mended.";
      at("verdict").className = "loss";
      at("memory").textContent = "";
      return false;
    }
    const answer = answers(question, tables);
    at("verdict").textContent = verdictInWords(answer);
    at("verdict").className = answer.decoders.wfd.speedup > 1 ? "gain" : "loss";
    at("memory").textContent = memoryInWords(answer);
    at("memory").className = answer.fits ? "" : "loss";
    at("slow").textContent = slownessInWords(answer);
    for (const [name, title] of Object.entries(CALLS)) {
      const [outcome, ...steps] = boundInWords(answer.bounds[name], answer.setting);
      const list = make("ul", {}, ...steps.map((step) => make("li", {}, step)));
      at(`bound-${name}`).replaceChildren(make("p", {}, make("strong", {}, `${title}, `), outcome), list);
    }
    at("command").textContent = commandOf(question);
    at("bars").replaceChildren(bars(answer), legend());
    at("table").replaceChildren(...table(answer));
    return true;
  }

  /** Draws a stacked bar for each decoder. Widths are shares, so that the picture fits a phone and its text does not shrink. */
  function bars({ decoders }) {
    const longest = Math.max(...Object.values(decoders).map(({ total }) => total));
    const [row, height] = [54, 26];
    const count = Object.keys(decoders).length;
    const picture = svg("svg", { width: "100%", height: row * count, role: "img", "aria-label": "Bars of what the table says: where the time of a token goes" });
    Object.entries(decoders).forEach(([decoder, { seconds, total, speedup }], place) => {
      const y = place * row;
      picture.append(svg("text", { class: "name", x: 0, y: y + 15 }, `${DECODERS[decoder]}  ${ms(total)}  ×${fixed(speedup)}`));
      let left = 0;
      for (const [part, label] of Object.entries(PARTS)) {
        const share = (100 * seconds[part]) / longest;
        if (!share) continue;
        const title = svg("title", {}, `${label}: ${ms(seconds[part])}`);
        picture.append(svg("rect", { class: part, x: `${left}%`, y: y + 22, width: `${share}%`, height }, title));
        if (share > 16) picture.append(svg("text", { class: `on-${part}`, x: `${left}%`, dx: 6, y: y + 39 }, label.split(" ")[0]));
        left += share;
      }
    });
    return picture;
  }

  function legend() {
    const items = Object.entries(PARTS).map(([part, label]) =>
      make("span", {}, make("i", { class: `sample ${part}`, "aria-hidden": "true" }), label),
    );
    return make("p", { class: "legend" }, ...items);
  }

  function table({ decoders }) {
    const all = Object.values(decoders);
    const line = (title, cells) => make("tr", {}, make("th", { scope: "row" }, title), ...cells.map((text) => make("td", {}, text)));
    const head = make("tr", {}, make("td"), ...Object.keys(decoders).map((name) => make("th", { scope: "col" }, DECODERS[name])));
    return [
      make("caption", {}, "One token, on average over a long run; times in milliseconds"),
      make("thead", {}, head),
      make(
        "tbody",
        {},
        line("time", all.map(({ total }) => fixed(1000 * total))),
        line("speed, AR's is 1", all.map(({ speedup }) => fixed(speedup))),
        line("ticks", all.map(({ ticks }) => fixed(ticks))),
        line("rows a tick", all.map(({ ticks, rows }) => fixed(rows / ticks))),
        ...Object.entries(PARTS).map(([part, label]) => line(label, all.map(({ seconds }) => fixed(1000 * seconds[part])))),
      ),
    ];
  }

  /** Takes the fields from the address, where it holds any; what it leaves out is as at first, or as the model has it. */
  function follow() {
    const given = Object.fromEntries([...new URLSearchParams(location.hash.slice(1))].filter(([name]) => name in FIRST));
    if (Object.keys(given).length === 0) return; // no address, or that of a heading
    const own = tables.shapes[given.model]?.recurrenceDepth ?? Number(FIRST["recurrence-depth"]);
    fill({ ...FIRST, ...depthsOf(own), ...given });
    show();
  }

  const host = document.getElementById("calculator");
  build(host);
  fill(FIRST);
  show();
  follow();
  addEventListener("hashchange", follow);
  host.dataset.ready = "true";
})();
