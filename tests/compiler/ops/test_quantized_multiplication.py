"""Integers for products of quantized tensors: exact where there are any, otherwise with few differences."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from accel.base.errors import ShapeError
from accel.compiler.expr.quantization import ORDERS, Quantization
from accel.compiler.ops.quantized_multiplication import find_multiplication, float_multiply
from accel.core.requantize import ADD_OFFSET_BITS, multiply
from accel.graph.elementwise_operators import Mul
from accel.graph.graph_tensor import Quantization as GraphQuantization
from accel.graph.graph_tensor import Tensor
from tests.expect import refused
from tests.strategies import examples


@st.composite
def quantizations(draw: st.DrawFn, *, unsigned: bool | None = None) -> Quantization:
    is_unsigned = draw(st.booleans()) if unsigned is None else unsigned
    low, high = (0, 255) if is_unsigned else (-128, 127)
    zero = draw(st.sampled_from([0, low, high]) | st.integers(low, high))
    scale = float(np.float32(10 ** draw(st.floats(-3, 0.5))))
    return Quantization(scale=scale, zero=zero, unsigned=is_unsigned)


def count_differences(
    left: Quantization, right: Quantization, out: Quantization, bounds: tuple[int, int], order: str
) -> tuple[int, int]:
    """Return the differences that the search counts, and those that numpy counts."""
    found = find_multiplication(left, right, out, left_bounds=bounds, order=order)  # type: ignore[arg-type]
    values = left.values()[bounds[0] - left.low : bounds[1] - left.low + 1]
    products = multiply(
        values[:, None],
        right.values(),
        multiplier=found.multiplier,
        shift=found.shift,
        offset=found.offset,
        zeros=(left.zero, right.zero),
        zero=found.zero,
        low=out.low,
        high=out.high,
    )
    want = float_multiply(left, right, out, out.low, out.high, order)  # type: ignore[arg-type]
    assert abs(found.offset) < 1 << (ADD_OFFSET_BITS - 1)
    return found.differences, int((products != want[bounds[0] - left.low : bounds[1] - left.low + 1]).sum())


@examples(60)
@given(st.data())
def test_counted_differences_are_right(data: st.DataObject) -> None:
    """Also for bounded left operands and for both orders of float32 operations."""
    left, right, out = (data.draw(quantizations()) for _ in range(3))
    low, high = sorted(data.draw(st.integers(left.low, left.high)) for _ in range(2))
    order = data.draw(st.sampled_from(ORDERS))
    try:
        counted, found = count_differences(left, right, out, (low, high), order)
    except ShapeError:
        assert left.scale * right.scale / out.scale > 2.0**30
        return
    assert counted == found


def test_most_random_scales_are_exact() -> None:
    """Scales as in trained networks, with results that use most of their type."""
    rng = np.random.default_rng(1)
    exact = 0
    for _ in range(40):
        left, right = (
            Quantization(scale=float(10 ** rng.uniform(-3, 0)), zero=int(rng.integers(-128, 128)))
            for _ in range(2)
        )
        scale = left.scale * right.scale * 128 * float(rng.uniform(0.2, 2))
        out = Quantization(scale=scale, zero=int(rng.integers(-128, 128)))
        exact += not find_multiplication(left, right, out).differences
    assert exact >= 38


def test_the_formula_in_its_docstring() -> None:
    left, right = Quantization(scale=0.5), Quantization(scale=0.5)
    found = find_multiplication(left, right, Quantization(scale=1.0))
    assert found.differences == 0
    # a quarter of each product, with halves to even
    assert abs(found.multiplier / 2**found.shift - 0.25) < 1e-6
    values = float_multiply(
        Quantization(scale=0.1), Quantization(scale=0.5), Quantization(scale=0.2), -128, 127
    )
    assert values[30 + 128, 10 + 128] == 75


def test_bounds_make_more_products_exact() -> None:
    """After ReLU, a value is not less than its zero point."""
    rng = np.random.default_rng(3)
    exact = [0, 0]
    for _ in range(30):
        scales = [round(float(10 ** rng.uniform(-2.5, 0)), 3) + 0.001 for _ in range(2)]
        left, right = (Quantization(scale=scale, zero=int(rng.integers(-100, 100))) for scale in scales)
        scale = float(f"{scales[0] * scales[1] * 128 * rng.uniform(0.2, 2):.2g}")
        out = Quantization(scale=scale, zero=int(rng.integers(-128, 128)))
        for number, least in enumerate((left.low, left.zero)):
            bounds = (least, left.high)
            exact[number] += not find_multiplication(left, right, out, left_bounds=bounds).differences
    assert exact[0] < exact[1]


@examples(30)
@given(st.data())
def test_floats_are_those_of_the_graph(data: st.DataObject) -> None:
    unsigned = data.draw(st.booleans())
    all_three = [data.draw(quantizations(unsigned=unsigned)) for _ in range(3)]
    tensors = [
        Tensor(
            name=name,
            shape=shape,
            dtype=one.dtype,
            quantization=GraphQuantization.of(one.scale, one.zero),
        )
        for name, shape, one in zip("aby", ((256, 1), (1, 256), (256, 256)), all_three, strict=True)
    ]
    left, right, out = all_three
    arrays = [left.values()[:, None].astype(left.dtype), right.values()[None].astype(right.dtype)]
    for operator, order in ((Mul(), "left"), (Mul(in_float32=True), "apart")):
        want = operator.evaluate(tensors[:2], arrays, tensors[2])
        found = float_multiply(left, right, out, out.low, out.high, order)  # type: ignore[arg-type]
        np.testing.assert_array_equal(found, want)


def test_factors_beyond_the_multiplier_are_refused() -> None:
    large, small = Quantization(scale=1e6), Quantization(scale=1e-6)
    message = (
        "the scales of the operands multiply to 1e+18 times that of the product; "
        "up to 2147483647 times is possible"
    )
    with refused(ShapeError, message):
        find_multiplication(large, large, small)
