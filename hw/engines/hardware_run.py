"""Results of a run, and the behaviour of memory."""

from collections.abc import Mapping
from enum import IntEnum
from functools import cached_property

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from accel.core.config import Config
from accel.core.events import MAX_RECORDS, Event, EventKind, UnitCycles
from accel.core.fault_causes import Cause
from accel.core.isa import Unit
from accel.core.registers import UNIT_COUNTERS
from accel.core.token_rules import Counter
from accel.image.test_scenario import Tokens


class RecordKind(IntEnum):
    PUSH = 0
    """A dispatch. Value: its unit."""
    START = 1
    """Value: bit 0 for a token popped from the previous unit, bit 1 from the next."""
    RETIRE = 2
    """The same for pushed tokens."""
    READ_GRANT = 3
    READ_LAST = 4
    WRITE_GRANT = 5
    WRITE_LAST = 6
    """Value of these four: beats."""


RECORD = np.dtype(
    [("cycle", "<u8"), ("instruction", "<u4"), ("value", "<u2"), ("unit", "u1"), ("kind", "u1")]
)
Records = npt.NDArray[np.void]

NEVER = (1 << 64) - 1


class Behaviour(Struct, frozen=True, kw_only=True):
    """Behaviour of memory and bus.

    Attributes:
        hostile: withdraw ready and answer late, at random. Otherwise cycles equal the simulator's.
        bad_read: the read burst, from 0, whose beat ``bad_beat`` has an error response.
        bad_write: the write burst with an error response.
        short_read: the read burst whose RLAST comes one beat early.
        surplus_read: the one whose RLAST comes one beat late.
    """

    hostile: bool = False
    seed: int = 0
    bad_read: int = NEVER
    bad_beat: int = 0
    bad_write: int = NEVER
    short_read: int = NEVER
    surplus_read: int = NEVER


class HardwareRun(Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """A run's end, counters and records.

    Attributes:
        cycles: up to the last event, or before the error that ended the run.
        records: in order of cycles, or None if not recorded.
        accesses: counts by ``access_names``, or None on hardware without them.
    """

    config: Config
    cause: Cause
    index: int
    counters: Mapping[str, int]
    tokens: Tokens
    records: Records | None
    accesses: Mapping[str, int] | None = None

    @property
    def cycles(self) -> int:
        return self.counters["cycles"]

    @cached_property
    def unit_cycles(self) -> dict[Unit, UnitCycles]:
        found = {}
        for unit in Unit:
            counts = {name: self.counters[f"{unit.label}_{name}"] for name in UNIT_COUNTERS}
            found[unit] = UnitCycles(**counts, idle=self.cycles - sum(counts.values()))
        return found

    @property
    def record_count(self) -> int | None:
        return None if self.records is None else len(self.records)

    def events(self) -> list[Event] | None:
        return None if self.records is None or len(self.records) > MAX_RECORDS else events_of(self.records)

    def retirements(self) -> list[tuple[int, int]] | None:
        if self.records is None:
            return None
        found = self.records[self.records["kind"] == RecordKind.RETIRE]
        found = found[np.lexsort((found["unit"], found["cycle"]))]
        return list(zip(found["instruction"].tolist(), found["cycle"].tolist(), strict=True))


_ENDS = {(counter.source, counter.target): counter for counter in Counter}


def _counters(unit: Unit, flags: int, *, push: bool) -> list[Counter]:
    neighbours = [n for bit, n in enumerate((unit.previous, unit.next)) if flags >> bit & 1]
    ends = [(unit, n) if push else (n, unit) for n in neighbours]
    return [_ENDS[one] for one in ends if one in _ENDS]


_POPS = {(u, f): _counters(u, f, push=False) for u in Unit for f in range(4)}
_PUSHES = {(u, f): _counters(u, f, push=True) for u in Unit for f in range(4)}
_UNITS = tuple(Unit)


def events_of(records: Records) -> list[Event]:
    """Return the records as sorted events."""
    found: list[Event] = []
    for cycle, instruction, value, number, kind in records.tolist():
        unit = _UNITS[number]
        if kind == RecordKind.PUSH:
            found.append(Event(cycle, unit, EventKind.QUEUE_PUSH, instruction, value))
        elif kind == RecordKind.START:
            found.append(Event(cycle, unit, EventKind.QUEUE_POP, instruction, unit))
            found += [Event(cycle, unit, EventKind.TOKEN_POP, instruction, c) for c in _POPS[unit, value]]
            found.append(Event(cycle, unit, EventKind.START, instruction, 0))
        elif kind == RecordKind.RETIRE:
            found.append(Event(cycle, unit, EventKind.RETIRE, instruction, 0))
            found += [Event(cycle, unit, EventKind.TOKEN_PUSH, instruction, c) for c in _PUSHES[unit, value]]
        elif kind in (RecordKind.READ_GRANT, RecordKind.WRITE_GRANT):
            found.append(Event(cycle, unit, EventKind.BURST_GRANT, instruction, value))
        else:
            found.append(Event(cycle, unit, EventKind.BURST_LAST, instruction, value))
    return sorted(found)
