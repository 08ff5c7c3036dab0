"""Quantized tensors: scales, zero points, types, and the order of float32 operations on two of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from accel.base.arguments import check_flag, check_integer
from accel.base.errors import ShapeError
from accel.base.records import replace
from accel.compiler.expr.scalar_expressions import BYTES, Dtype


def bounds_of(dtype: str) -> tuple[int, int]:
    """Return the smallest and the largest value of a quantized tensor's type.

    Raises:
        ShapeError: the type is neither int8 nor uint8.
    """
    if dtype not in BYTES:
        raise ShapeError(f"the type of a quantized tensor is {dtype!r}; it must be 'int8' or 'uint8'")
    return (0, 255) if dtype == "uint8" else (-128, 127)


class Quantization(Struct, frozen=True, kw_only=True):
    """The real numbers that a tensor's values represent: ``(value - zero) * scale``.

    For example, with ``scale=0.05`` and ``zero=4`` the value 24 represents 1.0.

    Attributes:
        scale: float32, positive.
        zero: the zero point, within the type's range.
        unsigned: whether the type is uint8 instead of int8.

    Raises:
        ShapeError: the scale is not positive, or the zero point is out of range.
    """

    scale: float
    zero: int = 0
    unsigned: bool = False

    def __post_init__(self) -> None:
        with np.errstate(over="ignore"):
            scale = np.float32(self.scale)
        if not (np.isfinite(scale) and scale > 0):
            raise ShapeError(f"the scale is {self.scale!r}; it must be a positive finite number")
        if not self.low <= self.zero <= self.high:
            raise ShapeError(f"the zero point is {self.zero}; {self.dtype} has {self.low} to {self.high}")

    @property
    def dtype(self) -> Dtype:
        return "uint8" if self.unsigned else "int8"

    @property
    def low(self) -> int:
        return bounds_of(self.dtype)[0]

    @property
    def high(self) -> int:
        return bounds_of(self.dtype)[1]

    def __str__(self) -> str:
        centered = f"({self.dtype}{-self.zero:+d})" if self.zero else self.dtype
        return f"{centered}*{self.scale:.7g}"

    def values(self) -> npt.NDArray[np.int64]:
        """All values of the type, in order."""
        return np.arange(self.low, self.high + 1, dtype=np.int64)


def quantization_from_data(data: Mapping[str, Any]) -> Quantization:
    """Rebuild a quantization. Raise a ShapeError for values out of range."""
    found = Quantization(**data)
    check_flag("unsigned", found.unsigned)
    return replace(found, zero=check_integer("zero", found.zero, least=found.low, most=found.high))


Order = Literal["left", "right", "apart"]
ORDERS: tuple[Order, ...] = get_args(Order)
"""The order of float32 operations. ``left`` and ``right`` do two multiply-adds, that operand's last, as
QLinearAdd. ``apart`` rounds after each operation, as DequantizeLinear, Add and QuantizeLinear."""


def check_order(order: object) -> Order:
    """Return ``order`` if it is one of :data:`ORDERS`.

    Raises:
        ShapeError: otherwise.
    """
    for one in ORDERS:
        if order == one:
            return one
    raise ShapeError(f"the order is {order!r}; it must be one of {', '.join(ORDERS)}")
