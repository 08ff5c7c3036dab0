// The report: the list of instructions, and the links between it and the chart.

(async () => {
  const ROW = 20;         // pixels of a line of the list
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

  let chosen = null, shown = listing.unit.map((_, n) => n);
  const select = one("#unit"), find = one("#find");
  for (const unit of new Set(listing.unit)) select.append(new Option(unit, unit));
  const columns = n => {
    const [start, stop] = times.get(n) || [null, null];
    return [n, listing.unit[n], start === null ? "" : `${accel.grouped(start)}–${accel.grouped(stop - 1)}`,
      listing.waits[n] ? accel.grouped(listing.waits[n]) : "", listing.tokens[n], data.names[data.name[n]],
      listing.fields[n], listing.comment[n]];
  };

  function line(texts, numbers) {
    const made = document.createElement("div");
    made.className = "row";
    texts.forEach((text, n) => {
      const cell = document.createElement("span");
      cell.textContent = cell.title = text;
      if (numbers.includes(n)) cell.className = "n";
      made.append(cell);
    });
    return made;
  }

  one("#head").append(line(["#", "unit", "cycles", "waited", "tokens", "instruction", "fields", "what it does"], [0, 2, 3]));

  function draw() {
    const first = Math.max(0, Math.floor(box.scrollTop / ROW) - 5);
    const last = Math.min(shown.length, first + Math.ceil(box.clientHeight / ROW) + 12);
    rows.style.height = `${shown.length * ROW}px`;
    rows.replaceChildren(...shown.slice(first, last).map((n, place) => {
      const made = line(columns(n), [0, 2, 3]);
      made.style.top = `${(first + place) * ROW}px`;
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
      const top = shown.indexOf(index) * ROW;
      if (top < box.scrollTop || top > box.scrollTop + box.clientHeight - 3 * ROW) box.scrollTop = top - box.clientHeight / 2;
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
  filter();
  follow();
})();
