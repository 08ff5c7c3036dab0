"""Moves of pixels and channels."""

import numpy as np
import pytest

from accel.base.errors import GraphError
from accel.graph.graph import Graph
from accel.graph.graph_builder import Builder
from accel.graph.graph_evaluation import evaluate
from accel.graph.graph_operator import Operator
from accel.graph.graph_tensor import Quantization, Tensor
from accel.graph.movement_operators import DepthToSpace, SpaceToDepth, Take


def chain(shape: tuple[int, ...], *operators: Operator) -> Graph:
    """A graph of int8 operators, one after another."""
    builder = Builder()
    builder.input(Tensor(name="x", shape=shape, dtype="int8", quantization=Quantization.of(0.5, 3)))
    name = "x"
    for number, operator in enumerate(operators):
        name = builder.emit(operator, [name], f"t{number}")
    return builder.graph("chain", [name])


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
