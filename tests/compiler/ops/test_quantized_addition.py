"""Integers that add quantized tensors, compared with exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

from accel.base.errors import ShapeError
from accel.base.records import replace
from accel.compiler.expr.quantization import ORDERS, Order
from accel.compiler.ops import quantized_addition
from accel.compiler.ops.quantized_addition import Addition, Quantization, find_addition, float_add
from accel.core.requantize import add
from accel.graph.elementwise_operators import Add
from accel.graph.graph_tensor import Quantization as Pair
from accel.graph.graph_tensor import Tensor
from tests.expect import refused


def to_float32(value: Fraction) -> np.float32:
    """Return the float32 nearest to a number."""
    near = np.float32(float(value))
    around = (near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf)))

    def distance(one: np.float32) -> tuple[Fraction, int]:
        return abs(Fraction(float(one)) - value), int(one.view(np.uint32)) & 1

    return min(around, key=distance)


def fma(a: np.float32, b: float, c: np.float32) -> np.float32:
    return to_float32(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)))


def some_quantization(rng: np.random.Generator) -> Quantization:
    unsigned = bool(rng.random() < 0.5)
    scale = float(np.float32(np.exp(rng.uniform(np.log(1e-3), 0))))
    return Quantization(
        scale=scale, zero=int(rng.integers(0, 256)) - (0 if unsigned else 128), unsigned=unsigned
    )


@pytest.mark.parametrize("seed", range(3))
def test_floating_point_rounds_once_a_step(seed: int) -> None:
    rng = np.random.default_rng(seed)
    left, right, out = (some_quantization(rng) for _ in range(3))
    sums = float_add(left, right, out, out.low, out.high)
    one, other = (
        np.float32(left.scale) / np.float32(out.scale),
        np.float32(right.scale) / np.float32(out.scale),
    )
    constant = np.float32(out.zero) - fma(one, left.zero, other * np.float32(right.zero))
    for a, b in rng.integers(0, 256, (200, 2)).tolist():
        value = fma(one, a + left.low, fma(other, b + right.low, constant))
        assert sums[a, b] == min(max(round(float(value)), out.low), out.high)


@pytest.mark.parametrize("seed", range(12))
def test_found_integers_have_the_reported_differences(seed: int) -> None:
    rng = np.random.default_rng(seed)
    left, right, out = (some_quantization(rng) for _ in range(3))
    found = find_addition(left, right, out, low=out.low + 3, high=out.high - 9)
    sums = add(
        left.values()[:, None],
        right.values()[None, :],
        multipliers=found.multipliers,
        shift=found.shift,
        offset=found.offset,
        zeros=(left.zero, right.zero),
        zero=out.zero,
        low=out.low + 3,
        high=out.high - 9,
    )
    wrong = int((sums != float_add(left, right, out, out.low + 3, out.high - 9)).sum())
    assert wrong == found.differences == 0


@pytest.mark.parametrize("order", ["left", "right", "apart"])
def test_ties_that_fall_on_odd_sums(order: Order) -> None:
    """With half the scale, every other sum is a tie, which float32 rounds after it adds the zero point."""
    half, whole = Quantization(scale=0.015625, zero=5), Quantization(scale=0.03125, zero=-117)
    assert find_addition(half, half, whole, order=order).differences == 0


@pytest.mark.parametrize(
    ("left", "right", "out"),
    [
        (  # from MobileNet-v2
            Quantization(scale=0.09339848, zero=148, unsigned=True),
            Quantization(scale=0.08150082, zero=140, unsigned=True),
            Quantization(scale=0.11155228, zero=125, unsigned=True),
        ),
        (
            Quantization(scale=0.6127914, unsigned=True),
            Quantization(scale=0.1008276, zero=166, unsigned=True),
            Quantization(scale=0.8370962, zero=57, unsigned=True),
        ),
    ],
)
def test_multipliers_that_are_not_the_nearest(
    left: Quantization, right: Quantization, out: Quantization
) -> None:
    orders: tuple[Order, ...] = ("left", "right")
    assert [find_addition(left, right, out, order=one).differences for one in orders] == [0, 0]


def test_a_sum_without_exact_integers() -> None:
    """One multiplier would have to be larger and smaller at once. The search returns the nearest integers."""
    left = Quantization(scale=0.7503103, zero=128, unsigned=True)
    right, out = (Quantization(scale=scale, unsigned=True) for scale in (4.407152, 5.421469))
    assert find_addition(left, right, out).differences == 2


def test_differences_are_counted() -> None:
    """With shift 0 the multipliers 1 and 2 replace 1.4 and 1.6."""
    left, right, out = (Quantization(scale=scale) for scale in (1.4, 1.6, 1.0))
    expected = float_add(left, right, out, out.low, out.high)
    pairs = quantized_addition._Pairs(left, right, out.low, out.high, expected)
    coarse = pairs.addition(quantized_addition._Candidate((1, 2), 0, 0))
    assert 10_000 < coarse.differences < 65_536


@pytest.mark.parametrize("seed", range(4))
def test_networks_say_the_same(seed: int) -> None:
    """Compare the network's addition with that of expressions, in all orders."""
    rng = np.random.default_rng(seed)
    left, right, out = (some_quantization(rng) for _ in range(3))
    for order in ORDERS:
        if order != "apart":
            left, right = (replace(one, unsigned=out.unsigned, zero=out.zero) for one in (left, right))
        elif left.unsigned == right.unsigned == out.unsigned:
            left = replace(left, unsigned=not out.unsigned, zero=100)
        table = float_add(left, right, out, out.low, out.high, order)
        tensors = [
            Tensor(name="t", shape=(256, 256), dtype=one.dtype, quantization=Pair.of(one.scale, one.zero))
            for one in (left, right, out)
        ]
        values = np.meshgrid(left.values(), right.values(), indexing="ij")
        arrays = [array.astype(one.dtype) for array, one in zip(values, tensors, strict=False)]
        place = [1, 0] if order == "right" else [0, 1]
        sums = Add().evaluate([tensors[i] for i in place], [arrays[i] for i in place], tensors[2])
        np.testing.assert_array_equal(sums, table)


def test_scales_that_cannot_be_added() -> None:
    large, small = Quantization(scale=1e6), Quantization(scale=1e-6)
    message = "an operand's scale is 1e+12 times that of the sum; up to 2147483647 times can be added"
    with refused(ShapeError, message):
        find_addition(large, small, small)
    assert isinstance(find_addition(small, small, large), Addition)


@pytest.mark.parametrize(
    ("scale", "zero", "message"),
    [
        (0.0, 0, "the scale is 0.0; it must be a positive finite number"),
        (float("nan"), 0, "the scale is nan; it must be a positive finite number"),
        (1.0, 128, "the zero point is 128; int8 has -128 to 127"),
    ],
)
def test_invalid_quantizations(scale: float, zero: int, message: str) -> None:
    with refused(ShapeError, message):
        Quantization(scale=scale, zero=zero)
