"""Rules of moves: the passes that they are part of, and places where they do not apply."""

import numpy as np
import pytest

from accel.graph.elementwise_operators import Requantize
from accel.graph.graph import Graph
from accel.graph.graph_builder import Builder
from accel.graph.graph_evaluation import evaluate
from accel.graph.graph_operator import Operator
from accel.graph.graph_tensor import Quantization, Tensor
from accel.graph.movement_operators import (
    Concat,
    DepthToSpace,
    Reshape,
    Slice,
    Take,
    Transpose,
)
from accel.rewriting.elementwise_rules import FUNCTION_BEFORE_REPEATS
from accel.rewriting.movement_rules import CONCAT_OF_SLICES, PRODUCT_OF_ROWS, SHUFFLE_RULES
from accel.rewriting.rule import Rule
from accel.rewriting.rule_application import simplify
from tests.network.networks import Small


def simplified(graph: Graph, *rules: Rule) -> Graph:
    return simplify(graph, rules)[0]


def chain(shape: tuple[int, ...], *operators: Operator) -> Graph:
    """A graph of int8 operators, one after another."""
    builder = Builder()
    builder.input(Tensor(name="x", shape=shape, dtype="int8", quantization=Quantization.of(0.5, 3)))
    name = "x"
    for number, operator in enumerate(operators):
        quantization = Quantization.of(0.25, -4) if isinstance(operator, Requantize) else None
        name = builder.emit(operator, [name], f"t{number}", dtype="int8", quantization=quantization)
    return builder.graph("chain", [name])


def kinds(graph: Graph) -> list[str]:
    return [node.operator.kind for node in graph.nodes]


def assert_same(first: Graph, second: Graph) -> None:
    shape = first.tensors["x"].shape
    values = np.random.default_rng(0).integers(-128, 128, shape).astype(np.int8)
    found, expected = (evaluate(one, {"x": values})[one.outputs[0]] for one in (second, first))
    assert np.array_equal(found, expected)


def test_a_channel_shuffle_is_one_take() -> None:
    shuffle = (Reshape(sizes=(1, 2, 4, 3, 5)), Transpose(permutation=(0, 2, 1, 3, 4)))
    graph = chain((1, 8, 3, 5), *shuffle, Reshape(sizes=(1, 8, 3, 5)))
    new = simplified(graph, *SHUFFLE_RULES)
    assert [node.operator for node in new.nodes] == [Take(axis=1, indices=(0, 4, 1, 5, 2, 6, 3, 7))]
    assert_same(graph, new)


@pytest.mark.parametrize(
    ("sizes", "permutation", "operator"),
    [
        ((1, 2, 2, 3, 4, 4), (0, 3, 4, 1, 5, 2), DepthToSpace(block=2)),
        ((1, 3, 2, 2, 4, 4), (0, 1, 4, 2, 5, 3), DepthToSpace(block=2, columns_first=False)),
    ],
)
def test_a_pixel_shuffle_is_depth_to_space(
    sizes: tuple[int, ...], permutation: tuple[int, ...], operator: Operator
) -> None:
    graph = chain(
        (1, 12, 4, 4),
        Reshape(sizes=sizes),
        Transpose(permutation=permutation),
        Reshape(sizes=(1, 3, 8, 8)),
    )
    new = simplified(graph, *SHUFFLE_RULES)
    assert [node.operator for node in new.nodes] == [operator]
    assert_same(graph, new)


def test_a_pixel_unshuffle_is_space_to_depth() -> None:
    graph = chain(
        (1, 3, 8, 8),
        Reshape(sizes=(1, 3, 4, 2, 4, 2)),
        Transpose(permutation=(0, 3, 5, 1, 2, 4)),
        Reshape(sizes=(1, 12, 4, 4)),
    )
    assert kinds(simplified(graph, *SHUFFLE_RULES)) == ["SpaceToDepth"]
    assert_same(graph, simplified(graph, *SHUFFLE_RULES))


def test_other_transposes_stay() -> None:
    graph = chain(
        (1, 8, 3, 5),
        Reshape(sizes=(1, 2, 4, 3, 5)),
        Transpose(permutation=(0, 2, 1, 4, 3)),
        Reshape(sizes=(1, 8, 3, 5)),
    )
    assert simplified(graph, *SHUFFLE_RULES) is graph


def test_a_function_is_computed_before_values_are_repeated() -> None:
    takes = (Take(axis=2, indices=(0, 0, 1, 1)), Take(axis=3, indices=(0, 0, 1, 1)))
    graph = chain((1, 3, 2, 2), *takes, Requantize())
    new = simplified(graph, FUNCTION_BEFORE_REPEATS)
    assert kinds(new) == ["Requantize", "Take", "Take"]
    assert_same(graph, new)


def test_a_function_of_fewer_values_stays() -> None:
    graph = chain((1, 3, 2, 2), Take(axis=2, indices=(1,)), Requantize())
    assert simplified(graph, FUNCTION_BEFORE_REPEATS) is graph


def sliced(*parts: tuple[int, int], order: tuple[int, ...]) -> Graph:
    """Slices of eight channels, by start and count, and a Concat of some of them."""
    builder = Builder()
    builder.input(Tensor(name="x", shape=(1, 8, 2, 2), dtype="int8", quantization=Quantization.of(0.5, 3)))
    for number, (start, count) in enumerate(parts):
        operator = Slice(starts=(0, start, 0, 0), sizes=(1, count, 2, 2), steps=(1, 1, 1, 1))
        builder.emit(operator, ["x"], f"s{number}")
    builder.emit(Concat(axis=1), [f"s{number}" for number in order], "y")
    return builder.graph("sliced", ["y"])


def test_halves_that_are_joined_are_the_whole() -> None:
    graph = sliced((0, 4), (4, 4), order=(0, 1, 1))
    new = simplified(graph, CONCAT_OF_SLICES)
    assert kinds(new) == ["Slice", "Concat"]
    assert new.nodes[-1].inputs == ("x", "s1")
    assert_same(graph, new)


def test_neighbouring_parts_are_one_slice() -> None:
    graph = sliced((1, 2), (3, 4), order=(1, 0, 1))
    new = simplified(graph, CONCAT_OF_SLICES)
    assert [node.operator.sizes[1] for node in new.nodes if isinstance(node.operator, Slice)] == [4, 6]
    assert_same(graph, new)


def test_parts_in_another_order_stay() -> None:
    graph = sliced((0, 4), (4, 4), order=(1, 0))
    assert simplified(graph, CONCAT_OF_SLICES) is graph


def tokens(rows: tuple[int, ...], last: tuple[int, ...], *outputs: str) -> Graph:
    small = Small((2, 3, 8))
    small.builder.emit(Reshape(sizes=rows), ["x"], "rows")
    small.matmul("rows", "products", 8)
    small.builder.emit(Reshape(sizes=last), ["products"], "tokens")
    small.add("x", "tokens", "y") if last == (2, 3, 8) else None
    return small.graph(*outputs)


def test_a_product_takes_tokens_without_reshapes() -> None:
    graph = tokens((6, 8), (2, 3, 8), "y")
    found = simplified(graph, PRODUCT_OF_ROWS)
    assert [node.operator.kind for node in found.nodes] == ["MatMul", "Add"]
    assert found.tensors["tokens"] == graph.tensors["tokens"]
    values = {"x": np.random.default_rng(0).integers(-128, 128, (2, 3, 8), np.int8)}
    np.testing.assert_array_equal(evaluate(found, values)["y"], evaluate(graph, values)["y"])


@pytest.mark.parametrize(
    ("rows", "last", "outputs"),
    [
        ((3, 16), (3, 8), ["tokens"]),  # another depth
        ((6, 8), (3, 2, 8), ["tokens"]),  # other rows
        ((6, 8), (2, 3, 8), ["y", "products"]),  # the matrix itself is a result
    ],
)
def test_other_reshapes_stay(rows: tuple[int, ...], last: tuple[int, ...], outputs: list[str]) -> None:
    graph = tokens(rows, last, *outputs)
    assert simplified(graph, PRODUCT_OF_ROWS) is graph
