"""Draw the pictures of docs/studio.md anew, by a headless Chromium: python docs/screenshots.py

It needs the extras studio and test, and a Chromium.
"""

import base64
import io
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from PIL import Image
from playwright.sync_api import sync_playwright

from accel.network.digits import MODEL
from accel.studio.files import Files
from accel.studio.form import START
from accel.studio.server import Door, listening, studio
from accel.studio.workshop import Workshop

FOLDER = Path(__file__).parent / "studio"
LAPTOP, NARROW = (1366, 768), (500, 900)


@contextmanager
def served() -> Iterator[Door]:
    """A studio with a network to look at."""
    with Workshop() as workshop, Files((MODEL,)) as files, listening(0) as opened:
        door = Door(port=opened.getsockname()[1])
        settings = uvicorn.Config(studio(workshop, door, files), log_level="error", lifespan="off", ws="none")
        server = uvicorn.Server(settings)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [opened]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield door
        server.should_exit = True
        thread.join()


def settled(page: Any) -> None:
    """Wait until nothing is being asked for, and all is drawn."""
    page.wait_for_timeout(400)
    page.wait_for_selector("#progress", state="hidden")
    page.wait_for_timeout(200)


def pinned(page: Any) -> None:
    """A run with another latency, against the one before."""
    page.click("#pin")
    settled(page)
    page.fill("#f-read_latency", "300")
    settled(page)
    page.evaluate("document.querySelector('#compared').scrollIntoView(); scrollBy(0, -60)")
    settled(page)


def advised(page: Any) -> None:
    """What would help a run whose memory is far away."""
    page.fill("#f-read_latency", "300")
    settled(page)
    page.click("#advise")
    page.wait_for_selector("#helps tbody button")
    settled(page)
    page.evaluate("scrollTo(0, 0)")


def traced(page: Any) -> None:
    """A statement whose instructions are marked."""
    page.click(".stages > div:nth-child(2) .line.means:has-text('fused_gemm')")
    page.evaluate("document.querySelector('#loops').scrollIntoView(); scrollBy(0, -70)")
    settled(page)


def opened(page: Any) -> None:
    """The network that the studio was started with."""
    page.select_option("#workload select", f"file:{MODEL.name}")
    settled(page)
    page.wait_for_selector(".layer")
    page.evaluate("scrollTo(0, 0)")


PICTURES: dict[str, tuple[tuple[int, int], bool, Callable[[Any], None]]] = {
    "pinned": (LAPTOP, False, pinned),
    "advice": (LAPTOP, False, advised),
    "loops": (LAPTOP, False, traced),
    "network": (LAPTOP, True, opened),
    "narrow": (NARROW, True, lambda page: None),
}
"""By name: the window, whether it is dark, and what is done before."""


def main() -> None:
    """Draw them."""
    FOLDER.mkdir(exist_ok=True)
    state = base64.urlsafe_b64encode(json.dumps(START.to_data()).encode()).decode().rstrip("=")
    with served() as door, sync_playwright() as run:
        path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        browser = run.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        first = browser.new_context()
        page = first.new_page()
        page.goto(door.address)
        page.wait_for_selector("#now b")
        kept = first.storage_state()
        for name, ((width, height), dark, act) in PICTURES.items():
            context = browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme="dark" if dark else "light",
                storage_state=kept,
            )
            page = context.new_page()
            page.goto(f"http://{door.hosts[0]}/#{state}")
            page.wait_for_selector("#rows .row")
            settled(page)
            act(page)
            picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
            picture.quantize(128, dither=Image.Dither.NONE).save(FOLDER / f"{name}.png", optimize=True)
            context.close()
        browser.close()


if __name__ == "__main__":
    main()
