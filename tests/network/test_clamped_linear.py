"""Functions of one operand as clamped linear functions."""

import numpy as np
import pytest

from accel.graph.elementwise_operators import Clip, Function, Requantize
from accel.graph.graph_operator import Operator
from accel.graph.graph_tensor import Quantization, Tensor
from accel.graph.quantize_values import all_values
from accel.network.clamped_linear import ClampedLinear, fit_clamped_linear

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
