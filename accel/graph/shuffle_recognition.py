"""Reshapes and Transposes that together are one move.

Exporters write a channel shuffle as Reshape to (N, groups, C / groups, H, W), Transpose of the two axes and
Reshape back, and pixel shuffles likewise.
"""

from collections.abc import Iterator
from math import isqrt

import numpy as np

from accel.graph.graph import Graph, Node, with_nodes
from accel.graph.graph_operator import Operator
from accel.graph.graph_tensor import QUANTIZED, Tensor
from accel.graph.movement_operators import DepthToSpace, Reshape, SpaceToDepth, Take, Transpose

_RANK = 4
"""(N, C, H, W)."""
_MOST_NODES = 4
"""Nodes of a chain at most."""


def recognize_shuffles(graph: Graph) -> Graph:
    """Replace chains of Reshape and Transpose of integers by Take, DepthToSpace or SpaceToDepth."""
    found = {node.output: move for node in graph.nodes if (move := _as_one_move(graph, node)) is not None}
    if not found:
        return graph
    return with_nodes(graph, [found.get(node.output, node) for node in graph.nodes])


def _as_one_move(graph: Graph, node: Node) -> Node | None:
    out = graph.tensors[node.output]
    if not isinstance(node.operator, Reshape) or len(out.shape) != _RANK or out.dtype not in QUANTIZED:
        return None
    chain = [node]
    while len(chain) < _MOST_NODES:
        before = graph.producers.get(chain[0].inputs[0])
        if before is None or not isinstance(before.operator, Reshape | Transpose):
            return None
        chain.insert(0, before)
        source = graph.tensors[before.inputs[0]]
        if len(source.shape) == _RANK and isinstance(before.operator, Reshape):
            break
    else:
        return None
    values = np.arange(source.size).reshape(source.shape)
    for one in chain:
        values = one.operator.evaluate(graph.operands(one), [values], graph.tensors[one.output])
    for operator in _candidates(source, out, values):
        expected = operator.evaluate([source], [np.arange(source.size).reshape(source.shape)], out)
        if np.array_equal(expected, values):
            return Node(name=node.name, operator=operator, inputs=(source.name,), output=node.output)
    return None


def _candidates(
    source: Tensor, out: Tensor, values: np.ndarray[tuple[int, ...], np.dtype[np.int64]]
) -> Iterator[Operator]:
    """Yield moves between two shapes."""
    if source.shape == out.shape:
        channels = values[0, :, 0, 0] // (source.shape[2] * source.shape[3])
        if (channels < source.shape[1]).all():
            yield Take(axis=1, indices=tuple(channels.tolist()))
        return
    large, small = (one.shape for one in ((source, out) if source.shape[1] > out.shape[1] else (out, source)))
    block = isqrt(large[1] // small[1])
    if (small[0], small[1] * block**2, small[2], small[3]) != (
        large[0],
        large[1],
        large[2] * block,
        large[3] * block,
    ):
        return
    if out.shape == small:
        yield DepthToSpace(block=block)
        yield DepthToSpace(block=block, columns_first=False)
    else:
        yield SpaceToDepth(block=block)
