"""Occupied elements of each scratchpad, cycle by cycle.

An element is occupied from the start of the instruction that fills it until its last reader retires.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from accel.core.config import Config
from accel.core.instruction_access import Elements, Touch
from accel.core.scratchpad_specs import UOP, scratchpads_of
from accel.views.activity_records import InstructionSlice

_NEVER = -1

Levels = list[tuple[int, int]]
"""``(cycle, elements)`` of every change."""


def listed_scratchpads(config: Config) -> list[str]:
    """Return the names of scratchpads, micro-ops last."""
    return sorted(scratchpads_of(config), key=lambda name: name == UOP.name)


def occupancy(
    touches: Sequence[Iterable[Touch]], slices: Iterable[InstructionSlice], config: Config
) -> dict[str, Levels]:
    """Return occupied elements. ``slices`` are sorted by start."""
    pads = {
        name: _ElementLifetimes(int(getattr(config, f"{name}_depth"))) for name in listed_scratchpads(config)
    }
    for one in slices:
        read = {t.memory for t in touches[one.instruction] if not t.write}
        for touch in touches[one.instruction]:
            if not touch.write:
                pads[touch.memory].read(touch.elements, one.stop)
        for touch in touches[one.instruction]:
            if touch.write and touch.memory not in read:
                pads[touch.memory].fill(touch.elements, one.start)
    return {name: pad.levels() for name, pad in pads.items()}


class _ElementLifetimes:
    def __init__(self, depth: int) -> None:
        self._filled = np.full(depth, _NEVER, dtype=np.int64)
        self._last_read = np.full(depth, _NEVER, dtype=np.int64)
        self._changes: Counter[int] = Counter()

    def read(self, elements: Elements, stop: int) -> None:
        """Elements without a fill count from cycle 0."""
        filled = self._filled[elements]
        if (filled == _NEVER).any():
            self._filled[elements] = np.where(filled == _NEVER, 0, filled)
        self._last_read[elements] = np.maximum(self._last_read[elements], stop)

    def fill(self, elements: Elements, start: int) -> None:
        self._count(self._filled[elements], self._last_read[elements])
        self._filled[elements] = start
        self._last_read[elements] = _NEVER

    def _count(self, filled: npt.NDArray[np.int64], last_read: npt.NDArray[np.int64]) -> None:
        is_read = last_read != _NEVER
        for values, sign in ((filled[is_read], 1), (last_read[is_read], -1)):
            cycles, counts = np.unique(values, return_counts=True)
            for cycle, count in zip(cycles.tolist(), counts.tolist(), strict=True):
                self._changes[cycle] += sign * count

    def levels(self) -> Levels:
        self._count(self._filled, self._last_read)
        self._last_read[:] = _NEVER
        level, found = 0, [(0, 0)]
        for cycle in sorted(self._changes):
            if self._changes[cycle]:
                level += self._changes[cycle]
                found.append((cycle, level))
        return found


def peaks(levels: Levels, cycles: int, bins: int) -> list[int]:
    """Return the highest level in each part.

    For example, levels ``[(0, 1), (3, 5), (4, 0)]`` over 8 cycles have the peaks 5 and 0 in two parts.
    """
    found = [0] * bins
    for (start, level), (stop, _) in zip(levels, [*levels[1:], (cycles, 0)], strict=True):
        if not level or stop <= start:
            continue
        first, last = start * bins // cycles, min(bins - 1, (stop - 1) * bins // cycles)
        found[first : last + 1] = [max(old, level) for old in found[first : last + 1]]
    return found
