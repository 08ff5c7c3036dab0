"""Transposes that cancel one another through elementwise operators.

Exports from channels-last frameworks put a Transpose before and after each region of that layout. For
example, Mul and Add of a constant for each channel in (N, H, W, C) have constants (C, 1, 1) without the
Transposes, which the machine supports.
"""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct, field

from accel.base.records import replace
from accel.graph.elementwise_operators import Add, ChannelTable, swaps_operands
from accel.graph.graph import Graph, Node
from accel.graph.movement_operators import Concat, Pad, Transpose
from accel.rewriting.editable_graph import EditableGraph
from accel.rewriting.elementwise_rules import FUNCTION_BEFORE_TRANSPOSE
from accel.rewriting.movement_rules import TRANSPOSE_PAIR
from accel.rewriting.operator_classes import BINARY, UNARY
from accel.rewriting.rule import Rule
from accel.rewriting.rule_application import applications
from accel.rewriting.transpose_rules import (
    BINARY_BEFORE_TRANSPOSE,
    CHANNEL_TABLE_BEFORE_TRANSPOSE,
    CONCAT_BEFORE_TRANSPOSE,
    CONSTANT_BEFORE_TRANSPOSE,
    FIRST_CONSTANT_BEFORE_TRANSPOSE,
    PAD_BEFORE_TRANSPOSE,
)

_Permutation = tuple[int, ...]

_RULES: tuple[Rule, ...] = (
    FUNCTION_BEFORE_TRANSPOSE,
    BINARY_BEFORE_TRANSPOSE,
    CONSTANT_BEFORE_TRANSPOSE,
    FIRST_CONSTANT_BEFORE_TRANSPOSE,
    CONCAT_BEFORE_TRANSPOSE,
    PAD_BEFORE_TRANSPOSE,
    CHANNEL_TABLE_BEFORE_TRANSPOSE,
)


def cancel_transposes(graph: Graph) -> Graph:
    """Remove pairs of Transposes with elementwise operators, Concat and Pad between them.

    A region is rewritten if that reduces its Transposes. It is chosen as a whole, because each rule alone may
    need one more Transpose.
    """
    permutations = {node.operator.permutation for node in graph.nodes if isinstance(node.operator, Transpose)}
    for permutation in sorted(permutations):
        region = _find_region(graph, permutation)
        if region.members or region.sinks:
            graph = _rewrite(graph, region)
    return graph


class _Region(Struct):
    """Nodes that can compute in the layout before a Transpose.

    Attributes:
        sources: operands of such Transposes, by result.
        members: nodes by output.
        sinks: Transposes back, by output.
    """

    permutation: _Permutation
    sources: dict[str, str] = field(default_factory=dict)
    members: dict[str, Node] = field(default_factory=dict)
    sinks: dict[str, Node] = field(default_factory=dict)

    @property
    def inverse(self) -> _Permutation:
        return tuple(np.argsort(self.permutation).tolist())


def _find_region(graph: Graph, permutation: _Permutation) -> _Region:
    region = _Region(permutation)
    for node in graph.nodes:
        operator = node.operator
        if isinstance(operator, Transpose) and operator.permutation == permutation:
            region.sources[node.output] = node.inputs[0]
        elif _can_move(graph, node, region):
            region.members[node.output] = node
    available = {*region.sources, *region.members}
    for node in graph.nodes:
        is_back = isinstance(node.operator, Transpose) and node.operator.permutation == region.inverse
        if is_back and node.inputs[0] in available:
            region.sinks[node.output] = node
    _keep_gains(graph, region)
    return region


def _can_move(graph: Graph, node: Node, region: _Region) -> bool:
    operator, out = node.operator, graph.tensors[node.output]
    varying = [name for name in node.inputs if name not in graph.constants]
    if not varying or len(out.shape) != len(region.permutation):
        return False
    if not all(name in region.sources or name in region.members for name in varying):
        return False
    tensors = [*graph.operands(node), out]
    if any(one.quantization is not None and not one.quantization.is_per_tensor for one in tensors):
        return False
    if isinstance(operator, Concat):
        return len(varying) == len(node.inputs)
    if isinstance(operator, Add) and out.dtype != "float32":
        moved = [replace(one, shape=_moved_shape(one.shape, region)) for one in tensors]
        return swaps_operands(tensors[:-1], out) == swaps_operands(moved[:-1], moved[-1])
    if isinstance(operator, BINARY):
        return all(graph.tensors[name].shape == out.shape for name in varying)
    return isinstance(operator, (*UNARY, Pad, ChannelTable))


def _keep_gains(graph: Graph, region: _Region) -> None:
    """Drop members without a Transpose back, and connected parts that would not lose a Transpose."""
    consumers = graph.consumers()
    for output in reversed(list(region.members)):
        readers = {one.output for one in consumers[output]}
        if readers.isdisjoint(region.members) and readers.isdisjoint(region.sinks):
            del region.members[output]
    for part in _connected(region):
        removed = added = 0
        for output in part:
            reading = [one.output for one in consumers[output]]
            is_needed = output in graph.outputs or any(
                one not in region.members and one not in region.sinks for one in reading
            )
            removed += sum(one in region.sinks for one in reading)
            if output in region.sources:
                removed += not is_needed
            else:
                added += is_needed
        if removed <= added:
            for output in part:
                region.members.pop(output, None)
            region.sinks = {name: one for name, one in region.sinks.items() if one.inputs[0] not in part}


def _connected(region: _Region) -> list[set[str]]:
    parts: list[set[str]] = [{name} for name in region.sources]
    for output, node in region.members.items():
        touching = [part for part in parts if not part.isdisjoint(node.inputs)]
        parts = [part for part in parts if part not in touching]
        parts.append({output}.union(*touching))
    return parts


def _moved_shape(shape: Sequence[int], region: _Region) -> tuple[int, ...]:
    padded = (1,) * (len(region.permutation) - len(shape)) + tuple(shape)
    return tuple(padded[axis] for axis in region.inverse)


def _rewrite(graph: Graph, region: _Region) -> Graph:
    editable = EditableGraph(graph)
    places = [(name, _RULES) for name in region.members]
    places += [(name, (TRANSPOSE_PAIR,)) for name in region.sinks]
    for name, rules in places:
        found = ((rule, one) for rule in rules for one in applications(editable, rule, name))
        for rule, (match, terms) in found:
            editable.replace(rule, match, terms)
            break
    return editable.graph()
