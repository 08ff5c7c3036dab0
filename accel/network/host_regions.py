"""Consecutive nodes of the host as one session of ONNX Runtime.

ONNX Runtime fuses and rounds float32 as in the original model. numpy computes regions without floats, with
equal results, and all regions if ONNX Runtime is not installed.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from itertools import groupby
from math import prod
from typing import Any

import numpy as np
from msgspec import Struct

from accel.base.errors import GraphError
from accel.base.optional_extras import not_installed
from accel.formats.onnx_runtime import Runner, has_onnx_runtime, open_onnx_runtime
from accel.graph.elementwise_operators import Dequantize
from accel.graph.foreign_operator import Foreign
from accel.graph.graph import Graph, Node, build_graph
from accel.graph.graph_evaluation import evaluate_node
from accel.graph.graph_tensor import QUANTIZED, Array
from accel.graph.movement_operators import Movement
from accel.network.chained_program import Chain
from accel.network.network_part import NetworkPart


class HostRegion(Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """Parts of the host between two programs of the machine.

    Attributes:
        moves: parts that only rename values of earlier steps.
        parts: all others.
        needed: results that later steps read, and outputs.
        is_concurrent: whether the next program needs none of the results.
    """

    graph: Graph
    moves: tuple[NetworkPart, ...]
    parts: tuple[NetworkPart, ...]
    needed: tuple[str, ...]
    is_concurrent: bool = False

    @property
    def name(self) -> str:
        return (*self.parts, *self.moves)[0].fused.name

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        return tuple(node for part in self.parts for node in part.fused.nodes)

    def run(self, array: Callable[[str], Array]) -> dict[str, Array]:
        """Return the needed results, in the graph's shapes. ``array`` returns an earlier tensor's values."""
        if self._runner is not None:
            feeds = {name: array(name) for name in self.inputs}
            results = self._runner(feeds, list(self.needed))
            return {name: self._contiguous(name, values) for name, values in results.items()}
        values: dict[str, Array] = {}
        for node in self.nodes:
            operands = [values[name] if name in values else array(name) for name in node.inputs]
            values[node.output] = self._contiguous(node.output, evaluate_node(self.graph, node, operands))
        return {name: values[name] for name in self.needed}

    def _contiguous(self, name: str, values: Array) -> Array:
        shape = self.graph.tensors[name].shape
        if np.size(values) != prod(shape):
            raise GraphError(
                f"tensor {name!r} is {np.shape(values)} in ONNX Runtime; when the model was imported it was "
                f"{shape}"
            )
        return np.ascontiguousarray(values).reshape(shape)

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        made = {node.output for node in self.nodes}
        read = dict.fromkeys(name for node in self.nodes for name in node.inputs)
        return tuple(name for name in read if name not in made and name not in self.graph.constants)

    @cached_property
    def _runner(self) -> Runner | None:
        """The session, or None for regions that numpy computes."""
        if not self.needed or not any(_computes_floats(self.graph, node) for node in self.nodes):
            return None
        if not has_onnx_runtime():
            return None
        graph = self.graph
        tensors = [graph.tensors[name] for node in self.nodes for name in (*node.inputs, node.output)]
        region = build_graph(
            "region",
            dict.fromkeys(tensors),
            {one.name: graph.constants[one.name] for one in tensors if one.name in graph.constants},
            self.nodes,
            self.inputs,
            self.needed,
        )
        from accel.formats.onnx_export import export_onnx  # slow to import

        try:
            content = export_onnx(region, self.needed)
        except GraphError:  # some nodes cannot be converted to a common opset
            return None
        return open_onnx_runtime(content, optimized=True)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_runner"}


def _computes_floats(graph: Graph, node: Node) -> bool:
    if isinstance(node.operator, Foreign):
        return True
    is_float = graph.tensors[node.output].dtype not in {*QUANTIZED, "int32"}
    return is_float and not isinstance(node.operator, Dequantize | Movement)


def host_regions(graph: Graph, steps: Sequence[Chain | NetworkPart]) -> Iterator[Chain | HostRegion]:
    """Nodes whose results the next program does not need are a separate region unless a tensor connects them
    with the others. So ONNX Runtime fuses the same nodes as in one region.
    """
    groups = [list(group) for _, group in groupby(steps, lambda step: isinstance(step, Chain))]
    last_reads = {name: at for at, group in enumerate(groups) for step in group for name in _reads(step)}
    for at, group in enumerate(groups):
        if isinstance(group[0], Chain):
            yield from (step for step in group if isinstance(step, Chain))
            continue
        parts = [step for step in group if isinstance(step, NetworkPart)]
        made = {node.output for part in parts for node in part.fused.nodes}
        moves: list[NetworkPart] = []
        others: list[NetworkPart] = []
        for part in parts:
            is_move = part.moves_nothing and part.fused.main.inputs[0] not in made
            (moves if is_move else others).append(part)
        awaited = set(_reads(groups[at + 1][0])) if at + 1 < len(groups) else made
        urgent, concurrent = _divide(others, awaited)
        for chosen, is_concurrent in ((urgent, False), (concurrent, True)):
            if not chosen and (is_concurrent or not moves):
                continue
            needed = tuple(
                node.output
                for part in chosen
                for node in part.fused.nodes
                if last_reads.get(node.output, at) > at or node.output in graph.outputs
            )
            yield HostRegion(
                graph=graph,
                moves=() if is_concurrent else tuple(moves),
                parts=tuple(chosen),
                needed=needed,
                is_concurrent=is_concurrent,
            )


def _divide(
    parts: Sequence[NetworkPart], awaited: Collection[str]
) -> tuple[list[NetworkPart], list[NetworkPart]]:
    """Return parts that lead to awaited tensors or are connected with these, and all others."""
    component_of: dict[str, list[NetworkPart]] = {}
    for part in parts:
        component = [part]
        for name in part.fused.inputs:
            other = component_of.get(name)
            if other is not None and other is not component:
                component += other
                component_of |= {node.output: component for one in other for node in one.fused.nodes}
        component_of |= {node.output: component for node in part.fused.nodes}
    urgent = {id(part) for name in awaited if name in component_of for part in component_of[name]}
    return (
        [part for part in parts if id(part) in urgent],
        [part for part in parts if id(part) not in urgent],
    )


def _reads(step: Chain | NetworkPart) -> Iterator[str]:
    for part in step.parts if isinstance(step, Chain) else (step,):
        yield from part.fused.inputs
        if part.layer is not None:
            yield from (operand.tensor for operand in part.layer.operands)
    if isinstance(step, Chain):
        yield from (operand.tensor for operand in step.operands.values())


def check_foreign(graph: Graph) -> None:
    """Raise a GraphError for nodes for which ONNX Runtime is missing."""
    foreign = [
        f"{node.name!r} ({node.operator.kind})" for node in graph.nodes if isinstance(node.operator, Foreign)
    ]
    if foreign and not has_onnx_runtime():
        listed = ", ".join(foreign)
        raise GraphError(not_installed(f"these nodes of the network need onnxruntime: {listed}", "onnx"))
