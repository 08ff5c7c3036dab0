"""Replacements in a graph: names of outputs and constants, readers, and repeated matches."""

import numpy as np

from accel.base.records import replace
from accel.graph.elementwise_operators import Clip
from accel.graph.graph import Graph
from accel.graph.graph_evaluation import evaluate
from accel.graph.graph_tensor import Array
from accel.graph.movement_operators import Identity, Reshape, Slice, Transpose
from accel.rewriting.byte_rules import CLIP_PAIR
from accel.rewriting.constant_rules import CONSTANT_FOLDING, IDENTITY
from accel.rewriting.elementwise_rules import FUNCTION_BEFORE_TRANSPOSE
from accel.rewriting.movement_rules import (
    PRODUCT_OF_ROWS,
    RESHAPE_OF_NOTHING,
    SLICE_OF_EVERYTHING,
    TRANSPOSE_PAIR,
)
from accel.rewriting.rule import Rule
from accel.rewriting.rule_application import simplify
from tests.network.networks import Small


def outputs(graph: Graph, shape: tuple[int, ...]) -> dict[str, Array]:
    values = np.random.default_rng(0).integers(-128, 128, shape, np.int8)
    found = evaluate(graph, {"x": values})
    return {name: found[name] for name in graph.outputs}


def assert_same(first: Graph, second: Graph) -> None:
    shape = first.tensors["x"].shape
    found, expected = outputs(second, shape), outputs(first, shape)
    assert list(found) == list(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)


def test_a_result_gets_the_name_of_the_output_that_equals_it() -> None:
    small = Small((2, 3))
    small.sigmoid("x", "s")
    small.builder.emit(Reshape(sizes=(2, 3)), ["s"], "y")
    small.clip("s", "z", 0, None)
    graph = small.graph("y", "z")
    found, _ = simplify(graph, [RESHAPE_OF_NOTHING])
    assert [(node.operator.kind, node.inputs, node.output) for node in found.nodes] == [
        ("Sigmoid", ("x",), "y"),
        ("Clip", ("y",), "z"),
    ]
    assert_same(graph, found)


def test_an_input_that_is_an_output_needs_an_identity() -> None:
    small = Small((2, 3))
    small.builder.emit(Reshape(sizes=(2, 3)), ["x"], "y")
    found, counts = simplify(small.graph("y"), [RESHAPE_OF_NOTHING, IDENTITY])
    assert [(node.operator, node.inputs) for node in found.nodes] == [(Identity(), ("x",))]
    assert counts == {"reshape-of-nothing": 1}


def test_two_outputs_that_are_equal_keep_their_names() -> None:
    small = Small((2, 3))
    small.sigmoid("x", "first")
    small.builder.emit(Identity(), ["first"], "second")
    graph = small.graph("first", "second")
    found, counts = simplify(graph, [IDENTITY])
    assert found is graph
    assert not counts


def test_folded_constants_keep_their_names() -> None:
    small = Small((2, 3))
    small.builder.constant(
        "c", np.arange(6, dtype=np.int8).reshape(3, 2), small.builder.tensors["x"].quantization
    )
    small.builder.emit(Transpose(permutation=(1, 0)), ["c"], "t")
    small.add("x", "t", "y")
    graph = small.graph("y", "t")
    found, _ = simplify(graph, [CONSTANT_FOLDING])
    assert [node.output for node in found.nodes] == ["y"]
    assert found.constants["t"].tolist() == [[0, 2, 4], [1, 3, 5]]


def test_a_change_repeats_the_match_of_a_pattern_that_is_deeper() -> None:
    """A pattern of three operators matches when the Slice between two of them has disappeared."""
    small = Small((2, 3, 8))
    small.builder.emit(Reshape(sizes=(6, 8)), ["x"], "before")
    small.builder.emit(Slice(starts=(0, 0), sizes=(6, 8), steps=(1, 1)), ["before"], "rows")
    small.matmul("rows", "products", 8)
    small.builder.emit(Reshape(sizes=(2, 3, 8)), ["products"], "y")
    graph = small.graph("y")
    orders: tuple[tuple[Rule, ...], ...] = (
        (PRODUCT_OF_ROWS, SLICE_OF_EVERYTHING),
        (SLICE_OF_EVERYTHING, PRODUCT_OF_ROWS),
    )
    for rules in orders:
        found, _ = simplify(graph, rules)
        assert [node.operator.kind for node in found.nodes] == ["MatMul"]
        assert_same(graph, found)


def test_a_match_is_repeated_when_a_tensor_loses_a_reader() -> None:
    """The first Transpose has two readers until the pair that reads it, too, has disappeared."""
    small = Small((2, 3))
    flip = Transpose(permutation=(1, 0))
    small.builder.emit(flip, ["x"], "t")
    small.clip("t", "y", -3, 90)
    small.builder.emit(flip, ["t"], "back")
    small.clip("back", "z", 0, None)
    graph = small.graph("y", "z")
    rules = [replace(FUNCTION_BEFORE_TRANSPOSE, simplifies=True), TRANSPOSE_PAIR]
    found, _ = simplify(graph, rules)
    assert {node.output: node.operator for node in found.nodes} == {
        "y": flip,
        "z": Clip(low=0),
        found.producers["y"].inputs[0]: Clip(low=-3, high=90),
    }
    assert_same(graph, found)


def test_rules_that_do_not_simplify_are_not_applied() -> None:
    small = Small((2, 3))
    small.builder.emit(Transpose(permutation=(1, 0)), ["x"], "t")
    small.clip("t", "y", -3, 90)
    graph = small.graph("y")
    assert simplify(graph, [FUNCTION_BEFORE_TRANSPOSE, CLIP_PAIR])[0] is graph
