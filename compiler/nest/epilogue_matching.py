"""A user's elementwise expressions as ``epilogue_operators``, which change an accumulator in place."""

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np
from msgspec import Struct

from accel.base.errors import TensorizeError
from accel.compiler.expr.applied_operations import Applied
from accel.compiler.expr.epilogue_operators import (
    AddQuantized,
    Apply,
    AtLeast,
    AtMost,
    Bias,
    Combine,
    Finished,
    MultiplyQuantized,
    Offset,
    PostOp,
    Requantize,
    Residual,
    Scale,
    Shift,
    Take,
)
from accel.compiler.expr.linear_expressions import variables
from accel.compiler.expr.numpy_reference import values_at
from accel.compiler.expr.scalar_expressions import (
    INT32_MAX,
    INT32_MIN,
    Binary,
    Const,
    Expr,
    Guarded,
    IterVar,
    Read,
    format_expr,
    reads,
)
from accel.compiler.target.alu_epilogue import ALU_NAMES, IMMEDIATE_HIGH, IMMEDIATE_LOW, pieces, simplified

_NEUTRAL = {"+": 0, "max": INT32_MIN, "min": INT32_MAX}
"""By operation: the operand that does not change the value."""
_WITH_CONSTANT: dict[str, Callable[[int], PostOp]] = {
    "+": Offset,
    "*": lambda value: Scale(Const(value)),
    ">>": Shift,
    "min": AtMost,
    "max": AtLeast,
}


class Chain(Struct, frozen=True):
    """The accumulator that is changed in place, or None, and the epilogue operators."""

    root: Read | None
    ops: tuple[PostOp, ...]


def chain_of(
    name: str, body: Expr, in_place: Callable[[Read], bool], axes: tuple[IterVar, ...] = ()
) -> Chain:
    """Return the chain that computes ``body``. ``name`` is for messages.

    Args:
        in_place: whether the chain may change an accumulator. It changes the first possible one.
        axes: an element that is read at other or several indices is copied before it is changed, since
            neighbours may need it.
    """
    ops: list[PostOp] = []
    sources = [read.tensor for read in reads(body)]
    while not isinstance(body, Read):
        if isinstance(body, Finished):
            body, last = _taken_apart(body)
        elif isinstance(body, Applied):
            last = (_applied(name, body),)
            body = body.value
        elif isinstance(body, Binary):
            op, body = _last_op(name, body, in_place)
            last = (op,)
        else:
            raise TensorizeError(
                f"{name} has {format_expr(body)}; the ALU changes one accumulator in place, "
                f"by steps with an immediate or another accumulator"
            )
        ops[:0] = last
    if not in_place(body):
        if axes and (body.indices != axes or sources.count(body.tensor) > 1):
            return Chain(None, (Take(body), *simplified(ops)))
        raise TensorizeError(
            f"{name} would change {format_expr(body)} in place; it must start from sums that are computed "
            f"in acc_buffer inside the same loop, element by element, and that no other stage reads"
        )
    return Chain(body, simplified(ops) or (Offset(0),))


def _taken_apart(body: Finished) -> tuple[Expr, tuple[PostOp, ...]]:
    """Return a value and its epilogue operators, or its arithmetic if the ALU lacks one or an operand is
    compound."""
    settled = all(_is_leaf(part) or isinstance(op, Scale) for op in body.ops for part in op.parts())
    settled = settled and not any(
        isinstance(op, Requantize | AddQuantized | MultiplyQuantized) for op in body.ops
    )
    return (body.value, body.ops) if settled else (body.plain(), ())


def _applied(name: str, body: Applied) -> Apply:
    operand = body.operand
    if isinstance(operand, Const) and not IMMEDIATE_LOW <= operand.value <= IMMEDIATE_HIGH:
        raise _too_large(name, operand.value)
    if not isinstance(operand, Const | Read):
        raise TensorizeError(
            f"{name} has {format_expr(body)}; the second operand must be a constant or a tensor: make "
            f"{format_expr(operand)} a computation of its own"
        )
    return Apply(body.operation, operand)


def _last_op(name: str, body: Binary, in_place: Callable[[Read], bool]) -> tuple[PostOp, Expr]:
    op, a, b = body.op, body.a, body.b
    if op == "*" and not isinstance(b, Const) and (parts := pieces(b)):
        _check_pieces(name, parts)
        return Scale(b), a
    if op == "-" and isinstance(a, Const):
        op, a, b = "+", Binary("*", b, Const(-1)), a
    if op in ("+", "*", "min", "max") and _is_leaf(a):
        settled = isinstance(a, Read) and _is_leaf(b) and (in_place(a) or not isinstance(b, Read))
        if not settled:
            a, b = b, a
    if not _is_leaf(b):
        raise TensorizeError(
            f"{name} combines {format_expr(a)} with {format_expr(b)}; one of the two must be a constant "
            f"or a tensor: make the other a computation of its own"
        )
    if isinstance(b, Const):
        value = b.value
        if op == "-":
            op, value = "+", -value
        elif op == "<<":
            op, value = ">>", -value
        if op in _WITH_CONSTANT:
            if not IMMEDIATE_LOW <= value <= IMMEDIATE_HIGH:
                raise _too_large(name, b.value)
            return _WITH_CONSTANT[op](value), a
    elif op in ALU_NAMES:
        if isinstance(b, Guarded) and _NEUTRAL.get(op) != b.otherwise:
            raise TensorizeError(
                f"{name} combines {format_expr(a)} with {format_expr(b)}; where a condition fails, the ALU "
                f"leaves the accumulator as it is, as {_NEUTRAL.get(op, 'no value')} would"
            )
        return _with_element(op, b), a
    raise TensorizeError(
        f"{name} uses {op!r} on tensors; the ALU has + * >> min max, and - and << by constants"
    )


def _with_element(op: str, operand: Expr) -> PostOp:
    if op != "+":
        return Combine(op, operand)
    return Residual(operand) if operand.dtype == "int8" else Bias(operand)


def _check_pieces(name: str, parts: Sequence[tuple[int, tuple[tuple[Expr, Expr], ...]]]) -> None:
    conditions = [condition for _, found in parts for condition in found]
    axes = list(dict.fromkeys(v for a, b in conditions for v in (*variables(a), *variables(b))))
    grid = np.meshgrid(*(np.arange(v.extent) for v in axes), indexing="ij", sparse=True)
    at = dict(zip(axes, grid, strict=True))
    met = np.zeros([v.extent for v in axes], dtype=int)
    for _, found in parts:
        met += reduce(np.logical_and, [values_at(a, at) < values_at(b, at) for a, b in found])
    if (met != 1).any():
        raise TensorizeError(
            f"{name} multiplies by a sum of constants, but not exactly one of them applies to every element"
        )
    for value, _ in parts:
        if not IMMEDIATE_LOW <= value <= IMMEDIATE_HIGH:
            raise _too_large(name, value)


def _too_large(name: str, value: int) -> TensorizeError:
    return TensorizeError(
        f"{name} has the constant {value}; an immediate is in {IMMEDIATE_LOW}..{IMMEDIATE_HIGH}"
    )


def _is_leaf(expr: Expr) -> bool:
    return isinstance(expr, Const | Read) or (isinstance(expr, Guarded) and isinstance(expr.value, Read))
