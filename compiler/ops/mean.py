"""Means of int8 values as integers: ``((sum + offset) * factor) >> shift``, within 1 of the exact mean.

``factor / 2**shift`` is so close to one over the number of values that the result differs by 1 at most
from the exact mean, and stays within int8, for any int8 values. Up to 196 values no offset is needed. Beyond,
factors of 15 bits below ``1 / n`` are not always close enough, and those above need an offset of 1, lest a
mean of -128 becomes -129; for some numbers from 483 on it is half the number of values, and the result is
rounded to the nearest, as far as 16 bits hold the half.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from accel.base.errors import ShapeError
from accel.compiler.expr.post import Finished, Offset, Scale, Shift
from accel.compiler.expr.scalar import INT32_MAX, INT32_MIN, Expr, as_expr
from accel.compiler.ops.epilogue import INT8_HIGH, INT8_LOW, LARGEST_SHIFT
from accel.compiler.target.finish import IMMEDIATE_HIGH

SURE_MEAN = 93_462
"""Up to so many values there is a way to take the mean, as trying all of them shows; beyond not always."""


@dataclass(frozen=True)
class Mean:
    """How sums become means.

    Attributes:
        factors: for each number of values in a sum, what it is multiplied by.
        offset: what is added before.
        shift: how far products are shifted right.
    """

    factors: dict[int, int]
    offset: int
    shift: int

    @property
    def is_empty(self) -> bool:
        """Whether sums are means already."""
        return not self.offset and not self.shift and set(self.factors.values()) == {1}

    def apply(self, sums: Expr, factor: Expr | int) -> Expr:
        """The mean of one element, of whose number of values ``factor`` is the factor."""
        scaled = (Scale(as_expr(factor)), Shift(self.shift))
        return Finished(sums, (Offset(self.offset), *scaled) if self.offset else scaled)

    def __str__(self) -> str:
        sums = f"(sum + {self.offset})" if self.offset else "sum"
        shift = f" >> {self.shift}" if self.shift else ""
        each = sorted(self.factors.items(), reverse=True)
        return ", ".join(f"({sums} * {factor}){shift} of {count}" for count, factor in each)

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        factors = {str(count): factor for count, factor in self.factors.items()}
        return {"offset": self.offset, "factors": factors, "shift": self.shift}

    def stored(self, length: int) -> bool:
        """The store unit does not divide so."""
        return False

    def folds(self, length: int) -> bool:
        """Reset and bias are no one operation, for there is no bias."""
        return False

    def products(self) -> int:
        """Those of its operations on each accumulator that multiply."""
        return int(set(self.factors.values()) != {1})

    def passes(self, length: int) -> int:
        """Operations on each accumulator besides GEMM, the reset among them."""
        return 1 + bool(self.offset) + self.products() + bool(self.shift)


def mean_of(counts: Sequence[int]) -> Mean:
    """How to take the mean of so many int8 values; one shift serves all counts.

    Raises:
        ShapeError: there is no way that keeps within 1 of the exact mean.
    """
    distinct = sorted(set(counts))
    half = min(distinct[0] // 2, IMMEDIATE_HIGH)
    for offset in (0, 1, half):
        for shift in range(LARGEST_SHIFT, -1, -1):
            factors = {n: factor for n in distinct if (factor := _factor(n, offset, shift))}
            if len(factors) == len(distinct):
                needless = min(shift, *(twos(factor) for factor in factors.values()))
                reduced = {n: factor >> needless for n, factor in factors.items()}
                return Mean(reduced, offset, shift - needless)
    numbers = ", ".join(map(str, distinct))
    if len(distinct) == 1:
        raise ShapeError(
            f"the mean of {numbers} values is not found to within 1 by an offset and a factor of 16 bits, "
            f"with products that int32 holds; up to {SURE_MEAN} values it always is"
        )
    raise ShapeError(
        f"the mean of {numbers} values is not found to within 1 by a factor of 16 bits for each number and "
        f"one shift; fewer values are needed, or as many everywhere"
    )


def _factor(count: int, offset: int, shift: int) -> int | None:
    """The factor nearest to ``2**shift / count`` that gives means, or None."""
    below, rest = divmod(1 << shift, count)
    nearest = (below + 1, below) if 2 * rest > count else (below,)
    return next((factor for factor in nearest if is_mean(count, factor, offset, shift)), None)


def twos(number: int) -> int:
    """How often a positive number can be halved."""
    return (number & -number).bit_length() - 1


def is_mean(count: int, factor: int, offset: int, shift: int) -> bool:
    """Whether ``((sum + offset) * factor) >> shift`` is within 1 of the mean of any ``count`` int8 values,
    and none leaves int8 or overflows on the way."""
    low, high = INT8_LOW * count, INT8_HIGH * count
    if not 1 <= factor <= IMMEDIATE_HIGH or offset > IMMEDIATE_HIGH:
        return False
    if (low + offset) * factor < INT32_MIN or (high + offset) * factor > INT32_MAX:
        return False
    one = 1 << shift
    first, last = ((end + offset) * factor >> shift for end in (low, high))
    if first < INT8_LOW or last > INT8_HIGH:
        return False
    for result in range(first, last + 1):
        least = max(low, -(-result * one // factor) - offset)
        most = min(high, -(-(result + 1) * one // factor) - 1 - offset)
        if least < (result - 1) * count or most > (result + 1) * count:
            return False
    return True
