"""A requantization lane compared with the definition of its arithmetic."""

from typing import Any

import numpy as np
import pytest

from accel.core.requantize import MAX_ADD_SHIFT, add, multiply, requantize
from accel.hw.datapath.requantize import STEPS, RequantizeLane, stages_before_look_up
from accel.hw.datapath.word_layouts import log2
from tests.hw.bench import drive, run
from tests.thorough import also, diagonal


def some_sums(rng: np.random.Generator, count: int) -> dict[str, np.ndarray[Any, Any]]:
    """Sums of all magnitudes. Most scales bring them close to the result's range."""
    bits = rng.integers(0, 33, count)
    acc = rng.integers(-(2**31), 2**31, count) >> rng.integers(0, 32, count)
    bias = np.where(
        rng.random(count) < 0.7, rng.integers(-99, 99, count), rng.integers(-(2**31), 2**31, count)
    )
    exponent = np.where(
        rng.random(count) < 0.8,
        np.clip(23 + bits - rng.integers(0, 12, count), 0, 255),
        rng.integers(0, 256, count),
    )
    multiplier = rng.integers(0, 1 << 24, count) | np.where(rng.random(count) < 0.9, 1 << 23, 0)
    halves = rng.random(count) < 0.2  # ties
    acc[halves] = 2 * rng.integers(-300, 300, halves.sum()) + 1
    bias[halves], multiplier[halves], exponent[halves] = 0, 1 << 23, 24
    residual = rng.integers(-128, 256, count)
    return {"acc": acc, "bias": bias, "multiplier": multiplier, "exponent": exponent, "residual": residual}


@pytest.mark.parametrize("stages", [also(1), also(4), 10, also(len(STEPS) + 2)])
@pytest.mark.parametrize(("adds", "multiplies"), diagonal((False, True), (False, True)))
def test_a_lane_is_the_definition(stages: int, adds: bool, multiplies: bool) -> None:
    """A lane with products mixes sums and products."""
    rng = np.random.default_rng(stages + 100 * adds)
    lane = RequantizeLane(stages, multiplies=multiplies)
    count = 200
    values = some_sums(rng, count)
    products = rng.random(count) < 0.7 if multiplies else np.zeros(count, dtype=bool)
    if multiplies:
        values["multiplies"] = products

    async def bench(context: Any) -> None:
        for _ in range(3):
            zero, low = int(rng.integers(-128, 256)), int(rng.integers(-256, 100))
            bounds = {"zero": zero, "low": low, "high": int(rng.integers(low, 256))}
            shift = int(rng.integers(0, MAX_ADD_SHIFT + 1))
            top = min(2**31, 2 ** (shift + 2))
            addition = {
                "left_multiplier": int(rng.integers(0, top)),
                "right_multiplier": int(rng.integers(0, top)),
                "shift": shift,
                "offset": int(rng.integers(-(2**40), 2**40)) >> int(rng.integers(0, 41)),
                "left_zero": int(rng.integers(-128, 256)),
                "right_zero": int(rng.integers(-128, 256)),
            }
            context.set(lane.range, bounds)
            context.set(lane.addition, addition | {"range": bounds})
            drive(context, lane, adds=int(adds))
            found, fed = [], 0
            while len(found) < count:
                moves = int(rng.random() < 0.9)
                drive(context, lane, advance=moves)
                if fed < count:
                    drive(context, lane, **{name: int(value[fed]) for name, value in values.items()})
                if moves and fed >= stages:
                    await context.delay(1e-8)
                    found.append(context.get(lane.result))
                fed += moves
                await context.tick()
            expected = requantize(
                values["acc"], values["bias"], values["multiplier"], values["exponent"], **bounds
            )
            if adds:
                others = bounds | {"shift": shift, "offset": addition["offset"]}
                others["zeros"] = addition["left_zero"], addition["right_zero"]
                left, right = addition["left_multiplier"], addition["right_multiplier"]
                summed = add(expected, values["residual"], multipliers=(left, right), **others)
                product = multiply(expected, values["residual"], multiplier=left, **others)
                expected = np.where(products, product, summed)
            np.testing.assert_array_equal(found, expected)

    run(lane, bench)


@pytest.mark.parametrize("stages", [also(0), also(1), also(4), 10, also(len(STEPS) + 2)])
@pytest.mark.parametrize("word_bits", [64, also(512)])
def test_a_table_replaces_the_requantized_value(stages: int, word_bits: int) -> None:
    """The word with the entry comes one cycle with ``advance`` after its byte. The value waits for it, and a
    residual is added to the entry."""
    rng = np.random.default_rng(stages + word_bits)
    lane = RequantizeLane(stages, word_bits=word_bits)
    before = stages_before_look_up(stages)
    count, shift = 200, log2(word_bits // 8)
    values = some_sums(rng, count)
    table = rng.integers(0, 256, 256, dtype=np.uint8)
    words = [
        int.from_bytes(table[n << shift : n + 1 << shift].tobytes(), "little") for n in range(256 >> shift)
    ]
    looked_up = rng.random(count) < 0.7
    bounds = {"zero": 3, "low": -128, "high": 255}
    sums = {"shift": 2, "offset": 1, "zeros": (5, -7), "multipliers": (3, 2)} | bounds
    factors = {"left_multiplier": 3, "right_multiplier": 2, "left_zero": 5, "right_zero": -7}

    async def bench(context: Any) -> None:
        for unsigned, adds in ((False, False), (True, False), (True, True)):
            context.set(lane.range, bounds)
            context.set(lane.addition, factors | {"shift": 2, "offset": 1, "range": bounds})
            drive(context, lane, adds=int(adds), table_unsigned=int(unsigned))
            found, fed, word = [], 0, 0
            while len(found) < count:
                moves = int(rng.random() < 0.9)
                drive(context, lane, advance=moves, word=word)
                if fed < count:
                    drive(context, lane, **{name: int(value[fed]) for name, value in values.items()})
                if 0 <= fed - before - 1 < count:
                    drive(context, lane, looks_up=int(looked_up[fed - before - 1]))
                await context.delay(1e-8)
                if moves:
                    word = words[context.get(lane.byte) >> shift]
                    if fed > stages:
                        found.append(context.get(lane.result))
                fed += moves
                await context.tick()
            requantized = requantize(
                values["acc"], values["bias"], values["multiplier"], values["exponent"], **bounds
            )
            entries = table[requantized & 255].view(np.uint8 if unsigned else np.int8)
            expected = np.where(looked_up, entries.astype(np.int32), requantized)
            np.testing.assert_array_equal(
                found, add(expected, values["residual"], **sums) if adds else expected
            )

    run(lane, bench)
