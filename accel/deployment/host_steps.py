"""Nodes on the host as steps of the driver."""

from collections.abc import Callable, Sequence
from math import prod

import numpy as np
from msgspec import Struct, field

from accel.deployment.deployment_steps import (
    Binary,
    ChannelLookup,
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
from accel.deployment.move_steps import pixel_steps, take_steps
from accel.graph import elementwise_operators, movement_operators, pooling_operators
from accel.graph.graph import Graph, Node
from accel.graph.graph_tensor import QUANTIZED, Array, Quantization, Tensor
from accel.graph.quantize_values import all_values

_TABLES = (
    elementwise_operators.Requantize,
    elementwise_operators.Reinterpret,
    elementwise_operators.Clip,
    elementwise_operators.Function,
    elementwise_operators.Table,
)
"""Functions of one value, which are tables of 256 entries on 8-bit operands."""
_SAME = Quantization(scale=(1.0,), zero=(0,))


class HostSteps(Struct):
    """The steps of a node. Temporaries are tensors of the same shape and dtype by name."""

    steps: list[tuple[Detail, tuple[str, ...], str]] = field(default_factory=list)
    temporaries: dict[str, Tensor] = field(default_factory=dict)

    def add(self, detail: Detail, *arrays: str) -> None:
        *sources, target = arrays
        self.steps.append((detail, tuple(sources), target))

    def temporary(self, name: str, like: Tensor, dtype: str) -> str:
        self.temporaries[name] = Tensor(name=name, shape=like.shape, dtype=dtype)
        return name


def moves_nothing(node: Node) -> bool:
    """Whether only name, shape or quantization change."""
    return isinstance(node.operator, elementwise_operators.SAME_BYTES)


def lacks(graph: Graph, node: Node) -> str | None:
    """Return why the driver lacks a node."""
    operator, operands, out = node.operator, graph.operands(node), graph.tensors[node.output]
    if isinstance(operator, elementwise_operators.Softmax):
        axes = sorted(operator.axes)
        if axes != list(range(axes[0], axes[-1] + 1)):
            return f"its axes are {operator.axes}; the driver's Softmax has neighbouring ones"
        return None
    if isinstance(operator, _TABLES):
        for one in (*operands, out):
            if one.dtype not in QUANTIZED:
                return f"the driver has no {operator.kind} of {one.dtype}"
        if any(
            one.quantization is not None and not one.quantization.is_per_tensor for one in (*operands, out)
        ):
            return f"the driver has no {operator.kind} with a scale for each channel"
        return None
    if isinstance(operator, elementwise_operators.Binary):
        return None if operator.function == "Sub" else f"the driver has no {operator.kind} of {out.dtype}"
    if (
        isinstance(operator, pooling_operators.AveragePool)
        and out.dtype != "float32"
        and not operator.in_float32
    ):
        whole = operator.has_single_window(operands[0].shape[2:])
        return "the driver has no mean of a whole plane" if whole else None
    if isinstance(operator, movement_operators.Pad):
        return None if operator.mode == "constant" else f"the driver has no Pad of mode {operator.mode!r}"
    if type(operator) in _STEPS or moves_nothing(node):
        return None
    return f"the driver has no {operator.kind}"


def host_steps(graph: Graph, node: Node) -> HostSteps:
    """Return the steps of a node that the driver has and that moves values."""
    found = HostSteps()
    if isinstance(node.operator, _TABLES):
        _table(graph, node, found)
    else:
        _STEPS[type(node.operator)](graph, node, found)
    return found


# --- values ----------------------------------------------------------------------------------------


def _scaled(kind: str, tensor: Tensor, quantization: Quantization | None = None) -> Scaled:
    return Scaled(
        kind=kind,
        dtype=tensor.dtype,
        shape=tensor.shape,
        quantization=quantization or tensor.required_quantization,
    )


def _quantize(graph: Graph, node: Node, found: HostSteps) -> None:
    found.add(_scaled("quantize", graph.tensors[node.output]), node.inputs[0], node.output)


def _dequantize(graph: Graph, node: Node, found: HostSteps) -> None:
    found.add(_scaled("dequantize", graph.tensors[node.inputs[0]]), node.inputs[0], node.output)


def _cast(graph: Graph, node: Node, found: HostSteps) -> None:
    found.add(_scaled("dequantize", graph.tensors[node.inputs[0]], _SAME), node.inputs[0], node.output)


def _table(graph: Graph, node: Node, found: HostSteps) -> None:
    operand, out = graph.tensors[node.inputs[0]], graph.tensors[node.output]
    values = all_values(operand.dtype)
    results = np.empty(256, dtype=out.dtype)
    row: Sequence[Array] = [values]
    results[values.view(np.uint8)] = node.operator.evaluate(graph.operands(node), row, out)
    found.add(Lookup(table=copied(results, out.dtype), size=out.size), node.inputs[0], node.output)


def _channel_table(graph: Graph, node: Node, found: HostSteps) -> None:
    assert isinstance(node.operator, elementwise_operators.ChannelTable)
    data, out = graph.tensors[node.inputs[0]], graph.tensors[node.output]
    entries = graph.constants[node.inputs[1]]
    by_bits = np.empty_like(entries)
    by_bits[:, all_values(data.dtype).view(np.uint8)] = entries
    axis, channels = node.operator.axis, len(entries)
    outer, inner = (1, out.size) if channels == 1 else (prod(out.shape[:axis]), prod(out.shape[axis + 1 :]))
    detail = ChannelLookup(tables=copied(by_bits, out.dtype), outer=outer, channels=channels, inner=inner)
    found.add(detail, node.inputs[0], node.output)


def _softmax(graph: Graph, node: Node, found: HostSteps) -> None:
    operator, out = node.operator, graph.tensors[node.output]
    assert isinstance(operator, elementwise_operators.Softmax)
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


def _quantized_float_binary(graph: Graph, node: Node, operation: str, found: HostSteps) -> None:
    out, numbers = graph.tensors[node.output], []
    for side, one in zip(("left", "right"), graph.operands(node), strict=True):
        numbers.append(found.temporary(f"{node.output} ({side})", one, "float32"))
        found.add(_scaled("dequantize", one), one.name, numbers[-1])
    result = found.temporary(f"{node.output} (float32)", out, "float32")
    found.add(_binary(graph, node, operation, "float32"), *numbers, result)
    found.add(_scaled("quantize", out), result, node.output)


def _add(graph: Graph, node: Node, found: HostSteps) -> None:
    assert isinstance(node.operator, elementwise_operators.Add)
    operands, out = graph.operands(node), graph.tensors[node.output]
    if out.dtype == "float32":
        _float_binary(graph, node, found)
        return
    if node.operator.adds_float32(operands, out):
        _quantized_float_binary(graph, node, "add_float", found)
        return
    swapped = elementwise_operators.swaps_operands(operands, out)
    order = -1 if swapped else 1
    factors = node.operator.factors(operands[::order], out)
    detail = _binary(graph, node, "add", out.dtype, factors=factors, swapped=swapped)
    found.add(detail, *node.inputs[::order], node.output)


def _multiply(graph: Graph, node: Node, found: HostSteps) -> None:
    assert isinstance(node.operator, elementwise_operators.Mul)
    operands, out = graph.operands(node), graph.tensors[node.output]
    if out.dtype == "float32":
        _float_binary(graph, node, found)
        return
    if node.operator.in_float32:
        _quantized_float_binary(graph, node, "multiply_float", found)
        return
    zeros = int(operands[0].scale_and_zero[1]), int(operands[1].scale_and_zero[1])
    factors = float(node.operator.factor(operands, out)), 0.0, float(out.scale_and_zero[1])
    found.add(_binary(graph, node, "multiply", out.dtype, zeros, factors), *node.inputs, node.output)


def _means(graph: Graph, node: Node, found: HostSteps) -> None:
    operator, operand, out = node.operator, graph.operands(node)[0], graph.tensors[node.output]
    assert isinstance(operator, pooling_operators.AveragePool)
    in_float32 = operator.in_float32 and out.dtype != "float32"

    def scale(tensor: Tensor) -> tuple[float, int]:
        if tensor.dtype == "float32" or in_float32:
            return 1.0, 0
        return float(tensor.scale_and_zero[0]), int(tensor.scale_and_zero[1])

    detail = Means(
        dtype="float32" if in_float32 else out.dtype,
        planes=prod(out.shape[:2]),
        sizes=operand.shape[2:],
        outputs=out.shape[2:],
        windows=operator.windows,
        count_padding=operator.count_padding,
        source=scale(operand),
        target=scale(out),
    )
    if not in_float32:
        found.add(detail, node.inputs[0], node.output)
        return
    numbers = found.temporary(f"{node.output} (numbers)", operand, "float32")
    means = found.temporary(f"{node.output} (means)", out, "float32")
    found.add(_scaled("dequantize", operand), operand.name, numbers)
    found.add(detail, numbers, means)
    found.add(_scaled("quantize", out), means, node.output)


# --- moves -----------------------------------------------------------------------------------------


def _transpose(graph: Graph, node: Node, found: HostSteps) -> None:
    assert isinstance(node.operator, movement_operators.Transpose)
    out, strides = graph.tensors[node.output], row_major(graph.tensors[node.inputs[0]].shape)
    detail = Move(
        value_bytes=value_bytes(out.dtype),
        sizes=out.shape,
        source_strides=tuple(strides[axis] for axis in node.operator.permutation),
        target_strides=row_major(out.shape),
    )
    found.add(detail, node.inputs[0], node.output)


def _slice(graph: Graph, node: Node, found: HostSteps) -> None:
    assert isinstance(node.operator, movement_operators.Slice)
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
    assert isinstance(node.operator, movement_operators.Concat)
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
    assert isinstance(node.operator, movement_operators.Pad)
    out, operand = graph.tensors[node.output], graph.tensors[node.inputs[0]]
    value = one_value(node.operator.value, out.dtype)
    found.add(Fill(values=value, value_bytes=len(value), nbytes=out.nbytes), node.output)
    strides = row_major(out.shape)
    detail = Move(
        value_bytes=value_bytes(out.dtype),
        sizes=operand.shape,
        source_strides=row_major(operand.shape),
        target_strides=strides,
        target_start=sum(a * b for a, b in zip(strides, node.operator.begin, strict=True)),
    )
    found.add(detail, node.inputs[0], node.output)


def _take(graph: Graph, node: Node, found: HostSteps) -> None:
    for detail in take_steps(graph, node):
        found.add(detail, node.inputs[0], node.output)


def _pixels(graph: Graph, node: Node, found: HostSteps) -> None:
    for detail in pixel_steps(graph, node):
        found.add(detail, node.inputs[0], node.output)


_STEPS: dict[type, Callable[[Graph, Node, HostSteps], None]] = {
    elementwise_operators.Quantize: _quantize,
    elementwise_operators.Dequantize: _dequantize,
    elementwise_operators.Cast: _cast,
    elementwise_operators.ChannelTable: _channel_table,
    elementwise_operators.Softmax: _softmax,
    elementwise_operators.Add: _add,
    elementwise_operators.Mul: _multiply,
    elementwise_operators.Binary: _float_binary,
    pooling_operators.AveragePool: _means,
    movement_operators.Transpose: _transpose,
    movement_operators.Slice: _slice,
    movement_operators.Concat: _concat,
    movement_operators.Pad: _pad,
    movement_operators.Take: _take,
    movement_operators.DepthToSpace: _pixels,
    movement_operators.SpaceToDepth: _pixels,
}
