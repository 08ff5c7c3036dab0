"""The pipeline chart as SVG or HTML."""

from html import escape
from string import Template

from accel.core.config import NAMED
from accel.views.analyzed_run import AnalyzedRun
from accel.views.assets import asset, chart_script
from accel.views.html_page import html_page
from accel.views.pipeline_chart import CHART_WIDTH, chart_data, chart_height, packed
from accel.views.run_sequence import RunSequence
from accel.views.run_verdict import stop_reason
from accel.views.static_chart import legend, static_elements

_START_SCRIPT = Template(
    """accel.unpack(document.getElementById("data").textContent).then(data => {
  const chart = accel.chart(document.querySelector("svg.chart"), data, { fill: $fill });
  accel.connectTools(document, chart, index => chart.reveal(index));
});"""
)

_SVG = Template(
    """<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" aria-label="$title"
 viewBox="0 0 $width $height" $size>
<title>$title</title>
$style<g class="static">
$elements
</g>
<g class="legend">$legend</g>
$scripts</svg>
"""
)

_BODY = Template(
    """<header>
<h1>$title</h1>
<p>$facts</p>
<p class="hint tools">$tools</p>
<p class="hint">Wheel, or W and S: zoom. Drag, or A and D: move. Shift and drag: measure. 0: the whole run.
Point at any part for its name and cycles.</p>
</header>
$svg"""
)

_PAGE_STYLE = "body { padding-bottom: 12px; }\n"
"""Margin below the chart, so that the page does not scroll."""

_OMITTED_DEFAULTS: dict[str, object] = {
    "fold": True,
    "stride": [1, 1],
    "padding": [0, 0, 0, 0],
    "dilation": [1, 1],
    "groups": 1,
}
"""A title omits parameters with these values."""
_MAX_TITLE_VALUES = 8
"""A title has only the length of a longer list."""
_SIZES = ("kernel", "stride", "dilation")


def run_title(run: AnalyzedRun) -> str:
    """Return for example ``gemm M=64 N=64 K=64 on vta``, and why the run stopped early."""
    options = None if run.image.source is None else run.image.source.options
    name = run.name or "program"
    if options is not None and options.workload is not None:
        words = [
            _parameter_text(key, value)
            for key, value in options.to_data().items()
            if value != _OMITTED_DEFAULTS.get(key)
        ]
        name = " ".join([options.workload, *filter(None, words)])
    config = run.result.config
    machine = config.label if config.name in NAMED else f"{config.name} ({config.block_name})"
    reason = stop_reason(run)
    return f"{name} on {machine}" + (f": {reason}" if reason else "")


def _parameter_text(name: str, value: object) -> str:
    if isinstance(value, list) and len(value) > _MAX_TITLE_VALUES:
        return f"{name}=({len(value)} values)"
    if isinstance(value, list):
        all_equal = len(set(value)) == 1 and name != "clip"
        separator = "x" if name in _SIZES else ","
        return f"{name}={value[0] if all_equal else separator.join(map(str, value))}"
    if value is None or isinstance(value, bool | str):
        return name if value is True else ""
    if isinstance(value, float):  # float32 0.01 is 0.009999999776482582
        return f"{name}={value:.7g}"
    return f"{name}={value}"


def run_facts(run: AnalyzedRun) -> str:
    result = run.result
    facts = [f"{result.cycles:,} cycles", f"{len(result.instructions):,} instructions"]
    if result.error is not None:
        facts = [f"stopped in cycle {result.cycles:,}", f"{len(run.activity.slices):,} of {facts[1]} started"]
    if result.utilization is not None:
        facts.append(f"{result.utilization:.1%} of the GEMM core used")
    if result.config.serial:
        facts.append("serial")
    return ", ".join([*facts, f"backend {result.backend}", str(result.config)])


def chart_tools() -> str:
    buttons = "".join(
        f'<button data-zoom="{factor}">{text}</button>'
        for factor, text in (("0.5", "zoom in"), ("2", "zoom out"), ("0", "whole run"))
    )
    return (
        f'{buttons}<label>colour by <select data-colour><option value="kind">kind</option></select></label>'
        '<label>find <input data-search type="search" placeholder="GEMM, A[0:64, 17"></label>'
        '<span data-found class="faint" role="status"></span>'
    )


def chart_svg(run: AnalyzedRun, *, size: str, style: str = "", scripts: str = "") -> str:
    """``style`` and ``scripts`` are for charts without a page."""
    return _SVG.substitute(
        width=CHART_WIDTH,
        height=chart_height(run.activity),
        size=size,
        title=escape(f"{run_title(run)}: {run_facts(run)}"),
        style=f"<style>{style}</style>\n" if style else "",
        elements=static_elements(run),
        legend=legend(run),
        scripts=scripts,
    )


def timeline_svg(run: AnalyzedRun) -> str:
    """Return an SVG file, with zoom in a browser."""
    data = f'<script type="text/plain" id="data">{packed(chart_data(RunSequence((run,))))}</script>'
    script = f"<script><![CDATA[\n{chart_script()}\n{_START_SCRIPT.substitute(fill='false')}\n]]></script>\n"
    size = f'width="100%" height="{chart_height(run.activity)}"'
    return chart_svg(run, size=size, style=asset("chart.css"), scripts=data + "\n" + script)


def timeline_html(run: AnalyzedRun) -> str:
    title = run_title(run)
    size = f'width="100%" height="{chart_height(run.activity)}"'
    return html_page(
        title,
        _BODY.substitute(
            title=escape(title),
            facts=escape(run_facts(run)),
            tools=chart_tools(),
            svg=chart_svg(run, size=size),
        ),
        style=asset("page.css") + asset("chart.css") + _PAGE_STYLE,
        script=f"{chart_script()}\n{_START_SCRIPT.substitute(fill='true')}",
        data=packed(chart_data(RunSequence((run,)))),
    )
