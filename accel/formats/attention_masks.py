"""Nodes that quantization leaves in float32, because they read masks such as -inf."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from accel.base.unique_names import Names
from accel.formats.onnx_file import onnx
from accel.formats.onnx_runtime import open_onnx_runtime
from accel.graph.graph_tensor import Array

_LEAST_MASK = 1e9
"""Least mask in any tensor. Exporters write -inf, -3.4e38 or -1e9."""
_LEAST_SCORE_MASK = 1e4
"""Least mask in the operand of a Softmax. BERT's exporters write -10000."""


def mask_nodes(path: Path, samples: Sequence[Mapping[str, Array]]) -> list[str]:
    """Return the names of nodes that read or compute a mask, and name unnamed nodes of the file.

    One scale cannot hold a mask and scores. For example, the Add and the Softmax of ``softmax(scores +
    mask)``, with 0 and -inf in ``mask``, stay in float32. A mask may also be an input.
    """
    package = onnx()
    model = package.load(path)
    arrays = {one.name: package.numpy_helper.to_array(one) for one in model.graph.initializer}
    given = [*arrays.items(), *(item for sample in samples for item in sample.items())]
    masks = {name for name, array in given if _has_mask(array)}
    computed = [name for one in model.graph.node for name in one.output if name]
    scores = {one.input[0] for one in model.graph.node if one.op_type == "Softmax"}
    wanted = computed if masks else [name for name in computed if name in scores]
    if not masks and not wanted:
        return []
    names = Names(one.name for one in model.graph.node)
    for one in model.graph.node:
        one.name = one.name or names.fresh(one.op_type)
    package.save(model, path)
    declared = {one.name for one in model.graph.output}
    model.graph.output.extend(package.ValueInfoProto(name=name) for name in wanted if name not in declared)
    run = open_onnx_runtime(model.SerializeToString())
    for sample in samples:
        for name, array in run(sample, wanted).items():
            least = _LEAST_SCORE_MASK if name in scores else _LEAST_MASK
            if name not in masks and _has_mask(array, least):
                masks.add(name)
    return [one.name for one in model.graph.node if not masks.isdisjoint((*one.input, *one.output))]


def make_masks_finite(path: Path) -> dict[str, Array]:
    """Replace masks by ``-1e9`` for histograms, and return the old constants."""
    package = onnx()
    model = package.load(path)
    found: dict[str, Array] = {}
    for one in model.graph.initializer:
        array = package.numpy_helper.to_array(one)
        if _has_mask(array):
            found[one.name] = array
            one.CopyFrom(package.numpy_helper.from_array(without_infinities(array), one.name))
    if found:
        package.save(model, path)
    return found


def restore_constants(path: Path, constants: Mapping[str, Array]) -> None:
    package = onnx()
    model = package.load(path)
    for one in model.graph.initializer:
        if one.name in constants:
            one.CopyFrom(package.numpy_helper.from_array(constants[one.name], one.name))
    package.save(model, path)


def without_infinities(array: Array) -> Array:
    if array.dtype not in (np.float32, np.float64):
        return array
    return array.clip(-_LEAST_MASK, _LEAST_MASK)


def _has_mask(array: Array, least: float = _LEAST_MASK) -> bool:
    if not isinstance(array, np.ndarray):
        return False
    return array.dtype.kind == "f" and not bool((np.abs(array) < least).all())
