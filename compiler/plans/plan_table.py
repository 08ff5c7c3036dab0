"""A table of plans: one array per attribute, so that numpy evaluates many plans at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from accel.compiler.plans.plan_arrays import BoolArray, IntArray

THREAD_AXES = ("channels", "rows", "depth", "groups")
"""The dimension of virtual threads: neighbouring tiles (``channels``, ``rows``), the steps of one tile
(``depth``), or the same tile of neighbouring groups."""
OUTER_LOOPS = ("channels", "pixels")
"""The outermost loop over tiles. With ``channels``, all tiles of some channels come before those of the next,
with ``pixels`` all channels of some pixels."""
RESIDENT = ("nothing", "weights", "inputs", "both")
"""The operands that stay in scratchpads from tile to tile. With channels outermost, ``weights`` are those of
the current channels, and ``inputs`` are all. With pixels outermost, it is the reverse."""


class PlanTable(NamedTuple):
    """Plans of sums of products.

    In a table of all combinations of two sets of attributes the shapes broadcast. The attributes are those of
    ``ConvPlan``. ``prefetch`` is 0 or 1, and ``thread_axis``, ``outer`` and ``resident`` are indices into the
    tuples above.
    """

    channels: IntArray
    rows: IntArray
    columns: IntArray
    depth: IntArray
    kernel_rows: IntArray
    threads: IntArray
    thread_axis: IntArray
    outer: IntArray
    batches: IntArray
    resident: IntArray
    prefetch: IntArray

    @classmethod
    def grid(cls, *choices: Sequence[int]) -> PlanTable:
        return cls(*(axis.reshape(-1) for axis in np.meshgrid(*choices, indexing="ij")))

    @classmethod
    def from_rows(cls, rows: Sequence[Sequence[int]]) -> PlanTable:
        return cls(*np.array(rows, dtype=np.int64).reshape(-1, len(cls._fields)).T)

    @classmethod
    def concatenate(cls, tables: Sequence[PlanTable]) -> PlanTable:
        return cls(*(np.concatenate(columns) for columns in zip(*tables, strict=True)))

    def take(self, chosen: IntArray | BoolArray) -> PlanTable:
        return PlanTable(*(array[chosen] for array in self))

    def select(self, chosen: BoolArray) -> PlanTable:
        """Return flat arrays. Table and mask may broadcast."""
        shape = np.broadcast_shapes(chosen.shape, *(array.shape for array in self))
        positions = np.nonzero(np.broadcast_to(chosen, shape))

        def selected(array: IntArray) -> IntArray:
            axes = [axis for axis in range(-array.ndim, 0) if array.shape[axis] > 1]
            if len(axes) == 1:  # one index is faster than several
                return np.asarray(array.reshape(-1).take(positions[axes[0]]))
            return np.asarray(np.broadcast_to(array, shape)[positions])

        return PlanTable(*map(selected, self))

    def to_rows(self) -> list[tuple[int, ...]]:
        return list(zip(*(array.tolist() for array in self), strict=True))
