"""Export of convolutions and matrix products."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from accel.base.errors import GraphError
from accel.formats.onnx_exporter import BYTE_OFFSET, Exporter, window_attributes, writer
from accel.formats.onnx_file import MICROSOFT
from accel.graph.graph import Node
from accel.graph.graph_tensor import QUANTIZED, Tensor
from accel.graph.product_operators import Conv, ConvTranspose, MatMul, Product


def _weights_type(weights: Tensor, data: str) -> str:
    """int8 data requires int8 weights."""
    return "int8" if data == "int8" else weights.dtype


def _require_scales(node: Node, operator: Product) -> None:
    if operator.sum_scales:
        raise GraphError(
            f"node {node.name!r} has scales of sums; ONNX's products have scales of their tensors only"
        )


@writer(Conv)
def _conv(exporter: Exporter, node: Node) -> None:
    operator, out = node.operator, exporter.tensor(node.output)
    assert isinstance(operator, Conv)
    _require_scales(node, operator)
    attributes: dict[str, Any] = {**window_attributes(operator.windows), "group": operator.groups}
    if out.dtype == "float32":
        exporter.write("Conv", node.inputs, node.output, **attributes)
        return
    weights = exporter.tensor(node.inputs[1])
    dtype = out.dtype if out.dtype in QUANTIZED else exporter.tensor(node.inputs[0]).dtype
    left = exporter.as_type(node.inputs[0], dtype)
    if len(set(weights.required_quantization.zero)) > 1:
        _channel_by_channel(exporter, node, left, dtype)
        return
    right = exporter.as_type(node.inputs[1], _weights_type(weights, dtype))
    zeros = exporter.values(right[2])
    assert zeros is not None
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


@writer(ConvTranspose)
def _conv_transpose(exporter: Exporter, node: Node) -> None:
    """Spread data for a convolution, since ONNX has no integer ConvTranspose."""
    operator, out = node.operator, exporter.tensor(node.output)
    assert isinstance(operator, ConvTranspose)
    _require_scales(node, operator)
    windows, rank = operator.windows, operator.windows.rank
    if out.dtype == "float32":
        attributes = {**window_attributes(windows), "group": operator.groups}
        exporter.write("ConvTranspose", node.inputs, node.output, output_padding=operator.added, **attributes)
        return
    dtype = out.dtype if out.dtype in QUANTIZED else exporter.tensor(node.inputs[0]).dtype
    left = exporter.as_type(node.inputs[0], dtype)
    weights = exporter.tensor(node.inputs[1])
    right = exporter.as_type(node.inputs[1], _weights_type(weights, dtype))
    kernel, scales, zeros = (
        exporter.values(right[0]),
        operator.weight_scales(weights),
        exporter.values(right[2]),
    )
    if kernel is None or zeros is None or len(np.unique(zeros)) > 1:
        raise GraphError(f"node {node.name!r}: weights must be constants with one zero point")
    groups, taps = operator.groups, kernel.shape[2:]
    turned = kernel.reshape(groups, -1, kernel.shape[1], *taps).swapaxes(1, 2)
    turned = np.flip(turned.reshape(-1, turned.shape[2], *taps), tuple(range(2, rank + 2)))
    right = [
        exporter.constant(np.ascontiguousarray(turned), kernel.dtype.name),
        exporter.constant(scales if scales.size > 1 else scales[0], "float32"),
        exporter.constant(zeros.reshape(-1)[0], zeros.dtype.name),
    ]
    left[0] = _spread(exporter, left[0], left[2], exporter.tensor(node.inputs[0]).shape, windows.strides)
    whole = [extent - 1 for extent in windows.extents]
    pads = [n - cut for n, cut in zip(whole, windows.begin, strict=True)]
    pads += [n + more - cut for n, more, cut in zip(whole, operator.added, windows.end, strict=True)]
    if min(pads) < 0:
        sizes = exporter.tensor(node.inputs[0]).shape[2:]
        spread = _spread_sizes(sizes, windows.strides)
        starts, cut = ([max(0, -n) for n in half] for half in (pads[:rank], pads[rank:]))
        ends = [n - less for n, less in zip(spread, cut, strict=True)]
        bounds = [exporter.constant(one, "int64") for one in (starts, ends, range(2, rank + 2))]
        left[0] = exporter.write("Slice", [left[0], *bounds])
        pads = [max(0, n) for n in pads]
    attributes = {"kernel_shape": taps, "dilations": windows.dilations, "pads": pads, "group": groups}
    if out.dtype == "int32":
        has_bias = len(node.inputs) > 2
        operands = [left[0], right[0], left[2], right[2]]
        sums = exporter.write("ConvInteger", operands, None if has_bias else node.output, **attributes)
        if has_bias:
            _add_bias(exporter, node, sums, rank)
        return
    operands = [*left, *right, *exporter.pair(out), *node.inputs[2:]]
    exporter.write("QLinearConv", operands, node.output, **attributes)


def _spread(exporter: Exporter, name: str, zero: str, shape: Sequence[int], strides: Sequence[int]) -> str:
    """Write ``stride - 1`` zero points between values along each spatial axis."""
    if max(strides) == 1:
        return name
    split = [*shape[:2], *(one for n in shape[2:] for one in (n, 1))]
    pads = [0] * len(split) + [0, 0, *(one for s in strides for one in (0, s - 1))]
    joined = [*shape[:2], *(n * s for n, s in zip(shape[2:], strides, strict=True))]
    parts = exporter.write("Reshape", [name, exporter.constant(split, "int64")])
    padded = exporter.write("Pad", [parts, exporter.constant(pads, "int64"), zero])
    whole = exporter.write("Reshape", [padded, exporter.constant(joined, "int64")])
    rank = len(strides)
    ends = _spread_sizes(shape[2:], strides)
    bounds = [exporter.constant(one, "int64") for one in ([0] * rank, ends, range(2, rank + 2))]
    return exporter.write("Slice", [whole, *bounds])


def _spread_sizes(sizes: Sequence[int], strides: Sequence[int]) -> list[int]:
    return [(n - 1) * s + 1 for n, s in zip(sizes, strides, strict=True)]


def _add_bias(exporter: Exporter, node: Node, sums: str, rank: int) -> None:
    along = exporter.constant([1, -1, *[1] * rank], "int64")
    exporter.write("Add", [sums, exporter.write("Reshape", [node.inputs[2], along])], node.output)


def _channel_by_channel(exporter: Exporter, node: Node, left: Sequence[str], dtype: str) -> None:
    """ONNX Runtime supports a single zero point of weights."""
    operator, out, weights = node.operator, exporter.tensor(node.output), exporter.tensor(node.inputs[1])
    assert isinstance(operator, Conv)
    kernel = exporter.values(node.inputs[1])
    bias = exporter.values(node.inputs[2]) if len(node.inputs) > 2 else None
    if kernel is None or (len(node.inputs) > 2 and bias is None):
        raise GraphError(f"node {node.name!r}: weights with different zero points must be constants")
    inner, outer = weights.shape[1], weights.shape[0] // operator.groups
    target = _weights_type(weights, dtype)
    shift = (BYTE_OFFSET if target == "uint8" else -BYTE_OFFSET) if target != weights.dtype else 0
    integers = out.dtype == "int32"
    result = [] if integers else exporter.pair(out)
    channels = []
    for channel, (scale, zero) in enumerate(
        zip(weights.required_quantization.scale, weights.required_quantization.zero, strict=True)
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
        channels.append(exporter.write(kind, operands, **window_attributes(operator.windows)))
    added = integers and bias is not None
    sums = exporter.write("Concat", channels, None if added else node.output, axis=1)
    if added:
        _add_bias(exporter, node, sums, operator.windows.rank)


@writer(MatMul)
def _matmul(exporter: Exporter, node: Node) -> None:
    operator, out = node.operator, exporter.tensor(node.output)
    assert isinstance(operator, MatMul)
    _require_scales(node, operator)
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


def _matrix_by_matrix(exporter: Exporter, node: Node, left: Sequence[str], ends: Sequence[str]) -> None:
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
