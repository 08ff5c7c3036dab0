"""Invalid graphs, tensors and scales, and graph construction."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from accel.base.errors import GraphError, ShapeError
from accel.graph import graph as module
from accel.graph.elementwise_operators import Add, Clip, Dequantize, Function, Quantize, Softmax, Table
from accel.graph.graph import Graph, Node, build_graph
from accel.graph.graph_builder import Builder
from accel.graph.graph_evaluation import evaluate
from accel.graph.graph_tensor import Quantization, Tensor
from accel.graph.movement_operators import Identity, Pad, Reshape, Slice
from accel.graph.product_operators import MatMul
from accel.rewriting.constant_rules import CONSTANT_FOLDING
from accel.rewriting.rule_application import simplify
from tests.expect import refused

Q = Quantization.of(0.5, 3)


def tensor(
    name: str, shape: tuple[int, ...] = (2, 3), dtype: str = "int8", q: Quantization | None = Q
) -> Tensor:
    return Tensor(name=name, shape=shape, dtype=dtype, quantization=None if dtype == "float32" else q)


def node(name: str, *inputs: str, output: str, operator: Any = None) -> Node:
    return Node(name=name, operator=operator or Identity(), inputs=inputs, output=output)


def build(tensors: list[Tensor], nodes: list[Node], **constants: Any) -> Graph:
    inputs = [one.name for one in tensors if one.name.startswith("x")]
    return build_graph("made", tensors, constants, nodes, inputs, ["y"])


# --- scales and tensors ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scale", "zero", "axis", "message"),
    [
        (float("nan"), 0, None, "a scale is nan; it must be a positive finite number"),
        (0.0, 0, None, "a scale is 0.0; it must be a positive finite number"),
        ([1.0, -1.0], 0, 0, "a scale is -1.0; it must be a positive finite number"),
        (1e-50, 0, None, "a scale is 0.0; it must be a positive finite number"),
        ([1.0, 2.0], 0, None, "there are 2 scales; one for each channel needs an axis"),
        ([1.0, 2.0], [0] * 3, 0, "there are 2 scales and 3 zero points; there must be as many, or one"),
        ([], 0, 0, "there are 0 scales and 1 zero points; there must be as many, or one"),
        (
            [[1.0]],
            0,
            0,
            "scales have the shape (1, 1) and zero points (1,); both must be one, or one for each channel",
        ),
    ],
)
def test_invalid_scales(scale: Any, zero: Any, axis: int | None, message: str) -> None:
    with refused(GraphError, message):
        Quantization.of(scale, zero, axis)


def test_a_single_scale_is_repeated() -> None:
    many = Quantization.of(np.float32(0.1), [1, 2, 3], 1)
    assert many.scale == (float(np.float32(0.1)),) * 3
    assert many.zeros_along(3).shape == many.scales_along(3).shape == (1, 3, 1)
    assert (many.is_per_tensor, Quantization.of([0.5], [3], 1)) == (False, Q)
    assert Q.scales().shape == ()
    with refused(GraphError, "tensor 't' has 3 scales; here it must have one"):
        tensor("t", q=many).scale_and_zero  # noqa: B018
    with refused(GraphError, "tensor 't' has no scale and zero point; its operators need them"):
        tensor("t", q=None).scale_and_zero  # noqa: B018


@pytest.mark.parametrize(
    ("shape", "dtype", "q", "message"),
    [
        ((2, 0), "int8", None, "tensor 't' has the shape (2, 0); sizes must be positive"),
        ((1,) * 9, "int8", None, "tensor 't' has 9 dimensions; there may be 8"),
        (
            (2,),
            "complex64",
            None,
            "tensor 't' is complex64; graphs have float32, int8, uint8, int32, int64, bool, float16, "
            "float64, int16, uint16, uint32, uint64",
        ),
        (
            (2**29,),
            "int32",
            None,
            "tensor 't' of shape (536870912,) takes 2147483648 bytes; it may take 1073741824",
        ),
        ((2,), "uint8", Quantization.of(1, -1), "a zero point of tensor 't' is -1; uint8 has 0 to 255"),
        (
            (2,),
            "int8",
            Quantization.of([1, 1], 0, 1),
            "tensor 't' of shape (2,) has 2 scales along axis 1; there must be one for each index",
        ),
    ],
)
def test_invalid_tensors(shape: tuple[int, ...], dtype: str, q: Quantization | None, message: str) -> None:
    with refused(GraphError, message):
        tensor("t", shape, dtype, q)


# --- graphs ----------------------------------------------------------------------------------------


def test_nodes_are_sorted_and_dead_nodes_removed() -> None:
    tensors = [tensor(name) for name in ("x", "a", "b", "y")]
    nodes = [node("3", "b", output="y"), node("1", "x", output="a"), node("2", "a", output="b")]
    graph = build(
        [*tensors, tensor("z"), tensor("c")], [*nodes, node("4", "x", output="z")], c=np.zeros(1, np.int8)
    )
    assert [one.name for one in graph.nodes] == ["1", "2", "3"]
    assert list(graph.tensors) == ["x", "a", "b", "y"]
    assert graph.producers["b"].name == "2"
    assert [one.name for one in graph.consumers()["a"]] == ["2"]


@pytest.mark.parametrize(
    ("names", "nodes", "message"),
    [
        (
            "xaby",
            [("1", "b", "a"), ("2", "a", "b"), ("3", "b", "y")],
            "nodes '(1', '2', '1|2', '1', '2)' wait for",
        ),
        ("xy", [("1", "q", "y")], "node '1' takes 'q', which is not an input, a constant or a node's result"),
        ("xy", [("1", "x", "y"), ("2", "x", "y")], "tensor 'y' comes from two places; each must have one"),
        ("xy", [("1", "y", "x")], "tensor 'x' comes from two places; each must have one"),
        ("xx", [], "tensor 'x' is there twice; names must be unique"),
        ("xa", [("1", "x", "a")], "output 'y' is not a tensor of the graph; valid are a, x"),
    ],
)
def test_invalid_graphs(names: str, nodes: list[Any], message: str) -> None:
    pattern = message if message.startswith("nodes") else re.escape(message)
    with pytest.raises(GraphError, match=f"^{pattern}"):
        build([tensor(name) for name in names], [node(n, i, output=o) for n, i, o in nodes])


def test_limits_of_size(monkeypatch: pytest.MonkeyPatch) -> None:
    tensors, nodes = [tensor("x"), tensor("y")], [node("1", "x", output="y")]
    monkeypatch.setattr(module, "MAX_BYTES", 11)
    with refused(GraphError, "the graph's tensors take 12 bytes together; they may take 11"):
        build(tensors, nodes)
    monkeypatch.setattr(module, "MAX_NODES", 0)
    with refused(GraphError, "the graph has 1 nodes; it may have 0"):
        build(tensors, nodes)


@pytest.mark.parametrize(
    ("operator", "out", "message"),
    [
        (Identity(), tensor("y", (3, 2)), "its result is (2, 3); tensor 'y' is (3, 2)"),
        (
            Identity(),
            tensor("y", q=Quantization.of(1)),
            "Identity: tensors 'x' and 'y' have different scales or zero points; it moves values and does "
            "not change them",
        ),
        (
            Identity(),
            tensor("y", dtype="uint8"),
            "Identity: its tensors are 'x' int8, 'y' uint8; they must have one dtype",
        ),
        (Dequantize(), tensor("y"), "Dequantize: tensor 'y' is int8; it must be float32"),
        (Quantize(), tensor("y"), "Quantize: tensor 'x' is int8; it must be float32"),
        (Add(), tensor("y"), "Add: it has 1 operands; it must have 2"),
        (MatMul(), tensor("y"), "MatMul: it has 1 operands; it must have 2 or 3"),
        (Clip(low=0.5), tensor("y"), "Clip: a bound is 0.5; int8 has integers from -128 to 127"),
        (Clip(high=128), tensor("y"), "Clip: a bound is 128; int8 has integers from -128 to 127"),
        (Softmax(axes=(2,)), tensor("y"), "Softmax: axes are (2,); they must be among those of (2, 3)"),
        (Table(values=(0,) * 255), tensor("y"), "Table: it has 255 entries; there must be 256 of int8"),
        (Function(function="Sine"), tensor("y"), "Sine: it has the parameters {}; no such function is known"),
        (
            Reshape(sizes=(5,)),
            tensor("y"),
            "Reshape: the shape is (5,); it must have as many values as (2, 3)",
        ),
        (
            Pad(begin=(0, 0), end=(0, 0), value=200),
            tensor("y"),
            "Pad: its value is 200; int8 has integers from -128 to 127",
        ),
        (
            Slice(starts=(0, 2), sizes=(2, 2), steps=(1, 1)),
            tensor("y"),
            "Slice: starts, sizes and steps are ((0, 2), (2, 2), (1, 1)); they must stay within the operand, "
            "(2, 3)",
        ),
    ],
)  # fmt: skip
def test_operators_refuse_wrong_tensors(operator: Any, out: Tensor, message: str) -> None:
    with refused(GraphError, f"node '1': {message}"):
        build([tensor("x"), out], [node("1", "x", output="y", operator=operator)])


def test_constants_must_match_their_tensors() -> None:
    nodes = [node("1", "c", output="y")]
    message = "constant 'c' is int8 (3,); its tensor is int8 (2, 3)"
    with refused(GraphError, message):
        build([tensor("c"), tensor("y")], nodes, c=np.zeros(3, np.int8))
    graph = build([tensor("c"), tensor("y")], nodes, c=np.arange(6, dtype=np.int8).reshape(3, 2).T)
    assert graph.constants["c"].flags.c_contiguous
    folded, _ = simplify(graph, [CONSTANT_FOLDING])
    assert (folded.nodes, folded.constants["y"].tolist()) == ((), [[0, 2, 4], [1, 3, 5]])
    assert evaluate(folded, {}) == {}


# --- runs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "input 'x' is missing; the network takes int8[2, 3]"),
        ({"z": 1}, "'z' is not an input of the network; valid are x"),
        ({"x": np.zeros((2, 3))}, "input 'x' has dtype float64; it must be int8"),
        ({"x": np.zeros((3, 2), np.int8)}, "input 'x' has shape [3, 2]; it must be [2, 3]"),
    ],
)
def test_invalid_inputs(inputs: dict[str, Any], message: str) -> None:
    graph = build([tensor("x"), tensor("y")], [node("1", "x", output="y")])
    with refused(ShapeError, message):
        evaluate(graph, inputs)


# --- construction ----------------------------------------------------------------------------------


def test_a_quantization_found_later_propagates() -> None:
    """It reaches the sources of moved values, and other results of these sources."""
    made = Builder()
    made.input(tensor("x", q=None))
    made.emit(Identity(), ["x"], "a")
    made.emit(Clip(low=0), ["a"], "b")
    made.emit(Identity(), ["x"], "c")
    assert made.require_quantization("b", Q) == "b"
    other = made.require_quantization("a", Quantization.of(9))
    assert (other, made.tensors[other].quantization) == ("a/reinterpreted", Quantization.of(9))
    graph = made.graph("made", ["b", "c", other])
    assert {graph.tensors[name].quantization for name in "xabc"} == {Q}


def test_a_constant_with_two_scales_is_two_constants() -> None:
    made = Builder()
    made.input(tensor("x"))
    made.constant("c", np.ones(3, np.int8))
    first, second = made.require_quantization("c", Q), made.require_quantization("c", Quantization.of(9))
    assert (first, second, made.require_quantization("c", Q)) == ("c", "c/reinterpreted", "c")
    made.emit(Add(), ["x", first], "a", quantization=Q)
    made.emit(Add(), ["a", second], "y", quantization=Q)
    graph = made.graph("made", ["y"])
    assert graph.constants.keys() == {"c", "c/reinterpreted"}
