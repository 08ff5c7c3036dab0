"""Sets of cycles as half-open intervals."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Interval = tuple[int, int]
"""Cycles ``[start, stop)``; empty if stop <= start."""


IntervalArray = npt.NDArray[np.int64]
"""Intervals as int64[n, 2]."""


def covered(groups: Sequence[Sequence[Interval] | IntervalArray], end: int) -> int:
    """How many cycles before ``end`` lie in any interval of any group."""
    every = [np.array(group, dtype=np.int64).reshape(-1, 2) for group in groups]
    if not every:
        return 0
    bounds = np.concatenate(every).clip(0, end)
    bounds = bounds[bounds[:, 0] < bounds[:, 1]]
    if not len(bounds):
        return 0
    bounds = bounds[np.argsort(bounds[:, 0], kind="stable")]
    reach = np.maximum.accumulate(bounds[:, 1])
    before = np.concatenate([[0], reach[:-1]])
    return int(np.maximum(0, bounds[:, 1] - np.maximum(bounds[:, 0], before)).sum())
