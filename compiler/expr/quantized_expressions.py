"""Requantization and addition of quantized tensors, in floating point and in integers.

Networks define :class:`Requantized` and :class:`Added` in floating point, with the formulas of ONNX Runtime.
The store unit computes :class:`IntegerRequantized` and :class:`IntegerAdded`. The compiler uses these where
the values are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from accel.base.arguments import check_integer
from accel.base.deprecated_modules import reexport
from accel.base.errors import ShapeError
from accel.base.fma import fma
from accel.base.records import as_dict, replace
from accel.compiler.expr.quantization import Order, Quantization
from accel.compiler.expr.quantized_pairs import (
    Array,
    Combination,
    FloatPairFunction,
    IntegerPairFunction,
    combination_from_data,
)
from accel.compiler.expr.scalar_expressions import Expr, Function
from accel.core.requantize import (
    ADD_MULTIPLIER_BITS,
    ADD_OFFSET_BITS,
    MAX_ADD_SHIFT,
    RESULT_BITS,
    Scale,
    add,
    float_requantize,
    multipliers_and_exponents,
    requantize,
)

__getattr__ = reexport(__name__, "accel.compiler.expr.quantization")

_OFFSET_RANGE = 1 << (ADD_OFFSET_BITS - 1)
_RESULT_RANGE = 1 << (RESULT_BITS - 1)
_VALUE_PAIRS = 256**2
"""Pairs of values of two quantized tensors."""


def _check_nine_bits(name: str, value: object) -> int:
    return check_integer(name, value, least=-_RESULT_RANGE, most=_RESULT_RANGE - 1)


class Addition(Struct, frozen=True, kw_only=True):
    """Integers that add two quantized tensors, see :func:`accel.core.requantize.add`.

    Attributes:
        multipliers: one for each operand, 31 bits, unsigned.
        shift: 0 to 41.
        offset: 41 bits, signed.
        zero: added after the shift: the sum's zero point, or, if that is odd, possibly one less.
        differences: pairs of values, of 65,536, whose sum differs from the floating-point sum.
    """

    multipliers: tuple[int, int]
    shift: int
    offset: int
    zero: int
    differences: int


def float_add(
    left: Quantization,
    right: Quantization,
    out: Quantization,
    low: int,
    high: int,
    order: Order = "left",
) -> npt.NDArray[np.int64]:
    """Return all sums in floating point: ``[left value, right value]``, clamped to ``low`` and ``high``."""
    if order == "right":
        return float_add(right, left, out, low, high).T
    if order == "apart":
        return _add_dequantized(left, right, out, low, high)
    one, other = (np.float32(q.scale) / np.float32(out.scale) for q in (left, right))
    zeros = fma(one, np.float32(left.zero), np.float32(other * np.float32(right.zero)))
    constant = np.float32(out.zero) - zeros
    inner = fma(right.values().astype(np.float32), other, constant)
    outer = fma(left.values().astype(np.float32)[:, None], one, inner[None, :])
    with np.errstate(invalid="ignore"):
        return np.clip(np.rint(outer.astype(np.float64)), low, high).astype(np.int64)


def _add_dequantized(
    left: Quantization, right: Quantization, out: Quantization, low: int, high: int
) -> npt.NDArray[np.int64]:
    one, other = ((q.values() - q.zero).astype(np.float32) * np.float32(q.scale) for q in (left, right))
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.rint((one[:, None] + other[None, :]) / np.float32(out.scale)).astype(np.float64)
    scaled = np.where(np.isnan(scaled), -np.inf, scaled)
    return np.clip(scaled + out.zero, low, high).astype(np.int64)


def scale_words(scales: tuple[float, ...]) -> tuple[int, ...]:
    """Return scales as the store unit's int32 words, ``accel.core.requantize.Scale.word``."""
    words = [Scale.of(value).word for value in scales]
    return tuple(word - ((word >> 31) << 32) for word in words)


class Requantized(Function, frozen=True):
    """``clamp(rne(float32(value) * scale) + zero, low, high)`` in float32:
    :func:`accel.core.requantize.float_requantize`.

    Attributes:
        value: int32.
        channel: index of the scale, ignored if there is one scale.
        scales: float32, positive, one per channel or one for all.
        zero, low, high: the result's zero point and bounds.
    """

    NAME: ClassVar[str] = "requantized"

    value: Expr
    channel: Expr
    scales: tuple[float, ...]
    zero: int
    low: int
    high: int

    def parts(self) -> tuple[Expr, ...]:
        return self.value, self.channel

    def rewritten(self, change: Callable[[Expr], Expr]) -> Requantized:
        return replace(self, value=change(self.value), channel=change(self.channel))

    def values(self, *parts: Array) -> Array:
        value, channel = parts
        scales = np.array(self.scales, dtype=np.float32)
        chosen = scales[channel] if len(scales) > 1 else scales[0]
        return float_requantize(value, 0, chosen, zero=self.zero, low=self.low, high=self.high)

    def settings(self) -> dict[str, Any]:
        one = f"{self.scales[0]:.7g}" if len(self.scales) == 1 else f"{len(self.scales)} scales"
        return {"scale": one, "zero": self.zero, "low": self.low, "high": self.high}

    def to_data(self) -> dict[str, Any]:
        return {"scales": list(self.scales), "zero": self.zero, "low": self.low, "high": self.high}

    @classmethod
    def from_data(cls, data: Mapping[str, Any], parts: tuple[Expr, ...]) -> Requantized:
        value, channel = parts
        scales = check_scales(data["scales"])
        zero, low, high = (_check_nine_bits(name, data[name]) for name in ("zero", "low", "high"))
        return cls(value, channel, scales, zero, low, high)


def check_scales(scales: object, name: str = "the scale") -> tuple[float, ...]:
    """Return scales as float32 values, from a number, a sequence or an array. Errors contain ``name``.

    Raises:
        ShapeError: there is none, one is no positive number, or there are several dimensions.
    """
    try:
        given = np.atleast_1d(np.asarray(scales))
    except ValueError:  # sequences of different lengths
        given = np.zeros(0)
    if given.dtype.kind not in "iuf" or given.ndim != 1 or not given.size:
        what = f"an array of shape {given.shape}" if isinstance(scales, np.ndarray) else repr(scales)
        raise ShapeError(f"{name} is {what}; it must be a number, or one for each channel")
    with np.errstate(over="ignore"):
        found = given.astype(np.float32)
    bad = np.flatnonzero(~(np.isfinite(found) & (found > 0)))
    if bad.size:
        where = f" for channel {bad[0]}" if found.size > 1 else ""
        raise ShapeError(f"{name} is {float(given[bad[0]])!r}{where}; it must be a positive float32")
    return tuple(map(float, found))


class IntegerRequantized(Function, frozen=True):
    """An accumulator requantized by the store unit: :func:`accel.core.requantize.requantize`.

    Attributes:
        value: int32.
        bias, scale: int32, of the value's channel. The scale is a word of :func:`scale_words`.
    """

    NAME: ClassVar[str] = "requantize"

    value: Expr
    bias: Expr
    scale: Expr
    zero: int
    low: int
    high: int

    def parts(self) -> tuple[Expr, ...]:
        return self.value, self.bias, self.scale

    def rewritten(self, change: Callable[[Expr], Expr]) -> IntegerRequantized:
        return replace(self, value=change(self.value), bias=change(self.bias), scale=change(self.scale))

    def values(self, *parts: Array) -> Array:
        value, bias, scale = parts
        return requantize(
            value, bias, *multipliers_and_exponents(scale), zero=self.zero, low=self.low, high=self.high
        )

    def settings(self) -> dict[str, Any]:
        return {"zero": self.zero, "low": self.low, "high": self.high}


def check_multiplier(number: object) -> int:
    """Return a multiplier, or raise a ShapeError."""
    return check_integer("multiplier", number, least=0, most=(1 << ADD_MULTIPLIER_BITS) - 1)


def integers_from_data(found: Mapping[str, Any]) -> dict[str, int]:
    """Return the integers that sums and products share, or raise a ShapeError."""
    return {
        "shift": check_integer("shift", found["shift"], least=0, most=MAX_ADD_SHIFT),
        "offset": check_integer("offset", found["offset"], least=-_OFFSET_RANGE, most=_OFFSET_RANGE - 1),
        "zero": _check_nine_bits("zero", found["zero"]),
        "differences": check_integer("differences", found["differences"], least=0, most=_VALUE_PAIRS),
    }


@dataclass(frozen=True, kw_only=True)
class QuantizedSum(Combination):
    """A sum of two quantized tensors, with ``addition``'s integers."""

    left: Quantization
    right: Quantization
    out: Quantization
    low: int
    high: int
    addition: Addition
    order: Order = "left"

    @property
    def differences(self) -> int:
        return self.addition.differences

    def integers(self) -> dict[str, Any]:
        """Return the arguments of :func:`accel.core.requantize.add`."""
        found = self.addition
        common = self.common_integers(found.shift, found.offset, found.zero)
        return {"multipliers": found.multipliers, **common}

    def integer_values(self, left: Array, right: Array) -> Array:
        return add(left, right, **self.integers())

    def float_table(self) -> Array:
        return float_add(self.left, self.right, self.out, self.low, self.high, self.order)

    def to_data(self) -> dict[str, Any]:
        return as_dict(self)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> QuantizedSum:
        common = combination_from_data(data)
        found = {"zero": common["out"].zero} | dict(data["addition"])
        a, b = map(check_multiplier, found["multipliers"])
        return cls(**common, addition=Addition(multipliers=(a, b), **integers_from_data(found)))


class Added(FloatPairFunction, frozen=True):
    """The sum of two quantized values in floating point: :func:`float_add`."""

    NAME: ClassVar[str] = "added"
    RESULT: ClassVar[str] = "sum"

    how: QuantizedSum

    def to_data(self) -> dict[str, Any]:
        return self.how.to_data()

    @classmethod
    def from_data(cls, data: Mapping[str, Any], parts: tuple[Expr, ...]) -> Added:
        left, right = parts
        return cls(left, right, QuantizedSum.from_data(data))


class IntegerAdded(IntegerPairFunction, frozen=True):
    """The store unit's sum of a requantized value and a residual: :func:`accel.core.requantize.add`."""

    NAME: ClassVar[str] = "add"
    COMPUTE: ClassVar[Callable[..., Array]] = staticmethod(add)

    multipliers: tuple[int, int]
    shift: int
    offset: int
    zeros: tuple[int, int]
    zero: int
    low: int
    high: int


class Parameter(Function, frozen=True):
    """A channel's bias (column 0) or scale (column 1) in the store unit's parameters.

    Attributes:
        bias: int32, clipped to ``bounds``, then added to ``offset``.
        words: scales, see :func:`scale_words`.
    """

    NAME: ClassVar[str] = "parameter"

    bias: Expr
    channel: Expr
    column: Expr
    bounds: tuple[int, int]
    offset: int
    words: tuple[int, ...]

    def parts(self) -> tuple[Expr, ...]:
        return self.bias, self.channel, self.column

    def rewritten(self, change: Callable[[Expr], Expr]) -> Parameter:
        return replace(self, bias=change(self.bias), channel=change(self.channel), column=change(self.column))

    def values(self, *parts: Array) -> Array:
        bias, channel, column = parts
        words = np.array(self.words, dtype=np.int64)
        chosen = words[channel] if len(words) > 1 else words[0]
        return np.where(column == 0, bias.astype(np.int64).clip(*self.bounds) + self.offset, chosen)
