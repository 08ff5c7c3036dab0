"""What both the simulator and the hardware report about a run: typed events and cycle counters."""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, Protocol

from accel.core.isa import Unit


class EventKind(IntEnum):
    """Kinds of events, in the order in which they are listed within a cycle and unit."""

    QUEUE_PUSH = 0
    """Fetch hands out an instruction; value: the number of the unit it goes to."""
    QUEUE_POP = 1
    """A unit takes an instruction from its queue; value: the unit's number."""
    TOKEN_POP = 2
    """Value: the token counter's number."""
    START = 3
    """Value: 0."""
    BURST_GRANT = 4
    """Value: beats."""
    BURST_LAST = 5
    """The last beat is on the bus; value: beats."""
    RETIRE = 6
    """Value: 0."""
    TOKEN_PUSH = 7
    """Value: the token counter's number."""


class Event(NamedTuple):
    """Something that happened; sorting gives the order by cycle, unit, kind."""

    cycle: int
    unit: Unit
    kind: EventKind
    instruction: int
    """The instruction's place in the program; for fetch's bursts that of the first one in it."""
    value: int


@dataclass(frozen=True, kw_only=True)
class UnitCycles:
    """Where one unit's cycles went; the four add up to the cycles of the run.

    Attributes:
        busy: load, store: a beat or pad word moves; compute: a micro-op's slot, a beat or a pad word;
            fetch: an instruction is handed out.
        memory_stall: an instruction is in flight, but nothing moves; fetch: the next instruction has not
            arrived.
        token_stall: nothing is in flight and the next instruction lacks a token (compute: none is issued);
            fetch: the next instruction waits for room in a queue or, in serial mode, for the one before.
        idle: none of these.
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


class Timing(Protocol):
    """What simulator and hardware know of a run's cycles."""

    @property
    def cycles(self) -> int:
        """Length of the run."""

    @property
    def unit_cycles(self) -> dict[Unit, UnitCycles]:
        """Where each unit's cycles went."""

    def events(self) -> list[Event] | None:
        """Everything that happened, sorted; None if it was not recorded."""

    def retirements(self) -> list[tuple[int, int]] | None:
        """Each instruction that retired, by its index, and the cycle; None if events were not recorded."""
