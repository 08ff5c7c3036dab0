"""Elementwise expressions as chains of in-place ALU operations.

``clip((S[y, x] + bias[x]) >> 8, -128, 127)`` is S, then ADD bias, SHR 8, MAX -128, MIN 127: every step
is one pass over the accumulators. Steps that cannot change anything are left out but for one, and neighbours
that do the same kind of thing are merged.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np

from accel.base.errors import TensorizeError
from accel.compiler.expr.linear import variables
from accel.compiler.expr.reference import values_at
from accel.compiler.expr.scalar import (
    INT32_MAX,
    INT32_MIN,
    Binary,
    Condition,
    Const,
    Expr,
    Guarded,
    IterVar,
    Read,
    format_expr,
    reads,
)
from accel.compiler.target.finish import IMMEDIATE_HIGH, IMMEDIATE_LOW

_NEUTRAL = {"+": 0, "max": INT32_MIN, "min": INT32_MAX}
"""What changes nothing."""
_NAMES = {"+": "add", "*": "mul", ">>": "shr", "min": "min", "max": "max"}


@dataclass(frozen=True)
class Step:
    """``acc = op(acc, operand)`` where all conditions hold; the operand is an immediate or an element of
    another accumulator. The operation ``zero`` sets to zero."""

    op: str
    operand: int | Read
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True)
class Chain:
    """The accumulator that is changed in place, if it is one that is read, and the steps in order."""

    root: Read | None
    steps: tuple[Step, ...]


def chain_of(
    name: str, body: Expr, in_place: Callable[[Read], bool], axes: tuple[IterVar, ...] = ()
) -> Chain:
    """The chain that computes ``body``.

    Args:
        name: of the computation, for messages.
        body: the expression.
        in_place: whether an accumulator may be the one that is changed; the first such one is.
        axes: of the computation. What it reads at other places than these, or at several, may be needed by
            its neighbours; if it cannot be changed in place, it is copied first.

    Raises:
        TensorizeError: there is none: both operands of an operation are compound, or it is one that the
            ALU does not have.
    """
    steps: list[Step] = []
    sources = [read.tensor for read in reads(body)]
    while not isinstance(body, Read):
        if not isinstance(body, Binary):
            raise TensorizeError(
                f"{name} has {format_expr(body)}; the ALU changes one accumulator in place, "
                f"by steps with an immediate or another accumulator"
            )
        pieces = list(_pieces(body.b))
        if body.op == "*" and pieces:
            _check_pieces(name, pieces)
            steps += [Step("mul", value, conditions) for value, conditions in pieces]
            body = body.a
            continue
        step, body = _last_step(name, body, in_place)
        steps.append(step)
    if not in_place(body):
        if axes and (body.indices != axes or sources.count(body.tensor) > 1):
            return Chain(None, (Step("zero", 0), Step("add", body), *_merge(steps[::-1])))
        raise TensorizeError(
            f"{name} would change {format_expr(body)} in place; it must start from sums that are computed "
            f"in acc_buffer inside the same loop, element by element, and that nobody else reads"
        )
    return Chain(body, tuple(_merge(steps[::-1])) or (Step("add", 0),))


def _pieces(expr: Expr) -> Iterator[tuple[int, tuple[Condition, ...]]]:
    """The parts of a sum of constants under conditions; nothing if it is something else."""
    parts: list[Expr] = [expr]
    while isinstance(parts[0], Binary) and parts[0].op == "+":
        parts[:1] = [parts[0].a, parts[0].b]
    for part in parts:
        if not (isinstance(part, Guarded) and isinstance(part.value, Const) and part.otherwise == 0):
            return
    for part in parts:
        assert isinstance(part, Guarded)
        assert isinstance(part.value, Const)
        yield part.value.value, part.conditions


def _check_pieces(name: str, pieces: list[tuple[int, tuple[Condition, ...]]]) -> None:
    """Refuse immediates that are too large, and pieces of which not exactly one applies everywhere.

    Raises:
        TensorizeError: see above.
    """
    conditions = [condition for _, found in pieces for condition in found]
    axes = list(dict.fromkeys(v for a, b in conditions for v in (*variables(a), *variables(b))))
    grid = np.meshgrid(*(np.arange(v.extent) for v in axes), indexing="ij", sparse=True)
    at = dict(zip(axes, grid, strict=True))
    met = np.zeros([v.extent for v in axes], dtype=int)
    for _, found in pieces:
        met += reduce(np.logical_and, [values_at(a, at) < values_at(b, at) for a, b in found])
    if (met != 1).any():
        raise TensorizeError(
            f"{name} multiplies by a sum of constants, of which not exactly one is there for every element"
        )
    for value, _ in pieces:
        if not IMMEDIATE_LOW <= value <= IMMEDIATE_HIGH:
            raise _too_large(name, value)


def _too_large(name: str, value: int) -> TensorizeError:
    return TensorizeError(
        f"{name} has the constant {value}; an immediate is in {IMMEDIATE_LOW}..{IMMEDIATE_HIGH}"
    )


def _last_step(name: str, body: Binary, in_place: Callable[[Read], bool]) -> tuple[Step, Expr]:
    op, a, b = body.op, body.a, body.b
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
        if op in _NAMES:
            if not IMMEDIATE_LOW <= value <= IMMEDIATE_HIGH:
                raise _too_large(name, b.value)
            return Step(_NAMES[op], value), a
    elif op in _NAMES and isinstance(b, Guarded):
        if _NEUTRAL.get(op) != b.otherwise:
            raise TensorizeError(
                f"{name} combines {format_expr(a)} with {format_expr(b)}; where a condition fails, the ALU "
                f"leaves the accumulator as it is, as {_NEUTRAL.get(op, 'no value')} would"
            )
        assert isinstance(b.value, Read)
        return Step(_NAMES[op], b.value, b.conditions), a
    elif op in _NAMES:
        assert isinstance(b, Read)
        return Step(_NAMES[op], b), a
    raise TensorizeError(
        f"{name} uses {op!r} on tensors; the ALU has + * >> min max, and - and << by constants"
    )


def _is_leaf(expr: Expr) -> bool:
    return isinstance(expr, Const | Read) or (isinstance(expr, Guarded) and isinstance(expr.value, Read))


def _merge(steps: list[Step]) -> list[Step]:
    """The same function in fewer steps."""
    merged: list[Step] = []
    for step in steps:
        previous = merged[-1] if merged else None
        if isinstance(step.operand, int) and not step.conditions:
            if (step.op in ("add", "shr") and step.operand == 0) or (step.op == "mul" and step.operand == 1):
                continue
            alike = previous is not None and previous.op == step.op and not previous.conditions
            if previous is not None and alike and isinstance(previous.operand, int):
                combined = _combined(step.op, previous.operand, step.operand)
                if combined is not None:
                    merged[-1] = Step(step.op, combined)
                    continue
            if _is_implied(merged, step):
                continue
        merged.append(step)
    return merged


def _combined(op: str, first: int, second: int) -> int | None:
    """One immediate for two steps of the same operation, if there is one."""
    if op == "min":
        return min(first, second)
    if op == "max":
        return max(first, second)
    if op == "add" and IMMEDIATE_LOW <= first + second <= IMMEDIATE_HIGH:
        return first + second
    if op == "shr" and first >= 0 and second >= 0:
        return min(31, first + second)
    return None


def _is_implied(before: list[Step], step: Step) -> bool:
    """Whether a bound already holds after the bounds that directly precede it."""
    low, high = None, None
    for earlier in reversed(before):
        if earlier.op == "max" and isinstance(earlier.operand, int):
            low = earlier.operand if low is None else low
        elif earlier.op == "min" and isinstance(earlier.operand, int):
            high = earlier.operand if high is None else high
        else:
            break
        if low is not None and high is not None:
            break
    assert isinstance(step.operand, int)
    if step.op == "max":
        return low is not None and step.operand <= low and (high is None or high >= low)
    if step.op == "min":
        return high is not None and step.operand >= high and (low is None or low <= high)
    return False
