"""How much of each scratchpad is in use, cycle by cycle.

An element is in use from the start of the instruction that fills it to the retirement of the last one that
reads what it holds. What is filled and never read does not count.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from accel.core.access import Elements, Touch
from accel.core.config import Config
from accel.core.memories import UOP, scratchpads_of
from accel.views.states import Slice

_EMPTY = -1

Levels = list[tuple[int, int]]
"""``(cycle, elements)`` whenever the number changes."""


def shown(config: Config) -> list[str]:
    """The scratchpads by name, micro-ops behind the others."""
    return sorted(scratchpads_of(config), key=lambda name: name == UOP.name)


def occupancy(
    touches: Sequence[Iterable[Touch]], slices: Iterable[Slice], config: Config
) -> dict[str, Levels]:
    """The elements in use of each scratchpad.

    Args:
        touches: of each instruction.
        slices: when each instruction was in its unit, in order of their start.
        config: the depths.
    """
    pads = {name: _Scratchpad(int(getattr(config, f"{name}_depth"))) for name in shown(config)}
    for one in slices:
        read = {t.memory for t in touches[one.instruction] if not t.write}
        for touch in touches[one.instruction]:
            if not touch.write:
                pads[touch.memory].read(touch.elements, one.stop)
        for touch in touches[one.instruction]:
            if touch.write and touch.memory not in read:
                pads[touch.memory].fill(touch.elements, one.start)
    return {name: pad.levels() for name, pad in pads.items()}


class _Scratchpad:
    """Since when each element holds what it holds, and until when that is needed."""

    def __init__(self, depth: int) -> None:
        self._since = np.full(depth, _EMPTY, dtype=np.int64)
        self._until = np.full(depth, _EMPTY, dtype=np.int64)
        self._changes: Counter[int] = Counter()

    def read(self, elements: Elements, stop: int) -> None:
        """An instruction that reads elements is done by ``stop``."""
        since = self._since[elements]
        if (since == _EMPTY).any():  # what was there before the run
            self._since[elements] = np.where(since == _EMPTY, 0, since)
        self._until[elements] = np.maximum(self._until[elements], stop)

    def fill(self, elements: Elements, start: int) -> None:
        """Elements get new contents from ``start`` on."""
        self._close(self._since[elements], self._until[elements])
        self._since[elements] = start
        self._until[elements] = _EMPTY

    def _close(self, since: npt.NDArray[np.int64], until: npt.NDArray[np.int64]) -> None:
        used = until != _EMPTY
        for values, sign in ((since[used], 1), (until[used], -1)):
            cycles, counts = np.unique(values, return_counts=True)
            for cycle, count in zip(cycles.tolist(), counts.tolist(), strict=True):
                self._changes[cycle] += sign * count

    def levels(self) -> Levels:
        """How many elements are in use."""
        self._close(self._since, self._until)
        self._until[:] = _EMPTY
        level, found = 0, [(0, 0)]
        for cycle in sorted(self._changes):
            if self._changes[cycle]:
                level += self._changes[cycle]
                found.append((cycle, level))
        return found


def peaks(levels: Levels, cycles: int, bins: int) -> list[int]:
    """The highest level in each of ``bins`` equal parts of the run."""
    found = [0] * bins
    for (start, level), (stop, _) in zip(levels, [*levels[1:], (cycles, 0)], strict=True):
        if not level or stop <= start:
            continue
        first, last = start * bins // cycles, min(bins - 1, (stop - 1) * bins // cycles)
        found[first : last + 1] = [max(old, level) for old in found[first : last + 1]]
    return found
