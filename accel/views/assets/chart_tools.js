// The buttons, the colours and the search field above a pipeline chart.

{
const { grouped } = accel;

/** Connect the tools in `root` to a chart; `choose` is called with an instruction that was searched for. */
accel.connectTools = (root, chart, choose) => {
  root.querySelectorAll("[data-zoom]").forEach(button => button.addEventListener("click", () => {
    const factor = Number(button.dataset.zoom);
    if (factor) chart.zoom(factor); else chart.show(0, chart.cycles);
  }));
  const colour = root.querySelector("[data-colour]"), search = root.querySelector("[data-search]"), found = root.querySelector("[data-found]");
  if (!colour) return;
  for (const group of chart.groups) colour.append(new Option(group, group));
  colour.addEventListener("input", () => chart.colour(colour.value));
  if (chart.groups.includes("layer")) { colour.value = "layer"; chart.colour("layer"); }
  let hits = [], hit = -1;
  search.addEventListener("input", () => {
    hits = chart.search(search.value);
    hit = -1;
    found.textContent = search.value.trim() ? `${grouped(hits.length)} found` + (hits.length ? ", Enter for the next" : "") : "";
    chart.light(search.value.trim() ? hits : null);
  });
  search.addEventListener("keydown", event => {
    if (event.key === "Escape") { search.value = ""; search.dispatchEvent(new Event("input")); }
    if (event.key !== "Enter" || !hits.length) return;
    event.preventDefault();
    hit = (hit + (event.shiftKey ? hits.length - 1 : 1)) % hits.length;
    found.textContent = `${grouped(hit + 1)} of ${grouped(hits.length)}`;
    choose(hits[hit]);
  });
};
}
