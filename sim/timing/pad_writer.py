"""The cycles in which a unit writes pad words."""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Mapping
from typing import ClassVar

import numpy as np

from accel.core.timing_rules import WRITE_DELAY
from accel.sim.timing.bus_ports import BurstLog
from accel.sim.timing.cycle_intervals import IntervalArray
from accel.sim.timing.periodic_state import CYCLE, NEVER, Checkpoint, PeriodicState, column, relative_cycle


class PadWriter(PeriodicState):
    """Writes the pad words of one unit's LOADs, one batch for each LOAD: one word per cycle without data, in
    program order.

    A word between two known bursts is final, a later one when no later grant can put data before it
    (:meth:`complete_first`). Reads in ``log`` are written ``WRITE_DELAY`` cycles after they are on the bus.
    """

    CYCLES: ClassVar[tuple[str, ...]] = ("completion", "_next_free")
    COUNTERS: ClassVar[tuple[str, ...]] = ("_cursor",)
    COLUMNS: ClassVar[Mapping[str, str]] = {"_completions": CYCLE, "_begins": CYCLE, "_ends": CYCLE}

    def __init__(self, log: BurstLog, on_complete: Callable[[], None]) -> None:
        self.completion = NEVER
        """The first batch's last cycle if no more bursts are granted, NEVER without a batch."""
        self._log = log
        self._on_complete = on_complete
        self._cursor = 0
        """First burst that may still delay a pad word."""
        self._next_free = 0
        """First cycle for the next pad word, given the earlier bursts and words."""
        self._batches: deque[tuple[int, int]] = deque()
        """Remaining words and earliest cycle of each incomplete batch. The first has words."""
        self._completions: list[int] = []
        """Each complete batch's last cycle, or 0 without words."""
        self._begins = column()
        self._ends = column()
        """Intervals in which words were written."""

    def add(self, words: int, earliest: int) -> None:
        """Append the next LOAD's batch, not written before ``earliest``."""
        if not words and not self._batches:
            self._completions.append(0)
            return
        self._batches.append((words, earliest))
        if len(self._batches) == 1:
            self.fill_gaps()

    def last_write(self, number: int) -> int | None:
        """Return the cycle of LOAD ``number``'s last pad word, 0 without pads, None if unknown."""
        return self._completions[number] if number < len(self._completions) else None

    def writes(self) -> IntervalArray:
        begins, ends = self._begins[:], self._ends[:]
        if self._batches:
            begins.append(self._begin())
            ends.append(self.completion + 1)
        return np.stack([np.array(begins, dtype=np.int64), np.array(ends, dtype=np.int64)], axis=1)

    def fill_gaps(self) -> None:
        log = self._log
        while self._batches:
            words, earliest = self._batches[0]
            begin = self._begin()
            self._cursor = bisect_left(log.lasts, begin - WRITE_DELAY, self._cursor)
            if self._cursor == len(log.lasts):
                self.completion = begin + words - 1
                return
            written = log.lasts[self._cursor] + WRITE_DELAY
            gap = written - log.beats[self._cursor] + 1 - begin
            if gap >= words:
                self._complete(begin, words)
                continue
            if gap > 0:
                self._begins.append(begin)
                self._ends.append(begin + gap)
                self._batches[0] = (words - gap, earliest)
            self._next_free = written + 1
        self.completion = NEVER

    def complete_first(self) -> None:
        self._complete(self._begin(), self._batches[0][0])
        self.fill_gaps()
        self._on_complete()

    def _begin(self) -> int:
        return max(self._next_free, self._batches[0][1]) if self._batches else self._next_free

    def _complete(self, begin: int, words: int) -> None:
        self._next_free = begin + words
        self._begins.append(begin)
        self._ends.append(self._next_free)
        self._batches.popleft()
        self._completions.append(self._next_free - 1)
        while self._batches and not self._batches[0][0]:
            self._batches.popleft()
            self._completions.append(0)

    def state(self, seen: int, floor: int, base: int) -> tuple[int, ...]:
        """The unit has used ``seen`` completions. No word of a later LOAD is written before ``floor``."""
        begin = max(self._begin(), floor) if not self._batches else self._begin()
        batches = [number for words, earliest in self._batches for number in (words, earliest - base)]
        completions = [cycle and cycle - base for cycle in self._completions[seen:]]
        bursts = self._log.state_from(begin - WRITE_DELAY, base, self._cursor)
        return (
            len(batches),
            len(completions),
            relative_cycle(self.completion, 0, base),
            relative_cycle(self._next_free, floor if not self._batches else 0, base),
            *batches,
            *completions,
            *bursts,
        )

    def advance(self, since: Checkpoint, periods: int, shifts: Mapping[str, int]) -> None:
        super().advance(since, periods, shifts)
        shift = periods * shifts[CYCLE]
        self._batches = deque((words, earliest + shift) for words, earliest in self._batches)
