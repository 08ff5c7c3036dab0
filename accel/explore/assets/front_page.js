// The page of an exploration: the chart, the chosen machine, and the front as a table.
{
const data = JSON.parse(document.getElementById("data").textContent);
const state = { x: data.x, y: data.y, log: false, now: data.points.findIndex(point => point.front) };
const { words, grouped } = frontChart;
const label = name => frontChart.label(data, name);
const drawChart = () => frontChart.draw(document.getElementById("chart"), data, state, choose);

/** An element with attributes and content. */
function make(tag, attributes = {}, ...content) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...content);
  return element;
}

function choose(number) {
  state.now = number;
  drawChart();
  showChosen();
  document.querySelectorAll("#front tbody tr").forEach(row => row.classList.toggle("now", Number(row.dataset.number) === number));
}

function showChosen() {
  const place = document.querySelector("#chosen div"), point = data.points[state.now];
  if (!point) return;
  const rows = make("tbody");
  const add = (name, value, changed) => {
    const cell = make("td", {}, value);
    if (changed) cell.className = "changed";
    rows.append(make("tr", {}, make("th", { scope: "row" }, words(name)), cell));
  };
  const figures = data.axes.filter(name => name !== "point" && !data.fields.includes(name));
  for (const name of figures) add(label(name), grouped(point.values[name]), data.objectives.includes(name));
  for (const [name, value] of Object.entries(point.simulated)) add(name, grouped(value));
  for (const name of data.fields) {
    const value = point.values[name], was = data.base[name];
    add(name, value === was ? grouped(value) : `${grouped(value)} (was ${grouped(was)})`, value !== was);
  }
  const copies = point.commands.map(command => {
    const button = make("button", { type: "button" }, "Copy");
    button.addEventListener("click", () => copy(command, button));
    return make("div", {}, make("pre", {}, command), button);
  });
  const status = point.base ? `The base machine ${data.baseName}.`
    : `Point ${point.values.point}, ${point.front ? "on the front" : "dominated"}` +
      (point.origin === "neighbour" ? ", found by the local check." : ".");
  place.replaceChildren(make("p", {}, status), make("table", {}, rows), make("p", { class: "key" }, `Bold: an objective, or a field that differs from ${data.baseName}.`), make("h2", {}, "Measure it again"), ...copies);
}

function copy(text, button) {
  const done = () => { button.textContent = "Copied"; setTimeout(() => { button.textContent = "Copy"; }, 1500); };
  const failed = () => { button.textContent = "Select the text and copy it"; };
  if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, failed);
  else failed();
}

function showFront() {
  const table = document.querySelector("#front table");
  const others = data.axes.filter(name => name !== "point" && !data.objectives.includes(name) && !name.startsWith("dram_bytes"));
  const names = [...data.objectives, ...others];
  const head = make("thead", {}, make("tr", {}, ...names.map(name => make("th", { scope: "col" }, label(name)))));
  const first = data.objectives[0], rows = make("tbody");
  const front = data.points.map((_, number) => number).filter(number => data.points[number].front);
  front.sort((one, other) => data.points[one].values[first] - data.points[other].values[first]);
  for (const number of front) {
    const row = make("tr", { "data-number": number, tabindex: "0" }, ...names.map(name => make("td", {}, grouped(data.points[number].values[name]))));
    row.addEventListener("click", () => choose(number));
    row.addEventListener("keydown", event => { if (event.key === "Enter") choose(number); });
    rows.append(row);
  }
  table.replaceChildren(head, rows);
  return front[0];
}

for (const axis of ["x", "y"]) {
  const select = document.getElementById(axis);
  select.append(...data.axes.map(name => make("option", { value: name }, label(name))));
  select.value = state[axis];
  select.addEventListener("change", () => { state[axis] = select.value; drawChart(); });
}
const log = document.getElementById("log");
log.addEventListener("change", () => { state.log = log.checked; drawChart(); });
let drawnWidth = 0;
new ResizeObserver(() => {
  const width = document.getElementById("chart").clientWidth;
  if (width !== drawnWidth) { drawnWidth = width; drawChart(); }
}).observe(document.getElementById("chart"));
choose(showFront());
}
