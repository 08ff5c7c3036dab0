// The studio's page: a form that makes a state, and the view of that state, which is requested after every change.

import accel from "./accel.js";
import front from "./front.js";

const WAIT = 220;             // milliseconds after the last key before a view is requested
const ORDER = ["timeline", "compared", "advice", "critical", "loops", "layers", "table", "units", "figures", "roofline", "scratchpads", "dram", "memory", "traffic", "fusion", "verdict", "instructions"];
const GROUPS = {              // the tabs below the chart, and the sections of each
  "Overview": ["compared", "advice", "critical", "figures", "roofline", "verdict"],
  "Code": ["loops", "instructions"],
  "Layers": ["layers", "table", "fusion"],
  "Units": ["units"],
  "Memory": ["scratchpads", "dram", "memory", "traffic"],
};
const USUAL = ["batch", "block_in", "block_out", "bus_bits", "read_latency", "acc_bytes"];
const byId = id => document.getElementById(id);
const make = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const key in attributes) if (attributes[key] !== null) made.setAttribute(key, attributes[key]);
  made.append(...children);
  return made;
};
const percent = value => `${value > 0 ? "+" : value < 0 ? "−" : "±"}${Math.abs(100 * value).toFixed(Math.abs(value) < 0.1 ? 1 : 0)} %`;

let form = null, state = null, shown = null, before = null, view = null, requests = 0, timer = null;

// --- states as text

const encode = value => btoa(String.fromCharCode(...new TextEncoder().encode(JSON.stringify(value))))
  .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const decode = text => JSON.parse(new TextDecoder().decode(
  Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), c => c.charCodeAt(0))));

function fromAddress() {
  try { return location.hash.length > 1 ? decode(location.hash.slice(1)) : null; } catch { return null; }
}

/** A step as one line: `split stage=S axis=y factor=8 names=[ym,yi]`. */
function stepText({ op, ...rest }) {
  const word = value => typeof value === "string" && /^[A-Za-z_][\w.]*$/.test(value) && value !== "null" ? value
    : Array.isArray(value) ? `[${value.map(word).join(",")}]` : JSON.stringify(value);
  return [op, ...Object.entries(rest).filter(([, value]) => value !== null).map(([key, value]) => `${key}=${word(value)}`)].join(" ");
}

function stepOf(text) {
  const [op, ...words] = text.trim().split(/\s+/);
  const value = word => {
    if (word.startsWith("[") && word.endsWith("]")) return word.slice(1, -1).split(",").filter(Boolean).map(value);
    try { return JSON.parse(word); } catch { return word; }
  };
  return Object.fromEntries([["op", op], ...words.map(word => {
    const at = word.indexOf("=");
    return at < 0 ? [word, null] : [word.slice(0, at), value(word.slice(at + 1))];
  })]);
}

// --- requests

/** Request the view of the state, once nothing changes for a moment. */
function changed(now = false) {
  clearTimeout(timer);
  timer = setTimeout(requestView, now ? 0 : WAIT);
}

async function requestView() {
  const mine = ++requests, wanted = JSON.stringify(state), begin = performance.now();
  byId("progress").hidden = false;
  let found;
  try {
    const response = await fetch("/view", { method: "POST", headers: { "Content-Type": "application/json" }, body: wanted });
    if (response.status === 409 || mine !== requests) return;
    found = response.headers.get("content-type").startsWith("application/json") ? await response.json()
      : { error: { kind: "Refused", message: await response.text() } };
  } catch {
    found = { error: { kind: "No answer", message: "the studio does not answer; was it ended?" } };
  }
  if (mine !== requests) return;
  byId("progress").hidden = true;
  if (found.error) { problem(found.error); return; }
  problem(null);
  show(found.view, (performance.now() - begin) / 1000);
  const address = `#${encode(state)}`;
  if (location.hash !== address) history.pushState(null, "", address);
}

/** Request changes of the machine that would help, and offer to try each. */
async function advise() {
  const place = byId("helps"), mine = ++requests;
  place.hidden = false;
  place.replaceChildren(make("h2", {}, "What would help"), make("p", { class: "note" }, "Trying changes of the machine, one at a time…"));
  place.scrollIntoView({ block: "nearest" });
  byId("progress").hidden = false;
  let found;
  try {
    const response = await fetch("/advice", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(state) });
    if (mine !== requests) return;
    found = await response.json();
  } catch {
    found = { error: { kind: "No answer", message: "the studio does not answer; was it ended?" } };
  }
  if (mine !== requests) return;
  byId("progress").hidden = true;
  if (found.error) { place.hidden = true; problem(found.error); return; }
  const { bound, advice, software, tried, left_out } = found.advice;
  const schedules = software.map(({ command, speedup, cycles, reason }) =>
    make("tr", {}, make("td"), make("td", {}, make("b", {}, command)), make("td", { class: "number" }, speedup.toFixed(2)),
      make("td", { class: "number" }, accel.grouped(cycles)), make("td", {}, `${reason} (simulated)`), make("td", {}, "none: a schedule")));
  const machines = advice.map(({ field, then, change, speedup, cycles, reason, how, recompiled, price }) => {
    const button = make("button", { type: "button" }, "Try it");
    button.disabled = recompiled && isFixed();
    if (button.disabled) button.title = "the file is compiled for this machine; compile it again for the other one";
    button.addEventListener("click", () => {
      if (!state.pinned && shown) state.pinned = structuredClone({ ...shown.state, pinned: undefined });
      state.settings[field] = then;
      if (form.fields.find(one => one.name === field).kind === "geometry") resetSchedule();
      stateReplaced();
    });
    return make("tr", {}, make("td", {}, button), make("td", {}, make("b", {}, change)), make("td", { class: "number" }, speedup.toFixed(2)),
      make("td", { class: "number" }, accel.grouped(cycles)), make("td", {}, `${reason} (${how})`), make("td", {}, price));
  });
  const rows = [...schedules, ...machines];
  const head = make("tr", {}, ...["", "change", "speedup", "cycles", "reason (method)", "price"].map((text, n) => make("th", n === 2 || n === 3 ? { class: "number" } : {}, text)));
  const table = make("div", { class: "wide" }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)));
  place.replaceChildren(make("h2", {}, "What would help"), make("p", {}, `The critical path is mostly ${bound}.`),
    rows.length ? table : make("p", {}, "No change of a single field saves 1 % of the cycles."),
    make("p", { class: "note" }, `Tried: ${tried.join(", ") || "nothing"}. ${left_out}`));
  place.scrollIntoView({ block: "nearest" });
}

function problem(error) {
  const place = byId("problem");
  place.hidden = error === null;
  document.querySelector("main").classList.toggle("stale", error !== null && shown !== null);
  const step = error && /schedule step (\d+)/.exec(error.message);
  document.querySelectorAll("#steps li").forEach((row, n) => row.classList.toggle("bad", step !== null && Number(step && step[1]) === n));
  if (error) place.replaceChildren(make("b", {}, error.kind), error.message.replace(/\.?$/, "."), shown ? " The page still shows the last valid state." : "");
}

function show(data, seconds) {
  before = shown;
  shown = data;
  byId("helps").hidden = true;
  const headline = (data.headline || "").replaceAll("`--advise`", "What would help?").replaceAll("`", "");
  byId("headline").textContent = headline ? `${headline[0].toUpperCase()}${headline.slice(1)}.` : "";
  data.sections.sort((a, b) => ORDER.indexOf(a.name) - ORDER.indexOf(b.name));
  if (view) view.update(data); else view = accel.view(byId("view"), data);
  group(data.sections.map(one => one.name));
  byId("title").textContent = `${data.title}: ${data.facts}, drawn in ${seconds.toFixed(2)} s`;
  document.title = `${data.title} - accel studio`;
  const figures = data.figures, parts = [];
  const number = make("b", {}, accel.grouped(figures.cycles));
  parts.push(make("span", {}, number, make("small", {}, " cycles")));
  if (figures.utilization !== null) parts.push(make("small", {}, `${(100 * figures.utilization).toFixed(1)} % of the GEMM core`));
  const alike = before && before.figures.cycles !== figures.cycles && computed(before.state) === computed(data.state);
  if (alike) parts.push(change(figures.cycles, before.figures.cycles, "vs last"));
  if (data.pinned && !before?.pinned) showGroup("compared");
  if (data.pinned) parts.push(change(figures.cycles, data.pinned.figures.cycles, "vs pinned"));
  byId("now").replaceChildren(...parts);
  byId("pin").setAttribute("aria-pressed", String(Boolean(state.pinned)));
  byId("pin").textContent = state.pinned ? "Unpin" : "Pin";
  schedule();
  if (state.file && !bases.has(state.file)) { bases.set(state.file, { ...data.machine, ...unchanged(data) }); machine(); }
  if (state.file) workload();
}

// --- tabs

/** Connect the buttons of a tablist; `choose` gets the chosen button. Arrow keys move between them. */
function tabs(list, choose) {
  const buttons = [...list.querySelectorAll("button")];
  const select = chosen => {
    buttons.forEach(button => { button.setAttribute("aria-selected", String(button === chosen)); button.tabIndex = button === chosen ? 0 : -1; });
    choose(chosen);
  };
  buttons.forEach((button, n) => {
    button.addEventListener("click", () => select(button));
    button.addEventListener("keydown", event => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!by) return;
      event.preventDefault();
      const next = buttons[(n + by + buttons.length) % buttons.length];
      select(next);
      next.focus();
    });
  });
  return select;
}

const groupTabs = byId("groups");
let openGroup = "Overview";

/** Show the sections of one tab below the chart; tabs without sections are left out. */
function group(names) {
  const known = Object.keys(GROUPS).filter(name => GROUPS[name].some(section => names.includes(section)));
  const place = groupTabs;
  byId("timeline")?.after(place);
  place.replaceChildren(...known.map(name => make("button", { type: "button", role: "tab", "data-group": name, "aria-controls": "view" }, name)));
  const select = tabs(place, button => {
    openGroup = button.dataset.group;
    for (const section of byId("view").querySelectorAll(":scope > section")) {
      section.hidden = section.id !== "timeline" && !GROUPS[openGroup].includes(section.id);
    }
    dispatchEvent(new Event("resize"));  // the list of instructions measures its width when it is seen
  });
  select(place.querySelector(`[data-group="${known.includes(openGroup) ? openGroup : known[0]}"]`));
}

/** Show the tab of a section. */
function showGroup(section) {
  const name = Object.keys(GROUPS).find(one => GROUPS[one].includes(section));
  groupTabs.querySelector(`[data-group="${name}"]`)?.click();
}

const selectControls = tabs(document.querySelector("#controls .tabs"), chosen => {
  for (const panel of document.querySelectorAll("#controls > [role=tabpanel]")) panel.hidden = panel.id !== chosen.getAttribute("aria-controls");
  if (chosen.id === "tab-explore") drawExploration();
});
selectControls(byId("tab-workload"));

/** The original values of the fields that a state changes. */
const unchanged = view => Object.fromEntries(Object.keys(view.state.settings || {}).map(name => [name, form.machines[state.machine][name]]));

const computed = state => JSON.stringify([state.file, state.workload, state.parameters]);

function change(here, there, what) {
  const by = here / there - 1;
  return make("span", { class: by < 0 ? "better" : by > 0 ? "worse" : "same", title: `${accel.grouped(there)} cycles` },
    by === 0 ? "±0 %" : percent(by), make("small", {}, ` ${what}`));
}

// --- form

/** A number of bytes as people say it, for example 256 KiB. */
function size(value) {
  const bytes = Number(value);
  if (!Number.isInteger(bytes) || bytes < 1024) return "bytes";
  return bytes % 1048576 === 0 ? `= ${bytes / 1048576} MiB` : `= ${Math.round(bytes / 102.4) / 10} KiB`;
}

/** A line of the form: a label and an input. */
function field(name, text, input, { unit = "", isChanged = false } = {}) {
  const id = `f-${name}`;
  input.id = id;
  const buttons = input.step_ ? ["−", "+"].map((sign, n) => {
    const button = make("button", { type: "button", tabindex: -1, "aria-label": n ? "more" : "less" }, sign);
    button.addEventListener("click", () => input.step_(n ? 1 : -1));
    return button;
  }) : [];
  const shownUnit = unit ? [make("span", { class: "faint" }, ` ${unit}`)] : [];
  return make("div", { class: isChanged ? "field changed" : "field", title: text },
    make("label", { for: id }, name, ...shownUnit), buttons.length ? make("span", { class: "box" }, input, ...buttons) : input);
}

/** An input of a number that the arrow keys change by one, or to the next power of two. */
function counter(value, power, onInput) {
  const input = make("input", { type: "text", inputmode: "numeric", autocomplete: "off", spellcheck: "false" });
  input.value = value;
  input.addEventListener("input", () => onInput(input.value.trim()));
  input.step_ = by => {
    const number = Number(input.value);
    if (!Number.isFinite(number)) return;
    input.value = power ? (by > 0 ? Math.max(1, number * 2) : Math.max(0, Math.floor(number / 2))) : number + by;
    onInput(input.value);
  };
  input.addEventListener("keydown", event => {
    if (event.key === "ArrowUp" || event.key === "ArrowDown") { event.preventDefault(); input.step_(event.key === "ArrowUp" ? 1 : -1); }
  });
  return input;
}

const whole = text => /^-?\d+$/.test(text) ? Number(text) : text;

/** Another workload or machine gets another schedule. */
function resetSchedule() { delete state.steps; delete state.mapping; }

const isModel = name => /\.(onnx|tflite)$/i.test(name || "");
const FILE = "file:";

/** Show a file; a network needs a machine of the second generation. */
function openFile(name) {
  const machine = machineFields().post || !isModel(name) ? state.machine : form.network_machine;
  state = { file: name, machine, settings: machine === state.machine && isModel(name) ? state.settings : {},
    ...(state.pinned ? { pinned: state.pinned } : {}) };
  stateReplaced();
}

async function upload(file) {
  if (file.name.endsWith(".json")) {
    try {
      const data = JSON.parse(await file.text());
      if (data.exploration === 1) { asked = ""; showExploration(data); byId("tab-explore").click(); } else restore(data);
    } catch { problem({ kind: "No state", message: `${file.name} is neither a state that the studio has saved nor an exploration` }); }
    return;
  }
  const url = await new Promise(done => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result);
    reader.readAsDataURL(file);
  });
  byId("progress").hidden = false;
  const response = await fetch("/file", { method: "POST", headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ name: file.name, content: url.slice(url.indexOf(",") + 1) }) });
  const found = await response.json();
  byId("progress").hidden = true;
  if (found.error) { problem(found.error); return; }
  form.files = found.files;
  openFile(found.file);
}

/** The choice of an operator or a file, and a button that opens another file. */
function source() {
  const operators = make("optgroup", { label: "operators" }, ...form.operators.map(one => new Option(one.name, one.name)));
  const files = make("optgroup", { label: "files" }, ...form.files.map(name => new Option(name, FILE + name)));
  const select = make("select", { class: "wide-field", "aria-label": "operator or file" }, operators, ...(form.files.length ? [files] : []));
  select.value = state.file ? FILE + state.file : state.workload;
  select.addEventListener("input", () => {
    if (select.value.startsWith(FILE)) openFile(select.value.slice(FILE.length));
    else {
      const next = form.operators.find(one => one.name === select.value);
      const { file, program, ...rest } = state;
      state = { ...rest, workload: next.name, parameters: { ...next.example } };
      if (file) state.settings = {};
      resetSchedule();
      stateReplaced();
    }
    byId("workload").querySelector("select").focus();
  });
  const input = make("input", { type: "file", accept: ".onnx,.tflite,.accel,.s,.json", hidden: "" });
  input.addEventListener("change", () => { if (input.files.length) upload(input.files[0]); });
  const button = make("button", { type: "button", title: "a network (.onnx, .tflite, .accel) or a program (.accel, .s), or a saved state (.json)" }, "open a file");
  button.addEventListener("click", () => input.click());
  return [select, button, input];
}

/** A button for each layer of a network, which shows the layer alone. */
function layers() {
  const known = shown && state.file && shown.state.file === state.file && shown.layers || [];
  return known.map(({ name, state: alone, why }) => {
    const button = make("button", { type: "button", class: "layer", title: alone ? `${name}: show this layer alone` : `${name}: ${why}` }, name);
    button.disabled = alone === null;
    button.addEventListener("click", () => {
      const { machine, settings } = state;
      state = { ...structuredClone(alone), machine, settings };
      stateReplaced();
    });
    return button;
  });
}

/** The choice of the programs of a network that are drawn. */
function programs() {
  const known = shown && state.file && shown.state.file === state.file && shown.programs || [];
  if (known.length < 2) return [];
  const text = ({ number, cycles, layers }) => `${number}: ${layers[0]}${layers.length > 1 ? ` to ${layers[layers.length - 1]}` : ""}, ${accel.grouped(cycles)} cycles`;
  const select = make("select", { id: "program", class: "wide-field", "aria-label": "programs drawn" },
    new Option("all, in order", 0), ...known.map(one => new Option(text(one), one.number)));
  select.value = known.every(one => one.drawn) ? 0 : known.find(one => one.drawn).number;
  select.addEventListener("input", () => { state.program = Number(select.value); changed(true); });
  return [make("p", { class: "note" }, "The machine runs several programs; between them, the host works. Drawn:"), select];
}

function workload() {
  const operator = form.operators.find(one => one.name === state.workload);
  if (!operator) {
    const inside = layers();
    const focused = document.activeElement && document.activeElement.id === "program";
    byId("workload").replaceChildren(...source(), ...programs(),
      ...(inside.length ? [make("p", { class: "note" }, "Show a single layer:"), make("div", { class: "layers" }, ...inside)] : []));
    if (focused) byId("program")?.focus();
    return;
  }
  const line = parameter => {
    const { name, kind, text, form, needed } = parameter, given = state.parameters[name];
    const onInput = value => {
      if (value === "" || value === false) delete state.parameters[name]; else state.parameters[name] = value;
      resetSchedule();
      changed();
    };
    let input;
    if (kind === "flag") {
      input = make("input", { type: "checkbox" });
      input.checked = Boolean(given);
      input.addEventListener("input", () => onInput(input.checked));
    } else {
      input = kind === "integer" ? counter(given ?? "", false, value => onInput(value === "" ? "" : whole(value)))
        : counter(Array.isArray(given) ? given.join(kind === "pair" ? "x" : ",") : given ?? "", false, onInput);
      if (kind !== "integer") delete input.step_;
      input.placeholder = needed ? "needed" : parameter.default ?? "none";
    }
    return field(name, `${text}${form ? ` (${form})` : ""}`, input);
  };
  const quantized = make("details", {}, make("summary", {}, "scales and zero points"), ...operator.quantized.map(line));
  quantized.open = operator.quantized.some(one => one.name in state.parameters);
  byId("workload").replaceChildren(...source(), make("p", { class: "note" }, operator.summary), ...operator.parameters.map(line),
    ...(operator.quantized.length && machineFields().post ? [quantized] : []));
}

const bases = new Map();      // file -> the machine for which it was compiled
const isFixed = () => Boolean(state.file) && !isModel(state.file);
const machineFields = () => isFixed() && bases.get(state.file) || form.machines[state.machine] || form.machines.vta;

function machine() {
  const own = machineFields();
  const select = make("select", { class: "wide-field", "aria-label": "machine" }, ...Object.keys(form.machines).map(name => new Option(name, name)));
  select.value = state.machine;
  select.addEventListener("input", () => {
    state = { ...state, machine: select.value, settings: {} };
    delete state.program;
    resetSchedule();
    machine();
    workload();
    changed(true);
    byId("machine").querySelector("select").focus();
  });
  if (isFixed()) {
    select.replaceChildren(new Option(`${own.name} (the file is compiled for it)`));
    select.disabled = true;
  }
  const opened = [...byId("machine").querySelectorAll("details")].map(e => e.open);
  const known = form.fields.filter(one => !one.post || own.post);
  const line = one => {
      const kind = one.kind, isBytes = one.name.endsWith("_bytes");
      const given = state.settings[one.name];
      const input = counter(given ?? own[one.name], one.power, value => {
        if (isBytes) showSize(value);
        if (value === "" || value === String(own[one.name])) delete state.settings[one.name]; else state.settings[one.name] = whole(value);
        input.closest(".field").classList.toggle("changed", one.name in state.settings);
        reset.hidden = !Object.keys(state.settings).length;
        if (kind === "geometry") resetSchedule();
        changed();
      });
      input.disabled = kind === "geometry" && isFixed();
      const made = field(one.name, `${one.doc} (${one.low} to ${one.high} ${one.unit}${one.power ? ", a power of two" : ""})`, input,
        { unit: one.unit === "flag" ? "" : one.unit, isChanged: given !== undefined });
      const showSize = value => { made.querySelector("label .faint").textContent = ` ${size(value)}`; };
      if (isBytes) showSize(input.value);
      return made;
  };
  const usual = USUAL.map(name => known.find(one => one.name === name)).filter(Boolean).map(line);
  const folded = ["geometry", "timing"].map((kind, number) => {
    const lines = known.filter(one => one.kind === kind && !USUAL.includes(one.name)).map(line);
    const details = make("details", {}, make("summary", {}, `more of ${kind}`), ...lines);
    details.open = opened.length ? opened[number] : known.some(one => one.kind === kind && !USUAL.includes(one.name) && one.name in state.settings);
    return details;
  });
  const groups = [...usual, ...folded];
  const reset = make("button", { type: "button" }, "reset fields");
  reset.hidden = !Object.keys(state.settings).length;
  reset.addEventListener("click", () => { state.settings = {}; resetSchedule(); machine(); changed(true); });
  byId("machine").replaceChildren(select, ...groups, reset);
}

function schedule() {
  const place = byId("schedule");
  if (!shown) return;
  if (!shown.schedule) {
    place.replaceChildren(make("p", { class: "note" }, isFixed() ? "The file is a compiled program; its schedule is fixed." : "Each layer has the best plan that the compiler found."));
    return;
  }
  const { steps, mapping, edited } = shown.schedule, mine = state.steps || steps;
  const focused = place.contains(document.activeElement) ? [...place.querySelectorAll("input")].indexOf(document.activeElement) : -1;
  const list = make("ol", { id: "steps" }, ...mine.map((step, n) => row(step, n, mine)));
  const say = edited ? "Your own steps." : "The best plan that the compiler found.";
  const reset = make("button", { type: "button" }, "best plan");
  reset.hidden = !edited;
  reset.addEventListener("click", () => { resetSchedule(); changed(true); });
  const more = make("button", { type: "button" }, "add a step");
  more.addEventListener("click", () => {
    list.append(row({ op: "" }, mine.length, mine));
    list.lastChild.querySelector("input").focus();
  });
  place.replaceChildren(make("p", { class: "note" }, `${say} ${mapping === "plain" ? "" : `Mapped as ${mapping}. `}Edit a line and press Enter; Alt and ↑ ↓ move it.`),
    list, more, reset);
  if (focused >= 0) place.querySelectorAll("input")[Math.min(focused, mine.length - 1)]?.focus();
}

function row(step, n, steps) {
  const input = make("input", { type: "text", spellcheck: "false", autocomplete: "off", "aria-label": `step ${n}` });
  input.value = step.op ? stepText(step) : "";
  input.title = input.value;
  const take = next => {
    state.steps = next;
    state.mapping = shown.schedule.mapping;
    changed(true);
  };
  const moved = by => {
    if (n + by < 0 || n + by >= steps.length) return;
    const next = [...steps];
    [next[n], next[n + by]] = [next[n + by], next[n]];
    take(next);
    const inputs = document.querySelectorAll("#steps input");
    inputs[n].value = stepText(next[n]);
    inputs[n + by].value = stepText(next[n + by]);
    inputs[n + by].focus();
  };
  input.addEventListener("change", () => {
    const next = [...steps];
    if (input.value.trim()) next[n] = stepOf(input.value); else next.splice(n, 1);
    take(next);
  });
  input.addEventListener("keydown", event => {
    if (event.key === "Enter") { event.preventDefault(); input.blur(); input.focus(); }
    if (event.altKey && (event.key === "ArrowUp" || event.key === "ArrowDown")) { event.preventDefault(); moved(event.key === "ArrowUp" ? -1 : 1); }
  });
  const button = (text, label, action) => {
    const made = make("button", { type: "button", tabindex: -1, "aria-label": label, title: label }, text);
    made.addEventListener("mousedown", event => { event.preventDefault(); action(); });
    return made;
  };
  return make("li", {}, make("span", {}, String(n)), input, make("span", { class: "tools" },
    button("↑", "earlier", () => moved(-1)), button("↓", "later", () => moved(1)),
    button("✕", "remove", () => { const next = [...steps]; next.splice(n, 1); take(next); })));
}

// --- explorations

const POLL = 3000;            // milliseconds between two looks at an exploration that is running
const NO_EXPLORATION = "No exploration is open. Start the studio with the folder of accel explore, or open its file *.points.json.";
let explored = null, asked = null;   // the exploration that is shown, and the name that was requested last
const axes = { x: null, y: null, log: false, now: -1, workload: 0, layer: -1 };

/** Show the points of an exploration; the figures on the axes and the chosen machine stay. */
function showExploration(data) {
  const isNew = !explored || explored.title !== data.title || explored.name !== data.name;
  const chosen = !isNew && axes.now >= 0 ? JSON.stringify(explored.points[axes.now]?.settings) : null;
  explored = data;
  if (isNew) Object.assign(axes, { x: data.x, y: data.y, log: false, now: -1, workload: 0, layer: -1 });
  else axes.now = data.points.findIndex(point => JSON.stringify(point.settings) === chosen);
  drawExploration();
}

/** Request the points of an exploration, again and again while it runs. */
async function requestExploration(name) {
  asked = name;
  let data;
  try {
    data = await (await fetch(`/exploration?name=${encodeURIComponent(name)}`)).json();
  } catch {
    data = { error: { kind: "No answer", message: "the studio does not answer; was it ended?" } };
  }
  if (asked !== name) return;
  if (data.error) { problem(data.error); return; }
  showExploration({ ...data, name });
  if (data.running) setTimeout(() => { if (asked === name) requestExploration(name); }, POLL);
}

function drawExploration() {
  const place = byId("explore");
  if (!form || place.hidden) return;
  const names = form.explorations, input = make("input", { type: "file", accept: ".json", hidden: "" });
  input.addEventListener("change", () => { if (input.files.length) upload(input.files[0]); });
  const open = make("button", { type: "button", title: "the file *.points.json of a folder that accel explore writes" }, "open an exploration");
  open.addEventListener("click", () => input.click());
  if (!explored) {
    place.replaceChildren(make("p", { class: "note" }, NO_EXPLORATION), open, input);
    if (names.length && !asked) requestExploration(names[0]);
    return;
  }
  const choice = (label, options, value, action) => {
    const select = make("select", { class: "wide-field", "aria-label": label }, ...options.map(([text, one]) => new Option(text, one)));
    select.value = value;
    select.addEventListener("input", () => action(select.value));
    return select;
  };
  const parts = [];
  if (names.length > 1) parts.push(choice("exploration", names.map(name => [name, name]), explored.name ?? "", name => requestExploration(name)));
  parts.push(make("p", {}, make("b", {}, explored.title)), make("p", { class: "note" }, `${explored.running ? "Running, or interrupted: " : ""}${explored.facts}.`));
  if (!explored.points.length) { place.replaceChildren(...parts, open, input); return; }
  const chart = make("figure", { class: "front-chart", "aria-label": "measured machines" });
  const axis = name => make("label", {}, name === "x" ? "across " : "up ", choice(name === "x" ? "horizontal axis" : "vertical axis",
    explored.axes.map(one => [front.label(explored, one), one]), axes[name], value => { axes[name] = value; drawExploration(); }));
  const log = make("input", { type: "checkbox" });
  log.checked = axes.log;
  log.addEventListener("input", () => { axes.log = log.checked; drawExploration(); });
  parts.push(chart, make("div", { class: "axes" }, axis("y"), axis("x"), make("label", {}, log, " logarithmic")), ...runOf(choice), frontTable(), open, input);
  const focused = place.contains(document.activeElement) ? document.activeElement.getAttribute("data-number") : null;
  place.replaceChildren(...parts);
  front.draw(chart, explored, axes, openPoint);
  if (focused !== null) place.querySelector(`tr[data-number="${focused}"]`)?.focus();
}

let exploreWidth = 0;
new ResizeObserver(() => {
  const width = byId("explore").clientWidth;
  if (width && width !== exploreWidth) { exploreWidth = width; drawExploration(); }
}).observe(byId("explore"));

/** The choice of the workload's layer that a chosen machine runs. */
function runOf(choice) {
  const options = explored.workloads.flatMap(({ name, layers }, n) =>
    layers.map((layer, m) => [layers.length > 1 ? `${name}: ${layer.name}` : name, `${n}/${m}`]));
  const select = choice("layer to run", [["the layer or file that is shown", "-"], ...options],
    axes.layer < 0 ? "-" : `${axes.workload}/${axes.layer}`, value => {
      [axes.workload, axes.layer] = value === "-" ? [0, -1] : value.split("/").map(Number);
      if (axes.now >= 0) openPoint(axes.now);
    });
  return [make("p", { class: "note" }, "A chosen machine runs:"), select];
}

function frontTable() {
  const numbers = explored.points.map((_, number) => number).filter(number => explored.points[number].front || explored.points[number].base);
  const first = explored.objectives[0], value = (number, name) => explored.points[number].values[name];
  numbers.sort((one, other) => value(one, first) - value(other, first));
  const changed = number => {
    const changes = explored.fields.filter(name => value(number, name) !== explored.base[name]).map(name => `${name} ${accel.grouped(value(number, name))}`);
    return explored.points[number].base ? explored.baseName : changes.join(", ") || "no change";
  };
  const rows = numbers.map(number => {
    const row = make("tr", { tabindex: "0", "data-number": number, class: number === axes.now ? "now" : null },
      ...explored.objectives.map(name => make("td", { class: "number" }, front.grouped(value(number, name)))), make("td", {}, changed(number)));
    row.addEventListener("click", () => openPoint(number));
    row.addEventListener("keydown", event => { if (event.key === "Enter") openPoint(number); });
    return row;
  });
  const head = make("tr", {}, ...explored.objectives.map(name => make("th", { class: "number", scope: "col" }, front.label(explored, name))), make("th", { scope: "col" }, "changes"));
  return make("div", { class: "wide" }, make("table", { id: "machines" }, make("thead", {}, head), make("tbody", {}, ...rows)));
}

/** Show a run on the machine of a point. */
function openPoint(number) {
  const { machine: name, settings } = explored.points[number];
  axes.now = number;
  const layer = explored.workloads[axes.workload]?.layers[axes.layer], wanted = layer?.state;
  if (wanted?.file && !form.files.includes(wanted.file)) {
    problem({ kind: "No file", message: `open ${wanted.file} in the studio to run it; the exploration has only its name` });
    drawExploration();
    return;
  }
  if (!wanted && isFixed()) {
    problem({ kind: "Fixed machine", message: "the program that is shown is compiled for its machine; choose a layer to run" });
    drawExploration();
    return;
  }
  const kept = state.pinned ? { pinned: state.pinned } : {};
  const { workload: operator, file, parameters } = wanted ?? state;
  state = { ...(file ? { file } : { workload: operator, parameters: structuredClone(parameters) }), machine: name, settings: { ...settings }, ...kept };
  stateReplaced();
  drawExploration();
}

// --- actions

function say(text) {
  const place = byId("said");
  place.textContent = text;
  place.classList.add("shown");
  setTimeout(() => place.classList.remove("shown"), 1600);
}

function pin() {
  if (state.pinned) delete state.pinned;
  else if (shown) state.pinned = structuredClone({ ...shown.state, pinned: undefined });
  changed(true);
}

function command() {
  if (!shown) return;
  const dialog = byId("commands");
  dialog.querySelector("pre").textContent = shown.commands;
  dialog.showModal();
}

/** Offer a text as a file. */
function download(name, text, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  make("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

async function savePage() {
  byId("progress").hidden = false;
  let found;
  try {
    const response = await fetch("/page", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(state) });
    found = await response.json();
  } catch {
    found = { error: { kind: "No answer", message: "the studio does not answer; was it ended?" } };
  }
  byId("progress").hidden = true;
  if (found.error) problem(found.error); else download("accel-run.html", found.page, "text/html");
}

const save = () => byId("saving").showModal();

const copied = (text, what) => navigator.clipboard.writeText(text).then(() => say(`${what} copied`), () => say("the browser does not let pages copy"));
const copyLink = () => copied(location.href, "link");

byId("pin").addEventListener("click", pin);
byId("command").addEventListener("click", command);
byId("advise").addEventListener("click", advise);
byId("link").addEventListener("click", copyLink);
byId("save").addEventListener("click", save);
byId("saving").querySelector("[data-state]").addEventListener("click", () => download("accel-state.json", JSON.stringify(state, null, 1), "application/json"));
byId("saving").querySelector("[data-page]").addEventListener("click", savePage);
byId("saving").querySelector("[data-close]").addEventListener("click", () => byId("saving").close());
byId("commands").querySelector("[data-copy]").addEventListener("click", () => copied(shown.commands, "commands"));
byId("commands").querySelector("[data-close]").addEventListener("click", () => byId("commands").close());
byId("theme").addEventListener("click", () => {
  const top = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)").matches;
  top.dataset.theme = (top.dataset.theme || (dark ? "dark" : "light")) === "dark" ? "light" : "dark";
});
byId("controls").addEventListener("submit", event => event.preventDefault());
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || /INPUT|SELECT|TEXTAREA/.test(event.target.tagName) || document.querySelector("dialog[open]")) return;
  const action = { p: pin, c: command, l: copyLink, s: save, w: advise }[event.key];
  if (action) { event.preventDefault(); action(); }
});

/** Show the form of another state, and request its view. */
function stateReplaced() {
  state = { settings: {}, parameters: {}, ...state };
  workload();
  machine();
  changed(true);
}

function restore(next) {
  state = next;
  stateReplaced();
}

window.addEventListener("popstate", () => restore(fromAddress() || form.start));
form = await (await fetch("/form")).json();
const first = fromAddress() || form.given;
if (!first && form.files.length) { state = form.start; openFile(form.files[0]); } else restore(first || form.start);
if (!form.files.length && form.explorations.length) byId("tab-explore").click();
