"""Epilogues that the store unit of machines with ``post=1`` executes on the way to DRAM.

It adds a bias, multiplies by a scale as float32 does, rounds half to even, adds a zero point and saturates.
Then it may replace the byte by an entry of a table, and add a residual or multiply by one.

It can also shift right, which rounds down: with ``zero = -128``, a bias raised by ``2**(shift + 7) -
2**(shift - 1)``, and the scale ``(1 + 2**-23) * 2**-shift``, whose excess rounds ties up. For example, with a
shift of 4, a sum of 48 becomes slightly more than ``48 / 16 - 0.5 + 128``, which rounds to 131.
"""

from collections.abc import Sequence

from msgspec import Struct

from accel.compiler.expr.epilogue_operators import (
    AddQuantized,
    AtLeast,
    AtMost,
    Bias,
    LookUp,
    MultiplyQuantized,
    PostOp,
    Requantize,
    Residual,
    Shift,
    StoreAdd,
    StoreCombination,
    StoreLookUp,
    StoreMultiply,
    StoreRequantize,
)
from accel.compiler.expr.quantization import bounds_of
from accel.compiler.expr.quantized_expressions import scale_words
from accel.compiler.expr.scalar_expressions import INT32_MAX, INT32_MIN, Const, Expr, Read
from accel.core.requantize import MULTIPLIER_BITS, RESULT_BITS
from accel.image.packed_layout import Preparation

_LARGEST_SHIFT = {-128: 14, -256: 13}
"""By zero point, the largest exact shift. Beyond, the scale's excess brings large sums to the next tie."""
_WIDEST = (-(1 << (RESULT_BITS - 1)), (1 << (RESULT_BITS - 1)) - 1)
"""Bounds of a value before a residual is added. Beyond them, the sum is beyond int8 anyway."""
_INT8 = bounds_of("int8")


class StorePath(Struct, frozen=True, kw_only=True):
    """The epilogue of the store unit.

    Attributes:
        bias: an element of an int32 tensor with one value per channel, or None.
        channel: index of the channel, which selects one of several ``words``, or None if unknown.
        words: scales from ``scale_words``, one per channel or one for all.
        preparation: how the host changes the bias, or None.
        zero, low, high: zero point and bounds of the requantized value.
        table: the look-up of the requantized value, or None.
        combine: the addition of or multiplication by the residual, or None.
    """

    bias: Read | None
    channel: Expr | None
    words: tuple[int, ...]
    preparation: Preparation | None
    zero: int
    low: int
    high: int
    table: StoreLookUp | None = None
    combine: StoreCombination | None = None

    def ops(self, bias: Expr, scale: Expr) -> tuple[PostOp, ...]:
        first = StoreRequantize(bias, scale, self.zero, self.low, self.high)
        return (first, *(op for op in (self.table, self.combine) if op is not None))


def store_path(ops: Sequence[PostOp], limit: int | None) -> StorePath | None:
    """Return the store unit's epilogue for operators, or None if none is exact.

    ``limit`` is the largest magnitude of a sum, or None if unknown.
    """
    rest = list(ops)
    bias: Expr | None = None
    if rest and isinstance(rest[0], Bias) and isinstance(rest[0].operand, Read):
        bias = rest[0].operand
        del rest[0]
    assert bias is None or isinstance(bias, Read)
    if rest and isinstance(rest[0], Requantize):
        return _requantized(bias, rest[0], rest[1:])
    return _shifted(bias, rest, limit)


def _requantized(bias: Read | None, op: Requantize, rest: Sequence[PostOp]) -> StorePath | None:
    table: StoreLookUp | None = None
    combine: StoreCombination | None = None
    if rest and isinstance(rest[0], LookUp):
        table = StoreLookUp(rest[0].entries, rest[0].to)
        rest = rest[1:]
    match rest:
        case []:
            pass
        case [AddQuantized(operand, how)]:
            combine = StoreAdd(operand, **how.integers())
        case [MultiplyQuantized(operand, how)]:
            combine = StoreMultiply(operand, **how.integers())
        case _:
            return None
    return StorePath(
        bias=bias,
        channel=op.channel,
        words=scale_words(op.scales),
        preparation=None,
        zero=op.zero,
        low=op.low,
        high=op.high,
        table=table,
        combine=combine,
    )


def _shifted(bias: Read | None, rest: list[PostOp], limit: int | None) -> StorePath | None:
    shift = 0
    if rest and isinstance(rest[0], Shift):
        shift = rest[0].amount
        del rest[0]
    residual = None
    if rest and isinstance(rest[0], Residual) and isinstance(rest[0].operand, Read):
        residual = rest[0].operand
        del rest[0]
    bounds = _bounds(rest)
    if bounds is None:
        return None
    low, high = bounds if residual is None else _WIDEST
    least = _INT8[0] if residual is None else _WIDEST[0]
    preparation, zero, scale = None, 0, 1.0
    if shift:
        if not 1 <= shift <= _LARGEST_SHIFT[least] or limit is None:
            return None
        offset = (-least << shift) - (1 << (shift - 1))
        saturated = (((low - 1) << shift) - limit, ((high + 1) << shift) + limit)
        if saturated[0] - limit < INT32_MIN or saturated[1] + limit + offset > INT32_MAX:
            return None
        accepted = (INT32_MIN + limit, INT32_MAX - limit)
        preparation, zero = Preparation(accepted=accepted, bounds=saturated, offset=offset), least
        scale = (1 + 2.0 ** (1 - MULTIPLIER_BITS)) * 2.0**-shift
    add = None
    if residual is not None:
        add = StoreAdd(residual, (1, 1), 0, 0, (0, 0), 0, *bounds)
    return StorePath(
        bias=bias,
        channel=None,
        words=scale_words((scale,)),
        preparation=preparation,
        zero=zero,
        low=low,
        high=high,
        combine=add,
    )


def _bounds(ops: Sequence[PostOp]) -> tuple[int, int] | None:
    low, high = INT32_MIN, INT32_MAX
    for op in ops:
        if isinstance(op, AtLeast):
            low, high = max(low, op.bound), max(high, op.bound)
        elif isinstance(op, AtMost):
            low, high = min(low, op.bound), min(high, op.bound)
        else:
            return None
    return (low, high) if _INT8[0] <= low <= high <= _INT8[1] else None


NO_BIAS = Const(0)
