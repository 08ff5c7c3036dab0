"""Import rules for operators that repeat or rearrange pixels."""

from collections.abc import Sequence

import numpy as np

from accel.base.errors import GraphError
from accel.base.records import replace
from accel.formats.onnx_file import FileNode
from accel.formats.onnx_foreign import import_foreign, single_result_model
from accel.formats.onnx_importer import Importer, check_single_output
from accel.formats.onnx_rules import rule
from accel.graph.foreign_operator import run_foreign
from accel.graph.graph_tensor import Array, Shape, Tensor
from accel.graph.movement_operators import DepthToSpace, Identity, SpaceToDepth, Take

_FLOAT32_EXACT_UP_TO = 1 << 24


@rule("DepthToSpace")
def _depth_to_space(importer: Importer, node: FileNode) -> None:
    mode = node.attributes.get("mode", "DCR")
    if mode not in ("DCR", "CRD"):
        raise GraphError(f"its mode is {mode!r}; it must be DCR or CRD")
    operator = DepthToSpace(block=int(node.attributes["blocksize"]), columns_first=mode == "DCR")
    importer.emit(node, operator, [importer.operand(node.inputs[0])])


@rule("SpaceToDepth")
def _space_to_depth(importer: Importer, node: FileNode) -> None:
    if node.attributes.get("mode", "DCR") != "DCR":
        import_foreign(importer, node)
        return
    operator = SpaceToDepth(block=int(node.attributes["blocksize"]))
    importer.emit(node, operator, [importer.operand(node.inputs[0])])


@rule("Resize", "Upsample")
def _resize(importer: Importer, node: FileNode) -> None:
    check_single_output(node)
    varying = [name for name in node.reads if importer.array(name) is None]
    if node.attributes.get("mode", "nearest") != "nearest" or varying != [node.inputs[0]]:
        import_foreign(importer, node)
        return
    tensor = importer.tensor(node.inputs[0])
    indices = _nearest_indices(importer, node, tensor)
    if indices is None:
        import_foreign(importer, node)
        return
    moves = [
        Take(axis=axis, indices=one)
        for axis, one in enumerate(indices)
        if one != tuple(range(tensor.shape[axis]))
    ]
    name = tensor.name
    for move in moves[:-1]:
        name = importer.emit(node, move, [name], importer.between(node, f"axis{move.axis}"))
    importer.emit(node, moves[-1] if moves else Identity(), [name])


def _nearest_indices(
    importer: Importer, node: FileNode, tensor: Tensor
) -> tuple[tuple[int, ...], ...] | None:
    """Run a nearest Resize on indices, and return those along each axis."""
    if tensor.size > _FLOAT32_EXACT_UP_TO:
        return None
    numbers = np.arange(tensor.size, dtype=np.float32).reshape(tensor.shape)
    model = single_result_model(importer, node, replace(tensor, dtype="float32", quantization=None))
    taken = run_foreign(model, [numbers]).astype(np.int64)
    indices = _separate(taken, tensor.shape)
    expected: Array = np.arange(tensor.size).reshape(tensor.shape)
    for axis, one in enumerate(indices):
        expected = expected.take(one, axis=axis)
    return indices if np.array_equal(expected, taken) else None


def _separate(taken: Array, shape: Sequence[int]) -> tuple[Shape, ...]:
    found = []
    for axis in range(taken.ndim):
        line = np.moveaxis(taken, axis, -1).reshape(-1, taken.shape[axis])[0]
        found.append(tuple(np.unravel_index(line, shape)[axis].tolist()))
    return tuple(found)
