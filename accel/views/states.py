"""What is known of a run, unit by unit: states, instructions, tokens, bursts."""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from accel.core.events import UnitCycles
from accel.core.isa import Unit
from accel.core.states import State as State  # noqa: PLC0414  # where views find it
from accel.core.token_rules import Counter


class Reason(IntEnum):
    """Why a unit is in its state."""

    WORK = 0
    FIRST_BEAT = 1
    NEXT_BEAT = 2
    LAST_WRITE = 3
    PAR_IN_USE = 4
    PAR_LOADED = 5
    RES_FULL = 6
    RES_LOADED = 7
    ARRIVAL = 8
    LOAD_TO_COMPUTE = 9
    COMPUTE_TO_LOAD = 10
    COMPUTE_TO_STORE = 11
    STORE_TO_COMPUTE = 12
    LOAD_QUEUE = 13
    COMPUTE_QUEUE = 14
    STORE_QUEUE = 15
    SERIAL = 16
    EMPTY = 17
    OCCUPIED = 18
    DONE = 19

    @property
    def label(self) -> str:
        return _REASONS[self]

    @classmethod
    def of_counter(cls, counter: Counter) -> "Reason":
        """Waiting for a token of this counter."""
        return cls[counter.name]


_REASONS = {
    Reason.WORK: "works",
    Reason.FIRST_BEAT: "memory: no data yet",
    Reason.NEXT_BEAT: "memory: between bursts",
    Reason.LAST_WRITE: "memory: until the last write is done",
    Reason.PAR_IN_USE: "memory: what the next LOAD.PAR overwrites is still in use",
    Reason.PAR_LOADED: "memory: biases and scales of the next STORE are not loaded yet",
    Reason.RES_FULL: "memory: res has no room yet",
    Reason.RES_LOADED: "memory: residuals of the next STORE are not loaded yet",
    Reason.ARRIVAL: "memory: the next instruction has not arrived",
    Reason.LOAD_TO_COMPUTE: "RAW token from load",
    Reason.COMPUTE_TO_LOAD: "WAR token from compute",
    Reason.COMPUTE_TO_STORE: "RAW token from compute",
    Reason.STORE_TO_COMPUTE: "WAR token from store",
    Reason.LOAD_QUEUE: "the load unit's queue is full",
    Reason.COMPUTE_QUEUE: "the compute unit's queue is full",
    Reason.STORE_QUEUE: "the store unit's queue is full",
    Reason.SERIAL: "serial: the instruction before has not retired",
    Reason.EMPTY: "its queue is empty",
    Reason.OCCUPIED: "what runs must be done first",
    Reason.DONE: "nothing left to do",
}
NOBODY = -1
"""In place of an instruction's number."""


class Span(NamedTuple):
    """Cycles ``[start, stop)`` of one unit in one state."""

    start: int
    stop: int
    state: State
    reason: Reason
    instruction: int
    """The one that works or waits, or :data:`NOBODY`."""
    other: int
    """The instruction that is waited for, or :data:`NOBODY`."""


class Slice(NamedTuple):
    """One instruction in its unit, from its start up to and including the cycle of its retirement."""

    instruction: int
    unit: Unit
    queued: int
    """The cycle in which fetch handed it out."""
    start: int
    stop: int
    begin: int
    """First cycle in which data moves or a micro-op is issued; ``stop`` if there is none."""
    end: int
    """Behind the last such cycle; ``stop`` if there is none."""
    row: int
    """Slices of a unit that overlap are in different rows."""


class Flow(NamedTuple):
    """A token from the instruction that pushed it to the one that popped it."""

    counter: Counter
    source: int
    target: int
    pushed: int
    popped: int


class Beats(NamedTuple):
    """A burst that takes cycles ``[start, stop)``, one of the read or of the write channels."""

    unit: Unit
    writes: bool
    instruction: int
    grant: int
    start: int
    stop: int
    pace: int
    """Cycles that a beat takes, in the last of which it is on the bus."""

    def beats(self, before: int) -> int:
        """How many of its beats are on the bus before a cycle."""
        return max(0, min(self.stop, before) - self.start) // self.pace


@dataclass(frozen=True, kw_only=True)
class Activity:
    """A run by units.

    Attributes:
        cycles: length of the run.
        handed: how many instructions fetch has handed out.
        slices: instructions in order of their start; those that did not retire end with the run.
        spans: per unit, its states; they cover the run without gaps or overlaps.
        flows: tokens in the order in which they were popped; those of the start and those left over have
            only one end and are left out.
        bursts: in order of their grants, per unit, its reads before its writes; those that the end of the run
            cuts short, whole.
        queues: per unit that has a queue, ``(cycle, entries)`` whenever the number changes.
        tokens: per counter, ``(cycle, tokens)`` at the start and whenever the number changes.
    """

    cycles: int
    handed: int
    slices: list[Slice]
    spans: dict[Unit, list[Span]]
    flows: list[Flow]
    bursts: list[Beats]
    queues: dict[Unit, list[tuple[int, int]]]
    tokens: dict[Counter, list[tuple[int, int]]]

    def beats_by(self, step: int, unit: Unit, *, writes: bool) -> list[int]:
        """Beats of a unit's reads, or of its writes, in every ``step`` cycles."""
        found = [0] * -(-self.cycles // step)
        for burst in self.bursts:
            if burst.unit is not unit or burst.writes is not writes:
                continue
            start = burst.start
            while start < min(burst.stop, self.cycles):
                place = start // step
                stop = min(burst.stop, self.cycles, (place + 1) * step)
                found[place] += burst.beats(stop) - burst.beats(start)
                start = stop
        return found

    def unit_cycles(self, unit: Unit) -> UnitCycles:
        """Where a unit's cycles went."""
        sums = dict.fromkeys(State, 0)
        for span in self.spans[unit]:
            sums[span.state] += span.stop - span.start
        return UnitCycles(
            busy=sums[State.BUSY],
            memory_stall=sums[State.MEMORY],
            token_stall=sums[State.TOKEN],
            idle=sums[State.IDLE],
        )
