"""A page with all that is worth knowing about a run."""

from collections import defaultdict
from collections.abc import Mapping
from html import escape
from string import Template
from typing import TYPE_CHECKING, Any

from accel.assembly.annotate import Annotator
from accel.assembly.names import PlaceNames
from accel.core.isa import Unit, format_instruction
from accel.run.critical import longest, shares
from accel.views import roofline, verdict
from accel.views.assets import asset
from accel.views.chart import chart_data, packed
from accel.views.figure import Figure
from accel.views.loops import LOOPS, loops_text, stages
from accel.views.occupancy import Levels, occupancy, peaks, shown
from accel.views.scene import Scene
from accel.views.states import Reason, State
from accel.views.still import tick_step
from accel.views.tables import table, verdicts
from accel.views.timeline import PAGE_HEAD, chart_svg, facts, title
from accel.views.traffic import Traffic, traffic

if TYPE_CHECKING:
    from accel.run.advice import Advised

_BINS = 560
"""Parts of a run in which the highest occupancy is shown."""
_LEAST_SHARE = 0.0005
"""Of the cycles, that a reason or a cause must have to be listed."""
_LONGEST = 12
"""Segments of the critical path that are listed."""

_PAGE = Template(
    PAGE_HEAD
    + """<main id="view">
<header>
<button id="theme" title="light or dark">&#9681;</button>
<h1>$title</h1>
<p>$facts</p>
<nav>$links</nav>
</header>
$sections
</main>
<script type="text/plain" id="data">$data</script>
<script>
$script
accel.unpack(document.getElementById("data").textContent).then(view =>
  accel.view(document.getElementById("view"), view, { address: true }));
</script>
</body>
</html>
"""
)


def report_html(scene: Scene) -> str:
    """The page; it needs nothing but itself."""
    view = run_view(scene, still=True)
    return _PAGE.substitute(
        title=escape(view["title"]),
        facts=escape(view["facts"]),
        style=style(),
        links=" ".join(f'<a href="#{one["name"]}">{escape(one["heading"])}</a>' for one in view["sections"]),
        sections="\n".join(
            f'<section id="{one["name"]}"><h2>{escape(one["heading"])}</h2>\n{one["html"]}\n</section>'
            for one in view["sections"]
        ),
        data=packed(view | {"sections": []}),
        script=script(),
    )


def style() -> str:
    """The style sheet of a view, wherever it is shown."""
    return asset("page.css") + asset("report.css") + asset("chart.css")


def script() -> str:
    """The component that makes a view move, as a script that defines ``accel``."""
    return asset("chart.js") + asset("view.js")


def module() -> str:
    """The same as an ES module."""
    return f"{script()}export default accel;\n"


def run_view(scene: Scene, *, still: bool = False) -> dict[str, Any]:
    """All that is to be seen of a run as plain data, which the component ``accel.view`` draws in a report, in
    a notebook and in the studio: sections with their HTML, and the data of what moves in them.

    Args:
        scene: the run.
        still: whether the sections hold the chart and the loops also as pictures and text, for readers
            without scripts.
    """
    sections = [
        ("verdict", "Verdict", _verdict(scene)),
        ("figures", "Figures", _figures(scene)),
        ("units", "Where the cycles went", _units(scene)),
        ("critical", "Critical path", _critical(scene)),
        *([] if scene.advised is None else [("advice", "What would help", _advice(scene.advised))]),
        ("timeline", "Timeline", _timeline(scene, still=still)),
        ("roofline", "Roofline", _roofline(scene)),
        ("scratchpads", "Scratchpads", _scratchpads(scene)),
        ("dram", "DRAM traffic", _dram(scene)),
        ("loops", "Loops", loops_text(scene) if still else LOOPS),
        ("instructions", "Instructions", _LISTING),
    ]
    return {
        "title": title(scene),
        "facts": facts(scene),
        "sections": [{"name": name, "heading": heading, "html": html} for name, heading, html in sections],
        "chart": chart_data(scene),
        "listing": _listing_data(scene),
        "stages": stages(scene),
    }


# --- verdict ---------------------------------------------------------------------------------------


def _verdict(scene: Scene) -> str:
    return verdicts([*_compared(scene), *verdict.rows(scene)])


# --- figures ---------------------------------------------------------------------------------------


def _figures(scene: Scene) -> str:
    found = scene.result.to_dict()
    least, stopped = scene.result.compulsory, scene.result.error is not None
    moved = traffic(scene)
    tiles = [("cycles", f"{found['cycles']:,}", "until it stopped" if stopped else "")]
    if least is not None and found["utilization"] is not None:
        tiles += [
            (
                "GEMM core used",
                f"{found['utilization']:.1%}",
                f"{found['ideal_cycles']:,.0f} cycles at least",
            ),
            (
                "of the roofline",
                f"{found['roofline_fraction']:.1%}",
                f"{found['roofline_cycles']:,.0f} cycles at least",
            ),
            ("MACs per cycle", f"{least.real_macs / found['cycles']:,.1f}", f"{least.real_macs:,} in all"),
        ]
    tiles += [
        (
            "read",
            size_text(sum(one.read for one in moved)),
            "with instructions",
        ),
        ("written", size_text(sum(one.written for one in moved)), ""),
        ("instructions", f"{found['instructions']:,}", _progress(scene)),
    ]
    return '<div class="tiles">' + "".join(_tile(*tile) for tile in tiles) + "</div>"


def _progress(scene: Scene) -> str:
    """How much of the program has run."""
    if scene.result.error is not None:
        return f"{len(scene.seen.slices):,} of them started"
    return "" if scene.result.uops is None else f"{scene.result.uops:,} micro-ops"


def _compared(scene: Scene) -> list[verdict.Row]:
    """Whether the outputs are right, if that is known."""
    wrong = scene.result.mismatches
    if wrong is None:
        return []
    text = f"WRONG: {wrong:,} outputs differ" if wrong else "right: all outputs equal"
    return [("compared to numpy", text, not wrong)]


def _tile(name: str, value: str, note: str) -> str:
    return (
        f'<div class="tile"><div class="name">{escape(name)}</div>'
        f'<div class="value">{escape(value)}</div><div class="faint">{escape(note)}</div></div>'
    )


def size_text(count: int) -> str:
    """Bytes in three or four digits."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            value = count / size
            return f"{value:,.{2 if value < 10 else 1 if value < 100 else 0}f} {unit}"
    return f"{count:,} B"


# --- units -----------------------------------------------------------------------------------------


def _units(scene: Scene) -> str:
    cycles = max(1, scene.seen.cycles)
    parts = ['<div class="bars">']
    for unit in Unit:
        found = dict(zip(State, scene.seen.unit_cycles(unit).to_dict().values(), strict=True))
        parts.append(f'<div class="bar"><b>{unit.label}</b>{_track(unit, found, cycles)}</div>')
    keys = "".join(f'<span class="key {s.name.lower()}"></span>{s.label} ' for s in State)
    parts.append(f'<p class="keys">{keys}</p></div>')
    rows = [
        ("" if n else f"<b>{unit.label}</b>", escape(reason.label), f"{count:,}", f"{count / cycles:.1%}")
        for unit in Unit
        for n, (reason, count) in enumerate(_reasons(scene, unit))
    ]
    parts.append(table(("unit", "what it does or waits for", "cycles", "share"), rows))
    return '<div class="columns">' + "".join(parts) + "</div>"


def _track(unit: Unit, found: Mapping[State, int], cycles: int) -> str:
    """A unit's cycles as a bar."""
    pieces, done = [], 0
    for state, count in found.items():
        share, at = count / cycles, done / cycles
        done += count
        if not count:
            continue
        told = f"{unit.label}: {state.label}, {count:,} cycles, {share:.1%}"
        pieces.append(
            f'<g><title>{told}</title><rect class="{state.name.lower()}" x="{at:.3%}" width="{share:.3%}" '
            f'height="26"/><text x="{at + share / 2:.3%}" y="17" class="on-{state.name.lower()}">'
            f"{_percent(share)}</text></g>"
        )
    return f'<svg class="track" width="100%" height="26">{"".join(pieces)}</svg>'


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.06 else ""


def _reasons(scene: Scene, unit: Unit) -> list[tuple[Reason, int]]:
    """What most of a unit's cycles went to first."""
    sums: dict[Reason, int] = defaultdict(int)
    for span in scene.seen.spans[unit]:
        sums[span.reason] += span.stop - span.start
    least = _LEAST_SHARE * scene.seen.cycles
    return sorted(((r, n) for r, n in sums.items() if n >= least), key=lambda one: -one[1])


# --- critical path ---------------------------------------------------------------------------------


def _critical(scene: Scene) -> str:
    path = scene.result.critical_path() or ()
    cycles = sum(one.cycles for one in path) or 1
    causes = [
        (
            f"<b>{one.unit}</b>",
            f'<span title="{escape(one.cause.label)}">{escape(one.cause)}</span>',
            f"{one.cycles:,}",
            f"{one.cycles / cycles:.1%}",
            f"{one.segments:,}",
        )
        for one in shares(path)
        if one.cycles >= _LEAST_SHARE * cycles
    ]
    segments = [
        (
            f"<b>{one.unit}</b>",
            f'<span title="{escape(one.cause.label)}">{escape(one.cause)}</span>',
            f"{one.cycles:,}",
            f"{one.start:,}",
            "" if one.instruction is None else _linked(scene, one.instruction),
        )
        for one in longest(path, _LONGEST)
    ]
    note = (
        "From the last event back through whatever each event waited for: the segments adjoin and sum up to "
        "the cycles of the run. Only what is on this path makes the run longer."
    )
    return (
        f'<p class="faint">{note}</p><div class="columns"><div>'
        + table(("unit", "cause", "cycles", "share", "segments"), causes)
        + "</div><div><p>The longest segments:</p>"
        + table(("unit", "cause", "cycles", "from cycle", "instruction"), segments)
        + "</div></div>"
    )


def _advice(found: "Advised") -> str:
    rows = [
        (
            f"<b>{escape(one.change)}</b>",
            f"{one.speedup:.2f}",
            f"{one.cycles:,}",
            escape(one.how),
            escape(one.reason),
        )
        for one in found.advice
    ]
    tried = f"Tried: {', '.join(found.tried) or 'nothing'}."
    left = f" No time was left for {', '.join(found.skipped)}." if found.skipped else ""
    told = table(("change of the machine", "times as fast", "cycles", "how it is known", "why"), rows)
    return f'<p>The critical path is mostly {escape(found.bound)}.</p><p class="faint">{tried}{left}</p>' + (
        told if rows else "<p>No single change of a field makes it a percent faster.</p>"
    )


def _linked(scene: Scene, index: int) -> str:
    """An instruction's name, which leads to its line in the list."""
    return f'<a href="#i{index}">{index} {escape(scene.names[index])}</a>'


# --- pictures --------------------------------------------------------------------------------------


def _timeline(scene: Scene, *, still: bool) -> str:
    buttons = "".join(
        f'<button data-zoom="{factor}">{text}</button>'
        for factor, text in (("0.5", "zoom in"), ("2", "zoom out"), ("0", "whole run"))
    )
    hint = "Ctrl and the wheel zoom, too; drag to pan, with Shift to measure; click on an instruction"
    tools = (
        '<label>colour by <select data-colour><option value="kind">kind</option></select></label>'
        '<label>find <input data-search type="search" placeholder="GEMM, A[0:64, 17"></label>'
        '<span data-found class="faint"></span>'
    )
    size = 'width="100%" tabindex="0"'
    return (
        f'<p class="hint tools">{buttons}{tools}</p>'
        + (chart_svg(scene, size=size, style="") if still else f'<svg class="chart" {size}></svg>')
        + f'<p class="hint">{hint}.</p>'
    )


def _roofline(scene: Scene) -> str:
    if scene.result.error is not None:
        return "<p>The run stopped early; only one that finishes has a place below the roofline.</p>"
    line = roofline.roofline(scene.result)
    if line is None:
        return "<p>The program multiplies nothing; the bus alone is its limit, and there is no roofline.</p>"
    share = line.speed / line.roof(line.intensity)
    words = [
        f"The run does <b>{line.speed:,.1f}</b> multiply-accumulates a cycle, {share:.1%} of what "
        f"{line.bound} allows at {line.intensity:,.1f} of them per byte."
    ]
    if line.least_intensity is not None:
        words.append(
            f"If it read and wrote everything only once, it would be {line.least_intensity:,.1f} per byte."
        )
    if not line.exact:
        words.append(
            "They are counted from the GEMM micro-ops, since the program holds no tensor expression."
        )
    words.append("Bytes are those of the busier direction of the bus, reads (with instructions) or writes.")
    return f'<div class="columns">{roofline.draw(line)}<p>{" ".join(words)}</p></div>'


def _scratchpads(scene: Scene) -> str:
    found = occupancy(scene.touches, scene.seen.slices, scene.image.config)
    charts = "".join(_scratchpad(scene, name, found[name]) for name in shown(scene.image.config))
    note = (
        "Elements that hold what is still to be read: from the start of the instruction that fills them to "
        "the retirement of the last one that reads them."
    )
    return f'<p class="faint">{note}</p><div class="grid">{charts}</div>'


def _scratchpad(scene: Scene, name: str, levels: Levels) -> str:
    depth = int(getattr(scene.image.config, f"{name}_depth"))
    cycles = max(1, scene.seen.cycles)
    peak = max(level for _, level in levels)
    top = min(depth, 1 << max(2, (peak * 5 // 4).bit_length()))
    figure = Figure(620, 150, x=(0, cycles), y=(0, top), margins=(58, 24, 8, 24))
    for cycle in range(0, cycles + 1, tick_step(cycles, 5)):
        figure.x_tick(cycle, f"{cycle:,}")
    for part in (0, top // 2, top):
        figure.y_tick(part, f"{part:,}")
    figure.steps(peaks(levels, cycles, _BINS), "area")
    return (
        f"<figure><figcaption><b>{name}</b> at most {peak:,} of {depth:,} elements "
        f"({peak / depth:.0%})</figcaption>{figure.svg(f'Elements in use of {name}')}</figure>"
    )


# --- DRAM and text ---------------------------------------------------------------------------------


def _dram(scene: Scene) -> str:
    entries = traffic(scene)
    most = max((one.bus for one in entries), default=0) or 1
    rows = [_traffic_row(one, most) for one in entries if one.moved]
    headings = ("in DRAM", "", "bytes there", "read", "written", "times its size", "bursts", "on the bus", "")
    note = "Bytes on the bus count whole beats, of which parts may be of no use."
    return table(headings, rows) + f'<p class="faint">{note}</p>'


def _traffic_row(one: Traffic, most: int) -> tuple[str, ...]:
    return (
        f"<b>{escape(one.name)}</b>",
        escape(one.role),
        "" if one.size is None else f"{one.size:,}",
        f"{one.read:,}",
        f"{one.written:,}",
        f"{one.moved / one.size:,.1f}" if one.size else "",
        f"{one.bursts:,}",
        f"{one.bus:,}",
        f'<svg class="amount" width="{160 * one.bus / most:.1f}" height="11">'
        '<rect width="100%" height="11"/></svg>',
    )


_LISTING = """<p class="hint"><label>unit <select id="unit"><option value="">all</option></select></label>
<label>find <input id="find" type="search" placeholder="GEMM, A[0:64, acc 0.."></label>
<span id="count" class="faint"></span></p>
<div id="listing" tabindex="0"><div id="head"></div><div id="rows"></div></div>"""


def _listing_data(scene: Scene) -> dict[str, Any]:
    names, annotator = PlaceNames(scene.image), Annotator(scene.image)
    waits: dict[int, int] = defaultdict(int)
    for unit in Unit:
        if unit is not Unit.FETCH:
            for span in scene.seen.spans[unit]:
                if span.state is State.TOKEN:
                    waits[span.instruction] += span.stop - span.start
    words = [format_instruction(one, names).split()[1:] for one in scene.instructions]
    return {
        "fields": [" ".join(word for word in line if word[0] not in "<>") for line in words],
        "tokens": [" ".join(word for word in line if word[0] in "<>") for line in words],
        "comment": [annotator.comment(n, one) for n, one in enumerate(scene.instructions)],
        "unit": [one.unit.label for one in scene.instructions],
        "waits": [waits[n] for n in range(len(scene.instructions))],
    }
