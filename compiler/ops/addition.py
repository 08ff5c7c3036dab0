"""Additions of quantized tensors in integers, equal to those in floating point on every pair of values.

ONNX Runtime computes ``y = sat(rne(fma(left, l, fma(right, r, c))))`` in float32, with
``l = left_scale / scale``, ``r = right_scale / scale`` and ``c = zero - fma(l, left_zero, r * right_zero)``.
Integers do the same with two multipliers, a shift and an offset, see :func:`accel.core.requantize.add`. For
multipliers and shift, each of the 65,536 pairs of values allows an interval of offsets; where these have one
in common, it is exact.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from accel.base.errors import ShapeError
from accel.compiler.expr.quantized import Addition, Quantization, float_add
from accel.core.requantize import ADD_MULTIPLIER_BITS, ADD_OFFSET_BITS, MAX_ADD_SHIFT, add

__all__ = ["Addition", "Quantization", "find_addition", "float_add"]

_NEIGHBOURS = 2
"""How far from the nearest multipliers others are tried."""
_SHIFTS = 4
"""How many shifts are tried, from the largest on whose multipliers have their bits."""


def find_addition(
    left: Quantization,
    right: Quantization,
    out: Quantization,
    *,
    low: int | None = None,
    high: int | None = None,
) -> Addition:
    """Integers for an addition; of those tried, the ones with the fewest differences.

    Args:
        left, right: the operands.
        out: the sum.
        low, high: bounds of the sum, those of its type if not given.

    Raises:
        ShapeError: an operand's scale is too large for the sum's.
    """
    low = out.low if low is None else max(low, out.low)
    high = out.high if high is None else min(high, out.high)
    ratios = left.scale / out.scale, right.scale / out.scale
    shifts = _shifts(max(ratios))
    expected = float_add(left, right, out, low, high)
    best: Addition | None = None
    for multipliers, shift in _candidates(*ratios, shifts):
        found = _with_offset(left, right, out, expected, low, high, multipliers, shift)
        if best is None or found.differences < best.differences:
            best = found
        if not best.differences:
            break
    assert best is not None
    return best


def _candidates(one: float, other: float, shifts: range) -> Iterator[tuple[tuple[int, int], int]]:
    """Multipliers and shifts, the most precise first."""
    for shift in shifts:
        nearest = round(one * 2**shift), round(other * 2**shift)
        for distance in range(_NEIGHBOURS + 1):
            for a in range(-distance, distance + 1):
                for b in range(-distance, distance + 1):
                    if max(abs(a), abs(b)) == distance and min(nearest[0] + a, nearest[1] + b) >= 0:
                        yield (nearest[0] + a, nearest[1] + b), shift


def _shifts(ratio: float) -> range:
    """The shifts that are tried for multipliers of ``2**shift`` times at most ``ratio``.

    Raises:
        ShapeError: not even without a shift do they have their bits.
    """
    limit = (1 << ADD_MULTIPLIER_BITS) - 1 - _NEIGHBOURS
    largest = next((s for s in range(MAX_ADD_SHIFT, -1, -1) if round(ratio * 2**s) <= limit), None)
    if largest is None:
        raise ShapeError(
            f"an operand's scale is {ratio:.4g} times that of the sum; up to {limit} times can be added"
        )
    return range(largest, max(-1, largest - _SHIFTS), -1)


def _with_offset(
    left: Quantization,
    right: Quantization,
    out: Quantization,
    expected: npt.NDArray[np.int64],
    low: int,
    high: int,
    multipliers: tuple[int, int],
    shift: int,
) -> Addition:
    """With the offset that all pairs allow, or the middle of what most of them do."""
    first = (left.values() - left.zero)[:, None] * multipliers[0]
    products = first + (right.values() - right.zero)[None, :] * multipliers[1]
    wanted = expected - out.zero
    inclusive = (wanted & 1 == 0).astype(np.int64)  # half is rounded to even
    half = (1 << shift) // 2
    least = (wanted << shift) - half - products + (1 - inclusive if shift else 0)
    most = (wanted << shift) + half - products - (1 - inclusive if shift else 0)
    limit = (1 << (ADD_OFFSET_BITS - 1)) - 1
    floor = int(np.max(least, where=expected > low, initial=-limit))
    ceiling = int(np.min(most, where=expected < high, initial=limit))
    offset = min(max((floor + ceiling) // 2, -limit), limit)
    sums = add(
        left.values()[:, None],
        right.values()[None, :],
        multipliers=multipliers,
        shift=shift,
        offset=offset,
        zeros=(left.zero, right.zero),
        zero=out.zero,
        low=low,
        high=high,
    )
    return Addition(
        multipliers=multipliers, shift=shift, offset=offset, differences=int((sums != expected).sum())
    )
