"""Rules of TensorFlow Lite's operators that only move values."""

import numpy as np

from accel.base.errors import GraphError
from accel.base.records import replace
from accel.formats.onnx_constant_folding import axis_of, integers
from accel.formats.onnx_file import onnx
from accel.formats.tflite_file import FileOperator
from accel.formats.tflite_float_rules import Steps, emit_numbers
from accel.formats.tflite_importer import TfliteImporter
from accel.formats.tflite_registry import rule
from accel.graph.movement_operators import Concat, Reshape, Slice, Transpose

_MAX_SLICES = 16
"""Most constant indices of a Gather that becomes a Concat of slices."""


@rule(4, "STRIDED_SLICE")
def _strided_slice(importer: TfliteImporter, operator: FileOperator) -> None:
    name, sizes = importer.operand(operator.inputs[0])
    begins, ends, steps = (integers(importer.constant(place)) for place in operator.inputs[1:4])
    if not len(begins) == len(ends) == len(steps):
        raise GraphError(
            f"it has {len(begins)} begins, {len(ends)} ends and {len(steps)} steps; the numbers must be equal"
        )
    starts, counts, strides = [0] * len(sizes), list(sizes), [1] * len(sizes)
    shape: list[int] = []
    for place, axis in _sliced_axes(operator, len(begins), len(sizes)):
        if axis is None or place is None:
            shape.append(1 if axis is None else sizes[axis])
            continue
        bit, step = 1 << place, steps[place]
        if operator.options["shrink"] & bit:
            starts[axis], counts[axis] = axis_of(begins[place], sizes[axis]), 1
            continue
        if not step:
            raise GraphError("a step of the slice is 0; it must not be")
        begin = None if operator.options["begin"] & bit else begins[place]
        end = None if operator.options["end"] & bit else ends[place]
        part = range(sizes[axis])[slice(begin, end, step)]
        starts[axis], counts[axis], strides[axis] = part.start, len(part), step
        shape.append(len(part))
    what = Slice(starts=tuple(starts), sizes=tuple(counts), steps=tuple(strides))
    if shape == counts:
        importer.emit(operator, what, [name])
        return
    part_name = importer.builder.emit(what, [name], importer.builder.fresh(f"{name}/part"))
    importer.emit(operator, Reshape(sizes=tuple(shape)), [part_name])


def _sliced_axes(operator: FileOperator, count: int, rank: int) -> list[tuple[int | None, int | None]]:
    """Return the axes of a slice and of its result, as numpy's ``x[1, ..., None, 2:5]``.

    Returns:
        The index in begins, ends and steps, or None for a whole axis, and the data's axis, or None if new.
    """
    options = operator.options
    specs = [
        "whole" if options["ellipsis"] >> place & 1 else "new" if options["new"] >> place & 1 else "range"
        for place in range(count)
    ]
    left = rank - specs.count("range")
    if left < 0 or specs.count("whole") > 1:
        count = specs.count("whole")
        raise GraphError(f"it slices {rank - left} of {rank} axes, with {count} ellipses; it may have one")
    found: list[tuple[int | None, int | None]] = []
    axis = 0
    for place, spec in enumerate(specs):
        if spec == "new":
            found.append((place, None))
            continue
        for _ in range(left if spec == "whole" else 1):
            found.append((None if spec == "whole" else place, axis))
            axis += 1
    return found + [(None, rest) for rest in range(axis, rank)]


@rule(3, "SLICE")
def _slice(importer: TfliteImporter, operator: FileOperator) -> None:
    name, sizes = importer.operand(operator.inputs[0])
    begins, counts = (integers(importer.constant(place)) for place in operator.inputs[1:3])
    if not len(begins) == len(counts) == len(sizes):
        raise GraphError(f"it has {len(begins)} begins and {len(counts)} sizes for {len(sizes)} axes")
    found = [
        n - begin if count == -1 else count for n, begin, count in zip(sizes, begins, counts, strict=True)
    ]
    importer.emit(operator, Slice(starts=tuple(begins), sizes=tuple(found), steps=(1,) * len(sizes)), [name])


def _cut(importer: TfliteImporter, operator: FileOperator, place: int, axis: int, lengths: list[int]) -> None:
    name, sizes = importer.operand(place)
    axis = axis_of(axis, len(sizes))
    if len(lengths) != len(operator.outputs) or sum(lengths) != sizes[axis]:
        raise GraphError(f"it splits {sizes[axis]} values into {lengths} for {len(operator.outputs)} outputs")
    start = 0
    for output, length in zip(operator.outputs, lengths, strict=True):
        starts, counts = [0] * len(sizes), list(sizes)
        starts[axis], counts[axis] = start, length
        what = Slice(starts=tuple(starts), sizes=tuple(counts), steps=(1,) * len(sizes))
        importer.emit(replace(operator, outputs=(output,)), what, [name])
        start += length


@rule(2, "SPLIT")
def _split(importer: TfliteImporter, operator: FileOperator) -> None:
    (axis,) = integers(importer.constant(operator.inputs[0]))
    _, sizes = importer.operand(operator.inputs[1])
    count = len(operator.outputs)
    length = sizes[axis_of(axis, len(sizes))] // max(1, count)
    _cut(importer, operator, operator.inputs[1], axis, [length] * count)


@rule(3, "SPLIT_V")
def _split_v(importer: TfliteImporter, operator: FileOperator) -> None:
    (axis,) = integers(importer.constant(operator.inputs[2]))
    lengths = integers(importer.constant(operator.inputs[1]))
    _, sizes = importer.operand(operator.inputs[0])
    if -1 in lengths:
        rest = sizes[axis_of(axis, len(sizes))] - sum(one for one in lengths if one != -1)
        lengths = [rest if one == -1 else one for one in lengths]
    _cut(importer, operator, operator.inputs[0], axis, lengths)


@rule(1, "UNPACK")
def _unpack(importer: TfliteImporter, operator: FileOperator) -> None:
    name, sizes = importer.operand(operator.inputs[0])
    axis = axis_of(operator.options["axis"], len(sizes))
    if len(operator.outputs) != sizes[axis]:
        raise GraphError(f"it has {len(operator.outputs)} outputs for {sizes[axis]} values")
    for place, output in enumerate(operator.outputs):
        starts, counts = [0] * len(sizes), list(sizes)
        starts[axis], counts[axis] = place, 1
        what = Slice(starts=tuple(starts), sizes=tuple(counts), steps=(1,) * len(sizes))
        part = importer.builder.emit(what, [name], importer.builder.fresh(f"{name}/part"))
        shape = (*sizes[:axis], *sizes[axis + 1 :])
        importer.emit(replace(operator, outputs=(output,)), Reshape(sizes=shape), [part])


@rule(1, "PACK")
def _pack(importer: TfliteImporter, operator: FileOperator) -> None:
    names = []
    rank = len(importer.operand(operator.inputs[0])[1]) + 1
    axis = axis_of(operator.options["axis"], rank)
    for place in operator.inputs:
        name, sizes = importer.operand(place)
        shape = (*sizes[:axis], 1, *sizes[axis:])
        names.append(
            importer.builder.emit(Reshape(sizes=shape), [name], importer.builder.fresh(f"{name}/one"))
        )
    importer.emit(operator, Concat(axis=axis), names)


@rule(1, "DEPTH_TO_SPACE", "SPACE_TO_DEPTH")
def _depth_and_space(importer: TfliteImporter, operator: FileOperator) -> None:
    name, sizes = importer.operand(operator.inputs[0])
    block = int(operator.options["block"])
    if len(sizes) != 4 or block < 1:
        raise GraphError(
            f"its data is {sizes} and its block {block}; it needs four axes and a positive block"
        )
    batch, height, width, channels = sizes
    if operator.kind == "DEPTH_TO_SPACE":
        split = (batch, height, width, block, block, channels // block**2)
        result = (batch, height * block, width * block, channels // block**2)
        order = (0, 1, 3, 2, 4, 5)
    else:
        split = (batch, height // block, block, width // block, block, channels)
        result = (batch, height // block, width // block, channels * block**2)
        order = (0, 1, 3, 2, 4, 5)
    emit, fresh = importer.builder.emit, importer.builder.fresh
    parts = emit(Reshape(sizes=split), [name], fresh(f"{name}/blocks"))
    turned = emit(Transpose(permutation=order), [parts], fresh(f"{name}/turned"))
    importer.emit(operator, Reshape(sizes=result), [turned])


def _batched_gather(axis: int, batch: int, indices: int, rank: int) -> Steps:
    if not 0 < batch <= min(axis, indices):
        raise GraphError(
            f"its batch_dims is {batch}; it must be from 0 to its axis, {axis}, and to the {indices} axes of "
            "its indices"
        )
    # the axis moves next to the shared ones, then the axes of the indices move to its place
    own, between = indices - batch, axis - batch
    order = [*range(batch), axis, *range(batch, axis), *range(axis + 1, rank)]
    first = batch + own
    last = [*range(batch), *range(first, first + between), *range(batch, first)]
    last += range(first + between, own + rank - 1)
    return [
        ("Transpose", ["x0"], {"perm": order}),
        ("Cast", ["x1"], {"to": onnx().TensorProto.INT64}),
        ("Unsqueeze", ["t1", "last"], {}),
        ("GatherND", ["t0", "t2"], {"batch_dims": batch}),
        ("Transpose", ["t3"], {"perm": last}),
    ]


@rule(2, "GATHER")
def _gather(importer: TfliteImporter, operator: FileOperator) -> None:
    name, sizes = importer.operand(operator.inputs[0])
    axis = axis_of(int(operator.options["axis"]), len(sizes))
    indices = importer.known(operator.inputs[1])
    batch = int(operator.options["batch"])
    if batch or indices is None or not 0 < indices.size <= _MAX_SLICES:
        steps: Steps = [("Gather", ["x0", "x1"], {"axis": axis})]
        if batch:
            steps = _batched_gather(axis, batch, len(importer.operand(operator.inputs[1])[1]), len(sizes))
        last = {"last": np.array([-1], np.int64)}
        emit_numbers(importer, operator, steps, operator.inputs[:2], last, is_move=True)
        return
    parts = []
    for index in np.asarray(indices).reshape(-1).tolist():
        starts, counts = [0] * len(sizes), list(sizes)
        starts[axis], counts[axis] = axis_of(index, sizes[axis]), 1
        what = Slice(starts=tuple(starts), sizes=tuple(counts), steps=(1,) * len(sizes))
        parts.append(importer.builder.emit(what, [name], importer.builder.fresh(f"{name}/part")))
    shape = (*sizes[:axis], *indices.shape, *sizes[axis + 1 :])
    joined = importer.builder.emit(Concat(axis=axis), parts, importer.builder.fresh(f"{name}/parts"))
    importer.emit(operator, Reshape(sizes=shape), [joined])
