"""Products of two quantized tensors, in floating point as ONNX Runtime and in integers.

:class:`IntegerMultiplied` needs a store unit with ``res_mul=1``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from accel.base.records import as_dict
from accel.compiler.expr.quantization import Order, Quantization
from accel.compiler.expr.quantized_expressions import check_multiplier, integers_from_data
from accel.compiler.expr.quantized_pairs import (
    Array,
    Combination,
    FloatPairFunction,
    IntegerPairFunction,
    combination_from_data,
)
from accel.compiler.expr.scalar_expressions import Expr
from accel.core.requantize import multiply


class Multiplication(Struct, frozen=True, kw_only=True):
    """Integers that multiply two quantized tensors, see :func:`accel.core.requantize.multiply`.

    The fields are those of :class:`~accel.compiler.expr.quantized_expressions.Addition`, with one multiplier.
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
    """All products in floating point: ``[left value, right value]``, clamped to ``low`` and ``high``.

    ``rne((a - a_zero) * (b - b_zero) * (a_scale * b_scale / scale) + zero)`` rounds to float32 after each
    operation, as QLinearMul. With the order ``apart`` the dequantized operands are multiplied and the product
    is quantized. With scales of 0.1, 0.5 and 0.2, the values 30 and 10 give 75.
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
class QuantizedProduct(Combination):
    """A product of two quantized tensors, with ``multiplication``'s integers."""

    left: Quantization
    right: Quantization
    out: Quantization
    low: int
    high: int
    multiplication: Multiplication
    order: Order = "left"

    @property
    def differences(self) -> int:
        return self.multiplication.differences

    def integers(self) -> dict[str, Any]:
        found = self.multiplication
        common = self.common_integers(found.shift, found.offset, found.zero)
        return {"multiplier": found.multiplier, **common}

    def integer_values(self, left: Array, right: Array) -> Array:
        return multiply(left, right, **self.integers())

    def float_table(self) -> Array:
        return float_multiply(self.left, self.right, self.out, self.low, self.high, self.order)

    def to_data(self) -> dict[str, Any]:
        return as_dict(self)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> QuantizedProduct:
        found = data["multiplication"]
        multiplier = check_multiplier(found["multiplier"])
        multiplication = Multiplication(multiplier=multiplier, **integers_from_data(found))
        return cls(**combination_from_data(data), multiplication=multiplication)


class Multiplied(FloatPairFunction, frozen=True):
    NAME: ClassVar[str] = "multiplied"
    RESULT: ClassVar[str] = "product"

    how: QuantizedProduct

    def to_data(self) -> dict[str, Any]:
        return self.how.to_data()

    @classmethod
    def from_data(cls, data: Mapping[str, Any], parts: tuple[Expr, ...]) -> Multiplied:
        left, right = parts
        return cls(left, right, QuantizedProduct.from_data(data))


class IntegerMultiplied(IntegerPairFunction, frozen=True):
    """The store unit's product of a requantized value and a residual:
    :func:`accel.core.requantize.multiply`."""

    NAME: ClassVar[str] = "multiply"
    COMPUTE: ClassVar[Callable[..., Array]] = staticmethod(multiply)

    multiplier: int
    shift: int
    offset: int
    zeros: tuple[int, int]
    zero: int
    low: int
    high: int
