"""A requantization lane compared with the definition of its arithmetic."""

from typing import Any

import numpy as np
import pytest

from accel.core.requantize import MAX_ADD_SHIFT, add, multiply, requantize
from accel.hw.datapath.requantize import STEPS, RequantizeLane
from tests.hw.bench import drive, run
from tests.thorough import also


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
@pytest.mark.parametrize(("adds", "multiplies"), [(False, False), (True, False), (False, True), (True, True)])
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
