"""When a unit writes its scratchpads: data as it comes, pad words one a cycle in between, in order."""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Mapping
from typing import ClassVar

from accel.core.timing_rules import WRITE_DELAY
from accel.sim.timing.intervals import Interval
from accel.sim.timing.port import BurstLog
from accel.sim.timing.recurring import CYCLE, NEVER, Mark, Recurring, later


class PadWriter(Recurring):
    """The pad words of one unit's LOADs, a batch for each.

    Words between two bursts that are known stay there. Those behind the last one do once no burst granted
    later can come before them.

    Args:
        log: the unit's bursts, whose beats are written ``WRITE_DELAY`` later.
        settled: called when :meth:`settle` has found the last word of a batch.
    """

    CYCLES: ClassVar[tuple[str, ...]] = ("finish", "_position")
    COUNTS: ClassVar[tuple[str, ...]] = ("_cursor",)
    LISTS: ClassVar[Mapping[str, str]] = {"_done": CYCLE, "_begins": CYCLE, "_ends": CYCLE}

    def __init__(self, log: BurstLog, settled: Callable[[], None]) -> None:
        self.finish = NEVER
        """Cycle of the first batch's last word if no more bursts are granted; NEVER if there is no batch."""
        self._log = log
        self._settled = settled
        self._cursor = 0
        """First burst that may still matter."""
        self._position = 0
        """First cycle in which the next pad word may be written, by the bursts before."""
        self._batches: deque[tuple[int, int]] = deque()
        """Words left, and earliest cycle, of each batch that is not done; there are some of the first."""
        self._done: list[int] = []
        """Cycle of the last word of each batch that is done; 0 if it has none."""
        self._begins: list[int] = []
        self._ends: list[int] = []
        """When words were written: from a cycle on, up to another."""

    def add(self, words: int, earliest: int) -> None:
        """The next instruction has ``words`` pad words, none to be written before ``earliest``."""
        if not words and not self._batches:
            self._done.append(0)
            return
        self._batches.append((words, earliest))
        if len(self._batches) == 1:
            self.look()

    def last_write(self, number: int) -> int | None:
        """Cycle of the last pad write of the unit's LOAD ``number``; 0 if it has none, None if it is not
        known yet."""
        return self._done[number] if number < len(self._done) else None

    def state(self, done: int, floor: int, base: int) -> tuple[int, ...]:
        """What matters of it, and of the bursts, if words of later instructions are not written before
        ``floor``.

        Args:
            done: how many of the unit's LOADs have been asked for their last word.
            floor: a cycle.
            base: from which cycles are counted.
        """
        begin = max(self._begin(), floor) if not self._batches else self._begin()
        batches = [number for words, earliest in self._batches for number in (words, earliest - base)]
        last = [cycle and cycle - base for cycle in self._done[done:]]
        known = self._log.behind(begin - WRITE_DELAY, base, self._cursor)
        return (
            len(batches),
            len(last),
            later(self.finish, 0, base),
            later(self._position, floor if not self._batches else 0, base),
            *batches,
            *last,
            *known,
        )

    def repeat(self, since: Mark, times: int, by: Mapping[str, int]) -> None:
        super().repeat(since, times, by)
        go = times * by[CYCLE]
        self._batches = deque((words, earliest + go) for words, earliest in self._batches)

    def writes(self) -> list[Interval]:
        """When pad words are written, as far as bursts are known."""
        runs = zip(self._begins, self._ends, strict=True)
        return [*runs, *([(self._begin(), self.finish + 1)] if self._batches else [])]

    def look(self) -> None:
        """Fill the gaps before the bursts that are known."""
        log = self._log
        while self._batches:
            words, earliest = self._batches[0]
            begin = self._begin()
            self._cursor = bisect_left(log.lasts, begin - WRITE_DELAY, self._cursor)
            if self._cursor == len(log.lasts):
                self.finish = begin + words - 1
                return
            written = log.lasts[self._cursor] + WRITE_DELAY
            room = written - log.beats[self._cursor] + 1 - begin
            if room >= words:
                self._write(begin, words)
                continue
            if room > 0:
                self._begins.append(begin)
                self._ends.append(begin + room)
                self._batches[0] = (words - room, earliest)
            self._position = written + 1
        self.finish = NEVER

    def settle(self) -> None:
        """No burst granted later comes before :attr:`finish`."""
        self._write(self._begin(), self._batches[0][0])
        self.look()
        self._settled()

    def _begin(self) -> int:
        return max(self._position, self._batches[0][1]) if self._batches else self._position

    def _write(self, begin: int, words: int) -> None:
        """Write what is left of the first batch."""
        self._position = begin + words
        self._begins.append(begin)
        self._ends.append(self._position)
        self._batches.popleft()
        self._done.append(self._position - 1)
        while self._batches and not self._batches[0][0]:
            self._batches.popleft()
            self._done.append(0)
