"""Measure the processor time of the studio from a change to the new view, after similar changes.

    python bench/studio.py [--browser]

Each state changes a field of the machine, so that the studio compiles again. With ``--browser``, a headless
Chromium shows the page (extras ``studio`` and ``test``), and the script prints the processor time of views,
server, and browser.
"""

import argparse
import base64
import contextlib
import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from accel.studio.studio_view import ViewCache
from accel.studio.view_worker import answer

CONV: dict[str, Any] = {"OC": 64, "IC": 64, "kernel": 3, "padding": 1, "bias": True, "relu": True, "shift": 8}
STATES: dict[str, dict[str, Any]] = {
    "gemm 128x128x128 on gemm8x8": {
        "workload": "gemm",
        "parameters": {"M": 128, "N": 128, "K": 128, "shift": 8},
        "machine": "gemm8x8",
    },
    "conv2d 64x56x56, 3x3 on vta": {
        "workload": "conv2d",
        "parameters": CONV | {"H": 56, "W": 56},
        "machine": "vta",
    },
    "gemm 512x512x1024 on vta": {
        "workload": "gemm",
        "parameters": {"M": 512, "N": 512, "K": 1024, "shift": 8},
        "machine": "vta",
    },
}
"""States that are measured."""
TIMES = 5


def changes(state: dict[str, Any]) -> Iterator[tuple[float, str]]:
    views = ViewCache()
    for n in range(TIMES + 1):
        question = {"ask": "view", "state": {**state, "settings": {"read_latency": 64 + n}}, "files": {}}
        begin = time.process_time()
        text = answer(views, json.dumps(question))
        if n:  # the first one also imports modules
            yield time.process_time() - begin, text


def processor_seconds() -> Counter[str]:
    """Return processor seconds of ``views``, ``server`` and ``browser``."""
    stats = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, rest = path.read_text().partition("(")[2].rpartition(")")
            words = rest.split()
            stats[int(path.parent.name)] = name, int(words[1]), int(words[11]) + int(words[12])
    found: Counter[str] = Counter()
    for pid, (name, _, ticks) in stats.items():
        above = pid
        while above in stats and above != os.getpid():
            above = stats[above][1]
        if above == os.getpid():
            kind = "server" if pid == above else "views" if name.startswith("python") else "browser"
            found[kind] += ticks / os.sysconf("SC_CLK_TCK")
    return found


@contextlib.contextmanager
def opened(state: dict[str, Any]) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright  # only for this

    from accel.studio.studio_files import StudioFiles
    from accel.studio.studio_server import serving
    from accel.studio.worker_supervisor import WorkerSupervisor

    fragment = base64.urlsafe_b64encode(json.dumps(state).encode()).decode().rstrip("=")
    with (
        WorkerSupervisor(seconds=60) as workers,
        StudioFiles() as files,
        serving(workers, files) as access,
        sync_playwright() as play,
    ):
        path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        browser = play.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1366, "height": 768})
        page.goto(f"{access.address}#{fragment}")
        page.wait_for_selector("#rows .row")
        yield page
        browser.close()


def in_browser(state: dict[str, Any]) -> Counter[str]:
    """Return mean processor seconds of a change."""
    with opened(state) as page:
        for n in range(TIMES + 1):
            page.evaluate("document.querySelector('#now b').remove()")
            page.fill("#f-read_latency", str(70 + n))
            page.wait_for_selector("#now b")
            page.wait_for_timeout(1500)
            if not n:
                before = processor_seconds()
        found = processor_seconds()
    return Counter({kind: (count - before[kind]) / TIMES for kind, count in found.items()})


def main() -> None:
    parser = argparse.ArgumentParser(prog="studio", description=__doc__)
    parser.add_argument("--browser", action="store_true", help="also in a browser")
    if parser.parse_args().browser:
        print("| state | making views | server | browser | in all |")
        print("|---|--:|--:|--:|--:|")
        for name, state in STATES.items():
            seconds = in_browser(state)
            cells = (f"{seconds[kind]:.2f} s" for kind in ("views", "server", "browser"))
            print(f"| {name} | {' | '.join(cells)} | {seconds.total():.2f} s |", flush=True)
        return
    print("| state | cycles | instructions | processor time of a change | JSON |")
    print("|---|--:|--:|--:|--:|")
    for name, state in STATES.items():
        found = list(changes(state))
        figures = json.loads(found[0][1])["view"]["figures"]
        seconds = sorted(one for one, _ in found)[TIMES // 2]
        print(
            f"| {name} | {figures['cycles']:,} | {figures['instructions']:,} | {seconds:.2f} s | "
            f"{len(found[0][1]) / 1000:,.0f} kB |"
        )


if __name__ == "__main__":
    main()
