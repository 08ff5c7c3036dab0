"""When a unit writes its scratchpads: data as it comes, pad words one a cycle in between, in order."""

from collections.abc import Callable, Iterator

from accel.sim.timing.engine import Engine, Wake
from accel.sim.timing.intervals import Interval
from accel.sim.timing.port import BurstLog
from accel.timing import WRITE_DELAY


class PadWriter:
    """The scratchpad writes of one unit's LOADs.

    A batch's last pad word is known for sure only once no burst granted later can come before it; until
    then a handler looks again in the cycle in which the batch would be done.
    """

    def __init__(self, engine: Engine, wake: Wake, log: BurstLog, settled: Callable[[], None]) -> None:
        self._engine = engine
        self._wake = wake
        self._settled = settled
        self._log = log
        """The unit's bursts, whose beats are written ``WRITE_DELAY`` later."""
        self._cursor = 0
        """First burst that may still matter."""
        self._position = 0
        """First cycle in which the next pad word may be written."""
        self._batches: list[tuple[int, int]] = []
        """Words and earliest cycle of each batch that is not done."""
        self._done: list[int] = []
        self._runs: list[Interval] = []
        """Pad words written by the batches that are done."""
        engine.on(wake, self._look)

    def add(self, words: int, earliest: int) -> None:
        """The next instruction has ``words`` pad words, none to be written before ``earliest``."""
        if not words and not self._batches:
            self._done.append(0)
            return
        self._batches.append((words, earliest))
        if len(self._batches) == 1:
            self._engine.schedule(self._finish(), self._wake)

    def last_write(self, number: int) -> int | None:
        """Cycle of the last pad write of the unit's LOAD ``number``; 0 if it has none, None if it is not
        known yet."""
        return self._done[number] if number < len(self._done) else None

    def writes(self) -> list[Interval]:
        """When pad words are written, as far as bursts are known."""
        return [*self._runs, *(self._gaps(self._position) if self._batches else [])]

    def _look(self, cycle: int) -> None:
        while self._batches:
            finish = self._finish()
            if finish > cycle:
                self._engine.schedule(finish, self._wake)
                break
            runs = list(self._gaps(self._position))
            words, _ = self._batches.pop(0)
            self._done.append(finish if words else 0)
            self._runs.extend(runs)
            if words:
                self._position = finish + 1
        self._settled()

    def _finish(self) -> int:
        """Cycle of the first batch's last write, by the data writes known so far."""
        last = max(self._position, self._batches[0][1])
        for _, stop in self._gaps(self._position):
            last = stop - 1
        return last

    def _gaps(self, position: int) -> Iterator[Interval]:
        """Where the first batch's words go: cycles from ``position`` on in which no data is written."""
        words, earliest = self._batches[0]
        cycle = max(position, earliest)
        firsts, lasts = self._log.firsts, self._log.lasts
        while self._cursor < len(lasts) and lasts[self._cursor] + WRITE_DELAY < cycle:
            self._cursor += 1
        for number in range(self._cursor, len(lasts)):
            room = min(words, max(0, firsts[number] + WRITE_DELAY - cycle))
            if room:
                yield cycle, cycle + room
                words -= room
            if not words:
                return
            cycle = max(cycle, lasts[number] + WRITE_DELAY + 1)
        if words:
            yield cycle, cycle + words
