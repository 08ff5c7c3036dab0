"""Import rules for operators that move values or return shapes."""

import math
from collections.abc import Sequence

import numpy as np

from accel.base.errors import GraphError
from accel.formats.onnx_constant_folding import (
    axis_of,
    integers,
    reshaped,
    slices,
    squeezed,
    unsqueezed,
)
from accel.formats.onnx_file import MICROSOFT, FileNode
from accel.formats.onnx_foreign import import_foreign
from accel.formats.onnx_importer import Importer, check_single_output
from accel.formats.onnx_rules import rule
from accel.graph.elementwise_operators import (
    Requantize,
)
from accel.graph.graph_tensor import Quantization, Tensor
from accel.graph.movement_operators import Concat, Pad, Reshape, Slice, Transpose


@rule("Identity")
def _identity(importer: Importer, node: FileNode) -> None:
    importer.alias(node, importer.operand(node.inputs[0]))


@rule("Dropout")
def _dropout(importer: Importer, node: FileNode) -> None:
    check_single_output(node)
    training = importer.constant(node, 2, "the training mode")
    if training is not None and training.any():
        raise GraphError("it is in training mode; export the network for inference")
    importer.alias(node, importer.operand(node.inputs[0]))


@rule("Flatten")
def _flatten(importer: Importer, node: FileNode) -> None:
    tensor = importer.tensor(node.inputs[0])
    axis = int(node.attributes.get("axis", 1))
    rank = len(tensor.shape)
    if not -rank <= axis <= rank:
        raise GraphError(f"its axis is {axis}; the tensor has {rank}")
    axis = axis + rank if axis < 0 else axis
    sizes = (math.prod(tensor.shape[:axis]), math.prod(tensor.shape[axis:]))
    importer.emit(node, Reshape(sizes=sizes), [tensor.name])


@rule("Reshape")
def _reshape(importer: Importer, node: FileNode) -> None:
    tensor = importer.tensor(node.inputs[0])
    sizes = reshaped(
        tensor.shape,
        importer.needed(node, 1, "the shape"),
        zero_is_zero=bool(node.attributes.get("allowzero", 0)),
    )
    importer.emit(node, Reshape(sizes=sizes), [tensor.name])


@rule("Squeeze", "Unsqueeze")
def _squeeze(importer: Importer, node: FileNode) -> None:
    tensor = importer.tensor(node.inputs[0])
    axes = node.attributes.get("axes") if node.opset < 13 else importer.constant(node, 1, "the axes")
    if node.kind == "Squeeze":
        sizes = squeezed(tensor.shape, axes)
    elif axes is None:
        raise GraphError("its axes are missing")
    else:
        sizes = unsqueezed(tensor.shape, axes)
    importer.emit(node, Reshape(sizes=sizes), [tensor.name])


@rule("Transpose")
def _transpose(importer: Importer, node: FileNode) -> None:
    tensor = importer.tensor(node.inputs[0])
    rank = len(tensor.shape)
    permutation = tuple(node.attributes.get("perm") or reversed(range(rank)))
    importer.emit(node, Transpose(permutation=permutation), [tensor.name])


@rule("Concat")
def _concat(importer: Importer, node: FileNode) -> None:
    names = [importer.operand(one) for one in node.inputs if one]
    axis = axis_of(node.attributes.get("axis", 0), len(importer.builder.tensors[names[0]].shape))
    importer.emit(node, Concat(axis=axis), names)


@rule("QLinearConcat", domain=MICROSOFT)
def _qlinear_concat(importer: Importer, node: FileNode) -> None:
    zeros = importer.needed(node, 1, "the zero point")
    dtype = zeros.dtype.name
    quantization = importer.pair(importer.needed(node, 0, "the scale"), zeros, dtype)
    names = []
    for place in range(2, len(node.inputs), 3):
        name = importer.quantized(node, place, place + 1, place + 2)
        names.append(_requantized(importer, node, name, dtype, quantization))
    if not names:
        raise GraphError("it has no operands; it needs at least one")
    axis = axis_of(node.attributes.get("axis", 0), len(importer.builder.tensors[names[0]].shape))
    importer.emit(node, Concat(axis=axis), names)


def _requantized(
    importer: Importer, node: FileNode, name: str, dtype: str, quantization: Quantization
) -> str:
    tensor = importer.builder.tensors[name]
    if (tensor.dtype, tensor.quantization) == (dtype, quantization):
        return name
    target = importer.between(node, "requantized")
    return importer.emit(node, Requantize(), [name], target, dtype=dtype, quantization=quantization)


@rule("Split")
def _split(importer: Importer, node: FileNode) -> None:
    tensor = importer.tensor(node.inputs[0])
    axis = axis_of(node.attributes.get("axis", 0), len(tensor.shape))
    size, count = tensor.shape[axis], len(node.outputs)
    sizes = node.attributes.get("split") if node.opset < 13 else importer.constant(node, 1, "the sizes")
    if sizes is None:
        share = -(-size // count)
        sizes = [share] * (count - 1) + [size - share * (count - 1)]
    parts = integers(sizes)
    if len(parts) != count or sum(parts) != size or min(parts, default=0) < 1:
        raise GraphError(
            f"it splits {size} into {parts} for {count} outputs; the parts must add up, one for each"
        )
    start = 0
    for name, part in zip(node.outputs, parts, strict=True):
        if name:
            importer.emit(node, _part(tensor, axis, start, part), [tensor.name], name)
        start += part


def _part(tensor: Tensor, axis: int, start: int, size: int, step: int = 1) -> Slice:
    starts, sizes, steps = [0] * len(tensor.shape), list(tensor.shape), [1] * len(tensor.shape)
    starts[axis], sizes[axis], steps[axis] = start, size, step
    return Slice(starts=tuple(starts), sizes=tuple(sizes), steps=tuple(steps))


@rule("Gather")
def _gather(importer: Importer, node: FileNode) -> None:
    """A Gather by constant indices with equal distances is a Slice: indices 1, 3, 5 have step 2."""
    indices = importer.array(node.inputs[1])
    if indices is None or not indices.size:
        import_foreign(importer, node)
        return
    tensor = importer.tensor(node.inputs[0])
    axis = axis_of(node.attributes.get("axis", 0), len(tensor.shape))
    size = tensor.shape[axis]
    places = integers(indices.reshape(-1))
    if not all(-size <= place < size for place in places):
        raise GraphError(f"its indices are {places}; axis {axis} has {size} values")
    places = [place % size for place in places]
    step = places[1] - places[0] if len(places) > 1 else 1
    if not step or places != list(range(places[0], places[0] + len(places) * step, step)):
        import_foreign(importer, node)
        return
    part = _part(tensor, axis, places[0], len(places), step)
    if indices.ndim == 1:
        importer.emit(node, part, [tensor.name])
        return
    name = importer.emit(node, part, [tensor.name], importer.between(node, "part"))
    sizes = (*tensor.shape[:axis], *indices.shape, *tensor.shape[axis + 1 :])
    importer.emit(node, Reshape(sizes=sizes), [name])


@rule("Slice")
def _slice(importer: Importer, node: FileNode) -> None:
    tensor = importer.tensor(node.inputs[0])
    starts, ends = importer.needed(node, 1, "the starts"), importer.needed(node, 2, "the ends")
    axes, steps = importer.constant(node, 3, "the axes"), importer.constant(node, 4, "the steps")
    found = slices(tensor.shape, starts, ends, axes, steps)
    columns: Sequence[tuple[int, ...]] = list(zip(*found, strict=True))
    operator = Slice(starts=columns[0], sizes=columns[1], steps=columns[2])
    importer.emit(node, operator, [tensor.name])


@rule("Pad")
def _pad(importer: Importer, node: FileNode) -> None:
    tensor = importer.tensor(node.inputs[0])
    rank = len(tensor.shape)
    if node.opset < 11:
        pads, value = list(node.attributes["pads"]), float(node.attributes.get("value", 0.0))
        axes = list(range(rank))
    else:
        pads = integers(importer.needed(node, 1, "the pads"))
        held = importer.constant(node, 2, "the value")
        value = 0.0 if held is None or not held.size else float(held.reshape(-1)[0])
        chosen = importer.constant(node, 3, "the axes")
        axes = list(range(rank)) if chosen is None else [axis_of(axis, rank) for axis in integers(chosen)]
    if len(pads) != 2 * len(axes):
        raise GraphError(f"its pads are {pads}; there must be two values for each of {len(axes)} axes")
    begin, end = [0] * rank, [0] * rank
    for place, axis in enumerate(axes):
        begin[axis], end[axis] = int(pads[place]), int(pads[place + len(axes)])
    mode = node.attributes.get("mode", "constant")
    operator = Pad(begin=tuple(begin), end=tuple(end), value=value, mode=mode)
    importer.emit(node, operator, [tensor.name])


@rule("Shape")
def _shape(importer: Importer, node: FileNode) -> None:
    sizes = importer.tensor(node.inputs[0]).shape
    start, end = node.attributes.get("start", 0), node.attributes.get("end")
    importer.arrays[node.outputs[0]] = np.array(sizes[start:end], dtype=np.int64)


@rule("Size")
def _size(importer: Importer, node: FileNode) -> None:
    importer.arrays[node.outputs[0]] = np.array(importer.tensor(node.inputs[0]).size, dtype=np.int64)
