"""Proofs that a requantization lane computes its declaration: rounding, shifts and bounds.

A solver cannot multiply 24 by 24 bits. So arbitrary values replace the products, and the logic before and
after them is compared with the parts of the declaration in :mod:`accel.core.requantize`. Each shift is a
claim of its own, which the solver finds faster than one for all.
"""

from collections.abc import Mapping

from amaranth.hdl import Signal, Value

from accel.core.lane_evaluation import with_constant
from accel.core.lane_expressions import Lane, lane_input, wrapped
from accel.core.requantize import (
    BOUNDS,
    EXPONENT_BITS,
    MAX_ADD_SHIFT,
    MULTIPLIER_BITS,
    divided,
    leading_bits,
    rounded_product,
    scaled,
)
from accel.hw.datapath.gemm import ACC_BITS
from accel.hw.datapath.lane_values import lane_value
from accel.hw.datapath.requantize import RequantizeLane
from accel.hw.formal.claims import Claims, Proof

_PRODUCT = lane_input("product", 2 * MULTIPLIER_BITS, signed=False)
_FURTHEST = MULTIPLIER_BITS + 2
"""A shift right by this amount makes any number of that width smaller than one half."""
_TOTAL = wrapped(lane_input("acc") + lane_input("bias"), ACC_BITS)


def _declared(claims: Claims, name: str, node: Lane, inputs: Mapping[str, Value]) -> Signal:
    """Return the value of a part of the declaration."""
    value = lane_value(node, inputs)
    signal = Signal(value.shape(), name=f"declared_{name}")
    claims.defined(signal, value)
    return signal


def _sums(lane: RequantizeLane) -> dict[str, Value]:
    return {"acc": lane.acc, "bias": lane.bias, "exponent": lane.exponent}


def before_product() -> Claims:
    """Claim the 24 leading bits of a sum with its bias."""
    lane = RequantizeLane(0)
    claims = Claims(lane)
    significand, _ = leading_bits(_TOTAL)
    wanted = _declared(claims, "significand", significand, _sums(lane))
    nothing = _declared(claims, "total", _TOTAL, _sums(lane)) == 0
    given = claims.inside.signal("significand")
    claims.claim("the significand is that of float32", given == wanted)
    claims.claim("it begins with a one", nothing | given[MULTIPLIER_BITS - 1])
    return claims


def of_product() -> Claims:
    """Claim the 24 leading bits and the shift of any product of two significands, or of zero."""
    lane = RequantizeLane(0)
    claims = Claims(lane)
    product = claims.cut("product")
    inputs = _sums(lane) | {"product": product}
    nothing = _declared(claims, "total", _TOTAL, _sums(lane)) == 0
    claims.assume((product == 0) == nothing)
    claims.assume((product == 0) | (product >= 1 << (2 * MULTIPLIER_BITS - 2)))
    _, length = leading_bits(_TOTAL)
    single, top = rounded_product(_PRODUCT)
    shift = lane_input("exponent", EXPONENT_BITS, signed=False) + 1 - length - top
    found = {name: claims.inside.signal(name) for name in ("single", "shift")}
    claims.claim("rounded to float32", found["single"] == _declared(claims, "single", single, inputs))
    wanted = _declared(claims, "shift", shift, inputs)
    claims.claim("the shift follows from the exponents", nothing | (found["shift"] == wanted))
    return claims


def of_single() -> Claims:
    """Claim the result for any 24 leading bits and any shift."""
    lane = RequantizeLane(0)
    claims = Claims(lane)
    single, shift = claims.cut("single"), claims.cut("shift")
    inputs = {name: getattr(lane.range, name) for name in ("zero", "low", "high")}
    negative = lane_input("negative", 1, signed=False)
    node = scaled(
        lane_input("single", len(single), signed=False), lane_input("shift", len(shift)), negative, BOUNDS
    )
    inputs |= {"single": single, "shift": shift}
    inputs["negative"] = _declared(claims, "negative", _TOTAL < 0, _sums(lane))
    for distance in range(-1, _FURTHEST + 1):
        here = shift == distance
        here = shift < 0 if distance < 0 else shift >= distance if distance == _FURTHEST else here
        wanted = _declared(claims, f"result_{distance}", with_constant(node, "shift", distance), inputs)
        claims.claim(f"requantized with shift {distance}", ~here | lane.adds | (lane.result == wanted))
    return claims


def of_total() -> Claims:
    """Claim the result for any sum of two products and an offset, and any shift."""
    lane = RequantizeLane(0)
    claims = Claims(lane)
    total = claims.cut("total")
    inputs = {name: getattr(lane.addition.range, name) for name in ("zero", "low", "high")}
    inputs |= {"total": total, "shift": lane.addition.shift}
    node = divided(lane_input("total", len(total)), BOUNDS)
    for distance in range(MAX_ADD_SHIFT + 1):
        here = lane.addition.shift == distance
        wanted = _declared(claims, f"result_{distance}", with_constant(node, "shift", distance), inputs)
        claims.claim(f"added with shift {distance}", ~here | ~lane.adds | (lane.result == wanted))
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
        name="lane: requantize",
        statement="any significand with any shift is rounded half to even, with sign and zero point, within "
        "the bounds",
        build=of_single,
    ),
    Proof(
        name="lane: add",
        statement="any sum of two products is divided and rounded half to even, within the bounds",
        build=of_total,
    ),
)
