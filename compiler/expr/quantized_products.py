"""Products of two quantized tensors in expressions, in floating point and in integers.

Networks define them in floating point: :class:`Multiplied` is the formula of ONNX Runtime. The store unit of
machines with ``res_mul=1`` computes :class:`IntegerMultiplied`. The compiler replaces the first by the second
where the values are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from accel.base.arguments import check_integer
from accel.compiler.expr.quantized_expressions import (
    OFFSET_RANGE,
    ORDERS,
    VALUE_PAIRS,
    Array,
    Order,
    Quantization,
    check_nine_bits,
    check_order,
    quantization_from_data,
)
from accel.compiler.expr.scalar_expressions import Expr, Function
from accel.core.requantize import ADD_MULTIPLIER_BITS, MAX_ADD_SHIFT, multiply


@dataclass(frozen=True, kw_only=True)
class Multiplication:
    """Integers that multiply two quantized tensors, see :func:`accel.core.requantize.multiply`.

    Attributes:
        multiplier: 31 bits, unsigned.
        shift: 0 to 41.
        offset: 41 bits, signed.
        zero: added after the shift. It is the product's zero point, or one less where the offset compensates
            for that, since a half is rounded to even before the zero point is added.
        differences: pairs of values whose product differs from the floating-point product.
    """

    multiplier: int
    shift: int
    offset: int
    zero: int
    differences: int


def float_multiply(
    left: Quantization,
    right: Quantization,
    out: Quantization,
    low: int,
    high: int,
    order: Order = "left",
) -> npt.NDArray[np.int64]:
    """Return all products in floating point: ``[left value, right value]``, clamped to ``low`` and ``high``.

    ``rne((a - a_zero) * (b - b_zero) * (a_scale * b_scale / scale) + zero)`` with a rounding to float32 after
    each operation, as QLinearMul. With the order ``apart`` both operands are dequantized and multiplied, and
    the product is quantized. For example, with scales of 0.1, 0.5 and 0.2, the values 30 and 10 give 75.
    """
    one, other = ((q.values() - q.zero).astype(np.float32) for q in (left, right))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if order == "apart":
            numbers = (one * np.float32(left.scale))[:, None] * (other * np.float32(right.scale))[None, :]
            scaled = np.rint(numbers / np.float32(out.scale)).astype(np.float64) + out.zero
        else:
            factor = np.float32(left.scale) * np.float32(right.scale) / np.float32(out.scale)
            numbers = one[:, None] * other[None, :] * factor + np.float32(out.zero)
            scaled = np.rint(numbers).astype(np.float64)
    scaled = np.where(np.isnan(scaled), -np.inf, scaled)
    return np.clip(scaled, low, high).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class QuantizedProduct:
    """A product of two quantized tensors in floating point, and the integers that compute it.

    Attributes:
        low, high: bounds of the product.
        multiplication: the integers. They define the values only where they differ from floating point.
        order: ``apart`` if the operands are dequantized first, otherwise as QLinearMul.
    """

    left: Quantization
    right: Quantization
    out: Quantization
    low: int
    high: int
    multiplication: Multiplication
    order: Order = "left"

    @property
    def differences(self) -> int:
        """Pairs of values whose product differs from floating point."""
        return self.multiplication.differences

    def values(self, left: Array, right: Array) -> Array:
        if self.differences:
            return multiply(left, right, **self.integers())
        table = float_multiply(self.left, self.right, self.out, self.low, self.high, self.order)
        one = np.clip(left, self.left.low, self.left.high) - self.left.low
        other = np.clip(right, self.right.low, self.right.high) - self.right.low
        products: Array = table[one, other]
        return products

    def integers(self) -> dict[str, Any]:
        """Return the arguments of :func:`accel.core.requantize.multiply`."""
        return {
            "multiplier": self.multiplication.multiplier,
            "shift": self.multiplication.shift,
            "offset": self.multiplication.offset,
            "zeros": (self.left.zero, self.right.zero),
            "zero": self.multiplication.zero,
            "low": self.low,
            "high": self.high,
        }

    def to_data(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> QuantizedProduct:
        """Rebuild the product from :meth:`to_data`.

        Raises:
            ShapeError: a number is out of range.
        """
        left, right, out = (quantization_from_data(data[name]) for name in ("left", "right", "out"))
        found = dict(data["multiplication"])
        most = (1 << ADD_MULTIPLIER_BITS) - 1
        multiplication = Multiplication(
            multiplier=check_integer("multiplier", found["multiplier"], least=0, most=most),
            shift=check_integer("shift", found["shift"], least=0, most=MAX_ADD_SHIFT),
            offset=check_integer("offset", found["offset"], least=-OFFSET_RANGE, most=OFFSET_RANGE - 1),
            zero=check_nine_bits("zero", found["zero"]),
            differences=check_integer("differences", found["differences"], least=0, most=VALUE_PAIRS),
        )
        low = check_integer("low", data["low"], least=out.low, most=out.high)
        high = check_integer("high", data["high"], least=low, most=out.high)
        order = check_order(data.get("order", ORDERS[0]))
        return cls(
            left=left,
            right=right,
            out=out,
            low=low,
            high=high,
            multiplication=multiplication,
            order=order,
        )


@dataclass(frozen=True)
class Multiplied(Function):
    """The product of two quantized values in floating point: :func:`float_multiply`."""

    NAME: ClassVar[str] = "multiplied"

    left: Expr
    right: Expr
    how: QuantizedProduct

    def parts(self) -> tuple[Expr, ...]:
        return self.left, self.right

    def rewritten(self, change: Callable[[Expr], Expr]) -> Multiplied:
        return replace(self, left=change(self.left), right=change(self.right))

    def values(self, *parts: Array) -> Array:
        return self.how.values(*parts)

    def settings(self) -> dict[str, Any]:
        named = (("left", self.how.left), ("right", self.how.right), ("product", self.how.out))
        return {name: str(one) for name, one in named}

    def to_data(self) -> dict[str, Any]:
        return self.how.to_data()

    @classmethod
    def from_data(cls, data: Mapping[str, Any], parts: tuple[Expr, ...]) -> Multiplied:
        left, right = parts
        return cls(left, right, QuantizedProduct.from_data(data))


@dataclass(frozen=True)
class IntegerMultiplied(Function):
    """A requantized value times a residual, as the store unit computes it:
    :func:`accel.core.requantize.multiply`."""

    NAME: ClassVar[str] = "multiply"

    left: Expr
    right: Expr
    multiplier: int
    shift: int
    offset: int
    zeros: tuple[int, int]
    zero: int
    low: int
    high: int

    def parts(self) -> tuple[Expr, ...]:
        return self.left, self.right

    def rewritten(self, change: Callable[[Expr], Expr]) -> IntegerMultiplied:
        return replace(self, left=change(self.left), right=change(self.right))

    def values(self, *parts: Array) -> Array:
        return multiply(*parts, **self.settings())

    def settings(self) -> dict[str, Any]:
        names = ("multiplier", "shift", "offset", "zeros", "zero", "low", "high")
        return {name: getattr(self, name) for name in names}
