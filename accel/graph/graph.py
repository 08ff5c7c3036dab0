"""A graph: tensors, constants and nodes in an order in which they can be carried out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

import numpy as np

from accel.base.errors import GraphError, nearest
from accel.graph.operator import Operator
from accel.graph.tensor import Array, Tensor

MAX_NODES = 100_000
"""Of a graph."""
MAX_BYTES = 1 << 33
"""Of all tensors of a graph together."""


@dataclass(frozen=True, kw_only=True)
class Node:
    """An operator between tensors.

    Attributes:
        name: unique in the graph.
        operator: with its attributes.
        inputs: names of tensors.
        output: the name of a tensor.
    """

    name: str
    operator: Operator
    inputs: tuple[str, ...]
    output: str


@dataclass(frozen=True, kw_only=True)
class Graph:
    """A network.

    Attributes:
        name: of the network.
        tensors: by name.
        constants: values of those that are known, C-contiguous, in the tensors' shapes and dtypes.
        nodes: each behind those whose results it takes.
        inputs: names of the tensors that a run is given.
        outputs: names of the tensors that it is for.
    """

    name: str
    tensors: Mapping[str, Tensor]
    constants: Mapping[str, Array]
    nodes: tuple[Node, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    producers: Mapping[str, Node] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "producers", {node.output: node for node in self.nodes})

    def operands(self, node: Node) -> list[Tensor]:
        """A node's operands."""
        return [self.tensors[name] for name in node.inputs]

    def consumers(self) -> dict[str, list[Node]]:
        """The nodes that take each tensor, each as often as it takes it."""
        found: dict[str, list[Node]] = {name: [] for name in self.tensors}
        for node in self.nodes:
            for name in node.inputs:
                found[name].append(node)
        return found

    def macs(self, node: Node) -> int:
        """A node's nominal MACs."""
        return node.operator.macs(self.operands(node), self.tensors[node.output])


def build_graph(
    name: str,
    tensors: Iterable[Tensor],
    constants: Mapping[str, Array],
    nodes: Iterable[Node],
    inputs: Sequence[str],
    outputs: Sequence[str],
) -> Graph:
    """A graph that holds together, its nodes in order, without what no output needs.

    Args:
        name, tensors, constants, inputs, outputs: as in :class:`Graph`.
        nodes: in any order.

    Raises:
        GraphError: a cycle, a tensor that nothing brings or that two nodes bring, an operator whose operands
            do not fit, an output that nobody knows, or a graph that is too large.
    """
    known: dict[str, Tensor] = {}
    for tensor in tensors:
        if tensor.name in known:
            raise GraphError(f"tensor {tensor.name!r} is there twice; names must be unique")
        known[tensor.name] = tensor
    given = {*inputs, *constants}
    ordered = sort(nodes, given)
    for output in outputs:
        if output not in known:
            raise GraphError(f"output {output!r} is no tensor of the graph; {nearest(output, known)}")
    kept = _needed(ordered, outputs)
    used = {*inputs, *outputs, *(name for node in kept for name in (*node.inputs, node.output))}
    graph = Graph(
        name=name,
        tensors={one: tensor for one, tensor in known.items() if one in used},
        constants={
            one: np.ascontiguousarray(array).reshape(array.shape)
            for one, array in constants.items()
            if one in used
        },
        nodes=tuple(kept),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
    )
    check(graph)
    return graph


def sort(nodes: Iterable[Node], given: Iterable[str]) -> list[Node]:
    """Nodes in an order in which each finds its operands.

    Args:
        nodes: in any order; where they are in one already, it stays.
        given: names of the tensors that no node brings.

    Raises:
        GraphError: there is none, or a tensor comes from nowhere or from two places.
    """
    everything = list(nodes)
    if len(everything) > MAX_NODES:
        raise GraphError(f"the graph has {len(everything)} nodes; it may have {MAX_NODES}")
    sources = dict.fromkeys(given, -1)
    for place, node in enumerate(everything):
        if node.output in sources:
            raise GraphError(f"tensor {node.output!r} comes from two places; each must have one")
        sources[node.output] = place
    needs: dict[int, list[int]] = {}
    in_order = True
    for place, node in enumerate(everything):
        for name in node.inputs:
            if name not in sources:
                raise GraphError(
                    f"node {node.name!r} takes {name!r}, which is no input, no constant and no node's result"
                )
            in_order = in_order and sources[name] < place
        needs[place] = [sources[name] for name in node.inputs if sources[name] >= 0]
    if in_order:
        return everything
    try:
        return [everything[place] for place in TopologicalSorter(needs).static_order()]
    except CycleError as error:
        names = ", ".join(repr(everything[place].name) for place in error.args[1])
        raise GraphError(f"nodes {names} wait for one another; a graph must have no cycle") from None


def check(graph: Graph) -> None:
    """Refuse a graph whose tensors do not fit its operators.

    Raises:
        GraphError: naming the node or the tensor.
    """
    total = sum(tensor.bytes for tensor in graph.tensors.values())
    if total > MAX_BYTES:
        raise GraphError(f"the graph's tensors take {total} bytes together; they may take {MAX_BYTES}")
    for name, array in graph.constants.items():
        tensor = graph.tensors[name]
        if array.shape != tensor.shape or array.dtype != tensor.dtype:
            raise GraphError(
                f"constant {name!r} is {array.dtype} {array.shape}; its tensor is {tensor.dtype} "
                f"{tensor.shape}"
            )
    for node in graph.nodes:
        operands, out = graph.operands(node), graph.tensors[node.output]
        try:
            shape = node.operator.result_shape(operands)
            if shape != out.shape:
                raise GraphError(f"its result is {shape}; tensor {out.name!r} is {out.shape}")
            node.operator.check(operands, out)
        except GraphError as error:
            raise GraphError(f"node {node.name!r}: {error}") from None


def _needed(nodes: Sequence[Node], outputs: Iterable[str]) -> list[Node]:
    """The nodes that outputs depend on."""
    wanted = set(outputs)
    kept = []
    for node in reversed(nodes):
        if node.output in wanted:
            wanted.update(node.inputs)
            kept.append(node)
    return kept[::-1]
