"""What a run on the hardware gave, and how memory behaves in it; the same for every engine."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np
import numpy.typing as npt

from accel.core.config import Config
from accel.core.events import Event, EventKind, UnitCycles
from accel.core.faults import Cause
from accel.core.isa import Unit
from accel.core.registers import UNIT_COUNTERS
from accel.core.token_rules import Counter
from accel.image.scenario import Tokens


class RecordKind(IntEnum):
    """What an engine notes of the observation ports."""

    PUSH = 0
    """Fetch hands out an instruction; value: the unit it goes to."""
    START = 1
    """Value: bit 0 for a token of the previous unit popped, bit 1 for one of the next."""
    RETIRE = 2
    """Value: bit 0 for a token pushed to the previous unit, bit 1 for one to the next."""
    READ_GRANT = 3
    READ_LAST = 4
    WRITE_GRANT = 5
    WRITE_LAST = 6
    """Value of these four: beats."""


RECORD = np.dtype(
    [("cycle", "<u8"), ("instruction", "<u4"), ("value", "<u2"), ("unit", "u1"), ("kind", "u1")]
)
"""One entry of the notes."""
Records = npt.NDArray[np.void]

NEVER = (1 << 64) - 1
"""An ordinal or a limit that is not reached."""


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """How memory and bus behave.

    Attributes:
        hostile: take ready away, and answer late, at random; without it memory is that of the timing
            contract, and cycles are those of the simulator.
        seed: of that.
        bad_read: the read burst, counted from zero, that is answered with an error in beat ``bad_beat``.
        bad_write: the write burst that is answered with an error.
        short_read: the read burst whose RLAST comes a beat early, with the last beat that there is.
        surplus_read: the read burst whose RLAST comes with a beat too many.
    """

    hostile: bool = False
    seed: int = 0
    bad_read: int = NEVER
    bad_beat: int = 0
    bad_write: int = NEVER
    short_read: int = NEVER
    surplus_read: int = NEVER


@dataclass(frozen=True, kw_only=True, eq=False)
class HardwareRun:
    """How a run ended, and what the hardware's counters and observation ports showed.

    Attributes:
        cycles: up to and including the last cycle in which anything happens; of a run cut short by an error,
            the cycles before the one in which it was found.
        index: the instruction at fault.
        counters: by register name.
        tokens: what the token counters hold at the end.
        records: what happened, in order of cycles; None if it was not recorded.
    """

    config: Config
    cause: Cause
    index: int
    counters: Mapping[str, int]
    tokens: Tokens
    records: Records | None

    @property
    def cycles(self) -> int:
        return self.counters["cycles"]

    @cached_property
    def unit_cycles(self) -> dict[Unit, UnitCycles]:
        """Where each unit's cycles went."""
        found = {}
        for unit in Unit:
            counts = {name: self.counters[f"{unit.label}_{name}"] for name in UNIT_COUNTERS}
            found[unit] = UnitCycles(**counts, idle=self.cycles - sum(counts.values()))
        return found

    def events(self) -> list[Event] | None:
        """All events, sorted; None if they were not recorded."""
        return None if self.records is None else events_of(self.records)

    def retirements(self) -> list[tuple[int, int]] | None:
        """Each instruction that retired, by its index, and the cycle; None if events were not recorded."""
        found = self.events()
        if found is None:
            return None
        return [(event.instruction, event.cycle) for event in found if event.kind is EventKind.RETIRE]


_ENDS = {(counter.source, counter.target): counter for counter in Counter}


def _counters(unit: Unit, flags: int, *, push: bool) -> list[Counter]:
    """The token counters that flags toward the previous and the next unit stand for."""
    neighbours = [n for bit, n in enumerate((unit.previous, unit.next)) if flags >> bit & 1]
    ends = [(unit, n) if push else (n, unit) for n in neighbours]
    return [_ENDS[one] for one in ends if one in _ENDS]


_POPS = {(u, f): _counters(u, f, push=False) for u in Unit for f in range(4)}
_PUSHES = {(u, f): _counters(u, f, push=True) for u in Unit for f in range(4)}
_UNITS = tuple(Unit)


def events_of(records: Records) -> list[Event]:
    """The notes as events, sorted."""
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
