"""Requantization: int32 sums to int8 or uint8 by a float32 scale, with integers only, bit for bit.

``y = clamp(rne(float32(x) * scale) + zero, low, high)``, where ``x = acc + bias`` wraps at 32 bits and
``rne`` rounds to the nearest integer, half to even. ONNX Runtime, LiteRT's reference kernels and Gemmini
compute the same. The steps need no floating-point unit:

1. Round ``|x|`` to its 24 leading bits, half to even: the conversion to float32.
2. Multiply by the multiplier and round to 24 leading bits, half to even: the product in float32.
3. Shift right by the remaining exponent, half to even. Restore the sign, add the zero point, clamp.

For example, x = 1001 and scale = 0.125 = 2**23 * 2**-26 give the product 125.125, which rounds to 125.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from accel.base.errors import ConfigError

MULTIPLIER_BITS = 24
"""Bits of a scale's multiplier: the significand of a float32 with its leading bit."""
EXPONENT_BITS = 8
"""Bits of a scale's exponent, unsigned."""
RESULT_BITS = 9
"""Bits of zero points, bounds and results: signed, and wide enough for int8 and uint8."""
ADD_MULTIPLIER_BITS = 31
"""Bits of the multipliers of an addition, unsigned."""
ADD_OFFSET_BITS = 41
"""Bits of the offset of an addition, signed: the width of a 10-bit difference times a multiplier."""
MAX_ADD_SHIFT = 41
"""Largest shift of an addition, in bits. Sums of two products and an offset have at most 43 bits."""
ADD_SHIFT_BITS = MAX_ADD_SHIFT.bit_length()
SATURATED = 1 << (RESULT_BITS + 1)
"""A magnitude that exceeds all bounds even after any zero point is added."""
_EXPONENT_OF_ONE = 127 + MULTIPLIER_BITS - 1
"""The exponent of a :class:`Scale` is this number minus the exponent field of the float32."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """A scale ``multiplier * 2**-exponent``. The leading bit of the multiplier is set.

    Attributes:
        multiplier: 24 bits, unsigned.
        exponent: 8 bits, unsigned.
    """

    multiplier: int
    exponent: int

    @classmethod
    def of(cls, value: float | np.float32) -> "Scale":
        """Convert a positive float32.

        Scales too small to bring any int32 to 1/2 give zero, and scales from 2**24 on exceed all bounds. Both
        become the nearest scale that can be represented, with the same results.
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
        """The 32 bits in PAR, the exponent above the multiplier."""
        return self.exponent << MULTIPLIER_BITS | self.multiplier

    @property
    def value(self) -> float:
        return self.multiplier * 2.0**-self.exponent


def multipliers_and_exponents(
    words: npt.NDArray[np.integer[Any]],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Split int32 or uint32 words into multipliers and exponents."""
    wide = words.astype(np.int64)
    multipliers = wide & ((1 << MULTIPLIER_BITS) - 1)
    return multipliers, wide >> MULTIPLIER_BITS & ((1 << EXPONENT_BITS) - 1)


def round_shift(value: npt.NDArray[np.int64], shift: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return ``value / 2**shift``, rounded half to even: 5 / 2 gives 2.

    Args:
        value: int64, at least 0.
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
    """Requantize sums elementwise. The arguments broadcast.

    Args:
        sums: int32.
        bias: int32; the addition wraps.
        multiplier, exponent: parts of the scale. Each leading zero of the multiplier costs the product a bit.
        low, high: bounds of the result. If ``low > high`` the result is ``high``.
    """
    total = np.asarray(sums, dtype=np.int64) + np.asarray(bias, dtype=np.int64)
    x = ((total + (1 << 31)) & ((1 << 32) - 1)) - (1 << 31)
    magnitude = np.abs(x)
    length = _bit_length(magnitude)
    wide = np.maximum(length - MULTIPLIER_BITS, 0)
    significand = round_shift(magnitude, wide)
    carried = significand >> MULTIPLIER_BITS  # 1 where rounding carried into a 25th bit
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
    return np.frexp(value.astype(np.float64))[1].astype(np.int64)


def float_requantize(
    sums: npt.ArrayLike, bias: npt.ArrayLike, scale: npt.ArrayLike, *, zero: int, low: int, high: int
) -> npt.NDArray[Any]:
    """Requantize with floating-point arithmetic, as a reference."""
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
    """Add two quantized tensors elementwise.

    The result is ``clamp(rne(((left - zeros[0]) * multipliers[0] + (right - zeros[1]) * multipliers[1] +
    offset) / 2**shift) + zero, low, high)``.

    Args:
        left, right: int8 or uint8 values.
        shift: 0 to 41.
    """
    first = (np.asarray(left, dtype=np.int64) - zeros[0]) * multipliers[0]
    second = (np.asarray(right, dtype=np.int64) - zeros[1]) * multipliers[1]
    rounded = round_shift(first + second + offset, np.asarray(shift, dtype=np.int64))
    return _clamp(rounded + zero, low, high)


def _clamp(values: npt.NDArray[np.int64], low: int, high: int) -> npt.NDArray[np.int64]:
    clamped: npt.NDArray[np.int64] = np.minimum(np.maximum(values, low), high)
    return clamped
