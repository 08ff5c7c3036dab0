"""Export of elementwise operators, quantization and softmax."""

from typing import Any

import numpy as np

from accel.base.errors import GraphError
from accel.formats.onnx_exporter import Exporter, writer
from accel.formats.onnx_file import MICROSOFT
from accel.graph.elementwise_operators import (
    Add,
    Binary,
    Cast,
    ChannelTable,
    Clip,
    Dequantize,
    Function,
    Mean,
    Mul,
    Quantize,
    Reinterpret,
    Requantize,
    Softmax,
    Table,
)
from accel.graph.graph import Node
from accel.graph.graph_tensor import Tensor
from accel.graph.movement_operators import Identity


@writer(Quantize)
def _quantize(exporter: Exporter, node: Node) -> None:
    out = exporter.tensor(node.output)
    exporter.write("QuantizeLinear", [*node.inputs, *exporter.pair(out)], node.output, axis=_axis(out))


@writer(Dequantize)
def _dequantize(exporter: Exporter, node: Node) -> None:
    source = exporter.tensor(node.inputs[0])
    operands = [*node.inputs, *exporter.pair(source)]
    exporter.write("DequantizeLinear", operands, node.output, axis=_axis(source))


def _axis(tensor: Tensor) -> int:
    axis = tensor.required_quantization.axis
    return 0 if axis is None else axis


@writer(Requantize)
def _requantize(exporter: Exporter, node: Node) -> None:
    exporter.through_floats(node, lambda numbers: numbers)


@writer(Identity, Reinterpret)
def _identity(exporter: Exporter, node: Node) -> None:
    exporter.write("Identity", node.inputs, node.output)


@writer(Cast)
def _cast(exporter: Exporter, node: Node) -> None:
    exporter.write("Cast", node.inputs, node.output, to=exporter.type("float32"))


@writer(Clip)
def _clip(exporter: Exporter, node: Node) -> None:
    operator, out = node.operator, exporter.tensor(node.output)
    assert isinstance(operator, Clip)
    bounds = [
        "" if one is None else exporter.constant(one, out.dtype) for one in (operator.low, operator.high)
    ]
    exporter.write("Clip", [*node.inputs, *bounds], node.output)


@writer(Add, Mul)
def _sides(exporter: Exporter, node: Node) -> None:
    kind, out = node.operator.kind, exporter.tensor(node.output)
    if out.dtype == "float32":
        exporter.write(kind, node.inputs, node.output)
        return
    sources = [exporter.tensor(name) for name in node.inputs]
    assert isinstance(node.operator, Add | Mul)
    added = isinstance(node.operator, Add) and node.operator.adds_float32(sources, out)
    if added or node.operator.in_float32:
        numbers = [exporter.write("DequantizeLinear", [one.name, *exporter.pair(one)]) for one in sources]
        exporter.write("QuantizeLinear", [exporter.write(kind, numbers), *exporter.pair(out)], node.output)
        return
    operands = []
    for name in node.inputs:
        operands += [name, *exporter.pair(exporter.tensor(name))]
    exporter.write(f"QLinear{kind}", [*operands, *exporter.pair(out)], node.output, domain=MICROSOFT)


@writer(Binary)
def _binary(exporter: Exporter, node: Node) -> None:
    exporter.write(node.operator.kind, node.inputs, node.output)


@writer(Function)
def _function(exporter: Exporter, node: Node) -> None:
    operator, out = node.operator, exporter.tensor(node.output)
    assert isinstance(operator, Function)
    parameters: dict[str, Any] = dict(operator.parameters)
    if operator.function == "Gelu":
        parameters = {"approximate": "tanh" if parameters.get("approximate") else "none"}

    def written(numbers: str, output: str | None = None) -> str:
        if operator.function == "Swish":
            factor = exporter.constant(parameters.get("alpha", 1.0), "float32")
            gate = exporter.write("Sigmoid", [exporter.write("Mul", [numbers, factor])])
            return exporter.write("Mul", [numbers, gate], output)
        if operator.function == "Rsqrt":
            return exporter.write("Reciprocal", [exporter.write("Sqrt", [numbers])], output)
        return exporter.write(operator.function, [numbers], output, **parameters)

    if out.dtype == "float32":
        written(node.inputs[0], node.output)
    elif operator.function in {"Sigmoid", "LeakyRelu"}:
        operands = [node.inputs[0], *exporter.pair(exporter.tensor(node.inputs[0])), *exporter.pair(out)]
        exporter.write(f"QLinear{operator.function}", operands, node.output, domain=MICROSOFT, **parameters)
    else:
        exporter.through_floats(node, written)


@writer(Table)
def _table(exporter: Exporter, node: Node) -> None:
    operator, source, out = node.operator, exporter.tensor(node.inputs[0]), exporter.tensor(node.output)
    assert isinstance(operator, Table)
    wide = exporter.write("Cast", node.inputs, to=exporter.type("int32"))
    first = exporter.constant(-int(np.iinfo(source.dtype).min), "int32")
    places = exporter.write("Add", [wide, first])
    exporter.write("Gather", [exporter.constant(operator.values, out.dtype), places], node.output, axis=0)


@writer(ChannelTable)
def _channel_table(exporter: Exporter, node: Node) -> None:
    """Look values up in the joined tables of all channels, at ``value - least + channel * 256``."""
    operator, (data, entries) = node.operator, node.inputs
    assert isinstance(operator, ChannelTable)
    source, channels = exporter.tensor(data), exporter.tensor(entries).shape[0]
    first = np.arange(channels) * 256 - np.iinfo(source.dtype).min
    sizes = [-1 if axis == operator.axis else 1 for axis in range(len(source.shape))]
    starts = exporter.constant(first.reshape(sizes) if channels > 1 else first, "int32")
    places = exporter.write("Add", [exporter.write("Cast", [data], to=exporter.type("int32")), starts])
    flat = exporter.write("Reshape", [entries, exporter.constant([-1], "int64")])
    exporter.write("Gather", [flat, places], node.output, axis=0)


@writer(Softmax)
def _softmax(exporter: Exporter, node: Node) -> None:
    operator, source, out = node.operator, exporter.tensor(node.inputs[0]), exporter.tensor(node.output)
    assert isinstance(operator, Softmax)
    rank = len(out.shape)
    flat = len(operator.axes) > 1
    if flat and sorted(operator.axes) != list(range(rank - len(operator.axes), rank)):
        raise GraphError(f"node {node.name!r}: a softmax is written along one axis or along the last ones")
    axis = operator.axes[0] if not flat else 1
    data, target = node.inputs[0], None if flat else node.output
    if flat:
        size = int(np.prod([out.shape[one] for one in operator.axes]))
        data = exporter.write("Reshape", [data, exporter.constant([-1, size], "int64")])
    if out.dtype == "float32":
        made = exporter.write("Softmax", [data], target, axis=axis)
    else:
        operands = [data, *exporter.pair(source), *exporter.pair(out)]
        made = exporter.write("QLinearSoftmax", operands, target, domain=MICROSOFT, axis=axis, opset=13)
    if flat:
        exporter.write("Reshape", [made, exporter.constant(out.shape, "int64")], node.output)


@writer(Mean)
def _mean(exporter: Exporter, node: Node) -> None:
    assert isinstance(node.operator, Mean)
    axes = exporter.constant(node.operator.axes, "int64")
    exporter.write("ReduceMean", [*node.inputs, axes], node.output, keepdims=1)
