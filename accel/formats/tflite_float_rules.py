"""Rules of TensorFlow Lite's operators that ONNX Runtime computes in float32, between Dequantize and
Quantize. TensorFlow Lite's integer kernels can differ by a step.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from accel.base.errors import GraphError
from accel.formats.onnx_constant_folding import axis_of, integers
from accel.formats.onnx_file import onnx
from accel.formats.onnx_foreign import foreign_operator
from accel.formats.onnx_varying_zero import zero_point_correction
from accel.formats.tflite_file import FileOperator
from accel.formats.tflite_importer import TfliteImporter
from accel.formats.tflite_registry import rule
from accel.graph.elementwise_operators import Dequantize, Quantize
from accel.graph.graph_tensor import QUANTIZED, Array, Quantization
from accel.graph.movement_operators import Identity
from accel.graph.product_operators import MatMul, Product

Steps = Sequence[tuple[str, list[str], dict[str, Any]]]
"""ONNX nodes: operator, inputs and attributes. Operands are ``x0``, ``x1``, ... and node N gives ``tN``."""

_UNARY: dict[str, Steps] = {
    "COS": [("Cos", ["x0"], {})],
    "LOGICAL_NOT": [("Not", ["x0"], {})],
    "LOG_SOFTMAX": [("LogSoftmax", ["x0"], {"axis": -1})],
    "SIGN": [("Sign", ["x0"], {})],
    "SIN": [("Sin", ["x0"], {})],
    "SQUARE": [("Mul", ["x0", "x0"], {})],
}
_BINARY: dict[str, Steps] = {
    "EQUAL": [("Equal", ["x0", "x1"], {})],
    "GREATER": [("Greater", ["x0", "x1"], {})],
    "GREATER_EQUAL": [("GreaterOrEqual", ["x0", "x1"], {})],
    "LESS": [("Less", ["x0", "x1"], {})],
    "LESS_EQUAL": [("LessOrEqual", ["x0", "x1"], {})],
    "LOGICAL_AND": [("And", ["x0", "x1"], {})],
    "LOGICAL_OR": [("Or", ["x0", "x1"], {})],
    "NOT_EQUAL": [("Equal", ["x0", "x1"], {}), ("Not", ["t0"], {})],
    "POW": [("Pow", ["x0", "x1"], {})],
    "PRELU": [("PRelu", ["x0", "x1"], {})],
    "SQUARED_DIFFERENCE": [("Sub", ["x0", "x1"], {}), ("Mul", ["t0", "t0"], {})],
}
_RANGE = {"none": 0, "tiny": 1e-30, "steps": 255, "low": -128, "high": 127}
_REDUCTIONS = {"SUM": "ReduceSum", "REDUCE_MIN": "ReduceMin", "REDUCE_PROD": "ReduceProd"}


def emit_numbers(
    importer: TfliteImporter,
    operator: FileOperator,
    steps: Steps,
    places: Sequence[int],
    constants: dict[str, Array] | None = None,
    *,
    is_move: bool = False,
) -> None:
    """Add ONNX nodes as one operator, between a Dequantize and a Quantize where needed.

    Moves take the integers of quantized tensors. Integers without scale are never dequantized.
    """
    emit, fresh = importer.builder.emit, importer.builder.fresh
    names = []
    for place in places:
        name = importer.plain(place)
        found = importer.builder.tensors[name]
        if found.dtype in QUANTIZED and found.quantization is not None and not is_move:
            name = emit(Dequantize(), [name], fresh(f"{name}/numbers"), dtype="float32")
        names.append(name)
    tensor = importer.file.tensors[operator.outputs[0]]
    numbers = _foreign(
        importer,
        operator.kind,
        steps,
        names,
        constants or {},
        f"{tensor.name}/numbers",
        importer.quantization(tensor),
    )
    found = importer.builder.tensors[numbers]
    if tensor.dtype in QUANTIZED and found.dtype == "float32":
        importer.emit(operator, Quantize(), [numbers])
    elif tensor.dtype == found.dtype:
        importer.emit(operator, Identity(), [numbers])
    else:
        raise GraphError(f"its result is {found.dtype}; the file has {tensor.dtype}")


def emit_dynamic_product(
    importer: TfliteImporter, operator: FileOperator, product: Product, names: list[str], *, first: bool
) -> None:
    """Add a product of float32 data and int8 weights, as after dynamic-range quantization.

    The host quantizes data to int8, with a scale and a zero point for each sample. The machine multiplies,
    and the host corrects sums by zero points, scales them and adds the bias.
    """
    builder = importer.builder
    data, weights = (builder.tensors[name] for name in names[:2])
    samples = len(data.shape) - 1 if isinstance(product, MatMul) else 1
    numbers: dict[str, Array] = {name: np.array(value, np.float32) for name, value in _RANGE.items()}
    numbers["axes"] = np.arange(samples, len(data.shape), dtype=np.int64)
    scaling: Steps = [
        ("ReduceMin", ["x0", "axes"], {"keepdims": 1}),
        ("Min", ["t0", "none"], {}),
        ("ReduceMax", ["x0", "axes"], {"keepdims": 1}),
        ("Max", ["t2", "none"], {}),
        ("Sub", ["t3", "t1"], {}),
        ("Max", ["t4", "tiny"], {}),
        ("Div", ["t5", "steps"], {}),
    ]
    zeroing: Steps = [*scaling, ("Div", ["t1", "t6"], {}), ("Sub", ["low", "t7"], {}), ("Round", ["t8"], {})]
    quantizing: Steps = [
        *zeroing,
        ("Div", ["x0", "t6"], {}),
        ("Add", ["t10", "t9"], {}),
        ("Round", ["t11"], {}),
        ("Clip", ["t12", "low", "high"], {}),
        ("Cast", ["t13"], {"to": 3}),
    ]
    scale, zero, integers = (
        _foreign(importer, title, steps, [data.name], numbers, f"{data.name}/{title}")
        for title, steps in (("scale", scaling), ("zero point", zeroing), ("integers", quantizing))
    )
    sums = builder.emit(product, [integers, weights.name], builder.fresh(f"{data.name}/sums"), dtype="int32")
    rank = len(builder.tensors[sums].shape)
    along = [1] * rank
    along[product.result_axis(rank)] = -1
    scales = product.weight_scales(weights)
    corrected, tables = zero_point_correction(builder, product, integers, weights.name, sums, "corrected")
    make = onnx().helper.make_node
    nodes = [
        *corrected,
        make("Cast", ["corrected"], ["numbers"], to=1),
        make("Mul", ["numbers", "x2"], ["scaled"]),
        make("Mul", ["scaled", "scales"], ["product"]),
    ]
    tables["scales"] = scales.reshape(along if scales.size > 1 else [1] * rank)
    if len(names) > 2:
        tables["bias"] = builder.constants[names[2]].reshape(along)
        nodes.append(make("Add", ["product", "bias"], ["y"]))
    else:
        nodes.append(make("Identity", ["product"], ["y"]))
    result = emit_nodes(importer, "Scale", nodes, [sums, zero, scale], tables, f"{data.name}/scaled")
    importer.emit(operator, Identity(), [result], first=first)


def _foreign(
    importer: TfliteImporter,
    title: str,
    steps: Steps,
    names: list[str],
    constants: dict[str, Array],
    name: str,
    quantization: Quantization | None = None,
) -> str:
    results = [f"t{n}" for n in range(len(steps) - 1)] + ["y"]
    nodes = [
        onnx().helper.make_node(kind, inputs, [output], **attributes)
        for (kind, inputs, attributes), output in zip(steps, results, strict=True)
    ]
    return emit_nodes(importer, title, nodes, names, constants, name, quantization)


def emit_nodes(
    importer: TfliteImporter,
    title: str,
    nodes: list[Any],
    names: list[str],
    constants: dict[str, Array],
    name: str,
    quantization: Quantization | None = None,
) -> str:
    """Add a :func:`foreign_operator`.

    Without a quantization, an int8 or uint8 result has scale 1 and zero point 0.
    """
    operator = foreign_operator(title, nodes, constants, [importer.builder.tensors[one] for one in names])
    held = (quantization or Quantization.of(1.0)) if operator.dtype in QUANTIZED else None
    return importer.builder.emit(
        operator, names, importer.builder.fresh(name), dtype=operator.dtype, quantization=held
    )


@rule(1, *_UNARY)
def _unary(importer: TfliteImporter, operator: FileOperator) -> None:
    emit_numbers(importer, operator, _UNARY[operator.kind], operator.inputs[:1])


@rule(2, *_BINARY)
def _binary(importer: TfliteImporter, operator: FileOperator) -> None:
    emit_numbers(importer, operator, _BINARY[operator.kind], operator.inputs[:2])


@rule(3, "SELECT", "SELECT_V2")
def _select(importer: TfliteImporter, operator: FileOperator) -> None:
    emit_numbers(importer, operator, [("Where", ["x0", "x1", "x2"], {})], operator.inputs[:3])


@rule(2, *_REDUCTIONS)
def _reduce(importer: TfliteImporter, operator: FileOperator) -> None:
    axes = np.array(integers(importer.constant(operator.inputs[1])), np.int64)
    keep = int(bool(operator.options["keep"]))
    step = (_REDUCTIONS[operator.kind], ["x0", "axes"], {"keepdims": keep})
    emit_numbers(importer, operator, [step], operator.inputs[:1], {"axes": axes})


@rule(2, "ARG_MAX", "ARG_MIN")
def _arg(importer: TfliteImporter, operator: FileOperator) -> None:
    rank = len(importer.file.tensors[operator.inputs[0]].shape)
    (axis,) = integers(importer.constant(operator.inputs[1]))
    kind = "ArgMax" if operator.kind == "ARG_MAX" else "ArgMin"
    wanted = onnx().helper.np_dtype_to_tensor_dtype(
        np.dtype(importer.file.tensors[operator.outputs[0]].dtype)
    )
    steps = [(kind, ["x0"], {"axis": axis_of(axis, rank), "keepdims": 0}), ("Cast", ["t0"], {"to": wanted})]
    emit_numbers(importer, operator, steps, operator.inputs[:1])


@rule(1, "GELU")
def _gelu(importer: TfliteImporter, operator: FileOperator) -> None:
    approximate = "tanh" if operator.options.get("approximate") else "none"
    emit_numbers(importer, operator, [("Gelu", ["x0"], {"approximate": approximate})], operator.inputs[:1])


@rule(2, "FLOOR_DIV", "FLOOR_MOD")
def _floor_division(importer: TfliteImporter, operator: FileOperator) -> None:
    """The remainder has the sign of the divisor. ONNX's Mod of float32 has the dividend's."""
    is_float = importer.file.tensors[operator.outputs[0]].dtype in {"float32", *QUANTIZED}
    remainder: Steps = [("Mod", ["x0", "x1"], {"fmod": 0})]
    quotient: Steps = [*remainder, ("Sub", ["x0", "t0"], {}), ("Div", ["t1", "x1"], {})]
    constants: dict[str, Array] = {}
    if is_float:
        constants["none"] = np.array(0, np.float32)
        quotient = [("Div", ["x0", "x1"], {}), ("Floor", ["t0"], {})]
        remainder = [
            ("Mod", ["x0", "x1"], {"fmod": 1}),
            ("Less", ["t0", "none"], {}),
            ("Less", ["x1", "none"], {}),
            ("Xor", ["t1", "t2"], {}),
            ("Abs", ["t0"], {}),
            ("Greater", ["t4", "none"], {}),
            ("And", ["t3", "t5"], {}),
            ("Add", ["t0", "x1"], {}),
            ("Where", ["t6", "t7", "t0"], {}),
        ]
    steps = quotient if operator.kind == "FLOOR_DIV" else remainder
    emit_numbers(importer, operator, steps, operator.inputs[:2], constants)


@rule(1, "CAST")
def _cast(importer: TfliteImporter, operator: FileOperator) -> None:
    """Quantized tensors are converted as integers, not as numbers."""
    wanted = np.dtype(importer.file.tensors[operator.outputs[0]].dtype)
    number = onnx().helper.np_dtype_to_tensor_dtype(wanted)
    emit_numbers(importer, operator, [("Cast", ["x0"], {"to": number})], operator.inputs[:1], is_move=True)


@rule(2, "BROADCAST_TO", "TILE")
def _repeat(importer: TfliteImporter, operator: FileOperator) -> None:
    counts = np.array(integers(importer.constant(operator.inputs[1])), np.int64)
    kind = "Tile" if operator.kind == "TILE" else "Expand"
    steps: Steps = [(kind, ["x0", "counts"], {})]
    emit_numbers(importer, operator, steps, operator.inputs[:1], {"counts": counts}, is_move=True)


@rule(1, "L2_NORMALIZATION")
def _normalize(importer: TfliteImporter, operator: FileOperator) -> None:
    emit_numbers(importer, operator, [("LpNormalization", ["x0"], {"axis": -1, "p": 2})], operator.inputs[:1])


@rule(2, "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
def _resize(importer: TfliteImporter, operator: FileOperator) -> None:
    sizes = importer.operand(operator.inputs[0])[1]
    wanted = integers(importer.constant(operator.inputs[1]))
    if len(sizes) != 4 or len(wanted) != 2:
        raise GraphError(f"its data is {sizes} and its sizes are {wanted}; it needs four axes and two sizes")
    mode = "align_corners" if operator.options["corners"] else "asymmetric"
    if operator.options["half"]:
        mode = "half_pixel" if operator.kind == "RESIZE_BILINEAR" else "tf_half_pixel_for_nn"
    attributes: dict[str, Any] = {"coordinate_transformation_mode": mode, "mode": "linear"}
    if operator.kind == "RESIZE_NEAREST_NEIGHBOR":
        attributes = {
            "coordinate_transformation_mode": mode,
            "mode": "nearest",
            "nearest_mode": "round_prefer_ceil" if operator.options["corners"] else "floor",
        }
    steps = [
        ("Transpose", ["x0"], {"perm": [0, 3, 1, 2]}),
        ("Resize", ["t0", "", "", "sizes"], attributes),
        ("Transpose", ["t1"], {"perm": [0, 2, 3, 1]}),
    ]
    shape = np.array([sizes[0], sizes[3], *wanted], np.int64)
    emit_numbers(importer, operator, steps, operator.inputs[:1], {"sizes": shape})
