"""States, instructions, tokens and bursts of a run."""

from enum import IntEnum
from typing import NamedTuple

from msgspec import Struct

from accel.core.events import UnitCycles
from accel.core.isa import Unit
from accel.core.token_rules import Counter
from accel.core.unit_states import State


class StateReason(IntEnum):
    """Why a unit is in its state."""

    WORK = 0
    FIRST_BEAT = 1
    NEXT_BEAT = 2
    LAST_WRITE = 3
    OPERAND_IN_USE = 4
    OPERAND_LOADED = 5
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
        return _LABELS[self]

    @classmethod
    def of_counter(cls, counter: Counter) -> "StateReason":
        return cls[counter.name]


_LABELS = {
    StateReason.WORK: "works",
    StateReason.FIRST_BEAT: "memory: the first data has not arrived",
    StateReason.NEXT_BEAT: "memory: gap between two bursts",
    StateReason.LAST_WRITE: "memory: the last write is not complete",
    StateReason.OPERAND_IN_USE: "memory: the next LOAD would overwrite parameters in use",
    StateReason.OPERAND_LOADED: "memory: biases, scales or the table of the next STORE are not loaded",
    StateReason.RES_FULL: "memory: res is full",
    StateReason.RES_LOADED: "memory: residuals of the next STORE are not loaded yet",
    StateReason.ARRIVAL: "memory: the next instruction has not arrived",
    StateReason.LOAD_TO_COMPUTE: "RAW token from load",
    StateReason.COMPUTE_TO_LOAD: "WAR token from compute",
    StateReason.COMPUTE_TO_STORE: "RAW token from compute",
    StateReason.STORE_TO_COMPUTE: "WAR token from store",
    StateReason.LOAD_QUEUE: "the load unit's queue is full",
    StateReason.COMPUTE_QUEUE: "the compute unit's queue is full",
    StateReason.STORE_QUEUE: "the store unit's queue is full",
    StateReason.SERIAL: "serial mode: the previous instruction has not retired",
    StateReason.EMPTY: "its queue is empty",
    StateReason.OCCUPIED: "earlier instructions of the unit must progress first",
    StateReason.DONE: "no instructions left",
}
NO_INSTRUCTION = -1


class StateSpan(NamedTuple):
    """Cycles ``[start, stop)`` of one unit in one state.

    ``instruction`` works, or waits for ``awaited``. Either may be :data:`NO_INSTRUCTION`.
    """

    start: int
    stop: int
    state: State
    reason: StateReason
    instruction: int
    awaited: int


class InstructionSlice(NamedTuple):
    """An instruction, from its start to the cycle of its retirement, inclusive.

    Its data moves, or its micro-ops issue, in ``[work_start, work_stop)``. Both are ``stop`` without work.
    Overlapping slices have different rows.
    """

    instruction: int
    unit: Unit
    dispatched: int
    start: int
    stop: int
    work_start: int
    work_stop: int
    row: int


class TokenFlow(NamedTuple):
    """A token from one instruction to another."""

    counter: Counter
    source: int
    target: int
    pushed: int
    popped: int


class Burst(NamedTuple):
    """A burst on the bus.

    Each beat moves in the last of its ``cycles_per_beat`` cycles.
    """

    unit: Unit
    is_write: bool
    instruction: int
    granted: int
    start: int
    stop: int
    cycles_per_beat: int

    def beats_before(self, cycle: int) -> int:
        return max(0, min(self.stop, cycle) - self.start) // self.cycles_per_beat


class Activity(Struct, frozen=True, kw_only=True):
    """Everything that the units did in a run.

    Attributes:
        slices: instructions by start, not later than the run's end.
        spans: the states of each unit, without gaps or overlaps.
        flows: tokens by pop, without those at the start and at the end.
        bursts: by grant for each unit, reads before writes.
        queue_levels: by unit, ``(cycle, entries)`` of every change.
        token_levels: by counter, ``(cycle, tokens)`` at the start and of every change.
    """

    cycles: int
    dispatched: int
    slices: list[InstructionSlice]
    spans: dict[Unit, list[StateSpan]]
    flows: list[TokenFlow]
    bursts: list[Burst]
    queue_levels: dict[Unit, list[tuple[int, int]]]
    token_levels: dict[Counter, list[tuple[int, int]]]

    def beats_per_step(self, step: int, unit: Unit, *, is_write: bool) -> list[int]:
        found = [0] * -(-self.cycles // step)
        for burst in self.bursts:
            if burst.unit is not unit or burst.is_write is not is_write:
                continue
            start = burst.start
            while start < min(burst.stop, self.cycles):
                number = start // step
                stop = min(burst.stop, self.cycles, (number + 1) * step)
                found[number] += burst.beats_before(stop) - burst.beats_before(start)
                start = stop
        return found

    def unit_cycles(self, unit: Unit) -> UnitCycles:
        sums = dict.fromkeys(State, 0)
        for span in self.spans[unit]:
            sums[span.state] += span.stop - span.start
        return UnitCycles(
            busy=sums[State.BUSY],
            memory_stall=sums[State.MEMORY],
            token_stall=sums[State.TOKEN],
            idle=sums[State.IDLE],
        )
