"""Fast-forward over repeated parts of a program.

Compiled programs repeat with a fixed period, and soon each period takes the same cycles. The model skips the
remaining periods:

1. Find the *repetitions*: ranges in which each fetch burst equals the one a period earlier in beats and
   instruction timing.
2. At the start of each period, compare the state (everything that later cycles depend on) with earlier ones.
3. If a state recurs, advance all parts by the remaining periods but the last.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from accel.sim.timing.bus_ports import ReadPort
from accel.sim.timing.compute import ComputeUnit
from accel.sim.timing.fetch import FetchUnit
from accel.sim.timing.load import LoadUnit
from accel.sim.timing.periodic_state import (
    CONSTANT,
    CYCLE,
    INSTRUCTION,
    POSITION,
    Checkpoint,
    PeriodicState,
)
from accel.sim.timing.store import StoreUnit
from accel.sim.timing.timed_program import TimedProgram
from accel.sim.timing.timing_kernel import TimingKernel

_MIN_BURSTS = 8
"""Fetch bursts of the shortest program with repetitions."""
_MAX_PERIODS_TRIED = 12
"""Candidates: the most frequent distances between equal pairs of bursts."""
_MIN_PERIODS = 4
"""Periods of the shortest repetition. The state needs some until it recurs."""
_MAX_STATE_CHECKS = 48
"""State comparisons in one repetition. Later recurrence is unlikely."""


class Repetition(NamedTuple):
    """Fetch bursts ``[begin, end)``, each equal to the one ``period`` bursts before."""

    begin: int
    end: int
    period: int


def find_repetitions(kinds: npt.NDArray[np.int64]) -> list[Repetition]:
    """Find the ranges in which a sequence repeats, the longest where they overlap.

    For example, in 9 1 2 1 2 1 2 1 2 1 2 the numbers from index 3 on repeat with period 2.
    """
    count = len(kinds)
    if count < _MIN_BURSTS:
        return []
    last_seen: dict[tuple[int, ...], int] = {}
    distances: Counter[int] = Counter()
    for index, pair in enumerate(pairwise(kinds.tolist())):
        before = last_seen.get(pair)
        if before is not None:
            distances[index - before] += 1
        last_seen[pair] = index
    candidates = []
    for period, _ in distances.most_common(_MAX_PERIODS_TRIED):
        is_equal = np.concatenate([[False], kinds[period:] == kinds[:-period], [False]])
        edges = np.flatnonzero(is_equal[1:] != is_equal[:-1]) + period
        candidates += [
            Repetition(begin, end, period)
            for begin, end in edges.reshape(-1, 2).tolist()
            if end - begin >= _MIN_PERIODS * period
        ]
    chosen: list[Repetition] = []
    for one in sorted(candidates, key=lambda one: (one.begin - one.end, one.period)):
        if all(one.end <= other.begin or other.end <= one.begin for other in chosen):
            chosen.append(one)
    return sorted(chosen)


class _PeriodStart(NamedTuple):
    granted: int
    cycle: int
    checkpoints: list[Checkpoint]


class FastForward:
    """Skips repeated periods of one simulation.

    Attributes:
        next_check: granted fetch bursts at which to call ``check`` next, or -1.
    """

    def __init__(
        self,
        program: TimedProgram,
        kernel: TimingKernel,
        port: ReadPort,
        fetch: FetchUnit,
        load: LoadUnit,
        compute: ComputeUnit,
        store: StoreUnit,
    ) -> None:
        self._kernel, self._port, self._fetch = kernel, port, fetch
        self._load, self._compute, self._store = load, compute, store
        self._units = (load, compute, store)
        self._parts: Sequence[PeriodicState] = (
            fetch,
            load,
            compute,
            *store.parts,
            fetch.log,
            *(unit.log for unit in self._units),
            port,
            load.pads,
            compute.pads,
            *kernel.counters,
        )
        sizes = [len(burst.arrival) for burst in fetch.bursts]
        self._first_instructions: list[int] = [0, *np.cumsum(sizes, dtype=np.int64).tolist()]
        """The first instruction of each fetch burst, then the number of instructions."""
        self._repetitions = [] if kernel.serial else find_repetitions(self._burst_kinds(program))
        self._period_starts: dict[tuple[object, ...], _PeriodStart] = {}
        """Period starts in the current repetition, by state."""
        self._checks = 0
        self.next_check = self._repetitions[0].begin if self._repetitions else -1

    def _burst_kinds(self, program: TimedProgram) -> npt.NDArray[np.int64]:
        faulty = {*program.fetch_faults, *program.start_faults, *program.uop_faults}
        numbers = program.numbers.astype(np.int32)
        known: dict[tuple[object, ...], int] = {}
        kinds = []
        bounds = pairwise(self._first_instructions)
        for burst, (begin, end) in zip(self._fetch.bursts, bounds, strict=True):
            fault = begin if faulty and any(index in faulty for index in range(begin, end)) else -1
            key = numbers[begin:end].tobytes(), burst.burst.beats, burst.arrival, fault
            kinds.append(known.setdefault(key, len(known)))
        return np.array(kinds, dtype=np.int64)

    def check(self) -> None:
        """Skip periods that repeat an earlier one. Call it when no unit can proceed."""
        granted = self._fetch.granted
        repetition = self._repetitions[0]
        if granted == self.next_check and self._kernel.stop is None and self._is_inside(repetition):
            state = self._state()
            earlier = self._period_starts.get(state)
            if earlier is not None:
                self._skip_periods(repetition, earlier)
                self._checks = _MAX_STATE_CHECKS
            else:
                checkpoints = [part.checkpoint() for part in self._parts]
                self._period_starts[state] = _PeriodStart(granted, self._cycle, checkpoints)
                self._checks += 1
        self.next_check += repetition.period
        if self._checks >= _MAX_STATE_CHECKS or self.next_check + repetition.period > repetition.end:
            self._leave_repetition()

    def _leave_repetition(self) -> None:
        self._repetitions.pop(0)
        self._period_starts.clear()
        self._checks = 0
        while self._repetitions and self._repetitions[0].begin < self._fetch.granted:
            late = self._repetitions.pop(0)
            begin = self._fetch.granted
            if late.end - begin >= _MIN_PERIODS * late.period:
                self._repetitions.insert(0, late._replace(begin=begin))
                break
        self.next_check = self._repetitions[0].begin if self._repetitions else -1

    @property
    def _cycle(self) -> int:
        """Cycle from which a state counts: fetch's last grant."""
        return self._fetch.log.grants[-1]

    def _is_inside(self, repetition: Repetition) -> bool:
        """Whether all instructions that affect later cycles lie in the repetition or the period before."""
        first = self._first_instructions[repetition.begin - repetition.period]
        for unit in self._units:
            position = unit.oldest_relevant(self._fetch.next_dispatch)
            if position < len(unit.starts) and unit.indices[position] < first:
                return False
        return True

    def _state(self) -> tuple[object, ...]:
        fetch, base = self._fetch, self._cycle
        targets = self._compute, self._load, self._store, self._compute
        """The unit that pops each counter."""
        return (
            fetch.state(base),
            *(unit.state(fetch.next_dispatch, base) for unit in self._units),
            self._port.state(base),
            *(
                counter.state(unit.earliest_start(fetch.next_dispatch), base)
                for counter, unit in zip(self._kernel.counters, targets, strict=True)
            ),
        )

    def _skip_periods(self, repetition: Repetition, earlier: _PeriodStart) -> None:
        fetch = self._fetch
        bursts, cycles = fetch.granted - earlier.granted, self._cycle - earlier.cycle
        latest = max(self._port.last_beat, *(unit.last_cycle for unit in self._units))
        before_horizon = (self._kernel.horizon - latest) // cycles - 2
        remaining = (repetition.end - 1 - fetch.granted) // bursts  # the next burst is requested
        periods = min(remaining, before_horizon)
        if periods < 1:
            return
        first_instructions = self._first_instructions
        store_starts = earlier.checkpoints[self._parts.index(self._store)]["starts"]
        shifts = {
            CYCLE: cycles,
            INSTRUCTION: first_instructions[fetch.granted] - first_instructions[earlier.granted],
            POSITION: len(self._store.starts) - store_starts,
            CONSTANT: 0,
        }
        for part, checkpoint in zip(self._parts, earlier.checkpoints, strict=True):
            part.advance(checkpoint, periods, shifts)
