"""Means of int8 values as integers: ``((sum + offset) * factor) >> shift``, within 1 of the exact mean.

For example, 9 values have ``factor / 2**shift`` close to 1/9. The result fits int8. Up to 196 values need no
offset. Beyond, 15-bit factors below ``1 / n`` are not always close enough. Larger factors need an offset of
1, since a mean of -128 would become -129. Some counts from 483 on need an offset of half the count, which
rounds to nearest, as far as it fits 16 bits.
"""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from accel.base.errors import ShapeError
from accel.compiler.expr.epilogue_operators import Finished, Offset, Scale, Shift
from accel.compiler.expr.scalar_expressions import INT32_MAX, INT32_MIN, Expr, as_expr
from accel.compiler.ops.epilogue import INT8_HIGH, INT8_LOW, LARGEST_SHIFT
from accel.compiler.target.alu_epilogue import IMMEDIATE_HIGH

SURE_MEAN = 93_462
"""Every count up to this has a multiplier, by exhaustive search. Some larger counts have none."""


class Mean(Struct, frozen=True):
    """The integers that turn sums into means.

    Attributes:
        factors: the multiplier for each number of values.
    """

    factors: dict[int, int]
    offset: int
    shift: int

    @property
    def is_empty(self) -> bool:
        return not self.offset and not self.shift and set(self.factors.values()) == {1}

    def apply(self, sums: Expr, factor: Expr | int) -> Expr:
        scaled = (Scale(as_expr(factor)), Shift(self.shift))
        return Finished(sums, (Offset(self.offset), *scaled) if self.offset else scaled)

    def __str__(self) -> str:
        sums = f"(sum + {self.offset})" if self.offset else "sum"
        shift = f" >> {self.shift}" if self.shift else ""
        each = sorted(self.factors.items(), reverse=True)
        return ", ".join(f"({sums} * {factor}){shift} of {count}" for count, factor in each)

    def to_dict(self) -> dict[str, Any]:
        factors = {str(count): factor for count, factor in self.factors.items()}
        return {"offset": self.offset, "factors": factors, "shift": self.shift}

    def stored(self, length: int) -> bool:
        return False

    def folds(self, length: int) -> bool:
        return False

    def alu_operations(self) -> tuple[str, ...]:
        is_used = {"add": self.offset, "mul": set(self.factors.values()) != {1}, "shr": self.shift}
        return tuple(name for name, used in is_used.items() if used)

    def passes(self, length: int) -> int:
        return 1 + len(self.alu_operations())


def mean_of(counts: Sequence[int]) -> Mean:
    """All ``counts`` get the same offset and shift."""
    distinct = sorted(set(counts))
    half = min(distinct[0] // 2, IMMEDIATE_HIGH)
    for offset in (0, 1, half):
        for shift in range(LARGEST_SHIFT, -1, -1):
            factors = {n: factor for n in distinct if (factor := _nearest_factor(n, offset, shift))}
            if len(factors) == len(distinct):
                needless = min(shift, *(twos(factor) for factor in factors.values()))
                reduced = {n: factor >> needless for n, factor in factors.items()}
                return Mean(reduced, offset, shift - needless)
    numbers = ", ".join(map(str, distinct))
    if len(distinct) == 1:
        raise ShapeError(
            f"no offset and 16-bit factor give the mean of {numbers} values within 1 without overflowing "
            f"int32; up to {SURE_MEAN} values some always do"
        )
    raise ShapeError(
        f"no 16-bit factors with one common shift give the means of {numbers} values within 1; "
        f"use fewer values, or the same number in every window"
    )


def _nearest_factor(count: int, offset: int, shift: int) -> int | None:
    below, rest = divmod(1 << shift, count)
    nearest = (below + 1, below) if 2 * rest > count else (below,)
    return next((factor for factor in nearest if is_mean(count, factor, offset, shift)), None)


def twos(number: int) -> int:
    """Count the trailing zero bits of a positive number."""
    return (number & -number).bit_length() - 1


def is_mean(count: int, factor: int, offset: int, shift: int) -> bool:
    """Whether ``((sum + offset) * factor) >> shift`` is within 1 of the mean of any ``count`` int8 values, in
    int8 and without overflow."""
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
