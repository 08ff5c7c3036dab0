"use strict";
// The pipeline chart: draws what is visible of a run into an <svg>, and lets one zoom, pan and point.
// Where instructions are too narrow to be told apart, a lane shows the shares of its states instead.

const accel = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const STATES = ["busy", "memory", "token"];      // idle is what is left
  const NOBODY = -1;
  const BAR = 4;          // pixels that an instruction takes on average, below which shares are shown
  const BIN = 3;          // pixels of one share
  const MOST_ARROWS = 240;
  const CRITICAL = 34;    // pixels that the critical path takes below the lanes
  const PATHS = { fetch: "other", load: "transfer", compute: "gemm", store: "hue1" };  // its colours, by unit
  const MOST_KEYS = 24;   // colours that the legend explains
  const LETTER = 6.1;     // pixels of a letter of a label, about
  const LEGEND = 52;      // pixels below the lanes
  const LINE = 14;        // pixels of a line of text there
  const HEAD = 8;         // pixels that the head of an arrow to the first cycle takes, left of the plot
  const HUES = 8;         // colours of tensors or layers, which repeat from there on
  const DRAG = 3;         // pixels that a pointer moves at least in a drag

  async function unpack(text) {
    const bytes = Uint8Array.from(atob(text.trim()), c => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).json();
  }

  const sums = steps => { let at = 0; return steps.map(step => (at += step)); };

  function element(name, attributes, text) {
    const made = document.createElementNS(SVG, name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  const grouped = n => Math.round(n).toLocaleString("en-US");

  /** The first place in sorted `values` that is greater than `limit`. */
  function above(values, limit) {
    let low = 0, high = values.length;
    while (low < high) { const middle = (low + high) >> 1; if (values[middle] > limit) high = middle; else low = middle + 1; }
    return low;
  }

  /** What an instruction is called: its place in the program; of several, behind the program's number. */
  function numbering({ begins }) {
    return index => { const n = above(begins, index); return begins.length > 1 ? `${n}:${index - begins[n - 1]}` : String(index); };
  }

  /** Columns as they were packed, turned into what drawing needs. */
  function prepared(data) {
    const flows = { counter: data.flows.counter, source: sums(data.flows.source), target: sums(data.flows.target) };
    const where = new Map();                        // instruction -> [lane, place]
    const lanes = data.lanes.map((lane, number) => {
      const s = lane.slices, p = lane.spans;
      const slices = { index: sums(s.index), start: sums(s.start), row: s.row };
      slices.stop = slices.start.map((start, n) => start + s.length[n]);
      slices.begin = slices.start.map((start, n) => start + s.begin[n]);
      slices.end = slices.start.map((start, n) => start + s.end[n]);
      let reach = 0;
      slices.reach = slices.stop.map(stop => (reach = Math.max(reach, stop)));
      slices.index.forEach((index, n) => where.set(index, [number, n]));
      const stops = sums(p.length);
      const spans = { stop: stops, start: stops.map((stop, n) => stop - p.length[n]), state: p.state,
        reason: p.reason, instruction: sums(p.instruction), other: sums(p.other) };
      return { ...lane, slices, spans };
    });
    const tokens = new Map();                       // instruction -> its flows
    flows.source.forEach((source, n) => {
      for (const one of [source, flows.target[n]]) tokens.set(one, [...(tokens.get(one) || []), n]);
    });
    return { ...data, flows, lanes, where, tokens };
  }

  /** Shares of each state in `count` equal parts of [from, to). */
  function shares(spans, from, to, count) {
    const found = [0, 1, 2].map(() => new Float64Array(count));
    const width = (to - from) / count;
    for (let n = above(spans.stop, from); n < spans.stop.length && spans.start[n] < to; n++) {
      const state = spans.state[n];
      if (state > 2) continue;
      const start = Math.max(from, spans.start[n]), stop = Math.min(to, spans.stop[n]);
      let part = Math.min(count - 1, Math.floor((start - from) / width));
      for (let at = start; at < stop && part < count; part++) {
        const end = Math.min(stop, from + (part + 1) * width);
        if (end > at) { found[state][part] += (end - at) / width; at = end; }
      }
    }
    return found;
  }

  /** As much of a name as fits: all of it, of a transfer what it moves, or what it begins with. */
  function fitting(name, letters, kind) {
    const space = name.indexOf(" "), work = space < 0 ? name : name.slice(space + 1);
    if (letters < 4) return "";
    if (name.length <= letters) return name;
    return kind === "transfer" && work.length <= letters ? work : name.slice(0, letters - 1) + "…";
  }

  /** A text in lines of so many letters at most, broken between words. */
  function wrapped(text, letters) {
    const lines = [];
    for (const word of text.split(" ").filter(Boolean)) {
      const last = lines.length ? `${lines[lines.length - 1]} ${word}` : "";
      if (last && last.length <= letters) lines[lines.length - 1] = last; else lines.push(word);
    }
    return lines;
  }

  function chart(svg, packedData, options = {}) {
    const data = prepared(packedData), number = numbering(data);
    const { gutter, right, overview, axis, strip } = data.layout;
    const first = overview + axis;
    const last = data.lanes[data.lanes.length - 1], lowest = first + last.top + last.rows * last.rowHeight + strip;
    const path = data.critical && data.critical.start.length ? data.critical : null;
    const bottom = path ? lowest + CRITICAL : lowest, whole = data.layout.height + bottom - lowest;
    let width = 0, from = 0, to = data.cycles, chosen = null, pending = false;
    let group = null;                               // what colours stand for, if not for kinds
    let lit = null;                                 // instructions that are looked for; the others are pale
    let measured = null;                            // [from, to] in cycles
    const least = Math.min(data.cycles, 12);
    const drawn = new Set();                        // colours and arrows

    svg.querySelectorAll(".still, .legend").forEach(one => one.remove());
    const view = element("g", {});
    const note = element("text", { class: "note" });
    const tip = element("g", { class: "tip", "pointer-events": "none" });
    svg.append(view, note, tip);

    const plot = () => width - gutter - right;
    const x = cycle => gutter + (cycle - from) / (to - from) * plot();
    const cycleAt = px => from + (px - gutter) / plot() * (to - from);
    const title = index => `#${number(index)} ${data.names[data.name[index]]}`;
    const isHue = style => style.startsWith("hue");

    /** The class of an instruction's colour. */
    function colourOf(index) {
      if (group === null) return data.kinds[data.kind[index]];
      return group.of[index] < 0 ? "other" : `hue${group.of[index] % HUES}`;
    }

    function reason(lane, n) {
      const { spans } = lane, other = spans.other[n], one = spans.instruction[n];
      const state = ["busy", "waits for memory", "waits for token", "idle"][spans.state[n]];
      const length = spans.stop[n] - spans.start[n];
      return `${lane.label}: ${length} ${length === 1 ? "cycle" : "cycles"} from ${grouped(spans.start[n])}, ${state}: `
        + data.reasons[spans.reason[n]] + (other !== NOBODY ? ` (${title(other)})` : "")
        + (one !== NOBODY ? ` — ${title(one)}` : "");
    }

    function summary(index) {
      const [lane, n] = data.where.get(index), s = data.lanes[lane].slices;
      const work = s.begin[n] < s.end[n] ? `, data ${grouped(s.begin[n])}–${grouped(s.end[n] - 1)}` : "";
      return `${title(index)}: cycles ${grouped(s.start[n])}–${grouped(s.stop[n] - 1)}${work}`;
    }

    /** What is to be known of an instruction, in lines. */
    function details(index) {
      const [at, n] = data.where.get(index), lane = data.lanes[at], s = lane.slices, { spans } = lane;
      const waits = new Map();
      spans.instruction.forEach((one, at) => {
        if (one === index && spans.state[at] !== 0) {
          const why = data.reasons[spans.reason[at]];
          waits.set(why, (waits.get(why) || 0) + spans.stop[at] - spans.start[at]);
        }
      });
      const lines = [title(index), `cycles ${grouped(s.start[n])}–${grouped(s.stop[n] - 1)}: ${grouped(s.stop[n] - s.start[n])}`
        + (s.end[n] > s.begin[n] ? `, data in ${grouped(s.end[n] - s.begin[n])}` : "")];
      for (const one of data.groups) if (one.of[index] >= 0) lines.push(`${one.name}: ${one.labels[one.of[index]]}`);
      for (const [why, cycles] of waits) lines.push(`${grouped(cycles)} ${why}`);
      for (const n of data.tokens.get(index) || []) {
        const kind = data.counters[data.flows.counter[n]].kind;
        lines.push(data.flows.source[n] === index ? `${kind} token to #${number(data.flows.target[n])}` : `${kind} token from #${number(data.flows.source[n])}`);
      }
      return lines;
    }

    function sharesPath(spans, top, height, box) {
      const count = Math.max(1, Math.floor(plot() / BIN));
      const parts = shares(spans, box[0], box[1], count);
      const base = new Float64Array(count);
      return STATES.map((state, s) => {
        let path = "";
        for (let n = 0; n < count; n++) {
          if (parts[s][n] <= 0) continue;
          const high = parts[s][n] * height, y = top + height - base[n] - high;
          base[n] += high;
          path += `M${(gutter + n * plot() / count).toFixed(1)} ${y.toFixed(1)}h${(plot() / count + 0.3).toFixed(1)}v${high.toFixed(1)}h${(-plot() / count - 0.3).toFixed(1)}z`;
        }
        return element("path", { d: path, class: state });
      });
    }

    function drawAxis() {
      const target = (to - from) / Math.max(2, plot() / 110);
      const power = 10 ** Math.floor(Math.log10(Math.max(1, target)));
      const step = Math.max(1, [1, 2, 5, 10].map(m => m * power).find(s => s >= target));
      for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
        view.append(element("path", { d: `M${x(at).toFixed(1)} ${overview + axis - 5}V${bottom}`, class: "rule" }));
        const anchor = width - x(at) < 40 ? "end" : "middle";
        view.append(element("text", { x: x(at), y: overview + axis - 9, "text-anchor": anchor, class: "faint" }, grouped(at)));
      }
      view.append(element("text", { x: 4, y: overview + axis - 9, class: "faint" }, "cycle"));
      const ruler = element("rect", { x: gutter, y: overview - 4, width: plot(), height: axis, class: "ruler" });
      ruler.about = () => ["drag here, or anywhere with Shift, to measure"];
      view.append(ruler);
    }

    function drawOverview() {
      const busyLanes = data.lanes.filter(lane => lane.rows), height = (overview - 8) / busyLanes.length;
      busyLanes.forEach((lane, n) => view.append(...sharesPath(lane.spans, 2 + n * height, height - 1, [0, data.cycles])));
      const px = cycle => gutter + cycle / data.cycles * plot();
      if (to - from < data.cycles) {
        view.append(element("rect", { x: px(from), y: 0.5, width: Math.max(3, px(to) - px(from)), height: overview - 6, class: "window" }));
      }
      view.append(element("text", { x: 4, y: overview - 10, class: "faint" }, "whole run"));
    }

    function drawSpans(lane, top) {
      const { spans } = lane, begin = above(spans.stop, from);
      let end = begin;
      while (end < spans.start.length && spans.start[end] < to) end++;
      if (end - begin > plot() / 2) { view.append(...sharesPath(spans, top, strip - 1, [from, to])); return; }
      for (let n = begin; n < end; n++) {
        const a = Math.max(gutter, x(spans.start[n])), b = Math.min(width - right, x(spans.stop[n]));
        if (b <= a) continue;
        const made = element("rect", { x: a, y: top, width: Math.max(0.5, b - a), height: strip - 1,
          class: [...STATES, "idle"][spans.state[n]], "pointer-events": "all" });
        made.about = () => [reason(lane, n)];
        view.append(made);
      }
    }

    function bar(lane, n) {
      const s = lane.slices, index = s.index[n], kind = data.kinds[data.kind[index]], style = colourOf(index);
      drawn.add(group === null || group.of[index] < 0 ? style : group.labels[group.of[index]]);
      const y = first + lane.top + s.row[n] * lane.rowHeight, high = lane.rowHeight - 2;
      const clip = v => Math.min(width - right, Math.max(gutter, v));
      const a = clip(x(s.start[n])), b = clip(x(s.stop[n])), c = clip(x(s.begin[n])), d = clip(x(s.end[n]));
      const made = element("g", { class: lit && !lit.has(index) ? "slice pale" : "slice", "data-index": index });
      const stay = element("rect", { x: a, y, width: Math.max(0.8, b - a), height: high, class: `stay ${style}` });
      if (index === chosen) stay.classList.add("chosen");
      made.append(stay);
      if (d > c) made.append(element("rect", { x: c, y, width: Math.max(0.5, d - c), height: high, class: style, "pointer-events": "none" }));
      const onData = d - c >= b - a - (d - c);
      const [left, room] = onData ? [c, d - c] : c - a >= b - d ? [a, c - a] : [d, b - d];
      const text = fitting(data.names[data.name[index]], Math.floor((room - 6) / LETTER), kind);
      if (text) made.append(element("text", { x: left + 3, y: y + high / 2 + 3.5, class: onData ? "label dark" : "label" }, text));
      made.about = () => details(index);
      made.addEventListener("click", () => { if (!dragged) select(index, true); });
      view.append(made);
    }

    function drawLane(lane) {
      const top = first + lane.top, tall = lane.rows * lane.rowHeight;
      view.append(element("rect", { x: gutter, y: top, width: plot(), height: tall + strip, class: "lane" }));
      view.append(element("text", { x: 4, y: top + Math.max(strip, tall / 2 + 4), class: "unit" }, lane.label));
      if (path) view.append(element("rect", { x: 4, y: top + Math.max(strip, tall / 2 + 4) + 5, width: 30, height: 3, class: PATHS[lane.label] }));
      if (!lane.rows) { drawSpans(lane, top); return false; }
      const s = lane.slices, begin = above(s.reach, from), end = above(s.start, to);
      if (end - begin > plot() / BAR) {
        view.append(...sharesPath(lane.spans, top, tall + strip - 1, [from, to]));
        if (lit) drawMarks(s, begin, end, top);
        return false;
      }
      for (let n = begin; n < end; n++) if (s.stop[n] > from) bar(lane, n);
      drawSpans(lane, top + tall);
      return true;
    }

    /** Where among too many instructions those are that are looked for. */
    function drawMarks(s, begin, end, top) {
      const places = new Set();
      for (let n = begin; n < end; n++) if (lit.has(s.index[n]) && s.stop[n] > from) places.add(Math.round(x(Math.max(from, s.start[n]))));
      const path = [...places].map(at => `M${at - 3} ${top - 7}h6l-3 6z`).join("");
      if (path) view.append(element("path", { d: path, class: "mark" }));
    }

    /** The interval that was measured, with what the units did in it. */
    function drawMeasured() {
      if (!measured || measured[1] <= from || measured[0] >= to) return;
      const [a, b] = measured.map(cycle => Math.min(width - right, Math.max(gutter, x(cycle))));
      const y = overview + axis - 5, text = `${grouped(measured[1] - measured[0])} cycles`;
      const at = Math.max(gutter, Math.min((a + b) / 2, width - right - LETTER * text.length / 2 - 4));
      view.append(element("rect", { x: a, y, width: Math.max(1, b - a), height: bottom - y, class: "measure" }),
        element("rect", { x: at - LETTER * text.length / 2 - 5, y: y + 3, width: LETTER * text.length + 10, height: 17, rx: 3, class: "plate" }),
        element("text", { x: at, y: y + 15, "text-anchor": "middle", class: "measured" }, text));
    }

    /** What was measured, in words. */
    function measuredWords() {
      const [start, stop] = measured, length = stop - start;
      const units = data.lanes.filter(lane => lane.rows).map(lane => {
        const parts = shares(lane.spans, start, stop, 1).map((one, n) => [one[0], ["busy", "memory", "token"][n]]);
        return `${lane.label} ${parts.filter(one => one[0] >= 0.005).map(one => `${Math.round(100 * one[0])} % ${one[1]}`).join(", ") || "idle"}`;
      });
      return `${grouped(length)} cycles from ${grouped(start)} to ${grouped(stop)}: ${units.join("; ")}.`;
    }

    /** The critical path: which unit the run waited for, cycle by cycle. */
    function drawCritical() {
      if (!path) return;
      const top = bottom - 20, high = 14, names = Object.keys(PATHS);
      view.append(element("text", { x: 4, y: top + 11, class: "unit" }, "critical"));
      const begin = Math.max(0, above(path.start, from) - 1), end = above(path.start, to);
      if (end - begin <= plot() / BIN) {
        for (let n = begin; n < end; n++) {
          const a = Math.max(gutter, x(path.start[n])), b = Math.min(width - right, x(path.start[n] + path.cycles[n]));
          if (b <= a) continue;
          const made = element("rect", { x: a, y: top, width: Math.max(0.5, b - a), height: high, class: `${PATHS[path.unit[n]]} segment` });
          made.about = () => segment(n);
          if (path.instruction[n] !== null) made.addEventListener("click", () => { if (!dragged) select(path.instruction[n], true); });
          view.append(made);
        }
        return;
      }
      const count = Math.floor(plot() / BIN), part = (to - from) / count;
      const sums = names.map(() => new Float64Array(count));
      for (let n = begin; n < end; n++) {
        const unit = names.indexOf(path.unit[n]);
        for (let at = Math.max(from, path.start[n]), stop = Math.min(to, path.start[n] + path.cycles[n]); at < stop;) {
          const bin = Math.min(count - 1, Math.floor((at - from) / part)), next = Math.min(stop, bin === count - 1 ? to : from + (bin + 1) * part);
          if (next <= at) break;
          sums[unit][bin] += next - at;
          at = next;
        }
      }
      const base = new Float64Array(count), each = plot() / count;
      names.forEach((name, unit) => {
        let d = "";
        for (let n = 0; n < count; n++) {
          const tall = sums[unit][n] / part * high;
          if (tall <= 0) continue;
          base[n] += tall;
          d += `M${(gutter + n * each).toFixed(1)} ${(top + high - base[n]).toFixed(1)}h${(each + 0.3).toFixed(1)}v${tall.toFixed(1)}h${(-each - 0.3).toFixed(1)}z`;
        }
        if (d) view.append(element("path", { d, class: PATHS[name] }));
      });
      const hit = element("rect", { x: gutter, y: top, width: plot(), height: high, fill: "transparent" });
      hit.about = event => segment(Math.max(0, above(path.start, cycleAt(local(event))) - 1));
      view.append(hit);
    }

    function segment(n) {
      const on = path.instruction[n] === null ? [] : [title(path.instruction[n])];
      return [`critical path: ${grouped(path.cycles[n])} cycles of ${path.unit[n]}, ${path.cause[n]}`,
        path.labels[path.cause[n]], ...on, `from cycle ${grouped(path.start[n])}`];
    }

    function drawArrow(within, n) {
      const f = data.flows, [a, i] = data.where.get(f.source[n]), [b, j] = data.where.get(f.target[n]);
      const one = data.lanes[a], two = data.lanes[b], kind = data.counters[f.counter[n]].kind;
      const down = two.top > one.top;
      const x1 = x(one.slices.stop[i]), x2 = x(two.slices.start[j]);
      const middle = (lane, place) => first + lane.top + lane.slices.row[place] * lane.rowHeight + lane.rowHeight / 2;
      const y1 = middle(one, i), y2 = middle(two, j);
      const bend = Math.min(40, Math.abs(x2 - x1) / 2 + 6);
      const name = `${kind} token, ${data.counters[f.counter[n]].label}: ${title(f.source[n])} → ${title(f.target[n])}`;
      const path = element("path", { class: `arrow ${kind}`,
        d: `M${x1.toFixed(1)} ${y1}C${(x1 + bend).toFixed(1)} ${y1} ${(x2 - bend).toFixed(1)} ${y2} ${(x2 - 5).toFixed(1)} ${y2}` });
      path.append(element("title", {}, name));
      within.append(path, element("path", { d: `M${x2.toFixed(1)} ${y2}l-6 -3v6z`, class: `head ${kind}` }));
      drawn.add(kind);
    }

    function drawArrows(visible) {
      const shown = new Set(chosen === null ? [] : data.tokens.get(chosen) || []);
      if (visible) {
        const near = [], f = data.flows;
        for (let n = 0; n < f.source.length && near.length <= MOST_ARROWS; n++) {
          const [a, i] = data.where.get(f.source[n]), [b, j] = data.where.get(f.target[n]);
          if (data.lanes[a].slices.stop[i] >= from && data.lanes[b].slices.start[j] <= to) near.push(n);
        }
        if (near.length <= Math.min(MOST_ARROWS, plot() / 8)) near.forEach(n => shown.add(n));
      }
      const area = { x: gutter - HEAD, y: overview, width: width - right - gutter + HEAD, height: bottom - overview };
      const within = element("svg", { ...area, viewBox: Object.values(area).join(" "), class: "arrows" });
      shown.forEach(n => drawArrow(within, n));  // it cuts off what comes from beyond, or goes there
      view.append(within);
    }


    /** What the colours and arrows that are drawn mean, in as many lines as that takes; gives their end. */
    function drawLegend() {
      const states = ["busy", "waits for memory", "waits for token"];
      const kinds = group === null ? data.kinds.map((kind, n) => [kind, data.kindLabels[n]])
        : [...group.labels.map((label, n) => [`hue${n % HUES}`, label]), ["other", "none"]];
      const known = ([style, text]) => drawn.has(isHue(style) ? text : style);
      const entries = [...kinds.filter(known).slice(0, MOST_KEYS),
        ...STATES.map((state, n) => [state, states[n]]),
        ...["RAW", "WAR"].filter(kind => drawn.has(kind)).map(kind => [kind, `${kind} token`])];
      const long = ([style, text]) => (style === "RAW" || style === "WAR" ? 48 : 32) + LETTER * text.length;
      const left = entries.reduce((sum, one) => sum + long(one), gutter) < width ? gutter : 4;
      let at = left, y = whole - LEGEND + 12;
      for (const entry of entries) {
        const [style, text] = entry, arrow = style === "RAW" || style === "WAR";
        if (at > left && at + long(entry) - 16 > width) { at = left; y += LINE; }
        if (arrow) {
          view.append(element("path", { class: `arrow ${style}`, d: `M${at} ${y + 6}h22` }),
            element("path", { class: `head ${style}`, d: `M${at + 28} ${y + 6}l-6 -3v6z` }));
        } else view.append(element("rect", { class: style, x: at, y, width: 11, height: 11 }));
        view.append(element("text", { class: "key", x: at + (arrow ? 34 : 16), y: y + 9.5 }, text));
        at += long(entry);
      }
      return y + 11;
    }

    function drawStop() {
      if (!data.stop || to < data.cycles) return;
      const end = whole - LEGEND;
      view.append(element("path", { d: `M${x(data.cycles)} ${overview + axis - 5}V${end}`, class: "stop" }),
        element("text", { x: x(data.cycles), y: end + 9, "text-anchor": "end", class: "stop" }, data.stop));
    }

    /** Words below everything, for which the chart grows where they need it. */
    function drawNote(words, top) {
      const lines = wrapped(words, Math.floor((width - gutter - right) / LETTER));
      const y = Math.max(whole - 8, top + LINE);
      note.replaceChildren(...lines.map((line, n) => element("tspan", { x: gutter, y: y + n * LINE }, n ? ` ${line}` : line)));
      const height = Math.max(whole, lines.length ? y + (lines.length - 1) * LINE + 8 : top + 4);
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      svg.style.height = `${height}px`;
    }

    function draw() {
      pending = false;
      drawn.clear();
      width = svg.clientWidth || svg.getBoundingClientRect().width || 1200;
      view.replaceChildren(element("rect", { x: 0, y: 0, width, height: bottom, class: "hit" }));
      drawAxis();
      drawOverview();
      const detailed = data.lanes.map(drawLane), coarse = data.lanes.some((lane, n) => lane.rows && !detailed[n]);
      drawCritical();
      drawArrows(detailed.includes(true));
      drawStop();
      drawMeasured();
      drawNote(measured ? measuredWords() : chosen !== null ? summary(chosen)
        : coarse ? "Lanes of many instructions show how much of the time is spent in each state; zoom in to see the instructions."
        : "", drawLegend());
      view.append(element("rect", { x: 0, y: overview, width: gutter - 1, height: axis, fill: "none" }));
      if (options.shown) options.shown(from, to);
    }

    const redraw = () => { if (!pending) { pending = true; requestAnimationFrame(draw); } };

    function show(start, stop) {
      const length = Math.min(data.cycles, Math.max(least, stop - start));
      from = Math.min(Math.max(0, start), data.cycles - length);
      to = from + length;
      redraw();
    }

    const zoom = (factor, at = (from + to) / 2) => show(at - (at - from) * factor, at + (to - at) * factor);

    function select(index, told = false) {
      chosen = index;
      if (told && options.chosen) options.chosen(index);
      redraw();
    }

    /** Bring an instruction into view, with its surroundings. */
    function reveal(index) {
      if (!data.where.has(index)) return;
      const [lane, n] = data.where.get(index), s = data.lanes[lane].slices;
      const length = Math.max(40, (s.stop[n] - s.start[n]) * 8);
      if (s.start[n] < from || s.stop[n] > to || (s.stop[n] - s.start[n]) / (to - from) < 0.02) {
        show((s.start[n] + s.stop[n] - length) / 2, (s.start[n] + s.stop[n] + length) / 2);
      }
      select(index);
    }

    const local = event => event.clientX - svg.getBoundingClientRect().left;
    svg.addEventListener("wheel", event => {
      if (options.gentle && !event.ctrlKey && !event.metaKey && !event.shiftKey) return;
      event.preventDefault();
      const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
      if (Math.abs(sideways) > Math.abs(event.deltaY) || event.shiftKey) {
        const by = sideways / plot() * (to - from);
        show(from + by, to + by);
      } else zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) / 120), cycleAt(local(event)));
    }, { passive: false });
    let drag = null, dragged = false;
    const within = event => event.clientY - svg.getBoundingClientRect().top;
    svg.addEventListener("pointerdown", event => {
      const y = within(event), start = Math.max(from, Math.min(to, cycleAt(local(event))));
      dragged = false;
      drag = { x: local(event), from, to, overview: y < overview, moved: false, start,
        measure: y >= overview && (y < first || event.shiftKey) };
      if (drag.measure) event.preventDefault();
      if (drag.overview) jump(event);
    });
    const jump = event => {
      const at = (local(event) - gutter) / plot() * data.cycles, half = (to - from) / 2;
      show(at - half, at + half);
    };
    const moved = event => {
      if (!drag || !event.buttons) { drag = null; return; }
      hideTip();
      if (drag.overview) { jump(event); return; }
      if (!drag.moved && Math.abs(drag.x - local(event)) <= DRAG) return;
      drag.moved = dragged = true;
      if (drag.measure) {
        const at = Math.max(from, Math.min(to, cycleAt(local(event))));
        measure(Math.round(Math.min(drag.start, at)), Math.round(Math.max(drag.start, at)));
        return;
      }
      const by = (drag.x - local(event)) / plot() * (drag.to - drag.from);
      show(drag.from + by, drag.to + by);
    };
    const released = () => {
      if (drag && drag.measure && !drag.moved) measure(null);
      drag = null;
    };
    const stopped = new AbortController(), until = { signal: stopped.signal };
    window.addEventListener("pointermove", moved, until);
    window.addEventListener("pointerup", released, until);

    /** Mark an interval and say what happened in it; null for none. */
    function measure(start, stop) {
      measured = start === null || start === stop ? null : [start, stop];
      redraw();
    }

    // --- what is pointed at

    const hideTip = () => tip.replaceChildren();

    function showTip(lines, px, py) {
      const most = Math.max(24, Math.min(90, Math.floor((width - 24) / LETTER)));
      const texts = lines.flatMap(line => wrapped(line, most)).slice(0, 14);
      const wide = Math.max(...texts.map(text => text.length)) * LETTER + 16, high = texts.length * LINE + 9;
      const tall = svg.viewBox.baseVal.height;
      const left = Math.max(4, Math.min(px + 14, width - wide - 4)), top = py + 18 + high > tall ? Math.max(2, py - high - 10) : py + 18;
      tip.replaceChildren(element("rect", { x: left, y: top, width: wide, height: high, rx: 4, class: "plate" }),
        ...texts.map((text, n) => element("text", { x: left + 8, y: top + 15 + n * LINE, class: n ? "" : "first" }, text)));
    }

    svg.addEventListener("pointermove", event => {
      if (drag && drag.moved) return;
      let one = event.target;
      while (one && one !== svg && !one.about) one = one.parentNode;
      if (one && one.about) { showTip(one.about(event), local(event), within(event)); return; }
      const y = within(event) - first, at = cycleAt(local(event));
      const lane = data.lanes.find(lane => y >= lane.top && y < lane.top + lane.rows * lane.rowHeight + strip);
      if (!lane || at < from || at > to || within(event) < first) { hideTip(); return; }
      const n = above(lane.spans.stop, at);
      if (n < lane.spans.stop.length) showTip([`cycle ${grouped(Math.floor(at))}`, reason(lane, n)], local(event), within(event));
    });
    svg.addEventListener("pointerleave", hideTip);
    svg.addEventListener("dblclick", event => zoom(0.4, cycleAt(local(event))));
    const keys = { "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), "0": () => show(0, data.cycles),
      ArrowLeft: () => show(from - (to - from) / 5, to - (to - from) / 5),
      ArrowRight: () => show(from + (to - from) / 5, to + (to - from) / 5),
      Escape: () => { measured = null; hideTip(); select(null); } };
    (options.keys || document).addEventListener("keydown", event => {
      if (event.ctrlKey || event.metaKey || event.altKey || /INPUT|SELECT/.test(event.target.tagName)) return;
      if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
    }, until);
    window.addEventListener("resize", redraw, until);

    /** Colour instructions by their kind, or by a group of `data.groups`. */
    function colour(name) {
      group = data.groups.find(one => one.name === name) || null;
      redraw();
    }

    /** Make all instructions pale but these; none if null. */
    function light(indices) {
      lit = indices === null ? null : new Set(indices);
      redraw();
    }

    /** The instructions of which a text is a part, in any case, or the number; in order of their start. */
    function search(text) {
      const wanted = text.trim().toLowerCase();
      if (!wanted) return [];
      const found = [...data.where.keys()].filter(index =>
        title(index).toLowerCase().includes(wanted) || number(index) === wanted.replace(/^#/, ""));
      const start = index => { const [lane, n] = data.where.get(index); return data.lanes[lane].slices.start[n]; };
      return found.sort((a, b) => start(a) - start(b) || a - b);
    }

    /** Forget the window's events, for a chart that is replaced. */
    function close() { stopped.abort(); }

    draw();
    return { number, show, zoom, select, reveal, colour, light, search, measure, close, cycles: data.cycles,
      groups: data.groups.map(one => one.name), range: () => [from, to] };
  }

  return { unpack, chart, grouped };
})();
