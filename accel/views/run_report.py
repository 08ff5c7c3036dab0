"""The report of a run as a page or as data."""

from collections import defaultdict
from collections.abc import Mapping
from html import escape
from string import Template
from typing import Any

from accel.assembly.instruction_comments import Annotator
from accel.assembly.symbolic_names import PlaceNames
from accel.core.isa import Unit, format_instruction
from accel.core.unit_states import State
from accel.run.critical_path import Segment
from accel.views.analyzed_run import AnalyzedRun
from accel.views.assets import view_script
from accel.views.critical_path_section import advice_html, critical_path_html
from accel.views.html_page import html_page
from accel.views.loop_listing import STAGES_PLACEHOLDER, loops_html, stages_data
from accel.views.memory_sections import dram_html, scratchpads_html
from accel.views.page_sections import page_style, sections_data, sections_html
from accel.views.pipeline_chart import chart_data, packed
from accel.views.report_overview import figures_html, units_html, verdict_html
from accel.views.roofline import roofline_html
from accel.views.run_sequence import RunSequence
from accel.views.timeline_page import chart_svg, chart_tools, run_facts, run_title

_BODY = Template(
    """<main id="view">
<header>
<button id="theme" title="light or dark">&#9681;</button>
<h1>$title</h1>
<p>$facts</p>
<nav>$links</nav>
</header>
$sections
</main>"""
)
_START_SCRIPT = """
accel.unpack(document.getElementById("data").textContent).then(view =>
  accel.view(document.getElementById("view"), view, { address: true }));
"""
_LISTING = """<p class="hint"><label>unit <select id="unit"><option value="">all</option></select></label>
<label>find <input id="find" type="search" placeholder="GEMM, A[0:64, acc 0.."></label>
<span id="count" class="faint"></span></p>
<div id="listing" tabindex="0"><div id="head"></div><div id="rows"></div></div>"""


def report_html(run: AnalyzedRun) -> str:
    return view_page(run_view(run, is_static=True))


def view_page(view: Mapping[str, Any]) -> str:
    """Return a page of a :func:`run_view`."""
    links, sections = sections_html((one["name"], one["heading"], one["html"]) for one in view["sections"])
    body = _BODY.substitute(
        title=escape(view["title"]), facts=escape(view["facts"]), links=links, sections=sections
    )
    return html_page(
        view["title"],
        body,
        style=page_style(),
        script=view_script() + _START_SCRIPT,
        data=packed({**view, "sections": []}),
    )


def module() -> str:
    """Return ``accel.view`` as an ES module."""
    return f"{view_script()}export default accel;\n"


def run_view(run: AnalyzedRun, *, is_static: bool = False) -> dict[str, Any]:
    """Return plain data for ``accel.view``.

    With ``is_static``, sections have chart and loops for readers without scripts.

    Returns:
        ``title``, ``facts``, ``sections``, and the interactive ``chart``, ``listing`` (instructions) and
        ``stages`` (loops).
    """
    sections = [
        ("verdict", "Verdict", verdict_html(run)),
        ("figures", "Figures", figures_html(run)),
        ("units", "Where the cycles went", units_html(run.activity)),
        ("critical", "Critical path", _critical(run)),
        *([] if run.advised is None else [("advice", "What would help", advice_html(run.advised))]),
        ("timeline", "Timeline", _timeline(run if is_static else None)),
        ("roofline", "Roofline", roofline_html(run.result)),
        ("scratchpads", "Scratchpads", scratchpads_html(run)),
        ("dram", "DRAM traffic", dram_html(run)),
        ("loops", "Loops", loops_html(run) if is_static else STAGES_PLACEHOLDER),
        ("instructions", "Instructions", _LISTING),
    ]
    sequence = RunSequence((run,))
    return {
        "title": run_title(run),
        "facts": run_facts(run),
        "sections": sections_data(sections),
        "chart": chart_data(sequence),
        "listing": _listing_data(sequence),
        "stages": stages_data(run),
    }


def sequence_view(sequence: RunSequence) -> dict[str, Any]:
    sections = [
        ("timeline", "Timeline", _timeline()),
        ("units", "Where the cycles went", units_html(sequence.activity)),
        ("instructions", "Instructions", _LISTING),
    ]
    return {
        "sections": sections_data(sections),
        "chart": chart_data(sequence),
        "listing": _listing_data(sequence),
        "stages": None,
    }


def _critical(run: AnalyzedRun) -> str:
    def instruction_link(one: Segment) -> str:
        index = one.instruction
        return "" if index is None else f'<a href="#i{index}">{index} {escape(run.names[index])}</a>'

    return critical_path_html(run.result.known_path or (), instruction_link)


def _timeline(run: AnalyzedRun | None = None) -> str:
    hint = (
        "Ctrl and wheel: zoom. Drag: move. Shift and drag: measure. Click: show an instruction in the list."
    )
    size = 'width="100%" tabindex="0"'
    chart = (
        f'<svg class="chart" role="img" aria-label="timeline" {size}></svg>'
        if run is None
        else chart_svg(run, size=size)
    )
    return f'<p class="hint tools">{chart_tools()}</p>{chart}<p class="hint">{hint}</p>'


def _listing_data(sequence: RunSequence) -> dict[str, Any]:
    waits: dict[int, int] = defaultdict(int)
    for unit in Unit:
        if unit is not Unit.FETCH:
            for span in sequence.activity.spans[unit]:
                if span.state is State.TOKEN:
                    waits[span.instruction] += span.stop - span.start
    words, comments = list[list[str]](), list[str]()
    for run in sequence.runs:
        names, annotator = PlaceNames(run.image), Annotator(run.image)
        words += [format_instruction(one, names).split()[1:] for one in run.instructions]
        comments += [annotator.comment(n, one) for n, one in enumerate(run.instructions)]
    return {
        "fields": [" ".join(word for word in line if word[0] not in "<>") for line in words],
        "tokens": [" ".join(word for word in line if word[0] in "<>") for line in words],
        "comment": comments,
        "unit": [one.unit.label for one in sequence.instructions],
        "waits": [waits[n] for n in range(len(sequence.instructions))],
    }
