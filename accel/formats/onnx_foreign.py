"""Import and export of nodes that the graph does not know, as :mod:`accel.graph.foreign_operator`."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from accel.base.errors import GraphError
from accel.formats.onnx_exporter import OPSET, Exporter, writer
from accel.formats.onnx_file import MICROSOFT, FileNode, onnx
from accel.formats.onnx_importer import Importer
from accel.formats.onnx_macs import node_macs
from accel.formats.onnx_schemas import has_schema
from accel.graph.foreign_operator import NOT_A_TENSOR, Foreign, OpenShapeError, run_foreign
from accel.graph.graph import Node
from accel.graph.graph_tensor import DTYPES, QUANTIZED, Array, Quantization, Shape, Tensor

_IR_VERSION = 8
_DOMAINS = {"", MICROSOFT, "ai.onnx.ml"}
"""Of ONNX Runtime's own operators."""


def obstacle(node: FileNode) -> str:
    """Return why ONNX Runtime cannot run a node, or empty."""
    if any(value is None for value in node.attributes.values()):
        return "has an attribute of a kind that is not read"
    if node.domain not in _DOMAINS or not (node.domain or has_schema(node)):
        return "is not supported"
    return ""


def import_foreign(importer: Importer, node: FileNode) -> None:
    """Import one foreign operator for each used output, with the shape of a run on zeros."""
    varying = [name for name in node.reads if importer.array(name) is None]
    _check_constants(importer, node)
    operands = [importer.operand(name) for name in varying]
    tensors = [importer.builder.tensors[name] for name in operands]
    used, is_counted = importer.used(), False
    for place, output in enumerate(node.outputs):
        if not output or output not in used:
            continue
        model, found = _probed(importer, node, varying, tensors, output)
        if not varying:
            importer.arrays[output] = found
            continue
        if 0 in found.shape:
            raise OpenShapeError(f"its output {output!r} is empty for zeros")
        if found.dtype.name not in DTYPES:
            raise GraphError(f"its output {output!r} is {found.dtype.name}; it must be {' or '.join(DTYPES)}")
        shapes = [_shape(importer, name) for name in node.inputs]
        operator = Foreign(
            title=node.title,
            model=model,
            sizes=found.shape,
            dtype=found.dtype.name,
            multiplications=0 if is_counted else node_macs(node, shapes, found.shape),
        )
        is_counted = True
        importer.emit(
            node,
            operator,
            operands,
            output if place else None,
            dtype=found.dtype.name,
            quantization=Quantization.of(1.0) if found.dtype.name in QUANTIZED else None,
        )


def _check_constants(importer: Importer, node: FileNode) -> None:
    """Refuse empty constants, because ONNX Runtime reads beyond their end."""
    for name in node.reads if node.domain == MICROSOFT else ():
        array = importer.array(name)
        if array is not None and not array.size:
            raise GraphError(f"its operand {name!r} has no values")


def _probed(
    importer: Importer, node: FileNode, varying: list[str], tensors: Sequence[Tensor], output: str
) -> tuple[str, Array]:
    """Return the model of one output of a node, and its result for one run.

    ONNX Runtime refuses branches that do not fit the sizes, even if no run takes them, as in silero-vad with
    a branch for each sampling rate. Such models get operands of open sizes.
    """
    run = _run_both if node.kind == "If" and node.inputs[0] in varying else _run_once
    model = _model(importer, node, varying, tensors, output)
    try:
        return model, run(model, tensors)
    except OpenShapeError:
        raise
    except GraphError as error:
        if not node.captured:
            raise
        try:
            model = _model(importer, node, varying, tensors, output, is_open=True)
            return model, run(model, tensors)
        except GraphError:
            raise error from None


def _run_both(model: str, tensors: Sequence[Tensor]) -> Array:
    """Return the result of an If. Zeros choose one branch, and ones the other.

    Raises:
        OpenShapeError: the branches have results of different shapes.
    """
    results, reasons = [], []
    for fill in (np.zeros, np.ones):
        try:
            results.append(run_foreign(model, [fill(one.shape, one.dtype) for one in tensors]))
        except OpenShapeError as error:
            reasons.append(str(error))
    if NOT_A_TENSOR in reasons:
        raise OpenShapeError(NOT_A_TENSOR)
    if not results:
        raise GraphError(reasons[0])
    if len({(one.shape, one.dtype) for one in results}) > 1:
        raise OpenShapeError("its branches have results of different shapes")
    return results[0]


def _run_once(model: str, tensors: Sequence[Tensor]) -> Array:
    """Return the result for zeros, or for ones if zeros are refused and the shape is fixed.

    Raises:
        OpenShapeError: it is no tensor, or its shape depends on values.
        GraphError: ONNX Runtime refuses the node.
    """
    zeros, ones = ([fill(one.shape, one.dtype) for one in tensors] for fill in (np.zeros, np.ones))
    try:
        return run_foreign(model, zeros)
    except OpenShapeError as error:
        reason = str(error)
    if reason != NOT_A_TENSOR:
        try:
            found = run_foreign(model, ones)
        except OpenShapeError as error:
            if str(error) != NOT_A_TENSOR:
                raise GraphError(reason) from None
        else:
            if _has_fixed_shape(model, found.shape):
                return found
    raise OpenShapeError(reason)


def _has_fixed_shape(model: str, shape: Shape) -> bool:
    """Whether shape inference finds this shape, for example for a division of int32, which refuses zeros."""
    inferred = onnx().shape_inference.infer_shapes(onnx().load_from_string(base64.b64decode(model)))
    (result,) = inferred.graph.output
    sizes = [dim.dim_value for dim in result.type.tensor_type.shape.dim]
    return result.type.tensor_type.HasField("shape") and sizes == list(shape)


def _shape(importer: Importer, name: str) -> Shape | None:
    if not name:
        return None
    array = importer.array(name)
    return importer.tensor(name).shape if array is None else array.shape


def _model(
    importer: Importer,
    node: FileNode,
    varying: list[str],
    tensors: Sequence[Tensor],
    output: str,
    *,
    is_open: bool = False,
) -> str:
    names = {name: f"x{n}" for n, name in enumerate(varying)}
    constants: dict[str, Array] = {}
    for name in node.reads:
        if name not in names:
            names[name] = f"c{len(constants)}"
            array = importer.array(name)
            assert array is not None
            constants[names[name]] = array
    outputs = {name: f"unused{n}" for n, name in enumerate(node.outputs) if name} | {output: "y"}
    make = onnx().helper.make_node
    outer = [make("Identity", [names[name]], [name]) for name in node.captured]
    opsets = {node.domain: node.opset} | ({"": OPSET} if node.domain else {})
    return encoded(
        [*outer, node_proto(node, names | outputs)],
        [to_initializer(values, name) for name, values in constants.items()],
        {
            f"x{n}": (one.dtype, (None,) * len(one.shape) if is_open else one.shape)
            for n, one in enumerate(tensors)
        },
        ["y"],
        opsets,
    )


def single_result_model(importer: Importer, node: FileNode, operand: Tensor) -> str:
    return _model(importer, node, [node.inputs[0]], [operand], node.outputs[0])


def node_proto(node: FileNode, names: Mapping[str, str]) -> Any:
    """Rename a node's tensors, except for those that a subgraph reads."""
    attributes = {
        key: to_initializer(value, key) if isinstance(value, np.ndarray) else value
        for key, value in node.attributes.items()
    }
    inputs, outputs = ([names.get(name, name) for name in one] for one in (node.inputs, node.outputs))
    if node.kind == "Split":  # an omitted output ends ONNX Runtime's process
        outputs = [name or f"{node.name}/omitted{at}" for at, name in enumerate(outputs)]
    return onnx().helper.make_node(node.kind, inputs, outputs, domain=node.domain, **attributes)


def to_initializer(values: Array, name: str) -> Any:
    return onnx().numpy_helper.from_array(np.asarray(values), name)


def encoded(
    nodes: list[Any],
    constants: list[Any],
    inputs: Mapping[str, tuple[str, Sequence[int | None]]],
    outputs: Sequence[str],
    opsets: Mapping[str, int],
) -> str:
    """Return a model in base64. Inputs have dtype and shape, None for an open size."""
    helper = onnx().helper
    declared = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)
        for name, (dtype, shape) in inputs.items()
    ]
    results = [helper.make_empty_tensor_value_info(name) for name in outputs]
    graph = helper.make_graph(nodes, "foreign", declared, results, constants)
    imports = [helper.make_opsetid(*one) for one in opsets.items()]
    model = helper.make_model(graph, opset_imports=imports, ir_version=_IR_VERSION)
    return base64.b64encode(model.SerializeToString()).decode()


def foreign_operator(
    title: str, nodes: list[Any], constants: Mapping[str, Array], operands: Sequence[Tensor]
) -> Foreign:
    """Return ONNX nodes from ``x0``, ``x1`` and so on to ``y`` as one operator, with their constants.

    ONNX Runtime runs them once on zeros.
    """
    used = {name for node in nodes for name in node.input}
    model = encoded(
        nodes,
        [to_initializer(values, name) for name, values in constants.items() if name in used],
        {f"x{n}": (one.dtype, one.shape) for n, one in enumerate(operands)},
        ["y"],
        {"": OPSET},
    )
    found = _run_once(model, operands)
    return Foreign(title=title, model=model, sizes=found.shape, dtype=found.dtype.name)


@writer(Foreign)
def _foreign(exporter: Exporter, node: Node) -> None:
    assert isinstance(node.operator, Foreign)
    exporter.inline(_newest(base64.b64decode(node.operator.model)), node.inputs, node.output)


def _newest(content: bytes) -> Any:
    package = onnx()
    model = package.load_from_string(content)
    (version,) = [one.version for one in model.opset_import if not one.domain]
    if version == OPSET:
        return model
    from onnx import version_converter

    kind = model.graph.node[-1].op_type
    try:
        return version_converter.convert_version(model, OPSET)
    except Exception as error:
        raise GraphError(f"{kind} of opset {version} cannot be written in opset {OPSET}: {error}") from None
