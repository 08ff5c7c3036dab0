"""Functions of one byte, and their folding into tables."""

import numpy as np
import pytest

from accel.graph.byte_functions import by_byte, byte_function, fold_byte_functions
from accel.graph.elementwise_operators import Add, Clip, Function, Mul, Requantize, Table
from accel.graph.graph import Graph
from accel.graph.graph_builder import Builder
from accel.graph.graph_evaluation import evaluate
from accel.graph.graph_tensor import Quantization, Tensor
from accel.graph.quantize_values import all_values

X = Quantization.of(0.05, 11)
Y = Quantization.of(1 / 128, 3)


def built(dtype: str = "int8") -> Builder:
    builder = Builder()
    builder.input(Tensor(name="x", shape=(1, 4, 8, 8), dtype=dtype, quantization=X))
    return builder


def swish(builder: Builder, source: str = "x", output: str = "y") -> None:
    dtype = builder.tensors[source].dtype
    sigmoid = Function(function="Sigmoid")
    builder.emit(sigmoid, [source], f"{output}_s", dtype=dtype, quantization=Quantization.of(1 / 256, 7))
    builder.emit(Mul(), [source, f"{output}_s"], output, dtype=dtype, quantization=Y)


def kinds(graph: Graph) -> list[str]:
    return [node.operator.kind for node in graph.nodes]


def assert_equal(graph: Graph, other: Graph) -> None:
    """Compare outputs for a tensor with all values of a byte."""
    dtype = graph.tensors["x"].dtype
    feeds = {"x": all_values(dtype).reshape(1, 4, 8, 8)}
    for name in graph.outputs:
        np.testing.assert_array_equal(evaluate(graph, feeds)[name], evaluate(other, feeds)[name])


def test_a_product_with_a_function_of_itself_is_one_table() -> None:
    builder = built()
    swish(builder)
    graph = builder.graph("swish", ["y"])
    folded = fold_byte_functions(graph)
    assert kinds(folded) == ["Table"]
    assert folded.nodes[0].inputs == ("x",)
    assert_equal(graph, folded)


def test_functions_of_functions_are_one_table() -> None:
    builder = built()
    swish(builder)
    builder.emit(Requantize(), ["y"], "z", dtype="int8", quantization=Quantization.of(0.3, 0))
    builder.emit(Clip(low=-3, high=90), ["z"], "c")
    builder.emit(Add(), ["c", "y"], "w", dtype="int8", quantization=X)
    graph = builder.graph("chain", ["w"])
    folded = fold_byte_functions(graph)
    assert kinds(folded) == ["Table"]
    assert_equal(graph, folded)


def test_results_that_others_need_stay() -> None:
    builder = built()
    swish(builder)
    graph = builder.graph("both", ["y", "y_s"])
    folded = fold_byte_functions(graph)
    assert kinds(folded) == ["Sigmoid", "Table"]
    assert_equal(graph, folded)


def test_bounds_and_scales_stay_for_the_layer_before() -> None:
    builder = built()
    builder.emit(Requantize(), ["x"], "z", dtype="int8", quantization=Quantization.of(0.3, 0))
    builder.emit(Clip(low=-3), ["z"], "c")
    graph = builder.graph("cheap", ["c"])
    assert fold_byte_functions(graph) is graph


def test_sums_of_two_tensors_stay() -> None:
    builder = built()
    builder.input(Tensor(name="z", shape=(1, 4, 8, 8), dtype="int8", quantization=Y))
    builder.emit(Add(), ["x", "z"], "s", dtype="int8", quantization=X)
    swish(builder, "s")
    folded = fold_byte_functions(builder.graph("sum", ["y"]))
    assert kinds(folded) == ["Add", "Table"]


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_order_by_byte(dtype: str) -> None:
    builder = built(dtype)
    swish(builder)
    graph = fold_byte_functions(builder.graph("swish", ["y"]))
    (node,) = graph.nodes
    found = byte_function(graph, node)
    assert found is not None
    assert found.operand == "x"
    entries = by_byte(found.results, dtype)
    assert isinstance(node.operator, Table)
    for value, result in zip(all_values(dtype).tolist(), node.operator.values, strict=True):
        assert entries[value & 255] == result


def test_constants_for_each_channel_are_no_function_of_a_byte() -> None:
    builder = built()
    factors = np.arange(4, dtype=np.int8).reshape(1, 4, 1, 1)
    builder.constant("factors", factors, Y)
    builder.emit(Mul(), ["x", "factors"], "y", dtype="int8", quantization=X)
    graph = builder.graph("channels", ["y"])
    assert byte_function(graph, graph.nodes[0]) is None
