"""Proofs about a requantization lane: rounding, shifts and bounds.

A solver cannot multiply 24 by 24 bits. So arbitrary values replace the products, and everything before and
after them is compared with the definition.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Mux, Signal, Value, ValueLike

from accel.core.requantize import MAX_ADD_SHIFT, MULTIPLIER_BITS
from accel.hw.datapath.gemm import ACC_BITS
from accel.hw.datapath.requantize import RequantizeLane
from accel.hw.formal.claims import Claims, Proof

_FURTHEST = MULTIPLIER_BITS + 2
"""A shift right by this amount makes any number of that width smaller than one half."""
_BEYOND = 1 << 10
"""A value above all bounds."""


def _signal(claims: Claims, name: str, value: Value) -> Signal:
    signal = Signal(value.shape(), name=f"defined_{name}")
    claims.defined(signal, value)
    return signal


def nearest(claims: Claims, name: str, value: Value, shift: Value) -> Value:
    """Return ``value / 2**shift`` rounded half to even, as in IEEE 754. ``shift`` is not negative."""
    floor = _signal(claims, f"{name}_floor", value >> shift)
    left = _signal(claims, f"{name}_left", (value - (floor << shift))[: len(value)])
    whole = _signal(claims, f"{name}_whole", (Const(1, len(value) + 1) << shift)[: len(value) + 1])
    twice = left << 1
    return floor + Mux(twice > whole, 1, Mux(twice == whole, floor[0], 0))


def _parts(value: Value, distance: int) -> Value:
    """Return the integer part of ``value / 2**distance``, the half bit, and whether any lower bit is set."""
    wide = Cat(Const(0, 1), value)
    return Cat(
        wide[:distance].any(), wide[distance:] if not value.shape().signed else wide.as_signed() >> distance
    )


def _to_nearest(parts: Value) -> Value:
    whole = parts[2:].as_signed() if parts.shape().signed else parts[2:]
    half, more = parts[1], parts[0]
    return whole + Mux(half, Mux(more, 1, whole[0]), 0)


def _bounded(value: Value, bounds: Any) -> Value:
    low = Mux(value < bounds.low, bounds.low, value)
    return Mux(low > bounds.high, bounds.high, low)


def before_product() -> Claims:
    """Claim the 24 leading bits of a sum with its bias."""
    lane = RequantizeLane(0)
    claims = Claims(lane)
    total = _signal(claims, "total", (lane.acc + lane.bias)[:ACC_BITS].as_signed())
    size = _signal(claims, "size", abs(total))
    given = claims.inside.signal("significand")
    nothing = total == 0
    claims.claim("the significand fits the multiplier", given < 1 << MULTIPLIER_BITS)
    claims.claim("the significand begins with a one", nothing | given[MULTIPLIER_BITS - 1])
    for length in range(1, ACC_BITS + 1):
        here = (size >= 1 << (length - 1)) & (size < 1 << length)
        if length <= MULTIPLIER_BITS:
            exact = size << (MULTIPLIER_BITS - length)
        else:
            rounded = nearest(claims, f"of_{length}", size, Const(length - MULTIPLIER_BITS))
            exact = Mux(rounded == 1 << MULTIPLIER_BITS, 1 << (MULTIPLIER_BITS - 1), rounded)
        claims.claim(f"rounded to float32, {length} bits", ~here | (given == exact))
    return claims


def of_product() -> Claims:
    """Claim the 24 leading bits and the shift of any product of two significands."""
    lane = RequantizeLane(0)
    claims = Claims(lane)
    product = claims.cut("product")
    claims.assume(product >= 1 << (2 * MULTIPLIER_BITS - 2))
    total = _signal(claims, "total", (lane.acc + lane.bias)[:ACC_BITS].as_signed())
    size = _signal(claims, "size", abs(total))
    length: Value = Const(0)
    for bits in range(1, ACC_BITS + 1):
        carries: ValueLike = 0
        if bits > MULTIPLIER_BITS:
            rounded = nearest(claims, f"of_{bits}", size, Const(bits - MULTIPLIER_BITS))
            carries = rounded == 1 << MULTIPLIER_BITS
        length = Mux(size >= 1 << (bits - 1), bits + carries, length)
    top = product[-1]
    halves = nearest(claims, "long", product, Const(MULTIPLIER_BITS))
    wholes = nearest(claims, "short", product, Const(MULTIPLIER_BITS - 1))
    single = Mux(total == 0, 0, Mux(top, halves, wholes))
    shift = claims.inside.signal("shift")
    claims.claim("rounded to float32", claims.inside.signal("single") == single)
    claims.claim("the shift follows from the exponents", shift == lane.exponent + 1 - length - top)
    return claims


def of_single() -> Claims:
    """Claim integer part, half bit and sticky bit of any 24 leading bits shifted by any amount."""
    lane = RequantizeLane(0)
    claims = Claims(lane)
    single, shift = claims.cut("single"), claims.cut("shift")
    shifted = claims.inside.signal("shifted")
    claims.claim(
        "beyond is set for values that are too large",
        claims.inside.signal("beyond") == ((shift < 0) & (single != 0)),
    )
    for distance in range(_FURTHEST + 1):
        here = shift == distance if distance < _FURTHEST else shift >= distance
        claims.claim(f"shifted by {distance}", ~here | (shifted == _parts(single, distance)))
    return claims


def of_total() -> Claims:
    """Claim the same for any sum of two products and an offset."""
    lane = RequantizeLane(0)
    claims = Claims(lane)
    total = claims.cut("total")
    quotient = claims.inside.signal("quotient")
    for distance in range(MAX_ADD_SHIFT + 1):
        here = lane.addition.shift == distance
        claims.claim(f"shifted by {distance}", ~here | (quotient == _parts(total, distance).as_signed()))
    return claims


def of_parts() -> Claims:
    """Claim the result for any integer part, half bit and sticky bit."""
    lane = RequantizeLane(0)
    claims = Claims(lane)
    negative = (lane.acc + lane.bias)[:ACC_BITS].as_signed() < 0
    shifted, beyond, quotient = claims.cut("shifted"), claims.cut("beyond"), claims.cut("quotient")
    size = Mux(beyond, _BEYOND, _to_nearest(shifted))
    one = Mux(negative, -size, size) + lane.range.zero
    both = _to_nearest(quotient) + lane.addition.range.zero
    claims.claim("requantized", lane.adds | (lane.result == _bounded(one, lane.range)))
    claims.claim("added", ~lane.adds | (lane.result == _bounded(both, lane.addition.range)))
    return claims


PROOFS = (
    Proof(
        name="lane: sum",
        statement="a sum and its bias become float32's significand, rounded half to even",
        build=before_product,
    ),
    Proof(
        name="lane: leading bits",
        statement="any product is rounded to float32's significand, half to even, and its exponent is right",
        build=of_product,
    ),
    Proof(
        name="lane: shift",
        statement="a shift by any amount yields integer part, half bit and sticky bit",
        build=of_single,
    ),
    Proof(
        name="lane: shift of the sum",
        statement="a shift by any amount yields integer part, half bit and sticky bit",
        build=of_total,
    ),
    Proof(
        name="lane: result",
        statement="the result is rounded half to even, with sign and zero point, within the bounds",
        build=of_parts,
    ),
)
