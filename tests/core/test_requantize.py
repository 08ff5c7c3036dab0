"""Integer requantization compared with floating point: scales of all sizes, thresholds, 32-bit sums."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.base.errors import ConfigError
from accel.core.lane_evaluation import evaluate
from accel.core.lane_expressions import lane_input, rounded_shift
from accel.core.requantize import RESULT_BITS, Scale, add, float_requantize, requantize
from tests.expect import refused

_INT32 = st.integers(-(2**31), 2**31 - 1)
_FLOAT32 = st.integers(1, 0x7F7F_FFFF).map(lambda bits: float(np.uint32(bits).view(np.float32)))
_LOW, _HIGH = -(1 << (RESULT_BITS - 1)), (1 << (RESULT_BITS - 1)) - 1


def differing(sums: Any, bias: Any, scales: npt.NDArray[np.float32], zero: int = 0) -> int:
    """Number of results that differ from floating point."""
    known = [Scale.of(scale) for scale in scales]
    found = requantize(
        sums,
        bias,
        [one.multiplier for one in known],
        [one.exponent for one in known],
        zero=zero,
        low=_LOW,
        high=_HIGH,
    )
    return int((found != float_requantize(sums, bias, scales, zero=zero, low=_LOW, high=_HIGH)).sum())


def some_scales(rng: np.random.Generator, count: int) -> npt.NDArray[np.float32]:
    """Random scales, log-uniform over a far wider range than networks have."""
    return np.exp(rng.uniform(np.log(1e-12), np.log(10), count)).astype(np.float32)


@pytest.mark.parametrize("seed", range(4))
def test_around_every_threshold_of_a_thousand_scales(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scales = some_scales(rng, 1000)
    halves = np.arange(_LOW - 2, _HIGH + 3)[:, None] + 0.5
    thresholds = np.rint(np.clip(halves / scales.astype(np.float64), -(2**31) + 2, 2**31 - 3))
    for near in range(-2, 3):
        assert differing((thresholds + near).astype(np.int32), np.int32(0), scales) == 0


@pytest.mark.parametrize("seed", range(4))
def test_sums_and_biases_of_the_whole_range(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scales = some_scales(rng, 200)
    sums = rng.integers(-(2**31), 2**31, (2000, 200)).astype(np.int32)
    near = np.where(rng.random(200) < 0.5, 2**31 - 1, -(2**31)) - rng.integers(-9, 9, 200)
    for bias in (near, rng.integers(-(2**31), 2**31, 200)):
        wrapped = bias.astype(np.int64).astype(np.int32)
        assert differing(sums, wrapped, scales, zero=int(rng.integers(-128, 256))) == 0


@given(acc=_INT32, bias=_INT32, scale=_FLOAT32, zero=st.integers(-128, 255))
def test_any_sum_by_any_positive_scale(acc: int, bias: int, scale: float, zero: int) -> None:
    assert differing(np.int32([acc]), np.int32([bias]), np.float32([scale]), zero) == 0


def test_half_is_rounded_to_even() -> None:
    half = Scale.of(0.5)
    sums = np.arange(-5, 6)
    found = requantize(sums, 0, half.multiplier, half.exponent, zero=3, low=-9, high=9)
    assert found.tolist() == [1, 1, 1, 2, 3, 3, 3, 4, 5, 5, 5]


def test_bounds_that_cross_give_the_upper_one() -> None:
    one = Scale.of(1)
    assert (
        requantize([-9, 0, 9], 0, one.multiplier, one.exponent, zero=0, low=5, high=-5).tolist() == [-5] * 3
    )


def test_a_scale_is_its_number() -> None:
    for value in (1.0, 0.1, 2.0**-40 * 1.5, 3.0):
        assert Scale.of(np.float32(value)).value == np.float32(value)


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_invalid_scales_are_refused(value: float) -> None:
    with refused(ConfigError, f"a scale is {value!r}; it must be a positive finite number"):
        Scale.of(value)


def test_a_scale_that_is_no_float32() -> None:
    with refused(ConfigError, "a scale is 0.1; it must be a float32, as 0.10000000149011612"):
        Scale.of(0.1)


def test_shifts_round_to_the_nearest() -> None:
    values = np.arange(-20, 21)
    for shift in range(5):
        expected = [round(value / 2**shift) for value in values.tolist()]
        for amount in (lane_input("n", 3, signed=False), shift):
            node = rounded_shift(lane_input("x"), amount, "even")
            assert evaluate(node, {"x": values, "n": np.asarray(shift)}).tolist() == expected


def test_an_addition_is_its_formula() -> None:
    found = add(
        [100, -128],
        [-7, 127],
        multipliers=(3, 5),
        shift=2,
        offset=1,
        zeros=(1, -2),
        zero=4,
        low=-128,
        high=127,
    )
    exact = [(99 * 3 - 5 * 5 + 1) / 4, (-129 * 3 + 129 * 5 + 1) / 4]
    assert found.tolist() == [min(127, round(value) + 4) for value in exact]
