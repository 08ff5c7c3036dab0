"""Offsets for exact sums or products in integers, see ``accel.core.requantize``.

The store unit adds an offset to products, shifts right with rounding half to even, and adds a zero point. For
given multipliers and shift, each of the 65,536 pairs of values with its result allows an interval of offsets.
Any offset in all intervals is exact. The width of their intersection is a concave function of the
multipliers. If its maximum is negative, no integers are exact.
"""

import numpy as np
import numpy.typing as npt

from accel.core.requantize import ADD_MULTIPLIER_BITS, ADD_OFFSET_BITS, MAX_ADD_SHIFT

MAX_MULTIPLIER = (1 << ADD_MULTIPLIER_BITS) - 1
MAX_OFFSET = (1 << (ADD_OFFSET_BITS - 1)) - 1
_MAX_SHIFTS = 4
"""Shifts to try, from the largest whose multipliers fit. Offsets may need a smaller one."""

Integers = npt.NDArray[np.int64]


def zero_points(zero: int) -> tuple[int, ...]:
    """Return the zero points to try for a result with zero point ``zero``.

    The store unit rounds halves to even before it adds a zero point, floating point after, so an odd zero
    point may need the even number below.
    """
    return (zero, zero - 1) if zero & 1 else (zero,)


def shifts_to_try(ratio: float) -> range:
    """Return the shifts to try for multipliers of at most ``2**shift * ratio``, if any fits."""
    largest = next((s for s in range(MAX_ADD_SHIFT, -1, -1) if ratio * 2**s < MAX_MULTIPLIER + 0.5), None)
    return range(0) if largest is None else range(largest, max(-1, largest - _MAX_SHIFTS), -1)


def extreme_offsets(results: Integers, products: Integers, shift: int, zero: int, sign: int) -> Integers:
    """Return the smallest offsets that give these results (``sign`` 1), or the largest (-1).

    The store unit adds them to ``products``, and ``zero`` after the shift.
    """
    wanted = results - zero
    half = (1 << shift) >> 1
    open_end = wanted & 1 if shift else np.zeros_like(wanted)  # half is rounded to even
    found: Integers = (wanted << shift) - products - sign * (half - open_end)
    return found


def most_frequent_offset(results: Integers, least: Integers, most: Integers, bounds: tuple[int, int]) -> int:
    """Return an offset that most pairs of values allow.

    Args:
        least, most: offsets of each pair, from :func:`extreme_offsets`.
        bounds: bounds of results. A result at a bound allows all offsets on that side.
    """
    begins = np.where(results > bounds[0], least, -MAX_OFFSET).ravel()
    ends = np.where(results < bounds[1], most, MAX_OFFSET).ravel() + 1
    places = np.concatenate([begins, ends])
    steps = np.repeat([1, -1], len(begins))
    order = np.lexsort((steps, places))
    return clamped_offset(int(places[order][steps[order].cumsum().argmax()]))


def clamped_offset(offset: int) -> int:
    return min(max(offset, -MAX_OFFSET), MAX_OFFSET)
