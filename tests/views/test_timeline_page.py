"""The pipeline chart: as a picture, in a browser, as text."""

import base64
import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import accel
from accel.base.errors import AccelError, LimitExceeded, ProgramError
from accel.core.events import EventKind
from accel.core.isa import Unit
from accel.views import Report, Timeline, Trace
from accel.views.activity_records import State
from accel.views.analyzed_run import analyze_run
from accel.views.pipeline_chart import chart_data, packed
from accel.views.run_sequence import RunSequence
from accel.views.state_shares import state_shares
from accel.views.text_timeline import MOST_ROWS, timeline_text
from accel.views.timeline_page import run_title, timeline_svg
from tests.expect import refused
from tests.programs import gemm_program
from tests.thorough import also, diagonal
from tests.views.runs import look, many, result

NAME = "{http://www.w3.org/2000/svg}"


# --- shares ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("bins", [1, 7, 500, 2000])
def test_shares_are_the_cycles_in_each_state(bins: int) -> None:
    seen = look().activity
    for unit in Unit:
        spans = seen.spans[unit]
        exact = np.zeros((seen.cycles, len(State)))
        for span in spans:
            exact[span.start : span.stop, span.state] = 1
        found = state_shares(spans, 0, seen.cycles, bins)
        assert found.sum(axis=1) == pytest.approx(np.ones(bins))
        assert found.sum(axis=0) * seen.cycles / bins == pytest.approx(exact.sum(axis=0))
        whole = state_shares(spans, 0, seen.cycles, seen.cycles)
        assert whole == pytest.approx(exact)


# --- files -----------------------------------------------------------------------------------------


def test_the_title_has_the_words_of_the_command_line() -> None:
    workload = accel.conv2d(
        1, 2, 4, 4, 2, (3, 2), padding=(1, 0, 2, 1), stride=(1, 2), shift=3, clip=(0, 127), relu=True
    )
    found = accel.build(workload, "tiny").run()
    assert run_title(analyze_run(found)) == (
        "conv2d N=1 IC=2 H=4 W=4 OC=2 kernel=3x2 stride=1x2 padding=1,0,2,1 relu shift=3 clip=0,127 on tiny"
    )


def test_a_scale_in_the_title_is_the_number_that_was_given() -> None:
    workload = accel.gemm(4, 4, 4, quantized=accel.Quantized(scale=0.01))
    found = accel.build(workload, "tiny-int8").run()
    assert " scale=0.01 " in run_title(analyze_run(found))


def test_without_scripts_the_chart_is_a_picture() -> None:
    found = look()
    root = ElementTree.fromstring(timeline_svg(found))
    static = next(g for g in root.iter(f"{NAME}g") if g.get("class") == "static")
    titles = [t.text or "" for t in static.iter(f"{NAME}title")]
    assert sorted(int(t[1 : t.index(" ")]) for t in titles) == list(range(len(found.instructions)))
    assert len([p for p in static.iter(f"{NAME}path") if "arrow" in (p.get("class") or "")]) == len(
        found.activity.flows
    )
    width = float(root.get("viewBox", "").split()[2])
    for rect in static.iter(f"{NAME}rect"):
        assert 0 <= float(rect.get("x", 0)) <= float(rect.get("x", 0)) + float(rect.get("width", 0)) <= width


def test_a_long_run_shows_shares_where_instructions_are_too_narrow() -> None:
    root = ElementTree.fromstring(timeline_svg(analyze_run(many())))
    static = next(g for g in root.iter(f"{NAME}g") if g.get("class") == "static")
    assert len(list(static.iter())) < 1500
    assert {p.get("class") for p in static.iter(f"{NAME}path")} >= {"busy", "token"}
    legend = next(g for g in root.iter(f"{NAME}g") if g.get("class") == "legend")
    shown = {r.get("class", "").split()[-1] for r in static.iter(f"{NAME}rect")}
    assert {r.get("class") for r in legend.iter(f"{NAME}rect")} - {"busy", "memory", "token"} <= shown


def test_a_sequence_of_runs_has_the_activity_of_its_runs() -> None:
    one, two = parts = look(), look(16, 16, 16)
    both = RunSequence(parts)
    cycle, first = one.activity.cycles, len(one.instructions)
    assert both.begins == [0, first]
    assert both.activity.cycles == cycle + two.activity.cycles
    for unit in Unit:
        spans = both.activity.spans[unit]
        assert [span.start for span in spans] == [0, *(span.stop for span in spans[:-1])]
        whole, *halves = (seen.activity.unit_cycles(unit) for seen in (both, *parts))
        assert whole.busy == sum(half.busy for half in halves)
    later = both.activity.slices[len(one.activity.slices) :]
    assert [(s.instruction - first, s.start - cycle, s.stop - cycle) for s in later] == [
        (s.instruction, s.start, s.stop) for s in two.activity.slices
    ]
    unit_of = [one.unit for one in both.instructions]
    assert all(unit_of[f.source] is f.counter.source for f in both.activity.flows)
    path = list(both.critical_path())
    assert [step.start for step in path] == [0, *(step.stop for step in path[:-1])]
    assert path[-1].stop == both.activity.cycles
    assert {unit_of[step.instruction].label for step in path if step.instruction is not None} <= {
        step.unit for step in path
    }


def test_the_chart_data_is_the_run() -> None:
    found = look()
    text = packed(chart_data(RunSequence((found,))))
    data: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(text)))
    assert data["cycles"] == found.result.cycles
    assert [data["names"][n] for n in data["name"]] == found.names
    assert found.result.events is not None
    started = {(e.instruction, e.cycle) for e in found.result.events if e.kind is EventKind.START}
    drawn = set()
    for track in data["tracks"]:
        index, start = np.cumsum(track["slices"]["index"]), np.cumsum(track["slices"]["start"])
        drawn |= set(zip(index.tolist(), start.tolist(), strict=True))
        assert sum(track["spans"]["length"]) == data["cycles"]
    assert drawn == started
    assert len(data["flows"]["source"]) == len(found.activity.flows)


def test_files_load_nothing() -> None:
    for suffix in (".svg", ".html"):
        text = Timeline(result())._content(suffix).decode()
        links = re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?([^"')\s>]+)""", text)
        assert [link for link in links if not link.startswith("#")] == []


# --- in a browser ----------------------------------------------------------------------------------


def count(page: Any, selector: str) -> int:
    return int(page.evaluate(f"document.querySelectorAll('{selector}').length"))


STATES = ["busy", "waits for memory", "waits for token"]
PATH = ["critical path: fetch", "load", "compute", "store"]
KINDS_OF_A_PRODUCT = ["LOAD, STORE", "GEMM", "tokens only, FINISH"]


def legend_of(page: Any) -> list[str]:
    return list(page.evaluate("[...document.querySelectorAll('text.key')].map(e => e.textContent)"))


def settle(page: Any) -> None:
    """Wait until the chart is redrawn."""
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


@pytest.mark.browser
@pytest.mark.parametrize(("width", "height"), [(1366, 720), also(1366, 750), also(1366, 768), (500, 800)])
def test_the_page_fills_the_window_and_does_not_scroll(
    width: int, height: int, tmp_path: Path, opened: Callable[..., Any]
) -> None:
    """In a narrow window, the text below the legend takes several lines."""
    Timeline(result()).save(tmp_path / "t.html")
    page = opened(tmp_path / "t.html", width=width, height=height)
    page.wait_for_selector("g.slice")
    assert page.evaluate("document.documentElement.scrollHeight") == height
    assert page.evaluate("document.querySelector('svg.chart').getBoundingClientRect().bottom") > height - 16


@pytest.mark.browser
@pytest.mark.parametrize(("suffix", "dark"), diagonal((".svg", ".html"), (False, True)))
def test_a_small_run_is_drawn_in_full(
    suffix: str, dark: bool, tmp_path: Path, opened: Callable[..., Any]
) -> None:
    path = tmp_path / f"t{suffix}"
    Timeline(result()).save(path)
    page = opened(path, dark=dark)
    page.wait_for_selector("g.slice")
    assert count(page, ".static") == 0
    assert count(page, "g.slice") == len(result().instructions)
    assert count(page, "path.arrow.RAW") + count(page, "path.arrow.WAR") == len(look().activity.flows) + 2
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert legend_of(page) == [*KINDS_OF_A_PRODUCT, *STATES, "RAW token", "WAR token", *PATH]
    ground = page.evaluate("getComputedStyle(document.querySelector('svg.chart')).backgroundColor")
    assert ground == ("rgb(21, 25, 30)" if dark else "rgb(255, 255, 255)")


@pytest.mark.browser
@pytest.mark.parametrize("suffix", [also(".svg"), ".html"])
def test_a_long_run_can_be_zoomed_into(suffix: str, tmp_path: Path, opened: Callable[..., Any]) -> None:
    path = tmp_path / f"t{suffix}"
    Timeline(many()).save(path)
    page = opened(path)
    page.wait_for_selector("path.arrow")  # as much of the run as has its arrows drawn
    assert count(page, "rect.window") == 1
    page.keyboard.press("0")
    settle(page)
    page.wait_for_selector("path.busy")
    assert count(page, "g.slice") < 300
    assert "GEMM" not in legend_of(page)
    assert set(STATES) <= set(legend_of(page))
    page.mouse.move(700, 300)
    for _ in range(12):
        page.mouse.wheel(0, -100)
    settle(page)
    near = count(page, "g.slice")
    assert 0 < near < 300
    assert "GEMM" in legend_of(page)
    assert count(page, "text.label") > 0
    assert count(page, "path.arrow") > 2
    assert count(page, "rect.window") == 1
    for key in "sa":
        page.keyboard.press(key)
    settle(page)
    assert count(page, "g.slice") > near
    page.keyboard.press("0")
    settle(page)
    assert count(page, "rect.window") == 0


@pytest.mark.browser
def test_a_page_has_tools_and_fills_the_window(tmp_path: Path, opened: Callable[..., Any]) -> None:
    path = tmp_path / "t.html"
    Timeline(result()).save(path)
    page = opened(path)
    page.wait_for_selector("g.slice")
    bottom = page.evaluate("document.querySelector('svg.chart').getBoundingClientRect().bottom")
    assert 0.8 * page.viewport_size["height"] < bottom <= page.viewport_size["height"]
    page.fill("[data-search]", "GEMM")
    assert page.text_content("[data-found]").endswith("found, Enter for the next")
    page.keyboard.press("Enter")
    page.wait_for_selector("rect.chosen")
    assert page.text_content("text.note").startswith("#")
    page.select_option("[data-colour]", "tensor")
    assert page.get_attribute("svg.chart", "aria-label").startswith("gemm M=")


@pytest.mark.browser
def test_a_click_describes_the_instruction(tmp_path: Path, opened: Callable[..., Any]) -> None:
    path = tmp_path / "t.html"
    Timeline(result()).save(path)
    page = opened(path)
    page.wait_for_selector("g.slice")
    page.click("g.slice[data-index='3'] rect.stay")
    settle(page)
    start = next(one for one in look().activity.slices if one.instruction == 3)
    note = page.text_content("text.note")
    assert note.startswith(f"#3 {look().names[3]}: cycles {start.start:,}")
    assert count(page, "rect.chosen") == 1


@pytest.mark.browser
def test_arrows_are_clipped_at_the_tracks(tmp_path: Path, opened: Callable[..., Any]) -> None:
    """They once crossed the names of the units."""
    path = tmp_path / "t.html"
    Timeline(result()).save(path)
    page = opened(path)
    page.wait_for_selector("g.slice")
    page.click("g.slice[data-index='3'] rect.stay")  # its arrows are drawn even outside the visible part
    lefts: list[float] = []
    for key in [*"+++", *["ArrowRight"] * 5]:
        page.keyboard.press(key)
        settle(page)
        lefts += page.evaluate(
            "[...document.querySelectorAll('svg.arrows path.arrow')].map(e => e.getBBox().x)"
        )
        cut = page.evaluate(
            """[...document.querySelectorAll('svg.arrows')].map(
                e => [getComputedStyle(e).overflow, e.x.baseVal.value])"""
        )
        names = page.evaluate(
            """Math.max(...[...document.querySelectorAll('text.unit')].map(
                e => e.getBBox().x + e.getBBox().width))"""
        )
        assert [(overflow, left >= names) for overflow, left in cut] == [("hidden", True)]
    assert min(lefts) < 0, "no arrow came from outside"


@pytest.mark.browser
@pytest.mark.parametrize(
    ("suffix", "width"),
    [
        (".svg", 360),
        also(".svg", 500),
        also(".svg", 1366),
        also(".html", 360),
        also(".html", 500),
        (".html", 1366),
    ],
)
def test_words_are_never_cut(suffix: str, width: int, tmp_path: Path, opened: Callable[..., Any]) -> None:
    """Notes and legends take the lines that they need, also in a narrow window."""
    with pytest.raises(LimitExceeded) as stopped:
        gemm_program(24, 24, 32).run(max_cycles=700)
    assert stopped.value.result is not None
    for name, run in (("many", many()), ("stopped", stopped.value.result)):
        path = tmp_path / f"{name}{suffix}"
        Timeline(run).save(path)
        page = opened(path, width=width)
        page.wait_for_selector("text.key")
        if name == "stopped":
            page.click("g.slice rect.stay")
            settle(page)
            assert page.text_content("text.stop") == f"limit at {str(stopped.value).split(' (')[0]}"
        else:
            page.keyboard.press("0")
            settle(page)
        assert page.text_content("text.note")
        whole = page.evaluate(
            "[innerWidth, document.querySelector('svg.chart').getBoundingClientRect().bottom]"
        )
        for words in ("text.note", "text.stop", "text.key"):
            boxes = page.evaluate(
                f"""[...document.querySelectorAll('{words}')].map(e => e.getBoundingClientRect()).map(
                    b => [b.left, b.right, b.bottom])"""
            )
            for left, right, bottom in boxes:
                assert left >= 0
                assert right <= whole[0]
                assert bottom <= whole[1] + 1
        boxes = page.evaluate(
            """[...document.querySelectorAll('text.note tspan, text.stop, text.key')].map(
                e => e.getBoundingClientRect()).map(b => [b.left, b.top, b.right, b.bottom])"""
        )
        for n, (left, top, right, bottom) in enumerate(boxes):
            for a, b, c, d in boxes[n + 1 :]:
                assert right <= a or c <= left or bottom <= b + 3 or d <= top + 3, "words on words"


# --- as text ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [40, 72, 100, 300])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_text_keeps_to_its_columns(columns: int, ascii_only: bool) -> None:
    text = timeline_text(look(), columns=columns, ascii_only=ascii_only)
    legend = [line for line in text.splitlines() if " busy " in line or "a column is" in line]
    assert len(legend) == 2
    assert all(len(line) <= columns for line in text.splitlines() if line not in legend)
    assert text.isascii() or not ascii_only


def test_text_of_a_short_run_has_a_line_for_each_instruction() -> None:
    found = look(8, 8, 8)
    count = len(found.instructions)
    assert count <= MOST_ROWS
    lines = timeline_text(found, columns=9 + found.activity.cycles, ascii_only=True).splitlines()
    rows = lines[-count:]
    for index, row in enumerate(rows):
        one = next(s for s in found.activity.slices if s.instruction == index)
        assert row.startswith(one.unit.label)
        bar = row[9 + one.start : 9 + one.stop]
        assert set(bar) <= {"#", "-"}
        assert bar.count("#") == one.work_stop - one.work_start
        assert f"{index} {found.instructions[index].mnemonic}"[:8] in row


def test_text_of_units_shows_the_most_frequent_state() -> None:
    found = look(8, 8, 8)
    lines = timeline_text(found, columns=9 + found.activity.cycles, ascii_only=True).splitlines()
    glyphs = {"#": State.BUSY, "m": State.MEMORY, ".": State.TOKEN, " ": State.IDLE}
    for unit, line in zip(Unit, lines[1:5], strict=True):
        drawn = line[9:].ljust(found.activity.cycles)
        for span in found.activity.spans[unit]:
            assert {glyphs[c] for c in drawn[span.start : span.stop]} == {span.state}


def test_text_of_a_long_run_is_short() -> None:
    assert len(str(Timeline(many())).splitlines()) == 7


def test_a_notebook_gets_the_page() -> None:
    assert "<iframe" in Timeline(result())._repr_html_()


@pytest.mark.parametrize("picture", [Report, Timeline, Trace])
def test_a_run_without_time_has_no_picture(picture: type[Report | Timeline | Trace]) -> None:
    functional = gemm_program().run(backend="functional")
    with refused(
        AccelError,
        f"the backend of a {picture.what} is 'functional', which does not simulate time; use 'sim' or 'rtl'",
    ):
        picture(functional)


def test_the_name_of_a_file_says_what_it_is(tmp_path: Path) -> None:
    with refused(AccelError, "the timeline is to be written to 't.png'; the name must end in .svg or .html"):
        Timeline(result()).save("t.png")
    with refused(ProgramError, f"'{tmp_path}/x/t.svg' cannot be written: there is no folder '{tmp_path}/x'"):
        Timeline(result()).save(tmp_path / "x" / "t.svg")
