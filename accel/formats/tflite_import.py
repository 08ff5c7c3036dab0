"""Import TensorFlow Lite models as graphs.

Their pictures have channels last, and a graph's have channels first. Inputs and outputs keep the file's
layout. A tensor is transposed where an operator needs the other order, for example next to inputs and
outputs.
"""

import math
import os
from collections.abc import Callable, Sequence

import numpy as np

from accel.base.arguments import check_integer
from accel.base.errors import GraphError
from accel.formats.onnx_constant_folding import axis_of, integers
from accel.formats.onnx_import import MAX_BATCH
from accel.formats.tflite_file import FileOperator, FileTensor, TfliteFile, read_tflite, read_tflite_model
from accel.graph.constant_folding import fold_constants
from accel.graph.elementwise_operators import (
    Add,
    Binary,
    Clip,
    Dequantize,
    Function,
    Mean,
    Mul,
    Quantize,
    Requantize,
    Softmax,
)
from accel.graph.graph import Graph
from accel.graph.graph_builder import Builder
from accel.graph.graph_operator import Operator
from accel.graph.graph_tensor import QUANTIZED, Quantization, Shape, Tensor
from accel.graph.movement_operators import Concat, Pad, Reshape, Transpose
from accel.graph.pooling_operators import AveragePool, GlobalAveragePool, MaxPool
from accel.graph.product_operators import Conv, MatMul
from accel.graph.qdq_regions import match_regions
from accel.graph.quantize_values import quantize
from accel.graph.window_geometry import Windows

_FIRST = (0, 3, 1, 2)
"""Permutation from channels last to channels first."""
_LAST = (0, 2, 3, 1)
"""Permutation from channels first to channels last."""
_ACTIVATIONS: dict[int, tuple[float | None, float | None]] = {
    0: (None, None),
    1: (0.0, None),
    2: (-1.0, 1.0),
    3: (0.0, 6.0),
}
"""Bounds of fused activations, by their numbers in the schema: none, RELU, RELU_N1_TO_1, RELU6."""
_SAME, _VALID = 0, 1
"""Paddings in the schema."""
_SHAPES = {"SHAPE", "PACK", "STRIDED_SLICE", "GATHER", "FILL", "RANGE", "CAST"}
"""Operators that compute shapes. They are ignored, because a file also has the results."""


def load_tflite(path: str | os.PathLike[str], *, batch: int | None = None) -> Graph:
    """Import a quantized TensorFlow Lite model as a graph with ONNX Runtime's arithmetic.

    Args:
        path: the model file.
        batch: size of the first axis if the model leaves it open, by default 1.

    Raises:
        GraphError: the file cannot be read, an operator is unknown, the model fixes another batch, or
            tensors do not fit.
        ShapeError: the batch is not a positive integer.
    """
    return import_tflite_file(read_tflite(path), batch=batch)


def import_tflite_model(content: bytes, *, batch: int | None = None) -> Graph:
    """Import a TensorFlow Lite model in memory."""
    return import_tflite_file(read_tflite_model(content), batch=batch)


def import_tflite_file(file: TfliteFile, *, batch: int | None = None) -> Graph:
    """Import a parsed TensorFlow Lite model."""
    used = [one for one in file.operators if not _computes_shapes(file, one)]
    unknown = [
        f"{one.kind} of tensor {_made(file, one)!r} is not known" for one in used if one.kind not in RULES
    ]
    if unknown:
        raise GraphError(f"the model has operators that cannot be imported: {'; '.join(unknown)}")
    importer = TfliteImporter(file, batch)
    for one in used:
        importer.take(one)
    return fold_constants(match_regions(importer.graph()))


def _made(file: TfliteFile, operator: FileOperator) -> str:
    return file.tensors[operator.outputs[0]].name if operator.outputs else ""


def _computes_shapes(file: TfliteFile, operator: FileOperator) -> bool:
    made = [file.tensors[place].dtype for place in operator.outputs]
    return operator.kind in _SHAPES and set(made) <= {"int32", "int64"}


class TfliteImporter:
    """A graph under construction. Each tensor exists in the layout of the operator that computes it, and in
    the
    other layout if an operator needs that."""

    def __init__(self, file: TfliteFile, batch: int | None) -> None:
        self.file = file
        self.builder = Builder()
        self.builder.reserve(one.name for one in file.tensors)
        self.wanted = None if batch is None else check_integer("the batch", batch, most=MAX_BATCH)
        self._first: dict[int, str] = {}
        """Tensors of four axes with channels first, by the file's index."""
        self._plain: dict[int, str] = {}
        """Tensors in the file's layout, by the file's index."""
        for place in file.inputs:
            self._input(place)

    def _input(self, place: int) -> None:
        tensor = self.file.tensors[place]
        shape = tensor.shape
        if tensor.open_batch and self.wanted is not None:
            shape = (self.wanted, *shape[1:])
        elif self.wanted not in {None, shape[0] if shape else None}:
            raise GraphError(
                f"the batch is {self.wanted}; the model fixes that of input {tensor.name!r} to {shape[:1]}"
            )
        made = Tensor(
            name=tensor.name, shape=shape, dtype=tensor.dtype, quantization=self.quantization(tensor)
        )
        self.builder.input(made)
        self._plain[place] = tensor.name

    def graph(self) -> Graph:
        names = [self.plain(place) for place in self.file.outputs]
        return self.builder.graph(self.file.name, names)

    def take(self, operator: FileOperator) -> None:
        """Import an operator."""
        least, rule = RULES[operator.kind]
        try:
            if len(operator.outputs) != 1 or len(operator.inputs) < least or -1 in operator.inputs[:least]:
                raise GraphError(f"{operator.kind} has the inputs {operator.inputs}; it needs {least}")
            rule(self, operator)
        except GraphError as error:
            told = str(error)
            name = _made(self.file, operator)
            raise GraphError(told if told.startswith("node ") else f"node {name!r}: {told}") from None

    # --- operands -----------------------------------------------------------------------------------

    def quantization(self, tensor: FileTensor, axis: int | None = None) -> Quantization | None:
        """Return a tensor's scales and zero points.

        Args:
            axis: axis of several scales, if it differs from the file's.
        """
        if not tensor.scale or tensor.dtype not in QUANTIZED:
            return None
        return Quantization.of(
            np.array(tensor.scale, np.float32),
            np.array(tensor.zero, np.int64),
            tensor.axis if axis is None else axis,
        )

    def constant(self, place: int) -> np.ndarray:
        """Return a constant's values."""
        values = self.file.tensors[place].values
        if values is None:
            raise GraphError(f"tensor {self.file.tensors[place].name!r} must be a constant")
        return values

    def plain(self, place: int) -> str:
        """Return the name of a tensor in the file's layout."""
        if place in self._plain:
            return self._plain[place]
        tensor = self.file.tensors[place]
        if place in self._first:
            self._plain[place] = self._turned(self._first[place], _LAST, tensor.name)
            return tensor.name
        if tensor.values is None:
            raise GraphError(f"tensor {tensor.name!r} comes from nowhere")
        self._plain[place] = self.builder.constant(tensor.name, tensor.values, self.quantization(tensor))
        return tensor.name

    def first(self, place: int) -> str:
        """Return the name of a tensor with channels first. Only tensors of four axes are transposed."""
        tensor = self.file.tensors[place]
        if len(tensor.shape) != 4:
            return self.plain(place)
        if place not in self._first:
            name = self.builder.fresh(f"{tensor.name}/channels_first")
            if tensor.values is not None:
                values = np.ascontiguousarray(tensor.values.transpose(_FIRST))
                self._first[place] = self.builder.constant(name, values, self.quantization(tensor))
            else:
                self._first[place] = self._turned(self.plain(place), _FIRST, name)
        return self._first[place]

    def _turned(self, name: str, permutation: Shape, output: str) -> str:
        """Permute a tensor's axes. A Reshape suffices if no value moves."""
        sizes = self.builder.tensors[name].shape
        turned = tuple(sizes[axis] for axis in permutation)
        moving = [axis for axis in range(4) if sizes[axis] > 1]
        if [axis for axis in permutation if axis in moving] == moving:
            return self.builder.emit(Reshape(sizes=turned), [name], output)
        return self.builder.emit(Transpose(permutation=permutation), [name], output)

    # --- results ------------------------------------------------------------------------------------

    def emit(
        self, operator: FileOperator, what: Operator, inputs: Sequence[str], *, first: bool = False
    ) -> None:
        """Add an operator, and the bounds of its fused activation."""
        place = operator.outputs[0]
        tensor = self.file.tensors[place]
        if place in self._plain or place in self._first:
            raise GraphError(f"tensor {tensor.name!r} comes from two places; each must have one")
        four = first and len(tensor.shape) == 4
        name = self.builder.fresh(f"{tensor.name}/channels_first") if four else tensor.name
        quantization = self.quantization(tensor)
        bounds = self._bounds(operator, tensor, quantization)
        made = name if bounds is None else self.builder.fresh(f"{tensor.name}/unbounded")
        self.builder.emit(what, inputs, made, dtype=tensor.dtype, quantization=quantization)
        if bounds is not None:
            self.builder.emit(bounds, [made], name)
        if not four and len(tensor.shape) != len(self.builder.tensors[name].shape):
            raise GraphError(f"its result is {self.builder.tensors[name].shape}; the file has {tensor.shape}")
        (self._first if four else self._plain)[place] = name

    def _bounds(
        self, operator: FileOperator, tensor: FileTensor, quantization: Quantization | None
    ) -> Clip | None:
        """Return the operator of a fused activation, or none if it only repeats the type's bounds."""
        number = int(operator.options.get("activation", 0))
        if number not in _ACTIVATIONS:
            raise GraphError(f"its fused activation is {number}; it must be one of {sorted(_ACTIVATIONS)}")
        low, high = _ACTIVATIONS[number]
        if low is None and high is None:
            return None
        if quantization is None:
            return Clip(low=low, high=high)
        return clip_of(low, high, Tensor(name="", shape=(1,), dtype=tensor.dtype, quantization=quantization))


def clip_of(low: float | None, high: float | None, tensor: Tensor) -> Clip | None:
    """Return real bounds as a Clip of a tensor's integers, or None if they only repeat the type's bounds."""
    limits = np.iinfo(tensor.dtype)
    found = [
        default if one is None else int(quantize(np.array([one], dtype=np.float32), tensor)[0])
        for one, default in ((low, limits.min), (high, limits.max))
    ]
    return None if found == [limits.min, limits.max] else Clip(low=found[0], high=found[1])


# --- rules -----------------------------------------------------------------------------------------

_Rule = Callable[[TfliteImporter, FileOperator], None]
RULES: dict[str, tuple[int, _Rule]] = {}
"""Least number of inputs, and the importing function, for each operator name."""


def _rule(least: int, *kinds: str) -> Callable[[_Rule], _Rule]:
    def register(rule: _Rule) -> _Rule:
        for kind in kinds:
            RULES[kind] = (least, rule)
        return rule

    return register


def _windows(operator: FileOperator, sizes: Shape, kernel: Shape) -> Windows:
    strides = operator.options["strides"]
    dilations = operator.options.get("dilations", (1, 1))
    padding = operator.options["padding"]
    if padding not in {_SAME, _VALID}:
        raise GraphError(f"its padding is {padding}; it must be {_SAME} or {_VALID}")
    plain = Windows(kernel=kernel, strides=strides, dilations=dilations, begin=(0, 0), end=(0, 0))
    if padding == _VALID:
        return plain
    needs = [
        max(0, (-(-n // s) - 1) * s + extent - n)
        for n, s, extent in zip(sizes, strides, plain.extents, strict=True)
    ]
    return Windows(
        kernel=kernel,
        strides=strides,
        dilations=dilations,
        begin=tuple(need // 2 for need in needs),
        end=tuple(need - need // 2 for need in needs),
    )


@_rule(2, "CONV_2D", "DEPTHWISE_CONV_2D")
def _conv(importer: TfliteImporter, operator: FileOperator) -> None:
    tensor = importer.file.tensors[operator.inputs[1]]
    values = importer.constant(operator.inputs[1])
    data = importer.first(operator.inputs[0])
    sizes = importer.builder.tensors[data].shape
    if values.ndim != 4 or len(sizes) != 4:
        raise GraphError(f"its data is {sizes} and its weights are {values.shape}; both need four axes")
    deep = operator.kind == "DEPTHWISE_CONV_2D"
    # (1, height, width, channels) or (channels, height, width, inputs) to (channels, inputs, height, width)
    turned = values.transpose((3, 0, 1, 2) if deep else _FIRST)
    name = importer.builder.fresh(f"{tensor.name}/weights")
    importer.builder.constant(name, np.ascontiguousarray(turned), importer.quantization(tensor, 0))
    name = _as_data(importer, name, data)
    what = Conv(
        windows=_windows(operator, sizes[2:], turned.shape[2:]),
        groups=sizes[1] if deep else sizes[1] // max(1, turned.shape[1]),
    )
    importer.emit(operator, what, [data, name, *_bias(importer, operator)], first=True)


def _as_data(importer: TfliteImporter, weights: str, data: str) -> str:
    """Return int8 weights as float32 if the data is float32, as after dynamic-range quantization."""
    tensors = importer.builder.tensors
    if tensors[data].dtype != "float32" or tensors[weights].dtype == "float32":
        return weights
    name = importer.builder.fresh(f"{weights}/numbers")
    return importer.builder.emit(Dequantize(), [weights], name, dtype="float32")


def _bias(importer: TfliteImporter, operator: FileOperator) -> list[str]:
    if len(operator.inputs) < 3 or operator.inputs[2] < 0:
        return []
    return [importer.plain(operator.inputs[2])]


@_rule(2, "FULLY_CONNECTED")
def _fully_connected(importer: TfliteImporter, operator: FileOperator) -> None:
    if operator.options["format"]:
        raise GraphError(f"the format of its weights is {operator.options['format']}; it must be 0")
    tensor = importer.file.tensors[operator.inputs[1]]
    values = importer.constant(operator.inputs[1])
    if values.ndim != 2:
        raise GraphError(f"its weights are {values.shape}; they must be a matrix")
    name = importer.builder.fresh(f"{tensor.name}/weights")
    importer.builder.constant(name, np.ascontiguousarray(values.T), importer.quantization(tensor, 1))
    data = importer.plain(operator.inputs[0])
    name = _as_data(importer, name, data)
    found = importer.builder.tensors[data]
    out = len(importer.file.tensors[operator.outputs[0]].shape)
    if len(found.shape) != 2 and out == 2:
        if found.size % values.shape[1]:
            raise GraphError(f"its data is {found.shape} and its weights are {values.shape}; they do not fit")
        flat = Reshape(sizes=(found.size // values.shape[1], values.shape[1]))
        data = importer.builder.emit(flat, [data], importer.builder.fresh(f"{data}/flat"))
    importer.emit(operator, MatMul(), [data, name, *_bias(importer, operator)])


@_rule(2, "ADD", "MUL")
def _sides(importer: TfliteImporter, operator: FileOperator) -> None:
    shapes = [importer.file.tensors[place].shape for place in operator.inputs[:2]]
    four = all(len(shape) == 4 for shape in shapes)
    names = [importer.first(place) if four else importer.plain(place) for place in operator.inputs[:2]]
    importer.emit(operator, Add() if operator.kind == "ADD" else Mul(), names, first=four)


_BINARY = {"SUB": "Sub", "DIV": "Div", "MAXIMUM": "Max", "MINIMUM": "Min"}


@_rule(2, *_BINARY)
def _binary(importer: TfliteImporter, operator: FileOperator) -> None:
    """Integers are compared if they stand for equal numbers, and computed in float32 otherwise."""
    what = Binary(function=_BINARY[operator.kind])
    names = [importer.plain(place) for place in operator.inputs[:2]]
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


@_rule(2, "REDUCE_MAX")
def _reduce_max(importer: TfliteImporter, operator: FileOperator) -> None:
    """A max pool whose window is the reduced axes."""
    name = importer.plain(operator.inputs[0])
    sizes = importer.builder.tensors[name].shape
    reduced = sorted({axis_of(axis, len(sizes)) for axis in integers(importer.constant(operator.inputs[1]))})
    kept = [axis for axis in range(len(sizes)) if axis not in reduced]
    length = math.prod(sizes[axis] for axis in reduced)
    emit, fresh = importer.builder.emit, importer.builder.fresh
    turned = emit(Transpose(permutation=(*kept, *reduced)), [name], fresh(f"{name}/turned"))
    count = math.prod(sizes[axis] for axis in kept)
    picture = emit(Reshape(sizes=(1, count, length, 1)), [turned], fresh(f"{name}/picture"))
    windows = Windows(kernel=(length, 1), strides=(1, 1), dilations=(1, 1), begin=(0, 0), end=(0, 0))
    largest = emit(MaxPool(windows=windows), [picture], fresh(f"{name}/largest"))
    importer.emit(operator, Reshape(sizes=importer.file.tensors[operator.outputs[0]].shape), [largest])


@_rule(1, "AVERAGE_POOL_2D", "MAX_POOL_2D")
def _pool(importer: TfliteImporter, operator: FileOperator) -> None:
    data = importer.first(operator.inputs[0])
    sizes = importer.builder.tensors[data].shape
    if len(sizes) != 4:
        raise GraphError(f"its data is {sizes}; it needs four axes")
    windows = _windows(operator, sizes[2:], operator.options["kernel"])
    what: Operator = MaxPool(windows=windows)
    if operator.kind == "AVERAGE_POOL_2D":
        what = AveragePool(windows=windows)
        if what.has_single_window(sizes[2:]):
            what = GlobalAveragePool()
    importer.emit(operator, what, [data], first=True)


def _mean_of_numbers(importer: TfliteImporter, operator: FileOperator, axes: tuple[int, ...]) -> None:
    """Add a mean along any axes, in float32."""
    tensor = importer.file.tensors[operator.outputs[0]]
    emit, fresh = importer.builder.emit, importer.builder.fresh
    data = importer.plain(operator.inputs[0])
    if importer.builder.tensors[data].dtype != "float32":
        data = emit(Dequantize(), [data], fresh(f"{data}/numbers"), dtype="float32")
    mean = emit(Mean(axes=axes), [data], fresh(f"{tensor.name}/mean"))
    shaped = Reshape(sizes=tensor.shape)
    if tensor.dtype == "float32":
        importer.emit(operator, shaped, [mean])
        return
    importer.emit(operator, Quantize(), [emit(shaped, [mean], fresh(f"{tensor.name}/numbers"))])


@_rule(2, "BATCH_MATMUL")
def _batch_matmul(importer: TfliteImporter, operator: FileOperator) -> None:
    names = [importer.plain(place) for place in operator.inputs[:2]]
    for place, adjoint in enumerate(("adj_left", "adj_right")):
        if operator.options.get(adjoint):
            sizes = importer.builder.tensors[names[place]].shape
            axes = (*range(len(sizes) - 2), len(sizes) - 1, len(sizes) - 2)
            turned = importer.builder.fresh(f"{names[place]}/turned")
            names[place] = importer.builder.emit(Transpose(permutation=axes), [names[place]], turned)
    importer.emit(operator, MatMul(), names)


@_rule(2, "MEAN")
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


@_rule(1, "RESHAPE", "SQUEEZE", "EXPAND_DIMS")
def _reshape(importer: TfliteImporter, operator: FileOperator) -> None:
    data = importer.plain(operator.inputs[0])
    size, sizes = importer.builder.tensors[data].size, importer.file.tensors[operator.outputs[0]].shape
    if math.prod(sizes) and sizes and size % math.prod(sizes) == 0:  # the file has the sizes of one input
        sizes = (sizes[0] * (size // math.prod(sizes)), *sizes[1:])
    importer.emit(operator, Reshape(sizes=sizes), [data])


@_rule(2, "TRANSPOSE")
def _transpose(importer: TfliteImporter, operator: FileOperator) -> None:
    permutation = tuple(integers(importer.constant(operator.inputs[1])))
    importer.emit(operator, Transpose(permutation=permutation), [importer.plain(operator.inputs[0])])


@_rule(2, "PAD", "PADV2")
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
    order = _FIRST if four else range(len(tensor.shape))
    begin, end = (tuple(int(pads[axis, side]) for axis in order) for side in (0, 1))
    what = Pad(begin=begin, end=end, value=value)
    data = importer.first(operator.inputs[0]) if four else importer.plain(operator.inputs[0])
    importer.emit(operator, what, [data], first=four)


@_rule(1, "CONCATENATION")
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
    importer.emit(operator, Concat(axis=_FIRST.index(axis) if four else axis), names, first=four)


@_rule(1, "QUANTIZE")
def _quantize(importer: TfliteImporter, operator: FileOperator) -> None:
    floats = importer.file.tensors[operator.inputs[0]].dtype == "float32"
    _single(importer, operator, Quantize() if floats else Requantize())


@_rule(1, "DEQUANTIZE")
def _dequantize(importer: TfliteImporter, operator: FileOperator) -> None:
    _single(importer, operator, Dequantize())


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


@_rule(1, *_FUNCTIONS)
def _function(importer: TfliteImporter, operator: FileOperator) -> None:
    alpha = operator.options.get("alpha")
    parameters = () if alpha is None else (("alpha", float(alpha)),)
    _single(importer, operator, Function(function=_FUNCTIONS[operator.kind], parameters=parameters))


@_rule(1, "RELU", "RELU6", "RELU_N1_TO_1")
def _relu(importer: TfliteImporter, operator: FileOperator) -> None:
    low, high = {"RELU": (0.0, None), "RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0)}[operator.kind]
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


@_rule(1, "SOFTMAX")
def _softmax(importer: TfliteImporter, operator: FileOperator) -> None:
    if operator.options["beta"] != 1:
        raise GraphError(f"its beta is {operator.options['beta']}; it must be 1")
    name = importer.plain(operator.inputs[0])
    axis = len(importer.builder.tensors[name].shape) - 1
    importer.emit(operator, Softmax(axes=(axis,)), [name])
