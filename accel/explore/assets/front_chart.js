// The chart of an exploration: measured machines over two figures. A page and the studio draw it.
const frontChart = (() => {
const SVG = "http://www.w3.org/2000/svg", MARGINS = { left: 78, right: 16, top: 14, bottom: 46 };
const NARROW = 480;           // width in pixels below which labels of the vertical axis get less room

/** An SVG element. */
function draw(parent, tag, attributes, text) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  parent.append(element);
  return element;
}

const words = name => name.replaceAll("_", " ");
/** The name of a figure with its unit, if the data has one. Files of earlier releases have none. */
const label = (data, name) => words(data.labels?.[name] ?? name);
const grouped = value => value === null || value === undefined ? "" :
  Number.isInteger(value) || Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en-US") : String(Number(value.toPrecision(4)));

/** A number for a tick: 2,000,000 becomes 2M. */
function brief(value) {
  for (const [factor, letter] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]])
    if (Math.abs(value) >= 10 * factor || Math.abs(value) >= factor && value % factor === 0 || factor === 1e6 && Math.abs(value) >= factor)
      return `${Number((value / factor).toPrecision(4))}${letter}`;
  return grouped(value);
}

/** Maps the values of an axis to pixels, and lists its ticks. */
class Axis {
  constructor(data, isLog, name, from, to) {
    const values = data.points.map(point => point.values[name]).filter(value => typeof value === "number");
    this.isLog = isLog && Math.min(...values) > 0;
    this.scale = this.isLog ? Math.log10 : Number;
    const low = this.scale(Math.min(...values)), high = this.scale(Math.max(...values)), margin = (high - low || 1) * 0.06;
    Object.assign(this, { name, from, to, low: low - margin, high: high + margin });
  }

  place(value) {
    return this.from + (this.scale(value) - this.low) / (this.high - this.low) * (this.to - this.from);
  }

  get ticks() {
    const count = Math.max(3, Math.floor(Math.abs(this.to - this.from) / 90)), found = [];
    if (this.isLog) {
      for (let power = Math.floor(this.low); power <= this.high; power++)
        for (const factor of [1, 2, 5]) found.push(factor * 10 ** power);
      return found.filter(value => this.scale(value) >= this.low && this.scale(value) <= this.high);
    }
    const rough = (this.high - this.low) / count, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map(factor => factor * power).find(one => one >= rough);
    for (let value = Math.ceil(this.low / step) * step; value <= this.high; value += step)
      found.push(Number(value.toPrecision(12)));
    return found;
  }
}

/**
 * Draw the chart into an element.
 *
 * `data` has `points`, `objectives`, `maximized`, `limits` and `baseName`. `state` has the names `x` and `y` of the
 * axes, whether they are logarithmic (`log`), and the index of the chosen point (`now`). `choose` gets the index of a
 * point that the reader chooses.
 */
function drawChart(place, data, state, choose) {
  const width = Math.max(260, place.clientWidth);
  const height = Math.round(Math.min(560, Math.max(width < NARROW ? 250 : 320, width * 0.62)));
  const left = width < NARROW ? 62 : MARGINS.left;
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const x = new Axis(data, state.log, state.x, left, width - MARGINS.right);
  const y = new Axis(data, state.log, state.y, height - MARGINS.bottom, MARGINS.top);
  for (const tick of x.ticks) {
    draw(svg, "path", { class: "rule", d: `M${x.place(tick)} ${MARGINS.top}V${height - MARGINS.bottom}` });
    draw(svg, "text", { class: "faint", x: x.place(tick), y: height - MARGINS.bottom + 16, "text-anchor": "middle" }, brief(tick));
  }
  for (const tick of y.ticks) {
    draw(svg, "path", { class: "rule", d: `M${left} ${y.place(tick)}H${width - MARGINS.right}` });
    draw(svg, "text", { class: "faint", x: left - 6, y: y.place(tick) + 4, "text-anchor": "end" }, brief(tick));
  }
  const limit = data.limits[state.x];
  if (limit !== undefined && x.scale(limit) <= x.high) {
    draw(svg, "path", { class: "limit", d: `M${x.place(limit)} ${MARGINS.top}V${height - MARGINS.bottom}` });
    draw(svg, "text", { class: "faint", x: x.place(limit) - 5, y: MARGINS.top + 12, "text-anchor": "end" }, `limit ${grouped(limit)}`);
  }
  draw(svg, "text", { x: (left + width - MARGINS.right) / 2, y: height - 8, "text-anchor": "middle" }, label(data, state.x));
  draw(svg, "text", { transform: `translate(13 ${(height - MARGINS.bottom + MARGINS.top) / 2}) rotate(-90)`, "text-anchor": "middle" }, label(data, state.y));
  drawSteps(svg, x, y, data, state);
  const order = data.points.map((_, number) => number);
  const weight = number => data.points[number].base * 2 + data.points[number].front + 4 * (number === state.now);
  order.sort((one, other) => weight(one) - weight(other)).forEach(number => drawPoint(svg, x, y, data, state, number, choose));
  place.classList.add("front-chart");
  place.replaceChildren(svg, legend(data));
}

/** The front as a line of steps, where the axes are the only two objectives. */
function drawSteps(svg, x, y, data, state) {
  const [first, second] = data.objectives;
  const shown = new Set([state.x, state.y]);
  if (data.objectives.length !== 2 || !shown.has(first) || !shown.has(second) || data.maximized.length) return;
  const front = data.points.filter(point => point.front).sort((one, other) => one.values[state.x] - other.values[state.x]);
  const path = front.map((point, at) => {
    const across = x.place(point.values[state.x]), up = y.place(point.values[state.y]);
    return at ? `H${across}V${up}` : `M${across} ${up}`;
  });
  draw(svg, "path", { class: "steps", d: path.join("") });
}

function drawPoint(svg, x, y, data, state, number, choose) {
  const point = data.points[number], across = x.place(point.values[state.x]), up = y.place(point.values[state.y]);
  const kind = `dot${point.front ? " front" : ""}${point.base ? " base" : ""}${number === state.now ? " now" : ""}`;
  const dot = point.base
    ? draw(svg, "rect", { class: kind, x: across - 5, y: up - 5, width: 10, height: 10, transform: `rotate(45 ${across} ${up})` })
    : draw(svg, "circle", { class: kind, cx: across, cy: up, r: point.front ? 5.5 : 4 });
  if (point.front || point.base) dot.setAttribute("tabindex", "0");
  draw(dot, "title", {}, `${label(data, state.y)} ${grouped(point.values[state.y])}, ${label(data, state.x)} ${grouped(point.values[state.x])}`);
  dot.addEventListener("click", () => choose(number));
  dot.addEventListener("keydown", event => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(number); } });
}

function legend(data) {
  const text = document.createElement("p");
  const add = (kind, words) => {
    const part = document.createElement("b");
    part.className = kind;
    part.textContent = words;
    text.append(part, "  ");
  };
  text.className = "legend";
  add("front", "● Pareto front");
  text.append("● dominated  ");
  if (data.points.some(point => point.base)) add("base", `◆ ${data.baseName}`);
  return text;
}

return { draw: drawChart, words, label, grouped };
})();
