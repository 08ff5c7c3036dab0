// The list of a run's instructions: only the lines in sight are elements, so long programs stay fast.

{
const LINE = 20, GAP = 14;  // pixels of a line of text, and between columns
const SMALL = 11 / 12;      // size of letters in a second line, relative to the first
const HEADINGS = ["#", "unit", "cycles", "waited", "tokens", "instruction", "comment", "fields"];
const NUMBERS = [0, 2, 3];  // columns that are aligned to the right
const SECOND_LINE = 6;      // columns from here on form a second line if the list is too narrow
const { grouped } = accel;

const make = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  made.append(...children);
  return made;
};

class InstructionList {
  /** `root` holds the elements; `listing` has the columns, `times` the cycles, `number` and `name` return an
      instruction's number and name; `clicked` is called with an instruction. */
  constructor(root, { listing, times, number, name, clicked }) {
    Object.assign(this, { root, listing, times, number, name });
    [this.box, this.rows, this.select, this.find] = ["#listing", "#rows", "#unit", "#find"].map(one => root.querySelector(one));
    this.chosen = null;
    this.shown = listing.unit.map((_, n) => n);
    this.isBroken = false;
    for (const unit of new Set(listing.unit)) this.select.append(new Option(unit, unit));
    this.measure();
    this.rows.addEventListener("click", event => {
      const row = event.target.closest(".row");
      if (row) clicked(Number(row.dataset.index));
    });
    this.box.addEventListener("scroll", () => this.draw());
    [this.select, this.find].forEach(input => input.addEventListener("input", () => this.filter()));
    this.layout();
    this.filter();
  }

  columns(n) {
    const [start, stop] = this.times.get(n) || [null, null], { listing } = this;
    return [this.number(n), listing.unit[n], start === null ? "" : `${grouped(start)}–${grouped(stop - 1)}`,
      listing.waits[n] ? grouped(listing.waits[n]) : "", listing.tokens[n], this.name(n),
      listing.comment[n], listing.fields[n]];
  }

  /** Measure the longest text of each column, and the width of a letter. */
  measure() {
    this.widths = HEADINGS.map(heading => heading.length);
    this.second = 0;
    this.listing.unit.forEach((_, n) => {
      const lengths = this.columns(n).map(text => String(text).length);
      lengths.forEach((length, column) => { this.widths[column] = Math.max(this.widths[column], length); });
      this.second = Math.max(this.second, 4 + lengths[SECOND_LINE] + lengths[SECOND_LINE + 1]);
    });
    const probe = make("span", {}, "0".repeat(100));
    this.box.append(probe);
    this.letter = probe.getBoundingClientRect().width / 100;
    probe.remove();
  }

  /** Give columns the width of their texts; break lines in two where the window is too narrow. */
  layout() {
    const needed = widths => widths.reduce((sum, width) => sum + width * this.letter + GAP, GAP);
    const available = this.box.clientWidth;
    this.isBroken = needed(this.widths) > available;
    this.rowHeight = this.isBroken ? 2 * LINE : LINE;
    const first = this.isBroken ? this.widths.slice(0, SECOND_LINE) : this.widths;
    const least = this.isBroken ? Math.max(needed(first), this.second * this.letter * SMALL + 4 * GAP) : needed(first);
    this.box.style.setProperty("--columns", [...first.slice(0, -1).map(width => `${width}ch`), "1fr"].join(" "));
    this.box.style.setProperty("--row", `${this.rowHeight}px`);
    this.box.style.setProperty("--width", `${Math.max(available, Math.ceil(least))}px`);
    this.root.querySelector("#head").replaceChildren(this.line(HEADINGS));
  }

  line(texts) {
    const made = make("div", { class: this.isBroken ? "row broken" : "row" });
    const cells = texts.map((text, n) => make("span", NUMBERS.includes(n) ? { class: "n", title: text } : { title: text }, String(text)));
    cells[cells.length - 1].className = "faint";
    made.append(...cells.slice(0, this.isBroken ? SECOND_LINE : cells.length));
    if (this.isBroken) made.append(make("div", {}, ...cells.slice(SECOND_LINE)));
    return made;
  }

  draw() {
    const { box, rows, shown, rowHeight } = this;
    rows.style.height = `${shown.length * rowHeight}px`;
    const first = Math.max(0, Math.floor(box.scrollTop / rowHeight) - 5);
    const last = Math.min(shown.length, first + Math.ceil(box.clientHeight / rowHeight) + 12);
    rows.replaceChildren(...shown.slice(first, last).map((n, place) => {
      const made = this.line(this.columns(n));
      made.style.top = `${(first + place) * rowHeight}px`;
      made.dataset.index = n;
      if (n === this.chosen) made.classList.add("chosen");
      return made;
    }));
  }

  filter() {
    const { listing, select } = this, wanted = this.find.value.toLowerCase();
    this.shown = listing.unit.map((_, n) => n).filter(n => (!select.value || listing.unit[n] === select.value)
      && (!wanted || this.columns(n).slice(4).join(" ").toLowerCase().includes(wanted) || this.number(n) === wanted));
    this.root.querySelector("#count").textContent = `${grouped(this.shown.length)} of ${grouped(listing.unit.length)}`;
    this.draw();
  }

  /** Mark an instruction and, if `scrolls`, bring it into sight; a filter that hides it is cleared. */
  choose(index, scrolls) {
    this.chosen = index;
    if (scrolls) {
      if (!this.shown.includes(index)) { this.select.value = this.find.value = ""; this.filter(); }
      const { box, rowHeight } = this, top = this.shown.indexOf(index) * rowHeight;
      if (top < box.scrollTop || top > box.scrollTop + box.clientHeight - 3 * rowHeight) box.scrollTop = top - box.clientHeight / 2;
    }
    this.draw();
  }
}

accel.make = make;
accel.InstructionList = InstructionList;
}
