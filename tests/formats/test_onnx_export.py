"""Export of operators that ONNX Runtime does not have, as equivalent nodes."""

from typing import Any

import numpy as np
import pytest

from accel.base.errors import GraphError
from accel.formats.compare_with_runtime import compare, random_inputs
from accel.formats.onnx_export import export_onnx
from accel.graph.graph import Graph
from accel.graph.graph_builder import Builder
from accel.graph.graph_operator import Operator
from accel.graph.graph_tensor import Quantization, Tensor
from accel.graph.pooling_operators import AveragePool
from accel.graph.product_operators import Conv, MatMul
from accel.graph.window_geometry import Windows
from tests.expect import refused

RNG = np.random.default_rng(0)


def graph_of(operator: Operator, shape: tuple[int, ...], *constants: tuple[Any, Any], dtype: str) -> Graph:
    """A graph of one node: uint8 operands and constants, with their quantization."""
    made = Builder()
    made.input(Tensor(name="x", shape=shape, dtype="uint8", quantization=Quantization.of(0.03, 119)))
    names = [made.constant(f"c{n}", values, known) for n, (values, known) in enumerate(constants)]
    quantization = None if dtype == "int32" else Quantization.of(0.7, 125)
    made.emit(operator, ["x", *names], "y", dtype=dtype, quantization=quantization)
    return made.graph("made", ["y"])


def assert_equal(graph: Graph) -> None:
    found = compare(graph, random_inputs(graph, 1))
    assert found.first is None


def plane(kernel: int, pad: int = 0, dilation: int = 1, stride: int = 1) -> Windows:
    return Windows(
        kernel=(kernel,) * 2,
        strides=(stride,) * 2,
        dilations=(dilation,) * 2,
        begin=(pad,) * 2,
        end=(pad,) * 2,
    )


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("groups", [1, 2])
def test_integers_with_a_zero_point_for_each_channel(groups: int, biased: bool) -> None:
    weights = RNG.integers(-128, 128, (6, 4 // groups, 3, 3)).astype(np.int8)
    scales = Quantization.of(np.ones(6, np.float32), np.arange(-3, 3), 0)
    bias = [(RNG.integers(-900, 900, 6).astype(np.int32), None)] * biased
    operator = Conv(windows=plane(3, 1), groups=groups)
    assert_equal(graph_of(operator, (2, 4, 5, 6), (weights, scales), *bias, dtype="int32"))


@pytest.mark.parametrize("shape", [(3, 5, 4), (5, 4), (2, 1, 5, 4)])
def test_several_matrices_with_a_bias(shape: tuple[int, ...]) -> None:
    weights = RNG.integers(-128, 128, (3, 4, 7)).astype(np.int8)
    bias = RNG.integers(-900, 900, 7).astype(np.int32)
    constants = (weights, Quantization.of(0.02, 4)), (bias, None)
    assert_equal(graph_of(MatMul(alpha=0.7), shape, *constants, dtype="uint8"))


@pytest.mark.parametrize(("pad", "size"), [(0, 9), (1, 9), (0, 5)])
def test_averages_with_dilations(pad: int, size: int) -> None:
    operator = AveragePool(windows=plane(3, pad, dilation=2, stride=2), count_padding=pad > 0)
    assert_equal(graph_of(operator, (2, 3, size, size), dtype="uint8"))


def test_averages_that_are_not_compared() -> None:
    graph = graph_of(AveragePool(windows=plane(3, 1, dilation=2)), (1, 3, 9, 9), dtype="uint8")
    message = "node 'y': ONNX Runtime has no average pool with dilations that excludes padding"
    with refused(GraphError, message):
        export_onnx(graph)
