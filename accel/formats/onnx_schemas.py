"""Schemas of operators: inputs, outputs and attributes."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from msgspec import Struct

from accel.base.errors import GraphError, nearest
from accel.formats.onnx_file import MICROSOFT, FileNode, onnx


class Schema(Struct, frozen=True, kw_only=True):
    """The signature of an operator."""

    needed: tuple[int, ...]
    inputs: int
    outputs: int = 1
    attributes: Mapping[str, type]
    required: frozenset[str] = frozenset()


_POOL = {
    "auto_pad": str,
    "ceil_mode": int,
    "channels_last": int,
    "count_include_pad": int,
    "kernel_shape": list,
    "pads": list,
    "strides": list,
}


def _microsoft(needed: Iterable[int], inputs: int, **attributes: type) -> Schema:
    return Schema(needed=tuple(needed), inputs=inputs, attributes=attributes)


MICROSOFT_SCHEMAS: Mapping[str, Schema] = {
    "DequantizeLinear": _microsoft((0, 1), 3, axis=int),
    "Gelu": _microsoft((0,), 1),
    "QGemm": _microsoft((0, 1, 3, 4), 9, transA=int, transB=int, alpha=float),
    "QLinearAdd": _microsoft((0, 1, 3, 4, 6), 8),
    "QLinearAveragePool": _microsoft((0, 1, 3), 5, **_POOL),
    "QLinearConcat": _microsoft((0, 1, 2, 3, 4), 1 << 16, axis=int),
    "QLinearGlobalAveragePool": _microsoft((0, 1, 3), 5, channels_last=int),
    "QLinearLeakyRelu": _microsoft((0, 1, 3), 5, alpha=float),
    "QLinearMul": _microsoft((0, 1, 3, 4, 6), 8),
    "QLinearSigmoid": _microsoft((0, 1, 3), 5),
    "QLinearSoftmax": _microsoft((0, 1, 3), 5, axis=int, opset=int),
    "QuantizeLinear": _microsoft((0, 1), 3, axis=int),
}
"""The package onnx lacks com.microsoft operators."""


def check_node(node: FileNode) -> None:
    """Refuse a node that does not match its schema."""
    schema = MICROSOFT_SCHEMAS[node.kind] if node.domain == MICROSOFT else _schema(node.kind, node.opset)
    if schema is None:
        raise GraphError(f"{node.kind} is not in opset {node.opset}")
    if len(node.inputs) > schema.inputs or not 1 <= len(node.outputs) <= schema.outputs:
        raise GraphError(
            f"it has {len(node.inputs)} inputs and {len(node.outputs)} outputs; {node.kind} may have "
            f"{schema.inputs} and {schema.outputs}"
        )
    for place in schema.needed:
        if place >= len(node.inputs) or not node.inputs[place]:
            raise GraphError(f"its input {place} is missing; {node.kind} needs it")
    if not any(node.outputs):
        raise GraphError("its outputs have no names")
    for name in sorted(schema.required - node.attributes.keys()):
        raise GraphError(f"its {name} is missing")
    for name, value in node.attributes.items():
        wanted = schema.attributes.get(name)
        if wanted is None:
            known = nearest(name, schema.attributes) if schema.attributes else "it has none"
            where = "" if node.domain else f" in opset {node.opset}"
            raise GraphError(f"its {name} is not an attribute of {node.kind}{where}; {known}")
        if not isinstance(value, wanted):
            raise GraphError(f"its {name} is {value!r}; it must be {_TYPE_NAMES[wanted]}")


_TYPE_NAMES = {
    int: "an integer",
    float: "a number",
    str: "a string",
    list: "a list",
    np.ndarray: "a tensor",
    object: "anything",
}


def has_schema(node: FileNode) -> bool:
    return _schema(node.kind, node.opset) is not None


def _schema(kind: str, opset: int) -> Schema | None:
    package = onnx()
    try:
        found = package.defs.get_schema(kind, opset, "")
    except package.defs.SchemaError:
        return None
    options = package.defs.OpSchema
    types = {
        options.AttrType.INT: int,
        options.AttrType.FLOAT: float,
        options.AttrType.STRING: str,
        options.AttrType.INTS: list,
        options.AttrType.FLOATS: list,
        options.AttrType.TENSOR: np.ndarray,
    }
    attributes: dict[str, Any] = {one.name: types.get(one.type, object) for one in found.attributes.values()}
    needed = [
        place
        for place, one in enumerate(found.inputs)
        if one.option == options.FormalParameterOption.Single
        or (one.option == options.FormalParameterOption.Variadic and place < found.min_input)
    ]
    return Schema(
        needed=tuple(needed),
        inputs=found.max_input,
        outputs=found.max_output,
        attributes=attributes,
        required=frozenset(one.name for one in found.attributes.values() if one.required),
    )
