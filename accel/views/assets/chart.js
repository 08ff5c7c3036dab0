// The pipeline chart in an <svg>, with zoom, panning, search, measuring and tooltips.

{
const CRITICAL = 34;    // pixels of the critical path below the tracks
const MIN_DRAG = 3;     // pixels that a pointer moves before it drags
const MIN_CYCLES = 12;  // cycles that are visible at the highest zoom
const { above, numbering, prepared } = accel.chartData, { grouped } = accel;
const { element, spanText, measuredText, drawAxis, drawOverview, drawTrack, drawCritical, drawArrows, drawStop,
  drawMeasured, drawLegend, drawNote, drawTip } = accel.chartDrawing;

class PipelineChart {
  /** Options: `gentle` zooms with the wheel only if Ctrl is pressed; `keys` is the element that gets keys;
      `chosen` is called with an instruction that is clicked; `shown` with the visible cycles; `fill` makes the
      tracks higher until the chart fills the window. */
  constructor(svg, packedData, options) {
    this.svg = svg;
    this.options = options;
    this.data = prepared(packedData);
    this.number = numbering(this.data);
    const { gutter, right, overview, axis, band, height } = this.data.layout;
    Object.assign(this, { gutter, right, overview, axis, band, first: overview + axis });
    const taller = options.fill ? this.grow(this.spare(height)) : 0;
    const last = this.data.tracks[this.data.tracks.length - 1];
    const { critical } = this.data, space = critical && critical.start.length ? CRITICAL : 0;
    this.path = space ? critical : null;
    this.bottom = this.first + last.top + last.rows * last.rowHeight + band + space;
    this.height = height + space + taller;
    this.width = 0;
    this.from = 0;
    this.to = this.data.cycles;
    this.chosen = null;       // an instruction
    this.group = null;        // the group that colours stand for; null for kinds
    this.lit = null;          // instructions that were searched for; all others are pale
    this.measured = null;     // [from, to] in cycles
    this.drawn = new Set();   // colours and arrows, for the legend
    this.drag = null;
    this.dragged = false;
    this.isPending = false;
    svg.querySelectorAll(".static, .legend").forEach(one => one.remove());
    this.view = element("g", {});
    this.note = element("text", { class: "note" });
    this.tip = element("g", { class: "tip", "pointer-events": "none" });
    svg.append(this.view, this.note, this.tip);
    this.listen();
    this.open();
    if (taller) this.fit(taller);
  }

  /** Show the whole run, or as much of its beginning as lets the arrows of its tokens be drawn. */
  open() {
    const { cycles, flows } = this.data;
    for (let to = cycles; to > 4 * MIN_CYCLES; to /= 2) {
      this.to = to;
      this.draw();
      if (!flows.source.length || this.drawn.has("RAW") || this.drawn.has("WAR")) return;
    }
    this.to = cycles;
    this.draw();
  }

  /** The pixels below the chart that its tracks can take, 2.5 times their height at most. */
  spare(height) {
    const below = parseFloat(getComputedStyle(document.body).paddingBottom);
    const top = this.svg.getBoundingClientRect().top + scrollY;
    return Math.max(0, Math.min(Math.floor(innerHeight - top - height - CRITICAL - below), 1.5 * this.rows()));
  }

  rows() { return this.data.tracks.reduce((sum, track) => sum + track.rows * track.rowHeight, 0); }

  /** Make tracks higher by `pixels` together, or lower if negative; returns `pixels`. */
  grow(pixels) {
    const factor = 1 + pixels / (this.rows() || 1);
    let added = 0;
    for (const track of this.data.tracks) {
      track.top += added;
      added += track.rows * track.rowHeight * (factor - 1);
      track.rowHeight *= factor;
    }
    return added;
  }

  /** Make tracks lower again by what the text below the legend needs in a narrow window. */
  fit(taller) {
    const over = Math.ceil(this.svg.getBoundingClientRect().height - this.height);
    if (over <= 0 || over > taller) return;
    this.grow(-over);
    this.bottom -= over;
    this.height -= over;
    this.open();
  }

  // --- coordinates and names

  plot() { return this.width - this.gutter - this.right; }
  x(cycle) { return this.gutter + (cycle - this.from) / (this.to - this.from) * this.plot(); }
  clipped(cycle) { return Math.min(this.width - this.right, Math.max(this.gutter, this.x(cycle))); }
  cycleAt(px) { return this.from + (px - this.gutter) / this.plot() * (this.to - this.from); }
  visibleCycleAt(px) { return Math.max(this.from, Math.min(this.to, this.cycleAt(px))); }
  local(event) { return event.clientX - this.svg.getBoundingClientRect().left; }
  localY(event) { return event.clientY - this.svg.getBoundingClientRect().top; }
  title(index) { return `#${this.number(index)} ${this.data.names[this.data.name[index]]}`; }

  summary(index) {
    const [number, n] = this.data.where.get(index), s = this.data.tracks[number].slices;
    const work = s.begin[n] < s.end[n] ? `, data ${grouped(s.begin[n])}–${grouped(s.end[n] - 1)}` : "";
    return `${this.title(index)}: cycles ${grouped(s.start[n])}–${grouped(s.stop[n] - 1)}${work}`;
  }

  // --- drawing

  draw() {
    this.isPending = false;
    this.drawn.clear();
    this.width = this.svg.clientWidth || this.svg.getBoundingClientRect().width || 1200;
    this.view.replaceChildren(element("rect", { x: 0, y: 0, width: this.width, height: this.bottom, class: "hit" }));
    drawAxis(this);
    drawOverview(this);
    const isDetailed = this.data.tracks.map(track => drawTrack(this, track));
    const isCoarse = this.data.tracks.some((track, n) => track.rows && !isDetailed[n]);
    drawCritical(this);
    drawArrows(this, isDetailed.includes(true));
    drawStop(this);
    drawMeasured(this);
    drawNote(this, this.measured ? measuredText(this) : this.chosen !== null ? this.summary(this.chosen)
      : isCoarse ? "Tracks with many instructions show the share of each state; zoom in to see the instructions." : "",
    drawLegend(this));
    this.view.append(element("rect", { x: 0, y: this.overview, width: this.gutter - 1, height: this.axis, fill: "none" }));
    if (this.options.shown) this.options.shown(this.from, this.to);
  }

  redraw() {
    if (this.isPending) return;
    this.isPending = true;
    requestAnimationFrame(() => this.draw());
  }

  /** Show cycles [start, stop), as far as the run has them. */
  show(start, stop) {
    const { cycles } = this.data, length = Math.min(cycles, Math.max(Math.min(cycles, MIN_CYCLES), stop - start));
    this.from = Math.min(Math.max(0, start), cycles - length);
    this.to = this.from + length;
    this.redraw();
  }

  /** Show `factor` times the cycles; cycle `at` stays where it is. */
  zoom(factor, at = (this.from + this.to) / 2) { this.show(at - (at - this.from) * factor, at + (this.to - at) * factor); }

  /** Move by a share of the visible cycles. */
  pan(share) { const by = share * (this.to - this.from); this.show(this.from + by, this.to + by); }

  select(index, notify = false) {
    this.chosen = index;
    if (notify && this.options.chosen) this.options.chosen(index);
    this.redraw();
  }

  /** Select an instruction and bring it into view with its surroundings. */
  reveal(index) {
    if (!this.data.where.has(index)) return;
    const [number, n] = this.data.where.get(index), { start, stop } = this.data.tracks[number].slices;
    const length = Math.max(40, (stop[n] - start[n]) * 8);
    if (start[n] < this.from || stop[n] > this.to || (stop[n] - start[n]) / (this.to - this.from) < 0.02) {
      this.show((start[n] + stop[n] - length) / 2, (start[n] + stop[n] + length) / 2);
    }
    this.select(index);
  }

  /** Colour instructions by a group of `data.groups`, or else by their kind. */
  colour(name) {
    this.group = this.data.groups.find(one => one.name === name) || null;
    this.redraw();
  }

  /** Make all instructions but these pale; none if null. */
  light(indices) {
    this.lit = indices === null ? null : new Set(indices);
    this.redraw();
  }

  /** The instructions whose name contains a text, in any case, or whose number it is; by start. */
  search(text) {
    const wanted = text.trim().toLowerCase(), { where, tracks } = this.data;
    if (!wanted) return [];
    const found = [...where.keys()].filter(index =>
      this.title(index).toLowerCase().includes(wanted) || this.number(index) === wanted.replace(/^#/, ""));
    const start = index => { const [number, n] = where.get(index); return tracks[number].slices.start[n]; };
    return found.sort((a, b) => start(a) - start(b) || a - b);
  }

  /** Mark an interval and describe the states in it; null for none. */
  measure(start, stop) {
    this.measured = start === null || start === stop ? null : [start, stop];
    this.redraw();
  }

  // --- pointer and keys

  listen() {
    this.stopped = new AbortController();
    const until = { signal: this.stopped.signal };
    this.svg.addEventListener("wheel", event => this.onWheel(event), { passive: false });
    this.svg.addEventListener("pointerdown", event => this.onDown(event));
    this.svg.addEventListener("pointermove", event => this.onHover(event));
    this.svg.addEventListener("pointerleave", () => this.hideTip());
    this.svg.addEventListener("dblclick", event => this.zoom(0.4, this.cycleAt(this.local(event))));
    window.addEventListener("pointermove", event => this.onDrag(event), until);
    window.addEventListener("pointerup", () => this.onUp(), until);
    window.addEventListener("resize", () => this.redraw(), until);
    (this.options.keys || document).addEventListener("keydown", event => this.onKey(event), until);
  }

  onWheel(event) {
    if (this.options.gentle && !event.ctrlKey && !event.metaKey && !event.shiftKey) return;
    event.preventDefault();
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (Math.abs(sideways) > Math.abs(event.deltaY) || event.shiftKey) this.pan(sideways / this.plot());
    else this.zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) / 120), this.cycleAt(this.local(event)));
  }

  onDown(event) {
    const y = this.localY(event), onOverview = y < this.overview;
    this.dragged = false;
    this.drag = { x: this.local(event), from: this.from, to: this.to, onOverview, moved: false,
      start: this.visibleCycleAt(this.local(event)), measures: !onOverview && (y < this.first || event.shiftKey) };
    if (this.drag.measures) event.preventDefault();
    if (onOverview) this.jump(event);
  }

  /** Show the part of the run at which the pointer is in the overview. */
  jump(event) {
    const at = (this.local(event) - this.gutter) / this.plot() * this.data.cycles, half = (this.to - this.from) / 2;
    this.show(at - half, at + half);
  }

  onDrag(event) {
    const { drag } = this;
    if (!drag || !event.buttons) { this.drag = null; return; }
    this.hideTip();
    if (drag.onOverview) { this.jump(event); return; }
    const px = this.local(event);
    if (!drag.moved && Math.abs(drag.x - px) <= MIN_DRAG) return;
    drag.moved = this.dragged = true;
    if (drag.measures) {
      const at = this.visibleCycleAt(px);
      this.measure(Math.round(Math.min(drag.start, at)), Math.round(Math.max(drag.start, at)));
      return;
    }
    const by = (drag.x - px) / this.plot() * (drag.to - drag.from);
    this.show(drag.from + by, drag.to + by);
  }

  onUp() {
    if (this.drag && this.drag.measures && !this.drag.moved) this.measure(null);
    this.drag = null;
  }

  hideTip() { this.tip.replaceChildren(); }

  onHover(event) {
    if (this.drag && this.drag.moved) return;
    const px = this.local(event), py = this.localY(event);
    let one = event.target;
    while (one && one !== this.svg && !one.about) one = one.parentNode;
    if (one && one.about) { drawTip(this, one.about(event), px, py); return; }
    const y = py - this.first, at = this.cycleAt(px);
    const track = this.data.tracks.find(track => y >= track.top && y < track.top + track.rows * track.rowHeight + this.band);
    if (!track || at < this.from || at > this.to || y < 0) { this.hideTip(); return; }
    const n = above(track.spans.stop, at);
    if (n < track.spans.stop.length) drawTip(this, [`cycle ${grouped(Math.floor(at))}`, spanText(this, track, n)], px, py);
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || /INPUT|SELECT/.test(event.target.tagName)) return;
    const closer = () => this.zoom(0.6), further = () => this.zoom(1 / 0.6), back = () => this.pan(-1 / 5), on = () => this.pan(1 / 5);
    const action = { "+": closer, "=": closer, w: closer, "-": further, s: further, ArrowLeft: back, a: back, ArrowRight: on, d: on,
      "0": () => this.show(0, this.data.cycles),
      Escape: () => { this.measured = null; this.hideTip(); this.select(null); } }[event.key];
    if (action) { event.preventDefault(); event.stopPropagation(); action(); }
  }

  /** Remove the listeners of window and page, before the chart is replaced. */
  close() { this.stopped.abort(); }

  get cycles() { return this.data.cycles; }
  get groups() { return this.data.groups.map(one => one.name); }
  range() { return [this.from, this.to]; }
}

accel.chart = (svg, packedData, options = {}) => new PipelineChart(svg, packedData, options);
}
