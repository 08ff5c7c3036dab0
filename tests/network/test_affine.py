"""Functions of one operand as a line within bounds."""

import numpy as np
import pytest

from accel.graph.elementwise import Clip, Function, Requantize, all_values
from accel.graph.operator import Operator
from accel.graph.tensor import Quantization, Tensor
from accel.network.affine import Affine, find_affine

OPERATORS = [Requantize(), Function(function="HardSigmoid"), Function(function="Neg")]


def quantized(dtype: str, scale: float, zero: int) -> Tensor:
    return Tensor(name="t", shape=(256,), dtype=dtype, quantization=Quantization.of(scale, zero))


def found(operator: Operator, data: Tensor, out: Tensor) -> Affine | None:
    """What is found, which must give the operator's results."""
    values = all_values(data.dtype)
    results = operator.evaluate([data], [values], out).astype(np.int64)
    centered, zero = values.astype(np.int64) - int(data.per_tensor[1]), int(out.per_tensor[1])
    line = find_affine(centered, results, zero)
    if line is not None:
        np.testing.assert_array_equal(line.values(centered, zero), results)
    return line


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda one: one.kind)
def test_lines(operator: Operator) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        dtypes = rng.choice(["int8", "uint8"], 2)
        zeros = [int(rng.integers(np.iinfo(one).min, np.iinfo(one).max)) for one in dtypes]
        scale = 10 ** rng.uniform(-3, 0)
        data = quantized(dtypes[0], scale, zeros[0])
        out = quantized(dtypes[1], scale * 2 ** rng.uniform(-1.5, 1.5), zeros[1])
        assert found(operator, data, out) is not None


def test_bounds() -> None:
    tensor = quantized("uint8", 0.1, 7)
    line = found(Clip(low=7, high=67), tensor, tensor)
    assert line is not None
    assert (line.low, line.high) == (7, 67)


def test_one_value_for_all() -> None:
    assert found(Function(function="Sign"), quantized("uint8", 0.1, 0), quantized("int8", 2.5, 3)) == Affine(
        weight=1, bias=0, scale=1.0, low=3, high=3
    )


@pytest.mark.parametrize("function", ["Abs", "Sigmoid", "Exp"])
def test_what_is_no_line(function: str) -> None:
    assert found(Function(function=function), quantized("int8", 0.05, 0), quantized("int8", 0.05, 0)) is None
