"""Neighbouring Slices of one tensor that a Concat joins again."""

from dataclasses import replace

from accel.base.unique_names import Names
from accel.graph.graph import Graph, Node, with_nodes
from accel.graph.movement_operators import Concat, Slice


def join_slices(graph: Graph) -> Graph:
    """Replace neighbouring Slices of one tensor in a Concat by one Slice, or by the tensor.

    For example, blocks of YOLOv8 split a tensor in two halves, compute on the second one, and join all
    three: the Concat of both halves is the tensor itself.
    """
    joined = {node.output: _join(graph, node) for node in graph.nodes if isinstance(node.operator, Concat)}
    if all(new is None for new in joined.values()):
        return graph
    tensors, nodes = dict(graph.tensors), list[Node]()
    names = Names()
    names.reserve([*tensors, *(node.name for node in graph.nodes)])
    for node in graph.nodes:
        inputs = list[str]()
        for one in joined.get(node.output) or node.inputs:
            if isinstance(one, str):
                inputs.append(one)
                continue
            source, operator = one
            name = names.fresh(f"{source}/joined")
            tensors[name] = replace(tensors[source], name=name, shape=operator.sizes)
            nodes.append(Node(name=name, operator=operator, inputs=(source,), output=name))
            inputs.append(name)
        nodes.append(replace(node, inputs=tuple(inputs)))
    return with_nodes(graph, nodes, tensors=tensors.values())


_Operand = str | tuple[str, Slice]
"""A tensor, or a Slice of one."""


def _join(graph: Graph, node: Node) -> list[_Operand] | None:
    """Return the operands of a Concat with joined Slices, or None if there are none."""
    assert isinstance(node.operator, Concat)
    axis, found, has_joined = node.operator.axis, list[_Operand](), False
    for name in node.inputs:
        one = _slice_along(graph, name, axis)
        last = found[-1] if found else None
        if one is not None and isinstance(last, tuple) and last[0] == one[0]:
            (source, before), after = last, one[1]
            if before.starts[axis] + before.sizes[axis] == after.starts[axis]:
                count = before.sizes[axis] + after.sizes[axis]
                sizes = (*before.sizes[:axis], count, *before.sizes[axis + 1 :])
                found[-1] = source, replace(before, sizes=sizes)
                has_joined = True
                continue
        found.append(name if one is None else one)
    if not has_joined:
        return None
    slices = {name: _slice_along(graph, name, axis) for name in node.inputs}
    same = {one: name for name, one in slices.items() if one is not None}
    return [_shortest(graph, one, same) for one in found]


def _shortest(graph: Graph, operand: _Operand, same: dict[tuple[str, Slice], str]) -> _Operand:
    """Return the tensor that an operand is, if there is one."""
    if isinstance(operand, str):
        return operand
    source, operator = operand
    return source if operator.sizes == graph.tensors[source].shape else same.get(operand, operand)


def _slice_along(graph: Graph, name: str, axis: int) -> tuple[str, Slice] | None:
    """Return the source and the Slice of a tensor that is a part of another one along a single axis."""
    node = graph.producers.get(name)
    if node is None or not isinstance(node.operator, Slice):
        return None
    operator, shape = node.operator, graph.tensors[node.inputs[0]].shape
    is_along = all(
        step == 1 and (one == axis or (start, size) == (0, whole))
        for one, (start, size, step, whole) in enumerate(
            zip(operator.starts, operator.sizes, operator.steps, shape, strict=True)
        )
    )
    return (node.inputs[0], operator) if is_along else None
