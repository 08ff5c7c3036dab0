"""Requantization: int32 sums to int8 or uint8 by a float32 scale, with integers only, bit for bit.

``y = clamp(rne(float32(x) * scale) + zero, low, high)``, where ``x = acc + bias`` wraps at 32 bits and
``rne`` rounds to the nearest integer, half to even. ONNX Runtime, LiteRT's reference kernels and Gemmini
compute the same. The steps need no floating-point unit:

1. Round ``|x|`` to its 24 leading bits, half to even: the conversion to float32.
2. Multiply by the multiplier and round to 24 leading bits, half to even: the product in float32.
3. Shift right by the remaining exponent, half to even. Restore the sign, add the zero point, clamp.

For example, x = 1001 and scale = 0.125 = 2**23 * 2**-26 give the product 125.125, which rounds to 125.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from accel.base.errors import ConfigError
from accel.core.lane_evaluation import function_of
from accel.core.lane_expressions import (
    Lane,
    absolute,
    bit_slice,
    lane_input,
    leading_zeros,
    maximum,
    minimum,
    rounded_shift,
    saturated,
    select,
    wrapped,
)

MULTIPLIER_BITS = 24
"""The significand of a float32 with its leading bit."""
EXPONENT_BITS = 8
RESULT_BITS = 9
"""Zero points, bounds and results: signed, for int8 and uint8."""
ADD_MULTIPLIER_BITS = 31
"""Unsigned."""
ADD_OFFSET_BITS = 41
"""The width of a 10-bit difference times a multiplier, signed."""
MAX_ADD_SHIFT = 41
"""Sums of two products and an offset have at most 43 bits."""
ADD_SHIFT_BITS = MAX_ADD_SHIFT.bit_length()
SATURATED = 1 << (RESULT_BITS + 1)
"""A magnitude above all bounds, whatever the zero point."""
_SUM_BITS = 32
_EXPONENT_OF_ONE = 127 + MULTIPLIER_BITS - 1
"""A scale's exponent is this number minus the exponent field of the float32."""


class Scale(Struct, frozen=True, kw_only=True):
    """A scale ``multiplier * 2**-exponent``, with 24 and 8 bits, unsigned. The multiplier's leading bit is
    set."""

    multiplier: int
    exponent: int

    @classmethod
    def of(cls, value: float | np.float32) -> "Scale":
        """Convert a positive float32.

        Scales too small to bring any int32 to 1/2, and scales from 2**24 on, which exceed all bounds, become
        the nearest representable scale, with the same results.
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
    wide = words.astype(np.int64)
    multipliers = wide & ((1 << MULTIPLIER_BITS) - 1)
    return multipliers, wide >> MULTIPLIER_BITS & ((1 << EXPONENT_BITS) - 1)


class Bounds(Struct, frozen=True):
    """The zero point and bounds of a result. If ``low > high`` the result is ``high``."""

    zero: Lane
    low: Lane
    high: Lane

    def of(self, value: Lane) -> Lane:
        return minimum(maximum(value + self.zero, self.low), self.high)


def leading_bits(total: Lane) -> tuple[Lane, Lane]:
    """Return a magnitude's 24 leading bits, rounded as float32 rounds it, and its length in bits.

    For example, 1001 = 0b1111101001 has 10 bits, and the leading bits 1001 * 2**14.
    """
    size = absolute(total)
    zeros = leading_zeros(size, _SUM_BITS)
    aligned = bit_slice(size << minimum(zeros, _SUM_BITS - 1), 0, _SUM_BITS)
    rounded = rounded_shift(aligned, _SUM_BITS - MULTIPLIER_BITS, "even")
    carried = rounded >> MULTIPLIER_BITS
    return bit_slice(rounded >> carried, 0, MULTIPLIER_BITS), _SUM_BITS - zeros + carried


def rounded_product(product: Lane) -> tuple[Lane, Lane]:
    """Return the 24 leading bits of a product of two 24-bit numbers, and its highest bit."""
    top = product >> 2 * MULTIPLIER_BITS - 1
    return rounded_shift(product, top + (MULTIPLIER_BITS - 1), "even"), top


def scaled(single: Lane, shift: Lane, negative: Lane, bounds: Bounds) -> Lane:
    """Return ``single / 2**shift`` with sign and zero point, within bounds. A negative shift saturates."""
    size = rounded_shift(single, saturated(shift, 0, MULTIPLIER_BITS + 2), "even")
    size = select((shift < 0) & (single > 0), SATURATED, size)
    return bounds.of(select(negative, -size, size))


def requantized(sums: Lane, bias: Lane, multiplier: Lane, exponent: Lane, bounds: Bounds) -> Lane:
    total = wrapped(sums + bias, _SUM_BITS)
    significand, length = leading_bits(total)
    single, top = rounded_product(significand * multiplier)
    return scaled(single, exponent + 1 - length - top, total < 0, bounds)


def sum_of_products(left: Lane, right: Lane) -> Lane:
    """Return the sum of STORE.ADD before its shift."""
    zeros = [lane_input(f"{side}_zero", RESULT_BITS) for side in ("left", "right")]
    factors = [
        lane_input(f"{side}_multiplier", ADD_MULTIPLIER_BITS, signed=False) for side in ("left", "right")
    ]
    offset = lane_input("offset", ADD_OFFSET_BITS)
    return (left - zeros[0]) * factors[0] + (right - zeros[1]) * factors[1] + offset


def product_of_differences(left: Lane, right: Lane) -> Lane:
    """Return the product of two values less their zero points. Each difference wraps at 9 bits."""
    differences = [
        wrapped(value - lane_input(f"{side}_zero", RESULT_BITS), RESULT_BITS)
        for side, value in (("left", left), ("right", right))
    ]
    return differences[0] * differences[1]


def scaled_product(product: Lane) -> Lane:
    """Return the product of STORE.MUL before its shift."""
    multiplier = lane_input("left_multiplier", ADD_MULTIPLIER_BITS, signed=False)
    return product * multiplier + lane_input("offset", ADD_OFFSET_BITS)


def divided(total: Lane, bounds: Bounds) -> Lane:
    """Return a total divided by ``2**shift``, within bounds."""
    shift = minimum(lane_input("shift", ADD_SHIFT_BITS, signed=False), MAX_ADD_SHIFT)
    return bounds.of(rounded_shift(total, shift, "even"))


BOUNDS = Bounds(*(lane_input(name, RESULT_BITS) for name in ("zero", "low", "high")))
REQUANTIZED = requantized(
    lane_input("acc"),
    lane_input("bias"),
    lane_input("multiplier", MULTIPLIER_BITS, signed=False),
    lane_input("exponent", EXPONENT_BITS, signed=False),
    BOUNDS,
)
"""STORE.REQ in a lane."""
ADDED = divided(sum_of_products(lane_input("left", RESULT_BITS), lane_input("right", RESULT_BITS)), BOUNDS)
"""STORE.ADD of the requantized value and the residual."""
MULTIPLIED = divided(
    scaled_product(product_of_differences(lane_input("left", RESULT_BITS), lane_input("right", RESULT_BITS))),
    BOUNDS,
)
"""STORE.MUL of the same two."""

_RANGE = ("zero", "low", "high")
_requantize = function_of(REQUANTIZED, ("acc", "bias", "multiplier", "exponent", *_RANGE))
_ADD_INPUTS = ("left", "right", "left_multiplier", "right_multiplier", "left_zero", "right_zero")
_add = function_of(ADDED, (*_ADD_INPUTS, "offset", "shift", *_RANGE))
_MUL_INPUTS = ("left", "right", "left_multiplier", "left_zero", "right_zero")
_multiply = function_of(MULTIPLIED, (*_MUL_INPUTS, "offset", "shift", *_RANGE))


def requantize(
    sums: npt.ArrayLike,
    bias: npt.ArrayLike,
    multiplier: npt.ArrayLike,
    exponent: npt.ArrayLike,
    *,
    zero: int,
    low: int,
    high: int,
) -> npt.NDArray[np.int32]:
    """Requantize int32 sums elementwise. The arguments broadcast.

    Args:
        multiplier, exponent: of the scale. Each leading zero of the multiplier costs the product a bit.
    """
    return _requantize(sums, bias, multiplier, exponent, zero, low, high)


def float_requantize(
    sums: npt.ArrayLike, bias: npt.ArrayLike, scale: npt.ArrayLike, *, zero: int, low: int, high: int
) -> npt.NDArray[Any]:
    """Requantize in floating point, as a reference."""
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
) -> npt.NDArray[np.int32]:
    """Add two int8 or uint8 tensors elementwise, as STORE.ADD does.

    Args:
        multipliers, zeros: of left and right.
        shift: 0 to 41.
    """
    return _add(left, right, *multipliers, *zeros, offset, shift, zero, low, high)


def multiply(
    left: npt.ArrayLike,
    right: npt.ArrayLike,
    *,
    multiplier: int,
    shift: int,
    offset: int,
    zeros: tuple[int, int],
    zero: int,
    low: int,
    high: int,
) -> npt.NDArray[np.int32]:
    """Multiply two int8 or uint8 tensors elementwise, as STORE.MUL does. See :func:`add`."""
    return _multiply(left, right, multiplier, *zeros, offset, shift, zero, low, high)
