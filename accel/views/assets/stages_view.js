// Loops at two stages and the instructions in three columns; lines and instructions of one statement are marked together.

{
const MAX_LISTED = 200;           // instructions in the third column
const NONE = new Set();
const { make, grouped } = accel;

/** For each line of a nest, the statements that it stands for: by stage and call, by stage and by whether it
    only clears, by stage, or by tensor; the first rule that matches a line wins. */
function statementsOfLines(nest, statements) {
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

const intersects = (a, b) => { for (const n of a) if (b.has(n)) return true; return false; };

class StagesView {
  /** `place` is filled; `name` and `number` return an instruction's name and number; `light` marks instructions
      in the chart, and `choose` is called with an instruction that is clicked. */
  constructor(place, stages, { name, number, listing, light, choose }) {
    Object.assign(this, { name, number, listing, light, choose, of: stages.of });
    this.members = stages.statements.map(() => []);      // statement -> instructions
    stages.of.forEach((statement, n) => this.members[statement].push(n));
    this.nests = new Map(stages.nests.map(nest => [nest.name, { nest, statements: statementsOfLines(nest, stages.statements) }]));
    this.pinned = NONE;                                  // statements that stay marked
    this.columns = ["scheduled", "tensorized"].map(stage => this.column(stages.nests, stage));
    this.heading = make("label", {}, "instructions");
    this.list = make("div", { class: "code" });
    place.className = "stages";
    place.replaceChildren(...this.columns.map(column => column.box), make("div", {}, this.heading, this.list));
    this.columns.forEach(column => this.fill(column));
    this.mark(this.pinned);
  }

  column(nests, stage) {
    const select = make("select", { "aria-label": "stage" }, ...nests.map(one => new Option(one.label, one.name)));
    const code = make("div", { class: "code" });
    const column = { select, code, lines: [], box: make("div", {}, make("label", {}, select), code) };
    select.value = stage;
    select.addEventListener("input", () => this.fill(column));
    return column;
  }

  fill(column) {
    const { nest, statements } = this.nests.get(column.select.value);
    column.lines = nest.text.map((text, n) => ({ made: this.line(text, statements[n]), statements: statements[n] }));
    column.code.replaceChildren(...column.lines.map(line => line.made));
    this.markColumn(column, this.pinned);
  }

  line(text, statements) {
    const made = make("div", { class: "line" }, text.replace(/^ +/, indent => indent.slice(indent.length / 2)) || " ");
    if (!statements.size) return made;
    made.classList.add("means");
    made.tabIndex = 0;
    made.addEventListener("mouseenter", () => this.mark(statements));
    made.addEventListener("mouseleave", () => this.mark(this.pinned));
    made.addEventListener("click", () => this.pin(statements));
    made.addEventListener("keydown", event => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); this.pin(statements); } });
    return made;
  }

  instructionsOf(statements) { return [...statements].flatMap(n => this.members[n]); }

  markColumn(column, statements) {
    column.lines.forEach(line => line.made.classList.toggle("lit", intersects(line.statements, statements)));
  }

  /** Mark the lines of statements, and list their instructions; all instructions if there are no statements. */
  mark(statements) {
    const { listing } = this, isMarked = statements.size > 0, total = grouped(listing.unit.length);
    this.columns.forEach(column => this.markColumn(column, statements));
    const all = isMarked ? this.instructionsOf(statements).sort((a, b) => a - b) : listing.unit.map((_, n) => n);
    const more = all.length > MAX_LISTED ? [make("div", { class: "line faint" }, `${grouped(all.length - MAX_LISTED)} more`)] : [];
    this.heading.textContent = isMarked ? `${grouped(all.length)} of ${total} instructions` : `${total} instructions`;
    this.list.replaceChildren(...all.slice(0, MAX_LISTED).map(n => {
      const made = make("div", { class: isMarked ? "line means lit" : "line means", tabindex: 0 }, `${this.number(n).padStart(5)} ${this.name(n)} ${listing.tokens[n]}`);
      made.addEventListener("click", () => this.choose(n));
      made.addEventListener("keydown", event => { if (event.key === "Enter") this.choose(n); });
      return made;
    }), ...more);
  }

  /** Keep statements marked, also in the chart; the same ones again release them. */
  pin(statements) {
    this.pinned = statements === this.pinned ? NONE : statements;
    this.light(this.pinned.size ? this.instructionsOf(this.pinned) : null);
    this.mark(this.pinned);
    this.uncover();
  }

  /** Scroll every column to its first marked line. */
  uncover() {
    for (const { code, lines } of this.columns) {
      const lit = lines.find(line => line.made.classList.contains("lit"));
      const top = lit && lit.made.offsetTop - code.scrollTop;
      if (lit && (top < 0 || top > code.clientHeight - 24)) code.scrollTop = Math.max(0, lit.made.offsetTop - code.clientHeight / 2);
    }
  }

  /** Mark the statement of an instruction. */
  showInstruction(index) {
    if (this.of.length) { this.pinned = new Set([this.of[index]]); this.mark(this.pinned); }
    this.uncover();
  }
}

accel.StagesView = StagesView;
}
