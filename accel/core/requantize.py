"""Requantization: int32 sums to int8 or uint8 by a float32 scale, in integers alone, bit for bit.

``y = clamp(rne(float32(x) * scale) + zero, low, high)`` with ``x = acc + bias`` wrapping at 32 bits; ``rne``
rounds to the nearest integer, half to even. That is what ONNX Runtime, LiteRT's reference kernels and Gemmini
compute, and no floating point unit is needed for it. With the scale as ``multiplier * 2**-exponent``:

1. ``|x|`` rounded to its 24 leading bits, half to even: the conversion to float32.
2. Times the multiplier, rounded to 24 leading bits, half to even: the product in float32.
3. Shifted right by what is left, half to even; the sign restored, zero point added, clamped.

Simulator and hardware take every width from here.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from accel.base.errors import ConfigError

MULTIPLIER_BITS = 24
"""Of a scale's multiplier: a float32's significand, leading bit included."""
EXPONENT_BITS = 8
"""Of a scale's exponent, unsigned."""
RESULT_BITS = 9
"""Of zero point, bounds and result, signed, so that uint8 fits."""
ADD_MULTIPLIER_BITS = 31
"""Of an addition's multipliers, unsigned."""
ADD_OFFSET_BITS = 41
"""Of an addition's offset, signed."""
MAX_ADD_SHIFT = 41
"""Of an addition."""
ADD_SHIFT_BITS = MAX_ADD_SHIFT.bit_length()
SATURATED = 1 << (RESULT_BITS + 1)
"""A magnitude beyond all bounds, whatever the zero point."""
_EXPONENT_OF_ONE = 127 + MULTIPLIER_BITS - 1
"""What a float32's exponent field is subtracted from to give ours."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """``multiplier * 2**-exponent``, with the multiplier's leading bit set.

    Attributes:
        multiplier: 24 bits, unsigned.
        exponent: 8 bits, unsigned.
    """

    multiplier: int
    exponent: int

    @classmethod
    def of(cls, value: float | np.float32) -> "Scale":
        """A positive float32 as hardware takes it.

        Scales that bring no int32 to 1/2 give zero; with those of 2**24 and more, sums other than zero are
        beyond all bounds. Both get the nearest scale with the same results.

        Raises:
            ConfigError: it is not a positive finite number, or not exactly a float32.
        """
        single = np.float32(value)
        if not (np.isfinite(single) and single > 0):
            raise ConfigError(f"a scale is {value!r}; it must be a positive finite number")
        if float(single) != float(value):
            raise ConfigError(f"a scale is {value!r}; it must be a float32, as {float(single)!r}")
        bits = int(single.view(np.uint32))
        field, fraction = bits >> (MULTIPLIER_BITS - 1), bits & ((1 << (MULTIPLIER_BITS - 1)) - 1)
        leading = 1 << (MULTIPLIER_BITS - 1)
        exponent = _EXPONENT_OF_ONE - field
        if field == 0:
            return cls(multiplier=leading, exponent=_EXPONENT_OF_ONE)
        if exponent < 0:
            return cls(multiplier=leading, exponent=0)
        return cls(multiplier=leading | fraction, exponent=exponent)

    @property
    def word(self) -> int:
        """As an element of PAR has it: 32 bits, unsigned, the multiplier below the exponent."""
        return self.exponent << MULTIPLIER_BITS | self.multiplier

    @property
    def value(self) -> float:
        """The scale as a number."""
        return self.multiplier * 2.0**-self.exponent


def multipliers_and_exponents(
    words: npt.NDArray[np.integer[Any]],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """What scales consist of, from their words, see :attr:`Scale.word`; int32 and uint32 alike."""
    wide = words.astype(np.int64)
    multipliers = wide & ((1 << MULTIPLIER_BITS) - 1)
    return multipliers, wide >> MULTIPLIER_BITS & ((1 << EXPONENT_BITS) - 1)


def round_shift(value: npt.NDArray[np.int64], shift: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """``value / 2**shift`` rounded to the nearest, half to even; int64, elementwise.

    Args:
        value: not negative.
        shift: 0 to 62.
    """
    down = value >> shift
    rest = value - (down << shift)
    half = (np.int64(1) << shift) >> 1
    up = (rest > half) | ((rest == half) & (shift > 0) & (down & 1 == 1))
    rounded: npt.NDArray[np.int64] = down + up
    return rounded


def requantize(
    sums: npt.ArrayLike,
    bias: npt.ArrayLike,
    multiplier: npt.ArrayLike,
    exponent: npt.ArrayLike,
    *,
    zero: int,
    low: int,
    high: int,
) -> npt.NDArray[np.int64]:
    """Results of sums, elementwise; the arguments broadcast.

    Args:
        sums: int32.
        bias: int32; the addition wraps.
        multiplier, exponent: of the scale. Where the multiplier's leading bit is not set, the product is
            rounded to as many bits fewer.
        zero, low, high: zero point and bounds of the result; with ``low > high`` the result is ``high``.
    """
    total = np.asarray(sums, dtype=np.int64) + np.asarray(bias, dtype=np.int64)
    x = ((total + (1 << 31)) & ((1 << 32) - 1)) - (1 << 31)
    magnitude = np.abs(x)
    length = _bit_length(magnitude)
    wide = np.maximum(length - MULTIPLIER_BITS, 0)
    significand = round_shift(magnitude, wide)
    carried = significand >> MULTIPLIER_BITS  # 1 where rounding made one bit more
    length = length + carried
    significand = (significand << np.maximum(MULTIPLIER_BITS - length, 0)) >> carried
    product = significand * np.asarray(multiplier, dtype=np.int64)
    dropped = MULTIPLIER_BITS - 1 + (product >> (2 * MULTIPLIER_BITS - 1))
    single = round_shift(product, dropped)
    shift = np.asarray(exponent, dtype=np.int64) + MULTIPLIER_BITS - length - dropped
    rounded = round_shift(single, np.clip(shift, 0, MULTIPLIER_BITS + 2))
    rounded = np.where((shift < 0) & (single > 0), SATURATED, rounded)
    return _clamp(np.sign(x) * rounded + zero, low, high)


def _bit_length(value: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Of integers below 2**53, elementwise."""
    return np.frexp(value.astype(np.float64))[1].astype(np.int64)


def float_requantize(
    sums: npt.ArrayLike, bias: npt.ArrayLike, scale: npt.ArrayLike, *, zero: int, low: int, high: int
) -> npt.NDArray[Any]:
    """The same as floating point has it: what :func:`requantize` is held against."""
    x = np.asarray(sums, dtype=np.int32) + np.asarray(bias, dtype=np.int32)
    with np.errstate(over="ignore", under="ignore"):
        y = np.rint(x.astype(np.float32) * np.asarray(scale, dtype=np.float32)).astype(np.float64)
    return np.clip(y + zero, low, high)


def add(
    left: npt.ArrayLike,
    right: npt.ArrayLike,
    *,
    multipliers: tuple[int, int],
    shift: int,
    offset: int,
    zeros: tuple[int, int],
    zero: int,
    low: int,
    high: int,
) -> npt.NDArray[np.int64]:
    """Sums of two quantized tensors, elementwise: ``clamp(rne(((left - zeros[0]) * multipliers[0] +
    (right - zeros[1]) * multipliers[1] + offset) / 2**shift) + zero, low, high)``.

    Args:
        left, right: int8 or uint8 values.
        multipliers: unsigned.
        shift: 0 to 41.
        offset: signed.
        zeros: of the operands.
        zero, low, high: zero point and bounds of the result; with ``low > high`` the result is ``high``.
    """
    first = (np.asarray(left, dtype=np.int64) - zeros[0]) * multipliers[0]
    second = (np.asarray(right, dtype=np.int64) - zeros[1]) * multipliers[1]
    rounded = round_shift(first + second + offset, np.asarray(shift, dtype=np.int64))
    return _clamp(rounded + zero, low, high)


def _clamp(values: npt.NDArray[np.int64], low: int, high: int) -> npt.NDArray[np.int64]:
    clamped: npt.NDArray[np.int64] = np.minimum(np.maximum(values, low), high)
    return clamped
