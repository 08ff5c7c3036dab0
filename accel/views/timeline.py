"""The pipeline chart of a run in a file of its own, which one can zoom into."""

from html import escape
from string import Template

from accel.core.config import NAMED
from accel.views.assets import asset
from accel.views.chart import WIDTH, chart_data, height, packed
from accel.views.scene import Scene
from accel.views.scenes import Scenes
from accel.views.still import legend, still
from accel.views.verdict import stopped

_START = """accel.unpack(document.getElementById("data").textContent).then(data => {
  const chart = accel.chart(document.querySelector("svg.chart"), data);
  document.querySelectorAll("[data-zoom]").forEach(button => button.addEventListener("click", () => {
    const factor = Number(button.dataset.zoom);
    if (factor) chart.zoom(factor); else chart.show(0, chart.cycles);
  }));
});"""

_SVG = Template(
    """<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 $width $height" $size>
<title>$title</title>
<style>$style</style>
<g class="still">
$still
</g>
<g class="legend">$legend</g>
$scripts</svg>
"""
)

PAGE_HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
$style</style>
</head>
<body>
"""
"""How a page begins, up to its body; a template of ``title`` and ``style``."""

_PAGE = Template(
    PAGE_HEAD
    + """<header>
<h1>$title</h1>
<p>$facts</p>
<p class="hint"><button data-zoom="0.5">zoom in</button><button data-zoom="2">zoom out</button><button
data-zoom="0">whole run</button> or turn the wheel, drag, press + &minus; 0 &larr; &rarr;;
point at anything to see what it is.</p>
</header>
$svg<script type="text/plain" id="data">$data</script>
<script>
$script
$start
</script>
</body>
</html>
"""
)


def title(scene: Scene) -> str:
    """The program, the machine and what went wrong, in a few words."""
    options = None if scene.image.source is None else scene.image.source.options
    name = scene.name or "program"
    if options is not None and options.workload is not None:
        words = [_word(key, value) for key, value in options.to_data().items() if value != _USUAL.get(key)]
        name = " ".join([options.workload, *filter(None, words)])
    config = scene.result.config
    machine = config.label if config.name in NAMED else f"{config.name} ({config.block_name})"
    why = stopped(scene)
    return f"{name} on {machine}" + (f": {why}" if why else "")


_USUAL: dict[str, object] = {
    "fold": True,
    "stride": [1, 1],
    "padding": [0, 0, 0, 0],
    "dilation": [1, 1],
    "groups": 1,
}
"""Parameters of workloads that go without saying."""
_MOST = 8
"""Values that are written out."""
_SIZES = ("kernel", "stride", "dilation")
"""Those of two numbers that are written with an x, as on the command line."""


def _word(name: str, value: object) -> str:
    """A parameter of a workload; nothing if it is left at nothing."""
    if isinstance(value, list) and len(value) > _MOST:
        return f"{name}=({len(value)} values)"
    if isinstance(value, list):
        alike = len(set(value)) == 1 and name != "clip"
        between = "x" if name in _SIZES else ","
        return f"{name}={value[0] if alike else between.join(map(str, value))}"
    if value is None or isinstance(value, bool | str):
        return name if value is True else ""
    return f"{name}={value}"


def facts(scene: Scene) -> str:
    """The most important figures in one line."""
    result = scene.result
    known = [f"{result.cycles:,} cycles", f"{len(result.instructions):,} instructions"]
    if result.error is not None:
        known = [f"stopped in cycle {result.cycles:,}", f"{len(scene.seen.slices):,} of {known[1]} started"]
    if result.utilization is not None:
        known.append(f"{result.utilization:.1%} of the GEMM core used")
    if result.config.serial:
        known.append("serial")
    return ", ".join([*known, f"backend {result.backend}", str(result.config)])


def chart_svg(scene: Scene, *, size: str, style: str, scripts: str = "") -> str:
    """The picture of the whole run; scripts, in it or in the page around it, redraw it."""
    return _SVG.substitute(
        width=WIDTH,
        height=height(scene.seen),
        size=size,
        title=escape(f"{title(scene)}: {facts(scene)}"),
        style=style,
        still=still(scene),
        legend=legend(scene),
        scripts=scripts,
    )


def timeline_svg(scene: Scene) -> str:
    """The chart as an SVG file: a picture anywhere, and in a browser of its own one can zoom."""
    data = f'<script type="text/plain" id="data">{packed(chart_data(Scenes((scene,))))}</script>'
    script = f"<script><![CDATA[\n{asset('chart.js')}\n{_START}\n]]></script>\n"
    return chart_svg(
        scene,
        size=f'width="100%" height="{height(scene.seen)}"',
        style=asset("chart.css"),
        scripts=data + "\n" + script,
    )


def timeline_html(scene: Scene) -> str:
    """The chart as a page, with buttons."""
    return _PAGE.substitute(
        title=escape(title(scene)),
        facts=escape(facts(scene)),
        style=asset("page.css") + asset("chart.css"),
        svg=chart_svg(scene, size=f'style="width:100%;height:{height(scene.seen)}px"', style=""),
        data=packed(chart_data(Scenes((scene,)))),
        script=asset("chart.js"),
        start=_START,
    )
