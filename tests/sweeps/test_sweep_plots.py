"""Plots show the values of the table."""

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from accel.base.errors import SweepError
from accel.sweeps import Plot, Table

pytest.importorskip("matplotlib")

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"

ROWS = [
    {"read_latency": x, "vthreads": v, "utilization": 0.1 * v * x / 8, "bound": 0.9, "a": x, "b": v}
    for v in (1, 2)
    for x in (8, 2, 4)
]
TABLE = Table([*ROWS, {**ROWS[0], "utilization": None}])


def lines(**attributes: Any) -> dict[str, tuple[list[float], list[float]]]:
    plot = Plot(**{"x": "read_latency", "y": ("utilization",), **attributes})
    (axes,) = TABLE.draw(plot).axes
    return {line.get_label(): tuple(map(list, line.get_data())) for line in axes.get_lines()}


def test_a_line_for_each_value_in_order_of_x() -> None:
    found = lines(by=("vthreads",))
    assert list(found) == ["V = 1", "V = 2"]
    assert found["V = 2"] == ([2, 4, 8], pytest.approx([0.05, 0.1, 0.2]))


def test_some_rows_only() -> None:
    assert list(lines(by=("vthreads",), only={"vthreads": 2})) == ["V = 2"]
    assert lines(only={"vthreads": [1], "read_latency": [2, 4]})["utilization of the GEMM core"][0] == [2, 4]


def test_the_roof_is_a_line_of_its_own() -> None:
    (axes,) = TABLE.draw(Plot(x="read_latency", y=("utilization",), by=("vthreads",), roof="bound")).axes
    assert [list(one.get_ydata()) for one in axes.get_lines()].count([0.9] * 3) == 2


def test_bars_are_stacked() -> None:
    (axes,) = TABLE.draw(Plot(kind="bars", x="vthreads", y=("a", "b"), only={"read_latency": 8})).axes
    spans = [(bar.get_x(), bar.get_width()) for group in axes.containers for bar in group]
    assert spans == [(0, 8), (0, 8), (0, 8), (8, 1), (8, 2), (8, 1)]


def test_the_same_table_gives_the_same_file() -> None:
    plot = Plot(x="read_latency", y=("utilization",), by=("vthreads",), xscale="log2", title="T")
    content = TABLE.svg(plot)
    assert content == TABLE.svg(plot)
    assert content.startswith(b"<?xml")
    assert b"http" not in content.split(b"</metadata>")[1].replace(b"http://www.w3.org", b"")


def test_a_plot_follows_the_colour_scheme_of_its_page() -> None:
    """The background is transparent; colours that only one scheme can show have a second value."""
    bars = Plot(kind="bars", x="vthreads", y=("a", "b"), only={"read_latency": 8}, title="T")
    for plot in (Plot(x="read_latency", y=("utilization",), by=("vthreads",), roof="bound"), bars):
        root = ElementTree.fromstring(TABLE.svg(plot))
        style = next(root.iter(f"{SVG}style")).text or ""
        light, dark = style.split("@media (prefers-color-scheme: dark)")
        replaced = dict(re.findall(r'\[style\*="(\w+: #\w+)"\] {(\w+: #\w+) !important}', dark))
        assert "#" not in light
        drawn = {one for node in root.iter() for one in re.findall(r"\w+: #\w+", node.get("style", ""))}
        assert drawn
        for one in drawn:
            assert contrast(one, "#ffffff") > 1.2, one
            assert contrast(replaced.get(one, one), "#15191e") > 1.2, one
        texts = [node for node in root.iter(f"{SVG}g") if (node.get("id") or "").startswith("text_")]
        assert texts
        for text in texts:
            (colour,) = re.findall(r"fill: #\w+", text[0].get("style", ""))
            assert contrast(colour, "#ffffff") > 12
            assert contrast(replaced[colour], "#15191e") > 12


def contrast(style: str, ground: str) -> float:
    """The contrast of two colours by the WCAG guidelines: 1 to 21."""
    low, high = sorted(map(luminance, (style[-7:], ground)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(a * b for a, b in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize(
    "path", sorted((ROOT / "docs" / "experiments").glob("*.svg")), ids=lambda path: path.name
)
def test_plots_in_the_documentation_have_the_current_style(path: Path) -> None:
    new = TABLE.svg(Plot(x="read_latency", y=("utilization",))).decode()
    style = re.compile("<style.*?</style>", re.DOTALL)
    assert style.findall(path.read_text(encoding="utf-8")) == style.findall(new)
    assert "#ffffff" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"x": "latency"}, "'latency' is not a column; did you mean 'read_latency'"),
        ({"kind": "lines"}, "a plot's kind is 'lines'; did you mean 'line'"),
        ({"xscale": "log3"}, "a plot's xscale is 'log3'; did you mean 'log"),
        ({"only": {"vthreads": 3}}, "there is nothing to draw: no row has utilization"),
    ],
)
def test_impossible_plots_are_refused(attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(SweepError) as error:
        lines(**attributes)
    assert message in str(error.value)


def test_tables_draw_themselves() -> None:
    (axes,) = TABLE.plot("read_latency", "utilization", "vthreads", title="mine").axes
    assert axes.get_title(loc="left") == "mine"
    with pytest.raises(SweepError, match="a plot has 'titel'; did you mean 'title'"):
        TABLE.plot("read_latency", "utilization", titel="mine")
