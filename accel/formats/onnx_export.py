"""Graphs as ONNX models in QOperator format, every tensor an output."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from accel.base.errors import GraphError
from accel.base.names import Names
from accel.formats.onnx_file import MICROSOFT, onnx
from accel.graph.elementwise import (
    Add,
    Binary,
    Cast,
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
from accel.graph.graph import Graph, Node
from accel.graph.movement import Concat, Identity, Pad, Reshape, Slice, Transpose
from accel.graph.operator import Operator
from accel.graph.pools import AveragePool, GlobalAveragePool, MaxPool
from accel.graph.products import Conv, MatMul
from accel.graph.tensor import QUANTIZED, Array, Tensor
from accel.graph.windows import Windows

OPSET = 21
"""Of ONNX's own operators in what is written."""
IR_VERSION = 10
"""Of the file."""
_BYTE = 128
"""Between uint8 and the int8 of the same meaning."""


def export_onnx(graph: Graph) -> bytes:
    """A graph as an ONNX model whose outputs are all of its tensors but inputs and constants.

    Operators that compute integers are ONNX Runtime's: QLinearConv, QGemm, QLinearAdd and so on. It computes
    only some pairs of types; others are written as the same numbers in a type that it takes.

    Args:
        graph: any.

    Returns:
        A ModelProto.

    Raises:
        GraphError: the package onnx is not installed, or an operator has no counterpart.
    """
    return _Exporter(graph).model()


class _Exporter:
    """Nodes and initializers of a model."""

    def __init__(self, graph: Graph) -> None:
        self._onnx = onnx()
        self._graph = graph
        self._nodes: list[Any] = []
        self._constants: dict[str, Array] = dict(graph.constants)
        self._names = Names(graph.tensors)

    def model(self) -> bytes:
        """The model's bytes."""
        helper = self._onnx.helper
        for node in self._graph.nodes:
            _WRITERS[type(node.operator)](self, node)
        made = {node.output for node in self._graph.nodes}
        graph = helper.make_graph(
            self._nodes,
            self._graph.name or "graph",
            [self._info(name) for name in self._graph.inputs],
            [self._info(name) for name in self._graph.tensors if name in made],
            [self._onnx.numpy_helper.from_array(values, name) for name, values in self._constants.items()],
        )
        domains = (("", OPSET), (MICROSOFT, 1))
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid(domain, version) for domain, version in domains],
            ir_version=IR_VERSION,
        )
        content: bytes = model.SerializeToString()
        return content

    # --- parts -------------------------------------------------------------------------------------

    def _info(self, name: str) -> Any:
        tensor = self._graph.tensors[name]
        dtype = self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(tensor.dtype))
        return self._onnx.helper.make_tensor_value_info(name, dtype, tensor.shape)

    def tensor(self, name: str) -> Tensor:
        """A tensor of the graph."""
        return self._graph.tensors[name]

    def values(self, name: str) -> Array | None:
        """A constant's values, None for what is none."""
        return self._constants.get(name)

    def fresh(self, name: str) -> str:
        """A name that nothing has."""
        return self._names.fresh(name)

    def constant(self, values: Any, dtype: str, name: str = "constant") -> str:
        """An initializer."""
        found = self.fresh(name)
        self._constants[found] = np.asarray(values, dtype=dtype)
        return found

    def write(
        self,
        kind: str,
        inputs: Sequence[str],
        output: str | None = None,
        *,
        domain: str = "",
        **attributes: Any,
    ) -> str:
        """A node; its output's name."""
        made = output or self.fresh(f"{kind}/output")
        self._nodes.append(
            self._onnx.helper.make_node(
                kind, list(inputs), [made], name=f"{kind} of {made}", domain=domain, **attributes
            )
        )
        return made

    def pair(self, tensor: Tensor, shift: int = 0, dtype: str | None = None) -> list[str]:
        """Scale and zero point of a tensor: one of each, or one for each channel.

        Args:
            tensor: quantized.
            shift: what is added to the zero point.
            dtype: of the zero point; the tensor's, if not given.
        """
        quantization = tensor.quantized
        zeros = np.array(quantization.zero) + shift
        scales = np.array(quantization.scale, dtype=np.float32)
        if quantization.per_tensor:
            scales, zeros = scales[0], zeros[0]
        return [
            self.constant(scales, "float32", f"{tensor.name}/scale"),
            self.constant(zeros, dtype or tensor.dtype, f"{tensor.name}/zero"),
        ]

    def as_type(self, name: str, dtype: str) -> list[str]:
        """A quantized tensor in int8 or uint8, with its scale and zero point."""
        tensor = self.tensor(name)
        if tensor.dtype == dtype:
            return [name, *self.pair(tensor)]
        shift = _BYTE if dtype == "uint8" else -_BYTE
        values = self.values(name)
        if values is not None:
            turned = self.constant(values.astype(np.int32) + shift, dtype, f"{name}/{dtype}")
        else:
            wide = self.write("Cast", [name], to=self._onnx.TensorProto.INT32)
            moved = self.write("Add", [wide, self.constant(shift, "int32")])
            turned = self.write("Cast", [moved], to=self.type(dtype))
        return [turned, *self.pair(tensor, shift, dtype)]

    def type(self, dtype: str) -> int:
        """ONNX's number of a dtype."""
        return int(self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


_Writer = Callable[[_Exporter, Node], None]
_WRITERS: dict[type[Operator], _Writer] = {}


def _writer(*kinds: type[Operator]) -> Callable[[Any], Any]:
    def register(writer: Any) -> Any:
        for kind in kinds:
            _WRITERS[kind] = writer
        return writer

    return register


def _windows(windows: Windows) -> dict[str, Any]:
    return {
        "kernel_shape": list(windows.kernel),
        "strides": list(windows.strides),
        "dilations": list(windows.dilations),
        "pads": [*windows.begin, *windows.end],
    }


# --- products --------------------------------------------------------------------------------------


def _weights_type(weights: Tensor, data: str) -> str:
    """int8 data takes int8 weights only."""
    return "int8" if data == "int8" else weights.dtype


@_writer(Conv)
def _conv(exporter: _Exporter, node: Node) -> None:
    operator, out = node.operator, exporter.tensor(node.output)
    assert isinstance(operator, Conv)
    attributes: dict[str, Any] = {**_windows(operator.windows), "group": operator.groups}
    if out.dtype == "float32":
        exporter.write("Conv", node.inputs, node.output, **attributes)
        return
    weights = exporter.tensor(node.inputs[1])
    dtype = out.dtype if out.dtype in QUANTIZED else exporter.tensor(node.inputs[0]).dtype
    left = exporter.as_type(node.inputs[0], dtype)
    if len(set(weights.quantized.zero)) > 1:
        _channel_by_channel(exporter, node, left, dtype)
        return
    right = exporter.as_type(node.inputs[1], _weights_type(weights, dtype))
    zeros = exporter.values(right[2])
    assert zeros is not None  # all of them are one
    right[2] = exporter.constant(zeros.reshape(-1)[0], zeros.dtype.name)
    if out.dtype == "int32":
        sums = exporter.write(
            "ConvInteger",
            [left[0], right[0], left[2], right[2]],
            node.output if len(node.inputs) == 2 else None,
            **attributes,
        )
        if len(node.inputs) > 2:
            _add_bias(exporter, node, sums, operator.windows.rank)
        return
    exporter.write(
        "QLinearConv", [*left, *right, *exporter.pair(out), *node.inputs[2:]], node.output, **attributes
    )


def _add_bias(exporter: _Exporter, node: Node, sums: str, rank: int) -> None:
    along = exporter.constant([1, -1, *[1] * rank], "int64")
    exporter.write("Add", [sums, exporter.write("Reshape", [node.inputs[2], along])], node.output)


def _channel_by_channel(exporter: _Exporter, node: Node, left: Sequence[str], dtype: str) -> None:
    """A convolution whose weights have different zero points: ONNX Runtime takes one, so each channel is a
    convolution of its own."""
    operator, out, weights = node.operator, exporter.tensor(node.output), exporter.tensor(node.inputs[1])
    assert isinstance(operator, Conv)
    kernel = exporter.values(node.inputs[1])
    bias = exporter.values(node.inputs[2]) if len(node.inputs) > 2 else None
    if kernel is None or (len(node.inputs) > 2 and bias is None):
        raise GraphError(f"node {node.name!r}: weights with different zero points must be constants")
    inner, outer = weights.shape[1], weights.shape[0] // operator.groups
    target = _weights_type(weights, dtype)
    shift = (_BYTE if target == "uint8" else -_BYTE) if target != weights.dtype else 0
    integers = out.dtype == "int32"
    result = [] if integers else exporter.pair(out)
    channels = []
    for channel, (scale, zero) in enumerate(
        zip(weights.quantized.scale, weights.quantized.zero, strict=True)
    ):
        first = channel // outer * inner
        part = exporter.write(
            "Slice",
            [left[0], *(exporter.constant([one], "int64") for one in (first, first + inner, 1))],
        )
        own = exporter.constant(kernel[channel : channel + 1].astype(np.int32) + shift, target)
        own_zero = exporter.constant(zero + shift, target)
        if integers:
            operands = [part, own, left[2], own_zero]
        else:
            operands = [part, *left[1:], own, exporter.constant(scale, "float32"), own_zero, *result]
            if bias is not None:
                operands.append(exporter.constant(bias[channel : channel + 1], "int32"))
        kind = "ConvInteger" if integers else "QLinearConv"
        channels.append(exporter.write(kind, operands, **_windows(operator.windows)))
    added = integers and bias is not None
    sums = exporter.write("Concat", channels, None if added else node.output, axis=1)
    if added:
        _add_bias(exporter, node, sums, operator.windows.rank)


@_writer(MatMul)
def _matmul(exporter: _Exporter, node: Node) -> None:
    operator, out = node.operator, exporter.tensor(node.output)
    assert isinstance(operator, MatMul)
    if out.dtype == "float32":
        total = exporter.write("MatMul", node.inputs[:2])
        scaled = exporter.write("Mul", [total, exporter.constant(operator.alpha, "float32")])
        bias = node.inputs[2] if len(node.inputs) > 2 else exporter.constant(0, "float32")
        exporter.write("Add", [scaled, bias], node.output)
        return
    data, weights = (exporter.tensor(name) for name in node.inputs[:2])
    dtype = out.dtype if out.dtype in QUANTIZED else data.dtype
    left = exporter.as_type(node.inputs[0], dtype)
    right = exporter.as_type(node.inputs[1], _weights_type(weights, dtype))
    if out.dtype == "int32":
        plain = len(node.inputs) == 2
        sums = exporter.write(
            "MatMulInteger", [left[0], right[0], left[2], right[2]], node.output if plain else None
        )
        if not plain:
            exporter.write("Add", [sums, node.inputs[2]], node.output)
        return
    if len(node.inputs) == 2 and operator.alpha == 1:
        exporter.write("QLinearMatMul", [*left, *right, *exporter.pair(out)], node.output)
        return
    ends = [*right, node.inputs[2] if len(node.inputs) > 2 else "", *exporter.pair(out)]
    alpha = float(operator.alpha)
    if len(weights.shape) > 2:
        _matrix_by_matrix(exporter, node, left, ends)
        return
    flat = len(data.shape) == 2
    if not flat:
        left[0] = exporter.write("Reshape", [left[0], exporter.constant([-1, data.shape[-1]], "int64")])
    target = node.output if flat else None
    product = exporter.write("QGemm", [*left, *ends], target, domain=MICROSOFT, alpha=alpha)
    if not flat:
        exporter.write("Reshape", [product, exporter.constant(out.shape, "int64")], node.output)


def _matrix_by_matrix(exporter: _Exporter, node: Node, left: Sequence[str], ends: Sequence[str]) -> None:
    """A product of several matrices with what only a QGemm has, which takes one."""
    operator, out = node.operator, exporter.tensor(node.output)
    assert isinstance(operator, MatMul)
    data, weights = (exporter.tensor(name) for name in node.inputs[:2])
    count = int(np.prod(out.shape[:-2]))

    def parts(name: str, matrix: Sequence[int]) -> list[str]:
        whole = exporter.constant([*out.shape[:-2], *matrix], "int64")
        rows = exporter.constant([count * matrix[0], matrix[1]], "int64")
        spread = exporter.write("Reshape", [exporter.write("Expand", [name, whole]), rows])
        return [
            exporter.write(
                "Slice",
                [spread, *(exporter.constant([n * matrix[0]], "int64") for n in (at, at + 1))],
            )
            for at in range(count)
        ]

    pairs = zip(parts(left[0], data.shape[-2:]), parts(ends[0], weights.shape[-2:]), strict=True)
    products = [
        exporter.write("QGemm", [a, *left[1:], b, *ends[1:]], domain=MICROSOFT, alpha=float(operator.alpha))
        for a, b in pairs
    ]
    rows = exporter.write("Concat", products, axis=0)
    exporter.write("Reshape", [rows, exporter.constant(out.shape, "int64")], node.output)


# --- pools -----------------------------------------------------------------------------------------


@_writer(MaxPool)
def _max_pool(exporter: _Exporter, node: Node) -> None:
    assert isinstance(node.operator, MaxPool)
    exporter.write("MaxPool", node.inputs, node.output, **_windows(node.operator.windows))


@_writer(AveragePool)
def _average_pool(exporter: _Exporter, node: Node) -> None:
    operator, out = node.operator, exporter.tensor(node.output)
    assert isinstance(operator, AveragePool)
    attributes = _windows(operator.windows)
    attributes["count_include_pad"] = int(operator.count_padding)
    if out.dtype == "float32":
        exporter.write("AveragePool", node.inputs, node.output, **attributes)
        return
    source = exporter.tensor(node.inputs[0])
    ends = [*exporter.pair(source), *exporter.pair(out)]
    if max(attributes.pop("dilations")) > 1:
        _dilated(exporter, node, ends)
        return
    exporter.write("QLinearAveragePool", [source.name, *ends], node.output, domain=MICROSOFT, **attributes)


def _dilated(exporter: _Exporter, node: Node, ends: Sequence[str]) -> None:
    """ONNX Runtime's QLinearAveragePool has no dilations: windows are gathered side by side."""
    operator, source = node.operator, exporter.tensor(node.inputs[0])
    assert isinstance(operator, AveragePool)
    windows, data = operator.windows, source.name
    if any(windows.begin + windows.end):
        if not operator.count_padding:
            raise GraphError(
                f"node {node.name!r}: ONNX Runtime has no average with dilations and padding left out"
            )
        pads = [0, 0, *windows.begin, 0, 0, *windows.end]
        value = exporter.constant(source.per_tensor[1], source.dtype)
        data = exporter.write("Pad", [data, exporter.constant(pads, "int64"), value])
    outputs = list(windows.outputs(source.shape[2:]))
    outputs[-1] += 1  # twice the last window: a single one would be averaged as a global mean
    for axis, count in enumerate(outputs):
        taps = np.arange(windows.kernel[axis]) * windows.dilations[axis]
        last = axis == len(outputs) - 1
        starts = np.minimum(np.arange(count), count - 1 - last) * windows.strides[axis]
        places = exporter.constant((starts[:, None] + taps).reshape(-1), "int64")
        data = exporter.write("Gather", [data, places], axis=axis + 2)
    pooled = exporter.write(
        "QLinearAveragePool",
        [data, *ends],
        domain=MICROSOFT,
        kernel_shape=list(windows.kernel),
        strides=list(windows.kernel),
    )
    cut = [exporter.constant([one], "int64") for one in (0, outputs[-1] - 1, len(outputs) + 1)]
    exporter.write("Slice", [pooled, *cut], node.output)


@_writer(GlobalAveragePool)
def _global_average_pool(exporter: _Exporter, node: Node) -> None:
    out = exporter.tensor(node.output)
    if out.dtype == "float32":
        exporter.write("GlobalAveragePool", node.inputs, node.output)
        return
    source = exporter.tensor(node.inputs[0])
    data, plane = source.name, len(source.shape) == 4  # all that ONNX Runtime takes
    if not plane:
        sizes = exporter.constant([*source.shape[:2], 1, -1], "int64")
        data = exporter.write("Reshape", [data, sizes])
    made = exporter.write(
        "QLinearGlobalAveragePool",
        [data, *exporter.pair(source), *exporter.pair(out)],
        node.output if plane else None,
        domain=MICROSOFT,
        channels_last=0,
    )
    if not plane:
        exporter.write("Reshape", [made, exporter.constant(out.shape, "int64")], node.output)


# --- value by value --------------------------------------------------------------------------------


@_writer(Quantize)
def _quantize(exporter: _Exporter, node: Node) -> None:
    out = exporter.tensor(node.output)
    exporter.write("QuantizeLinear", [*node.inputs, *exporter.pair(out)], node.output, axis=_axis(out))


@_writer(Dequantize)
def _dequantize(exporter: _Exporter, node: Node) -> None:
    source = exporter.tensor(node.inputs[0])
    operands = [*node.inputs, *exporter.pair(source)]
    exporter.write("DequantizeLinear", operands, node.output, axis=_axis(source))


def _axis(tensor: Tensor) -> int:
    axis = tensor.quantized.axis
    return 0 if axis is None else axis


@_writer(Requantize)
def _requantize(exporter: _Exporter, node: Node) -> None:
    _through_floats(exporter, node, lambda numbers: numbers)


def _through_floats(exporter: _Exporter, node: Node, middle: Callable[[str], str]) -> None:
    source, out = exporter.tensor(node.inputs[0]), exporter.tensor(node.output)
    numbers = exporter.write("DequantizeLinear", [source.name, *exporter.pair(source)])
    exporter.write("QuantizeLinear", [middle(numbers), *exporter.pair(out)], node.output)


@_writer(Identity, Reinterpret)
def _identity(exporter: _Exporter, node: Node) -> None:
    exporter.write("Identity", node.inputs, node.output)


@_writer(Cast)
def _cast(exporter: _Exporter, node: Node) -> None:
    exporter.write("Cast", node.inputs, node.output, to=exporter.type("float32"))


@_writer(Clip)
def _clip(exporter: _Exporter, node: Node) -> None:
    operator, out = node.operator, exporter.tensor(node.output)
    assert isinstance(operator, Clip)
    bounds = [
        "" if one is None else exporter.constant(one, out.dtype) for one in (operator.low, operator.high)
    ]
    exporter.write("Clip", [*node.inputs, *bounds], node.output)


@_writer(Add, Mul)
def _sides(exporter: _Exporter, node: Node) -> None:
    kind, out = node.operator.kind, exporter.tensor(node.output)
    if out.dtype == "float32":
        exporter.write(kind, node.inputs, node.output)
        return
    sources = [exporter.tensor(name) for name in node.inputs]
    if isinstance(node.operator, Add) and node.operator.is_apart(sources, out):
        numbers = [exporter.write("DequantizeLinear", [one.name, *exporter.pair(one)]) for one in sources]
        exporter.write("QuantizeLinear", [exporter.write(kind, numbers), *exporter.pair(out)], node.output)
        return
    operands = []
    for name in node.inputs:
        operands += [name, *exporter.pair(exporter.tensor(name))]
    exporter.write(f"QLinear{kind}", [*operands, *exporter.pair(out)], node.output, domain=MICROSOFT)


@_writer(Binary)
def _binary(exporter: _Exporter, node: Node) -> None:
    exporter.write(node.operator.kind, node.inputs, node.output)


@_writer(Function)
def _function(exporter: _Exporter, node: Node) -> None:
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
        return exporter.write(operator.function, [numbers], output, **parameters)

    if out.dtype == "float32":
        written(node.inputs[0], node.output)
    elif operator.function in {"Sigmoid", "LeakyRelu"}:
        operands = [node.inputs[0], *exporter.pair(exporter.tensor(node.inputs[0])), *exporter.pair(out)]
        exporter.write(f"QLinear{operator.function}", operands, node.output, domain=MICROSOFT, **parameters)
    else:
        _through_floats(exporter, node, written)


@_writer(Table)
def _table(exporter: _Exporter, node: Node) -> None:
    operator, source, out = node.operator, exporter.tensor(node.inputs[0]), exporter.tensor(node.output)
    assert isinstance(operator, Table)
    wide = exporter.write("Cast", node.inputs, to=exporter.type("int32"))
    first = exporter.constant(-int(np.iinfo(source.dtype).min), "int32")
    places = exporter.write("Add", [wide, first])
    exporter.write("Gather", [exporter.constant(operator.values, out.dtype), places], node.output, axis=0)


@_writer(Softmax)
def _softmax(exporter: _Exporter, node: Node) -> None:
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


@_writer(Mean)
def _mean(exporter: _Exporter, node: Node) -> None:
    assert isinstance(node.operator, Mean)
    axes = exporter.constant(node.operator.axes, "int64")
    exporter.write("ReduceMean", [*node.inputs, axes], node.output, keepdims=1)


# --- movement --------------------------------------------------------------------------------------


@_writer(Reshape)
def _reshape(exporter: _Exporter, node: Node) -> None:
    assert isinstance(node.operator, Reshape)
    sizes = exporter.constant(node.operator.sizes, "int64")
    exporter.write("Reshape", [*node.inputs, sizes], node.output)


@_writer(Transpose)
def _transpose(exporter: _Exporter, node: Node) -> None:
    assert isinstance(node.operator, Transpose)
    exporter.write("Transpose", node.inputs, node.output, perm=list(node.operator.permutation))


@_writer(Slice)
def _slice(exporter: _Exporter, node: Node) -> None:
    operator = node.operator
    assert isinstance(operator, Slice)
    ends = [
        start + count * step if start + count * step >= 0 else np.iinfo(np.int64).min
        for start, count, step in zip(operator.starts, operator.sizes, operator.steps, strict=True)
    ]
    numbers = (operator.starts, ends, range(len(ends)), operator.steps)
    operands = [exporter.constant(list(one), "int64") for one in numbers]
    exporter.write("Slice", [*node.inputs, *operands], node.output)


@_writer(Concat)
def _concat(exporter: _Exporter, node: Node) -> None:
    assert isinstance(node.operator, Concat)
    exporter.write("Concat", node.inputs, node.output, axis=node.operator.axis)


@_writer(Pad)
def _pad(exporter: _Exporter, node: Node) -> None:
    operator, out = node.operator, exporter.tensor(node.output)
    assert isinstance(operator, Pad)
    operands = [exporter.constant([*operator.begin, *operator.end], "int64")]
    if operator.mode == "constant":
        operands.append(exporter.constant(operator.value, out.dtype))
    exporter.write("Pad", [*node.inputs, *operands], node.output, mode=operator.mode)
