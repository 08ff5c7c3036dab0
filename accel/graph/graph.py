"""Graphs: tensors, constants, and sorted nodes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

import numpy as np
from msgspec import Struct

from accel.base.errors import GraphError, ShapeError, nearest
from accel.base.records import replace
from accel.graph.graph_operator import Operator
from accel.graph.graph_tail import Tail
from accel.graph.graph_tensor import Array, Tensor

MAX_NODES = 100_000
MAX_BYTES = 1 << 33
"""Of all tensors together."""


@dataclass(frozen=True, kw_only=True)
class Node:
    """An operator between named tensors."""

    name: str
    operator: Operator
    inputs: tuple[str, ...]
    output: str


class State(Struct, frozen=True, kw_only=True):
    """A value that a network keeps between runs.

    Attributes:
        output, input: of the graph. The output becomes the next run's input.
        initial: constant with the first input, or None for zeros.
    """

    output: str
    input: str
    initial: str | None = None


@dataclass(frozen=True, kw_only=True)
class Graph:
    """A network.

    Attributes:
        constants: C-contiguous arrays, in the tensor's shape and dtype.
        tail: nodes that ONNX Runtime executes after the graph.
    """

    name: str
    tensors: Mapping[str, Tensor]
    constants: Mapping[str, Array]
    nodes: tuple[Node, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    tail: Tail | None = None
    states: tuple[State, ...] = ()
    producers: Mapping[str, Node] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "producers", {node.output: node for node in self.nodes})

    @property
    def result_names(self) -> tuple[str, ...]:
        return self.outputs if self.tail is None else self.tail.outputs

    def check_names(self, *, inputs: Iterable[str] = (), outputs: Iterable[str] = ()) -> None:
        for what, names, known in (("input", inputs, self.inputs), ("output", outputs, self.result_names)):
            for name in names:
                if name not in known:
                    raise ShapeError(f"{name!r} is not an {what} of the network; {nearest(name, known)}")

    def operands(self, node: Node) -> list[Tensor]:
        return [self.tensors[name] for name in node.inputs]

    def consumers(self) -> dict[str, list[Node]]:
        """Return each tensor's readers, a node once per operand."""
        found: dict[str, list[Node]] = {name: [] for name in self.tensors}
        for node in self.nodes:
            for name in node.inputs:
                found[name].append(node)
        return found

    def macs(self, node: Node) -> int:
        return node.operator.macs(self.operands(node), self.tensors[node.output])


def build_graph(
    name: str,
    tensors: Iterable[Tensor],
    constants: Mapping[str, Array],
    nodes: Iterable[Node],
    inputs: Sequence[str],
    outputs: Sequence[str],
) -> Graph:
    """Return a valid graph with sorted nodes, without unneeded parts."""
    known: dict[str, Tensor] = {}
    for tensor in tensors:
        if tensor.name in known:
            raise GraphError(f"tensor {tensor.name!r} is there twice; names must be unique")
        known[tensor.name] = tensor
    given = {*inputs, *constants}
    ordered = sort_nodes(nodes, given)
    for output in outputs:
        if output not in known:
            raise GraphError(f"output {output!r} is not a tensor of the graph; {nearest(output, known)}")
    live = _live_nodes(ordered, outputs)
    used = {*inputs, *outputs, *(name for node in live for name in (*node.inputs, node.output))}
    graph = Graph(
        name=name,
        tensors={one: tensor for one, tensor in known.items() if one in used},
        constants={
            one: np.ascontiguousarray(array).reshape(array.shape)
            for one, array in constants.items()
            if one in used
        },
        nodes=tuple(live),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
    )
    check_graph(graph)
    return graph


def with_nodes(
    graph: Graph,
    nodes: Iterable[Node],
    *,
    tensors: Iterable[Tensor] | None = None,
    constants: Mapping[str, Array] | None = None,
) -> Graph:
    """Drop unneeded parts."""
    found = build_graph(
        graph.name,
        graph.tensors.values() if tensors is None else tensors,
        graph.constants if constants is None else constants,
        nodes,
        graph.inputs,
        graph.outputs,
    )
    return replace(found, tail=graph.tail, states=graph.states)


def sort_nodes(nodes: Iterable[Node], given: Iterable[str]) -> list[Node]:
    """Sort nodes after their producers. Sorted nodes keep their order."""
    unsorted = list(nodes)
    if len(unsorted) > MAX_NODES:
        raise GraphError(f"the graph has {len(unsorted)} nodes; it may have {MAX_NODES}")
    sources = dict.fromkeys(given, -1)
    for index, node in enumerate(unsorted):
        if node.output in sources:
            raise GraphError(f"tensor {node.output!r} comes from two places; each must have one")
        sources[node.output] = index
    needs: dict[int, list[int]] = {}
    is_sorted = True
    for index, node in enumerate(unsorted):
        for name in node.inputs:
            if name not in sources:
                raise GraphError(
                    f"node {node.name!r} takes {name!r}, which is not an input, a constant or a node's result"
                )
            is_sorted = is_sorted and sources[name] < index
        needs[index] = [sources[name] for name in node.inputs if sources[name] >= 0]
    if is_sorted:
        return unsorted
    try:
        return [unsorted[index] for index in TopologicalSorter(needs).static_order()]
    except CycleError as error:
        names = ", ".join(repr(unsorted[index].name) for index in error.args[1])
        raise GraphError(f"nodes {names} wait for one another; a graph must have no cycle") from None


def check_graph(graph: Graph) -> None:
    """Raise a GraphError for tensors that do not fit their operators."""
    total = sum(tensor.nbytes for tensor in graph.tensors.values())
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


def _live_nodes(nodes: Sequence[Node], outputs: Iterable[str]) -> list[Node]:
    live_tensors = set(outputs)
    live = []
    for node in reversed(nodes):
        if node.output in live_tensors:
            live_tensors.update(node.inputs)
            live.append(node)
    return live[::-1]
