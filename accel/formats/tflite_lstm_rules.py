"""The rule of TensorFlow Lite's LSTM."""

from collections.abc import Sequence

import numpy as np

from accel.base.errors import GraphError
from accel.formats.tflite_file import FileOperator
from accel.formats.tflite_float_rules import Steps, emit_numbers
from accel.formats.tflite_importer import TfliteImporter
from accel.formats.tflite_registry import rule
from accel.graph.graph_tensor import Array, Tensor
from accel.graph.quantize_values import dequantize

_GATES = (0, 3, 1, 2)
"""The order input, forget, cell, output becomes ONNX's input, output, forget, cell."""
_PEEPHOLES = (0, 2, 1)
"""The same order without the cell."""
_TANH = 4
"""In the schema."""


@rule(24, "UNIDIRECTIONAL_SEQUENCE_LSTM")
def _lstm(importer: TfliteImporter, operator: FileOperator) -> None:
    """An LSTM in float32 without projection and normalized gates. Its state starts at 0.

    After dynamic-range quantization, its int8 weights stand for float32.
    """
    inputs = operator.inputs
    if any(place >= 0 for place in (*inputs[16:18], *inputs[20:24])):
        raise GraphError("it has a projection or normalized gates; it must not")
    if operator.options["lstm"] != _TANH:
        raise GraphError(f"its activation is {operator.options['lstm']}; it must be {_TANH}, tanh")
    if operator.options["cell"] or operator.options["projection"]:
        raise GraphError("it clips its cells or its projection; it must not")
    own, again = _gates(importer, inputs[1:5]), _gates(importer, inputs[5:9])
    biases = _gates(importer, inputs[12:16])
    hidden = again[0].shape[1]
    constants = {
        "w": np.concatenate([own[n] for n in _GATES])[None],
        "r": np.concatenate([again[n] for n in _GATES])[None],
        "b": np.concatenate([*(biases[n] for n in _GATES), *(np.zeros_like(one) for one in biases)])[None],
        "axes": np.array([1], np.int64),
    }
    names = ["w", "r", "b"]
    if any(place >= 0 for place in inputs[9:12]):
        peepholes = _peepholes(importer, inputs[9:12])
        constants["p"] = np.concatenate([peepholes[n] for n in _PEEPHOLES])[None]
        names += ["", "", "", "p"]
    steps: Steps = [
        ("LSTM", ["x0", *names], {"hidden_size": hidden}),
        ("Squeeze", ["t0", "axes"], {}),
    ]
    if not operator.options["time"]:
        turn = {"perm": [1, 0, 2]}
        steps = [
            ("Transpose", ["x0"], turn),
            ("LSTM", ["t0", *names], {"hidden_size": hidden}),
            ("Squeeze", ["t1", "axes"], {}),
            ("Transpose", ["t2"], turn),
        ]
    emit_numbers(importer, operator, steps, inputs[:1], constants)


def _gates(importer: TfliteImporter, places: Sequence[int]) -> list[Array]:
    """Return the weights or biases of input, forget, cell and output gate.

    A missing input gate is ``1 - forget``, which is the sigmoid of the negated sum.
    """
    found = [None if place < 0 else _numbers(importer, place) for place in places]
    _, forget, cell, output = found
    if forget is None or cell is None or output is None:
        raise GraphError("only its input gate may be omitted")
    return [-forget if found[0] is None else found[0], forget, cell, output]


def _peepholes(importer: TfliteImporter, places: Sequence[int]) -> list[Array]:
    found = [None if place < 0 else _numbers(importer, place) for place in places]
    entry, forget, output = found
    if forget is None or output is None:
        raise GraphError("only its input gate may be without a peephole, and then it must be omitted")
    return [-forget if entry is None else entry, forget, output]


def _numbers(importer: TfliteImporter, place: int) -> Array:
    values, one = importer.constant(place), importer.file.tensors[place]
    quantization = importer.quantization(one)
    if values.dtype != np.float32 and quantization is None:
        raise GraphError(f"tensor {one.name!r} is {one.dtype} without a scale; it must be float32 or int8")
    if quantization is None:
        return values
    return dequantize(values, Tensor(name="", shape=values.shape, dtype=one.dtype, quantization=quantization))
