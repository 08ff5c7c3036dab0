"""Import rules for elementwise operators, softmax and normalization."""

import math

import numpy as np

from accel.base.errors import GraphError
from accel.formats.onnx_constant_folding import (
    axis_of,
)
from accel.formats.onnx_file import MICROSOFT, FileNode, onnx
from accel.formats.onnx_foreign import import_foreign
from accel.formats.onnx_importer import Importer
from accel.formats.onnx_rules import rule
from accel.graph.elementwise_operators import (
    Add,
    Binary,
    Cast,
    Clip,
    Function,
    Mul,
    Softmax,
)
from accel.graph.float_functions import FUNCTIONS
from accel.graph.graph_tensor import Tensor


@rule("QLinearAdd", "QLinearMul", domain=MICROSOFT)
def _qlinear_binary(importer: Importer, node: FileNode) -> None:
    operands = [importer.quantized(node, 0, 1, 2), importer.quantized(node, 3, 4, 5)]
    default = importer.builder.tensors[operands[0]].dtype
    other = importer.builder.tensors[operands[1]].dtype
    if default != other:
        raise GraphError(f"its operands are {default} and {other}; they must have the same dtype")
    operator = Add() if node.kind == "QLinearAdd" else Mul()
    importer.emit(node, operator, operands, **importer.result(node, 6, 7, default))


@rule("Add", "Mul", "Sub", "Div", "Pow", "PRelu")
def _binary(importer: Importer, node: FileNode) -> None:
    operands = [importer.operand(one) for one in node.inputs]
    operators = {"Add": Add(), "Mul": Mul()}
    importer.emit(node, operators.get(node.kind) or Binary(function=node.kind), operands)


@rule("Min", "Max", "Sum")
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


@rule("Relu")
def _relu(importer: Importer, node: FileNode) -> None:
    importer.emit(node, Clip(low=0), [importer.operand(node.inputs[0])])


@rule("Clip")
def _clip(importer: Importer, node: FileNode) -> None:
    name = importer.operand(node.inputs[0])
    bounds: list[float | None]
    if node.opset < 11:
        bounds = [node.attributes.get("min"), node.attributes.get("max")]
    else:
        arrays = [importer.constant(node, place, "a bound") for place in (1, 2)]
        if any(one is not None and one.size != 1 for one in arrays):
            raise GraphError("a bound has several values or none; it must have exactly one")
        bounds = [None if one is None else one.item() for one in arrays]
    if any(bound is not None and math.isnan(bound) for bound in bounds):
        raise GraphError(f"its bounds are {bounds}; they must be numbers")
    if bounds[0] == math.inf or bounds[1] == -math.inf:
        raise GraphError(f"its bounds are {bounds}; they must leave finite numbers")
    finite = [None if bound is None or math.isinf(bound) else bound for bound in bounds]
    importer.emit(node, Clip(low=finite[0], high=finite[1]), [name])


def _parameters(node: FileNode) -> tuple[tuple[str, float], ...]:
    known = FUNCTIONS[node.kind][1]
    given = dict(node.attributes)
    if node.kind == "Gelu":
        given = {"approximate": float(given.get("approximate", "none") == "tanh")}
    return tuple((name, float(given[name])) for name in known if given.get(name) is not None)


@rule(*FUNCTIONS)
def _function(importer: Importer, node: FileNode) -> None:
    operator = Function(function=node.kind, parameters=_parameters(node))
    importer.emit(node, operator, [importer.operand(node.inputs[0])])


@rule("Gelu", domain=MICROSOFT)
def _gelu(importer: Importer, node: FileNode) -> None:
    importer.emit(node, Function(function="Gelu"), [importer.operand(node.inputs[0])])


@rule("QLinearSigmoid", "QLinearLeakyRelu", domain=MICROSOFT)
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


@rule("Softmax")
def _softmax(importer: Importer, node: FileNode) -> None:
    tensor = importer.tensor(node.inputs[0])
    importer.emit(node, Softmax(axes=_softmax_axes(node, tensor, node.opset)), [tensor.name])


@rule("QLinearSoftmax", domain=MICROSOFT)
def _qlinear_softmax(importer: Importer, node: FileNode) -> None:
    tensor = importer.builder.tensors[importer.quantized(node, 0, 1, 2)]
    operator = Softmax(axes=_softmax_axes(node, tensor, int(node.attributes.get("opset", 13))))
    importer.emit(node, operator, [tensor.name], **importer.result(node, 3, 4, tensor.dtype))


def _softmax_axes(node: FileNode, tensor: Tensor, opset: int) -> tuple[int, ...]:
    rank = len(tensor.shape)
    if opset < 13:
        return tuple(range(axis_of(node.attributes.get("axis", 1), rank), rank))
    return (axis_of(node.attributes.get("axis", -1), rank),)


@rule("BatchNormalization")
def _batch_normalization(importer: Importer, node: FileNode) -> None:
    if node.attributes.get("training_mode", 0) or any(node.outputs[1:]):
        raise GraphError("it is in training mode; export the network for inference")
    tensor = importer.tensor(node.inputs[0])
    scale, bias, mean, variance = (
        importer.needed(node, place, what).astype(np.float32)
        for place, what in enumerate(("the scale", "the bias", "the mean", "the variance"), 1)
    )
    with np.errstate(all="ignore"):  # float32 steps as in ONNX Runtime
        deviation = np.sqrt(variance + np.float32(node.attributes.get("epsilon", 1e-5)))
        factor = (np.float32(1) / deviation) * scale
        addend = bias - mean * factor
    along = (-1, *[1] * (len(tensor.shape) - 2))
    factors = importer.builder.constant(importer.between(node, "factor"), factor.reshape(along))
    addends = importer.builder.constant(importer.between(node, "addend"), addend.reshape(along))
    product = importer.emit(node, Mul(), [tensor.name, factors], importer.between(node, "product"))
    importer.emit(node, Add(), [product, addends])


@rule("Cast")
def _cast(importer: Importer, node: FileNode) -> None:
    name = importer.operand(node.inputs[0])
    dtype = importer.builder.tensors[name].dtype
    wanted = onnx().helper.tensor_dtype_to_np_dtype(node.attributes["to"]).name
    if dtype == wanted:
        importer.alias(node, name)
    elif (dtype, wanted) == ("int32", "float32"):
        importer.emit(node, Cast(), [name], dtype="float32")
    else:
        import_foreign(importer, node)
