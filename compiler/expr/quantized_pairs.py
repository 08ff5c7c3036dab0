"""Functions of two quantized values: common parts of sums and products."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from accel.base.arguments import check_integer
from accel.base.records import field_names, replace
from accel.compiler.expr.quantization import ORDERS, Order, Quantization, check_order, quantization_from_data
from accel.compiler.expr.scalar_expressions import Expr, Function

Array = npt.NDArray[Any]


class Combination(ABC):
    """A function of two quantized tensors, in floating point and in integers.

    The integers define the values only where they differ from floating point.
    """

    left: Quantization
    right: Quantization
    out: Quantization
    low: int
    high: int
    order: Order

    @property
    @abstractmethod
    def differences(self) -> int: ...

    @abstractmethod
    def integers(self) -> dict[str, Any]: ...

    @abstractmethod
    def integer_values(self, left: Array, right: Array) -> Array:
        """Compute the function as the store unit does."""

    @abstractmethod
    def float_table(self) -> Array: ...

    def values(self, left: Array, right: Array) -> Array:
        if self.differences:
            return self.integer_values(left, right)
        one = np.clip(left, self.left.low, self.left.high) - self.left.low
        other = np.clip(right, self.right.low, self.right.high) - self.right.low
        results: Array = self.float_table()[one, other]
        return results

    def common_integers(self, shift: int, offset: int, zero: int) -> dict[str, Any]:
        return {
            "shift": shift,
            "offset": offset,
            "zeros": (self.left.zero, self.right.zero),
            "zero": zero,
            "low": self.low,
            "high": self.high,
        }


def combination_from_data(data: Mapping[str, Any]) -> dict[str, Any]:
    """Raise a ShapeError for numbers out of range."""
    left, right, out = (quantization_from_data(data[name]) for name in ("left", "right", "out"))
    low = check_integer("low", data["low"], least=out.low, most=out.high)
    high = check_integer("high", data["high"], least=low, most=out.high)
    order = check_order(data.get("order", ORDERS[0]))
    return {"left": left, "right": right, "out": out, "low": low, "high": high, "order": order}


class PairFunction(Function, frozen=True):
    left: Expr
    right: Expr

    def parts(self) -> tuple[Expr, ...]:
        return self.left, self.right

    def rewritten(self, change: Callable[[Expr], Expr]) -> Self:
        return replace(self, left=change(self.left), right=change(self.right))


class FloatPairFunction(PairFunction, frozen=True):
    RESULT: ClassVar[str]

    how: Combination

    def values(self, *parts: Array) -> Array:
        return self.how.values(*parts)

    def settings(self) -> dict[str, Any]:
        named = (("left", self.how.left), ("right", self.how.right), (self.RESULT, self.how.out))
        return {name: str(one) for name, one in named}


class IntegerPairFunction(PairFunction, frozen=True):
    """The store unit's function of a requantized value and a residual. The other fields are settings."""

    COMPUTE: ClassVar[Callable[..., Array]]

    def values(self, *parts: Array) -> Array:
        return type(self).COMPUTE(*parts, **self.settings())

    def settings(self) -> dict[str, Any]:
        return {one: getattr(self, one) for one in field_names(self)[2:]}
