"""Epilogue operators: the operations on the sums of a layer, in order.

For example, ``clip((S[y, x] + bias[x]) >> 8, -128, 127)`` is ``S[y, x]`` and the list ``Bias(bias[x])``,
``Shift(8)``, ``AtLeast(-128)``, ``AtMost(127)``. Operators declare such lists.
:mod:`accel.compiler.nest.epilogue_matching` finds them in a user's expression. The ALU
(:mod:`accel.compiler.target.alu_epilogue`) or the store unit (:mod:`accel.compiler.target.store_epilogue`)
executes them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

from accel.base.records import AbstractRecord, field_names, field_values, replace
from accel.compiler.expr.applied_operations import Applied
from accel.compiler.expr.quantized_expressions import (
    Added,
    IntegerAdded,
    IntegerRequantized,
    QuantizedSum,
    Requantized,
)
from accel.compiler.expr.quantized_pairs import IntegerPairFunction
from accel.compiler.expr.quantized_products import IntegerMultiplied, Multiplied, QuantizedProduct
from accel.compiler.expr.scalar_expressions import (
    Binary,
    Composed,
    Const,
    Expr,
    Read,
    maximum,
    minimum,
    reads,
)
from accel.compiler.expr.table_expressions import LookedUp


class PostOp(AbstractRecord, frozen=True):
    """Base of all epilogue operators, which are elementwise."""

    @abstractmethod
    def apply(self, value: Expr) -> Expr:
        """Return the result as arithmetic, which defines the operator."""

    def parts(self) -> tuple[Expr, ...]:
        """Return the operator's own expressions."""
        return tuple(part for part in field_values(self).values() if isinstance(part, Expr))

    def elements(self) -> list[Read]:
        return [read for part in self.parts() for read in reads(part)]

    def rewritten(self, change: Callable[[Expr], Expr]) -> PostOp:
        held = {name: change(part) for name, part in field_values(self).items() if isinstance(part, Expr)}
        return replace(self, **held) if held else self


class Bias(PostOp, frozen=True):
    """Add an int32 element."""

    operand: Expr

    def apply(self, value: Expr) -> Expr:
        return value + self.operand


class Residual(PostOp, frozen=True):
    """Add an int8 element, another layer's result."""

    operand: Expr

    def apply(self, value: Expr) -> Expr:
        return value + self.operand


class ResidualProduct(Residual, frozen=True):
    """Add an element times one of an identity matrix, which a GEMM core can do."""

    unit: Expr

    def apply(self, value: Expr) -> Expr:
        return value + self.operand * self.unit


class Offset(PostOp, frozen=True):
    """Add a constant."""

    amount: int

    def apply(self, value: Expr) -> Expr:
        return value + self.amount


class Scale(PostOp, frozen=True):
    """Multiply by a constant, or by a sum of guarded constants of which exactly one applies."""

    factor: Expr

    def apply(self, value: Expr) -> Expr:
        return value * self.factor


class Shift(PostOp, frozen=True):
    """Shift right and round down, or shift left if negative. ``Shift(2)`` turns -5 into -2."""

    amount: int

    def apply(self, value: Expr) -> Expr:
        return value >> self.amount


class AtLeast(PostOp, frozen=True):
    """Raise to a lower bound. ``AtLeast(0)`` is ReLU."""

    bound: int

    def apply(self, value: Expr) -> Expr:
        return maximum(value, self.bound)


class AtMost(PostOp, frozen=True):
    """Limit to an upper bound."""

    bound: int

    def apply(self, value: Expr) -> Expr:
        return minimum(value, self.bound)


class Combine(PostOp, frozen=True):
    """Combine with an element of a tensor by any other operation."""

    op: str
    operand: Expr

    def apply(self, value: Expr) -> Expr:
        return Binary(self.op, value, self.operand)


class Apply(PostOp, frozen=True):
    """Apply a declared ALU operation with a constant or an element."""

    operation: str
    operand: Expr

    def apply(self, value: Expr) -> Expr:
        return Applied(self.operation, value, self.operand)


class Take(PostOp, frozen=True):
    """Replace the value by an element."""

    operand: Expr

    def apply(self, value: Expr) -> Expr:
        return self.operand


class Requantize(PostOp, frozen=True):
    """Multiply by a scale in float32, round half to even, add a zero point, saturate."""

    channel: Expr
    scales: tuple[float, ...]
    zero: int
    low: int
    high: int

    def apply(self, value: Expr) -> Expr:
        return Requantized(value, self.channel, self.scales, self.zero, self.low, self.high)


class LookUp(PostOp, frozen=True):
    """Replace a byte by an entry of a table, see :class:`~accel.compiler.expr.table_expressions.LookedUp`."""

    entries: tuple[int, ...]
    to: str

    def apply(self, value: Expr) -> LookedUp:
        return LookedUp(value, self.entries, self.to)


class AddQuantized(PostOp, frozen=True):
    """Add an element of a quantized tensor."""

    operand: Expr
    how: QuantizedSum

    def apply(self, value: Expr) -> Expr:
        return Added(value, self.operand, self.how)


class MultiplyQuantized(PostOp, frozen=True):
    """Multiply by an element of a quantized tensor."""

    operand: Expr
    how: QuantizedProduct

    def apply(self, value: Expr) -> Expr:
        return Multiplied(value, self.operand, self.how)


class StoreRequantize(PostOp, frozen=True):
    """The store unit's requantization: STORE.REQ, and the first half of STORE.ADD and STORE.MUL."""

    bias: Expr
    scale: Expr
    zero: int
    low: int
    high: int

    def apply(self, value: Expr) -> Expr:
        return IntegerRequantized(value, self.bias, self.scale, self.zero, self.low, self.high)


class StoreLookUp(LookUp, frozen=True):
    """The store unit's look-up between requantization and addition.

    Attributes:
        operand: the first entry in TAB, or None before ``pack_table``.
    """

    operand: Expr | None = None


class StoreCombination(PostOp, frozen=True):
    """Apply ``FUNCTION`` to a requantized value and a residual.

    The fields are the residual (int8 or uint8) and then the settings.
    """

    FUNCTION: ClassVar[type[IntegerPairFunction]]

    operand: Expr

    def apply(self, value: Expr) -> Expr:
        return self.FUNCTION(value, *(getattr(self, one) for one in field_names(self)))


class StoreAdd(StoreCombination, frozen=True):
    """The second half of STORE.ADD, the addition of a residual.

    Attributes:
        multipliers, zeros: one for the requantized value, one for the residual.
        shift, offset, zero, low, high: see :func:`accel.core.requantize.add`.
    """

    FUNCTION: ClassVar[type[IntegerPairFunction]] = IntegerAdded

    multipliers: tuple[int, int]
    shift: int
    offset: int
    zeros: tuple[int, int]
    zero: int
    low: int
    high: int


class StoreMultiply(StoreCombination, frozen=True):
    """The second half of STORE.MUL, the multiplication by a residual.

    Attributes:
        zeros: as for :class:`StoreAdd`.
        multiplier, shift, offset, zero, low, high: see :func:`accel.core.requantize.multiply`.
    """

    FUNCTION: ClassVar[type[IntegerPairFunction]] = IntegerMultiplied

    multiplier: int
    shift: int
    offset: int
    zeros: tuple[int, int]
    zero: int
    low: int
    high: int


def taken_apart(body: Expr) -> tuple[Read, tuple[PostOp, ...]] | None:
    """Return a value's element and epilogue operators, or None."""
    found: list[PostOp] = []
    while not isinstance(body, Read):
        if isinstance(body, Finished):
            found[:0], body = body.ops, body.value
            continue
        last = _outermost_operator(body)
        if last is None:
            return None
        found.insert(0, last[1])
        body = last[0]
    return body, tuple(found)


def _outermost_operator(body: Expr) -> tuple[Expr, PostOp] | None:
    match body:
        case Requantized(value, channel, scales, zero, low, high):
            return value, Requantize(channel, scales, zero, low, high)
        case LookedUp(value, entries, to):
            return value, LookUp(entries, to)
        case Added(left, right, how):
            return left, AddQuantized(right, how)
        case Multiplied(left, right, how):
            return left, MultiplyQuantized(right, how)
        case Applied(operation, value, Const() | Read() as operand):
            return value, Apply(operation, operand)
        case Binary("+", value, Read() as operand):
            return value, Bias(operand) if operand.dtype == "int32" else Residual(operand)
        case Binary("+", value, Const(amount)):
            return value, Offset(amount)
        case Binary(">>", value, Const(amount)):
            return value, Shift(amount)
        case Binary("max", value, Const(bound)):
            return value, AtLeast(bound)
        case Binary("min", value, Const(bound)):
            return value, AtMost(bound)
    return None


RELU = AtLeast(0)


def saturate(low: int, high: int) -> tuple[AtLeast, AtMost]:
    """Return operators that saturate to ``low..high``."""
    return AtLeast(low), AtMost(high)


class Finished(Composed, frozen=True):
    """``value`` after all ``ops``, in order."""

    value: Expr
    ops: tuple[PostOp, ...]

    def plain(self) -> Expr:
        value = self.value
        for op in self.ops:
            value = op.apply(value)
        return value

    def parts(self) -> tuple[Expr, ...]:
        return (self.value, *(part for op in self.ops for part in op.parts()))

    def rewritten(self, change: Callable[[Expr], Expr]) -> Finished:
        return Finished(change(self.value), tuple(op.rewritten(change) for op in self.ops))
