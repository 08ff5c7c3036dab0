"""The part of DRAM that a program both writes and reads."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from accel.base.fast_unique import distinct
from accel.core.config import Config
from accel.core.instruction_access import dram_rows
from accel.core.isa import Instruction, Load
from accel.core.program_conflicts import Accesses, Numbers

_ROWS_AT_ONCE = 1 << 17
"""Rows whose segments are found together."""


class SharedDram:
    """The shared part of DRAM, in segments.

    Segments end where rows start or end, so that every access is a set of whole segments, like elements of a
    scratchpad. The instructions are the bytes ``program_span``.
    """

    def __init__(
        self,
        instructions: Sequence[Instruction],
        config: Config,
        program_span: tuple[int, int] | None = None,
    ) -> None:
        found = [
            (n, rows) for n, one in enumerate(instructions) if (rows := dram_rows(one, config)) is not None
        ]
        self._places = np.array([n for n, _ in found], dtype=np.intp)
        """Instructions that access DRAM. ``_rows`` and ``_writes`` have an entry for each."""
        self._rows = np.array([rows for _, rows in found], dtype=np.int64).reshape(-1, 4)
        _, counts, row_bytes, stride = self._rows.T
        is_solid = (stride == row_bytes) | (counts == 1)
        row_bytes[is_solid] *= counts[is_solid]
        counts[is_solid] = 1
        self._writes = np.array([not isinstance(instructions[n], Load) for n, _ in found], dtype=np.bool_)
        bounds, wrote = _row_bounds(self._rows), np.repeat(self._writes, counts)
        reads, writes = bounds[~wrote], bounds[wrote]
        if program_span is not None:
            reads = np.concatenate([reads, np.array([program_span], dtype=np.int64)])
        shared = _intersect(_union(reads), _union(writes))
        self._bounds = np.zeros(0, dtype=np.int64)
        if len(shared):
            everything = np.concatenate([reads, writes])
            near = everything[_overlapping(everything, shared)]
            self._bounds = distinct(near)
        self.segments = max(0, len(self._bounds) - 1)
        self.program: npt.NDArray[np.intp] | None = None
        if program_span and self.segments:
            (self.program,) = self._of_bounds(np.array([program_span]), np.array([1]))

    def elements(self, index: int) -> npt.NDArray[np.intp] | None:
        return self._sets.get(index)

    @cached_property
    def _sets(self) -> dict[int, npt.NDArray[np.intp]]:
        """The segments of each instruction that has any."""
        found: dict[int, npt.NDArray[np.intp]] = {}
        if not self.segments:
            return found
        ends = np.cumsum(self._rows[:, 1])
        begin = 0
        while begin < len(ends):
            before = int(ends[begin - 1]) if begin else 0
            end = max(begin + 1, int(np.searchsorted(ends, before + _ROWS_AT_ONCE, side="right")))
            rows = self._rows[begin:end]
            sets = self._of_bounds(_row_bounds(rows), rows[:, 1])
            found |= {
                n: one for n, one in zip(self._places[begin:end].tolist(), sets, strict=True) if len(one)
            }
            begin = end
        return found

    def accesses(self, places: npt.NDArray[np.intp]) -> tuple[Accesses, list[Numbers]]:
        """Return accesses and the segments of each set. ``places`` index the given instructions."""
        used = [index for index in distinct(places).tolist() if index in self._sets]
        sets = [self._sets[index] for index in used]
        which = np.full(int(places.max(initial=-1)) + 1, -1, dtype=np.int32)
        which[used] = np.arange(len(used))
        writes = np.zeros(len(which), dtype=np.bool_)
        known = self._places < len(writes)
        writes[self._places[known]] = self._writes[known]
        instructions = np.flatnonzero(which[places] >= 0).astype(np.int32)
        at = places[instructions]
        accesses = Accesses(sets, instructions, writes[at], which[at])
        return accesses, [elements.astype(np.int32) for elements in sets]

    def span(self, segment: int) -> tuple[int, int]:
        """Return first and last byte."""
        return int(self._bounds[segment]), int(self._bounds[segment + 1]) - 1

    def _of_bounds(
        self, bounds: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]
    ) -> list[npt.NDArray[np.intp]]:
        """Return the segments of accesses with ``counts`` ascending rows each, in time proportional to the
        result."""
        first = np.searchsorted(self._bounds, bounds[:, 0])
        last = np.minimum(np.searchsorted(self._bounds, bounds[:, 1]), self.segments)
        begins = np.cumsum(counts) - counts
        follows = np.ones(len(bounds), dtype=np.bool_)
        follows[begins] = False
        (later,) = np.nonzero(follows)
        first[later] = np.maximum(first[later], last[later - 1])  # rows may overlap
        sizes = np.maximum(last - first, 0)
        offsets = np.cumsum(sizes) - sizes
        segments = np.repeat(first - offsets, sizes) + np.arange(int(sizes.sum()), dtype=np.intp)
        return np.split(segments, offsets[begins[1:]])


def _row_bounds(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return first byte and end of each row of each access, which are ``DramRows``."""
    start, counts, row_bytes, stride = rows.T
    number = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    begins = np.repeat(start, counts) + number * np.repeat(stride, counts)
    return np.stack([begins, begins + np.repeat(row_bytes, counts)], axis=1)


def _union(bounds: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    if not len(bounds):
        return bounds
    bounds = bounds[np.argsort(bounds[:, 0], kind="stable")]
    reach = np.maximum.accumulate(bounds[:, 1])
    fresh = np.flatnonzero(np.concatenate([[True], bounds[1:, 0] > reach[:-1]]))
    ends = np.concatenate([fresh[1:] - 1, [len(bounds) - 1]])
    return np.stack([bounds[fresh, 0], reach[ends]], axis=1)


def _intersect(a: npt.NDArray[np.int64], b: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return intervals of ``a`` that overlap one of ``b``, both sorted and disjoint."""
    return a[_overlapping(a, b)] if len(a) and len(b) else a[:0]


def _overlapping(bounds: npt.NDArray[np.int64], disjoint: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    behind = np.searchsorted(disjoint[:, 1], bounds[:, 0], side="right")
    clipped = np.minimum(behind, len(disjoint) - 1)
    hit: npt.NDArray[np.bool_] = (behind < len(disjoint)) & (disjoint[clipped, 0] < bounds[:, 1])
    return hit
