import numpy as np
import pytest

from accel.graph.graph import Graph
from accel.graph.graph_evaluation import evaluate
from accel.graph.movement_operators import Reshape
from accel.graph.product_rows import drop_row_reshapes
from tests.network.networks import Small


def tokens(rows: tuple[int, ...], last: tuple[int, ...], *outputs: str) -> Graph:
    small = Small((2, 3, 8))
    small.builder.emit(Reshape(sizes=rows), ["x"], "rows")
    small.matmul("rows", "products", 8)
    small.builder.emit(Reshape(sizes=last), ["products"], "tokens")
    small.add("x", "tokens", "y") if last == (2, 3, 8) else None
    return small.graph(*outputs)


def test_a_product_takes_tokens_without_reshapes() -> None:
    graph = tokens((6, 8), (2, 3, 8), "y")
    found = drop_row_reshapes(graph)
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
    assert drop_row_reshapes(graph) is graph
