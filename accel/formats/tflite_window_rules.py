"""Rules of TensorFlow Lite's windows that ONNX Runtime computes in float32."""

from typing import Any

import numpy as np

from accel.base.errors import GraphError
from accel.formats.tflite_file import FileOperator
from accel.formats.tflite_float_rules import Steps, emit_numbers
from accel.formats.tflite_importer import FIRST, LAST, TfliteImporter
from accel.formats.tflite_registry import rule
from accel.graph.graph_tensor import Array, Shape
from accel.graph.window_geometry import MAX_TAPS, Windows

_SAME, _VALID = 0, 1
"""In the schema."""
_VOLUME_FIRST = (0, 4, 1, 2, 3)
_VOLUME_LAST = (0, 2, 3, 4, 1)


def windows_of(operator: FileOperator, sizes: Shape, kernel: Shape) -> Windows:
    none = (0,) * len(kernel)
    padding = operator.options["padding"]
    if padding not in {_SAME, _VALID}:
        raise GraphError(f"its padding is {padding}; it must be {_SAME} or {_VALID}")
    plain = Windows(
        kernel=kernel,
        strides=operator.options["strides"],
        dilations=operator.options.get("dilations", (1,) * len(kernel)),
        begin=none,
        end=none,
    )
    return plain if padding == _VALID else plain.with_padding(plain.same_padding(sizes))


def _attributes(windows: Windows) -> dict[str, Any]:
    return {
        "kernel_shape": windows.kernel,
        "strides": windows.strides,
        "dilations": windows.dilations,
        "pads": (*windows.begin, *windows.end),
    }


def emit_varying_convolution(importer: TfliteImporter, operator: FileOperator) -> None:
    """Add a convolution with computed weights."""
    data, weights = (importer.operand(place)[1] for place in operator.inputs[:2])
    if len(data) != 4 or len(weights) != 4:
        raise GraphError(f"its data is {data} and its weights are {weights}; both need four axes")
    is_deep = operator.kind == "DEPTHWISE_CONV_2D"
    windows = windows_of(operator, data[1:3], weights[1:3])
    groups = data[3] if is_deep else data[3] // max(1, weights[3])
    operands = [place for place in operator.inputs[:3] if place >= 0]
    steps: Steps = [
        ("Transpose", ["x0"], {"perm": FIRST}),
        ("Transpose", ["x1"], {"perm": (3, 0, 1, 2) if is_deep else FIRST}),
        (
            "Conv",
            ["t0", "t1", *(["x2"] if len(operands) > 2 else [])],
            _attributes(windows) | {"group": groups},
        ),
        ("Transpose", ["t2"], {"perm": LAST}),
    ]
    emit_numbers(importer, operator, steps, operands)


@rule(2, "CONV_3D")
def _conv_3d(importer: TfliteImporter, operator: FileOperator) -> None:
    data, weights = (importer.operand(place)[1] for place in operator.inputs[:2])
    if len(data) != 5 or len(weights) != 5:
        raise GraphError(f"its data is {data} and its weights are {weights}; both need five axes")
    windows = windows_of(operator, data[1:4], weights[:3])
    operands = [place for place in operator.inputs[:3] if place >= 0]
    attributes = _attributes(windows) | {"group": data[4] // max(1, weights[3])}
    steps: Steps = [
        ("Transpose", ["x0"], {"perm": _VOLUME_FIRST}),
        ("Transpose", ["x1"], {"perm": (4, 3, 0, 1, 2)}),  # (depth, height, width, inputs, outputs)
        ("Conv", ["t0", "t1", *(["x2"] if len(operands) > 2 else [])], attributes),
        ("Transpose", ["t2"], {"perm": _VOLUME_LAST}),
    ]
    emit_numbers(importer, operator, steps, operands)


@rule(1, "L2_POOL_2D")
def _l2_pool(importer: TfliteImporter, operator: FileOperator) -> None:
    """The root of the mean of squares, without padding."""
    sizes = importer.operand(operator.inputs[0])[1]
    if len(sizes) != 4:
        raise GraphError(f"its data is {sizes}; it needs four axes")
    attributes = _attributes(windows_of(operator, sizes[1:3], operator.options["kernel"]))
    steps: Steps = [
        ("Transpose", ["x0"], {"perm": FIRST}),
        ("Mul", ["t0", "t0"], {}),
        ("AveragePool", ["t1"], attributes | {"count_include_pad": 0}),
        ("Sqrt", ["t2"], {}),
        ("Transpose", ["t3"], {"perm": LAST}),
    ]
    emit_numbers(importer, operator, steps, operator.inputs[:1])


@rule(1, "LOCAL_RESPONSE_NORMALIZATION")
def _local_response(importer: TfliteImporter, operator: FileOperator) -> None:
    """Compute ``x * (bias + alpha * sum of squares) ** -beta``.

    The sum is over the channels from ``radius`` before to ``radius - 1`` after. ONNX's LRN has odd windows.
    """
    options, radius = operator.options, int(operator.options["radius"])
    if not 1 <= radius <= MAX_TAPS // 2:
        raise GraphError(f"its radius is {radius}; it must be from 1 to {MAX_TAPS // 2}")
    sizes = importer.operand(operator.inputs[0])[1]
    constants: dict[str, Array] = {
        "rows": np.array([-1, 1, sizes[-1]], np.int64),
        "sizes": np.array(sizes, np.int64),
        "factor": np.array(np.float32(options["alpha"]) * 2 * radius, np.float32),
        "bias": np.array(options["bias"], np.float32),
        "exponent": np.array(-options["beta"], np.float32),
    }
    mean = {"kernel_shape": [2 * radius], "pads": [radius, radius - 1], "count_include_pad": 1}
    steps: Steps = [
        ("Mul", ["x0", "x0"], {}),
        ("Reshape", ["t0", "rows"], {}),
        ("AveragePool", ["t1"], mean),
        ("Reshape", ["t2", "sizes"], {}),
        ("Mul", ["t3", "factor"], {}),
        ("Add", ["t4", "bias"], {}),
        ("Pow", ["t5", "exponent"], {}),
        ("Mul", ["x0", "t6"], {}),
    ]
    emit_numbers(importer, operator, steps, operator.inputs[:1], constants)
