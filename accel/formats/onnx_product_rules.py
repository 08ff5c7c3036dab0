"""Import rules for convolutions and matrix products."""

from collections.abc import Callable
from typing import Any

import numpy as np

from accel.base.errors import GraphError
from accel.formats.onnx_file import MICROSOFT, FileNode
from accel.formats.onnx_foreign import import_foreign
from accel.formats.onnx_importer import Importer
from accel.formats.onnx_rules import rule
from accel.formats.onnx_varying_zero import import_varying_zero
from accel.formats.onnx_windows import transposed_windows_of, windows_of
from accel.graph.elementwise_operators import (
    Add,
    Cast,
    Mul,
)
from accel.graph.graph_tensor import Quantization, Shape
from accel.graph.movement_operators import Transpose
from accel.graph.product_operators import Conv, ConvTranspose, MatMul, Product


def _sizes_and_kernel(importer: Importer, node: FileNode, data: str, weights: str) -> tuple[Shape, Shape]:
    sizes, kernel = (importer.builder.tensors[one].shape[2:] for one in (data, weights))
    declared = tuple(node.attributes.get("kernel_shape") or kernel)
    if declared != kernel or not kernel:
        raise GraphError(f"its kernel_shape is {declared}; its weights have {kernel}")
    return sizes, kernel


def _conv_of(importer: Importer, node: FileNode, data: str, weights: str) -> Conv:
    sizes, kernel = _sizes_and_kernel(importer, node, data, weights)
    return Conv(windows=windows_of(node, sizes, kernel), groups=int(node.attributes.get("group", 1)))


@rule("QLinearConv")
def _qlinear_conv(importer: Importer, node: FileNode) -> None:
    data, weights = importer.quantized(node, 0, 1, 2), importer.quantized(node, 3, 4, 5, 0)
    operands = [data, weights, *(importer.operand(one) for one in node.inputs[8:9] if one)]
    default = importer.builder.tensors[data].dtype
    importer.emit(
        node, _conv_of(importer, node, data, weights), operands, **importer.result(node, 6, 7, default)
    )


@rule("Conv")
def _conv(importer: Importer, node: FileNode) -> None:
    operands = [importer.operand(one) for one in node.inputs if one]
    importer.emit(node, _conv_of(importer, node, *operands[:2]), operands)


@rule("ConvTranspose")
def _conv_transpose(importer: Importer, node: FileNode) -> None:
    operands = [importer.operand(one) for one in node.inputs if one]
    sizes, kernel = _sizes_and_kernel(importer, node, *operands[:2])
    windows, added = transposed_windows_of(node, sizes, kernel)
    if windows is None:
        import_foreign(importer, node)
        return
    groups = int(node.attributes.get("group", 1))
    importer.emit(node, ConvTranspose(windows=windows, added=added, groups=groups), operands)


def _shifted(importer: Importer, node: FileNode, place: int, zero: int, axis: int | None = None) -> str:
    """Return an operand with its zero point and scale 1."""
    tensor = importer.tensor(node.inputs[place])
    zeros = importer.constant(node, zero, "the zero point")
    found = importer.pair(np.ones(1, np.float32), zeros, tensor.dtype, axis)
    known = tensor.quantization
    if known is not None and (known.zero, known.axis) == (found.zero, found.axis):
        return tensor.name
    return importer.builder.require_quantization(tensor.name, found)


@rule("ConvInteger")
def _conv_integer(importer: Importer, node: FileNode) -> None:
    _integer_product(importer, node, 0, lambda data, weights: _conv_of(importer, node, data, weights))


@rule("MatMulInteger")
def _matmul_integer(importer: Importer, node: FileNode) -> None:
    columns = len(importer.tensor(node.inputs[1]).shape) - 1
    _integer_product(importer, node, columns, lambda *_: MatMul())


def _integer_product(
    importer: Importer, node: FileNode, axis: int, operator_of: Callable[[str, str], Product]
) -> None:
    """Import int32 sums. Zero points lie along ``axis`` of the weights."""
    is_varying = not _zero_is_constant(importer, node, 2)
    has_totals = importer.array(node.inputs[1]) is not None
    can_correct = not is_varying or (has_totals and importer.tensor(node.inputs[2]).size == 1)
    if not can_correct or not _zero_is_constant(importer, node, 3):
        import_foreign(importer, node)
        return
    data, weights = _data(importer, node), _shifted(importer, node, 1, 3, axis)
    operator = operator_of(data, weights)
    if is_varying:
        import_varying_zero(importer, node, operator, data, weights)
    else:
        importer.emit(node, operator, [data, weights], dtype="int32")


def _zero_is_constant(importer: Importer, node: FileNode, place: int) -> bool:
    return (
        place >= len(node.inputs) or not node.inputs[place] or importer.array(node.inputs[place]) is not None
    )


def _data(importer: Importer, node: FileNode) -> str:
    """Return the left factor. A varying zero point counts as 0."""
    if _zero_is_constant(importer, node, 2):
        return _shifted(importer, node, 0, 2)
    return importer.builder.require_quantization(importer.operand(node.inputs[0]), Quantization.of(1.0))


@rule("QLinearMatMul")
def _qlinear_matmul(importer: Importer, node: FileNode) -> None:
    columns = len(importer.tensor(node.inputs[3]).shape) - 1
    data, weights = importer.quantized(node, 0, 1, 2), importer.quantized(node, 3, 4, 5, columns)
    default = importer.builder.tensors[data].dtype
    importer.emit(node, MatMul(), [data, weights], **importer.result(node, 6, 7, default))


@rule("MatMul")
def _matmul(importer: Importer, node: FileNode) -> None:
    importer.emit(node, MatMul(), [importer.operand(one) for one in node.inputs])


def _matrix(importer: Importer, node: FileNode, name: str, *, transposed: Any) -> str:
    tensor = importer.builder.tensors[name]
    if len(tensor.shape) != 2:
        raise GraphError(f"operand {name!r} is {tensor.shape}; it must be a matrix")
    if not transposed:
        return name
    transposed_name = importer.between(node, "transposed")
    array = importer.array(name)
    if array is None:
        return importer.emit(node, Transpose(permutation=(1, 0)), [name], transposed_name)
    return importer.builder.constant(transposed_name, np.ascontiguousarray(array.T))


def _row(importer: Importer, node: FileNode, name: str, columns: int) -> str | None:
    tensor = importer.tensor(name)
    if tensor.shape == (columns,):
        return tensor.name
    array = importer.array(name)
    if array is None or not array.size:
        return None
    if array.ndim > 1 and array.shape[0] > 1 and (array == array[:1]).all():
        array = array[:1]
    if array.size not in {1, columns} or array.shape[-1:] not in {(), (1,), (columns,)}:
        return None
    row = np.ascontiguousarray(np.broadcast_to(array.reshape(-1), (columns,)))
    return importer.builder.constant(importer.between(node, "bias"), row)


@rule("QGemm", domain=MICROSOFT)
def _qgemm(importer: Importer, node: FileNode) -> None:
    attributes = node.attributes
    alpha = np.float32(attributes.get("alpha", 1.0))
    data = _matrix(importer, node, importer.quantized(node, 0, 1, 2), transposed=attributes.get("transA"))
    # transpose before attaching scales, which belong to columns
    weights = _matrix(importer, node, importer.operand(node.inputs[3]), transposed=attributes.get("transB"))
    dtype = importer.builder.tensors[weights].dtype
    weights = importer.builder.require_quantization(weights, importer.quantization(node, 4, 5, dtype, 1))
    operands = [data, weights]
    if len(node.inputs) > 6 and node.inputs[6]:
        row = _row(importer, node, node.inputs[6], importer.builder.tensors[weights].shape[1])
        if row is None:
            raise GraphError(
                f"its bias {node.inputs[6]!r} is {importer.tensor(node.inputs[6]).shape}; it must be "
                "one value for each column"
            )
        operands.append(row)
    if len(node.inputs) > 7 and node.inputs[7]:
        default = importer.builder.tensors[data].dtype
        importer.emit(node, MatMul(alpha=float(alpha)), operands, **importer.result(node, 7, 8, default))
        return
    sums = importer.emit(node, MatMul(), operands, importer.between(node, "sums"), dtype="int32")
    numbers = importer.emit(node, Cast(), [sums], importer.between(node, "numbers"), dtype="float32")
    scale = (alpha * importer.builder.tensors[data].scale_and_zero[0]) * np.array(
        importer.builder.tensors[weights].required_quantization.scale, np.float32
    )
    factor = importer.builder.constant(importer.between(node, "scale"), np.asarray(scale, np.float32))
    importer.emit(node, Mul(), [numbers, factor])


@rule("Gemm")
def _gemm(importer: Importer, node: FileNode) -> None:
    attributes = node.attributes
    alpha, beta = float(attributes.get("alpha", 1.0)), float(attributes.get("beta", 1.0))
    data = _matrix(importer, node, importer.operand(node.inputs[0]), transposed=attributes.get("transA"))
    weights = _matrix(importer, node, importer.operand(node.inputs[1]), transposed=attributes.get("transB"))
    product = MatMul(alpha=alpha)
    if len(node.inputs) < 3 or not node.inputs[2]:
        importer.emit(node, product, [data, weights])
        return
    addend = importer.operand(node.inputs[2])
    if beta != 1:
        factor = importer.builder.constant(importer.between(node, "beta"), np.array(beta, np.float32))
        addend = importer.emit(node, Mul(), [addend, factor], importer.between(node, "addend"))
    row = _row(importer, node, addend, importer.builder.tensors[weights].shape[1])
    if row is not None:
        importer.emit(node, product, [data, weights, row])
        return
    sums = importer.emit(node, product, [data, weights], importer.between(node, "product"))
    importer.emit(node, Add(), [sums, addend])
