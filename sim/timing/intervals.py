"""Sets of cycles as half-open intervals."""

from collections.abc import Sequence

import numpy as np

Interval = tuple[int, int]
"""Cycles ``[start, stop)``; empty if stop <= start."""


def covered(groups: Sequence[Sequence[Interval]], end: int) -> int:
    """How many cycles before ``end`` lie in any interval of any group."""
    every = [interval for group in groups for interval in group]
    if not every:
        return 0
    bounds = np.array(every, dtype=np.int64).clip(0, end)
    bounds = bounds[bounds[:, 0] < bounds[:, 1]]
    if not len(bounds):
        return 0
    bounds = bounds[np.argsort(bounds[:, 0], kind="stable")]
    reach = np.maximum.accumulate(bounds[:, 1])
    before = np.concatenate([[0], reach[:-1]])
    return int(np.maximum(0, bounds[:, 1] - np.maximum(bounds[:, 0], before)).sum())
