"""Batch normalization after a Gemm as part of its weights, for example BatchNorm1d after Linear in PyTorch.

ONNX Runtime does so only for convolutions.
"""

from typing import Any

import numpy as np

from accel.formats.onnx_file import onnx
from accel.graph.graph_tensor import Array

_EPSILON = 1e-5


def fold_batch_norms(model: Any) -> int:
    """Fold BatchNormalizations of float32 Gemms without other readers, and return their number."""
    graph = model.graph
    arrays = {one.name: one for one in graph.initializer}
    makers = {name: node for node in graph.node for name in node.output}
    outputs = {one.name for one in graph.output}
    folded = []
    for node in graph.node:
        gemm = makers.get(node.input[0]) if node.op_type == "BatchNormalization" else None
        if gemm is None or gemm.op_type != "Gemm" or gemm.output[0] in outputs:
            continue
        if any(node.output[1:]) or any(one.name == "training_mode" and one.i for one in node.attribute):
            continue
        if _readers(graph, gemm.output[0]) != 1 or not _is_constant(
            arrays, [*gemm.input[1:], *node.input[1:]]
        ):
            continue
        _fold(graph, arrays, gemm, node)
        folded.append(node)
    for node in folded:
        graph.node.remove(node)
    used = {name for node in graph.node for name in node.input}
    for one in list(graph.initializer):
        if folded and one.name not in used | outputs:
            graph.initializer.remove(one)
    return len(folded)


def _readers(graph: Any, name: str) -> int:
    """Subgraphs count as readers of everything."""
    if any(attribute.HasField("g") for node in graph.node for attribute in node.attribute):
        return len(graph.node)
    return sum(list(node.input).count(name) for node in graph.node)


def _is_constant(arrays: dict[str, Any], names: list[str]) -> bool:
    float32 = onnx().TensorProto.FLOAT
    return all(name in arrays and arrays[name].data_type == float32 for name in names if name)


def _fold(graph: Any, arrays: dict[str, Any], gemm: Any, norm: Any) -> None:
    package = onnx()

    def values(name: str) -> Array:
        return np.asarray(package.numpy_helper.to_array(arrays[name]), np.float64)

    attributes = {one.name: package.helper.get_attribute_value(one) for one in gemm.attribute}
    epsilon = {one.name: one.f for one in norm.attribute}.get("epsilon", _EPSILON)
    scale, shift, mean, variance = (values(name) for name in norm.input[1:5])
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(variance + epsilon)
    weights = values(gemm.input[1])
    weights = weights * (factor[:, None] if attributes.get("transB", 0) else factor)
    bias = values(gemm.input[2]) if len(gemm.input) > 2 and gemm.input[2] else np.zeros(1)
    bias = (attributes.get("beta", 1.0) * bias - mean) * factor + shift
    for at, array in ((1, weights), (2, bias)):
        name = f"{norm.output[0]}/folded {'weights' if at == 1 else 'bias'}"
        made = package.numpy_helper.from_array(array.astype(np.float32), name)
        graph.initializer.append(made)
        arrays[name] = made
        gemm.input[at:] = [name]
    kept = [one for one in gemm.attribute if one.name != "beta"]
    del gemm.attribute[:]
    gemm.attribute.extend(kept)
    gemm.output[0] = norm.output[0]
