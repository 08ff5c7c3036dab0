"""The part of DRAM that a program both writes and reads."""

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from accel.base.fast_unique import distinct
from accel.core.config import Config
from accel.core.instruction_access import DramRows, dram_rows
from accel.core.isa import Instruction, Load
from accel.core.program_conflicts import Accesses, Numbers


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
        self._rows: dict[int, DramRows] = {}
        self._writers: set[int] = set()
        read: list[DramRows] = []
        written: list[DramRows] = []
        for index, instruction in enumerate(instructions):
            rows = dram_rows(instruction, config)
            if rows is not None:
                self._rows[index] = rows
                if isinstance(instruction, Load):
                    read.append(rows)
                else:
                    self._writers.add(index)
                    written.append(rows)
        reads, writes = _all_bounds(read), _all_bounds(written)
        if program_span is not None:
            reads.append(np.array([program_span], dtype=np.int64))
        shared = _intersect(_union(reads), _union(writes))
        self._bounds = np.zeros(0, dtype=np.int64)
        if len(shared):
            everything = np.concatenate([*reads, *writes])
            near = everything[_overlapping(everything, shared)]
            self._bounds = distinct(near)
        self._bound_list = self._bounds.tolist()
        self.segments = max(0, len(self._bounds) - 1)
        self.program = self._of_bounds(np.array([program_span])) if program_span and self.segments else None

    def elements(self, index: int) -> npt.NDArray[np.intp] | None:
        rows = self._rows.get(index)
        if rows is None or not self.segments:
            return None
        if rows.stride == rows.row_bytes or rows.rows == 1:
            stop = rows.start + rows.rows * rows.row_bytes
            first = bisect_left(self._bound_list, rows.start)
            last = min(bisect_left(self._bound_list, stop), self.segments)
            return np.arange(first, last, dtype=np.intp) if first < last else None
        found = self._of_bounds(_row_bounds(rows))
        return found if len(found) else None

    def accesses(self, places: npt.NDArray[np.intp]) -> tuple[Accesses, list[Numbers]]:
        """Return accesses and the segments of each set. ``places`` index the given instructions."""
        sets: list[npt.NDArray[np.intp]] = []
        which = np.full(int(places.max(initial=-1)) + 1, -1, dtype=np.int32)
        writes = np.zeros(len(which), dtype=np.bool_)
        for index in distinct(places).tolist():
            elements = self.elements(index)
            if elements is not None:
                which[index], writes[index] = len(sets), index in self._writers
                sets.append(elements)
        instructions = np.flatnonzero(which[places] >= 0).astype(np.int32)
        at = places[instructions]
        accesses = Accesses(sets, instructions, writes[at], which[at])
        return accesses, [elements.astype(np.int32) for elements in sets]

    def span(self, segment: int) -> tuple[int, int]:
        """Return first and last byte."""
        return int(self._bounds[segment]), int(self._bounds[segment + 1]) - 1

    def _of_bounds(self, bounds: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
        """Return the segments of ascending rows, in time proportional to the result."""
        first = np.searchsorted(self._bounds, bounds[:, 0])
        last = np.minimum(np.searchsorted(self._bounds, bounds[:, 1]), self.segments)
        first[1:] = np.maximum(first[1:], np.maximum.accumulate(last)[:-1])
        counts = np.maximum(last - first, 0)
        begins = np.cumsum(counts) - counts
        return np.repeat(first - begins, counts) + np.arange(int(counts.sum()), dtype=np.intp)


def _row_bounds(rows: DramRows) -> npt.NDArray[np.int64]:
    if rows.stride == rows.row_bytes or rows.rows == 1:
        return np.array([[rows.start, rows.start + rows.rows * rows.row_bytes]], dtype=np.int64)
    bounds = np.empty((rows.rows, 2), dtype=np.int64)
    bounds[:, 0] = rows.start + np.arange(rows.rows, dtype=np.int64) * rows.stride
    np.add(bounds[:, 0], rows.row_bytes, out=bounds[:, 1])
    return bounds


def _all_bounds(every: Sequence[DramRows]) -> list[npt.NDArray[np.int64]]:
    solid = [rows.stride == rows.row_bytes or rows.rows == 1 for rows in every]
    parts = [_row_bounds(rows) for rows, one in zip(every, solid, strict=True) if not one]
    whole = [
        (rows.start, rows.start + rows.rows * rows.row_bytes)
        for rows, one in zip(every, solid, strict=True)
        if one
    ]
    return [*parts, np.array(whole, dtype=np.int64)] if whole else parts


def _union(parts: list[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    if not parts:
        return np.zeros((0, 2), dtype=np.int64)
    bounds = np.concatenate(parts)
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
