"""Epilogue operators: the operations on the sums of a layer, in order.

For example, ``clip((S[y, x] + bias[x]) >> 8, -128, 127)`` is ``S[y, x]`` and the list ``Bias(bias[x])``,
``Shift(8)``, ``AtLeast(-128)``, ``AtMost(127)``. Operators declare such lists.
:mod:`accel.compiler.nest.epilogue_matching` finds them in a user's expression. The ALU
(:mod:`accel.compiler.target.alu_epilogue`) or the store unit (:mod:`accel.compiler.target.store_epilogue`)
executes them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import ClassVar

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


@dataclass(frozen=True)
class PostOp(ABC):
    """Base of all epilogue operators, which are elementwise."""

    @abstractmethod
    def apply(self, value: Expr) -> Expr:
        """Return the result as arithmetic, which defines the operator."""

    def parts(self) -> tuple[Expr, ...]:
        """Return the operator's own expressions."""
        return tuple(part for part in vars(self).values() if isinstance(part, Expr))

    def elements(self) -> list[Read]:
        """Return the tensor elements that it reads."""
        return [read for part in self.parts() for read in reads(part)]

    def rewritten(self, change: Callable[[Expr], Expr]) -> PostOp:
        """Return the operator with its expressions changed."""
        held = {name: change(part) for name, part in vars(self).items() if isinstance(part, Expr)}
        return replace(self, **held) if held else self


@dataclass(frozen=True)
class Bias(PostOp):
    """Add an int32 element."""

    operand: Expr

    def apply(self, value: Expr) -> Expr:
        return value + self.operand


@dataclass(frozen=True)
class Residual(PostOp):
    """Add an int8 element, another layer's result."""

    operand: Expr

    def apply(self, value: Expr) -> Expr:
        return value + self.operand


@dataclass(frozen=True)
class ResidualProduct(Residual):
    """Add an element times one of an identity matrix, which a GEMM core can do."""

    unit: Expr

    def apply(self, value: Expr) -> Expr:
        return value + self.operand * self.unit


@dataclass(frozen=True)
class Offset(PostOp):
    """Add a constant."""

    amount: int

    def apply(self, value: Expr) -> Expr:
        return value + self.amount


@dataclass(frozen=True)
class Scale(PostOp):
    """Multiply by a constant, or by a sum of guarded constants of which exactly one applies."""

    factor: Expr

    def apply(self, value: Expr) -> Expr:
        return value * self.factor


@dataclass(frozen=True)
class Shift(PostOp):
    """Shift right and round down, or shift left if negative. ``Shift(2)`` turns -5 into -2."""

    amount: int

    def apply(self, value: Expr) -> Expr:
        return value >> self.amount


@dataclass(frozen=True)
class AtLeast(PostOp):
    """Raise to a lower bound. ``AtLeast(0)`` is ReLU."""

    bound: int

    def apply(self, value: Expr) -> Expr:
        return maximum(value, self.bound)


@dataclass(frozen=True)
class AtMost(PostOp):
    """Limit to an upper bound."""

    bound: int

    def apply(self, value: Expr) -> Expr:
        return minimum(value, self.bound)


@dataclass(frozen=True)
class Combine(PostOp):
    """Combine with an element of a tensor by any other operation."""

    op: str
    operand: Expr

    def apply(self, value: Expr) -> Expr:
        return Binary(self.op, value, self.operand)


@dataclass(frozen=True)
class Apply(PostOp):
    """Apply a declared ALU operation with a constant or an element."""

    operation: str
    operand: Expr

    def apply(self, value: Expr) -> Expr:
        return Applied(self.operation, value, self.operand)


@dataclass(frozen=True)
class Take(PostOp):
    """Replace the value by an element."""

    operand: Expr

    def apply(self, value: Expr) -> Expr:
        return self.operand


@dataclass(frozen=True)
class Requantize(PostOp):
    """Multiply by a scale in float32, round half to even, add a zero point, saturate."""

    channel: Expr
    scales: tuple[float, ...]
    zero: int
    low: int
    high: int

    def apply(self, value: Expr) -> Expr:
        return Requantized(value, self.channel, self.scales, self.zero, self.low, self.high)


@dataclass(frozen=True)
class LookUp(PostOp):
    """Replace a byte by an entry of a table, see :class:`~accel.compiler.expr.table_expressions.LookedUp`."""

    entries: tuple[int, ...]
    to: str

    def apply(self, value: Expr) -> LookedUp:
        return LookedUp(value, self.entries, self.to)


@dataclass(frozen=True)
class AddQuantized(PostOp):
    """Add an element of a quantized tensor, another layer's result."""

    operand: Expr
    how: QuantizedSum

    def apply(self, value: Expr) -> Expr:
        return Added(value, self.operand, self.how)


@dataclass(frozen=True)
class MultiplyQuantized(PostOp):
    """Multiply by an element of a quantized tensor, another layer's result."""

    operand: Expr
    how: QuantizedProduct

    def apply(self, value: Expr) -> Expr:
        return Multiplied(value, self.operand, self.how)


@dataclass(frozen=True)
class StoreRequantize(PostOp):
    """The store unit's requantization: STORE.REQ, and the first half of STORE.ADD and STORE.MUL."""

    bias: Expr
    scale: Expr
    zero: int
    low: int
    high: int

    def apply(self, value: Expr) -> Expr:
        return IntegerRequantized(value, self.bias, self.scale, self.zero, self.low, self.high)


@dataclass(frozen=True)
class StoreLookUp(LookUp):
    """The store unit's look-up between requantization and addition.

    Attributes:
        operand: the first entry in TAB, or None before ``pack_table``.
    """

    operand: Expr | None = None


@dataclass(frozen=True)
class StoreCombination(PostOp):
    """The store unit's function of a requantized value and a residual.

    The fields are the residual (int8 or uint8) and then the settings of ``FUNCTION``.
    """

    FUNCTION: ClassVar[type[IntegerPairFunction]]

    operand: Expr

    def apply(self, value: Expr) -> Expr:
        return self.FUNCTION(value, *(getattr(self, one.name) for one in fields(self)))


@dataclass(frozen=True)
class StoreAdd(StoreCombination):
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


@dataclass(frozen=True)
class StoreMultiply(StoreCombination):
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
    """Return the operators that saturate to ``low..high``."""
    return AtLeast(low), AtMost(high)


@dataclass(frozen=True)
class Finished(Composed):
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
