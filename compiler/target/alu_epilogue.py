"""Epilogues as passes of the ALU over the accumulators, as few as possible.

Each operator is a pass. Passes without effect are dropped, and neighbours of one kind are merged.

If the epilogue ends with a clip, one pass also replaces reset and bias
(docs/explain/how-schedules-are-chosen.md). The clip is lowered by D, a multiple of 256, and ``acc = min(acc,
T)`` sets each accumulator to ``T = bias - (D << shift)``. For example, with a shift of 8 and a clip to
0..127, D is 32,768 and T is ``bias - 2**23``.
"""

from collections.abc import Sequence

from msgspec import Struct

from accel.compiler.expr.epilogue_operators import (
    Apply,
    AtLeast,
    AtMost,
    Bias,
    Combine,
    Offset,
    PostOp,
    Residual,
    ResidualProduct,
    Scale,
    Shift,
    Take,
)
from accel.compiler.expr.scalar_expressions import (
    INT32_MAX,
    INT32_MIN,
    Binary,
    Condition,
    Const,
    Expr,
    Guarded,
    Read,
)
from accel.core.isa.field_widths import IMMEDIATE_BITS
from accel.image.packed_layout import Preparation

IMMEDIATE_LOW, IMMEDIATE_HIGH = -(1 << (IMMEDIATE_BITS - 1)), (1 << (IMMEDIATE_BITS - 1)) - 1
ALU_NAMES = {"+": "add", "*": "mul", ">>": "shr", "min": "min", "max": "max"}
"""VTA's operation for each operator of an expression."""
_BYTE = 256
"""Multiples of this do not change the low byte."""


class Pass(Struct, frozen=True):
    """``acc = op(acc, operand)`` where all conditions hold.

    The operand is an immediate or an element of another accumulator. ``zero`` sets to zero. ``product`` adds
    an element of ``inp`` times one of an identity matrix in ``wgt``, in the GEMM core.
    """

    op: str
    operand: int | Read
    conditions: tuple[Condition, ...] = ()


def passes(op: PostOp) -> tuple[Pass, ...]:
    """Operands are elements of tensors, inside at most one guard."""
    match op:
        case ResidualProduct(operand):
            return (_with_element("product", operand),)
        case Bias(operand) | Residual(operand):
            return (_with_element("add", operand),)
        case Combine(operation, operand):
            return (_with_element(ALU_NAMES[operation], operand),)
        case Apply(operation, Const(value)):
            return (Pass(operation, value),)
        case Apply(operation, operand):
            return (_with_element(operation, operand),)
        case Take(operand):
            return Pass("zero", 0), _with_element("add", operand)
        case Offset(amount):
            return (Pass("add", amount),)
        case Shift(amount):
            return (Pass("shr", amount),)
        case AtLeast(bound):
            return (Pass("max", bound),)
        case AtMost(bound):
            return (Pass("min", bound),)
        case Scale(factor):
            each = [Pass("mul", value, conditions) for value, conditions in pieces(factor)]
            return tuple(reversed(each))  # any order is right; this one keeps programs unchanged
    raise AssertionError(f"{op} is not an epilogue operator of the ALU")


def _with_element(name: str, operand: Expr) -> Pass:
    if isinstance(operand, Guarded):
        assert isinstance(operand.value, Read)
        return Pass(name, operand.value, operand.conditions)
    assert isinstance(operand, Read)
    return Pass(name, operand)


def pieces(factor: Expr) -> list[tuple[int, tuple[Condition, ...]]]:
    """Return the guarded constants whose sum is the factor, or none for another factor."""
    if isinstance(factor, Const):
        return [(factor.value, ())]
    parts: list[Expr] = [factor]
    while isinstance(parts[0], Binary) and parts[0].op == "+":
        parts[:1] = [parts[0].a, parts[0].b]
    found = []
    for part in parts:
        if not (isinstance(part, Guarded) and isinstance(part.value, Const) and part.otherwise == 0):
            return []
        found.append((part.value.value, part.conditions))
    return found


def simplified(ops: Sequence[PostOp]) -> tuple[PostOp, ...]:
    """Return equivalent operators with fewer passes."""
    merged: list[PostOp] = []
    for op in ops:
        if op in (Offset(0), Shift(0), Scale(Const(1))):
            continue
        combined = _combined(merged[-1], op) if merged else None
        if combined is not None:
            merged[-1] = combined
        elif not _is_implied(merged, op):
            merged.append(op)
    return tuple(merged)


def _combined(first: PostOp, second: PostOp) -> PostOp | None:
    match first, second:
        case AtMost(a), AtMost(b):
            return AtMost(min(a, b))
        case AtLeast(a), AtLeast(b):
            return AtLeast(max(a, b))
        case Offset(a), Offset(b) if IMMEDIATE_LOW <= a + b <= IMMEDIATE_HIGH:
            return Offset(a + b)
        case Shift(a), Shift(b) if a >= 0 and b >= 0:
            return Shift(min(31, a + b))
    return None


def _is_implied(before: Sequence[PostOp], op: PostOp) -> bool:
    """Whether a bound already holds after the bounds that directly precede it."""
    low, high = None, None
    for earlier in reversed(before):
        if isinstance(earlier, AtLeast):
            low = earlier.bound if low is None else low
        elif isinstance(earlier, AtMost):
            high = earlier.bound if high is None else high
        else:
            break
        if low is not None and high is not None:
            break
    if isinstance(op, AtLeast):
        return low is not None and op.bound <= low and (high is None or high >= low)
    if isinstance(op, AtMost):
        return high is not None and op.bound >= high and (low is None or low <= high)
    return False


class Folded(Struct, frozen=True, kw_only=True):
    """An epilogue whose reset and bias are one pass.

    Attributes:
        start: that pass, before the sums.
        rest: the operators after the sums, one for each operator after the bias.
        preparation: how the host changes the bias before it packs it.
    """

    start: PostOp
    rest: tuple[PostOp, ...]
    preparation: Preparation


def folded(ops: Sequence[PostOp], sum_limit: int) -> Folded | None:
    """``sum_limit`` is the largest magnitude of a sum without bias."""
    match ops:
        case [Bias(Read() as bias), Shift(shift), Residual(_), _, _]:
            between = (-_BYTE // 2, _BYTE // 2 - 1)
        case [Bias(Read() as bias), Shift(shift), _, _]:
            between = (0, 0)
        case _:
            return None
    match ops[-2:]:
        case [AtLeast(low), AtMost(high)] | [AtMost(high), AtLeast(low)]:
            prepared = preparation_for(low, high, shift, sum_limit, between)
        case _:
            return None
    if prepared is None:
        return None
    preparation, lowered = prepared
    rest = tuple(_lowered(op, lowered) for op in ops[1:])
    return Folded(start=Combine("min", bias), rest=rest, preparation=preparation)


def _lowered(op: PostOp, by: int) -> PostOp:
    return type(op)(op.bound - by) if isinstance(op, AtLeast | AtMost) else op


def preparation_for(
    low: int, high: int, shift: int, sum_limit: int, between: tuple[int, int] = (0, 0)
) -> tuple[Preparation, int] | None:
    """Return how the host changes the bias, and by how much the clip is lowered, or None.

    Args:
        shift: right shift of the sums before the clip.
        between: bounds of the value added between shift and clip.
    """
    if shift < 1 or low > high:
        return None
    lowered = (low - IMMEDIATE_LOW) // _BYTE * _BYTE
    while lowered > 0 and lowered << shift > INT32_MAX // 2:
        lowered -= _BYTE
    if lowered < _BYTE:
        return None
    offset = lowered << shift
    least, most = INT32_MIN + sum_limit, INT32_MAX - sum_limit
    saturated_low = ((low - 1 - between[1]) << shift) - sum_limit
    saturated_high = ((high + 1 - between[0]) << shift) + sum_limit
    largest = low - lowered + offset
    """The largest bias for which T is below every accumulator."""
    smallest = INT32_MIN + offset + sum_limit
    """The smallest bias for which T plus a sum does not overflow."""
    bounds = (max(saturated_low, INT32_MIN), min(saturated_high, INT32_MAX))
    if bounds[1] < smallest or bounds[0] > largest:
        return None
    accepted = (
        least if bounds[0] >= smallest else max(least, smallest),
        most if bounds[1] <= largest else min(most, largest),
    )
    if accepted[0] >= accepted[1] or not accepted[0] <= 0 <= accepted[1]:
        return None
    return Preparation(accepted=accepted, bounds=bounds, offset=-offset), lowered
