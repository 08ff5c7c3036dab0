"""The parts in which a tile's accumulators become free for the next tile."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_MOST = 4
_LEAST = 16
"""Accumulators per part: fewer are stored in less time than a STORE takes to start."""


def piece_count(elements: npt.ArrayLike) -> npt.NDArray[np.int64]:
    found: npt.NDArray[np.int64] = np.clip(np.asarray(elements) // _LEAST, 1, _MOST)
    return found
