"""Import rules for pools, maxima and means."""

from collections.abc import Sequence

from accel.base.errors import GraphError
from accel.base.records import replace
from accel.formats.onnx_constant_folding import (
    axis_of,
    integers,
    squeezed,
)
from accel.formats.onnx_file import MICROSOFT, FileNode
from accel.formats.onnx_foreign import import_foreign
from accel.formats.onnx_importer import Importer, check_single_output
from accel.formats.onnx_rules import rule
from accel.formats.onnx_windows import windows_of
from accel.graph.axis_maxima import maximum_operators
from accel.graph.elementwise_operators import Mean
from accel.graph.graph_operator import Operator
from accel.graph.graph_tensor import QUANTIZED, Shape, Tensor
from accel.graph.movement_operators import Reshape, Transpose
from accel.graph.pooling_operators import AveragePool, GlobalAveragePool, MaxPool


def _kernel(node: FileNode) -> Shape:
    kernel = tuple(node.attributes.get("kernel_shape") or ())
    if not kernel:
        raise GraphError("its kernel_shape is missing")
    return kernel


@rule("MaxPool")
def _max_pool(importer: Importer, node: FileNode) -> None:
    check_single_output(node)
    tensor = importer.tensor(node.inputs[0])
    ceiling = bool(node.attributes.get("ceil_mode", 0))
    windows = windows_of(node, tensor.shape[2:], _kernel(node), ceiling=ceiling)
    importer.emit(node, MaxPool(windows=windows), [tensor.name])


@rule("GlobalMaxPool")
def _global_max_pool(importer: Importer, node: FileNode) -> None:
    tensor = importer.tensor(node.inputs[0])
    axes = range(2, len(tensor.shape))
    _emit_maximum(importer, node, tensor, axes, (*tensor.shape[:2], *[1] * len(axes)))


def _emit_maximum(
    importer: Importer, node: FileNode, tensor: Tensor, axes: Sequence[int], result: Shape
) -> None:
    *steps, last = maximum_operators(tensor.shape, axes, result)
    name = tensor.name
    for step in steps:
        name = importer.emit(node, step, [name], importer.between(node, step.kind))
    importer.emit(node, last, [name])


@rule("ReduceMax")
def _reduce_max(importer: Importer, node: FileNode) -> None:
    tensor = importer.tensor(node.inputs[0])
    axes = _axes(importer, node, len(tensor.shape))
    if axes is None:
        importer.alias(node, tensor.name)
    elif tensor.dtype not in QUANTIZED and not importer.is_dequantized(tensor.name):
        import_foreign(importer, node)  # float32 may hold NaN, which pools ignore
    else:
        sizes = tuple(1 if axis in axes else size for axis, size in enumerate(tensor.shape))
        _emit_maximum(
            importer,
            node,
            tensor,
            axes,
            sizes if node.attributes.get("keepdims", 1) else squeezed(sizes, axes),
        )


def _axes(importer: Importer, node: FileNode, rank: int) -> tuple[int, ...] | None:
    axes = node.attributes.get("axes") if node.opset < 18 else importer.constant(node, 1, "the axes")
    wanted = [] if axes is None else integers(axes)
    if not wanted:
        return None if node.attributes.get("noop_with_empty_axes", 0) or not rank else tuple(range(rank))
    return tuple(sorted({axis_of(axis, rank) for axis in wanted}))


def _average(node: FileNode, tensor: Tensor) -> AveragePool:
    counted = bool(node.attributes.get("count_include_pad", 0))
    kernel, sizes = _kernel(node), tensor.shape[2:]
    windows = windows_of(node, sizes, kernel, ceiling=bool(node.attributes.get("ceil_mode", 0)))
    if counted and windows != windows_of(node, sizes, kernel):
        raise GraphError(
            "it counts padding, and ceil_mode makes windows reach beyond it; only one of the two is supported"
        )
    return AveragePool(windows=windows, count_padding=counted)


@rule("AveragePool")
def _average_pool(importer: Importer, node: FileNode) -> None:
    tensor = importer.tensor(node.inputs[0])
    importer.emit(node, _average(node, tensor), [tensor.name])


@rule("GlobalAveragePool")
def _global_average_pool(importer: Importer, node: FileNode) -> None:
    importer.emit(node, GlobalAveragePool(), [importer.operand(node.inputs[0])])


@rule("QLinearAveragePool", "QLinearGlobalAveragePool", domain=MICROSOFT)
def _qlinear_average_pool(importer: Importer, node: FileNode) -> None:
    name = importer.quantized(node, 0, 1, 2)
    result = importer.result(node, 3, 4, importer.builder.tensors[name].dtype)
    last = bool(node.attributes.get("channels_last", 0))
    rank = len(importer.builder.tensors[name].shape)
    if last:
        turned = Transpose(permutation=(0, rank - 1, *range(1, rank - 1)))
        name = importer.emit(node, turned, [name], importer.between(node, "channels_first"))
    tensor = importer.builder.tensors[name]
    operator = GlobalAveragePool() if node.kind == "QLinearGlobalAveragePool" else _average(node, tensor)
    if not last:
        importer.emit(node, operator, [name], **result)
        return
    pooled = importer.emit(node, operator, [name], importer.between(node, "pooled"), **result)
    importer.emit(node, Transpose(permutation=(0, *range(2, rank), 1)), [pooled])


@rule("ReduceMean")
def _reduce_mean(importer: Importer, node: FileNode) -> None:
    tensor = importer.tensor(node.inputs[0])
    rank = len(tensor.shape)
    chosen = _axes(importer, node, rank)
    if chosen is None:
        importer.alias(node, tensor.name)
        return
    name = tensor.name
    result = tuple(1 if axis in chosen else size for axis, size in enumerate(tensor.shape))
    if not node.attributes.get("keepdims", 1):
        result = squeezed(result, chosen)
    steps: list[Operator] = [Mean(axes=chosen)]
    if rank > 2 and chosen == tuple(range(2, rank)):
        steps = [GlobalAveragePool()]
    elif rank > 2 and chosen == tuple(range(1, rank - 1)) and importer.is_dequantized(name):
        steps = [Transpose(permutation=(0, rank - 1, *chosen)), GlobalAveragePool()]
    sizes = tensor.shape
    for number, step in enumerate(steps):
        sizes = step.shape([replace(tensor, shape=sizes)])
        is_last = number == len(steps) - 1 and sizes == result
        name = importer.emit(node, step, [name], None if is_last else importer.between(node, step.kind))
    if sizes != result:
        importer.emit(node, Reshape(sizes=result), [name])
