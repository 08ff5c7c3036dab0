// A run as sections: fills an element with them, and joins chart, loops and list of instructions, each of which
// leads to the others. Reports hold the sections already; notebooks and the studio have them built.

{
// Where a page demands it, markup is only taken from here: that of sections, which Python has escaped.
const trusted = window.trustedTypes ? window.trustedTypes.createPolicy("accel", { createHTML: text => text }) : { createHTML: text => text };

accel.view = (root, first, options = {}) => {
  const LINE = 20, GAP = 14;  // pixels of a line of text in the list, and between its columns
  const SMALL = 11 / 12;      // letters of a second line, compared with those of the first
  const MOST = 200;           // instructions listed beside the loops
  const one = selector => root.querySelector(selector);
  const make = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    made.append(...children);
    return made;
  };
  const stopped = new AbortController(), until = { signal: stopped.signal };
  const listen = (target, kind, action) => target && target.addEventListener(kind, action, until);
  let part = null;            // what moves in the view that is shown

  /** The sections of a view, for an element that has none yet. */
  function build(view) {
    const opened = new Set([...root.querySelectorAll("details[open] > summary")].map(e => e.textContent));
    const had = root.querySelector("section") !== null;
    root.replaceChildren(...view.sections.map(({ name, heading, html }) => {
      const section = make("section", { id: name });
      section.innerHTML = trusted.createHTML(html);
      section.prepend(make("h2", {}, heading));
      return section;
    }));
    if (had) root.querySelectorAll("summary").forEach(e => { e.parentNode.open = opened.has(e.textContent); });
  }

  function parts(view) {
    const { chart: data, listing, stages } = view;
    const svg = one("#timeline svg.chart"), box = one("#listing"), rows = one("#rows");
    const chart = accel.chart(svg, data, { gentle: true, keys: svg, chosen: index => choose(index, "list") });
    const times = new Map();                      // instruction -> start, stop
    for (const lane of data.lanes) {
      let index = 0, start = 0;
      lane.slices.index.forEach((step, n) => {
        index += step;
        start += lane.slices.start[n];
        times.set(index, [start, start + lane.slices.length[n]]);
      });
    }
    const name = n => data.names[data.name[n]];

    // --- tools of the chart

    root.querySelectorAll("[data-zoom]").forEach(button => button.addEventListener("click", () => {
      const factor = Number(button.dataset.zoom);
      if (factor) chart.zoom(factor); else chart.show(0, chart.cycles);
    }));
    const colour = one("[data-colour]"), search = one("[data-search]"), found = one("[data-found]");
    for (const group of chart.groups) colour.append(new Option(group, group));
    colour.addEventListener("input", () => chart.colour(colour.value));
    if (chart.groups.includes("layer")) { colour.value = "layer"; chart.colour("layer"); }
    let hits = [], hit = -1;
    search.addEventListener("input", () => {
      hits = chart.search(search.value);
      hit = -1;
      found.textContent = search.value.trim() ? `${accel.grouped(hits.length)} found` + (hits.length ? ", Enter for the next" : "") : "";
      chart.light(search.value.trim() ? hits : null);
    });
    search.addEventListener("keydown", event => {
      if (event.key === "Escape") { search.value = ""; search.dispatchEvent(new Event("input")); }
      if (event.key !== "Enter" || !hits.length) return;
      event.preventDefault();
      hit = (hit + (event.shiftKey ? hits.length - 1 : 1)) % hits.length;
      found.textContent = `${accel.grouped(hit + 1)} of ${accel.grouped(hits.length)}`;
      choose(hits[hit], "both");
    });

    // --- the list: only the lines in sight are there

    const HEADINGS = ["#", "unit", "cycles", "waited", "tokens", "instruction", "what it does", "fields"];
    const NUMBERS = [0, 2, 3], BELOW = 6;   // from here on in a second line, if need be
    let chosen = null, rowHeight = LINE, shown = listing.unit.map((_, n) => n);
    const select = one("#unit"), find = one("#find");
    for (const unit of new Set(listing.unit)) select.append(new Option(unit, unit));
    const columns = n => {
      const [start, stop] = times.get(n) || [null, null];
      return [chart.number(n), listing.unit[n], start === null ? "" : `${accel.grouped(start)}–${accel.grouped(stop - 1)}`,
        listing.waits[n] ? accel.grouped(listing.waits[n]) : "", listing.tokens[n], name(n),
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
    const probe = make("span", {}, "0".repeat(100));
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
      const made = make("div", { class: broken ? "row broken" : "row" });
      const cells = texts.map((text, n) => {
        const cell = make("span", NUMBERS.includes(n) ? { class: "n", title: text } : { title: text }, String(text));
        return cell;
      });
      cells[cells.length - 1].className = "faint";
      made.append(...cells.slice(0, broken ? BELOW : cells.length));
      if (broken) made.append(make("div", {}, ...cells.slice(BELOW)));
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
        && (!wanted || columns(n).slice(4).join(" ").toLowerCase().includes(wanted) || chart.number(n) === wanted));
      one("#count").textContent = `${accel.grouped(shown.length)} of ${accel.grouped(listing.unit.length)}`;
      draw();
    }

    /** Show an instruction in the list, in the chart and in the loops, and in the address of the page. */
    function choose(index, where) {
      chosen = index;
      if (options.address) history.replaceState(null, "", `#i${index}`);
      if (where !== "chart") {
        if (!shown.includes(index)) { select.value = find.value = ""; filter(); }
        const top = shown.indexOf(index) * rowHeight;
        if (top < box.scrollTop || top > box.scrollTop + box.clientHeight - 3 * rowHeight) box.scrollTop = top - box.clientHeight / 2;
      }
      if (where !== "list") chart.reveal(index);
      loops.instruction(index);
      draw();
    }

    const toChart = () => one("#timeline").scrollIntoView({ block: "nearest" });
    rows.addEventListener("click", event => {
      const row = event.target.closest(".row");
      if (row) { choose(Number(row.dataset.index), "chart"); toChart(); }
    });
    box.addEventListener("scroll", draw);
    root.querySelectorAll('a[href^="#i"]').forEach(link => link.addEventListener("click", event => {
      event.preventDefault();
      choose(Number(link.hash.slice(2)), "both");
      toChart();
    }));
    [select, find].forEach(input => input.addEventListener("input", filter));

    function follow() {
      const match = options.address && /^#i(\d+)$/.exec(location.hash);
      if (match && Number(match[1]) < listing.unit.length) { choose(Number(match[1]), "both"); one("#timeline").scrollIntoView(); }
    }

    const loops = stages === null || !one("[data-stages]") ? { instruction: () => {} } : besides(one("[data-stages]"), stages, {
      name, number: chart.number, listing, light: chart.light, choose: index => { choose(index, "both"); toChart(); },
    });
    layout();
    filter();
    follow();
    return { chart, follow, resized: () => { layout(); draw(); }, close: chart.close };
  }

  /** Loops at two stages and the instructions, side by side; what belongs together is marked. */
  function besides(place, stages, { name, number, listing, light, choose }) {
    const { nests, statements, of } = stages;
    const empty = new Set();
    const members = statements.map(() => []);      // statement -> instructions
    of.forEach((statement, n) => members[statement].push(n));

    /** Of each line of a nest, the statements that it stands for: by stage and call, by stage and by whether it
        only clears, by stage, or by tensor. */
    function meanings(nest) {
      const found = nest.text.map(() => new Set());
      statements.forEach((statement, n) => {
        const rules = [line => nest.names[line][0] === statement.stage && nest.call[line] === statement.call,
          line => nest.names[line][0] === statement.stage && !nest.call[line] && (nest.names[line].length > 1) !== statement.clears,
          line => nest.names[line][0] === statement.stage, line => nest.names[line].includes(statement.tensor)];
        for (const rule of rules) {
          const lines = nest.text.map((_, line) => line).filter(line => nest.names[line].length && rule(line));
          lines.forEach(line => found[line].add(n));
          if (lines.length || !statement.stage) break;
        }
      });
      return found;
    }

    const known = new Map(nests.map(nest => [nest.name, { nest, means: meanings(nest) }]));
    let pinned = empty;
    const columns = ["scheduled", "tensorized"].map(first => {
      const select = make("select", { "aria-label": "stage" }, ...nests.map(one => new Option(one.label, one.name)));
      const code = make("div", { class: "code" });
      const column = { select, code, lines: [] };
      select.value = first;
      select.addEventListener("input", () => fill(column));
      return { ...column, box: make("div", {}, make("label", {}, select), code), column };
    }).map(one => Object.assign(one.column, { box: one.box }));
    const heading = make("label", {}, "instructions"), list = make("div", { class: "code" });

    function fill(column) {
      const { nest, means } = known.get(column.select.value);
      column.lines = nest.text.map((text, n) => {
        const made = make("div", { class: "line" }, text.replace(/^ +/, indent => indent.slice(indent.length / 2)) || " ");
        if (means[n].size) {
          made.classList.add("means");
          made.tabIndex = 0;
          made.addEventListener("mouseenter", () => mark(means[n]));
          made.addEventListener("mouseleave", () => mark(pinned));
          made.addEventListener("click", () => pin(means[n]));
          made.addEventListener("keydown", event => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); pin(means[n]); } });
        }
        return { made, means: means[n] };
      });
      column.code.replaceChildren(...column.lines.map(line => line.made));
      brighten(column, pinned);
    }

    const meets = (a, b) => { for (const n of a) if (b.has(n)) return true; return false; };

    const brighten = (column, group) => column.lines.forEach(({ made, means }) => made.classList.toggle("lit", meets(means, group)));

    function mark(group) {
      columns.forEach(column => brighten(column, group));
      const all = group.size ? [...group].flatMap(n => members[n]).sort((a, b) => a - b) : listing.unit.map((_, n) => n);
      const more = all.length > MOST ? [make("div", { class: "line faint" }, `${accel.grouped(all.length - MOST)} more`)] : [];
      heading.textContent = group.size ? `${accel.grouped(all.length)} of ${accel.grouped(listing.unit.length)} instructions`
        : `${accel.grouped(all.length)} instructions`;
      list.replaceChildren(...all.slice(0, MOST).map(n => {
        const made = make("div", { class: group.size ? "line means lit" : "line means", tabindex: 0 }, `${number(n).padStart(5)} ${name(n)} ${listing.tokens[n]}`);
        made.addEventListener("click", () => choose(n));
        made.addEventListener("keydown", event => { if (event.key === "Enter") choose(n); });
        return made;
      }), ...more);
    }

    /** Keep a group marked, also in the chart; the same one again lets go of it. */
    function pin(group) {
      pinned = group === pinned ? empty : group;
      light(pinned.size ? [...pinned].flatMap(n => members[n]) : null);
      mark(pinned);
      uncover();
    }

    /** Bring what is marked into view, in every column. */
    function uncover() {
      for (const column of columns) {
        const lit = column.lines.find(line => line.made.classList.contains("lit"));
        const at = lit && lit.made.offsetTop - column.code.scrollTop;
        if (lit && (at < 0 || at > column.code.clientHeight - 24)) column.code.scrollTop = Math.max(0, lit.made.offsetTop - column.code.clientHeight / 2);
      }
    }

    const rest = make("div", {}, heading, list);
    place.className = "stages";
    place.replaceChildren(...columns.map(column => column.box), rest);
    columns.forEach(fill);
    mark(pinned);
    return {
      instruction(index) {
        if (of.length) { pinned = new Set([of[index]]); mark(pinned); }
        uncover();
      },
    };
  }

  /** Draw another view in place of this one. */
  function update(view) {
    if (part) part.close();
    if (view.sections.length) build(view);
    part = one("#timeline svg.chart") ? parts(view) : null;
  }

  listen(one("#theme"), "click", () => {
    const top = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)").matches;
    top.dataset.theme = (top.dataset.theme || (dark ? "dark" : "light")) === "dark" ? "light" : "dark";
  });
  listen(window, "hashchange", () => part && part.follow());
  listen(window, "resize", () => part && part.resized());
  update(first);
  return { update, chart: () => part && part.chart, close: () => { stopped.abort(); if (part) part.close(); } };
};
}
