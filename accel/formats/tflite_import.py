"""Import TensorFlow Lite models as graphs."""

import os

from accel.base.errors import GraphError
from accel.formats import (  # noqa: F401  # they register their rules
    tflite_array_rules,
    tflite_float_rules,
    tflite_lstm_rules,
    tflite_movement_rules,
    tflite_rules,
    tflite_shape_rules,
)
from accel.formats.integer_operators import with_integer_operators
from accel.formats.onnx_file import FileInput
from accel.formats.onnx_import import Shapes, input_shapes
from accel.formats.onnx_tables import with_runtime_tables
from accel.formats.tflite_control_rules import called_graphs
from accel.formats.tflite_file import FileOperator, TfliteFile, read_tflite, read_tflite_model
from accel.formats.tflite_importer import ModelContext, Scope, TfliteImporter
from accel.formats.tflite_registry import RULES
from accel.formats.tflite_variable_rules import next_states, variables_of
from accel.graph.graph import Graph
from accel.graph.graph_state import with_states


def load_tflite(
    path: str | os.PathLike[str], *, batch: int | None = None, shapes: Shapes | None = None
) -> Graph:
    """The arithmetic is ONNX Runtime's. Arguments and errors are those of :func:`accel.load_tflite`."""
    return import_tflite_file(read_tflite(path), batch=batch, shapes=shapes)


def import_tflite_model(content: bytes, *, batch: int | None = None, shapes: Shapes | None = None) -> Graph:
    return import_tflite_file(read_tflite_model(content), batch=batch, shapes=shapes)


def import_tflite_file(file: TfliteFile, *, batch: int | None = None, shapes: Shapes | None = None) -> Graph:
    _check_operators(file)
    context = ModelContext(file.subgraphs)
    context.assigned = variables_of(context, file, {}).assigned
    importer = TfliteImporter(file, Scope(), context)
    importer.open_inputs(input_shapes(_inputs(file, batch, shapes or {}), batch, shapes or {}))
    importer.take_all(RULES)
    states, initial = next_states(importer)
    names = [*importer.results(), *(one.output for one in states)]
    graph = importer.builder.graph(importer.file.name, names)
    return with_states(with_runtime_tables(with_integer_operators(graph)), states, initial)


def _inputs(file: TfliteFile, batch: int | None, shapes: Shapes) -> list[FileInput]:
    """An open size other than 1 is a default."""
    found = []
    for place in file.inputs:
        tensor = file.tensors[place]
        sizes: list[int | str | None] = list(tensor.shape)
        for axis in tensor.open_axes:
            is_needed = tensor.name in shapes or (axis == 0 and batch is not None)
            if is_needed or tensor.shape[axis] == 1:
                sizes[axis] = f"size{axis}" if axis else "batch"
        found.append(FileInput(name=tensor.name, dtype=tensor.dtype, sizes=tuple(sizes)))
    return found


def _check_operators(file: TfliteFile) -> None:
    """Refuse unknown operators of all reachable graphs in one message."""
    wanted, unknown, seen = [file], list[str](), set[int]()
    while wanted:
        graph = wanted.pop(0)
        for one in graph.operators:
            if one.kind not in RULES:
                unknown.append(f"{one.kind} of tensor {_made(graph, one)!r} is not known")
            for index in called_graphs(one):
                if index not in seen and 1 <= index <= len(file.subgraphs):
                    seen.add(index)
                    wanted.append(file.subgraphs[index - 1])
    if unknown:
        raise GraphError(f"the model has operators that cannot be imported: {'; '.join(unknown)}")


def _made(file: TfliteFile, operator: FileOperator) -> str:
    return file.tensors[operator.outputs[0]].name if operator.outputs else ""
