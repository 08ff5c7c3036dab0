"""Rules of TensorFlow Lite's operators that depend only on sizes."""

import numpy as np

from accel.base.errors import GraphError
from accel.formats.onnx_constant_folding import integers
from accel.formats.tflite_file import FileOperator
from accel.formats.tflite_float_rules import Steps, emit_numbers
from accel.formats.tflite_importer import TfliteImporter
from accel.formats.tflite_registry import rule
from accel.graph.graph_tensor import Shape, check_shape


def _shape(importer: TfliteImporter, place: int) -> Shape:
    return importer.operand(place)[1]


@rule(1, "SHAPE", "RANK")
def _sizes(importer: TfliteImporter, operator: FileOperator) -> None:
    sizes = _shape(importer, operator.inputs[0])
    dtype = importer.file.tensors[operator.outputs[0]].dtype
    if dtype not in {"int32", "int64"}:
        raise GraphError(f"its result is {dtype}; it must be int32 or int64")
    values = np.array(sizes if operator.kind == "SHAPE" else len(sizes), dtype)
    importer.add_constant(operator.outputs[0], values)


@rule(2, "FILL")
def _fill(importer: TfliteImporter, operator: FileOperator) -> None:
    sizes = np.array(integers(importer.constant(operator.inputs[0])), np.int64)
    value = importer.known(operator.inputs[1])
    tensor = importer.file.tensors[operator.outputs[0]]
    if value is None:
        steps: Steps = [("Expand", ["x0", "sizes"], {})]
        emit_numbers(importer, operator, steps, operator.inputs[1:2], {"sizes": sizes})
        return
    if value.size != 1:
        raise GraphError(f"its value is of shape {value.shape}; it must be one number")
    check_shape(tensor.name, tuple(sizes.tolist()), tensor.dtype)
    importer.add_constant(operator.outputs[0], np.full(sizes, value.reshape(()), value.dtype))


@rule(1, "ZEROS_LIKE")
def _zeros(importer: TfliteImporter, operator: FileOperator) -> None:
    sizes = _shape(importer, operator.inputs[0])
    tensor = importer.file.tensors[operator.outputs[0]]
    check_shape(tensor.name, sizes, tensor.dtype)
    importer.add_constant(operator.outputs[0], np.zeros(sizes, tensor.dtype))


@rule(3, "RANGE")
def _range(importer: TfliteImporter, operator: FileOperator) -> None:
    values = [importer.constant(place) for place in operator.inputs[:3]]
    if any(one.size != 1 for one in values):
        raise GraphError("its start, limit and step must be one number each")
    start, limit, step = (one.reshape(()).item() for one in values)
    tensor = importer.file.tensors[operator.outputs[0]]
    if not step:
        raise GraphError("its step is 0; it must not be")
    count = -((start - limit) // step)
    check_shape(tensor.name, (max(0, int(count)),), tensor.dtype)
    importer.add_constant(operator.outputs[0], np.arange(start, limit, step).astype(values[0].dtype))
