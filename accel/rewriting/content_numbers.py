"""Equal numbers for equal operators, tensor types, constants and values, also of tensors with other names."""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Hashable, Mapping

import numpy as np

from accel.graph.graph import Graph, Node
from accel.graph.graph_operator import Operator
from accel.graph.graph_tensor import Array, Tensor


class ContentNumbers:
    """Numbers for all graphs of a search."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._operators: dict[int, tuple[Operator, int]] = {}
        self._types: dict[int, tuple[Tensor, int]] = {}
        self._digests: dict[int, tuple[weakref.ref[Array], bytes]] = {}

    def number(self, content: Hashable) -> int:
        return self._numbers.setdefault(content, len(self._numbers))

    def operator(self, operator: Operator) -> int:
        known = self._operators.get(id(operator))
        if known is None:
            # the reference prevents a reuse of the id
            known = self._operators[id(operator)] = operator, self.number(_content(operator))
        return known[1]

    def type_of(self, tensor: Tensor) -> int:
        known = self._types.get(id(tensor))
        if known is None:
            content = (tensor.shape, tensor.dtype, tensor.quantization)
            known = self._types[id(tensor)] = tensor, self.number(content)
        return known[1]

    def constant(self, tensor: Tensor, values: Array) -> int:
        return self.number((self.type_of(tensor), self._digest(values)))

    def _digest(self, values: Array) -> bytes:
        known = self._digests.get(id(values))
        if known is not None and known[0]() is values:
            return known[1]
        digest = hashlib.blake2b(np.ascontiguousarray(values).data, digest_size=16).digest()
        self._digests[id(values)] = weakref.ref(values), digest
        return digest

    def values(self, graph: Graph) -> dict[str, int]:
        """Number each tensor's value: equal numbers mean equal values, for all inputs."""
        found = {name: self.number(("input", name)) for name in graph.inputs}
        for name, values in graph.constants.items():
            found[name] = self.constant(graph.tensors[name], values)
        for node in graph.nodes:
            found[node.output] = self.number(self._node(graph, node, found))
        return found

    def _node(self, graph: Graph, node: Node, values: Mapping[str, int]) -> tuple[int, ...]:
        operands = (values[name] for name in node.inputs)
        return self.operator(node.operator), self.type_of(graph.tensors[node.output]), *operands

    def graph(self, graph: Graph) -> int:
        """Number a graph. Names of inner tensors do not matter."""
        values = self.values(graph)
        nodes = sorted(values[node.output] for node in graph.nodes)
        outputs = (values[name] for name in graph.outputs)
        return self.number(("graph", *nodes, -1, *outputs))


def _content(operator: Operator) -> Hashable:
    """An operator with unhashable attributes equals only itself."""
    try:
        hash(operator)
    except TypeError:
        return operator.kind, id(operator)
    return operator.kind, operator
