"""The report: its figures compared with the run's, and its pages in a browser."""

import base64
import gzip
import json
import re
from collections.abc import Callable, Sequence
from html import escape
from html.parser import HTMLParser
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel.base.errors import DeadlockError
from accel.base.records import replace
from accel.core.events import EventKind
from accel.core.isa import Unit
from accel.network.digits import digits_network
from accel.network.network_report import NetworkReport
from accel.run.critical_path import shares
from accel.run.machine_advice import Advice, AdviceReport, SoftwareAdvice
from accel.run.replay import load_any
from accel.views import Report
from accel.views.analyzed_run import AnalyzedRun, analyze_run
from accel.views.dram_traffic import INSTRUCTIONS, dram_traffic
from accel.views.html_tables import size_text
from accel.views.roofline import roofline
from accel.views.run_report import report_html
from accel.views.scratchpad_occupancy import listed_scratchpads, occupancy, peaks
from tests.thorough import also
from tests.views.runs import EPILOGUES, from_text, look, many, result
from tests.views.test_timeline_page import count, settle

PROGRAMS = Path(__file__).parents[1] / "programs"
SIZES = [(24, 24, 32), (3, 9, 5), (17, 23, 9)]


# --- scratchpads -----------------------------------------------------------------------------------


def stepwise(analyzed: AnalyzedRun, name: str) -> np.ndarray:
    """Occupied elements in each cycle, computed element by element."""
    depth = getattr(analyzed.image.config, f"{name}_depth")
    inside = np.zeros((analyzed.activity.cycles + 1, depth), dtype=bool)
    filled: list[int | None] = [None] * depth
    needed: list[int | None] = [None] * depth
    for one in analyzed.activity.slices:
        here = [t for t in analyzed.touches[one.instruction] if t.memory == name]
        indices = {
            w: {e for t in here if t.write is w for e in np.arange(depth)[t.elements]} for w in (True, False)
        }
        for e in indices[False]:
            filled[e] = 0 if filled[e] is None else filled[e]
            needed[e] = max(needed[e] or 0, one.stop)
            inside[filled[e] : needed[e], e] = True
        if not indices[False]:
            for e in indices[True]:
                filled[e], needed[e] = one.start, None
    return inside.sum(axis=1)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("serial", [0, 1])
def test_an_element_is_occupied_until_its_last_read(sizes: tuple[int, int, int], serial: int) -> None:
    check_occupancy(look(*sizes, timing=(("serial", serial),), bias=True), unused=())


def test_occupancy_of_par_and_res() -> None:
    check_occupancy(from_text(EPILOGUES), unused=("inp", "wgt", "uop"))


def check_occupancy(analyzed: AnalyzedRun, unused: Sequence[str]) -> None:
    """Compare levels element by element, and the peaks of parts of the run."""
    found = occupancy(analyzed.touches, analyzed.activity.slices, analyzed.image.config)
    for name in listed_scratchpads(analyzed.image.config):
        exact = stepwise(analyzed, name)
        levels = np.zeros(analyzed.activity.cycles + 1, dtype=int)
        for cycle, level in found[name]:
            levels[cycle:] = level
        assert (levels == exact).all(), name
        assert (exact.max() == 0) == (name in unused)
        for bins in (1, 10, 333):
            edges = [n * analyzed.activity.cycles / bins for n in range(bins + 1)]
            high = peaks(found[name], analyzed.activity.cycles, bins)
            inner = [exact[int(np.ceil(a)) : int(np.floor(b))] for a, b in pairwise(edges)]
            assert all(level >= part.max() for level, part in zip(high, inner, strict=True) if len(part))
            assert max(high) == exact.max()


# --- traffic ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", SIZES)
def test_traffic_adds_up(sizes: tuple[int, int, int]) -> None:
    analyzed = look(*sizes, bias=True)
    found = {one.name: one for one in dram_traffic(analyzed)}
    assert {"A", "B", "bias", "C", INSTRUCTIONS} <= set(found)
    run = analyzed.result
    assert sum(one.read for one in found.values()) == run.load_bytes + run.bytes_by_kind["instructions"]
    assert sum(one.written for one in found.values()) == run.store_bytes
    assert run.events is not None
    lasts = [e for e in run.events if e.kind is EventKind.BURST_LAST]
    assert sum(one.bus for one in found.values()) == sum(e.value for e in lasts) * run.config.bus_bytes
    assert sum(one.bursts for one in found.values()) == len(lasts)
    assert all(one.bus >= one.moved for one in found.values())
    tensors = {t.name: t for t in analyzed.image.tensors}
    for name, tensor in tensors.items():
        assert found[name].size == tensor.nbytes
        assert found[name].moved >= prod(tensor.layout.shape)


# --- roofline --------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [*SIZES, (64, 64, 64)])
@pytest.mark.parametrize("config", ["tiny", "gemm8x8"])
def test_no_run_is_above_the_roof(sizes: tuple[int, int, int], config: str) -> None:
    run = result(*sizes, config=config)
    line = roofline(run)
    assert line is not None
    assert line.macs == prod(sizes)
    assert line.macs_per_cycle <= line.roof(line.intensity) <= line.roof(line.max_intensity or 0) <= line.peak
    assert line.macs_per_cycle / line.roof(line.max_intensity or 0) == pytest.approx(run.roofline_fraction)


def test_without_expression_micro_ops_are_counted() -> None:
    analyzed = from_text(
        """
        .config tiny
        .dram 0x2000
        .uop 0,0,0 1,1,1
        LOAD.UOP  dram_base=2048 y_size=1 x_size=2
        LOAD.INP  dram_base=0 y_size=1 x_size=2 x_stride=2
        LOAD.WGT  dram_base=0 y_size=1 x_size=2 x_stride=2 >compute
        GEMM      reset=1 uop_end=2
        GEMM      uop_end=2 iter_out=3 <load
        FINISH
        """
    )
    line = roofline(analyzed.result)
    assert line is not None
    assert not line.is_exact
    assert line.macs == 6 * analyzed.image.config.macs_per_cycle
    assert "counted from the GEMM micro-ops" in report_html(analyzed)


def test_without_products_there_is_no_roofline() -> None:
    analyzed = from_text(".config tiny\nFINISH")
    assert roofline(analyzed.result) is None
    page = report_html(analyzed)
    assert "multiplies nothing" in page
    assert "holds no tensor expression" in page


# --- the page --------------------------------------------------------------------------------------


class Tags(HTMLParser):
    """Identifiers, links, and whether every element is closed."""

    VOID = ("meta", "input", "br", "rect", "path", "circle")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "src"):
                self.links.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


def test_the_page_is_well_formed_and_loads_nothing() -> None:
    page = report_html(look())
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert len(set(tags.ids)) == len(tags.ids)
    lines = {
        f"i{number}" for number in range(len(look().instructions))
    }  # a script fills the instruction list
    assert {link[1:] for link in tags.links} <= {*tags.ids, *lines}
    assert all(link.startswith("#") for link in tags.links)
    assert re.findall(r"https?://(?!www\.w3\.org)", page) == []


def test_the_page_has_the_figures_of_the_run() -> None:
    analyzed = look()
    page = report_html(analyzed)
    found = analyzed.result.to_dict()
    for text in (f"{found['cycles']:,}", f"{found['utilization']:.1%}", f"{found['roofline_fraction']:.1%}"):
        assert f">{text}<" in page
    for unit in Unit:
        busy = analyzed.activity.unit_cycles(unit).busy
        assert f"<title>{unit.label}: busy, {busy:,} cycles" in page
    assert "right" in page
    path = analyzed.result.critical_path()
    assert path is not None
    for cause in shares(path)[:3]:
        assert escape(cause.cause.label) in page
        assert f">{cause.cycles:,}<" in page
    for stage in ("naive loops", "scheduled", "tensorized", "virtual threads"):
        assert f"<summary>{stage}</summary>" in page
    match = re.search(r'id="data">([^<]+)<', page)
    assert match is not None
    listing = json.loads(gzip.decompress(base64.b64decode(match[1])))["listing"]
    assert analyzed.result.stalls is not None
    waits = sum(c.token_stall for unit, c in analyzed.result.stalls.items() if unit != "fetch")
    assert sum(listing["waits"]) == waits > 0
    assert {len(column) for column in listing.values()} == {len(analyzed.instructions)}


def test_a_wrong_result_is_reported() -> None:
    analyzed = look()
    wrong = replace(analyzed, result=replace(analyzed.result, mismatches=3))
    assert '<td class="bad">WRONG: 3 outputs differ</td>' in report_html(wrong)
    assert "3 outputs differ" in report_html(wrong)


@pytest.mark.parametrize(
    ("name", "mark", "text"),
    [
        ("gemm.s", "good", "no deadlock, no race: proven"),
        ("order_race.s", "bad", "race: instruction 0 writes and instruction 1 reads inp elements"),
        ("order_of_micro_ops_that_were_stored.s", "bad", "unknown: instruction "),
        ("tokens_on_every_kind.s", "good", "3 compute to load, 2 compute to store; legal"),
    ],
)
def test_the_verdict_reports_the_token_check(name: str, mark: str, text: str) -> None:
    page = report_html(analyze_run(load_any(PROGRAMS / name).run()))
    assert f'<td class="{mark}">{text}' in page


def test_the_verdict_on_a_deadlock_names_the_waiting_instructions() -> None:
    with pytest.raises(DeadlockError) as stopped:
        load_any(PROGRAMS / "fault_deadlock.s").run()
    page = report_html(analyze_run(stopped.value.result))
    assert "compute at #1 GEMM for a token from store; no instruction left in the store unit" in page
    assert "store at #2 STORE.OUT for a token from compute" in page
    assert "1 of them started" in page
    assert "Only a run that finishes has a place in the roofline" in page


def test_unnamed_dram_is_listed_by_address() -> None:
    found = from_text(
        """
        .config tiny
        LOAD.INP dram_base=0x400 y_size=1 x_size=4
        LOAD.INP dram_base=0x404 y_size=1 x_size=4
        LOAD.WGT dram_base=0x100 y_size=1 x_size=2
        FINISH
        """
    )
    places = {one.name: (one.role, one.size, one.read) for one in dram_traffic(found)}
    assert places["0x1000..0x101f"] == ("inp", 32, 32)
    assert places["0x2000..0x203f"] == ("wgt", 64, 64)
    assert found.names[0] == "LOAD.INP dram[0x1000:0x1010]"


def test_parts_of_a_network_are_listed_by_name() -> None:
    """The weights and biases with which a mean is computed belong to no tensor of the network."""
    digits = digits_network().build("vta-int8")
    (ran,) = digits.run(record=True).runs
    found = {one.name: one for one in dram_traffic(analyze_run(ran))}
    assert not [name for name in found if name.startswith("0x")]
    assert (found["identity"].role, found["identity"].read) == ("wgt", 256)
    assert (found["par"].role, found["par"].read) == ("par", 128)


def test_sizes_in_few_digits() -> None:
    sizes = (0, 1023, 1024, 20_480, 1_556_480, 200 << 20, 3 << 30)
    expected = ["0 B", "1,023 B", "1.00 KiB", "20.0 KiB", "1.48 MiB", "200 MiB", "3.00 GiB"]
    assert [size_text(n) for n in sizes] == expected


@pytest.mark.browser
@pytest.mark.parametrize("dark", [also(False), True])
def test_slices_and_instructions_lead_to_each_other(
    dark: bool, tmp_path: Path, opened: Callable[..., Any]
) -> None:
    path = tmp_path / "report.html"
    Report(result()).save(path)
    page = opened(path, dark=dark)
    page.wait_for_selector("#rows .row")
    assert count(page, "g.slice") == len(result().instructions)
    page.click("g.slice[data-index='5'] rect.stay")
    settle(page)
    assert page.evaluate("location.hash") == "#i5"
    assert page.get_attribute("#rows .row.chosen", "data-index") == "5"
    page.click("#rows .row[data-index='9']")
    settle(page)
    assert page.evaluate("location.hash") == "#i9"
    assert page.get_attribute("g.slice:has(rect.chosen)", "data-index") == "9"
    assert page.text_content("text.note").startswith("#9 ")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before


@pytest.mark.browser
def test_the_list_holds_thousands_and_is_searched(tmp_path: Path, opened: Callable[..., Any]) -> None:
    path = tmp_path / "report.html"
    Report(many()).save(path)
    page = opened(path)
    page.wait_for_selector("#rows .row")
    total = len(many().instructions)
    assert count(page, "#rows .row") < 60
    assert page.text_content("#count") == f"{total:,} of {total:,}"
    page.fill("#find", "store.out")
    stores = sum(one.mnemonic == "STORE.OUT" for one in many().instructions)
    assert page.text_content("#count") == f"{stores:,} of {total:,}"
    page.select_option("#unit", "load")
    assert page.text_content("#count") == f"0 of {total:,}"
    page.evaluate(f"location.hash = '#i{total - 1}'")
    page.wait_for_selector("#rows .row.chosen")
    assert page.get_attribute("#rows .row.chosen", "data-index") == str(total - 1)
    settle(page)
    assert count(page, "rect.chosen") == 1


@pytest.mark.browser
def test_nothing_is_cut_off_on_a_laptop(tmp_path: Path, opened: Callable[..., Any]) -> None:
    path = tmp_path / "report.html"
    Report(many()).save(path)
    page = opened(path)
    page.wait_for_selector("#rows .row")
    assert page.evaluate(
        """[...document.querySelectorAll('#listing, #listing span')].every(
            e => e.scrollWidth <= e.clientWidth || !e.clientWidth)"""
    )
    edges = """[...document.querySelectorAll('#rows span')].every(
        e => e.getBoundingClientRect().right <= innerWidth)"""
    assert page.evaluate(edges)


CUT = """[...document.querySelectorAll('section td, section th')].filter(
    e => e.getBoundingClientRect().right > e.closest('section').getBoundingClientRect().right + 1)
    .map(e => e.textContent)"""


@pytest.mark.browser
def test_no_table_is_cut_off_on_a_laptop(tmp_path: Path, opened: Callable[..., Any]) -> None:
    long = "another of the most promising schedules is faster in simulation than the predicted one"
    change = Advice(
        field="loads_in_flight", now=4, then=8, cycles=100_000, speedup=1.5, recompiled=True, simulated=True,
        reason="compute read latency is 12% of the critical path; with loads_in_flight of 8",
        mapping="strips=16x16", price="+98,304 bits of scratchpad (6 block RAMs)",
    )  # fmt: skip
    schedule = SoftwareAdvice(command="--measure 8", cycles=100_000, speedup=1.5, reason=long)
    advised = AdviceReport(
        bound="compute slots 40%", advice=(change,), tried=(), skipped=(), software=(schedule,)
    )
    Report(many(), advised=advised).save(tmp_path / "report.html")
    digits = digits_network().build("vta-int8")
    NetworkReport(digits, digits.run(record=True), advised=advised).save(tmp_path / "network.html")
    for name, heading in (("report.html", "price"), ("network.html", "written")):
        page = opened(tmp_path / name)
        page.wait_for_selector("#rows .row")
        assert heading in page.evaluate("[...document.querySelectorAll('th')].map(e => e.textContent)")
        assert page.evaluate(CUT) == []


@pytest.mark.browser
def test_a_short_list_is_low_and_a_narrow_window_enough(tmp_path: Path, opened: Callable[..., Any]) -> None:
    path = tmp_path / "report.html"
    Report(from_text(".config tiny\nLOAD.INP dram_base=0 y_size=1 x_size=4 x_stride=4\nFINISH").result).save(
        path
    )
    page = opened(path)
    page.wait_for_selector("#rows .row")
    assert page.evaluate("document.querySelector('#listing').offsetHeight") < 140
    Report(result()).save(path)
    page = opened(path, width=500)
    page.wait_for_selector("#rows .row")
    assert page.evaluate("document.documentElement.scrollWidth") <= 500
    keys = (
        "[...document.querySelectorAll('text.key')].every(e => e.getBoundingClientRect().right <= innerWidth)"
    )
    assert page.evaluate(keys)


@pytest.mark.browser
def test_programs_without_source_have_a_report_too(tmp_path: Path, opened: Callable[..., Any]) -> None:
    analyzed = from_text(".config tiny\nLOAD.INP dram_base=0 y_size=1 x_size=4 x_stride=4\nFINISH")
    path = tmp_path / "report.html"
    Report(analyzed.result).save(path)
    page = opened(path)
    page.wait_for_selector("#rows .row")
    assert count(page, "g.slice") == 2


@pytest.mark.browser
def test_the_chart_is_searched_coloured_and_measured(tmp_path: Path, opened: Callable[..., Any]) -> None:
    path = tmp_path / "report.html"
    Report(result()).save(path)
    page = opened(path)
    page.wait_for_selector("#rows .row")
    named = [n for n, name in enumerate(look().names) if "load.wgt" in name.lower()]
    page.fill("[data-search]", "load.wgt")
    settle(page)
    assert count(page, "g.slice:not(.pale)") == len(named) < count(page, "g.slice")
    page.press("[data-search]", "Enter")
    settle(page)
    assert page.text_content("[data-found]") == f"1 of {len(named)}"
    assert page.get_attribute("g.slice:has(rect.chosen)", "data-index") == str(named[0])
    page.fill("[data-search]", "")
    page.click("button[data-zoom='0']")
    page.select_option("[data-colour]", "tensor")
    settle(page)
    words = set(page.evaluate("[...document.querySelectorAll('text.key')].map(e => e.textContent)"))
    assert {"A", "B", "C"} <= words
    page.evaluate("document.querySelector('#timeline').scrollIntoView()")
    box = page.locator("#timeline rect.ruler").bounding_box()
    page.mouse.move(box["x"], box["y"] + 12)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 12, steps=3)
    page.mouse.up()
    settle(page)
    half = round(look().activity.cycles / 2)
    assert page.text_content("text.note").startswith(f"{half:,} cycles from 0 to {half:,}: load ")
    page.hover("g.slice rect.stay >> nth=4")
    assert page.text_content("g.tip text.first").startswith("#")


@pytest.mark.browser
def test_loops_and_instructions_lead_to_each_other(tmp_path: Path, opened: Callable[..., Any]) -> None:
    path = tmp_path / "report.html"
    Report(result()).save(path)
    page = opened(path)
    lit = "[...document.querySelectorAll('.stages > div:nth-child({}) .lit')].map(e => e.textContent.trim())"
    page.click(".stages > div:nth-child(2) .line.means:has-text('fused_gemm')")
    assert ["+=" in text for text in page.evaluate(lit.format(1))] == [True]
    mine = page.evaluate(lit.format(3))
    origin = look().image.provenance
    assert origin is not None
    products = [n for n in range(len(origin)) if "fused_gemm" in origin[n].text]
    assert [int(text.split()[0]) for text in mine] == products
    settle(page)
    assert count(page, "g.slice:not(.pale)") == len(products)
    page.click(f"g.slice[data-index='{products[1]}'] rect.stay")
    assert page.evaluate(lit.format(2))[0].startswith("vdla.fused_gemm")
