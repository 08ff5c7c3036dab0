"""Functions of one operand as clamped linear functions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.graph.elementwise_operators import Clip, Function, Requantize
from accel.graph.graph_operator import Operator
from accel.graph.graph_tensor import Quantization, Tensor
from accel.graph.quantize_values import all_values
from accel.network.clamped_linear import ClampedLinear, fit_channels, fit_clamped_linear

OPERATORS = [Requantize(), Function(function="HardSigmoid"), Function(function="Neg")]


def quantized(dtype: str, scale: float, zero: int) -> Tensor:
    return Tensor(name="t", shape=(256,), dtype=dtype, quantization=Quantization.of(scale, zero))


def fitted(operator: Operator, data: Tensor, out: Tensor) -> ClampedLinear | None:
    """Fit a function, and compare it with the operator's results."""
    values = all_values(data.dtype)
    results = operator.evaluate([data], [values], out).astype(np.int64)
    centered, zero = values.astype(np.int64) - int(data.scale_and_zero[1]), int(out.scale_and_zero[1])
    line = fit_clamped_linear(centered, results, zero)
    if line is not None:
        np.testing.assert_array_equal(line.values(centered, zero), results)
    return line


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda one: one.kind)
def test_linear_functions(operator: Operator) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        dtypes = rng.choice(["int8", "uint8"], 2)
        zeros = [int(rng.integers(np.iinfo(one).min, np.iinfo(one).max)) for one in dtypes]
        scale = 10 ** rng.uniform(-3, 0)
        data = quantized(dtypes[0], scale, zeros[0])
        out = quantized(dtypes[1], scale * 2 ** rng.uniform(-1.5, 1.5), zeros[1])
        assert fitted(operator, data, out) is not None


def test_bounds() -> None:
    tensor = quantized("uint8", 0.1, 7)
    line = fitted(Clip(low=7, high=67), tensor, tensor)
    assert line is not None
    assert (line.low, line.high) == (7, 67)


def test_a_constant_function() -> None:
    assert fitted(
        Function(function="Sign"), quantized("uint8", 0.1, 0), quantized("int8", 2.5, 3)
    ) == ClampedLinear(weight=1, bias=0, scale=1.0, low=3, high=3)


@pytest.mark.parametrize("function", ["Abs", "Sigmoid", "Exp"])
def test_functions_that_are_not_linear(function: str) -> None:
    assert fitted(Function(function=function), quantized("int8", 0.05, 0), quantized("int8", 0.05, 0)) is None


def test_channels_have_common_bounds() -> None:
    """Channels that do not reach a bound, or that are constant, keep their results."""
    values = np.arange(-128, 128)
    lines = [values, values * 3 - 100, -values, np.full(256, 7), np.full(256, -128), values // 4]
    table = np.stack(lines, axis=1).clip(-100, 90)
    for results, line in zip(table.T, fit_channels(values, table, 5), strict=True):
        if line is None:  # rounding down is no rounding to the nearest value
            np.testing.assert_array_equal(results, values // 4)
            continue
        assert (line.low, line.high) == (-100, 90)
        np.testing.assert_array_equal(line.values(values, 5), results)


def test_all_weights_are_tried_for_lines_of_batch_normalization() -> None:
    """The weights whose biases are nearest to the offset do not reproduce this line, another one does."""
    values = np.arange(-128, 128) - 21
    results = (np.rint(np.float32(1.9145071) * values.astype(np.float32) + np.float32(28.725775)) - 128).clip(
        -128, 127
    )
    line = fit_clamped_linear(values, results.astype(np.int64), -128)
    assert line is not None
    np.testing.assert_array_equal(line.values(values, -128), results)
    nearest = np.abs(np.rint(28.725775 / 1.9145071 * line.weight) - line.bias)
    assert nearest <= 1


@given(st.integers(0, 2**32), st.floats(0.01, 8), st.floats(-200, 200), st.integers(-128, 127))
def test_random_lines_have_functions_or_none(seed: int, slope: float, offset: float, zero: int) -> None:
    rng = np.random.default_rng(seed)
    values = np.arange(256) - int(rng.integers(0, 256))
    slopes = slope * rng.choice([-1, 1], 6) * rng.uniform(0.5, 1, 6)
    table = np.rint(values[:, None] * slopes + offset * rng.uniform(-1, 1, 6)).astype(np.int64) + zero
    table = table.clip(-128, 127)
    for results, line in zip(table.T, fit_channels(values, table, zero), strict=True):
        if line is not None:
            np.testing.assert_array_equal(line.values(values, zero), results)
