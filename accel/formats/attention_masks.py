"""Nodes that quantization leaves in float32, because they add or read masks such as -inf."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from accel.base.unique_names import Names
from accel.formats.onnx_file import onnx
from accel.formats.onnx_runtime import open_onnx_runtime
from accel.graph.graph_tensor import Array

_LEAST_MASK = 1e9
"""Least absolute value of a mask. Exporters write -inf, -3.4e38 or -1e9."""


def mask_nodes(path: Path, samples: Sequence[dict[str, Array]]) -> list[str]:
    """Return the names of nodes that read or compute a mask, and give the file's unnamed nodes names.

    One scale cannot hold a mask and scores. For example, causal attention computes ``softmax(scores + mask)``
    with 0 and -inf in ``mask``. The Add and the Softmax then stay in float32.

    Args:
        path: a float model with folded constants.
    """
    package = onnx()
    model = package.load(path)
    arrays = {one.name: package.numpy_helper.to_array(one) for one in model.graph.initializer}
    masks = {name for name, array in arrays.items() if _has_mask(array)}
    if not masks:
        return []
    names = Names(one.name for one in model.graph.node)
    for one in model.graph.node:
        one.name = one.name or names.fresh(one.op_type)
    package.save(model, path)
    declared = {one.name for one in model.graph.output}
    computed = [name for one in model.graph.node for name in one.output if name]
    model.graph.output.extend(package.ValueInfoProto(name=name) for name in computed if name not in declared)
    run = open_onnx_runtime(model.SerializeToString())
    for sample in samples:
        masks.update(name for name, array in run(sample, computed).items() if _has_mask(array))
    return [one.name for one in model.graph.node if not masks.isdisjoint((*one.input, *one.output))]


def _has_mask(array: Array) -> bool:
    if not isinstance(array, np.ndarray):  # a sequence
        return False
    return array.dtype.kind == "f" and not bool((np.abs(array) < _LEAST_MASK).all())
