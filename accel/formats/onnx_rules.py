"""Each operator of ONNX, and those of com.microsoft that ONNX Runtime's quantizer writes, as operators of a
graph."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from accel.base.errors import GraphError
from accel.formats.onnx_constants import FOLDED, axis_of, integers, reshaped, slices, squeezed, unsqueezed
from accel.formats.onnx_file import MICROSOFT, FileNode, onnx
from accel.formats.onnx_importer import Importer
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
    Requantize,
    Softmax,
)
from accel.graph.functions import FUNCTIONS
from accel.graph.movement import Concat, Pad, Reshape, Slice, Transpose
from accel.graph.pools import AveragePool, GlobalAveragePool, MaxPool
from accel.graph.products import Conv, MatMul
from accel.graph.tensor import Quantization, Shape, Tensor
from accel.graph.windows import Windows

Rule = Callable[[Importer, FileNode], None]
RULES: dict[tuple[str, str], Rule] = {}
"""By domain and name."""


def _rule(*kinds: str, domain: str = "") -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        for kind in kinds:
            RULES[domain, kind] = rule
        return rule

    return register


# --- quantize and dequantize -----------------------------------------------------------------------


def _unblocked(node: FileNode) -> None:
    if node.attributes.get("block_size", 0):
        raise GraphError(
            f"its blocks are of {node.attributes['block_size']}; scales must be per tensor or channel"
        )


def _channel_axis(node: FileNode, tensor: Tensor) -> int | None:
    axis = int(node.attributes.get("axis", 1))
    rank = len(tensor.shape)
    return axis % rank if -rank <= axis < rank else None


@_rule("QuantizeLinear")
@_rule("QuantizeLinear", domain=MICROSOFT)
def _quantize(importer: Importer, node: FileNode) -> None:
    _unblocked(node)
    tensor = importer.tensor(node.inputs[0])
    zeros = importer.constant(node, 2, "the zero point")
    if zeros is not None:
        dtype = zeros.dtype.name
    else:
        wanted = node.attributes.get("output_dtype", 0)
        dtype = onnx().helper.tensor_dtype_to_np_dtype(wanted).name if wanted else "uint8"
    scales = importer.needed(node, 1, "the scale")
    quantization = importer.pair(scales, zeros, dtype, _channel_axis(node, tensor))
    importer.emit(node, Quantize(), [tensor.name], dtype=dtype, quantization=quantization)


@_rule("DequantizeLinear")
@_rule("DequantizeLinear", domain=MICROSOFT)
def _dequantize(importer: Importer, node: FileNode) -> None:
    _unblocked(node)
    axis = _channel_axis(node, importer.tensor(node.inputs[0]))
    name = importer.quantized(node, 0, 1, 2, axis)
    importer.emit(node, Dequantize(), [name], dtype="float32")


# --- convolutions and products ---------------------------------------------------------------------


def _windows(node: FileNode, sizes: Shape, kernel: Shape, *, ceiling: bool = False) -> Windows:
    """Strides, dilations and pads of a node, with its auto_pad and its ceil_mode resolved.

    Args:
        node: a convolution or a pool.
        sizes: of the axes that windows slide along.
        kernel: the window.
        ceiling: whether a last window may reach beyond the padding.
    """
    rank = len(kernel)
    strides = tuple(node.attributes.get("strides") or [1] * rank)
    dilations = tuple(node.attributes.get("dilations") or [1] * rank)
    pads = list(node.attributes.get("pads") or [0] * 2 * rank)
    if len(sizes) != rank or len(pads) != 2 * rank:
        raise GraphError(
            f"its kernel is {kernel} and its pads are {pads}; the tensor has {len(sizes)} axes for them"
        )
    begin, end = pads[:rank], pads[rank:]
    found = Windows(kernel=kernel, strides=strides, dilations=dilations, begin=tuple(begin), end=tuple(end))
    auto = node.attributes.get("auto_pad", "NOTSET") or "NOTSET"
    if auto == "VALID":
        begin, end = [0] * rank, [0] * rank
    elif auto in {"SAME_UPPER", "SAME_LOWER"}:
        needs = [
            max(0, (-(-n // s) - 1) * s + extent - n)
            for n, s, extent in zip(sizes, strides, found.extents, strict=True)
        ]
        less, more = [need // 2 for need in needs], [need - need // 2 for need in needs]
        begin, end = (less, more) if auto == "SAME_UPPER" else (more, less)
    elif auto != "NOTSET":
        raise GraphError(f"its auto_pad is {auto!r}; it must be NOTSET, VALID, SAME_UPPER or SAME_LOWER")
    if ceiling:
        for axis, (n, s, extent) in enumerate(zip(sizes, strides, found.extents, strict=True)):
            count = -(-(n + begin[axis] + end[axis] - extent) // s) + 1
            if (count - 1) * s >= n + begin[axis]:  # a window must not begin behind the values
                count -= 1
            end[axis] = max(end[axis], (count - 1) * s + extent - n - begin[axis])
    return Windows(kernel=kernel, strides=strides, dilations=dilations, begin=tuple(begin), end=tuple(end))


def _conv_of(importer: Importer, node: FileNode, data: str, weights: str) -> Conv:
    sizes, kernel = (importer.builder.tensors[one].shape[2:] for one in (data, weights))
    declared = tuple(node.attributes.get("kernel_shape") or kernel)
    if declared != kernel or not kernel:
        raise GraphError(f"its kernel_shape is {declared}; its weights have {kernel}")
    return Conv(windows=_windows(node, sizes, kernel), groups=int(node.attributes.get("group", 1)))


@_rule("QLinearConv")
def _qlinear_conv(importer: Importer, node: FileNode) -> None:
    data, weights = importer.quantized(node, 0, 1, 2), importer.quantized(node, 3, 4, 5, 0)
    operands = [data, weights, *(importer.operand(one) for one in node.inputs[8:9] if one)]
    default = importer.builder.tensors[data].dtype
    importer.emit(
        node, _conv_of(importer, node, data, weights), operands, **importer.result(node, 6, 7, default)
    )


@_rule("Conv")
def _conv(importer: Importer, node: FileNode) -> None:
    operands = [importer.operand(one) for one in node.inputs if one]
    importer.emit(node, _conv_of(importer, node, *operands[:2]), operands)


def _shifted(importer: Importer, node: FileNode, place: int, zero: int, axis: int | None = None) -> str:
    """An operand of which only the zero point is known."""
    tensor = importer.tensor(node.inputs[place])
    zeros = importer.constant(node, zero, "the zero point")
    found = importer.pair(np.ones(1, np.float32), zeros, tensor.dtype, axis)
    known = tensor.quantization
    if known is not None and (known.zero, known.axis) == (found.zero, found.axis):
        return tensor.name
    return importer.builder.demand(tensor.name, found)


@_rule("ConvInteger")
def _conv_integer(importer: Importer, node: FileNode) -> None:
    data, weights = _shifted(importer, node, 0, 2), _shifted(importer, node, 1, 3, 0)
    importer.emit(node, _conv_of(importer, node, data, weights), [data, weights], dtype="int32")


@_rule("MatMulInteger")
def _matmul_integer(importer: Importer, node: FileNode) -> None:
    columns = len(importer.tensor(node.inputs[1]).shape) - 1
    data, weights = _shifted(importer, node, 0, 2), _shifted(importer, node, 1, 3, columns)
    importer.emit(node, MatMul(), [data, weights], dtype="int32")


@_rule("QLinearMatMul")
def _qlinear_matmul(importer: Importer, node: FileNode) -> None:
    columns = len(importer.tensor(node.inputs[3]).shape) - 1
    data, weights = importer.quantized(node, 0, 1, 2), importer.quantized(node, 3, 4, 5, columns)
    default = importer.builder.tensors[data].dtype
    importer.emit(node, MatMul(), [data, weights], **importer.result(node, 6, 7, default))


@_rule("MatMul")
def _matmul(importer: Importer, node: FileNode) -> None:
    importer.emit(node, MatMul(), [importer.operand(one) for one in node.inputs])


def _matrix(importer: Importer, node: FileNode, name: str, *, transposed: Any) -> str:
    """A matrix as MatMul takes it."""
    tensor = importer.builder.tensors[name]
    if len(tensor.shape) != 2:
        raise GraphError(f"operand {name!r} is {tensor.shape}; it must be a matrix")
    if not transposed:
        return name
    turned = importer.between(node, "transposed")
    array = importer.array(name)
    if array is None:
        return importer.emit(node, Transpose(permutation=(1, 0)), [name], turned)
    return importer.builder.constant(turned, np.ascontiguousarray(array.T))


def _row(importer: Importer, node: FileNode, name: str, columns: int) -> str | None:
    """A bias of one number for each column, None if it is none."""
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


@_rule("QGemm", domain=MICROSOFT)
def _qgemm(importer: Importer, node: FileNode) -> None:
    attributes = node.attributes
    alpha = np.float32(attributes.get("alpha", 1.0))
    data = _matrix(importer, node, importer.quantized(node, 0, 1, 2), transposed=attributes.get("transA"))
    # turned before it gets its scales, so that these go along the columns in any case
    weights = _matrix(importer, node, importer.operand(node.inputs[3]), transposed=attributes.get("transB"))
    dtype = importer.builder.tensors[weights].dtype
    weights = importer.builder.demand(weights, importer.quantization(node, 4, 5, dtype, 1))
    operands = [data, weights]
    if len(node.inputs) > 6 and node.inputs[6]:
        row = _row(importer, node, node.inputs[6], importer.builder.tensors[weights].shape[1])
        if row is None:
            raise GraphError(
                f"its bias {node.inputs[6]!r} is {importer.tensor(node.inputs[6]).shape}; it must be "
                "one number for each column"
            )
        operands.append(row)
    if len(node.inputs) > 7 and node.inputs[7]:
        default = importer.builder.tensors[data].dtype
        importer.emit(node, MatMul(alpha=float(alpha)), operands, **importer.result(node, 7, 8, default))
        return
    sums = importer.emit(node, MatMul(), operands, importer.between(node, "sums"), dtype="int32")
    numbers = importer.emit(node, Cast(), [sums], importer.between(node, "numbers"), dtype="float32")
    scale = (alpha * importer.builder.tensors[data].per_tensor[0]) * np.array(
        importer.builder.tensors[weights].quantized.scale, np.float32
    )
    factor = importer.builder.constant(importer.between(node, "scale"), np.asarray(scale, np.float32))
    importer.emit(node, Mul(), [numbers, factor])


@_rule("Gemm")
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


# --- value by value --------------------------------------------------------------------------------


@_rule("QLinearAdd", "QLinearMul", domain=MICROSOFT)
def _qlinear_binary(importer: Importer, node: FileNode) -> None:
    operands = [importer.quantized(node, 0, 1, 2), importer.quantized(node, 3, 4, 5)]
    default = importer.builder.tensors[operands[0]].dtype
    other = importer.builder.tensors[operands[1]].dtype
    if default != other:
        raise GraphError(f"its operands are {default} and {other}; they must have one type")
    operator = Add() if node.kind == "QLinearAdd" else Mul()
    importer.emit(node, operator, operands, **importer.result(node, 6, 7, default))


@_rule("Add", "Mul", "Sub", "Div", "Pow", "PRelu")
def _binary(importer: Importer, node: FileNode) -> None:
    operands = [importer.operand(one) for one in node.inputs]
    operators = {"Add": Add(), "Mul": Mul()}
    importer.emit(node, operators.get(node.kind) or Binary(function=node.kind), operands)


@_rule("Min", "Max", "Sum")
def _several(importer: Importer, node: FileNode) -> None:
    operator = Add() if node.kind == "Sum" else Binary(function=node.kind)
    names = [importer.operand(one) for one in node.inputs]
    if len(names) == 1:
        importer.alias(node, names[0])
        return
    total = names[0]
    for place, name in enumerate(names[1:], 1):
        last = place == len(names) - 1
        total = importer.emit(node, operator, [total, name], None if last else importer.between(node, "part"))


@_rule("Relu")
def _relu(importer: Importer, node: FileNode) -> None:
    importer.emit(node, Clip(low=0), [importer.operand(node.inputs[0])])


@_rule("Clip")
def _clip(importer: Importer, node: FileNode) -> None:
    name = importer.operand(node.inputs[0])
    bounds: list[float | None]
    if node.opset < 11:
        bounds = [node.attributes.get("min"), node.attributes.get("max")]
    else:
        arrays = [importer.constant(node, place, "a bound") for place in (1, 2)]
        if any(one is not None and one.size != 1 for one in arrays):
            raise GraphError("a bound has several values or none; it must have one")
        bounds = [None if one is None else one.item() for one in arrays]
    if any(bound is not None and math.isnan(bound) for bound in bounds):
        raise GraphError(f"its bounds are {bounds}; they must be numbers")
    finite = [None if bound is None or math.isinf(bound) else bound for bound in bounds]
    importer.emit(node, Clip(low=finite[0], high=finite[1]), [name])


def _parameters(node: FileNode) -> tuple[tuple[str, float], ...]:
    known = FUNCTIONS[node.kind][1]
    given = dict(node.attributes)
    if node.kind == "Gelu":
        given = {"approximate": float(given.get("approximate", "none") == "tanh")}
    return tuple((name, float(given[name])) for name in known if given.get(name) is not None)


@_rule(*FUNCTIONS)
def _function(importer: Importer, node: FileNode) -> None:
    operator = Function(function=node.kind, parameters=_parameters(node))
    importer.emit(node, operator, [importer.operand(node.inputs[0])])


@_rule("Gelu", domain=MICROSOFT)
def _gelu(importer: Importer, node: FileNode) -> None:
    importer.emit(node, Function(function="Gelu"), [importer.operand(node.inputs[0])])


@_rule("QLinearSigmoid", "QLinearLeakyRelu", domain=MICROSOFT)
def _qlinear_function(importer: Importer, node: FileNode) -> None:
    name = importer.quantized(node, 0, 1, 2)
    alpha = float(node.attributes.get("alpha", 0.01))
    operator = (
        Function(function="Sigmoid")
        if node.kind == "QLinearSigmoid"
        else Function(function="LeakyRelu", parameters=(("alpha", alpha),))
    )
    default = importer.builder.tensors[name].dtype
    importer.emit(node, operator, [name], **importer.result(node, 3, 4, default))


@_rule("Softmax")
def _softmax(importer: Importer, node: FileNode) -> None:
    tensor = importer.tensor(node.inputs[0])
    importer.emit(node, Softmax(axes=_softmax_axes(node, tensor, node.opset)), [tensor.name])


@_rule("QLinearSoftmax", domain=MICROSOFT)
def _qlinear_softmax(importer: Importer, node: FileNode) -> None:
    tensor = importer.builder.tensors[importer.quantized(node, 0, 1, 2)]
    operator = Softmax(axes=_softmax_axes(node, tensor, int(node.attributes.get("opset", 13))))
    importer.emit(node, operator, [tensor.name], **importer.result(node, 3, 4, tensor.dtype))


def _softmax_axes(node: FileNode, tensor: Tensor, opset: int) -> tuple[int, ...]:
    rank = len(tensor.shape)
    if opset < 13:
        return tuple(range(axis_of(node.attributes.get("axis", 1), rank), rank))
    return (axis_of(node.attributes.get("axis", -1), rank),)


@_rule("BatchNormalization")
def _batch_normalization(importer: Importer, node: FileNode) -> None:
    if node.attributes.get("training_mode", 0) or any(node.outputs[1:]):
        raise GraphError("it is in training mode; a network must be ready for inference")
    tensor = importer.tensor(node.inputs[0])
    scale, bias, mean, variance = (
        importer.needed(node, place, what).astype(np.float32)
        for place, what in enumerate(("the scale", "the bias", "the mean", "the variance"), 1)
    )
    with np.errstate(all="ignore"):  # each step in float32, as ONNX Runtime has them
        deviation = np.sqrt(variance + np.float32(node.attributes.get("epsilon", 1e-5)))
        factor = (np.float32(1) / deviation) * scale
        addend = bias - mean * factor
    along = (-1, *[1] * (len(tensor.shape) - 2))
    factors = importer.builder.constant(importer.between(node, "factor"), factor.reshape(along))
    addends = importer.builder.constant(importer.between(node, "addend"), addend.reshape(along))
    product = importer.emit(node, Mul(), [tensor.name, factors], importer.between(node, "product"))
    importer.emit(node, Add(), [product, addends])


@_rule("Cast")
def _cast(importer: Importer, node: FileNode) -> None:
    name = importer.operand(node.inputs[0])
    dtype = importer.builder.tensors[name].dtype
    wanted = onnx().helper.tensor_dtype_to_np_dtype(node.attributes["to"]).name
    if dtype == wanted:
        importer.alias(node, name)
    elif (dtype, wanted) == ("int32", "float32"):
        importer.emit(node, Cast(), [name], dtype="float32")
    else:
        raise GraphError(f"it makes {wanted} of {dtype}; it may make float32 of int32")


# --- pools -----------------------------------------------------------------------------------------


def _single_output(node: FileNode) -> None:
    if any(node.outputs[1:]):
        raise GraphError(f"its output {node.outputs[1]!r} is asked for; only the first can be had")


def _kernel(node: FileNode) -> Shape:
    kernel = tuple(node.attributes.get("kernel_shape") or ())
    if not kernel:
        raise GraphError("its kernel_shape is missing")
    return kernel


@_rule("MaxPool")
def _max_pool(importer: Importer, node: FileNode) -> None:
    _single_output(node)
    tensor = importer.tensor(node.inputs[0])
    ceiling = bool(node.attributes.get("ceil_mode", 0))
    windows = _windows(node, tensor.shape[2:], _kernel(node), ceiling=ceiling)
    importer.emit(node, MaxPool(windows=windows), [tensor.name])


@_rule("GlobalMaxPool")
def _global_max_pool(importer: Importer, node: FileNode) -> None:
    tensor = importer.tensor(node.inputs[0])
    kernel = tensor.shape[2:]
    none = (0,) * len(kernel)
    ones = (1,) * len(kernel)
    windows = Windows(kernel=kernel, strides=ones, dilations=ones, begin=none, end=none)
    importer.emit(node, MaxPool(windows=windows), [tensor.name])


def _average(node: FileNode, tensor: Tensor) -> AveragePool:
    counted = bool(node.attributes.get("count_include_pad", 0))
    kernel, sizes = _kernel(node), tensor.shape[2:]
    windows = _windows(node, sizes, kernel, ceiling=bool(node.attributes.get("ceil_mode", 0)))
    if counted and windows != _windows(node, sizes, kernel):
        raise GraphError(
            "it counts padding and its ceil_mode makes windows reach beyond it; it may do only one of these"
        )
    return AveragePool(windows=windows, count_padding=counted)


@_rule("AveragePool")
def _average_pool(importer: Importer, node: FileNode) -> None:
    tensor = importer.tensor(node.inputs[0])
    importer.emit(node, _average(node, tensor), [tensor.name])


@_rule("GlobalAveragePool")
def _global_average_pool(importer: Importer, node: FileNode) -> None:
    importer.emit(node, GlobalAveragePool(), [importer.operand(node.inputs[0])])


@_rule("QLinearAveragePool", "QLinearGlobalAveragePool", domain=MICROSOFT)
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


@_rule("ReduceMean")
def _reduce_mean(importer: Importer, node: FileNode) -> None:
    tensor = importer.tensor(node.inputs[0])
    rank = len(tensor.shape)
    axes = node.attributes.get("axes") if node.opset < 18 else importer.constant(node, 1, "the axes")
    wanted = [] if axes is None else integers(axes)
    if not wanted:
        if node.attributes.get("noop_with_empty_axes", 0):
            importer.alias(node, tensor.name)
            return
        wanted = list(range(rank))
    chosen = tuple(sorted({axis_of(axis, rank) for axis in wanted}))
    spatial = rank > 2 and chosen == tuple(range(2, rank))
    operator = GlobalAveragePool() if spatial else Mean(axes=chosen)
    if node.attributes.get("keepdims", 1):
        importer.emit(node, operator, [tensor.name])
        return
    kept = importer.emit(node, operator, [tensor.name], importer.between(node, "kept"))
    sizes = squeezed(importer.builder.tensors[kept].shape, chosen)
    importer.emit(node, Reshape(sizes=sizes), [kept])


# --- movement --------------------------------------------------------------------------------------


@_rule("Identity")
def _identity(importer: Importer, node: FileNode) -> None:
    importer.alias(node, importer.operand(node.inputs[0]))


@_rule("Dropout")
def _dropout(importer: Importer, node: FileNode) -> None:
    _single_output(node)
    training = importer.constant(node, 2, "the training mode")
    if training is not None and training.any():
        raise GraphError("it is in training mode; a network must be ready for inference")
    importer.alias(node, importer.operand(node.inputs[0]))


@_rule("Flatten")
def _flatten(importer: Importer, node: FileNode) -> None:
    tensor = importer.tensor(node.inputs[0])
    axis = int(node.attributes.get("axis", 1))
    rank = len(tensor.shape)
    if not -rank <= axis <= rank:
        raise GraphError(f"its axis is {axis}; the tensor has {rank}")
    axis = axis + rank if axis < 0 else axis
    sizes = (math.prod(tensor.shape[:axis]), math.prod(tensor.shape[axis:]))
    importer.emit(node, Reshape(sizes=sizes), [tensor.name])


@_rule("Reshape")
def _reshape(importer: Importer, node: FileNode) -> None:
    tensor = importer.tensor(node.inputs[0])
    sizes = reshaped(
        tensor.shape,
        importer.needed(node, 1, "the shape"),
        zero_is_zero=bool(node.attributes.get("allowzero", 0)),
    )
    importer.emit(node, Reshape(sizes=sizes), [tensor.name])


@_rule("Squeeze", "Unsqueeze")
def _squeeze(importer: Importer, node: FileNode) -> None:
    tensor = importer.tensor(node.inputs[0])
    axes = node.attributes.get("axes") if node.opset < 13 else importer.constant(node, 1, "the axes")
    if node.kind == "Squeeze":
        sizes = squeezed(tensor.shape, axes)
    elif axes is None:
        raise GraphError("its axes are missing")
    else:
        sizes = unsqueezed(tensor.shape, axes)
    importer.emit(node, Reshape(sizes=sizes), [tensor.name])


@_rule("Transpose")
def _transpose(importer: Importer, node: FileNode) -> None:
    tensor = importer.tensor(node.inputs[0])
    rank = len(tensor.shape)
    permutation = tuple(node.attributes.get("perm") or reversed(range(rank)))
    importer.emit(node, Transpose(permutation=permutation), [tensor.name])


@_rule("Concat")
def _concat(importer: Importer, node: FileNode) -> None:
    names = [importer.operand(one) for one in node.inputs if one]
    axis = axis_of(node.attributes.get("axis", 0), len(importer.builder.tensors[names[0]].shape))
    importer.emit(node, Concat(axis=axis), names)


@_rule("QLinearConcat", domain=MICROSOFT)
def _qlinear_concat(importer: Importer, node: FileNode) -> None:
    zeros = importer.needed(node, 1, "the zero point")
    dtype = zeros.dtype.name
    quantization = importer.pair(importer.needed(node, 0, "the scale"), zeros, dtype)
    names = []
    for place in range(2, len(node.inputs), 3):
        name = importer.quantized(node, place, place + 1, place + 2)
        names.append(_requantized(importer, node, name, dtype, quantization))
    if not names:
        raise GraphError("it has no operands")
    axis = axis_of(node.attributes.get("axis", 0), len(importer.builder.tensors[names[0]].shape))
    importer.emit(node, Concat(axis=axis), names)


def _requantized(
    importer: Importer, node: FileNode, name: str, dtype: str, quantization: Quantization
) -> str:
    tensor = importer.builder.tensors[name]
    if (tensor.dtype, tensor.quantization) == (dtype, quantization):
        return name
    target = importer.between(node, "requantized")
    return importer.emit(node, Requantize(), [name], target, dtype=dtype, quantization=quantization)


@_rule("Split")
def _split(importer: Importer, node: FileNode) -> None:
    tensor = importer.tensor(node.inputs[0])
    axis = axis_of(node.attributes.get("axis", 0), len(tensor.shape))
    size, count = tensor.shape[axis], len(node.outputs)
    sizes = node.attributes.get("split") if node.opset < 13 else importer.constant(node, 1, "the sizes")
    if sizes is None:
        share = -(-size // count)
        sizes = [share] * (count - 1) + [size - share * (count - 1)]
    parts = integers(sizes)
    if len(parts) != count or sum(parts) != size or min(parts, default=0) < 1:
        raise GraphError(f"it makes {parts} of {size} for {count} outputs; they must add up, one for each")
    start = 0
    for name, part in zip(node.outputs, parts, strict=True):
        if name:
            importer.emit(node, _part(tensor, axis, start, part), [tensor.name], name)
        start += part


def _part(tensor: Tensor, axis: int, start: int, size: int) -> Slice:
    starts, sizes = [0] * len(tensor.shape), list(tensor.shape)
    starts[axis], sizes[axis] = start, size
    return Slice(starts=tuple(starts), sizes=tuple(sizes), steps=(1,) * len(sizes))


@_rule("Slice")
def _slice(importer: Importer, node: FileNode) -> None:
    tensor = importer.tensor(node.inputs[0])
    starts, ends = importer.needed(node, 1, "the starts"), importer.needed(node, 2, "the ends")
    axes, steps = importer.constant(node, 3, "the axes"), importer.constant(node, 4, "the steps")
    found = slices(tensor.shape, starts, ends, axes, steps)
    columns: Sequence[tuple[int, ...]] = list(zip(*found, strict=True))
    operator = Slice(starts=columns[0], sizes=columns[1], steps=columns[2])
    importer.emit(node, operator, [tensor.name])


@_rule("Pad")
def _pad(importer: Importer, node: FileNode) -> None:
    tensor = importer.tensor(node.inputs[0])
    rank = len(tensor.shape)
    if node.opset < 11:
        pads, value = list(node.attributes["pads"]), float(node.attributes.get("value", 0.0))
        axes = list(range(rank))
    else:
        pads = integers(importer.needed(node, 1, "the pads"))
        held = importer.constant(node, 2, "the value")
        value = 0.0 if held is None or not held.size else float(held.reshape(-1)[0])
        chosen = importer.constant(node, 3, "the axes")
        axes = list(range(rank)) if chosen is None else [axis_of(axis, rank) for axis in integers(chosen)]
    if len(pads) != 2 * len(axes):
        raise GraphError(f"its pads are {pads}; there must be two for each of {len(axes)} axes")
    begin, end = [0] * rank, [0] * rank
    for place, axis in enumerate(axes):
        begin[axis], end[axis] = int(pads[place]), int(pads[place + len(axes)])
    mode = node.attributes.get("mode", "constant")
    operator = Pad(begin=tuple(begin), end=tuple(end), value=value, mode=mode)
    importer.emit(node, operator, [tensor.name])


# --- shapes ----------------------------------------------------------------------------------------


@_rule("Shape")
def _shape(importer: Importer, node: FileNode) -> None:
    sizes = importer.tensor(node.inputs[0]).shape
    start, end = node.attributes.get("start", 0), node.attributes.get("end")
    importer.arrays[node.outputs[0]] = np.array(sizes[start:end], dtype=np.int64)


@_rule("Size")
def _size(importer: Importer, node: FileNode) -> None:
    importer.arrays[node.outputs[0]] = np.array(importer.tensor(node.inputs[0]).size, dtype=np.int64)


def _constants_only(importer: Importer, node: FileNode) -> None:
    held = next(name for name in node.inputs if name and importer.array(name) is None)
    raise GraphError(f"its input {held!r} is known in a run only; {node.kind} is computed on constants alone")


for _kind in FOLDED:
    RULES.setdefault(("", _kind), _constants_only)
