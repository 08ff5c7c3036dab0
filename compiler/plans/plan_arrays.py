"""Array types of the planner, with one element per plan unless stated, and integer helpers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[Any]


def ceil_div(dividend: IntArray | int, divisor: IntArray | int) -> IntArray:
    """Divide and round up: 10 rows in tiles of 4 are 3 tiles.

    Arrays hold integers of at most 2**52, see :func:`divide`.
    """
    if isinstance(divisor, np.ndarray):
        quotient = np.asarray(dividend / divisor)
        return np.ceil(quotient, out=quotient).astype(np.int64)
    return np.asarray(-(-dividend // divisor))


def divide(dividend: IntArray, divisor: IntArray) -> tuple[IntArray, IntArray]:
    """Return quotients and remainders of integers from 0 to 2**52.

    numpy divides floats twenty times as fast as integers. The quotient of floats is exact: below an integer
    ``k`` it is at most ``k - 1 / divisor``, which no rounding reaches while ``dividend + divisor < 2**53``.
    """
    quotient = (dividend / divisor).astype(np.int64)
    return quotient, dividend - quotient * divisor


def map_pairs(function: Callable[[int, int], int], first: IntArray, second: IntArray) -> IntArray:
    """Apply a function of two non-negative integers elementwise, once per distinct pair."""
    base = int(second.max(initial=0)) + 1
    keys = first * base + second
    values: IntArray = np.zeros(int(keys.max(initial=0)) + 1, dtype=np.int64)
    values[keys] = 1
    for key in np.flatnonzero(values).tolist():
        values[key] = function(*divmod(key, base))
    return np.asarray(values[keys])
