"""Sets of cycles as half-open intervals."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

IntervalArray = npt.NDArray[np.int64]
"""Cycles ``[start, stop)`` as int64[n, 2]; an interval with stop <= start is empty."""

NO_INTERVALS: IntervalArray = np.zeros((0, 2), dtype=np.int64)


def covered_cycles(groups: Sequence[IntervalArray], end: int) -> int:
    """Count the cycles before ``end`` that lie in some interval."""
    if not groups:
        return 0
    bounds = np.concatenate(groups).clip(0, end)
    bounds = bounds[bounds[:, 0] < bounds[:, 1]]
    if not len(bounds):
        return 0
    bounds = bounds[np.argsort(bounds[:, 0], kind="stable")]
    reach = np.maximum.accumulate(bounds[:, 1])
    before = np.concatenate([[0], reach[:-1]])
    return int(np.maximum(0, bounds[:, 1] - np.maximum(bounds[:, 0], before)).sum())
