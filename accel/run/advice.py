"""What would help: other values of the machine's fields, each with the cycles that a run would then take.

A field that only changes timing is tried on the program as it is, any other one by compiling the workload
again. What the run waits for, by its critical path, says which fields are worth it; then the timing of the
program is simulated, so that a prediction is what a run of it takes. Where that would take too long, the
compiler's analytical model predicts, corrected by what it says of the program that ran.
"""

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from accel.assembly.names import PlaceNames
from accel.base.errors import AccelError, ConfigError
from accel.compiler.mappings.choose import choose
from accel.compiler.operators.registry import make_workload
from accel.compiler.ops.workload import Workload
from accel.compiler.target.machine import machine
from accel.core.access import dram_rows
from accel.core.config import SPECS, Config
from accel.core.isa import Load, Unit
from accel.image.image import Image
from accel.run.critical import Segment, shares, shares_text
from accel.run.program import build
from accel.run.result import Result
from accel.run.waits import Wait
from accel.sim.timing.model import simulate_timing

DEFAULT_SECONDS = 10.0
"""Of processor time that the search takes at most, but for the last trial."""
_LARGE = 40_000
"""Instructions of a program that is not compiled again, but predicted."""
_WORTH = 1.01
"""Times as fast that a change must make a run to be told."""
_LEAST_SHARE = 0.02
"""Of the critical path, that must be for causes that a field relieves."""

_MEMORY = frozenset({Wait.READ_LATENCY, Wait.READ_DATA, Wait.OUTSTANDING, Wait.REQUESTS, Wait.ARBITRATION})
_LATENCY = frozenset({Wait.READ_LATENCY, Wait.OUTSTANDING, Wait.IN_FLIGHT, Wait.OVERLAP})
_FETCH = frozenset({Wait.BUFFER, Wait.QUEUE, Wait.ISSUE, *_MEMORY})
_SLOTS = frozenset({Wait.SLOTS, Wait.PIPELINE})
_REUSE = frozenset({*_MEMORY, Wait.OVERLAP, Wait.RAW, Wait.WAR, Wait.STARTUP, Wait.WRITE_BACK, *_SLOTS})
_STORED = frozenset({Wait.PAR_IN_USE, Wait.PAR_LOADED, Wait.RES_FULL, Wait.RES_LOADED, *_MEMORY})
_WRITES = frozenset({Wait.WRITE_DATA, Wait.WRITE_LATENCY, Wait.OUTSTANDING, Wait.IN_FLIGHT})


@dataclass(frozen=True)
class _Lever:
    """A field, and the waits that another value of it may shorten.

    Attributes:
        waits: by cause, in any unit of ``units``.
        halved: a smaller value is the faster one.
    """

    waits: frozenset[Wait]
    units: tuple[Unit, ...] = tuple(Unit)
    halved: bool = False


_LEVERS: Mapping[str, _Lever] = {
    "block_in": _Lever(_SLOTS, (Unit.COMPUTE,)),
    "block_out": _Lever(_SLOTS, (Unit.COMPUTE,)),
    "batch": _Lever(_SLOTS, (Unit.COMPUTE,)),
    "uop_bytes": _Lever(_REUSE, (Unit.COMPUTE,)),
    "inp_bytes": _Lever(_REUSE, (Unit.LOAD, Unit.COMPUTE)),
    "wgt_bytes": _Lever(_REUSE, (Unit.LOAD, Unit.COMPUTE)),
    "acc_bytes": _Lever(_REUSE, (Unit.LOAD, Unit.COMPUTE, Unit.STORE)),
    "par_bytes": _Lever(_STORED, (Unit.STORE,)),
    "res_bytes": _Lever(_STORED, (Unit.STORE,)),
    "bus_bits": _Lever(frozenset({Wait.READ_DATA, Wait.WRITE_DATA})),
    "read_latency": _Lever(frozenset({Wait.READ_LATENCY}), halved=True),
    "write_latency": _Lever(frozenset({Wait.WRITE_LATENCY}), halved=True),
    "outstanding": _Lever(_LATENCY | _WRITES),
    "max_burst_beats": _Lever(frozenset({Wait.REQUESTS, Wait.OUTSTANDING, Wait.READ_LATENCY})),
    "fetch_buffer": _Lever(_FETCH, (Unit.FETCH,)),
    "fetch_chunk": _Lever(_FETCH, (Unit.FETCH,)),
    "load_queue": _Lever(_FETCH, (Unit.FETCH, Unit.LOAD)),
    "compute_queue": _Lever(_FETCH, (Unit.FETCH, Unit.LOAD, Unit.COMPUTE)),
    "store_queue": _Lever(_FETCH, (Unit.FETCH, Unit.STORE)),
    "loads_in_flight": _Lever(_LATENCY, (Unit.LOAD, Unit.STORE)),
    "stores_in_flight": _Lever(_WRITES, (Unit.STORE,)),
    "tree_stages": _Lever(frozenset({Wait.PIPELINE}), (Unit.COMPUTE,), halved=True),
    "post_stages": _Lever(frozenset({Wait.PIPELINE}), (Unit.STORE,), halved=True),
    "mul_slots": _Lever(_SLOTS, (Unit.COMPUTE,), halved=True),
    "post_lanes": _Lever(frozenset({Wait.WRITE_DATA}), (Unit.STORE,)),
    "serial": _Lever(frozenset({Wait.SERIAL}), halved=True),
}
"""Fields that are tried: doubled, or halved where less is faster; capacities are made four times as large,
too."""


@dataclass(frozen=True, kw_only=True)
class Advice:
    """Another value of a field of the machine.

    Attributes:
        field: its name.
        now, then: its value, and the other one.
        cycles: that the run would take.
        speedup: times as fast as it was.
        recompiled: whether the program is another one then.
        simulated: whether the cycles were simulated; otherwise the compiler's model predicts them.
        reason: why it helps, in words.
        mapping: by which the operator is computed then, if that is another one than now; else empty.
    """

    field: str
    now: int
    then: int
    cycles: int
    speedup: float
    recompiled: bool
    simulated: bool
    reason: str
    mapping: str = ""

    @property
    def change(self) -> str:
        """The field and its new value, as ``--set`` takes them."""
        return f"{self.field}={_value(self.field, self.then)}"

    @property
    def how(self) -> str:
        """How the prediction was obtained."""
        known = "simulated" if self.simulated else "predicted by the compiler's model"
        mapped = f" with mapping {self.mapping}" if self.mapping else ""
        return f"compiled again{mapped}, {known}" if self.recompiled else known

    @property
    def text(self) -> str:
        """A sentence's words."""
        return f"{self.reason}: {self.speedup:.2f} times as fast ({self.cycles:,} cycles, {self.how})"

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "field": self.field,
            "now": self.now,
            "then": self.then,
            "cycles": self.cycles,
            "speedup": self.speedup,
            "recompiled": self.recompiled,
            "simulated": self.simulated,
            "reason": self.reason,
            "mapping": self.mapping,
        }


@dataclass(frozen=True, kw_only=True)
class Advised:
    """What bounds a run, and what would help.

    Attributes:
        bound: what takes most of its critical path, in words.
        advice: changes that make it faster, the best first.
        tried: fields that were tried.
        skipped: fields for which no time was left.
    """

    bound: str
    advice: tuple[Advice, ...]
    tried: tuple[str, ...]
    skipped: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "bound": self.bound,
            "advice": [one.to_dict() for one in self.advice],
            "tried": list(self.tried),
            "skipped": list(self.skipped),
        }


def advise(result: Result, *, seconds: float = DEFAULT_SECONDS) -> Advised:
    """What bounds a run, and which single change of the machine would make it faster.

    Fields of the geometry are tried if the program was compiled from a workload by its default schedule.

    Args:
        result: of a run to the end in which time was simulated.
        seconds: of processor time, after which nothing more is tried.

    Raises:
        AccelError: nothing is known of when things happened, or the run ended early.
    """
    path = result.critical_path()
    if path is None or result.error is not None:
        raise AccelError("advice needs a run to the end whose events are known, as on 'sim'")
    found = shares(path)
    trial = _Trial(result)
    end = time.process_time() + seconds
    tried: list[str] = []
    skipped: list[str] = []
    advice: list[Advice] = []
    for field, value in _candidates(result.config, path, geometry=trial.workload is not None):
        if time.process_time() >= end:
            skipped.append(field)
            continue
        one = trial.of(field, value, path)
        if field not in tried:
            tried.append(field)
        same = [known for known in advice if known.field == field]
        least = max([1.0, *(known.speedup for known in same)])
        if one is not None and one.speedup >= _WORTH * least:
            advice = [known for known in advice if known.field != field] + [one]
    return Advised(
        bound=shares_text(found, 3),
        advice=tuple(sorted(advice, key=lambda one: one.cycles)),
        tried=tuple(tried),
        skipped=tuple(skipped),
    )


def _candidates(config: Config, path: tuple[Segment, ...], *, geometry: bool) -> Iterator[tuple[str, int]]:
    """Fields and other values, those first that relieve most of the critical path; the larger steps last."""
    cycles = sum(one.cycles for one in path) or 1
    found = _relievable(path)
    scored = []
    for place, (field, lever) in enumerate(_LEVERS.items()):
        if field not in config.fields or (SPECS[field].kind == "geometry" and not geometry):
            continue
        now = int(getattr(config, field))
        now = now or int(getattr(config, _MEANS.get(field, field)))
        values = [now // 2] if lever.halved else [2 * now]
        if field.endswith("_bytes"):
            values.append(4 * now)
        relieved = sum(found.get((unit.label, wait), 0) for unit in lever.units for wait in lever.waits)
        if relieved >= _LEAST_SHARE * cycles:
            scored += [
                (number, -relieved, place, field, value)
                for number, value in enumerate(values)
                if value != now and _exists(config, field, value)
            ]
    for _, _, _, field, value in sorted(scored):
        yield field, value


def _relievable(path: tuple[Segment, ...]) -> Counter[tuple[str, Wait]]:
    """Cycles that a path could be shorter by without a cause, by unit and cause: those of the cause, and
    where something waits for room or order, also those of what it waits for."""
    found: Counter[tuple[str, Wait]] = Counter()
    before = 0
    for one in path:
        found[one.unit, one.cause] += one.cycles + (before if one.cause in _HANDED else 0)
        before = one.cycles
    return found


_HANDED = frozenset(
    {Wait.QUEUE, Wait.BUFFER, Wait.SERIAL, Wait.IN_FLIGHT, Wait.OVERLAP, Wait.OUTSTANDING, Wait.WAR}
    | {Wait.PAR_IN_USE, Wait.RES_FULL, Wait.EXCLUSIVE}
)
"""Causes that take a cycle themselves, and hand the path on to what is waited for."""


def _exists(config: Config, field: str, value: int) -> bool:
    """Whether there is such a machine."""
    try:
        config.override({field: value})
    except ConfigError:
        return False
    return True


_MEANS = {"post_lanes": "lanes"}
"""What a field stands for where it is 0."""


class _Trial:
    """A program on other machines.

    Attributes:
        workload: what it was compiled from by its default schedule; None if that is not known.
    """

    def __init__(self, result: Result) -> None:
        self._image = result.image
        self._cycles = result.cycles or 0
        self._reads = reads_of(result.image)
        self.workload = _workload(result.image)

    def of(self, field: str, value: int, path: tuple[Segment, ...]) -> Advice | None:
        """What one change does; None if there is no such machine, or the program does not fit it."""
        recompiled = SPECS[field].kind == "geometry"
        simulated = not recompiled or len(self._image.instructions) <= _LARGE
        reads, mapping = self._reads, self._image.mapping
        try:
            config = self._image.config.override({field: value})
            if not recompiled:
                cycles = timed(self._image.with_timing(config))
            elif simulated:
                assert self.workload is not None
                image = build(self.workload, config)
                cycles, reads, mapping = timed(image), reads_of(image), image.mapping
            else:
                cycles, mapping = self._predicted(config)
        except AccelError:
            return None
        if not cycles:
            return None
        return Advice(
            field=field,
            now=int(getattr(self._image.config, field)),
            then=value,
            cycles=cycles,
            speedup=self._cycles / cycles,
            recompiled=recompiled,
            simulated=simulated,
            reason=self._reason(field, value, reads, path),
            mapping="" if mapping == self._image.mapping else mapping,
        )

    def _predicted(self, config: Config) -> tuple[int, str]:
        """Cycles by the compiler's model, corrected by what it says of this program, and the mapping."""
        assert self.workload is not None
        now, then = (choose(self.workload, one) for one in (self._image.config, config))
        before, after = (one.candidates[0].prediction.cycles for one in (now, then))
        return round(self._cycles * after / before), then.mapping.name

    def _reason(self, field: str, value: int, reads: Mapping[str, float], path: tuple[Segment, ...]) -> str:
        what = f"{field} of {_value(field, value)}"
        fewer = {
            name: (times, reads[name])
            for name, times in self._reads.items()
            if name in reads and reads[name] <= 0.95 * times
        }
        if fewer and field.endswith("_bytes"):
            name, (times, then) = max(fewer.items(), key=lambda one: one[1][0] - one[1][1])
            return f"{name} is read {_times(times)}; {what} would make it {_times(then)}"
        lever = _LEVERS[field]
        units = {unit.label for unit in lever.units}
        relieved = [one for one in shares(path) if one.cause in lever.waits and one.unit in units]
        cycles = sum(one.cycles for one in path)
        most = relieved[0]
        if most.cause in _HANDED:
            return (
                f"{most.unit} waits {most.segments:,} times on the critical path: {most.cause}; with {what}"
            )
        return f"{most.unit} {most.cause} is {most.cycles / cycles:.0%} of the critical path; with {what}"


def timed(image: Image) -> int:
    """The cycles that a program takes, of which only the timing is simulated.

    Raises:
        AccelError: it does not end well.
    """
    run = simulate_timing(
        image.instructions,
        image.config,
        address=image.config.mem_base + image.code_offset,
        tokens=image.start.tokens,
    )
    if run.stop is not None:
        raise AccelError(f"the program stops: {run.stop.fault.message}")
    return run.cycles


def reads_of(image: Image) -> dict[str, float]:
    """How many times each tensor is read from DRAM: bytes that LOADs read over those it has there."""
    names, sizes = PlaceNames(image), Counter({one.name: one.nbytes for one in image.tensors})
    read: Counter[str] = Counter()
    for one in image.instructions:
        if not isinstance(one, Load) or (rows := dram_rows(one, image.config)) is None:
            continue
        name = names.place(one)
        if name is not None and name in sizes:
            read[name] += rows.rows * rows.row_bytes
    return {name: count / sizes[name] for name, count in read.items() if sizes[name]}


def _workload(image: Image) -> Workload | None:
    """What a program was compiled from, if compiling that again gives the program."""
    options = None if image.source is None else image.source.options
    if options is None or options.workload is None:
        return None
    try:
        workload = make_workload(options.workload, options.parameters)
        again = build(workload, machine(image.config))
    except AccelError:
        return None
    return workload if again.code == image.code else None


def _value(field: str, value: int) -> str:
    """A field's value in words."""
    if SPECS[field].unit == "bytes" and value % 1024 == 0:
        return f"{value // 1024}KiB"
    return str(value)


def _times(count: float) -> str:
    """How often, in words."""
    rounded = round(count, 1)
    return "once" if rounded == 1 else f"{rounded:g} times"
