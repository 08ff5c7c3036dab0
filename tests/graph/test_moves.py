"""Moves of pixels and channels, and the passes that recognize and reorder them."""

import numpy as np
import pytest

from accel.base.errors import GraphError
from accel.graph.elementwise_operators import Requantize
from accel.graph.graph import Graph
from accel.graph.graph_builder import Builder
from accel.graph.graph_evaluation import evaluate
from accel.graph.graph_operator import Operator
from accel.graph.graph_tensor import Quantization, Tensor
from accel.graph.joined_slices import join_slices
from accel.graph.movement_operators import (
    Concat,
    DepthToSpace,
    Reshape,
    Slice,
    SpaceToDepth,
    Take,
    Transpose,
)
from accel.graph.repeated_values import compute_before_repeats
from accel.graph.shuffle_recognition import recognize_shuffles


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


def test_take_repeats_values() -> None:
    graph = chain((1, 2), Take(axis=1, indices=(0, 0, 1)))
    assert evaluate(graph, {"x": np.array([[5, 6]], np.int8)})["t0"].tolist() == [[5, 5, 6]]


def test_depth_to_space_is_the_inverse_of_space_to_depth() -> None:
    graph = chain((2, 3, 4, 6), SpaceToDepth(block=2), DepthToSpace(block=2))
    values = np.arange(144).astype(np.int8).reshape(2, 3, 4, 6)
    assert np.array_equal(evaluate(graph, {"x": values})["t1"], values)


def test_both_orders_of_depth_to_space() -> None:
    values = np.arange(8, dtype=np.int8).reshape(1, 8, 1, 1)
    for columns_first, expected in ((True, [0, 2, 4, 6]), (False, [0, 1, 2, 3])):
        graph = chain((1, 8, 1, 1), DepthToSpace(block=2, columns_first=columns_first))
        assert evaluate(graph, {"x": values})["t0"][0, 0].reshape(-1).tolist() == expected


@pytest.mark.parametrize(
    ("operator", "message"),
    [
        (Take(axis=4, indices=(0,)), "the axis is 4"),
        (Take(axis=1, indices=(0, 8)), "from 0 to 7"),
        (Take(axis=1, indices=()), "0 indices"),
        (DepthToSpace(block=3), "multiple of the block's square"),
        (SpaceToDepth(block=4), "it must divide both sizes"),
    ],
)
def test_impossible_moves_are_refused(operator: Operator, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        chain((1, 8, 6, 6), operator)


def test_a_channel_shuffle_is_one_take() -> None:
    shuffle = (Reshape(sizes=(1, 2, 4, 3, 5)), Transpose(permutation=(0, 2, 1, 3, 4)))
    graph = chain((1, 8, 3, 5), *shuffle, Reshape(sizes=(1, 8, 3, 5)))
    new = recognize_shuffles(graph)
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
    new = recognize_shuffles(graph)
    assert [node.operator for node in new.nodes] == [operator]
    assert_same(graph, new)


def test_a_pixel_unshuffle_is_space_to_depth() -> None:
    graph = chain(
        (1, 3, 8, 8),
        Reshape(sizes=(1, 3, 4, 2, 4, 2)),
        Transpose(permutation=(0, 3, 5, 1, 2, 4)),
        Reshape(sizes=(1, 12, 4, 4)),
    )
    assert kinds(recognize_shuffles(graph)) == ["SpaceToDepth"]
    assert_same(graph, recognize_shuffles(graph))


def test_other_transposes_stay() -> None:
    graph = chain(
        (1, 8, 3, 5),
        Reshape(sizes=(1, 2, 4, 3, 5)),
        Transpose(permutation=(0, 2, 1, 4, 3)),
        Reshape(sizes=(1, 8, 3, 5)),
    )
    assert recognize_shuffles(graph) is graph


def test_a_function_is_computed_before_values_are_repeated() -> None:
    takes = (Take(axis=2, indices=(0, 0, 1, 1)), Take(axis=3, indices=(0, 0, 1, 1)))
    graph = chain((1, 3, 2, 2), *takes, Requantize())
    new = compute_before_repeats(graph)
    assert kinds(new) == ["Requantize", "Take", "Take"]
    assert_same(graph, new)


def test_a_function_of_fewer_values_stays() -> None:
    graph = chain((1, 3, 2, 2), Take(axis=2, indices=(1,)), Requantize())
    assert compute_before_repeats(graph) is graph


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
    new = join_slices(graph)
    assert kinds(new) == ["Slice", "Concat"]
    assert new.nodes[-1].inputs == ("x", "s1")
    assert_same(graph, new)


def test_neighbouring_parts_are_one_slice() -> None:
    graph = sliced((1, 2), (3, 4), order=(1, 0, 1))
    new = join_slices(graph)
    assert [node.operator.sizes[1] for node in new.nodes if isinstance(node.operator, Slice)] == [4, 6]
    assert_same(graph, new)


def test_parts_in_another_order_stay() -> None:
    graph = sliced((0, 4), (4, 4), order=(1, 0))
    assert join_slices(graph) is graph
