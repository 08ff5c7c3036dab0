"""Nodes that the host computes, as steps that the driver has; others are refused, with the reason."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from accel.graph import elementwise, movement
from accel.graph.elementwise import all_values
from accel.graph.graph import Graph, Node
from accel.graph.tensor import QUANTIZED, Array, Quantization, Tensor
from accel.package.deployment import (
    Detail,
    Fill,
    Lookup,
    Move,
    Scaled,
    Softmax,
    copied,
    one_value,
    row_major,
    value_bytes,
)

_TABLES = (
    elementwise.Requantize,
    elementwise.Reinterpret,
    elementwise.Clip,
    elementwise.Function,
    elementwise.Table,
)
"""Functions of one value; of bytes, tables of 256 entries."""
_SAME = Quantization(scale=(1.0,), zero=(0,))


@dataclass
class HostSteps:
    """Steps of a node, on arrays that go by the names of tensors.

    Attributes:
        steps: detail, source and target of each.
        temporaries: arrays between them: name, and a tensor like it.
    """

    steps: list[tuple[Detail, str | None, str]] = field(default_factory=list)
    temporaries: dict[str, Tensor] = field(default_factory=dict)

    def add(self, detail: Detail, source: str | None, target: str) -> None:
        """One more."""
        self.steps.append((detail, source, target))


def moves_nothing(node: Node) -> bool:
    """Whether a node's result is its operand, under another name or in another shape."""
    return isinstance(node.operator, movement.Identity | movement.Reshape)


def lacks(graph: Graph, node: Node) -> str | None:
    """Why the driver does not have a node; None if it has."""
    operator, operands, out = node.operator, graph.operands(node), graph.tensors[node.output]
    if isinstance(operator, elementwise.Softmax):
        axes = sorted(operator.axes)
        if axes != list(range(axes[0], axes[-1] + 1)):
            return f"its axes are {operator.axes}; the driver's Softmax has neighbouring ones"
        return None
    if isinstance(operator, _TABLES):
        if any(one.dtype not in QUANTIZED for one in (*operands, out)):
            return f"the driver has no {operator.kind} of float32"
        if any(one.quantization is not None and not one.quantization.per_tensor for one in (*operands, out)):
            return f"the driver has no {operator.kind} with a scale for each channel"
        return None
    if isinstance(operator, movement.Pad):
        return None if operator.mode == "constant" else f"the driver has no Pad of mode {operator.mode!r}"
    if type(operator) in _STEPS or moves_nothing(node):
        return None
    return f"the driver has no {operator.kind}"


def host_steps(graph: Graph, node: Node) -> HostSteps:
    """A node as steps; one that neither moves nothing nor :func:`lacks`."""
    found = HostSteps()
    if isinstance(node.operator, _TABLES):
        _table(graph, node, found)
    else:
        _STEPS[type(node.operator)](graph, node, found)
    return found


# --- values ----------------------------------------------------------------------------------------


def _scaled(kind: str, tensor: Tensor, quantization: Quantization | None = None) -> Scaled:
    return Scaled(
        kind=kind, dtype=tensor.dtype, shape=tensor.shape, quantization=quantization or tensor.quantized
    )


def _quantize(graph: Graph, node: Node, found: HostSteps) -> None:
    found.add(_scaled("quantize", graph.tensors[node.output]), node.inputs[0], node.output)


def _dequantize(graph: Graph, node: Node, found: HostSteps) -> None:
    found.add(_scaled("dequantize", graph.tensors[node.inputs[0]]), node.inputs[0], node.output)


def _cast(graph: Graph, node: Node, found: HostSteps) -> None:
    found.add(_scaled("dequantize", graph.tensors[node.inputs[0]], _SAME), node.inputs[0], node.output)


def _table(graph: Graph, node: Node, found: HostSteps) -> None:
    """The node on all values of a byte."""
    operand, out = graph.tensors[node.inputs[0]], graph.tensors[node.output]
    values = all_values(operand.dtype)
    results = np.empty(256, dtype=out.dtype)
    row: Sequence[Array] = [values]
    results[values.view(np.uint8)] = node.operator.evaluate(graph.operands(node), row, out)
    found.add(Lookup(table=copied(results, out.dtype), size=out.size), node.inputs[0], node.output)


def _softmax(graph: Graph, node: Node, found: HostSteps) -> None:
    operator, out = node.operator, graph.tensors[node.output]
    assert isinstance(operator, elementwise.Softmax)
    first, last = min(operator.axes), max(operator.axes) + 1
    detail = Softmax(
        outer=prod(out.shape[:first]), count=prod(out.shape[first:last]), inner=prod(out.shape[last:])
    )
    source, target = node.inputs[0], node.output
    if out.dtype == "float32":
        found.add(detail, source, target)
        return
    numbers, shares = f"{node.output} (numbers)", f"{node.output} (shares)"
    for name in (numbers, shares):
        found.temporaries[name] = Tensor(name=name, shape=out.shape, dtype="float32")
    found.add(_scaled("dequantize", graph.tensors[source]), source, numbers)
    found.add(detail, numbers, shares)
    found.add(_scaled("quantize", out), shares, target)


# --- moves -----------------------------------------------------------------------------------------


def _transpose(graph: Graph, node: Node, found: HostSteps) -> None:
    assert isinstance(node.operator, movement.Transpose)
    out, strides = graph.tensors[node.output], row_major(graph.tensors[node.inputs[0]].shape)
    detail = Move(
        value_bytes=value_bytes(out.dtype),
        sizes=out.shape,
        source_strides=tuple(strides[axis] for axis in node.operator.permutation),
        target_strides=row_major(out.shape),
    )
    found.add(detail, node.inputs[0], node.output)


def _slice(graph: Graph, node: Node, found: HostSteps) -> None:
    assert isinstance(node.operator, movement.Slice)
    out, strides = graph.tensors[node.output], row_major(graph.tensors[node.inputs[0]].shape)
    detail = Move(
        value_bytes=value_bytes(out.dtype),
        sizes=out.shape,
        source_strides=tuple(a * b for a, b in zip(strides, node.operator.steps, strict=True)),
        target_strides=row_major(out.shape),
        source_start=sum(a * b for a, b in zip(strides, node.operator.starts, strict=True)),
    )
    found.add(detail, node.inputs[0], node.output)


def _concat(graph: Graph, node: Node, found: HostSteps) -> None:
    assert isinstance(node.operator, movement.Concat)
    out, start = graph.tensors[node.output], 0
    strides = row_major(out.shape)
    for name in node.inputs:
        one = graph.tensors[name]
        detail = Move(
            value_bytes=value_bytes(out.dtype),
            sizes=one.shape,
            source_strides=row_major(one.shape),
            target_strides=strides,
            target_start=start,
        )
        found.add(detail, name, node.output)
        start += strides[node.operator.axis] * one.shape[node.operator.axis]


def _pad(graph: Graph, node: Node, found: HostSteps) -> None:
    assert isinstance(node.operator, movement.Pad)
    out, operand = graph.tensors[node.output], graph.tensors[node.inputs[0]]
    value = one_value(node.operator.value, out.dtype)
    found.add(Fill(values=value, value_bytes=len(value), nbytes=out.bytes), None, node.output)
    strides = row_major(out.shape)
    detail = Move(
        value_bytes=value_bytes(out.dtype),
        sizes=operand.shape,
        source_strides=row_major(operand.shape),
        target_strides=strides,
        target_start=sum(a * b for a, b in zip(strides, node.operator.begin, strict=True)),
    )
    found.add(detail, node.inputs[0], node.output)


_STEPS: dict[type, Callable[[Graph, Node, HostSteps], None]] = {
    elementwise.Quantize: _quantize,
    elementwise.Dequantize: _dequantize,
    elementwise.Cast: _cast,
    elementwise.Softmax: _softmax,
    movement.Transpose: _transpose,
    movement.Slice: _slice,
    movement.Concat: _concat,
    movement.Pad: _pad,
}
"""How each operator becomes steps."""
