"""The studio's page in a browser."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import accel
from accel.core.config import NAMED
from accel.explore import explore
from accel.explore.exploration_snapshot import snapshot_bytes
from accel.studio.access_control import AccessControl
from accel.studio.state_links import state_of_file, state_of_link
from accel.studio.studio_files import StudioFiles
from accel.studio.studio_server import serving
from accel.studio.studio_state import StudioState
from accel.studio.worker_supervisor import WorkerSupervisor
from tests.explore.spaces import GEMM as GEMM_16
from tests.explore.spaces import small
from tests.thorough import also

SMALL = {"workload": "gemm", "parameters": {"M": 24, "N": 24, "K": 32, "shift": 4}, "machine": "tiny"}
GEMM = base64.urlsafe_b64encode(json.dumps(SMALL).encode()).decode().rstrip("=")


@contextmanager
def visited(
    chromium: Any, access: AccessControl, *, width: int = 1366, dark: bool = False, fragment: str = f"#{GEMM}"
) -> Iterator[Any]:
    """The page as a user opens it. Messages on its console are errors."""
    complaints: list[str] = []
    context = chromium.new_context(
        viewport={"width": width, "height": 768}, color_scheme="dark" if dark else "light"
    )
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda asked: asked.url.startswith(access.origins) or complaints.append(asked.url))
    page.set_default_timeout(30_000)
    page.goto(f"{access.address}{fragment}")
    page.wait_for_selector("#now b")
    yield page
    context.close()
    assert complaints == []


def cycles(page: Any) -> int:
    return int(page.text_content("#now b").replace(",", ""))


def changes(page: Any, action: Any) -> None:
    """Do something, and wait until the page shows another run."""
    page.evaluate(
        "document.querySelector('#now').dataset.old = '1'; document.querySelector('#now b').remove()"
    )
    action()
    page.wait_for_selector("#now b")


CUT_OFF = """[...document.querySelectorAll('#helps td, #helps th')].filter(
    e => e.getBoundingClientRect().right > document.querySelector('#helps').getBoundingClientRect().right + 1)
    .map(e => e.textContent)"""


@pytest.mark.browser
def test_a_state_is_changed_pinned_advised_and_restored(chromium: Any, served: AccessControl) -> None:
    with visited(chromium, served) as page:
        assert page.url == f"http://127.0.0.1:{served.port}/" or "#" in page.url
        assert "token" not in page.url
        first = cycles(page)
        page.keyboard.press("p")  # pin
        page.wait_for_selector("#compared")
        page.click("#tab-machine")
        changes(page, lambda: page.fill("#f-read_latency", "500"))
        slower = cycles(page)
        assert slower > first
        assert "vs pinned" in page.text_content("#now")
        link = page.url

        page.keyboard.press("Escape")
        page.click("#advise")
        page.wait_for_selector("#helps tbody button")
        assert page.locator("#helps th").all_text_contents()[-2:] == ["reason (method)", "price"]
        assert page.evaluate(CUT_OFF) == []
        changes(page, lambda: page.click("#helps tbody button"))
        assert cycles(page) < slower
        changes(page, page.go_back)
        assert cycles(page) == slower

        # a bad step is named, and the page still shows the last valid state
        page.click("#tab-schedule")
        steps = page.locator("#steps input")
        assert steps.first.input_value().startswith("set_scope stage=")
        page.locator("#steps input").nth(2).fill("tile stage=nobody axes=[y,x] factors=[8,8]")
        page.keyboard.press("Enter")
        page.wait_for_selector("#problem:not([hidden])")
        assert "schedule step 2 (tile)" in page.text_content("#problem")
        assert page.get_attribute("#steps li:nth-child(3)", "class") == "bad"
        assert cycles(page) == slower

        page.click("#command")
        text = page.text_content("#commands pre")
        assert text.startswith("accel compile gemm -m 24") or text.startswith("accel compile gemm --m 24")
        assert "--set read_latency=500" in text
        page.keyboard.press("Escape")

        # the address restores the state
        page.goto(link)
        page.reload()
        page.wait_for_selector("#now b")
        assert cycles(page) == slower
        assert page.input_value("#f-read_latency") == "500"


@pytest.mark.browser
@pytest.mark.parametrize("dark", [also(False), True])
def test_the_page_fits_a_narrow_window(dark: bool, chromium: Any, served: AccessControl) -> None:
    with visited(chromium, served, width=500, dark=dark) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= 500
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == ("rgb(21, 25, 30)" if dark else "rgb(255, 255, 255)")
        changes(page, lambda: page.select_option("#workload select", "dense"))
        assert page.evaluate("document.documentElement.scrollWidth") <= 500


@pytest.mark.browser
def test_a_networks_layers_and_programs_are_shown(chromium: Any, served: AccessControl) -> None:
    with visited(chromium, served, fragment="") as page:
        whole = cycles(page)
        assert page.input_value("[data-colour]") == "layer"
        changes(page, lambda: page.click(".layer:not([disabled]) >> nth=1"))
        assert 0 < cycles(page) < whole
        assert page.input_value("#f-IC") == "16"
        changes(page, page.go_back)
        assert cycles(page) == whole
        assert page.locator("#program").count() == 0
        changes(page, lambda: page.select_option("#workload select", "file:divided.onnx"))
        assert page.input_value("#program") == "0"
        page.fill("[data-search]", "2:0")
        assert page.text_content("[data-found]").startswith("1 found")
        whole, drawn = cycles(page), page.text_content("#program option:checked")
        page.focus("#program")
        changes(page, lambda: page.keyboard.press("ArrowDown"))
        assert page.input_value("#program") == "1"
        assert cycles(page) == whole
        assert page.text_content("#program option:checked") != drawn
        assert page.evaluate("document.activeElement.id") == "program"


@pytest.mark.browser
def test_tabs_show_a_part_of_the_view_and_of_the_form(chromium: Any, served: AccessControl) -> None:
    with visited(chromium, served) as page:
        assert page.text_content("#headline").endswith(".")
        assert page.is_visible("#critical")
        assert not page.is_visible("#loops")
        page.click("#groups [data-group=Code]")
        page.wait_for_selector("#rows .row")
        assert page.is_visible("#loops")
        assert page.is_visible("#timeline svg")
        assert not page.is_visible("#critical")
        page.keyboard.press("ArrowRight")
        assert page.get_attribute("#groups [data-group=Units]", "aria-selected") == "true"
        page.click("#tab-machine")
        assert not page.is_visible("#workload")
        changes(page, lambda: page.fill("#f-read_latency", "100"))
        assert page.get_attribute("#groups [data-group=Units]", "aria-selected") == "true", "a tab stays"
        assert page.text_content("label[for=f-acc_bytes]").endswith(" KiB")
        assert page.evaluate("document.documentElement.scrollHeight") < 2000


@pytest.mark.browser
def test_a_state_and_a_page_are_saved(chromium: Any, served: AccessControl, tmp_path: Path) -> None:
    with visited(chromium, served) as page:
        shown = cycles(page)
        page.keyboard.press("s")
        with page.expect_download() as saved:
            page.click("#saving [data-state]")
        saved.value.save_as(tmp_path / "state.json")
        with page.expect_download() as saved:
            page.click("#saving [data-page]")
        saved.value.save_as(tmp_path / "run.html")
        link = page.url
    assert state_of_file(tmp_path / "state.json") == state_of_link(link) == StudioState.from_data(SMALL)
    alone = chromium.new_page()
    alone.goto((tmp_path / "run.html").as_uri())
    alone.wait_for_selector("#timeline svg.chart path", state="attached")
    assert f"{shown:,}" in alone.text_content("body")
    alone.close()


@pytest.fixture(scope="module")
def exploration() -> bytes:
    """The file of an exploration of a product and a network."""
    network = {"network": "pools", "weight": 0.01}
    found = explore(small(workload=[GEMM_16, network], sampler="exhaustive"), max_neighbours=0)
    return snapshot_bytes(found, is_running=True)


@pytest.fixture
def folder(exploration: bytes, tmp_path: Path) -> Path:
    """A folder with the file."""
    (tmp_path / "space.points.json").write_bytes(exploration)
    return tmp_path


@pytest.mark.browser
@pytest.mark.parametrize("width", [500, also(1366)])
def test_a_point_of_an_exploration_becomes_a_state(
    chromium: Any, workers: WorkerSupervisor, folder: Path, width: int
) -> None:
    path = folder / "space.points.json"
    data = json.loads(path.read_bytes())
    front = [one for one in data["points"] if one["front"]]
    with (
        StudioFiles((folder,)) as files,
        serving(workers, files) as access,
        visited(chromium, access, width=width) as page,
    ):
        page.wait_for_selector("#machines tbody tr")
        assert page.get_attribute("#tab-explore", "aria-selected") == "true"
        assert page.locator("#explore .dot").count() == len(data["points"])
        assert page.locator("#machines tbody tr").count() == len(front) + 1
        assert page.locator("#machines th").all_text_contents() == [
            "cycles",
            "block rams (18 Kbit)",
            "changes",
        ]
        assert page.text_content("#explore .note").startswith("Running, or interrupted: ")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

        best = min(front, key=lambda one: one["values"]["cycles"])
        changes(page, lambda: page.click("#machines tbody tr >> nth=0"))
        state = state_of_link(page.url)
        assert (state.machine, dict(state.settings)) == (best["machine"], best["settings"])
        assert state.workload == "gemm"
        assert dict(state.parameters) == SMALL["parameters"], "the layer that was shown stays"

        layer = data["workloads"][1]["layers"][2]
        select = "#explore select[aria-label='layer to run']"
        changes(page, lambda: page.select_option(select, label=f"pools: {layer['name']}"))
        state = state_of_link(page.url)
        assert state.workload == layer["state"]["workload"]
        assert dict(state.settings) == best["settings"]
        config = NAMED[best["machine"]].variant(best["settings"])
        expected = accel.build(state.make_workload(), config).run().cycles
        assert cycles(page) == expected

        path.write_text(json.dumps({**data, "running": False, "points": data["points"][:3]}))
        page.locator("#explore .dot >> nth=3").wait_for(state="detached")
        assert page.locator("#explore .dot").count() == 3
        assert not page.text_content("#explore .note").startswith("Running")


@pytest.mark.browser
def test_an_exploration_is_opened_from_a_file(chromium: Any, served: AccessControl, folder: Path) -> None:
    with visited(chromium, served) as page:
        page.click("#tab-explore")
        assert page.text_content("#explore .note").startswith("No exploration is open.")
        page.set_input_files("#explore input[type=file]", folder / "space.points.json")
        page.wait_for_selector("#machines tbody tr")
        page.select_option("#explore select[aria-label='horizontal axis']", "block_in")
        page.check("#explore .axes input")
        page.locator("#explore .dot.base").click()
        page.wait_for_selector("#title:has-text('on tiny')")
