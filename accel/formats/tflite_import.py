"""Import TensorFlow Lite models as graphs."""

import os

from accel.base.errors import GraphError
from accel.formats import (  # noqa: F401  # they register their rules
    tflite_float_rules,
    tflite_movement_rules,
    tflite_rules,
)
from accel.formats.integer_operators import with_integer_operators
from accel.formats.tflite_file import FileOperator, TfliteFile, read_tflite, read_tflite_model
from accel.formats.tflite_importer import TfliteImporter
from accel.formats.tflite_registry import RULES
from accel.graph.graph import Graph

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
        importer.take(one, RULES)
    return with_integer_operators(importer.graph())


def _made(file: TfliteFile, operator: FileOperator) -> str:
    return file.tensors[operator.outputs[0]].name if operator.outputs else ""


def _computes_shapes(file: TfliteFile, operator: FileOperator) -> bool:
    made = [file.tensors[place].dtype for place in operator.outputs]
    return operator.kind in _SHAPES and set(made) <= {"int32", "int64"}
