"""Post-operators: what happens to the sums of a layer, one meaning after the other.

``clip((S[y, x] + bias[x]) >> 8, -128, 127)`` is ``S[y, x]`` and the list ``Bias(bias[x])``, ``Shift(8)``,
``AtLeast(-128)``, ``AtMost(127)``. Operators declare such lists; an expression that a user has written
becomes one where it enters the nest (:mod:`accel.compiler.nest.chain`). How a machine carries them out is
said in :mod:`accel.compiler.target.finish` (ALU) and :mod:`accel.compiler.target.store` (store unit).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

from accel.compiler.expr.quantized import (
    Added,
    IntegerAdded,
    IntegerRequantized,
    QuantizedSum,
    Requantized,
)
from accel.compiler.expr.scalar import Binary, Composed, Const, Expr, Read, maximum, minimum, reads


@dataclass(frozen=True)
class PostOp(ABC):
    """Base of all: a value is changed, element by element."""

    @abstractmethod
    def apply(self, value: Expr) -> Expr:
        """The changed value as arithmetic; this is what the operator means."""

    def parts(self) -> tuple[Expr, ...]:
        """The expressions that it holds."""
        return tuple(part for part in vars(self).values() if isinstance(part, Expr))

    def elements(self) -> list[Read]:
        """The elements of tensors that it reads."""
        return [read for part in self.parts() for read in reads(part)]

    def rewritten(self, change: Callable[[Expr], Expr]) -> PostOp:
        """The same operator with its expressions changed."""
        held = {name: change(part) for name, part in vars(self).items() if isinstance(part, Expr)}
        return replace(self, **held) if held else self


@dataclass(frozen=True)
class Bias(PostOp):
    """Plus an element of an int32 tensor."""

    operand: Expr

    def apply(self, value: Expr) -> Expr:
        return value + self.operand


@dataclass(frozen=True)
class Residual(PostOp):
    """Plus an element of an int8 tensor, another layer's result."""

    operand: Expr

    def apply(self, value: Expr) -> Expr:
        return value + self.operand


@dataclass(frozen=True)
class ResidualProduct(Residual):
    """The same, the element times one of an identity matrix: so a GEMM core can add it."""

    unit: Expr

    def apply(self, value: Expr) -> Expr:
        return value + self.operand * self.unit


@dataclass(frozen=True)
class Offset(PostOp):
    """Plus a constant."""

    amount: int

    def apply(self, value: Expr) -> Expr:
        return value + self.amount


@dataclass(frozen=True)
class Scale(PostOp):
    """Times a constant, or a sum of constants under conditions of which exactly one applies."""

    factor: Expr

    def apply(self, value: Expr) -> Expr:
        return value * self.factor


@dataclass(frozen=True)
class Shift(PostOp):
    """Shifted right, rounded down; to the left if the amount is negative."""

    amount: int

    def apply(self, value: Expr) -> Expr:
        return value >> self.amount


@dataclass(frozen=True)
class AtLeast(PostOp):
    """Raised to a bound; with a bound of zero this is ReLU."""

    bound: int

    def apply(self, value: Expr) -> Expr:
        return maximum(value, self.bound)


@dataclass(frozen=True)
class AtMost(PostOp):
    """Lowered to a bound."""

    bound: int

    def apply(self, value: Expr) -> Expr:
        return minimum(value, self.bound)


@dataclass(frozen=True)
class Combine(PostOp):
    """``value op element of a tensor``, for any other operation."""

    op: str
    operand: Expr

    def apply(self, value: Expr) -> Expr:
        return Binary(self.op, value, self.operand)


@dataclass(frozen=True)
class Take(PostOp):
    """An element of a tensor in place of the value."""

    operand: Expr

    def apply(self, value: Expr) -> Expr:
        return self.operand


@dataclass(frozen=True)
class Requantize(PostOp):
    """Times a scale in float32, rounded half to even, plus a zero point, saturated."""

    channel: Expr
    scales: tuple[float, ...]
    zero: int
    low: int
    high: int

    def apply(self, value: Expr) -> Expr:
        return Requantized(value, self.channel, self.scales, self.zero, self.low, self.high)


@dataclass(frozen=True)
class AddQuantized(PostOp):
    """Plus an element of a quantized tensor, another layer's result."""

    operand: Expr
    how: QuantizedSum

    def apply(self, value: Expr) -> Expr:
        return Added(value, self.operand, self.how)


@dataclass(frozen=True)
class StoreRequantize(PostOp):
    """What the store unit does to an accumulator: STORE.REQ, and the first half of STORE.ADD."""

    bias: Expr
    scale: Expr
    zero: int
    low: int
    high: int

    def apply(self, value: Expr) -> Expr:
        return IntegerRequantized(value, self.bias, self.scale, self.zero, self.low, self.high)


@dataclass(frozen=True)
class StoreAdd(PostOp):
    """What the store unit does next: the second half of STORE.ADD.

    Attributes:
        operand: the residual, an int8 or uint8 value.
        multipliers, zeros: of the requantized value and of the residual.
        shift, offset, zero, low, high: see :func:`accel.core.requantize.add`.
    """

    operand: Expr
    multipliers: tuple[int, int]
    shift: int
    offset: int
    zeros: tuple[int, int]
    zero: int
    low: int
    high: int

    def apply(self, value: Expr) -> Expr:
        return IntegerAdded(
            value,
            self.operand,
            self.multipliers,
            self.shift,
            self.offset,
            self.zeros,
            self.zero,
            self.low,
            self.high,
        )


def taken_apart(body: Expr) -> tuple[Read, tuple[PostOp, ...]] | None:
    """The element that a value is made of by post-operators, and these; None if it is anything else."""
    found: list[PostOp] = []
    while not isinstance(body, Read):
        if isinstance(body, Finished):
            found[:0], body = body.ops, body.value
            continue
        last = _last(body)
        if last is None:
            return None
        found.insert(0, last[1])
        body = last[0]
    return body, tuple(found)


def _last(body: Expr) -> tuple[Expr, PostOp] | None:
    """What the outermost operation of a value is applied to, and it."""
    match body:
        case Requantized(value, channel, scales, zero, low, high):
            return value, Requantize(channel, scales, zero, low, high)
        case Added(left, right, how):
            return left, AddQuantized(right, how)
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
    """To ``low..high``."""
    return AtLeast(low), AtMost(high)


@dataclass(frozen=True)
class Finished(Composed):
    """``value`` after all of ``ops``, in order."""

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
