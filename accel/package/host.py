"""Nodes that the host computes, as steps that the driver has; others are refused, with the reason."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from accel.graph import elementwise, movement, pools
from accel.graph.elementwise import all_values
from accel.graph.graph import Graph, Node
from accel.graph.tensor import QUANTIZED, Array, Quantization, Tensor
from accel.package.deployment import (
    Binary,
    Detail,
    Fill,
    Lookup,
    Means,
    Move,
    Scaled,
    Softmax,
    broadcast_strides,
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
        steps: detail, sources and target of each.
        temporaries: arrays between them: name, and a tensor like it.
    """

    steps: list[tuple[Detail, tuple[str, ...], str]] = field(default_factory=list)
    temporaries: dict[str, Tensor] = field(default_factory=dict)

    def add(self, detail: Detail, *arrays: str) -> None:
        """One more; of the arrays, the last is the target."""
        *sources, target = arrays
        self.steps.append((detail, tuple(sources), target))

    def temporary(self, name: str, like: Tensor, dtype: str) -> str:
        """An array between steps, of a tensor's shape."""
        self.temporaries[name] = Tensor(name=name, shape=like.shape, dtype=dtype)
        return name


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
    if isinstance(operator, elementwise.Binary):
        return None if operator.function == "Sub" else f"the driver has no {operator.kind} of float32"
    if isinstance(operator, pools.AveragePool) and out.dtype != "float32":
        whole = operator.is_global(operands[0].shape[2:])
        return "the driver has no mean of a whole plane" if whole else None
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
    numbers = found.temporary(f"{node.output} (numbers)", out, "float32")
    shares = found.temporary(f"{node.output} (shares)", out, "float32")
    found.add(_scaled("dequantize", graph.tensors[source]), source, numbers)
    found.add(detail, numbers, shares)
    found.add(_scaled("quantize", out), shares, target)


def _binary(
    graph: Graph,
    node: Node,
    operation: str,
    dtype: str,
    zeros: tuple[int, int] = (0, 0),
    factors: tuple[float, float, float] = (0.0, 0.0, 0.0),
    *,
    swapped: bool = False,
) -> Binary:
    """The second operand comes first if they are swapped."""
    sizes = graph.tensors[node.output].shape
    strides = [broadcast_strides(one.shape, sizes) for one in graph.operands(node)][:: -1 if swapped else 1]
    return Binary(
        operation=operation,
        dtype=dtype,
        sizes=sizes,
        source_strides=strides[0],
        other_strides=strides[1],
        zeros=zeros,
        factors=factors,
    )


def _float_binary(graph: Graph, node: Node, found: HostSteps) -> None:
    operation = {"Add": "add_float", "Sub": "subtract_float", "Mul": "multiply_float"}[node.operator.kind]
    found.add(_binary(graph, node, operation, "float32"), *node.inputs, node.output)


def _add(graph: Graph, node: Node, found: HostSteps) -> None:
    assert isinstance(node.operator, elementwise.Add)
    operands, out = graph.operands(node), graph.tensors[node.output]
    if out.dtype == "float32":
        _float_binary(graph, node, found)
        return
    if node.operator.is_apart(operands, out):
        numbers = []
        for side, one in zip(("left", "right"), operands, strict=True):
            numbers.append(found.temporary(f"{node.output} ({side})", one, "float32"))
            found.add(_scaled("dequantize", one), one.name, numbers[-1])
        total = found.temporary(f"{node.output} (sum)", out, "float32")
        found.add(_binary(graph, node, "add_float", "float32"), *numbers, total)
        found.add(_scaled("quantize", out), total, node.output)
        return
    swapped = elementwise.inner_is_scalar(operands, out)
    order = -1 if swapped else 1
    factors = node.operator.factors(operands[::order], out)
    detail = _binary(graph, node, "add", out.dtype, factors=factors, swapped=swapped)
    found.add(detail, *node.inputs[::order], node.output)


def _multiply(graph: Graph, node: Node, found: HostSteps) -> None:
    assert isinstance(node.operator, elementwise.Mul)
    operands, out = graph.operands(node), graph.tensors[node.output]
    if out.dtype == "float32":
        _float_binary(graph, node, found)
        return
    zeros = int(operands[0].per_tensor[1]), int(operands[1].per_tensor[1])
    factors = float(node.operator.factor(operands, out)), 0.0, float(out.per_tensor[1])
    found.add(_binary(graph, node, "multiply", out.dtype, zeros, factors), *node.inputs, node.output)


def _means(graph: Graph, node: Node, found: HostSteps) -> None:
    operator, operand, out = node.operator, graph.operands(node)[0], graph.tensors[node.output]
    assert isinstance(operator, pools.AveragePool)

    def scale(tensor: Tensor) -> tuple[float, int]:
        if tensor.dtype == "float32":
            return 1.0, 0
        return float(tensor.per_tensor[0]), int(tensor.per_tensor[1])

    detail = Means(
        dtype=out.dtype,
        planes=prod(out.shape[:2]),
        sizes=operand.shape[2:],
        outputs=out.shape[2:],
        windows=operator.windows,
        count_padding=operator.count_padding,
        source=scale(operand),
        target=scale(out),
    )
    found.add(detail, node.inputs[0], node.output)


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
    found.add(Fill(values=value, value_bytes=len(value), nbytes=out.bytes), node.output)
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
    elementwise.Add: _add,
    elementwise.Mul: _multiply,
    elementwise.Binary: _float_binary,
    pools.AveragePool: _means,
    movement.Transpose: _transpose,
    movement.Slice: _slice,
    movement.Concat: _concat,
    movement.Pad: _pad,
}
"""How each operator becomes steps."""
