"""Moves of pixels and channels as copies of boxes, which numpy executes here as the driver does."""

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.deployment.deployment_steps import Move
from accel.deployment.host_steps import host_steps
from accel.graph.graph import Graph
from accel.graph.graph_builder import Builder
from accel.graph.graph_evaluation import evaluate
from accel.graph.graph_operator import Operator
from accel.graph.graph_tensor import Array, Tensor
from accel.graph.movement_operators import DepthToSpace, SpaceToDepth, Take


def one_node(operator: Operator, shape: tuple[int, ...]) -> Graph:
    builder = Builder()
    builder.input(Tensor(name="x", shape=shape, dtype="int8"))
    return builder.graph("move", [builder.emit(operator, ["x"], "y")])


def executed(moves: Iterable[Move], source: Array, size: int) -> Array:
    target = np.full(size, 99, source.dtype)
    for move in moves:
        for position in np.ndindex(*move.sizes):
            at = move.target_start + int(np.dot(position, move.target_strides))
            target[at] = source.reshape(-1)[move.source_start + int(np.dot(position, move.source_strides))]
    return target


def check(graph: Graph, count: int | None = None) -> None:
    (node,) = graph.nodes
    moves = [detail for detail, _, _ in host_steps(graph, node).steps]
    assert all(isinstance(move, Move) for move in moves)
    shape = graph.tensors["x"].shape
    values = np.random.default_rng(0).integers(-128, 128, shape).astype(np.int8)
    expected = evaluate(graph, {"x": values})["y"]
    found = executed([one for one in moves if isinstance(one, Move)], values, expected.size)
    assert np.array_equal(found.reshape(expected.shape), expected)
    assert count is None or len(moves) == count


@given(st.lists(st.integers(0, 4), min_size=1, max_size=9), st.integers(0, 2))
def test_take(indices: list[int], axis: int) -> None:
    check(one_node(Take(axis=axis, indices=tuple(indices)), (5, 5, 5)))


def test_a_resize_takes_a_step_for_each_repeat() -> None:
    check(one_node(Take(axis=1, indices=(0, 0, 0, 1, 1, 1, 2, 2, 2)), (2, 3, 4)), count=3)


@pytest.mark.parametrize(
    "operator", [DepthToSpace(block=2), DepthToSpace(block=2, columns_first=False), SpaceToDepth(block=2)]
)
def test_pixels(operator: Operator) -> None:
    check(one_node(operator, (2, 8, 4, 6)), count=4)
