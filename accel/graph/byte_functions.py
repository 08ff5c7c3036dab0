"""Functions of one byte: elementwise operators whose only varying operand is one int8 or uint8 tensor.

For example, ``x * Sigmoid(x)`` is one function of x. The operators compute its 256 results.
"""

from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from accel.base.records import replace
from accel.graph.elementwise_operators import (
    Add,
    Binary,
    Clip,
    Function,
    Mul,
    Reinterpret,
    Requantize,
    Table,
)
from accel.graph.graph import Graph, Node, with_nodes
from accel.graph.graph_tensor import QUANTIZED, Array, Tensor
from accel.graph.quantize_values import all_values

_OPERATORS = Add | Binary | Clip | Function | Mul | Reinterpret | Requantize | Table
_CHEAP = Clip | Requantize | Reinterpret
"""A layer's requantization, or a scale and a bias, can compute functions of only these."""


class ByteFunction(Struct, frozen=True):
    """A function of the values of one tensor.

    Attributes:
        results: by ascending value of the operand.
        is_composed: whether several operators compute it.
    """

    operand: str
    results: Array
    is_composed: bool


def byte_function(graph: Graph, node: Node) -> ByteFunction | None:
    varying = {name for name in node.inputs if name not in graph.constants}
    if len(varying) != 1:
        return None
    (name,) = varying
    identity = {name: all_values(graph.tensors[name].dtype)} if _is_byte(graph.tensors[name]) else {}
    results = _results(graph, node, graph.tensors[name], identity)
    return None if results is None else ByteFunction(name, results, is_composed=False)


def by_byte(results: Array, operand_dtype: str) -> tuple[int, ...]:
    """Reorder results of ascending values by byte: first 0 to 127, then -128 to -1 or 128 to 255."""
    least = np.iinfo(operand_dtype).min
    return tuple(np.roll(results, least).tolist())


def fold_byte_functions(graph: Graph) -> Graph:
    """Replace functions of one byte in several operators by Tables, unless all are of :data:`_CHEAP`."""
    folded: dict[str, Node] = {}
    roots: dict[str, ByteFunction] = {}
    for node in graph.nodes:
        found = _composed(graph, node, roots)
        if found is None:
            continue
        roots[node.output] = found
        if found.is_composed:
            entries = tuple(int(value) for value in found.results)
            folded[node.output] = replace(node, operator=Table(values=entries), inputs=(found.operand,))
    if not folded:
        return graph
    return with_nodes(graph, [folded.get(node.output, node) for node in graph.nodes])


def _composed(graph: Graph, node: Node, roots: Mapping[str, ByteFunction]) -> ByteFunction | None:
    varying = [name for name in dict.fromkeys(node.inputs) if name not in graph.constants]
    candidates = [{name, roots[name].operand} if name in roots else {name} for name in varying]
    if not candidates or not isinstance(node.operator, _OPERATORS):
        return None
    common = set.intersection(*candidates)
    if not common:
        return None
    farthest = {roots[name].operand for name in common if name in roots} & common
    (root,) = farthest or common
    tensor = graph.tensors[root]
    if not _is_byte(tensor):
        return None
    known = {name: roots[name].results for name in varying if name != root}
    results = _results(graph, node, tensor, known | {root: all_values(tensor.dtype)})
    if results is None:
        return None
    before = [graph.producers[name].operator for name in varying if name != root]
    is_composed = bool(before) and not all(isinstance(one, _CHEAP) for one in [node.operator, *before])
    is_composed = is_composed or any(roots[name].is_composed for name in known)
    return ByteFunction(root, results, is_composed=is_composed)


def _results(graph: Graph, node: Node, root: Tensor, known: Mapping[str, Array]) -> Array | None:
    """Evaluate a node on all values of ``root``, given the operands' results."""
    operands, out = [graph.tensors[name] for name in node.inputs], graph.tensors[node.output]
    if not isinstance(node.operator, _OPERATORS) or not _is_byte(out) or out.shape != root.shape:
        return None
    arrays: list[Array] = []
    for one in operands:
        if one.name in graph.constants:
            if graph.constants[one.name].size != 1:
                return None
            arrays.append(graph.constants[one.name].reshape(1))
        elif one.name in known and one.shape == root.shape:
            arrays.append(known[one.name])
        else:
            return None
    found = node.operator.evaluate(operands, arrays, out)
    return np.ascontiguousarray(np.broadcast_to(found, 256)).astype(out.dtype)


def _is_byte(tensor: Tensor) -> bool:
    quantization = tensor.quantization
    return tensor.dtype in QUANTIZED and (quantization is None or quantization.is_per_tensor)
