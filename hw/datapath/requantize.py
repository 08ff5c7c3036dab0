"""One lane of the store path, as in ``accel.core.requantize``."""

from types import SimpleNamespace
from typing import Any

from amaranth.hdl import C, Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from accel.core.requantize import (
    ADD_MULTIPLIER_BITS,
    ADD_OFFSET_BITS,
    ADD_SHIFT_BITS,
    EXPONENT_BITS,
    MULTIPLIER_BITS,
    RESULT_BITS,
    SATURATED,
)
from accel.hw.datapath.gemm import ACC_BITS
from accel.hw.datapath.retimed_pipeline import Pipeline, divide
from accel.hw.datapath.word_layouts import log2

STEPS = (8, 3, 3, 4, 6, 4, 8, 5, 6, 9, 8, 5, 3, 10, 4, 8, 10)
"""Approximate delay of each step on an ECP5 in nanoseconds, from memories to bus register. Registers can lie
between steps."""
_BEFORE_LOOK_UP = STEPS[:12]
"""The steps up to the clamp, which a table may follow."""
_LOOK_UP_DELAY = 9
"""Delay of a table's block RAM with the choice of a byte."""
_MULTIPLIER_STEP = 13
"""The step that multiplies by an addition's factors."""
_DIFFERENCES_DELAY = 6
"""Delay of the step before it, which multiplies two differences with STORE.MUL."""
_BYTE_BITS = 8
_LENGTH_BITS = ACC_BITS.bit_length()
_SHIFT_BITS = EXPONENT_BITS + 2
_PRODUCT_BITS = 2 * MULTIPLIER_BITS
_HALF = MULTIPLIER_BITS // 2


def lane_steps(*, multiplies: bool) -> tuple[int, ...]:
    if not multiplies:
        return STEPS
    return *STEPS[:_MULTIPLIER_STEP], _DIFFERENCES_DELAY, *STEPS[_MULTIPLIER_STEP:]


class RangeLayout(data.StructLayout):
    def __init__(self) -> None:
        super().__init__({name: signed(RESULT_BITS) for name in ("zero", "low", "high")})


class AddLayout(data.StructLayout):
    def __init__(self) -> None:
        super().__init__(
            {
                "left_multiplier": ADD_MULTIPLIER_BITS,
                "right_multiplier": ADD_MULTIPLIER_BITS,
                "shift": ADD_SHIFT_BITS,
                "offset": signed(ADD_OFFSET_BITS),
                "left_zero": signed(RESULT_BITS),
                "right_zero": signed(RESULT_BITS),
                "range": RangeLayout(),
            }
        )


def _after_look_up(*, multiplies: bool) -> tuple[int, ...]:
    return _LOOK_UP_DELAY, *lane_steps(multiplies=multiplies)[len(_BEFORE_LOOK_UP) :]


def stages_before_look_up(stages: int, *, multiplies: bool = False) -> int:
    return divide(stages, _BEFORE_LOOK_UP, _after_look_up(multiplies=multiplies))


class RequantizeLane(wiring.Component):
    """Computes ``result`` from ``acc``, ``bias``, ``multiplier``, ``exponent`` and ``residual``, ``stages``
    cycles with ``advance`` later.

    ``range`` and ``addition`` are constant while values are in the lane. ``adds``, in the cycle of the
    result, adds the residual, or multiplies by it if ``multiplies`` (with STORE.MUL) came together with
    ``acc``.

    With ``word_bits``, the value passes through a table, and the result is ``TABLE_STAGES`` later. ``byte``
    is the requantized value, ``stages_before_look_up`` cycles after its operands. In the next cycle
    ``looks_up`` shows that a table replaces it, ``word`` is the table's word with its entry, and
    ``table_unsigned`` the type of entries.
    """

    def __init__(self, stages: int, *, multiplies: bool = False, word_bits: int = 0) -> None:
        self._stages = stages
        self._multiplies = multiplies
        self._word_bits = word_bits
        table = {
            "byte": Out(_BYTE_BITS),
            "looks_up": In(1),
            "word": In(word_bits),
            "table_unsigned": In(1),
        }
        super().__init__(
            {
                "advance": In(1),
                "range": In(RangeLayout()),
                "addition": In(AddLayout()),
                "adds": In(1),
                "acc": In(signed(ACC_BITS)),
                "bias": In(signed(ACC_BITS)),
                "multiplier": In(MULTIPLIER_BITS),
                "exponent": In(EXPONENT_BITS),
                "residual": In(signed(RESULT_BITS)),
                **({"multiplies": In(1)} if multiplies else {}),
                "result": Out(signed(RESULT_BITS)),
                **(table if word_bits else {}),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        steps, stages = lane_steps(multiplies=self._multiplies), self._stages
        if self._word_bits:
            steps, stages = _BEFORE_LOOK_UP, stages_before_look_up(stages, multiplies=self._multiplies)
        pipe = Pipeline(m, steps=steps, stages=stages, advance=self.advance)
        scale = {"multiplier": self.multiplier, "exponent": self.exponent}
        residual = ("residual", "multiplies") if self._multiplies else ("residual",)
        carried = _of(self, *residual)

        # The sum, rounded to 24 leading bits.
        s = pipe.step(acc=self.acc, bias=self.bias, **scale, **carried)
        s = pipe.step(
            x=(s.acc + s.bias)[:ACC_BITS].as_signed(), **_of(s, "multiplier", "exponent", *residual)
        )
        s = pipe.step(
            negative=s.x[-1],
            magnitude=Mux(s.x[-1], (-s.x)[:ACC_BITS], s.x[:ACC_BITS]),
            **_of(s, "multiplier", "exponent", *residual),
        )
        place, nothing = _highest(m, s.magnitude)
        s = pipe.step(place=place, nothing=nothing, **vars(s))
        s = pipe.step(
            normal=(s.magnitude << ~s.place)[:ACC_BITS],
            length=Mux(s.nothing, 0, s.place + 1),
            **_of(s, "negative", "nothing", "multiplier", "exponent", *residual),
        )
        rounded = _round(s.normal, ACC_BITS - MULTIPLIER_BITS)
        carry = rounded[MULTIPLIER_BITS]
        s = pipe.step(
            significand=Mux(carry, 1 << (MULTIPLIER_BITS - 1), rounded[:MULTIPLIER_BITS]),
            length=s.length + carry,
            **_of(s, "negative", "nothing", "multiplier", "exponent", *residual),
        )

        # The product with the multiplier, rounded to 24 leading bits.
        low, high = s.multiplier[:_HALF], s.multiplier[_HALF:]
        s = pipe.step(
            low_low=s.significand[:_HALF] * low,
            low_high=s.significand[:_HALF] * high,
            high_low=s.significand[_HALF:] * low,
            high_high=s.significand[_HALF:] * high,
            **_of(s, "negative", "nothing", "length", "exponent", *residual),
        )
        s = pipe.step(
            product=(Cat(s.low_low, s.high_high) + ((s.low_high + s.high_low) << _HALF))[:_PRODUCT_BITS],
            **_of(s, "negative", "nothing", "length", "exponent", *residual),
        )
        top = s.product[-1]
        single = _round(Mux(top, s.product, s.product << 1)[:_PRODUCT_BITS], MULTIPLIER_BITS)
        s = pipe.step(
            single=Mux(s.nothing, 0, single),
            shift=(s.exponent + 1 - s.length - top).as_signed()[:_SHIFT_BITS].as_signed(),
            **_of(s, "negative", *residual),
        )

        # Shift, sign, clamp.
        s = pipe.step(
            shifted=_shift_sticky(m, s.single, s.shift, MULTIPLIER_BITS + 2),
            beyond=(s.shift < 0) & (s.single != 0),
            **_of(s, "negative", *residual),
        )
        magnitude = Mux(s.beyond, SATURATED, _round_sticky(s.shifted))
        s = pipe.step(
            value=Mux(s.negative, -magnitude, magnitude) + self.range.zero,
            **_of(s, *residual),
        )
        clamped = _clamp(m, s.value, self.range)
        if self._word_bits:
            after = _after_look_up(multiplies=self._multiplies)
            pipe = Pipeline(m, steps=after, stages=self._stages - stages, advance=self.advance)
            s = pipe.step(**self._look_up(m, clamped, _of(s, *residual)))
        else:
            s = pipe.step(value=clamped, **_of(s, *residual))

        # Addition of the residual, or multiplication by it.
        add = self.addition
        s = self._factors(pipe, s)
        s = pipe.step(left=s.left * add.left_multiplier, right=s.right * add.right_multiplier, value=s.value)
        s = pipe.step(total=s.left + s.right + add.offset, value=s.value)
        s = pipe.step(quotient=_shift_sticky(m, s.total, add.shift, None), value=s.value)
        total = _round_sticky(s.quotient) + add.range.zero
        m.d.comb += self.result.eq(Mux(self.adds, _clamp(m, total, add.range), s.value))
        return m

    def _factors(self, pipe: Pipeline, s: Any) -> Any:
        """Return the factors of an addition's multipliers. STORE.MUL has the product of the differences (9
        bits each) on the left, and nothing on the right."""
        add = self.addition
        left, right = s.value - add.left_zero, s.residual - add.right_zero
        if not self._multiplies:
            return pipe.step(left=left, right=right, value=s.value)
        s = pipe.step(
            left_difference=left, right_difference=right, left_value=s.value, **_of(s, "multiplies")
        )
        left, right = s.left_difference, s.right_difference
        product = left[:RESULT_BITS].as_signed() * right[:RESULT_BITS].as_signed()
        s = pipe.step(
            left_factor=Mux(s.multiplies, product, left),
            right_factor=Mux(s.multiplies, 0, right),
            value=s.left_value,
        )
        return SimpleNamespace(left=s.left_factor, right=s.right_factor, value=s.value)

    def _look_up(self, m: Module, clamped: Value, carried: dict[str, Value]) -> dict[str, Value]:
        """Return the value and its carried signals in the cycle in which the table's word arrives."""
        value = Signal(signed(RESULT_BITS), name="clamped", reset_less=True)
        held = {
            name: Signal.like(one, name=f"clamped_{name}", reset_less=True) for name, one in carried.items()
        }
        with m.If(self.advance):
            m.d.sync += [value.eq(clamped), *(held[name].eq(one) for name, one in carried.items())]
        position = value[: log2(self._word_bits // _BYTE_BITS)]
        entry = self.word.word_select(position, _BYTE_BITS)
        found = Cat(entry, entry[-1] & ~self.table_unsigned).as_signed()
        looked_up = Signal(signed(RESULT_BITS))
        m.d.comb += [self.byte.eq(clamped), looked_up.eq(Mux(self.looks_up, found, value))]
        return {"value": looked_up, **held}


def _of(values: Any, *names: str) -> dict[str, Value]:
    return {name: getattr(values, name) for name in names}


def _highest(m: Module, value: Value) -> tuple[Value, Value]:
    """Return the position of the highest set bit, and whether none is set. The width is a power of two."""
    if len(value) == 1:
        return Const(0, 0), ~value
    half = len(value) // 2
    (low, _), (high, none) = (_highest(m, part) for part in (value[:half], value[half:]))
    place, nothing = Signal(log2(len(value))), Signal()
    m.d.comb += [place.eq(Cat(Mux(none, low, high), ~none)), nothing.eq(~value.any())]
    return place, nothing


def _round(value: Value, dropped: int) -> Value:
    """Drop low bits, rounding half to even, in one more bit."""
    down = value[dropped:]
    up = value[dropped - 1] & (value[: dropped - 1].any() | down[0])
    return down + up


def _shift_sticky(m: Module, value: Value, shift: Value, limit: int | None) -> Value:
    """Return ``value >> shift`` with two more low bits, as ``quotient_parts`` does. Amounts beyond ``limit``
    and negative ones count as ``limit``, unless it is None."""
    signed_value = value.shape().signed
    if limit is not None:
        amount = Signal(range(limit + 1))
        m.d.comb += amount.eq(Mux((shift < 0) | (shift > limit), limit, shift))
    else:
        amount = shift
    wide = _held(m, Cat(C(0, 2), value), signed_value)
    sticky: Value = C(0, 1)
    for stage in reversed(range(len(amount))):
        distance = 1 << stage
        sticky = sticky | (wide[:distance].any() & amount[stage])
        wide = _held(m, Mux(amount[stage], wide >> distance, wide), signed_value)
    exact = Cat(wide[0] | sticky, wide[1:])
    return exact.as_signed() if signed_value else exact


def _held(m: Module, value: Value, is_signed: bool) -> Signal:
    """Name a value, so that two readers do not duplicate its logic."""
    signal = Signal(signed(len(value)) if is_signed else len(value))
    m.d.comb += signal.eq(value)
    return signal


def _round_sticky(value: Value) -> Value:
    down = value[2:].as_signed() if value.shape().signed else value[2:]
    return down + (value[1] & (value[0] | value[2]))


def _clamp(m: Module, value: Value, bounds: Any) -> Value:
    given = _held(m, value, True)
    least = Mux(bounds.low > bounds.high, bounds.high, bounds.low)
    bounded = Mux(given > bounds.high, bounds.high, Mux(given < bounds.low, least, given))
    return bounded[:RESULT_BITS].as_signed()
