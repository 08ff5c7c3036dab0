"""Events and cycle counters of simulator and hardware."""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, Protocol

from accel.base.errors import AccelError
from accel.core.isa import Unit


class EventKind(IntEnum):
    """Kinds of events, in their order within a cycle and unit."""

    QUEUE_PUSH = 0
    """The fetch unit dispatches an instruction. Value: number of the unit whose queue it enters."""
    QUEUE_POP = 1
    """A unit takes an instruction from its queue. Value: number of the unit."""
    TOKEN_POP = 2
    """An instruction pops a token. Value: number of the token counter."""
    START = 3
    """An instruction starts. Value: 0."""
    BURST_GRANT = 4
    """The bus grants a burst. Value: its beats."""
    BURST_LAST = 5
    """The last beat of a burst is on the bus. Value: its beats."""
    RETIRE = 6
    """An instruction retires. Value: 0."""
    TOKEN_PUSH = 7
    """An instruction pushes a token. Value: number of the token counter."""


class Event(NamedTuple):
    """One event. Events sort by cycle, unit, kind."""

    cycle: int
    unit: Unit
    kind: EventKind
    instruction: int
    """Index in the program; for a burst of the fetch unit, that of its first instruction."""
    value: int


@dataclass(frozen=True, kw_only=True)
class UnitCycles:
    """Cycles of one unit by state. The four counts add up to the cycles of the run.

    Attributes:
        busy: a beat or pad word moves, a micro-op has a slot, or the fetch unit dispatches an instruction.
        memory_stall: an instruction is in flight, but nothing moves. Fetch unit: the next instruction has not
            arrived.
        token_stall: nothing is in flight (compute unit: no micro-op is issued), and the next instruction
            lacks a token. Fetch unit: the next instruction waits for room in a queue or, in serial mode, for
            the previous instruction.
        idle: all other cycles.
    """

    busy: int
    memory_stall: int
    token_stall: int
    idle: int

    def to_dict(self) -> dict[str, int]:
        return {
            "busy": self.busy,
            "memory_stall": self.memory_stall,
            "token_stall": self.token_stall,
            "idle": self.idle,
        }


MAX_RECORDS = 1 << 22
"""Largest run whose events are listed. An event takes about 150 bytes in memory and 500 in a report. Larger
runs report only cycles and counters."""


class Timing(Protocol):
    """The timing of a run."""

    @property
    def cycles(self) -> int: ...

    @property
    def unit_cycles(self) -> dict[Unit, UnitCycles]: ...

    @property
    def record_count(self) -> int | None:
        """Number of dispatches, starts, retirements, and bursts, if recorded."""

    def events(self) -> list[Event] | None:
        """Return sorted events, or None if not recorded or more than :data:`MAX_RECORDS`."""

    def retirements(self) -> list[tuple[int, int]] | None:
        """Return index and cycle of each retirement, or None if not recorded."""


def listed_events(timing: Timing) -> list[Event]:
    """Return the events of a run, or raise an AccelError."""
    events = timing.events()
    if events is None and timing.record_count is None:
        raise AccelError("the events of the run were not recorded")
    if events is None:
        raise AccelError(
            f"the run has {timing.record_count:,} records; events are listed of at most {MAX_RECORDS:,}: "
            "end the run earlier by max_cycles"
        )
    return events
