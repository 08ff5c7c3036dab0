// A run as sections: fills an element, and connects chart, loops and the list of instructions with one another.
// Reports hold the sections already; notebooks and the studio build them here.

{
// Where a page demands trusted types, HTML comes from here only: sections, which Python has escaped.
const trusted = window.trustedTypes ? window.trustedTypes.createPolicy("accel", { createHTML: text => text }) : { createHTML: text => text };
const { make, grouped } = accel;

/** The start and stop cycle of each instruction. */
function instructionTimes(tracks) {
  const times = new Map();
  for (const { slices } of tracks) {
    let index = 0, start = 0;
    slices.index.forEach((step, n) => {
      index += step;
      start += slices.start[n];
      times.set(index, [start, start + slices.length[n]]);
    });
  }
  return times;
}

/** The interactive parts of one view. */
class ViewParts {
  constructor(root, { chart: data, listing, stages }, usesAddress) {
    Object.assign(this, { root, listing, usesAddress });
    const svg = this.one("#timeline svg.chart"), name = n => data.names[data.name[n]];
    this.chart = accel.chart(svg, data, { gentle: true, keys: svg, chosen: index => this.choose(index, "list") });
    const number = index => this.chart.number(index);
    accel.connectTools(root, this.chart, index => this.choose(index, "both"));
    this.list = new accel.InstructionList(root, { listing, times: instructionTimes(data.tracks), number, name,
      clicked: index => { this.choose(index, "chart"); this.showTimeline(); } });
    root.querySelectorAll('a[href^="#i"]').forEach(link => link.addEventListener("click", event => {
      event.preventDefault();
      this.choose(Number(link.hash.slice(2)), "both");
      this.showTimeline();
    }));
    const place = this.one("[data-stages]");
    this.stages = stages === null || !place ? null : new accel.StagesView(place, stages, { name, number, listing,
      light: indices => this.chart.light(indices), choose: index => { this.choose(index, "both"); this.showTimeline(); } });
    this.followAddress();
  }

  one(selector) { return this.root.querySelector(selector); }
  showTimeline() { this.one("#timeline").scrollIntoView({ block: "nearest" }); }

  /** Show an instruction in the loops, in the address of the page, and in `where`: "list", "chart" or "both". */
  choose(index, where) {
    if (this.usesAddress) history.replaceState(null, "", `#i${index}`);
    if (where !== "list") this.chart.reveal(index);
    if (this.stages) this.stages.showInstruction(index);
    this.list.choose(index, where !== "chart");
  }

  /** Show the instruction that the address of the page names. */
  followAddress() {
    const match = this.usesAddress && /^#i(\d+)$/.exec(location.hash);
    if (match && Number(match[1]) < this.listing.unit.length) { this.choose(Number(match[1]), "both"); this.one("#timeline").scrollIntoView(); }
  }

  resized() { this.list.layout(); this.list.draw(); }
  close() { this.chart.close(); }
}

/** Replace the sections of an element by those of a view; details that were open stay open. */
function build(root, view) {
  const opened = new Set([...root.querySelectorAll("details[open] > summary")].map(e => e.textContent));
  const isRebuilt = root.querySelector("section") !== null;
  root.replaceChildren(...view.sections.map(({ name, heading, html }) => {
    const section = make("section", { id: name });
    section.innerHTML = trusted.createHTML(html);
    section.prepend(make("h2", {}, heading));
    return section;
  }));
  if (isRebuilt) root.querySelectorAll("summary").forEach(e => { e.parentNode.open = opened.has(e.textContent); });
}

accel.view = (root, first, options = {}) => {
  const stopped = new AbortController();
  const listen = (target, kind, action) => target && target.addEventListener(kind, action, { signal: stopped.signal });
  let parts = null;

  /** Show another view in place of this one. */
  function update(view) {
    if (parts) parts.close();
    if (view.sections.length) build(root, view);
    parts = root.querySelector("#timeline svg.chart") ? new ViewParts(root, view, options.address) : null;
  }

  listen(root.querySelector("#theme"), "click", () => {
    const top = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)").matches;
    top.dataset.theme = (top.dataset.theme || (dark ? "dark" : "light")) === "dark" ? "light" : "dark";
  });
  listen(window, "hashchange", () => parts && parts.followAddress());
  listen(window, "resize", () => parts && parts.resized());
  update(first);
  return { update, chart: () => parts && parts.chart, close: () => { stopped.abort(); if (parts) parts.close(); } };
};
}
