"""Draw the pictures of the documents with a headless Chromium: python docs/screenshots.py [NAME...]

docs/how-to/use-the-studio.md shows the studio, docs/how-to/look-into-a-run.md pages that commands make, and
docs/learn/tutorial.md the programs of its code. The script needs the extras studio and test, and a Chromium.
"""

import base64
import contextlib
import io
import json
import math
import re
import shlex
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import run
from typing import Any, NamedTuple

from PIL import Image
from playwright.sync_api import sync_playwright

from accel.explore import explore, make_exploration
from accel.explore.exploration_snapshot import SNAPSHOT_SUFFIX, snapshot_bytes
from accel.network.digits import MODEL
from accel.studio.access_control import AccessControl
from accel.studio.form_fields import START
from accel.studio.studio_files import StudioFiles
from accel.studio.studio_server import serving
from accel.studio.worker_supervisor import WorkerSupervisor
from accel.views import Timeline

DOCS = Path(__file__).parent
STUDIO = DOCS / "how-to" / "studio"
LAPTOP, NARROW = (1366, 768), (500, 900)
GEMM = "accel compile gemm -m 256 -n 256 -k 256 --shift 8 --config gemm8x8 -o gemm.accel"


SPACE = """
title = "ResNet-18 on an ECP5-85F"
config = "ecp5-int8"
timing = "estimated"
sampler = "random"
trials = 40
[field]
block_in.powers_of_two = [4, 32]
block_out.powers_of_two = [4, 32]
inp_bytes.powers_of_two = ["4KiB", "64KiB"]
wgt_bytes.powers_of_two = ["8KiB", "128KiB"]
[limit]
block_rams = 208
multipliers = 156
[[workload]]
network = "resnet18"
"""
"""The exploration of the picture of the studio."""


@contextmanager
def served() -> Iterator[AccessControl]:
    """Start a studio with a network and an exploration."""
    with tempfile.TemporaryDirectory() as folder, WorkerSupervisor() as workers:
        points = Path(folder, f"resnet18{SNAPSHOT_SUFFIX}")
        found = explore(make_exploration(tomllib.loads(SPACE)), max_neighbours=0)
        points.write_bytes(snapshot_bytes(found, is_running=False))
        with StudioFiles((MODEL, points)) as files, serving(workers, files) as access:
            yield access


def settled(page: Any) -> None:
    """Wait until no request is pending and the page is drawn."""
    page.wait_for_timeout(400)
    page.wait_for_selector("#progress", state="hidden")
    page.wait_for_timeout(200)


def pinned(page: Any) -> None:
    """Show a run with another latency, compared with the previous one."""
    page.click("#pin")
    settled(page)
    page.click("#tab-machine")
    page.fill("#f-read_latency", "300")
    settled(page)
    page.evaluate("document.querySelector('#compared').scrollIntoView(); scrollBy(0, -60)")
    settled(page)


def advised(page: Any) -> None:
    """Show advice for a run with a high read latency."""
    page.click("#tab-machine")
    page.fill("#f-read_latency", "300")
    settled(page)
    page.click("#advise")
    page.wait_for_selector("#helps tbody button")
    settled(page)
    page.evaluate("scrollTo(0, 0)")


def traced(page: Any) -> None:
    """Show a statement and mark its instructions."""
    page.click("#groups [data-group=Code]")
    settled(page)
    page.click(".stages > div:nth-child(2) .line.means:has-text('fused_gemm')")
    page.evaluate("document.querySelector('#loops').scrollIntoView(); scrollBy(0, -110)")
    settled(page)


def opened(page: Any) -> None:
    """Open the network that the studio was started with."""
    page.select_option("#workload select", f"file:{MODEL.name}")
    settled(page)
    page.wait_for_selector(".layer")
    page.evaluate("scrollTo(0, 0)")


def explored(page: Any) -> None:
    """Show a layer of a network on the fastest machine of an exploration."""
    page.click("#tab-explore")
    page.wait_for_selector("#machines tbody tr")
    page.select_option("#explore select[aria-label='layer to run']", label="resnet18: C11")
    page.click("#machines tbody tr >> nth=0")
    settled(page)
    page.evaluate("scrollTo(0, 0)")


PICTURES: dict[str, tuple[tuple[int, int], bool, Callable[[Any], None]]] = {
    "pinned": (LAPTOP, False, pinned),
    "advice": (LAPTOP, False, advised),
    "loops": (LAPTOP, False, traced),
    "network": (LAPTOP, True, opened),
    "explore": ((1366, 900), False, explored),
    "narrow": (NARROW, True, lambda page: None),
}
"""Pictures of the studio by name: window size, whether the page is dark, and a function that prepares it."""


class Page(NamedTuple):
    """A part of a page that commands make.

    Attributes:
        commands: command lines that write ``out.html``.
        part: CSS selector of the part, or empty for the whole window.
        act: function that prepares the page.
    """

    commands: tuple[str, ...]
    part: str = ""
    act: Callable[[Any], None] = lambda page: None


PAGES: dict[str, Page] = {
    "how-to/looking/timeline": Page(
        (
            "accel compile gemm -m 64 -n 64 -k 64 --shift 8 --config gemm8x8 -o small.accel",
            "accel run small.accel --timeline out.html",
        ),
        "svg.chart",
    ),
    "how-to/looking/critical": Page((GEMM, "accel run gemm.accel --report out.html"), "#critical"),
    "how-to/looking/diff": Page(
        (
            GEMM,
            "accel run gemm.accel --save near.accelrun",
            "accel run gemm.accel --set read_latency=400 --save far.accelrun",
            "accel diff near.accelrun far.accelrun --html out.html",
        ),
        act=lambda page: page.evaluate("document.querySelector('#explaining').scrollIntoView()"),
    ),
    "how-to/looking/network": Page(
        (f"accel compile onnx {MODEL} -o digits.accel", "accel run digits.accel --report out.html"),
        act=lambda page: page.evaluate("document.querySelector('#layers').scrollIntoView()"),
    ),
}
"""Pictures of pages, by name."""
TUTORIAL = {
    "learn/tutorial/one": "large",
    "learn/tutorial/two": "accel.build(tiled(32, 32, 32, 2), m)",
    "learn/tutorial/whole": "accel.build(tiled(32, 32, N, 2), m)",
}
"""Pictures of the tutorial's timelines, by name: expressions over the tutorial's variables."""
CYCLES = 2400
"""Number of cycles that those timelines show."""
_LEFT = 80
"""Pixels to the left of the first cycle."""


def made(name: str, names: dict[str, Any]) -> None:
    """Write a page to ``out.html`` in the current folder.

    Args:
        name: name of the picture.
        names: variables of the tutorial's code.
    """
    if name in TUTORIAL:
        result = eval(TUTORIAL[name], names).run()  # noqa: S307  # ours
        Timeline(result, name=name.rpartition("/")[2]).save("out.html")
        return
    for line in PAGES[name].commands:
        run([sys.executable, "-m", "accel", *shlex.split(line)[1:]], check=True, capture_output=True)  # noqa: S603  # ours


def tutorial() -> dict[str, Any]:
    text = (DOCS / "learn" / "tutorial.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        for block in re.findall(r"^```python\n(.*?)^```", text, re.M | re.S):
            exec(block, names)  # noqa: S102  # ours
    return names


def keep(picture: bytes, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image.quantize(256, kmeans=1, dither=Image.Dither.NONE).save(path, optimize=True)


def draw_studio(browser: Any, wanted: Sequence[str]) -> None:
    state = base64.urlsafe_b64encode(json.dumps(START.to_data()).encode()).decode().rstrip("=")
    with served() as access:
        first = browser.new_context()
        page = first.new_page()
        page.goto(access.address)
        page.wait_for_selector("#now b")
        kept = first.storage_state()
        for name in wanted:
            (width, height), dark, act = PICTURES[name]
            context = browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme="dark" if dark else "light",
                storage_state=kept,
            )
            page = context.new_page()
            page.goto(f"http://{access.hosts[0]}/#{state}")
            page.wait_for_selector("#rows .row", state="attached")
            settled(page)
            act(page)
            keep(page.screenshot(), STUDIO / f"{name}.png")
            context.close()


def draw_pages(browser: Any, wanted: Sequence[str]) -> None:
    names = tutorial() if any(name in TUTORIAL for name in wanted) else {}
    width, height = LAPTOP
    page = browser.new_page(viewport={"width": width, "height": height})
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name in wanted:
            made(name, names)
            page.goto(Path("out.html").resolve().as_uri())
            page.wait_for_timeout(500)
            one = PAGES.get(name, Page((), "svg.chart", shown))
            one.act(page)
            page.wait_for_timeout(300)
            picture = page.locator(one.part).first.screenshot() if one.part else page.screenshot()
            keep(picture, DOCS / f"{name}.png")


def shown(page: Any) -> None:
    """Show the first cycles of a timeline: turn the wheel at its left end."""
    found = re.search(r"([\d,]+) cycles", page.text_content("header p"))
    assert found is not None
    cycles = int(found.group(1).replace(",", ""))
    box = page.locator("svg.chart").bounding_box()
    page.mouse.move(box["x"] + _LEFT, box["y"] + box["height"] / 2)
    for _ in range(round(2 * math.log(cycles / CYCLES))):
        page.mouse.wheel(0, -60)  # half a power of e
    page.mouse.move(0, 0)


def main() -> None:
    every = [*PICTURES, *PAGES, *TUTORIAL]
    wanted = sys.argv[1:] or every
    for name in wanted:
        if name not in every:
            sys.exit(f"{name!r} is not a picture; they are {', '.join(every)}")
    with sync_playwright() as playwright:
        path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        draw_studio(browser, [name for name in wanted if name in PICTURES])
        draw_pages(browser, [name for name in wanted if name not in PICTURES])
        browser.close()


if __name__ == "__main__":
    main()
