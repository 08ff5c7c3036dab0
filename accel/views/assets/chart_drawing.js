// Draws the parts of the pipeline chart `c` (see chart.js) at its current zoom. Where instructions are too
// narrow to be told apart, a track shows the shares of its states instead.

{
const SVG = "http://www.w3.org/2000/svg";
const STATES = ["busy", "memory", "token"];       // CSS classes; idle is blank
const STATE_LABELS = ["busy", "waits for memory", "waits for token", "idle"];
const MIN_BAR = 4;           // average pixels of an instruction below which a track shows shares
const SHARE_WIDTH = 3;       // pixels of one part for which shares are shown
const MAX_ARROWS = 240;
const UNIT_COLOURS = { fetch: "unit0", load: "unit1", compute: "unit2", store: "unit3" };  // of the critical path
const MAX_KEYS = 24;         // colours that the legend explains
const LETTER = 6.1;          // approximate pixels of a letter
const LEGEND = 52;           // pixels below the tracks
const LINE = 14;             // pixels of a line of text there
const ARROW_HEAD = 8;        // pixels left of the plot that the head of an arrow to the first cycle takes
const HUES = 8;              // colours of tensors or layers; more of them repeat the colours
const { above, shares, pathCycles, fitting, wrapped } = accel.chartData, { grouped } = accel;

function element(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  if (text !== undefined) made.textContent = text;
  return made;
}

const isToken = style => style === "RAW" || style === "WAR";

/** The CSS class of an instruction's colour. */
function colourOf(c, index) {
  if (c.group === null) return c.data.kinds[c.data.kind[index]];
  return c.group.of[index] < 0 ? "other" : `hue${c.group.of[index] % HUES}`;
}

/** What a unit does in a span, in words. */
function spanText(c, track, n) {
  const { spans } = track, awaited = spans.awaited[n], index = spans.instruction[n];
  const length = spans.stop[n] - spans.start[n];
  return `${track.label}: ${length} ${length === 1 ? "cycle" : "cycles"} from ${grouped(spans.start[n])}, ${STATE_LABELS[spans.state[n]]}: `
    + c.data.reasons[spans.reason[n]] + (awaited >= 0 ? ` (${c.title(awaited)})` : "")
    + (index >= 0 ? ` — ${c.title(index)}` : "");
}

/** Name, cycles, groups, waits and tokens of an instruction, as lines. */
function instructionLines(c, index) {
  const { data } = c, [number, n] = data.where.get(index), { slices: s, spans } = data.tracks[number];
  const waits = new Map();
  spans.instruction.forEach((one, at) => {
    if (one === index && spans.state[at] !== 0) {
      const reason = data.reasons[spans.reason[at]];
      waits.set(reason, (waits.get(reason) || 0) + spans.stop[at] - spans.start[at]);
    }
  });
  const lines = [c.title(index), `cycles ${grouped(s.start[n])}–${grouped(s.stop[n] - 1)}: ${grouped(s.stop[n] - s.start[n])}`
    + (s.end[n] > s.begin[n] ? `, data in ${grouped(s.end[n] - s.begin[n])}` : "")];
  for (const one of data.groups) if (one.of[index] >= 0) lines.push(`${one.name}: ${one.labels[one.of[index]]}`);
  for (const [reason, cycles] of waits) lines.push(`${grouped(cycles)} cycles: ${reason}`);
  for (const n of data.tokens.get(index) || []) {
    const kind = data.counters[data.flows.counter[n]].kind;
    lines.push(data.flows.source[n] === index ? `${kind} token to #${c.number(data.flows.target[n])}` : `${kind} token from #${c.number(data.flows.source[n])}`);
  }
  return lines;
}

/** A segment of the critical path, as lines. */
function segmentLines(c, n) {
  const { path } = c, instruction = path.instruction[n] === null ? [] : [c.title(path.instruction[n])];
  return [`critical path: ${grouped(path.cycles[n])} cycles of ${path.unit[n]}, ${path.cause[n]}`,
    path.labels[path.cause[n]], ...instruction, `from cycle ${grouped(path.start[n])}`];
}

/** Areas of equal width, stacked: `values` has a column of heights for each style. */
function stackedAreas(c, values, styles, top, height, overlap) {
  const count = values[0].length, base = new Float64Array(count), wide = c.plot() / count;
  return styles.map((style, s) => {
    let d = "";
    for (let n = 0; n < count; n++) {
      if (values[s][n] <= 0) continue;
      const tall = values[s][n] * height;
      base[n] += tall;
      d += `M${(c.gutter + n * wide).toFixed(1)} ${(top + height - base[n]).toFixed(1)}h${(wide + overlap).toFixed(1)}v${tall.toFixed(1)}h${(-wide - overlap).toFixed(1)}z`;
    }
    return element("path", { d, class: style });
  });
}

function stateShares(c, spans, top, height, from, to) {
  const count = Math.max(1, Math.floor(c.plot() / SHARE_WIDTH));
  return stackedAreas(c, shares(spans, from, to, count), STATES, top, height, 0.3);
}

function drawAxis(c) {
  const target = (c.to - c.from) / Math.max(2, c.plot() / 110);
  const power = 10 ** Math.floor(Math.log10(Math.max(1, target)));
  const step = Math.max(1, [1, 2, 5, 10].map(m => m * power).find(s => s >= target));
  for (let at = Math.ceil(c.from / step) * step; at <= c.to; at += step) {
    c.view.append(element("path", { d: `M${c.x(at).toFixed(1)} ${c.first - 5}V${c.bottom}`, class: "rule" }));
    const anchor = c.width - c.x(at) < 40 ? "end" : "middle";
    c.view.append(element("text", { x: c.x(at), y: c.first - 9, "text-anchor": anchor, class: "faint" }, grouped(at)));
  }
  c.view.append(element("text", { x: 4, y: c.first - 9, class: "faint" }, "cycle"));
  const ruler = element("rect", { x: c.gutter, y: c.overview - 4, width: c.plot(), height: c.axis, class: "ruler" });
  ruler.about = () => ["drag here, or anywhere with Shift, to measure"];
  c.view.append(ruler);
}

function drawOverview(c) {
  const { cycles } = c.data, tracks = c.data.tracks.filter(track => track.rows), height = (c.overview - 8) / tracks.length;
  tracks.forEach((track, n) => c.view.append(...stateShares(c, track.spans, 2 + n * height, height - 1, 0, cycles)));
  const px = cycle => c.gutter + cycle / cycles * c.plot();
  if (c.to - c.from < cycles) {
    c.view.append(element("rect", { x: px(c.from), y: 0.5, width: Math.max(3, px(c.to) - px(c.from)), height: c.overview - 6, class: "window" }));
  }
  c.view.append(element("text", { x: 4, y: c.overview - 10, class: "faint" }, "whole run"));
}

/** The band of a unit's states. */
function drawSpans(c, track, top) {
  const { spans } = track, begin = above(spans.stop, c.from);
  let end = begin;
  while (end < spans.start.length && spans.start[end] < c.to) end++;
  if (end - begin > c.plot() / 2) { c.view.append(...stateShares(c, spans, top, c.band - 1, c.from, c.to)); return; }
  for (let n = begin; n < end; n++) {
    const a = c.clipped(spans.start[n]), b = c.clipped(spans.stop[n]);
    if (b <= a) continue;
    const made = element("rect", { x: a, y: top, width: Math.max(0.5, b - a), height: c.band - 1,
      class: [...STATES, "idle"][spans.state[n]], "pointer-events": "all" });
    made.about = () => [spanText(c, track, n)];
    c.view.append(made);
  }
}

/** An instruction: pale from start to retirement, strong where its data moves, and its name. */
function drawSlice(c, track, n) {
  const s = track.slices, index = s.index[n], kind = c.data.kinds[c.data.kind[index]], style = colourOf(c, index);
  c.drawn.add(c.group === null || c.group.of[index] < 0 ? style : c.group.labels[c.group.of[index]]);
  const y = c.first + track.top + s.row[n] * track.rowHeight, height = track.rowHeight - 2;
  const [start, stop, begin, end] = [s.start[n], s.stop[n], s.begin[n], s.end[n]].map(cycle => c.clipped(cycle));
  const made = element("g", { class: c.lit && !c.lit.has(index) ? "slice pale" : "slice", "data-index": index });
  const stay = element("rect", { x: start, y, width: Math.max(0.8, stop - start), height, class: `stay ${style}` });
  if (index === c.chosen) stay.classList.add("chosen");
  made.append(stay);
  if (end > begin) made.append(element("rect", { x: begin, y, width: Math.max(0.5, end - begin), height, class: style, "pointer-events": "none" }));
  const onData = end - begin >= stop - start - (end - begin);
  const [left, room] = onData ? [begin, end - begin] : begin - start >= stop - end ? [start, begin - start] : [end, stop - end];
  const text = fitting(c.data.names[c.data.name[index]], Math.floor((room - 6) / LETTER), kind);
  if (text) made.append(element("text", { x: left + 3, y: y + height / 2 + 3.5, class: onData ? "label dark" : "label" }, text));
  made.about = () => instructionLines(c, index);
  made.addEventListener("click", () => { if (!c.dragged) c.select(index, true); });
  c.view.append(made);
}

/** A unit's track; returns whether its instructions are drawn one by one. */
function drawTrack(c, track) {
  const top = c.first + track.top, tall = track.rows * track.rowHeight, middle = top + Math.max(c.band, tall / 2 + 4);
  c.view.append(element("rect", { x: c.gutter, y: top, width: c.plot(), height: tall + c.band, class: "track" }));
  c.view.append(element("text", { x: 4, y: middle, class: "unit" }, track.label));
  if (c.path) c.view.append(element("rect", { x: 4, y: middle + 5, width: 30, height: 3, class: UNIT_COLOURS[track.label] }));
  if (!track.rows) { drawSpans(c, track, top); return false; }
  const s = track.slices, begin = above(s.reach, c.from), end = above(s.start, c.to);
  if (end - begin > c.plot() / MIN_BAR) {
    c.view.append(...stateShares(c, track.spans, top, tall + c.band - 1, c.from, c.to));
    if (c.lit) drawMarks(c, s, begin, end, top);
    return false;
  }
  for (let n = begin; n < end; n++) if (s.stop[n] > c.from) drawSlice(c, track, n);
  drawSpans(c, track, top + tall);
  return true;
}

/** Marks above a track where the instructions are that were searched for. */
function drawMarks(c, s, begin, end, top) {
  const places = new Set();
  for (let n = begin; n < end; n++) if (c.lit.has(s.index[n]) && s.stop[n] > c.from) places.add(Math.round(c.x(Math.max(c.from, s.start[n]))));
  const path = [...places].map(at => `M${at - 3} ${top - 7}h6l-3 6z`).join("");
  if (path) c.view.append(element("path", { d: path, class: "mark" }));
}

/** The measured interval with its length. */
function drawMeasured(c) {
  if (!c.measured || c.measured[1] <= c.from || c.measured[0] >= c.to) return;
  const [a, b] = c.measured.map(cycle => c.clipped(cycle));
  const y = c.first - 5, text = `${grouped(c.measured[1] - c.measured[0])} cycles`;
  const at = Math.max(c.gutter, Math.min((a + b) / 2, c.width - c.right - LETTER * text.length / 2 - 4));
  c.view.append(element("rect", { x: a, y, width: Math.max(1, b - a), height: c.bottom - y, class: "measure" }),
    element("rect", { x: at - LETTER * text.length / 2 - 5, y: y + 3, width: LETTER * text.length + 10, height: 17, rx: 3, class: "plate" }),
    element("text", { x: at, y: y + 15, "text-anchor": "middle", class: "measured" }, text));
}

/** The measured interval and the states of the units in it, in words. */
function measuredText(c) {
  const [start, stop] = c.measured;
  const units = c.data.tracks.filter(track => track.rows).map(track => {
    const parts = shares(track.spans, start, stop, 1).map((one, n) => [one[0], STATES[n]]);
    return `${track.label} ${parts.filter(one => one[0] >= 0.005).map(one => `${Math.round(100 * one[0])} % ${one[1]}`).join(", ") || "idle"}`;
  });
  return `${grouped(stop - start)} cycles from ${grouped(start)} to ${grouped(stop)}: ${units.join("; ")}.`;
}

/** The critical path, coloured by the unit of each segment. */
function drawCritical(c) {
  const { path } = c;
  if (!path) return;
  const top = c.bottom - 20, height = 14, units = Object.keys(UNIT_COLOURS);
  c.view.append(element("text", { x: 4, y: top + 11, class: "unit" }, "critical"));
  const begin = Math.max(0, above(path.start, c.from) - 1), end = above(path.start, c.to);
  if (end - begin <= c.plot() / SHARE_WIDTH) {
    for (let n = begin; n < end; n++) {
      const a = c.clipped(path.start[n]), b = c.clipped(path.start[n] + path.cycles[n]);
      if (b <= a) continue;
      const made = element("rect", { x: a, y: top, width: Math.max(0.5, b - a), height, class: `${UNIT_COLOURS[path.unit[n]]} segment` });
      made.about = () => segmentLines(c, n);
      if (path.instruction[n] !== null) made.addEventListener("click", () => { if (!c.dragged) c.select(path.instruction[n], true); });
      c.view.append(made);
    }
    return;
  }
  const count = Math.floor(c.plot() / SHARE_WIDTH), part = (c.to - c.from) / count;
  const cycles = pathCycles(path, units, c.from, c.to, count, begin, end).map(one => one.map(n => n / part));
  c.view.append(...stackedAreas(c, cycles, units.map(unit => UNIT_COLOURS[unit]), top, height, 0.3));
  const target = element("rect", { x: c.gutter, y: top, width: c.plot(), height, fill: "transparent" });
  target.about = event => segmentLines(c, Math.max(0, above(path.start, c.cycleAt(c.local(event))) - 1));
  c.view.append(target);
}

function drawArrow(c, within, n) {
  const { flows, where, tracks, counters } = c.data;
  const [a, i] = where.get(flows.source[n]), [b, j] = where.get(flows.target[n]);
  const kind = counters[flows.counter[n]].kind;
  const middle = (track, slice) => c.first + track.top + track.slices.row[slice] * track.rowHeight + track.rowHeight / 2;
  const x1 = c.x(tracks[a].slices.stop[i]), x2 = c.x(tracks[b].slices.start[j]);
  const y1 = middle(tracks[a], i), y2 = middle(tracks[b], j);
  const bend = Math.min(40, Math.abs(x2 - x1) / 2 + 6);
  const name = `${kind} token, ${counters[flows.counter[n]].label}: ${c.title(flows.source[n])} → ${c.title(flows.target[n])}`;
  const path = element("path", { class: `arrow ${kind}`,
    d: `M${x1.toFixed(1)} ${y1}C${(x1 + bend).toFixed(1)} ${y1} ${(x2 - bend).toFixed(1)} ${y2} ${(x2 - 5).toFixed(1)} ${y2}` });
  path.append(element("title", {}, name));
  within.append(path, element("path", { d: `M${x2.toFixed(1)} ${y2}l-6 -3v6z`, class: `head ${kind}` }));
  c.drawn.add(kind);
}

/** Tokens of the chosen instruction and, if there are few enough, of all that are visible. */
function drawArrows(c, visible) {
  const { flows, tokens, where, tracks } = c.data;
  const shown = new Set(c.chosen === null ? [] : tokens.get(c.chosen) || []);
  if (visible) {
    const near = [];
    for (let n = 0; n < flows.source.length && near.length <= MAX_ARROWS; n++) {
      const [a, i] = where.get(flows.source[n]), [b, j] = where.get(flows.target[n]);
      if (tracks[a].slices.stop[i] >= c.from && tracks[b].slices.start[j] <= c.to) near.push(n);
    }
    if (near.length <= Math.min(MAX_ARROWS, c.plot() / 8)) near.forEach(n => shown.add(n));
  }
  // an svg of its own clips arrows that come from outside of the visible cycles
  const area = { x: c.gutter - ARROW_HEAD, y: c.overview, width: c.width - c.right - c.gutter + ARROW_HEAD, height: c.bottom - c.overview };
  const within = element("svg", { ...area, viewBox: Object.values(area).join(" "), class: "arrows" });
  shown.forEach(n => drawArrow(c, within, n));
  c.view.append(within);
}

/** The meaning of the colours and arrows that are drawn; returns the bottom of its last line. */
function drawLegend(c) {
  const kinds = c.group === null ? c.data.kinds.map((kind, n) => [kind, c.data.kindLabels[n]])
    : [...c.group.labels.map((label, n) => [`hue${n % HUES}`, label]), ["other", "none"]];
  const isDrawn = ([style, text]) => c.drawn.has(style.startsWith("hue") ? text : style);
  const entries = [...kinds.filter(isDrawn).slice(0, MAX_KEYS),
    ...STATES.map((state, n) => [state, STATE_LABELS[n]]),
    ...["RAW", "WAR"].filter(kind => c.drawn.has(kind)).map(kind => [kind, `${kind} token`]),
    ...(c.path ? Object.entries(UNIT_COLOURS).map(([unit, style], n) => [style, n ? unit : `critical path: ${unit}`]) : [])];
  const length = ([style, text]) => (isToken(style) ? 48 : 32) + LETTER * text.length;
  const left = entries.reduce((sum, one) => sum + length(one), c.gutter) < c.width ? c.gutter : 4;
  let at = left, y = c.height - LEGEND + 12;
  for (const entry of entries) {
    const [style, text] = entry, arrow = isToken(style);
    if (at > left && at + length(entry) - 16 > c.width) { at = left; y += LINE; }
    if (arrow) {
      c.view.append(element("path", { class: `arrow ${style}`, d: `M${at} ${y + 6}h22` }),
        element("path", { class: `head ${style}`, d: `M${at + 28} ${y + 6}l-6 -3v6z` }));
    } else c.view.append(element("rect", { class: style, x: at, y, width: 11, height: 11 }));
    c.view.append(element("text", { class: "key", x: at + (arrow ? 34 : 16), y: y + 9.5 }, text));
    at += length(entry);
  }
  return y + 11;
}

/** Where and why a run stopped early. */
function drawStop(c) {
  const { stop, cycles } = c.data;
  if (!stop || c.to < cycles) return;
  const end = c.height - LEGEND;
  c.view.append(element("path", { d: `M${c.x(cycles)} ${c.first - 5}V${end}`, class: "stop" }),
    element("text", { x: c.x(cycles), y: end + 9, "text-anchor": "end", class: "stop" }, stop));
}

/** Words below the legend; the chart grows with them. */
function drawNote(c, words, top) {
  const lines = wrapped(words, Math.floor((c.width - c.gutter - c.right) / LETTER));
  const y = Math.max(c.height - 8, top + LINE);
  c.note.replaceChildren(...lines.map((line, n) => element("tspan", { x: c.gutter, y: y + n * LINE }, n ? ` ${line}` : line)));
  const height = Math.max(c.height, lines.length ? y + (lines.length - 1) * LINE + 8 : top + 4);
  c.svg.setAttribute("viewBox", `0 0 ${c.width} ${height}`);
  c.svg.style.height = `${height}px`;
}

/** A tooltip at a pixel. */
function drawTip(c, lines, px, py) {
  const letters = Math.max(24, Math.min(90, Math.floor((c.width - 24) / LETTER)));
  const texts = lines.flatMap(line => wrapped(line, letters)).slice(0, 14);
  const wide = Math.max(...texts.map(text => text.length)) * LETTER + 16, high = texts.length * LINE + 9;
  const left = Math.max(4, Math.min(px + 14, c.width - wide - 4));
  const top = py + 18 + high > c.svg.viewBox.baseVal.height ? Math.max(2, py - high - 10) : py + 18;
  c.tip.replaceChildren(element("rect", { x: left, y: top, width: wide, height: high, rx: 4, class: "plate" }),
    ...texts.map((text, n) => element("text", { x: left + 8, y: top + 15 + n * LINE, class: n ? "" : "first" }, text)));
}

accel.chartDrawing = { element, spanText, measuredText, drawAxis, drawOverview, drawTrack, drawCritical, drawArrows,
  drawStop, drawMeasured, drawLegend, drawNote, drawTip };
}
