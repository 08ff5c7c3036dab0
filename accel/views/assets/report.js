// The report: the list of instructions, and the links between it and the chart.

(async () => {
  const LINE = 20, GAP = 14;  // pixels of a line of text in the list, and between its columns
  const SMALL = 11 / 12;      // letters of a second line, compared with those of the first
  const read = id => accel.unpack(document.getElementById(id).textContent);
  const [data, listing] = await Promise.all([read("data"), read("listing-data")]);
  const one = selector => document.querySelector(selector);
  const svg = one("#timeline svg.chart"), box = one("#listing"), rows = one("#rows");
  const times = new Map();                      // instruction -> start, stop
  for (const lane of data.lanes) {
    let index = 0, start = 0;
    lane.slices.index.forEach((step, n) => {
      index += step;
      start += lane.slices.start[n];
      times.set(index, [start, start + lane.slices.length[n]]);
    });
  }

  one("#theme").addEventListener("click", () => {
    const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = (root.dataset.theme || (dark ? "dark" : "light")) === "dark" ? "light" : "dark";
  });

  const chart = accel.chart(svg, data, { gentle: true, keys: svg, chosen: index => choose(index, "list") });
  document.querySelectorAll("[data-zoom]").forEach(button => button.addEventListener("click", () => {
    const factor = Number(button.dataset.zoom);
    if (factor) chart.zoom(factor); else chart.show(0, chart.cycles);
  }));

  // --- the list: only the lines in sight are there

  const HEADINGS = ["#", "unit", "cycles", "waited", "tokens", "instruction", "what it does", "fields"];
  const NUMBERS = [0, 2, 3], BELOW = 6;   // from here on in a second line, if need be
  let chosen = null, rowHeight = LINE, shown = listing.unit.map((_, n) => n);
  const select = one("#unit"), find = one("#find");
  for (const unit of new Set(listing.unit)) select.append(new Option(unit, unit));
  const columns = n => {
    const [start, stop] = times.get(n) || [null, null];
    return [n, listing.unit[n], start === null ? "" : `${accel.grouped(start)}–${accel.grouped(stop - 1)}`,
      listing.waits[n] ? accel.grouped(listing.waits[n]) : "", listing.tokens[n], data.names[data.name[n]],
      listing.comment[n], listing.fields[n]];
  };

  // Columns are as wide as what is in them. Where that is more than there is, lines are broken in two.
  const widths = HEADINGS.map(heading => heading.length);
  let below = 0;
  listing.unit.forEach((_, n) => {
    const lengths = columns(n).map(text => String(text).length);
    lengths.forEach((length, c) => { widths[c] = Math.max(widths[c], length); });
    below = Math.max(below, 4 + lengths[BELOW] + lengths[BELOW + 1]);
  });
  const probe = document.createElement("span");
  probe.textContent = "0".repeat(100);
  box.append(probe);
  const letter = probe.getBoundingClientRect().width / 100;
  probe.remove();
  const needed = all => all.reduce((sum, width) => sum + width * letter + GAP, GAP);
  let broken = false;

  function layout() {
    const room = box.clientWidth;
    broken = needed(widths) > room;
    rowHeight = broken ? 2 * LINE : LINE;
    const first = broken ? widths.slice(0, BELOW) : widths;
    const least = broken ? Math.max(needed(first), below * letter * SMALL + 4 * GAP) : needed(first);
    box.style.setProperty("--columns", [...first.slice(0, -1).map(width => `${width}ch`), "1fr"].join(" "));
    box.style.setProperty("--row", `${rowHeight}px`);
    box.style.setProperty("--width", `${Math.max(room, Math.ceil(least))}px`);
    one("#head").replaceChildren(line(HEADINGS));
  }

  function line(texts) {
    const made = document.createElement("div");
    made.className = broken ? "row broken" : "row";
    const cells = texts.map((text, n) => {
      const cell = document.createElement("span");
      cell.textContent = cell.title = text;
      if (NUMBERS.includes(n)) cell.className = "n";
      return cell;
    });
    cells[cells.length - 1].className = "faint";
    made.append(...cells.slice(0, broken ? BELOW : cells.length));
    if (broken) {
      const second = document.createElement("div");
      second.append(...cells.slice(BELOW));
      made.append(second);
    }
    return made;
  }

  function draw() {
    rows.style.height = `${shown.length * rowHeight}px`;
    const first = Math.max(0, Math.floor(box.scrollTop / rowHeight) - 5);
    const last = Math.min(shown.length, first + Math.ceil(box.clientHeight / rowHeight) + 12);
    rows.replaceChildren(...shown.slice(first, last).map((n, place) => {
      const made = line(columns(n));
      made.style.top = `${(first + place) * rowHeight}px`;
      made.dataset.index = n;
      if (n === chosen) made.classList.add("chosen");
      return made;
    }));
  }

  function filter() {
    const wanted = find.value.toLowerCase();
    shown = listing.unit.map((_, n) => n).filter(n => (!select.value || listing.unit[n] === select.value)
      && (!wanted || columns(n).slice(4).join(" ").toLowerCase().includes(wanted) || String(n) === wanted));
    one("#count").textContent = `${accel.grouped(shown.length)} of ${accel.grouped(listing.unit.length)}`;
    draw();
  }

  /** Show an instruction in the list, in the chart or in both, and in the address of the page. */
  function choose(index, where) {
    chosen = index;
    history.replaceState(null, "", `#i${index}`);
    if (where !== "chart") {
      if (!shown.includes(index)) { select.value = find.value = ""; filter(); }
      const top = shown.indexOf(index) * rowHeight;
      if (top < box.scrollTop || top > box.scrollTop + box.clientHeight - 3 * rowHeight) box.scrollTop = top - box.clientHeight / 2;
    }
    if (where !== "list") chart.reveal(index);
    draw();
  }

  rows.addEventListener("click", event => {
    const row = event.target.closest(".row");
    if (row) { choose(Number(row.dataset.index), "chart"); one("#timeline").scrollIntoView({ block: "nearest" }); }
  });
  box.addEventListener("scroll", draw);
  [select, find].forEach(input => input.addEventListener("input", filter));
  function follow() {
    const match = /^#i(\d+)$/.exec(location.hash);
    if (match && Number(match[1]) < listing.unit.length) { choose(Number(match[1]), "both"); one("#timeline").scrollIntoView(); }
  }
  window.addEventListener("hashchange", follow);
  window.addEventListener("resize", () => { layout(); draw(); });
  layout();
  filter();
  follow();
})();
