"""In how many parts the accumulators of a tile are handed over to the next one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_MOST = 4
_LEAST = 16
"""Accumulators of a part, about: fewer are stored in less time than a STORE takes to start."""


def piece_count(elements: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Sizes of tiles with this many accumulators."""
    found: npt.NDArray[np.int64] = np.clip(np.asarray(elements) // _LEAST, 1, _MOST)
    return found
