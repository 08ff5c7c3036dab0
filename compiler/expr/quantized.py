"""Quantized tensors in expressions: what requantization and addition are, in floating point and in integers.

Networks say what they mean in floating point: :class:`Requantized` and :class:`Added` are the formulas of
ONNX Runtime, evaluated as such. What the machine's store unit computes are :class:`IntegerRequantized` and
:class:`IntegerAdded`. The compiler replaces the first two by the latter where these give the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import numpy.typing as npt

from accel.base.arguments import check_flag, check_integer
from accel.base.errors import ShapeError
from accel.base.fma import fma
from accel.compiler.expr.scalar import BYTES, Dtype, Expr, Function
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

Array = npt.NDArray[Any]

_OFFSETS = 1 << (ADD_OFFSET_BITS - 1)
_RESULTS = 1 << (RESULT_BITS - 1)
_PAIRS = 256**2
"""Of values of two quantized tensors."""


def _nine_bits(name: str, value: object) -> int:
    """A zero point or a bound of a result, as the store unit has them."""
    return check_integer(name, value, least=-_RESULTS, most=_RESULTS - 1)


def bounds_of(dtype: str) -> tuple[int, int]:
    """The least and the greatest value of a quantized tensor's type.

    Raises:
        ShapeError: it is neither int8 nor uint8.
    """
    if dtype not in BYTES:
        raise ShapeError(f"the type of a quantized tensor is {dtype!r}; it must be 'int8' or 'uint8'")
    return (0, 255) if dtype == "uint8" else (-128, 127)


@dataclass(frozen=True, kw_only=True)
class Quantization:
    """How a tensor's values stand for numbers: ``(value - zero) * scale``.

    Attributes:
        scale: float32, positive.
        zero: the zero point, within the type's range.
        unsigned: uint8, else int8.

    Raises:
        ShapeError: a scale that is not positive, or a zero point out of range.
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
        """The least value of the type."""
        return bounds_of(self.dtype)[0]

    @property
    def high(self) -> int:
        """The largest value of the type."""
        return bounds_of(self.dtype)[1]

    def __str__(self) -> str:
        """What a value stands for, as ``(int8-4)*0.05``."""
        centered = f"({self.dtype}{-self.zero:+d})" if self.zero else self.dtype
        return f"{centered}*{self.scale:.7g}"

    def values(self) -> npt.NDArray[np.int64]:
        """All values of the type, in order."""
        return np.arange(self.low, self.high + 1, dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class Addition:
    """Integers that add two quantized tensors, see :func:`accel.core.requantize.add`.

    Attributes:
        multipliers: of the operands, 31 bits, unsigned.
        shift: 0 to 41.
        offset: 41 bits, signed.
        zero: what is added behind the shift. The sum's zero point, or the number before it where the offset
            makes up for that: a half is rounded to even before it is added.
        differences: pairs of values, of 65,536, whose sum differs from that in floating point.
    """

    multipliers: tuple[int, int]
    shift: int
    offset: int
    zero: int
    differences: int


Order = Literal["left", "right", "apart"]
ORDERS: tuple[Order, ...] = get_args(Order)
"""How floating point adds: with two multiply-adds, of which that of the left operand or that of the right one
comes last, as QLinearAdd; or apart, as Dequantize, Add and Quantize, with a rounding after each operation."""


def check_order(order: object) -> Order:
    """How a sum is taken.

    Raises:
        ShapeError: it is none of :data:`ORDERS`.
    """
    for one in ORDERS:
        if order == one:
            return one
    raise ShapeError(f"the order is {order!r}; it must be one of {', '.join(ORDERS)}")


def float_add(
    left: Quantization,
    right: Quantization,
    out: Quantization,
    low: int,
    high: int,
    order: Order = "left",
) -> npt.NDArray[np.int64]:
    """All sums as floating point has them: ``[left value, right value]``, clamped to ``low`` and ``high``."""
    if order == "right":
        return float_add(right, left, out, low, high).T
    if order == "apart":
        return _added_apart(left, right, out, low, high)
    one, other = (np.float32(q.scale) / np.float32(out.scale) for q in (left, right))
    zeros = fma(one, np.float32(left.zero), np.float32(other * np.float32(right.zero)))
    constant = np.float32(out.zero) - zeros
    inner = fma(right.values().astype(np.float32), other, constant)
    outer = fma(left.values().astype(np.float32)[:, None], one, inner[None, :])
    with np.errstate(invalid="ignore"):
        return np.clip(np.rint(outer.astype(np.float64)), low, high).astype(np.int64)


def _added_apart(
    left: Quantization, right: Quantization, out: Quantization, low: int, high: int
) -> npt.NDArray[np.int64]:
    """The sums of the numbers that values stand for."""
    one, other = ((q.values() - q.zero).astype(np.float32) * np.float32(q.scale) for q in (left, right))
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.rint((one[:, None] + other[None, :]) / np.float32(out.scale)).astype(np.float64)
    scaled = np.where(np.isnan(scaled), -np.inf, scaled)
    return np.clip(scaled + out.zero, low, high).astype(np.int64)


# --- requantization ----------------------------------------------------------------------------------


def scale_words(scales: tuple[float, ...]) -> tuple[int, ...]:
    """Scales as the store unit has them, see :attr:`accel.core.requantize.Scale.word`, as int32."""
    words = [Scale.of(value).word for value in scales]
    return tuple(word - ((word >> 31) << 32) for word in words)


@dataclass(frozen=True)
class Requantized(Function):
    """``clamp(rne(float32(value) * scale) + zero, low, high)`` in float32, see
    :func:`accel.core.requantize.float_requantize`.

    Attributes:
        value: int32.
        channel: index of the scale; that of a single one does not matter.
        scales: float32, positive; one for each channel, or one for all.
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
        """All but its parts, as plain data."""
        return {"scales": list(self.scales), "zero": self.zero, "low": self.low, "high": self.high}

    @classmethod
    def from_data(cls, data: Mapping[str, Any], parts: tuple[Expr, ...]) -> Requantized:
        """The inverse of :meth:`to_data`.

        Raises:
            ShapeError: a value of the wrong type, or out of range.
        """
        value, channel = parts
        scales = check_scales(data["scales"])
        zero, low, high = (_nine_bits(name, data[name]) for name in ("zero", "low", "high"))
        return cls(value, channel, scales, zero, low, high)


def check_scales(scales: object, name: str = "the scale") -> tuple[float, ...]:
    """Scales as float32 values, from a number, a sequence or an array; ``name`` is told in errors.

    Raises:
        ShapeError: none, one that is not positive, something else than numbers, or several dimensions.
    """
    try:
        given = np.atleast_1d(np.asarray(scales))
    except ValueError:  # sequences of several lengths
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


@dataclass(frozen=True)
class IntegerRequantized(Function):
    """What the store unit makes of an accumulator, in integers: :func:`accel.core.requantize.requantize`.

    Attributes:
        value: int32.
        bias, scale: int32, of the value's channel; the scale as :func:`scale_words` has it.
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


# --- addition ----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class QuantizedSum:
    """A sum of two quantized tensors: what it means in floating point, and the integers that compute it.

    Attributes:
        left, right, out: the operands and the sum.
        low, high: bounds of the sum.
        addition: the integers. They count only where they are known to differ from floating point.
        order: how floating point adds.
    """

    left: Quantization
    right: Quantization
    out: Quantization
    low: int
    high: int
    addition: Addition
    order: Order = "left"

    def values(self, left: Array, right: Array) -> Array:
        """Sums of values, elementwise."""
        if self.addition.differences:
            return add(left, right, **self.integers())
        table = float_add(self.left, self.right, self.out, self.low, self.high, self.order)
        one = np.clip(left, self.left.low, self.left.high) - self.left.low
        other = np.clip(right, self.right.low, self.right.high) - self.right.low
        sums: Array = table[one, other]
        return sums

    def integers(self) -> dict[str, Any]:
        """The arguments of :func:`accel.core.requantize.add`."""
        return {
            "multipliers": self.addition.multipliers,
            "shift": self.addition.shift,
            "offset": self.addition.offset,
            "zeros": (self.left.zero, self.right.zero),
            "zero": self.addition.zero,
            "low": self.low,
            "high": self.high,
        }

    def to_data(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> QuantizedSum:
        """The inverse of :meth:`to_data`.

        Raises:
            ShapeError, TypeError: a value of the wrong type, or out of range.
        """
        left, right, out = (_quantization(data[name]) for name in ("left", "right", "out"))
        found = dict(data["addition"])
        a, b = (
            check_integer("multiplier", number, least=0, most=(1 << ADD_MULTIPLIER_BITS) - 1)
            for number in found["multipliers"]
        )
        addition = Addition(
            multipliers=(a, b),
            shift=check_integer("shift", found["shift"], least=0, most=MAX_ADD_SHIFT),
            offset=check_integer("offset", found["offset"], least=-_OFFSETS, most=_OFFSETS - 1),
            zero=_nine_bits("zero", found.get("zero", out.zero)),
            differences=check_integer("differences", found["differences"], least=0, most=_PAIRS),
        )
        low = check_integer("low", data["low"], least=out.low, most=out.high)
        high = check_integer("high", data["high"], least=low, most=out.high)
        order = check_order(data.get("order", ORDERS[0]))
        return cls(left=left, right=right, out=out, low=low, high=high, addition=addition, order=order)


def _quantization(data: Mapping[str, Any]) -> Quantization:
    """The inverse of :func:`dataclasses.asdict`.

    Raises:
        ShapeError, TypeError: a value of the wrong type, or out of range.
    """
    found = Quantization(**data)
    check_flag("unsigned", found.unsigned)
    return replace(found, zero=check_integer("zero", found.zero, least=found.low, most=found.high))


@dataclass(frozen=True)
class Added(Function):
    """The sum of two quantized values, as floating point has it: :func:`float_add`."""

    NAME: ClassVar[str] = "added"

    left: Expr
    right: Expr
    how: QuantizedSum

    def parts(self) -> tuple[Expr, ...]:
        return self.left, self.right

    def rewritten(self, change: Callable[[Expr], Expr]) -> Added:
        return replace(self, left=change(self.left), right=change(self.right))

    def values(self, *parts: Array) -> Array:
        return self.how.values(*parts)

    def settings(self) -> dict[str, Any]:
        named = (("left", self.how.left), ("right", self.how.right), ("sum", self.how.out))
        return {name: str(one) for name, one in named}

    def to_data(self) -> dict[str, Any]:
        """All but its parts, as plain data."""
        return self.how.to_data()

    @classmethod
    def from_data(cls, data: Mapping[str, Any], parts: tuple[Expr, ...]) -> Added:
        """The inverse of :meth:`to_data`.

        Raises:
            ShapeError, TypeError: a value of the wrong type, or out of range.
        """
        left, right = parts
        return cls(left, right, QuantizedSum.from_data(data))


@dataclass(frozen=True)
class IntegerAdded(Function):
    """What the store unit makes of a requantized value and a residual: :func:`accel.core.requantize.add`."""

    NAME: ClassVar[str] = "add"

    left: Expr
    right: Expr
    multipliers: tuple[int, int]
    shift: int
    offset: int
    zeros: tuple[int, int]
    zero: int
    low: int
    high: int

    def parts(self) -> tuple[Expr, ...]:
        return self.left, self.right

    def rewritten(self, change: Callable[[Expr], Expr]) -> IntegerAdded:
        return replace(self, left=change(self.left), right=change(self.right))

    def values(self, *parts: Array) -> Array:
        return add(*parts, **self.settings())

    def settings(self) -> dict[str, Any]:
        names = ("multipliers", "shift", "offset", "zeros", "zero", "low", "high")
        return {name: getattr(self, name) for name in names}


FUNCTIONS: dict[str, type[Requantized] | type[Added]] = {cls.NAME: cls for cls in (Requantized, Added)}
"""Those that programs hold, by name."""


# --- parameters --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Parameter(Function):
    """A channel's bias or scale as the store unit's parameters hold them: column 0 or 1.

    Attributes:
        bias: int32.
        bounds: what the bias is clipped to.
        offset: what is added then.
        words: scales as :func:`scale_words` has them; one for each channel, or one for all.
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
