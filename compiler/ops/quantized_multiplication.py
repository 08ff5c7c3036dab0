"""Products of quantized tensors in integers, equal to floating point for every pair of values.

ONNX Runtime computes ``y = sat(rne(p * factor + zero))`` in float32, with ``p = (left - left_zero) * (right -
right_zero)`` and ``factor = left_scale * right_scale / scale``. Bisection finds the multiplier of
``accel.core.requantize.multiply`` with the widest offset range, see ``offset_search``.

Most products have exact integers. The others have ties, such as 2.5, that float32 breaks in different ways:
its two roundings lose different low bits of small and of large numbers. A larger multiplier would not help.
For example, scales of 0.1, 0.05 and 0.02 give a factor slightly above 0.25.
"""

from itertools import product

import numpy as np
from msgspec import Struct

from accel.base.errors import ShapeError
from accel.base.records import replace
from accel.compiler.expr.quantization import Order, Quantization
from accel.compiler.expr.quantized_products import Multiplication, float_multiply
from accel.compiler.ops.offset_search import (
    MAX_MULTIPLIER,
    MAX_OFFSET,
    Integers,
    clamped_offset,
    extreme_offsets,
    most_frequent_offset,
    shifts_to_try,
    zero_points,
)
from accel.core.requantize import multiply

__all__ = ["Multiplication", "find_multiplication", "float_multiply"]


def find_multiplication(
    left: Quantization,
    right: Quantization,
    out: Quantization,
    *,
    low: int | None = None,
    high: int | None = None,
    left_bounds: tuple[int, int] | None = None,
    order: Order = "left",
) -> Multiplication:
    """Return the exact integers for a product, or those with the fewest differences.

    For example, with scales of 0.5, 0.5 and 1, the multiplier is about a quarter of ``2**shift``. ``low`` and
    ``high`` default to the bounds of the product's type.

    Args:
        left_bounds: bounds of the left operand, by default those of its type. After ReLU, for example, the
            lower one is the zero point.

    Raises:
        ShapeError: the factor exceeds the largest multiplier.
    """
    low = out.low if low is None else max(low, out.low)
    high = out.high if high is None else min(high, out.high)
    results = float_multiply(left, right, out, low, high, order)
    pairs = _Pairs(left, right, left_bounds or (left.low, left.high), (low, high), results)
    ratio = left.scale * right.scale / out.scale
    zeros = zero_points(out.zero)
    widest: list[_Candidate] = []
    for shift, zero in product(_shifts(ratio), zeros):
        candidate = _widest_candidate(pairs, shift, zero)
        if pairs.offset_range(candidate).is_possible:
            return pairs.multiplication(candidate)
        widest.append(candidate)
    nearest = [replace(one, multiplier=round(ratio * 2**one.shift)) for one in widest[: len(zeros)]]
    tried = [*widest[: len(zeros)], *nearest]
    return min(map(pairs.multiplication, tried), key=lambda one: one.differences)


class _Candidate(Struct, frozen=True):
    multiplier: int
    shift: int
    zero: int


class _OffsetRange(Struct, frozen=True):
    """The offsets from ``floor`` to ``ceiling`` that all products allow, none if ``floor > ceiling``.

    Attributes:
        slope: change of the width per unit of the multiplier, while the same products bound it.
    """

    floor: int
    ceiling: int
    slope: int

    @property
    def width(self) -> int:
        return self.ceiling - self.floor

    @property
    def is_possible(self) -> bool:
        return max(self.floor, -MAX_OFFSET) <= min(self.ceiling, MAX_OFFSET)

    @property
    def middle(self) -> int:
        return clamped_offset((self.floor + self.ceiling) // 2)


class _Pairs:
    """All pairs of values with their results, and the bounds that they put on an offset.

    Products increase with ``p``. So only the smallest ``p`` of each result bounds the smallest offset, and
    only the largest ``p`` the largest.
    """

    def __init__(
        self,
        left: Quantization,
        right: Quantization,
        left_bounds: tuple[int, int],
        bounds: tuple[int, int],
        results: Integers,
    ) -> None:
        first, last = left_bounds[0] - left.low, left_bounds[1] - left.low + 1
        self._rows, self._columns = left.values()[first:last], right.values()
        self._zeros, self._bounds = (left.zero, right.zero), bounds
        self._results = results[first:last]
        self._products = (self._rows - left.zero)[:, None] * (self._columns - right.zero)
        found, inverse = np.unique(self._results, return_inverse=True)
        least = np.full(len(found), np.iinfo(np.int64).max)
        most = np.full(len(found), np.iinfo(np.int64).min)
        np.minimum.at(least, inverse.reshape(-1), self._products.reshape(-1))
        np.maximum.at(most, inverse.reshape(-1), self._products.reshape(-1))
        is_above, is_below = found > bounds[0], found < bounds[1]
        self._least = least[is_above], found[is_above]
        self._most = most[is_below], found[is_below]

    def offset_range(self, candidate: _Candidate) -> _OffsetRange:
        floor, smallest = self._extreme(*self._least, candidate, 1)
        ceiling, largest = self._extreme(*self._most, candidate, -1)
        return _OffsetRange(floor, ceiling, smallest - largest)

    @staticmethod
    def _extreme(products: Integers, results: Integers, candidate: _Candidate, sign: int) -> tuple[int, int]:
        """Return the largest lower bound (``sign`` 1) or the smallest upper bound (-1), and its product."""
        if not len(products):
            return -sign * MAX_OFFSET, 0
        found = _offsets(products, results, candidate, sign)
        at = int((sign * found).argmax())
        return int(found[at]), int(products[at])

    def multiplication(self, candidate: _Candidate) -> Multiplication:
        offsets = self.offset_range(candidate)
        offset = offsets.middle if offsets.is_possible else self._most_frequent_offset(candidate)
        low, high = self._bounds
        found = multiply(
            self._rows[:, None],
            self._columns[None, :],
            multiplier=candidate.multiplier,
            shift=candidate.shift,
            offset=offset,
            zeros=self._zeros,
            zero=candidate.zero,
            low=low,
            high=high,
        )
        return Multiplication(
            multiplier=candidate.multiplier,
            shift=candidate.shift,
            offset=offset,
            zero=candidate.zero,
            differences=int((found != self._results).sum()),
        )

    def _most_frequent_offset(self, candidate: _Candidate) -> int:
        least, most = (_offsets(self._products, self._results, candidate, sign) for sign in (1, -1))
        return most_frequent_offset(self._results, least, most, self._bounds)


def _offsets(products: Integers, results: Integers, candidate: _Candidate, sign: int) -> Integers:
    return extreme_offsets(results, products * candidate.multiplier, candidate.shift, candidate.zero, sign)


def _widest_candidate(pairs: _Pairs, shift: int, zero: int) -> _Candidate:
    """Return the first tried multiplier that has an offset, or the last one.

    Where the tangent of the width at any multiplier is negative, no multiplier has an offset.
    """
    first, last = 0, MAX_MULTIPLIER
    candidate = _Candidate(0, shift, zero)
    while first <= last:
        candidate = _Candidate((first + last) // 2, shift, zero)
        offsets = pairs.offset_range(candidate)
        if offsets.width >= 0 or not offsets.slope:
            break
        steps = max(1, -(offsets.width // abs(offsets.slope)))
        if offsets.slope > 0:
            first = candidate.multiplier + steps
        else:
            last = candidate.multiplier - steps
    return candidate


def _shifts(ratio: float) -> range:
    found = shifts_to_try(ratio)
    if not found:
        raise ShapeError(
            f"the scales of the operands multiply to {ratio:.4g} times that of the product; "
            f"up to {MAX_MULTIPLIER} times is possible"
        )
    return found
