"""Functions of one 8-bit value for each channel, in graphs and in files."""

import numpy as np
import pytest

from accel.base.errors import GraphError
from accel.formats.onnx_export import export_onnx
from accel.formats.onnx_runtime import run_optimized
from accel.graph.elementwise_operators import Add, Binary, ChannelTable, Clip, Function, Mul
from accel.graph.graph import Graph
from accel.graph.graph_builder import Builder
from accel.graph.graph_evaluation import evaluate
from accel.graph.graph_serialization import graph_from_data, graph_to_data
from accel.graph.graph_tensor import Quantization, Shape, Tensor
from accel.graph.movement_operators import Transpose
from accel.graph.pooling_operators import MaxPool
from accel.rewriting.transpose_cancellation import cancel_transposes
from tests.graph.test_qdq_regions import PAIRS, SHAPE, Made, assert_close_to_float32, kinds, random_inputs

SLOPES = np.array([0.25, -0.5, 0.0], np.float32).reshape(3, 1, 1)


def table_graph(shape: Shape, axis: int, channels: int, dtype: str = "uint8") -> Graph:
    """A random table for each channel of ``x``."""
    builder = Builder()
    builder.input(Tensor(name="x", shape=shape, dtype=dtype, quantization=Quantization.of(0.05, 3)))
    entries = np.random.default_rng(1).integers(-128, 128, (channels, 256)).astype(np.int8)
    builder.constant("entries", entries)
    quantization = Quantization.of(0.1, 0)
    builder.emit(ChannelTable(axis=axis), ["x", "entries"], "y", dtype="int8", quantization=quantization)
    return builder.graph("made", ["y"])


@pytest.mark.parametrize(("axis", "channels"), [(0, 2), (1, 3), (2, 4), (1, 1)])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_each_channel_has_its_table(axis: int, channels: int, dtype: str) -> None:
    graph = table_graph((2, 3, 4), axis, channels, dtype)
    values = random_inputs(graph)["x"]
    found = evaluate(graph, {"x": values})["y"]
    for place in np.ndindex(*values.shape):
        channel = place[axis] if channels > 1 else 0
        entry = int(values[place]) - np.iinfo(dtype).min
        assert found[place] == graph.constants["entries"][channel, entry]
    content = export_onnx(graph)
    np.testing.assert_array_equal(run_optimized(content, {"x": values}, ["y"])[0]["y"], found)
    again = graph_from_data(graph_to_data(graph), lambda tensor: graph.constants[tensor.name])
    assert again.nodes == graph.nodes


@pytest.mark.parametrize(
    ("axis", "channels", "message"),
    [
        (1, 4, r"its results is \(4, 256\); each channel of axis 1 of \(2, 3, 4\) needs 256"),
        (3, 3, r"each channel of axis 3 of \(2, 3, 4\) needs 256"),
        (-1, 4, r"each channel of axis -1 of"),
    ],
)
def test_wrong_tables_are_refused(axis: int, channels: int, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        table_graph((2, 3, 4), axis, channels)


def test_normalization_and_bounds_are_a_table_for_each_channel() -> None:
    made = Made()
    made.constant("factor", np.array([0.5, -1.5, 3], np.float32).reshape(3, 1, 1))
    made.constant("addend", np.array([0.1, 0, -2], np.float32).reshape(1, 3, 1, 1))
    made.apply(Mul(), "xf", "factor", output="p")
    made.apply(Add(), "p", "addend", output="q")
    made.apply(Clip(low=0), "q", output="r")
    made.end("r")
    graph = assert_close_to_float32(made, at_most=0)
    assert kinds(graph) == ["ChannelTable"]
    assert graph.nodes[0].operator == ChannelTable(axis=1)


def test_a_max_pool_after_prelu_takes_integers() -> None:
    made = Made()
    made.constant("slope", SLOPES)
    made.apply(Binary(function="PRelu"), "xf", "slope", output="p")
    made.apply(MaxPool(windows=PAIRS), "p", output="m")
    made.end("m")
    assert kinds(assert_close_to_float32(made, at_most=0)) == ["ChannelTable", "MaxPool"]


@pytest.mark.parametrize("shape", [(6, 1), (3, 6, 1), (1, 1, 3, 1, 1)])
def test_constants_along_several_axes_stay_in_float32(shape: Shape) -> None:
    """Or along one axis after another, or with more axes than the operand."""
    made = Made()
    made.constant("slope", SLOPES)
    made.constant("other", np.ones(shape, np.float32))
    made.apply(Binary(function="PRelu"), "xf", "slope", output="p")
    made.apply(Mul(), "p", "other", output="q")
    made.end("q")
    assert "ChannelTable" not in kinds(made.matched())


def test_a_function_whose_numbers_others_need_stays_in_float32() -> None:
    made = Made()
    made.constant("slope", SLOPES)
    made.apply(Binary(function="PRelu"), "xf", "slope", output="p")
    made.apply(Function(function="Exp"), "p", output="e")
    made.end("p")
    assert "ChannelTable" not in kinds(made.matched("y", "e"))


def test_transposes_around_a_table_cancel() -> None:
    graph = table_graph(SHAPE, 1, 3, "int8")
    builder = Builder()
    builder.input(graph.tensors["x"])
    builder.constant("entries", graph.constants["entries"])
    builder.emit(Transpose(permutation=(0, 2, 3, 1)), ["x"], "last")
    quantization = Quantization.of(0.1, 0)
    builder.emit(ChannelTable(axis=3), ["last", "entries"], "t", dtype="int8", quantization=quantization)
    builder.emit(Transpose(permutation=(0, 3, 1, 2)), ["t"], "y")
    around = builder.graph("made", ["y"])
    cancelled = cancel_transposes(around)
    assert [node.operator for node in cancelled.nodes] == [ChannelTable(axis=1)]
    feeds = random_inputs(graph)
    np.testing.assert_array_equal(evaluate(cancelled, feeds)["y"], evaluate(around, feeds)["y"])
