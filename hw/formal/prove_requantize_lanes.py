"""Proofs that a requantization lane computes its declaration.

A solver cannot multiply 24 by 24 bits. So arbitrary values replace the products, and the logic before and
after them is compared with the declaration's parts in ``accel.core.requantize``. Likewise, rounding is proven
for any shifted number.
"""

from collections.abc import Iterator, Mapping
from functools import partial

from amaranth.hdl import Const, Mux, Signal, Value

from accel.core.lane_expressions import Lane, absolute, lane_input, wrapped
from accel.core.requantize import (
    ADD_MULTIPLIER_BITS,
    BOUNDS,
    EXPONENT_BITS,
    MAX_ADD_SHIFT,
    MULTIPLIER_BITS,
    RESULT_BITS,
    divided,
    leading_bits,
    product_of_differences,
    rounded_product,
    scaled,
    scaled_product,
    sum_of_products,
)
from accel.hw.datapath.gemm import ACC_BITS
from accel.hw.datapath.lane_values import Replaced, lane_value, nearest_even, quotient_parts
from accel.hw.datapath.requantize import RequantizeLane
from accel.hw.datapath.word_layouts import log2
from accel.hw.formal.claims import Claims, Proof

_BYTE_BITS = 8
_WORD_BITS = 64
"""Bits of a table's words, as on a bus of 64 bits."""
_PRODUCT = lane_input("product", 2 * MULTIPLIER_BITS, signed=False)
_FURTHEST = MULTIPLIER_BITS + 2
"""This shift right makes any number of that width smaller than one half."""
_BOUNDS = ("zero", "low", "high")
_TOTAL = wrapped(lane_input("acc") + lane_input("bias"), ACC_BITS)


def _declared(
    claims: Claims, name: str, node: Lane, inputs: Mapping[str, Value], replaced: Replaced | None = None
) -> Signal:
    value = lane_value(node, inputs, replaced)
    signal = Signal(value.shape(), name=f"declared_{name}")
    claims.defined(signal, value)
    return signal


def _sums(lane: RequantizeLane) -> dict[str, Value]:
    return {"acc": lane.acc, "bias": lane.bias, "exponent": lane.exponent}


def _rounded(parts: Value) -> Replaced:
    """Let ``parts`` stand for any quotient that a declaration rounds."""
    return {"round_even": lambda node, lane, value, shift: nearest_even(parts)}


def _lengths(claims: Claims, lane: RequantizeLane) -> Iterator[tuple[int, Value, Replaced]]:
    """Yield every length of a sum in bits, whether the sum has it, and its leading zeros."""
    size = _declared(claims, "size", absolute(_TOTAL), _sums(lane))
    for length in range(ACC_BITS + 1):
        here = (size >= 1 << length >> 1) & (size < 1 << length)
        zeros = Const(ACC_BITS - length)
        yield length, here, {"leading_zeros": lambda node, lane, value, zeros=zeros: zeros}


def before_product() -> Claims:
    lane = RequantizeLane(0)
    claims = Claims(lane)
    significand, _ = leading_bits(_TOTAL)
    given = claims.inside.signal("significand")
    for length, here, zeros in _lengths(claims, lane):
        wanted = _declared(claims, f"significand_{length}", significand, _sums(lane), zeros)
        claims.claim(f"rounded to float32, {length} bits", ~here | (given == wanted))
        if length:
            begins = given[MULTIPLIER_BITS - 1]
            claims.claim(f"the significand begins with a one, {length} bits", ~here | begins)
    return claims


def of_product() -> Claims:
    """Claim the 24 leading bits and the shift, for any product of significands or zero."""
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
    for bits, here, zeros in _lengths(claims, lane):
        wanted = _declared(claims, f"shift_{bits}", shift, inputs, zeros)
        right = nothing | ~here | (found["shift"] == wanted)
        claims.claim(f"the shift follows from the exponents, {bits} bits", right)
    return claims


def of_single() -> Claims:
    lane = RequantizeLane(0)
    claims = Claims(lane)
    single, shift = claims.cut("single"), claims.cut("shift")
    shifted = claims.inside.signal("shifted")
    beyond = claims.inside.signal("beyond")
    claims.claim("beyond is set for values that are too large", beyond == ((shift < 0) & (single != 0)))
    for distance in range(_FURTHEST + 1):
        here = shift == distance if distance < _FURTHEST else shift >= distance
        claims.claim(f"shifted by {distance}", ~here | (shifted == quotient_parts(single, Const(distance))))
    return claims


def of_factors() -> Claims:
    """Claim the factors of an addition's multipliers."""
    lane = RequantizeLane(0, multiplies=True)
    claims = Claims(lane)
    claims.cut("shifted")
    claims.cut("beyond")
    found = {name: claims.inside.signal(name) for name in ("left_value", "left_factor", "right_factor")}
    left, right = (lane_input(side, RESULT_BITS) for side in ("left", "right"))
    add = lane.addition
    inputs: dict[str, Value] = {"left": found["left_value"], "right": lane.residual}
    inputs |= {name: getattr(add, name) for name in ("left_zero", "right_zero")}
    product = _declared(claims, "product", product_of_differences(left, right), inputs)
    is_product, is_sum = lane.multiplies, ~lane.multiplies
    claims.claim("the product of the differences", is_sum | (found["left_factor"] == product))
    claims.claim("nothing is added to a product", is_sum | (found["right_factor"] == 0))
    for side in ("left", "right"):
        node = lane_input(side, RESULT_BITS) - lane_input(f"{side}_zero", RESULT_BITS)
        wanted = _declared(claims, f"{side}_difference", node, inputs)
        claims.claim(f"the difference of a sum, {side}", is_product | (found[f"{side}_factor"] == wanted))
        scaled_by = getattr(add, f"{side}_multiplier")
        whole = claims.inside.signal(side) == found[f"{side}_factor"] * scaled_by
        claims.claim(f"the whole product with the multiplier, {side}", whole)
    return claims


def of_products() -> Claims:
    """Claim the sum that is divided, for any products."""
    lane = RequantizeLane(0, multiplies=True)
    claims = Claims(lane)
    left, right = claims.cut("left"), claims.cut("right")
    total = claims.inside.signal("total")
    claims.assume(~lane.multiplies | (right == 0))
    # The declaration's products are those of the lane: any two numbers.
    inputs = {name: Const(0) for name in ("left_multiplier", "right_multiplier", "left_zero", "right_zero")}
    inputs |= {"left": Const(0), "right": Const(0), "product": Const(0), "offset": lane.addition.offset}
    product = scaled_product(lane_input("product", 2 * RESULT_BITS))
    is_left: Replaced = {"multiply": lambda node, lane, *factors: left}
    wanted = _declared(claims, "product", product, inputs, is_left)
    claims.claim("a product and the offset", ~lane.multiplies | (total == wanted))
    both = iter((left, right))
    either: Replaced = {"multiply": lambda node, lane, *factors: next(both)}
    node = sum_of_products(lane_input("left", RESULT_BITS), lane_input("right", RESULT_BITS))
    wanted = _declared(claims, "sum", node, inputs, either)
    fits = [part == part[: ADD_MULTIPLIER_BITS + RESULT_BITS + 1].as_signed() for part in (left, right)]
    claims.claim("two products and the offset", ~(fits[0] & fits[1]) | (total == wanted))
    return claims


def of_total(multiplies: bool) -> Claims:
    lane = RequantizeLane(0, multiplies=multiplies)
    claims = Claims(lane)
    total, quotient = claims.cut("total"), claims.inside.signal("quotient")
    for distance in range(MAX_ADD_SHIFT + 1):
        here = lane.addition.shift == distance
        claims.claim(f"shifted by {distance}", ~here | (quotient == quotient_parts(total, Const(distance))))
    return claims


def of_parts(multiplies: bool) -> Claims:
    lane = RequantizeLane(0, multiplies=multiplies)
    claims = Claims(lane)
    claims.claim("requantized", lane.adds | (lane.result == _requantized_value(claims, lane)))
    quotient = claims.cut("quotient")
    inputs: dict[str, Value] = {name: getattr(lane.addition.range, name) for name in _BOUNDS}
    inputs |= {"shift": Const(0), "total": Const(0)}
    node = divided(lane_input("total", len(quotient)), BOUNDS)
    wanted = _declared(claims, "added", node, inputs, _rounded(quotient))
    claims.claim("added", ~lane.adds | (lane.result == wanted))
    return claims


def _requantized_value(claims: Claims, lane: RequantizeLane) -> Signal:
    """Return the declared value for any integer part, half and sticky bit."""
    shifted, beyond = claims.cut("shifted"), claims.cut("beyond")
    single = lane_input("single", MULTIPLIER_BITS + 1, signed=False)
    node = scaled(single, lane_input("beyond", 1), lane_input("negative", 1, signed=False), BOUNDS)
    # A shift of -1 makes a single of 1 saturate. The quotient comes from the parts.
    inputs: dict[str, Value] = {name: getattr(lane.range, name) for name in _BOUNDS}
    inputs |= {"beyond": -beyond.as_signed(), "single": Const(1)}
    inputs["negative"] = _declared(claims, "negative", _TOTAL < 0, _sums(lane))
    return _declared(claims, "requantized", node, inputs, _rounded(shifted))


def of_look_up() -> Claims:
    """Claim the byte that addresses a table, and the result one cycle later, for any word."""
    lane = RequantizeLane(0, multiplies=True, word_bits=_WORD_BITS)
    claims = Claims(lane)
    claims.assume(lane.advance)
    wanted = _requantized_value(claims, lane)
    claims.claim("the requantized byte addresses the table", lane.byte == wanted[:_BYTE_BITS])
    value = claims.before(wanted)
    entry = lane.word.word_select(value[: log2(_WORD_BITS // _BYTE_BITS)], _BYTE_BITS)
    looked_up = Mux(lane.table_unsigned, entry, entry.as_signed())
    result = Mux(lane.looks_up, looked_up, value)
    claims.claim("the entry replaces the value", ~claims.begun | lane.adds | (lane.result == result))
    claims.claim("the entry is a factor", ~claims.begun | (claims.inside.signal("left_value") == result))
    for name in ("residual", "multiplies"):
        held = claims.inside.signal(f"clamped_{name}")
        waits = held == claims.before(getattr(lane, name))
        claims.claim(f"{name} waits for the entry", ~claims.begun | waits)
    return claims


def _of_second_operand(name: str, *, multiplies: bool) -> tuple[Proof, Proof]:
    """Return the proofs that follow a residual's sum or product."""
    return (
        Proof(
            name=f"{name}: shift of the sum",
            statement="a shift by any amount yields integer part, half bit and sticky bit",
            build=partial(of_total, multiplies),
        ),
        Proof(
            name=f"{name}: result",
            statement="the result is rounded half to even, with sign and zero point, within the bounds",
            build=partial(of_parts, multiplies),
        ),
    )


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
    *_of_second_operand("lane", multiplies=False),
    Proof(
        name="product lane: factors",
        statement="a product takes the differences' product as its factor, a sum each difference",
        build=of_factors,
    ),
    Proof(
        name="product lane: sum",
        statement="the products and the offset are added without loss",
        build=of_products,
    ),
    *_of_second_operand("product lane", multiplies=True),
    Proof(
        name="lane: table",
        statement="the byte of a result addresses the table, and its entry is the result one cycle later",
        build=of_look_up,
    ),
)
