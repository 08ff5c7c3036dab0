"""Elementwise operators before Transposes and Reshapes, where a product of two tensors reads the result.

In attention, a Reshape and a Transpose separate the heads, and a Mul scales them. Scaling first gives the
same values. Then the layer that scales reads its operand as the layer before has written it, and it stores
its result where the product reads it.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace

from accel.base.unique_names import Names
from accel.graph.elementwise_operators import Clip, Function, Mul, Requantize, Table
from accel.graph.graph import Graph, Node, with_nodes
from accel.graph.graph_tensor import QUANTIZED, Tensor
from accel.graph.movement_operators import Identity, Reshape, Transpose
from accel.graph.product_operators import MatMul

_MOVES = Identity | Reshape | Transpose
_UNIFORM = Clip | Function | Mul | Requantize | Table
"""Operators that treat all values alike, if further operands are single values."""


def sink_moves(graph: Graph) -> Graph:
    """Exchange moves with the elementwise operators that follow them, before products of two tensors.

    For example, Transpose, Mul by 0.125, MatMul becomes Mul, Transpose, MatMul.
    """
    wanted = _read_by_products(graph)
    if not wanted:
        return graph
    names = Names()
    names.reserve([*graph.tensors, *(node.name for node in graph.nodes)])
    producers, tensors = {node.output: node for node in graph.nodes}, dict(graph.tensors)
    readers = Counter(name for node in graph.nodes for name in {*node.inputs}) + Counter(graph.outputs)
    for first in graph.nodes:
        if first.output not in wanted or not isinstance(first.operator, _UNIFORM):
            continue
        node = first
        while (move := _move_before(graph, node, producers, tensors)) is not None:
            if readers[move.output] != 1:
                break
            source, out = tensors[move.inputs[0]], tensors[node.output]
            before = replace(out, name=names.fresh(f"{first.output}/before"), shape=source.shape)
            tensors[before.name] = before
            del producers[move.output]
            producers[out.name] = replace(move, inputs=(before.name,), output=out.name)
            inputs = tuple(source.name if name == move.output else name for name in node.inputs)
            node = replace(node, inputs=inputs, output=before.name)
            producers[before.name] = node
    used = {*graph.inputs, *graph.constants, *producers}
    kept = [one for name, one in tensors.items() if name in used]
    return with_nodes(graph, producers.values(), tensors=kept)


def _read_by_products(graph: Graph) -> Collection[str]:
    """Return the tensors that reach a product of two tensors through moves and elementwise operators."""
    found: set[str] = set()
    for node in reversed(graph.nodes):
        varying = [name for name in node.inputs if name not in graph.constants]
        is_product = isinstance(node.operator, MatMul) and graph.tensors[node.output].dtype in QUANTIZED
        if (is_product and node.inputs[1] in varying) or (
            node.output in found and isinstance(node.operator, _MOVES | _UNIFORM)
        ):
            found.update(varying)
    return found


def _move_before(
    graph: Graph, node: Node, producers: Mapping[str, Node], tensors: Mapping[str, Tensor]
) -> Node | None:
    """Return the move whose result an elementwise operator reads, if they can be exchanged."""
    varying = [name for name in node.inputs if name not in graph.constants]
    move = producers.get(varying[0]) if len(varying) == 1 else None
    if move is None or not isinstance(move.operator, _MOVES):
        return None
    rank = len(tensors[move.inputs[0]].shape)
    constants = [tensors[name] for name in node.inputs if name in graph.constants]
    has_equal_values = all(_is_uniform(tensors[name]) for name in (move.output, node.output))
    if not has_equal_values or any(one.size != 1 or len(one.shape) > rank for one in constants):
        return None
    return move


def _is_uniform(tensor: Tensor) -> bool:
    """Whether a tensor has one scale and zero point for all values."""
    return tensor.dtype in QUANTIZED and (tensor.quantization is None or tensor.quantization.is_per_tensor)
