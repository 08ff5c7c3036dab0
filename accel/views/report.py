"""A page with all that is worth knowing about a run."""

from collections import defaultdict
from collections.abc import Mapping
from html import escape
from string import Template
from typing import Any

from accel.assembly.annotate import Annotator
from accel.assembly.names import PlaceNames
from accel.core.isa import Unit, format_instruction
from accel.run.critical import Segment
from accel.views.assets import asset
from accel.views.causes import advice_html, critical_html
from accel.views.chart import chart_data, packed
from accel.views.loops import LOOPS, loops_text, stages
from accel.views.memories import dram_html, scratchpads_html
from accel.views.overview import figures_html, units_html, verdict_html
from accel.views.roofline import roofline_html
from accel.views.scene import Scene
from accel.views.scenes import Scenes
from accel.views.sections import sections_data
from accel.views.states import State
from accel.views.timeline import PAGE_HEAD, chart_svg, facts, title

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
    return view_html(run_view(scene, still=True))


def view_html(view: Mapping[str, Any]) -> str:
    """A page that draws a view.

    Args:
        view: as of :func:`run_view`.
    """
    return _PAGE.substitute(
        title=escape(view["title"]),
        facts=escape(view["facts"]),
        style=style(),
        links=" ".join(f'<a href="#{one["name"]}">{escape(one["heading"])}</a>' for one in view["sections"]),
        sections="\n".join(
            f'<section id="{one["name"]}"><h2>{escape(one["heading"])}</h2>\n{one["html"]}\n</section>'
            for one in view["sections"]
        ),
        data=packed({**view, "sections": []}),
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
        ("verdict", "Verdict", verdict_html(scene)),
        ("figures", "Figures", figures_html(scene)),
        ("units", "Where the cycles went", units_html(scene.seen)),
        ("critical", "Critical path", _critical(scene)),
        *([] if scene.advised is None else [("advice", "What would help", advice_html(scene.advised))]),
        ("timeline", "Timeline", _timeline(scene if still else None)),
        ("roofline", "Roofline", roofline_html(scene.result)),
        ("scratchpads", "Scratchpads", scratchpads_html(scene)),
        ("dram", "DRAM traffic", dram_html(scene)),
        ("loops", "Loops", loops_text(scene) if still else LOOPS),
        ("instructions", "Instructions", _LISTING),
    ]
    scenes = Scenes((scene,))
    return {
        "title": title(scene),
        "facts": facts(scene),
        "sections": sections_data(sections),
        "chart": chart_data(scenes),
        "listing": _listing_data(scenes),
        "stages": stages(scene),
    }


def runs_view(scenes: Scenes) -> dict[str, Any]:
    """What of a view, as :func:`run_view` makes it, applies to several runs one behind the other.

    Args:
        scenes: the runs.
    """
    sections = [
        ("timeline", "Timeline", _timeline()),
        ("units", "Where the cycles went", units_html(scenes.seen)),
        ("instructions", "Instructions", _LISTING),
    ]
    return {
        "sections": sections_data(sections),
        "chart": chart_data(scenes),
        "listing": _listing_data(scenes),
        "stages": None,
    }


def _critical(scene: Scene) -> str:
    def linked(one: Segment) -> str:
        """An instruction's name, which leads to its line in the list."""
        index = one.instruction
        return "" if index is None else f'<a href="#i{index}">{index} {escape(scene.names[index])}</a>'

    return critical_html(scene.result.critical_path() or (), linked)


def _timeline(scene: Scene | None = None) -> str:
    """The chart and its tools; the chart as a picture, if there is a scene to draw."""
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
        + (f'<svg class="chart" {size}></svg>' if scene is None else chart_svg(scene, size=size, style=""))
        + f'<p class="hint">{hint}.</p>'
    )


_LISTING = """<p class="hint"><label>unit <select id="unit"><option value="">all</option></select></label>
<label>find <input id="find" type="search" placeholder="GEMM, A[0:64, acc 0.."></label>
<span id="count" class="faint"></span></p>
<div id="listing" tabindex="0"><div id="head"></div><div id="rows"></div></div>"""


def _listing_data(scenes: Scenes) -> dict[str, Any]:
    waits: dict[int, int] = defaultdict(int)
    for unit in Unit:
        if unit is not Unit.FETCH:
            for span in scenes.seen.spans[unit]:
                if span.state is State.TOKEN:
                    waits[span.instruction] += span.stop - span.start
    words, comments = list[list[str]](), list[str]()
    for part in scenes.parts:
        names, annotator = PlaceNames(part.image), Annotator(part.image)
        words += [format_instruction(one, names).split()[1:] for one in part.instructions]
        comments += [annotator.comment(n, one) for n, one in enumerate(part.instructions)]
    return {
        "fields": [" ".join(word for word in line if word[0] not in "<>") for line in words],
        "tokens": [" ".join(word for word in line if word[0] in "<>") for line in words],
        "comment": comments,
        "unit": [one.unit.label for one in scenes.instructions],
        "waits": [waits[n] for n in range(len(scenes.instructions))],
    }
