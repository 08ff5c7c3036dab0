"""QDQ regions: the quantized operators that replace them, and their results."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from accel.graph.elementwise_operators import Add, Clip, Dequantize, Function, Mul, Quantize
from accel.graph.graph import Graph
from accel.graph.graph_builder import Builder
from accel.graph.graph_evaluation import evaluate
from accel.graph.graph_operator import Operator
from accel.graph.graph_tensor import Array, Quantization, Tensor
from accel.graph.movement_operators import Concat, Identity, Pad, Reshape, Transpose
from accel.graph.pooling_operators import MaxPool
from accel.graph.product_operators import Conv, MatMul
from accel.graph.qdq_regions import match_regions
from accel.graph.window_geometry import Windows
from accel.rewriting.constant_rules import CONSTANT_FOLDING
from accel.rewriting.rule_application import simplify

RNG = np.random.default_rng(0)
X = Quantization.of(0.05, -7)
Y = Quantization.of(0.3, 12)
W = Quantization.of(np.array([0.01, 0.03], np.float32), np.array([0, 0]), 0)
PLANE = Windows(kernel=(3, 3), strides=(1, 1), dilations=(1, 1), begin=(1, 1), end=(1, 1))
PAIRS = Windows(kernel=(2, 2), strides=(2, 2), dilations=(1, 1), begin=(0, 0), end=(0, 0))
WEIGHTS = RNG.integers(-127, 128, (2, 3, 3, 3)).astype(np.int8)
BIAS = np.array([900, -70], np.int32)
SHAPE = (1, 3, 6, 6)


class Made(Builder):
    """A graph of float operators on dequantized integers."""

    def __init__(self, shape: Sequence[int] = SHAPE, dtype: str = "int8") -> None:
        super().__init__()
        self.input(Tensor(name="x", shape=tuple(shape), dtype=dtype, quantization=X))
        self.emit(Dequantize(), ["x"], "xf", dtype="float32")

    def dequantized_constant(self, name: str, values: Array, quantization: Quantization) -> str:
        """Add a constant and its Dequantize."""
        self.constant(name, values, quantization)
        return self.emit(Dequantize(), [name], f"{name}f", dtype="float32")

    def apply(self, operator: Operator, *inputs: str, output: str) -> str:
        return self.emit(operator, inputs, output)

    def end(self, name: str, output: str = "y", quantization: Quantization = Y, dtype: str = "int8") -> None:
        self.emit(Quantize(), [name], output, dtype=dtype, quantization=quantization)

    def matched(self, *outputs: str) -> Graph:
        return simplify(match_regions(self.graph("made", outputs or ["y"])), [CONSTANT_FOLDING])[0]


def random_inputs(graph: Graph) -> dict[str, Array]:
    found = {}
    for name in graph.inputs:
        tensor = graph.tensors[name]
        bounds = np.iinfo(tensor.dtype)
        found[name] = RNG.integers(bounds.min, bounds.max + 1, tensor.shape).astype(tensor.dtype)
    return found


def kinds(graph: Graph) -> list[str]:
    return [one.operator.kind for one in graph.nodes]


def assert_close_to_float32(made: Made, *, at_most: int) -> Graph:
    """Compare the matched graph with the float32 graph, within a tolerance."""
    graph = made.matched()
    feeds = random_inputs(graph)
    found, wanted = evaluate(graph, feeds)["y"], evaluate(made.graph("made", ["y"]), feeds)["y"]
    assert np.abs(found.astype(int) - wanted.astype(int)).max() <= at_most
    return graph


def quantized_conv(made: Builder, bias: Array | None) -> None:
    """The same convolution as integers."""
    made.input(Tensor(name="x", shape=SHAPE, dtype="int8", quantization=X))
    operands = ["x", made.constant("w", WEIGHTS, W)]
    if bias is not None:
        operands.append(made.constant("b", bias))
    made.emit(Conv(windows=PLANE), operands, "sums", quantization=Y)


def bias_scales() -> Array:
    """The scales of a bias."""
    return X.scales() * np.array(W.scale, np.float32)


@pytest.mark.parametrize("kind", ["int32", "float", "other scale", "none"])
def test_bias_forms(kind: str) -> None:
    made = Made()
    made.dequantized_constant("w", WEIGHTS, W)
    operands = ["xf", "wf"]
    if kind == "int32":
        operands.append(made.dequantized_constant("b", BIAS, Quantization.of(bias_scales(), 0, 0)))
    elif kind == "other scale":  # in quarters of the scale: the bias is rounded half to even
        operands.append(
            made.dequantized_constant("b", BIAS * 4 + 2, Quantization.of(bias_scales() / 4, 0, 0))
        )
    elif kind == "float":
        operands.append(made.constant("b", (BIAS * bias_scales() * np.float32(1.0001)).astype(np.float32)))
    made.apply(Conv(windows=PLANE), *operands, output="c")
    made.end("c")
    graph = assert_close_to_float32(made, at_most=1)
    assert kinds(graph) == ["Conv"]
    reference = Builder()
    quantized_conv(reference, None if kind == "none" else BIAS)
    feeds = random_inputs(graph)
    wanted = evaluate(reference.graph("reference", ["sums"]), feeds)["sums"]
    np.testing.assert_array_equal(evaluate(graph, feeds)["y"], wanted)


@pytest.mark.parametrize(
    ("low", "high", "clip"),
    [
        (0.0, None, (12, None)),
        (0.0, 6.0, (12, 32)),
        (-0.17, 0.49, (11, 14)),
        (None, 1e9, None),
        (-1e9, 1e9, None),
    ],
)
def test_bounds_become_bounds_of_integers(
    low: float | None, high: float | None, clip: tuple[int, int | None] | None
) -> None:
    """Bounds that include all integers disappear."""
    made = Made()
    made.dequantized_constant("w", WEIGHTS, W)
    made.apply(Conv(windows=PLANE), "xf", "wf", output="c")
    made.apply(Clip(low=low, high=high), "c", output="r")
    made.end("r")
    graph = assert_close_to_float32(made, at_most=1)
    operators = [one.operator for one in graph.nodes]
    assert operators[1:] == ([] if clip is None else [Clip(low=clip[0], high=clip[1])])
    reference = Builder()
    quantized_conv(reference, None)
    feeds = random_inputs(graph)
    wanted = evaluate(reference.graph("reference", ["sums"]), feeds)["sums"]
    bounds = (-128, 127) if clip is None else (clip[0], 127 if clip[1] is None else clip[1])
    np.testing.assert_array_equal(evaluate(graph, feeds)["y"], wanted.clip(*bounds))


def test_moves_and_maxima_before_a_quantize() -> None:
    made = Made()
    made.dequantized_constant("w", WEIGHTS, W)
    made.apply(Conv(windows=PLANE), "xf", "wf", output="c")
    made.apply(MaxPool(windows=PAIRS), "c", output="m")
    made.apply(Clip(low=0), "m", output="r")
    made.apply(Transpose(permutation=(0, 2, 3, 1)), "r", output="t")
    made.apply(Reshape(sizes=(1, 18)), "t", output="f")
    made.end("f")
    graph = assert_close_to_float32(made, at_most=1)
    assert kinds(graph) == ["Conv", "MaxPool", "Clip", "Transpose", "Reshape"]
    assert all(graph.tensors[one.output].dtype == "int8" for one in graph.nodes)
    assert graph.nodes[-1].output == "y"


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("swapped", [False, True])
def test_matmul_and_bias_as_two_nodes(turned: bool, swapped: bool) -> None:
    """Weights may also be transposed after their Dequantize, with a scale for each channel."""
    made = Made((4, 9))
    weights = RNG.integers(-127, 128, (2, 9) if turned else (9, 2)).astype(np.int8)
    made.dequantized_constant("w", weights, Quantization.of(W.scale, 0, 0 if turned else 1))
    name = made.apply(Transpose(permutation=(1, 0)), "wf", output="wt") if turned else "wf"
    made.apply(MatMul(), "xf", name, output="p")
    made.constant("b", np.array([[0.5, -2.0]], np.float32))
    made.apply(Add(), *(("b", "p") if swapped else ("p", "b")), output="s")
    made.end("s")
    graph = assert_close_to_float32(made, at_most=1)
    assert kinds(graph) == ["MatMul"]
    assert len(graph.nodes[0].inputs) == 3


def test_a_dequantize_with_several_consumers() -> None:
    made = Made()
    made.dequantized_constant("w", WEIGHTS, W)
    made.apply(Conv(windows=PLANE), "xf", "wf", output="c")
    made.end("c", "a", X)
    made.emit(Dequantize(), ["a"], "af", dtype="float32")
    made.apply(Mul(), "af", "af", output="q")
    made.end("q", "b")
    made.apply(Function(function="Tanh"), "af", output="t")
    made.end("t", "d", Quantization.of(1 / 128, 0))
    graph = made.matched("b", "d", "af")
    assert sorted(kinds(graph)) == ["Conv", "Dequantize", "Mul", "Tanh"]
    assert graph.tensors["af"].dtype == "float32"


def test_functions_of_one_tensor_become_a_table() -> None:
    """The table equals the float32 result for all values."""
    made = Made()
    made.constant("three", np.array([3.0], np.float32))
    made.apply(
        Function(function="HardSigmoid", parameters=(("alpha", 1 / 6), ("beta", 0.5))), "xf", output="h"
    )
    made.apply(Mul(), "xf", "h", output="p")
    made.apply(Mul(), "p", "three", output="q")
    made.apply(Clip(high=2.5), "q", output="r")
    made.end("r", dtype="uint8")
    graph = assert_close_to_float32(made, at_most=0)
    assert kinds(graph) == ["Table"]
    assert graph.nodes[0].inputs == ("x",)
    assert graph.tensors["y"].dtype == "uint8"


def test_moves_of_integers() -> None:
    made = Made((2, 3))
    made.apply(Transpose(permutation=(1, 0)), "xf", output="t")
    made.apply(Concat(axis=1), "t", "t", output="c")
    made.apply(Pad(begin=(0, 1), end=(2, 0)), "c", output="p")
    made.end("p", quantization=X)
    graph = assert_close_to_float32(made, at_most=0)
    assert kinds(graph) == ["Transpose", "Concat", "Pad"]
    assert graph.nodes[-1].operator == Pad(begin=(0, 1), end=(2, 0), value=-7)
    assert graph.nodes[-1].output == "y"


def test_operands_of_a_concat_are_requantized() -> None:
    made = Made((2, 3))
    made.input(Tensor(name="z", shape=(1, 3), dtype="uint8", quantization=Y))
    made.emit(Dequantize(), ["z"], "zf", dtype="float32")
    made.apply(Concat(axis=0), "xf", "zf", output="c")
    made.end("c", quantization=X)
    graph = assert_close_to_float32(made, at_most=0)
    assert kinds(graph) == ["Requantize", "Concat"]


def test_quantize_with_equal_and_other_scale() -> None:
    made = Made()
    made.end("xf", quantization=X)
    made.end("xf", "z", Y)
    graph = made.matched("y", "z")
    assert graph.nodes[0].operator == Identity()
    assert kinds(graph) == ["Identity", "Requantize"]
    feeds = random_inputs(graph)
    np.testing.assert_array_equal(evaluate(graph, feeds)["y"], feeds["x"])


def test_addition_of_two_dtypes() -> None:
    """ONNX Runtime has no QLinearAdd of two dtypes, and adds in float32."""
    made = Made()
    made.input(Tensor(name="z", shape=SHAPE, dtype="uint8", quantization=Y))
    made.emit(Dequantize(), ["z"], "zf", dtype="float32")
    made.apply(Add(), "xf", "zf", output="c")
    made.end("c", dtype="int8")
    graph = assert_close_to_float32(made, at_most=0)
    assert kinds(graph) == ["Add"]


@pytest.mark.parametrize("why", ["two take it", "it is an output", "other types", "a number in between"])
def test_regions_that_stay_in_float32(why: str) -> None:
    made = Made()
    made.dequantized_constant("w", WEIGHTS, W)
    outputs = ["y"]
    if why == "other types":
        made.input(Tensor(name="z", shape=SHAPE, dtype="uint8", quantization=Y))
        made.emit(Dequantize(), ["z"], "zf", dtype="float32")
        made.apply(Mul(), "xf", "zf", output="c")
    elif why == "a number in between":
        made.constant("n", RNG.normal(size=(2, 6, 6)).astype(np.float32))
        made.apply(Conv(windows=PLANE), "xf", "wf", output="d")
        made.apply(Mul(), "d", "n", output="c")
    else:
        made.apply(Conv(windows=PLANE), "xf", "wf", output="c")
    if why == "two take it":
        made.end("c", "z", X)
        outputs.append("z")
    elif why == "it is an output":
        outputs.append("c")
    made.end("c", dtype="int8")
    graph = made.matched(*outputs)
    assert "Quantize" in kinds(graph)
    feeds = random_inputs(graph)
    wanted = evaluate(made.graph("made", outputs), feeds)
    for name in outputs:
        np.testing.assert_allclose(evaluate(graph, feeds)[name], wanted[name], rtol=1e-5)


def test_a_graph_without_dequantize_is_unchanged() -> None:
    made = Builder()
    quantized_conv(made, None)
    graph = made.graph("made", ["sums"])
    assert match_regions(graph) is graph
