"""Faster numpy functions."""

from typing import Any

import numpy as np
import numpy.typing as npt


def distinct(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the sorted distinct values, flat. numpy's ``unique`` imports masked arrays, which is slow."""
    ordered = np.sort(values, axis=None)
    return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))[: len(ordered)]]
