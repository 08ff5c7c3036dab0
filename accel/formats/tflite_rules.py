"""Rules of TensorFlow Lite's operators."""

import math
from collections.abc import Collection

import numpy as np

from accel.base.errors import GraphError
from accel.formats.onnx_constant_folding import axis_of, integers
from accel.formats.onnx_runtime import has_onnx_runtime
from accel.formats.tflite_file import FileOperator
from accel.formats.tflite_float_rules import emit_dynamic_product, emit_numbers
from accel.formats.tflite_importer import FIRST, TfliteImporter, clip_of
from accel.formats.tflite_registry import rule
from accel.formats.tflite_window_rules import emit_varying_convolution, windows_of
from accel.graph.axis_maxima import maximum_operators
from accel.graph.elementwise_operators import (
    Add,
    Binary,
    Clip,
    Dequantize,
    Function,
    Mean,
    Mul,
    Quantize,
    Reinterpret,
    Requantize,
    Softmax,
)
from accel.graph.graph_operator import Operator
from accel.graph.graph_tensor import Quantization, Shape
from accel.graph.movement_operators import Concat, Pad, Reshape, Transpose
from accel.graph.pooling_operators import AveragePool, GlobalAveragePool, MaxPool
from accel.graph.product_operators import Conv, ConvTranspose, MatMul, Product
from accel.graph.window_geometry import Windows


@rule(2, "CONV_2D", "DEPTHWISE_CONV_2D")
def _conv(importer: TfliteImporter, operator: FileOperator) -> None:
    tensor = importer.file.tensors[operator.inputs[1]]
    values = importer.known(operator.inputs[1])
    if values is None:
        emit_varying_convolution(importer, operator)
        return
    data = importer.first(operator.inputs[0])
    sizes = importer.builder.tensors[data].shape
    if values.ndim != 4 or len(sizes) != 4:
        raise GraphError(f"its data is {sizes} and its weights are {values.shape}; both need four axes")
    deep = operator.kind == "DEPTHWISE_CONV_2D"
    # (1, height, width, channels) or (channels, height, width, inputs) to (channels, inputs, height, width)
    turned = values.transpose((3, 0, 1, 2) if deep else FIRST)
    name = importer.builder.fresh(f"{tensor.name}/weights")
    importer.builder.constant(name, np.ascontiguousarray(turned), importer.quantization(tensor, 0))
    what = Conv(
        windows=windows_of(operator, sizes[2:], turned.shape[2:]),
        groups=sizes[1] if deep else sizes[1] // max(1, turned.shape[1]),
    )
    _emit_product(importer, operator, what, [data, name, *_bias(importer, operator)], first=True)


def _emit_product(
    importer: TfliteImporter, operator: FileOperator, what: Product, operands: list[str], *, first: bool
) -> None:
    """With float32 data and int8 weights, the machine multiplies integers. Without ONNX Runtime the host
    multiplies float32."""
    data, weights, *bias = operands
    tensors = importer.builder.tensors
    if tensors[data].dtype != "float32" or tensors[weights].dtype == "float32":
        importer.emit(operator, what, operands, first=first)
    elif isinstance(what, Conv | MatMul) and has_onnx_runtime():
        emit_dynamic_product(importer, operator, what, operands, first=first)
    else:
        name = importer.builder.fresh(f"{weights}/numbers")
        numbers = importer.builder.emit(Dequantize(), [weights], name, dtype="float32")
        importer.emit(operator, what, [data, numbers, *bias], first=first)


def _bias(importer: TfliteImporter, operator: FileOperator) -> list[str]:
    if len(operator.inputs) < 3 or operator.inputs[2] < 0:
        return []
    return [importer.plain(operator.inputs[2])]


@rule(3, "TRANSPOSE_CONV")
def _transpose_conv(importer: TfliteImporter, operator: FileOperator) -> None:
    tensor = importer.file.tensors[operator.inputs[1]]
    values = importer.constant(operator.inputs[1])
    data = importer.first(operator.inputs[2])
    sizes = importer.builder.tensors[data].shape
    given = importer.known(operator.inputs[0])
    declared = importer.file.tensors[operator.outputs[0]].shape
    result = declared if given is None else tuple(integers(given))
    if not values.ndim == len(sizes) == len(result) == 4:
        raise GraphError(f"its data is {sizes} and its weights are {values.shape}; both need four axes")
    turned = values.transpose(3, 0, 1, 2)  # (outputs, height, width, inputs) to inputs first
    name = importer.builder.fresh(f"{tensor.name}/weights")
    importer.builder.constant(name, np.ascontiguousarray(turned), importer.quantization(tensor, 1))
    strides = operator.options["strides"]
    plain = Windows(kernel=turned.shape[2:], strides=strides, dilations=(1, 1), begin=(0, 0), end=(0, 0))
    over = [n - out for n, out in zip(plain.transposed_sizes(sizes[2:]), result[1:3], strict=True)]
    windows, added = plain.with_padding([max(0, n) for n in over]), tuple(max(0, -n) for n in over)
    bias = [importer.plain(place) for place in operator.inputs[3:4] if place >= 0]
    what = ConvTranspose(windows=windows, added=added)
    _emit_product(importer, operator, what, [data, name, *bias], first=True)


@rule(2, "FULLY_CONNECTED")
def _fully_connected(importer: TfliteImporter, operator: FileOperator) -> None:
    if operator.options["format"]:
        raise GraphError(f"the format of its weights is {operator.options['format']}; it must be 0")
    tensor = importer.file.tensors[operator.inputs[1]]
    values = importer.known(operator.inputs[1])
    shape = importer.operand(operator.inputs[1])[1] if values is None else values.shape
    if len(shape) != 2:
        raise GraphError(f"its weights are {shape}; they must be a matrix")
    name = importer.builder.fresh(f"{tensor.name}/weights")
    if values is None:
        importer.builder.emit(Transpose(permutation=(1, 0)), [importer.plain(operator.inputs[1])], name)
    else:
        importer.builder.constant(name, np.ascontiguousarray(values.T), importer.quantization(tensor, 1))
    data = importer.plain(operator.inputs[0])
    found = importer.builder.tensors[data]
    out = len(importer.file.tensors[operator.outputs[0]].shape)
    if len(found.shape) != 2 and out == 2:
        if found.size % shape[1]:
            raise GraphError(f"its data is {found.shape} and its weights are {shape}; they do not fit")
        flat = Reshape(sizes=(found.size // shape[1], shape[1]))
        data = importer.builder.emit(flat, [data], importer.builder.fresh(f"{data}/flat"))
    _emit_product(importer, operator, MatMul(), [data, name, *_bias(importer, operator)], first=False)


@rule(2, "ADD", "MUL")
def _sides(importer: TfliteImporter, operator: FileOperator) -> None:
    shapes = [importer.file.tensors[place].shape for place in operator.inputs[:2]]
    four = all(len(shape) == 4 for shape in shapes)
    names = [importer.first(place) if four else importer.plain(place) for place in operator.inputs[:2]]
    if _computes_integers(importer, operator):
        emit_numbers(importer, operator, [(operator.kind.title(), ["x0", "x1"], {})], operator.inputs[:2])
        return
    importer.emit(operator, Add() if operator.kind == "ADD" else Mul(), names, first=four)


def _computes_integers(importer: TfliteImporter, operator: FileOperator) -> bool:
    tensors = [importer.file.tensors[place] for place in (*operator.inputs[:2], operator.outputs[0])]
    return all(one.dtype in {"int32", "int64"} and not one.scale for one in tensors)


_BINARY = {"SUB": "Sub", "DIV": "Div", "MAXIMUM": "Max", "MINIMUM": "Min"}


@rule(2, *_BINARY)
def _binary(importer: TfliteImporter, operator: FileOperator) -> None:
    """Integers are compared if they stand for equal numbers, and computed in float32 otherwise."""
    what = Binary(function=_BINARY[operator.kind])
    names = [importer.plain(place) for place in operator.inputs[:2]]
    if _computes_integers(importer, operator):
        emit_numbers(importer, operator, [(what.function, ["x0", "x1"], {})], operator.inputs[:2])
        return
    tensor = importer.file.tensors[operator.outputs[0]]
    quantization = importer.quantization(tensor)
    operands = [importer.builder.tensors[name] for name in names]
    compares = what.function in Binary.COMPARING
    if quantization is None or (compares and all(one.quantization == quantization for one in operands)):
        importer.emit(operator, what, names)
        return
    fresh = importer.builder.fresh
    numbers = [
        importer.builder.emit(Dequantize(), [one.name], fresh(f"{one.name}/numbers"), dtype="float32")
        for one in operands
    ]
    result = importer.builder.emit(what, numbers, fresh(f"{tensor.name}/numbers"))
    importer.emit(operator, Quantize(), [result])


@rule(2, "REDUCE_MAX")
def _reduce_max(importer: TfliteImporter, operator: FileOperator) -> None:
    name = importer.plain(operator.inputs[0])
    sizes = importer.builder.tensors[name].shape
    reduced = sorted({axis_of(axis, len(sizes)) for axis in integers(importer.constant(operator.inputs[1]))})
    keeps = len(importer.file.tensors[operator.outputs[0]].shape) == len(sizes)
    *steps, last = maximum_operators(sizes, reduced, _reduced(sizes, reduced, keeps=keeps))
    for step in steps:
        name = importer.builder.emit(step, [name], importer.builder.fresh(f"{name}/{step.kind}"))
    importer.emit(operator, last, [name])


def _reduced(sizes: Shape, axes: Collection[int], *, keeps: bool) -> Shape:
    if keeps:
        return tuple(1 if axis in axes else size for axis, size in enumerate(sizes))
    return tuple(size for axis, size in enumerate(sizes) if axis not in axes)


@rule(1, "AVERAGE_POOL_2D", "MAX_POOL_2D")
def _pool(importer: TfliteImporter, operator: FileOperator) -> None:
    data = importer.first(operator.inputs[0])
    sizes = importer.builder.tensors[data].shape
    if len(sizes) != 4:
        raise GraphError(f"its data is {sizes}; it needs four axes")
    windows = windows_of(operator, sizes[2:], operator.options["kernel"])
    what: Operator = MaxPool(windows=windows)
    if operator.kind == "AVERAGE_POOL_2D":
        what = AveragePool(windows=windows)
        if what.has_single_window(sizes[2:]):
            what = GlobalAveragePool()
    importer.emit(operator, what, [data], first=True)


def _mean_of_numbers(importer: TfliteImporter, operator: FileOperator, axes: tuple[int, ...]) -> None:
    tensor = importer.file.tensors[operator.outputs[0]]
    emit, fresh = importer.builder.emit, importer.builder.fresh
    data = importer.plain(operator.inputs[0])
    if importer.builder.tensors[data].dtype != "float32":
        data = emit(Dequantize(), [data], fresh(f"{data}/numbers"), dtype="float32")
    mean = emit(Mean(axes=axes), [data], fresh(f"{tensor.name}/mean"))
    keeps = len(tensor.shape) == len(importer.builder.tensors[data].shape)
    shaped = Reshape(sizes=_reduced(importer.builder.tensors[data].shape, axes, keeps=keeps))
    if tensor.dtype == "float32":
        importer.emit(operator, shaped, [mean])
        return
    importer.emit(operator, Quantize(), [emit(shaped, [mean], fresh(f"{tensor.name}/numbers"))])


@rule(2, "BATCH_MATMUL")
def _batch_matmul(importer: TfliteImporter, operator: FileOperator) -> None:
    names = [importer.plain(place) for place in operator.inputs[:2]]
    for place, adjoint in enumerate(("adj_left", "adj_right")):
        if operator.options.get(adjoint):
            sizes = importer.builder.tensors[names[place]].shape
            axes = (*range(len(sizes) - 2), len(sizes) - 1, len(sizes) - 2)
            turned = importer.builder.fresh(f"{names[place]}/turned")
            names[place] = importer.builder.emit(Transpose(permutation=axes), [names[place]], turned)
    importer.emit(operator, MatMul(), names)


@rule(2, "MEAN")
def _mean(importer: TfliteImporter, operator: FileOperator) -> None:
    data = importer.first(operator.inputs[0])
    sizes = importer.builder.tensors[data].shape
    axes = {axis_of(axis, len(sizes)) for axis in integers(importer.constant(operator.inputs[1]))}
    if len(sizes) != 4 or axes != {1, 2}:
        _mean_of_numbers(importer, operator, tuple(sorted(axes)))
        return
    if operator.options["keep"]:
        importer.emit(operator, GlobalAveragePool(), [data], first=True)
        return
    tensor = importer.file.tensors[operator.outputs[0]]
    kept = importer.builder.emit(
        GlobalAveragePool(),
        [data],
        importer.builder.fresh(f"{tensor.name}/kept"),
        dtype=tensor.dtype,
        quantization=importer.quantization(tensor),
    )
    importer.emit(operator, Reshape(sizes=sizes[:2]), [kept])


@rule(1, "RESHAPE", "SQUEEZE", "EXPAND_DIMS")
def _reshape(importer: TfliteImporter, operator: FileOperator) -> None:
    data = importer.plain(operator.inputs[0])
    tensor = importer.builder.tensors[data]
    sizes = _wanted_sizes(importer, operator, tensor.shape)
    count = math.prod(sizes)
    if count and sizes and tensor.size % count == 0:  # the file has the sizes of one input
        sizes = (sizes[0] * (tensor.size // count), *sizes[1:])
    importer.emit(operator, Reshape(sizes=sizes), [data])


def _wanted_sizes(importer: TfliteImporter, operator: FileOperator, shape: Shape) -> Shape:
    declared = importer.file.tensors[operator.outputs[0]].shape
    given = None if len(operator.inputs) < 2 else importer.known(operator.inputs[1])
    if operator.kind == "SQUEEZE":
        axes = operator.options.get("axes") or [axis for axis, size in enumerate(shape) if size == 1]
        removed = {axis_of(axis, len(shape)) for axis in axes}
        found = tuple(size for axis, size in enumerate(shape) if axis not in removed)
        return found if len(found) == len(declared) else declared
    if given is None or given.dtype.kind != "i":
        return declared
    if operator.kind == "EXPAND_DIMS":
        axis = axis_of(int(given.reshape(-1)[0]), len(shape) + 1)
        return (*shape[:axis], 1, *shape[axis:])
    sizes = tuple(integers(given))
    rest = math.prod(size for size in sizes if size != -1)
    if sizes.count(-1) == 1 and rest > 0 and math.prod(shape) % rest == 0:
        return tuple(math.prod(shape) // rest if size == -1 else size for size in sizes)
    return declared if -1 in sizes or len(sizes) != len(declared) else sizes


@rule(2, "TRANSPOSE")
def _transpose(importer: TfliteImporter, operator: FileOperator) -> None:
    permutation = tuple(integers(importer.constant(operator.inputs[1])))
    importer.emit(operator, Transpose(permutation=permutation), [importer.plain(operator.inputs[0])])


@rule(2, "PAD", "PADV2")
def _pad(importer: TfliteImporter, operator: FileOperator) -> None:
    tensor = importer.file.tensors[operator.inputs[0]]
    pads = importer.constant(operator.inputs[1])
    if pads.shape != (len(tensor.shape), 2) or pads.dtype.kind != "i":
        raise GraphError(f"its pads are {pads.shape}; they must be two for each of {len(tensor.shape)} axes")
    quantization = importer.quantization(tensor)
    value = 0.0 if quantization is None else float(quantization.zero[0])
    if len(operator.inputs) > 2 and operator.inputs[2] >= 0:
        given = importer.constant(operator.inputs[2])
        if given.size != 1:
            raise GraphError(f"its value is of shape {given.shape}; it must be one number")
        value = float(given.reshape(-1)[0])
    four = len(tensor.shape) == 4
    order = FIRST if four else range(len(tensor.shape))
    begin, end = (tuple(int(pads[axis, side]) for axis in order) for side in (0, 1))
    what = Pad(begin=begin, end=end, value=value)
    data = importer.first(operator.inputs[0]) if four else importer.plain(operator.inputs[0])
    importer.emit(operator, what, [data], first=four)


@rule(1, "CONCATENATION")
def _concat(importer: TfliteImporter, operator: FileOperator) -> None:
    tensor = importer.file.tensors[operator.outputs[0]]
    rank = len(tensor.shape)
    axis = axis_of(operator.options["axis"], rank)
    four = rank == 4
    quantization = importer.quantization(tensor)
    names = []
    for place in operator.inputs:
        name = importer.first(place) if four else importer.plain(place)
        found = importer.builder.tensors[name]
        if (found.dtype, found.quantization) != (tensor.dtype, quantization):
            name = importer.builder.emit(
                Requantize(),
                [name],
                importer.builder.fresh(f"{name}/requantized"),
                dtype=tensor.dtype,
                quantization=quantization,
            )
        names.append(name)
    importer.emit(operator, Concat(axis=FIRST.index(axis) if four else axis), names, first=four)


@rule(1, "QUANTIZE")
def _quantize(importer: TfliteImporter, operator: FileOperator) -> None:
    floats = importer.file.tensors[operator.inputs[0]].dtype == "float32"
    _single(importer, operator, Quantize() if floats else Requantize())


@rule(1, "DEQUANTIZE")
def _dequantize(importer: TfliteImporter, operator: FileOperator) -> None:
    tensor = importer.file.tensors[operator.inputs[0]]
    if tensor.dtype == "float16":
        values = importer.constant(operator.inputs[0]).astype(np.float32)
        importer.add_constant(operator.outputs[0], values)
        return
    _single(importer, operator, Dequantize())


@rule(1, "DENSIFY")
def _densify(importer: TfliteImporter, operator: FileOperator) -> None:
    """The file reader expands sparse constants."""
    importer.add_constant(operator.outputs[0], importer.constant(operator.inputs[0]))


def _single(importer: TfliteImporter, operator: FileOperator, what: Operator) -> None:
    place = operator.inputs[0]
    four = len(importer.file.tensors[place].shape) == 4 and place not in importer.file.inputs
    name = importer.first(place) if four else importer.plain(place)
    importer.emit(operator, what, [name], first=four)


_FUNCTIONS = {
    "ABS": "Abs",
    "CEIL": "Ceil",
    "ELU": "Elu",
    "EXP": "Exp",
    "FLOOR": "Floor",
    "HARD_SWISH": "HardSwish",
    "LEAKY_RELU": "LeakyRelu",
    "LOG": "Log",
    "LOGISTIC": "Sigmoid",
    "NEG": "Neg",
    "ROUND": "Round",
    "RSQRT": "Rsqrt",
    "SQRT": "Sqrt",
    "TANH": "Tanh",
}


@rule(1, *_FUNCTIONS)
def _function(importer: TfliteImporter, operator: FileOperator) -> None:
    alpha = operator.options.get("alpha")
    parameters = () if alpha is None else (("alpha", float(alpha)),)
    _single(importer, operator, Function(function=_FUNCTIONS[operator.kind], parameters=parameters))


_BOUNDS: dict[str, tuple[float, float | None]] = {
    "RELU": (0.0, None),
    "RELU6": (0.0, 6.0),
    "RELU_0_TO_1": (0.0, 1.0),
    "RELU_N1_TO_1": (-1.0, 1.0),
}


@rule(1, *_BOUNDS)
def _relu(importer: TfliteImporter, operator: FileOperator) -> None:
    low, high = _BOUNDS[operator.kind]
    source, tensor = (importer.file.tensors[place] for place in (operator.inputs[0], operator.outputs[0]))
    quantization = importer.quantization(tensor)
    if quantization is None:
        _single(importer, operator, Clip(low=low, high=high))
        return
    name = importer.first(operator.inputs[0])
    if (source.dtype, importer.quantization(source)) != (tensor.dtype, quantization):
        name = importer.builder.emit(
            Requantize(),
            [name],
            importer.builder.fresh(f"{name}/requantized"),
            dtype=tensor.dtype,
            quantization=quantization,
        )
    limits = np.iinfo(tensor.dtype)
    bounds = clip_of(low, high, importer.builder.tensors[name])
    importer.emit(operator, bounds or Clip(low=limits.min), [name], first=True)


@rule(1, "SOFTMAX")
def _softmax(importer: TfliteImporter, operator: FileOperator) -> None:
    name, beta = importer.plain(operator.inputs[0]), np.float32(operator.options["beta"])
    tensor = importer.builder.tensors[name]
    axis = len(tensor.shape) - 1
    if beta != 1:
        if not 0 < beta < np.inf:
            raise GraphError(f"its beta is {beta}; it must be positive and finite")
        emit, fresh = importer.builder.emit, importer.builder.fresh
        if tensor.quantization is None:
            factor = importer.builder.constant(fresh(f"{name}/beta"), np.array([beta], np.float32))
            name = emit(Mul(), [name, factor], fresh(f"{name}/scaled"))
        else:
            scaled = Quantization.of(
                np.array(tensor.quantization.scale, np.float32) * beta, np.array(tensor.quantization.zero)
            )
            name = emit(
                Reinterpret(), [name], fresh(f"{name}/scaled"), dtype=tensor.dtype, quantization=scaled
            )
    importer.emit(operator, Softmax(axes=(axis,)), [name])
