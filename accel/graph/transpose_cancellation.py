"""Transposes that cancel one another through elementwise operators.

Exports from channels-last frameworks put a Transpose before and after each region of such a layout. For
example, Transpose to (N, H, W, C), Mul and Add of a constant for each channel, Transpose back: without both
Transposes the constants have the shape (C, 1, 1), and the machine can execute them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from accel.base.unique_names import Names
from accel.graph.elementwise_operators import (
    Add,
    Binary,
    Cast,
    ChannelTable,
    Clip,
    Dequantize,
    Function,
    Mul,
    Quantize,
    Reinterpret,
    Requantize,
    Table,
    swaps_operands,
)
from accel.graph.graph import Graph, Node, build_graph
from accel.graph.graph_operator import Operator
from accel.graph.graph_tensor import Array, Tensor
from accel.graph.movement_operators import Concat, Identity, Pad, Transpose

_UNARY = Quantize | Dequantize | Requantize | Reinterpret | Cast | Clip | Function | Table
_Permutation = tuple[int, ...]


def cancel_transposes(graph: Graph) -> Graph:
    """Remove pairs of Transposes with elementwise operators, Concat and Pad between them.

    A region is rewritten if it then has fewer Transposes than before. Integers and float32 values stay equal.
    """
    permutations = {node.operator.permutation for node in graph.nodes if isinstance(node.operator, Transpose)}
    for permutation in sorted(permutations):
        region = _find_region(graph, permutation)
        if region.members or region.sinks:
            graph = _rewrite(graph, region)
    return graph


@dataclass
class _Region:
    """Nodes that can compute in the layout before a Transpose.

    Attributes:
        sources: for each output of such a Transpose its operand.
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
    if isinstance(operator, Add | Mul | Binary):
        return all(graph.tensors[name].shape == out.shape for name in varying)
    return isinstance(operator, _UNARY | Pad | ChannelTable)


def _keep_gains(graph: Graph, region: _Region) -> None:
    """Drop members that lead to no Transpose back, and connected parts that would not lose a Transpose."""
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
    tensors, constants = dict(graph.tensors), dict(graph.constants)
    names = Names()
    names.reserve([*tensors, *(node.name for node in graph.nodes)])
    moved: dict[str, str] = dict(region.sources)
    """The tensor before the Transpose, for each source and member."""
    back: dict[str, str] = {}
    for name, node in region.sinks.items():
        if node.inputs[0] in region.members and node.inputs[0] not in back:
            back[node.inputs[0]] = name
    renamed: dict[str, str] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.output in region.members:
            new = back.get(node.output) or names.fresh(f"{node.output}/moved")
            out = graph.tensors[node.output]
            tensors[new] = replace(out, name=new, shape=_moved_shape(out.shape, region))
            inputs = tuple(
                moved[name]
                if name in moved
                else name  # results of a ChannelTable have no layout
                if isinstance(node.operator, ChannelTable)
                else _moved_constant(graph.tensors[name], region, tensors, constants)
                for name in node.inputs
            )
            nodes.append(
                Node(name=node.name, operator=_moved_operator(node, region), inputs=inputs, output=new)
            )
            moved[node.output] = new
            turn = Transpose(permutation=region.permutation)
            label = names.fresh(f"{node.name}/transpose")
            nodes.append(Node(name=label, operator=turn, inputs=(new,), output=node.output))
        elif node.output in region.sinks:
            source = moved[node.inputs[0]]
            if source == node.output:
                continue
            if node.output in graph.outputs:
                nodes.append(replace(node, operator=Identity(), inputs=(source,)))
            else:
                renamed[node.output] = renamed.get(source, source)
        else:
            nodes.append(node)
    nodes = [replace(one, inputs=tuple(renamed.get(name, name) for name in one.inputs)) for one in nodes]
    return build_graph(graph.name, tensors.values(), constants, nodes, graph.inputs, graph.outputs)


def _moved_constant(
    tensor: Tensor, region: _Region, tensors: dict[str, Tensor], constants: dict[str, Array]
) -> str:
    if tensor.size == 1:
        return tensor.name
    name = f"{tensor.name}/moved{''.join(map(str, region.permutation))}"
    if name not in tensors:
        values = constants[tensor.name]
        padded = values.reshape((1,) * (len(region.permutation) - values.ndim) + values.shape)
        constants[name] = np.ascontiguousarray(padded.transpose(region.inverse))
        tensors[name] = replace(tensor, name=name, shape=constants[name].shape)
    return name


def _moved_operator(node: Node, region: _Region) -> Operator:
    operator, axes = node.operator, region.permutation
    if isinstance(operator, Concat | ChannelTable):
        return replace(operator, axis=axes[operator.axis])
    if isinstance(operator, Pad):
        begin, end = (tuple(one[axis] for axis in region.inverse) for one in (operator.begin, operator.end))
        return replace(operator, begin=begin, end=end)
    return operator
