"""Instances for rules of moves."""

from __future__ import annotations

from math import prod

import numpy as np

from accel.graph.elementwise_operators import ChannelTable
from accel.graph.graph import Graph
from accel.graph.graph_tensor import QUANTIZED, Shape
from accel.graph.movement_operators import Concat, Pad, Reshape, Slice, Take, Transpose
from accel.graph.product_operators import MatMul
from accel.rewriting.instance_builder import InstanceBuilder


def _ends(draw: InstanceBuilder, inner: str, last: str) -> Graph:
    return draw.done(*((inner, last) if draw.chance(0.2) else (last,)))


# ---- Reshape and Transpose


def transpose_pairs(rng: np.random.Generator) -> Graph:
    draw = InstanceBuilder(rng)
    rank = draw.integer(2, 4)
    first = draw.move(draw.any_input(draw.shape(rank)), Transpose)
    return _ends(draw, first, draw.move(first, Transpose))


def transposes_with_ones(rng: np.random.Generator) -> Graph:
    """Sometimes the Transpose also moves other axes."""
    draw = InstanceBuilder(rng)
    shape = tuple(draw.integer(2, 4) if draw.chance(0.4) else 1 for _ in range(draw.integer(1, 4)))
    return draw.done(draw.move(draw.any_input(shape), Transpose))


def reshape_pairs(rng: np.random.Generator) -> Graph:
    draw = InstanceBuilder(rng)
    first = draw.move(draw.any_input(draw.shape(3)), Reshape)
    return _ends(draw, first, draw.move(first, Reshape))


def reshapes(rng: np.random.Generator) -> Graph:
    draw = InstanceBuilder(rng)
    shape = draw.shape(2, most=3)
    x = draw.any_input(shape)
    x = draw.function(x) if draw.chance(0.5) else x
    sizes = shape if draw.chance(0.6) else draw.regrouped(shape)
    return draw.done(draw.node(Reshape(sizes=sizes), x))


# ---- Transposes and operators of several operands


def _transposes(draw: InstanceBuilder, share: float) -> tuple[Transpose, Transpose]:
    first, second = (Transpose(permutation=draw.permutation(3)) for _ in range(2))
    return first, first if draw.chance(share) else second


def _before(shape: Shape, transpose: Transpose) -> Shape:
    return tuple(shape[transpose.permutation.index(axis)] for axis in range(len(shape)))


def _sometimes_ones(draw: InstanceBuilder, shape: Shape) -> Shape:
    return tuple(1 if draw.chance(0.3) else size for size in shape)


def binary_of_transposes(rng: np.random.Generator) -> Graph:
    draw = InstanceBuilder(rng)
    first, second = _transposes(draw, 0.8)
    shape = draw.shape(3, most=8)
    x = draw.any_input(_before(shape, first))
    y = draw.like_input(x, _before(_sometimes_ones(draw, shape), second))
    operands = draw.node(first, x), draw.node(second, y)
    result = draw.binary(*(operands if draw.chance(0.5) else operands[::-1]), sums=0.5)
    return _ends(draw, operands[0], result)


def _with_constant(rng: np.random.Generator, *, first: bool) -> Graph:
    draw = InstanceBuilder(rng)
    shape = draw.shape(3, most=8)
    x = draw.any_input(_sometimes_ones(draw, shape) if draw.chance(0.5) else shape)
    moved = draw.move(x, Transpose)
    sizes = tuple(draw.choice((1, 4)) if size == 1 else size for size in draw.tensors[moved].shape)
    sizes = sizes if draw.chance(0.3) else _sometimes_ones(draw, sizes)
    value = draw.constant_like(moved, sizes[draw.integer(0, 3) :])
    operands = (value, moved) if first else (moved, value)
    return draw.done(draw.binary(*operands, sums=0.5))


def transposes_with_constants(rng: np.random.Generator) -> Graph:
    return _with_constant(rng, first=False)


def transposes_with_first_constants(rng: np.random.Generator) -> Graph:
    return _with_constant(rng, first=True)


def transposed_binary(rng: np.random.Generator) -> Graph:
    draw = InstanceBuilder(rng)
    shape = draw.shape(3, most=8)
    x = draw.any_input(shape)
    sizes = _sometimes_ones(draw, shape)[draw.choice((0, 0, 1)) :]
    y = draw.constant_like(x, sizes) if draw.chance(0.4) else draw.like_input(x, sizes)
    result = draw.binary(*((x, y) if draw.chance(0.5) else (y, x)), sums=0.5)
    return _ends(draw, result, draw.move(result, Transpose))


def _varied(draw: InstanceBuilder, shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], draw.integer(1, 4), *shape[axis + 1 :])


def concat_of_transposes(rng: np.random.Generator) -> Graph:
    draw = InstanceBuilder(rng)
    shape, axis = draw.shape(3), draw.integer(0, 2)
    first, second = _transposes(draw, 0.7)
    x = draw.any_input(_before(_varied(draw, shape, axis), first))
    operands = [draw.node(first, x)]
    for _ in range(draw.integer(0, 2)):
        sizes = _varied(draw, shape, axis)
        if draw.chance(0.2):
            value = draw.constants[draw.constant_like(x, sizes)]
            operands.append(draw.constant(draw.fresh("c"), value, draw.tensors[x].quantization))
        else:
            operands.append(draw.node(second, draw.like_input(x, _before(sizes, second))))
    return _ends(draw, operands[0], draw.node(Concat(axis=axis), *operands))


def transposed_concat(rng: np.random.Generator) -> Graph:
    draw = InstanceBuilder(rng)
    shape, axis = draw.shape(3), draw.integer(0, 2)
    x = draw.any_input(shape)
    others = [draw.like_input(x, _varied(draw, shape, axis)) for _ in range(draw.integer(0, 2))]
    joined = draw.node(Concat(axis=axis), x, *others)
    return _ends(draw, joined, draw.move(joined, Transpose))


def _pad(draw: InstanceBuilder, x: str) -> str:
    shape, dtype = draw.tensors[x].shape, draw.tensors[x].dtype
    mode = draw.choice(("constant", "edge", "reflect"))
    begin, end = (
        tuple(draw.integer(0, min(2, size - 1) if mode == "reflect" else 2) for size in shape)
        for _ in range(2)
    )
    value = 0.5 if dtype == "float32" else draw.integer(0, 127)
    return draw.node(Pad(begin=begin, end=end, mode=mode, value=value), x)


def padded_transposes(rng: np.random.Generator) -> Graph:
    draw = InstanceBuilder(rng)
    moved = draw.move(draw.any_input(draw.shape(3)), Transpose)
    return _ends(draw, moved, _pad(draw, moved))


def transposed_pads(rng: np.random.Generator) -> Graph:
    draw = InstanceBuilder(rng)
    padded = _pad(draw, draw.any_input(draw.shape(3)))
    return _ends(draw, padded, draw.move(padded, Transpose))


def _channel_table(draw: InstanceBuilder, x: str) -> str:
    shape, dtype = draw.tensors[x].shape, draw.choice(QUANTIZED)
    axis, bounds = draw.integer(0, len(shape) - 1), np.iinfo(dtype)
    count = 1 if draw.chance(0.3) else shape[axis]
    entries = draw.rng.integers(bounds.min, bounds.max, (count, 256), endpoint=True).astype(dtype)
    table = ChannelTable(axis=axis + 5 if count == 1 and draw.chance(0.5) else axis)
    values = draw.constant(draw.fresh("entries"), entries)
    return draw.node(table, x, values, dtype=dtype, quantization=draw.quantization(dtype))


def channel_tables_of_transposes(rng: np.random.Generator) -> Graph:
    """A table for all channels may have a missing axis."""
    draw = InstanceBuilder(rng)
    moved = draw.move(draw.byte_input(draw.shape(3)), Transpose)
    return _ends(draw, moved, _channel_table(draw, moved))


def transposed_channel_tables(rng: np.random.Generator) -> Graph:
    draw = InstanceBuilder(rng)
    found = _channel_table(draw, draw.byte_input(draw.shape(3)))
    return _ends(draw, found, draw.move(found, Transpose))


# ---- Slice and Concat


def slice_pairs(rng: np.random.Generator) -> Graph:
    draw = InstanceBuilder(rng)
    first = draw.move(draw.any_input(draw.shape(3, most=8)), Slice)
    return _ends(draw, first, draw.move(first, Slice))


def slices(rng: np.random.Generator) -> Graph:
    draw = InstanceBuilder(rng)
    shape = draw.shape(2, most=3)
    whole = Slice(starts=(0, 0), sizes=shape, steps=(1, -1 if shape[1] == 1 else 1))
    backwards = Slice(starts=(shape[0] - 1, 0), sizes=shape, steps=(-1, 1))
    operator = draw.choice((whole, whole, backwards, draw.slice(shape)))
    return draw.done(draw.node(operator, draw.any_input(shape)))


def slices_of_concats(rng: np.random.Generator) -> Graph:
    draw = InstanceBuilder(rng)
    shape, axis = draw.shape(3), draw.integer(0, 2)
    x = draw.any_input(_varied(draw, shape, axis))
    others = [draw.like_input(x, _varied(draw, shape, axis)) for _ in range(draw.integer(0, 2))]
    joined = draw.node(Concat(axis=axis), x, *others)
    return _ends(draw, joined, draw.move(joined, Slice))


def concats_of_slices(rng: np.random.Generator) -> Graph:
    """Slices are often neighbours in one tensor."""
    draw = InstanceBuilder(rng)
    axis, shape = draw.integer(0, 1), (draw.integer(2, 3), draw.integer(4, 8))[:: draw.choice((1, -1))]
    x = draw.any_input(shape)
    y, operands, place = draw.like_input(x, shape), list[str](), 0
    for _ in range(draw.integer(2, 4)):
        start = place % shape[axis] if draw.chance(0.8) else draw.integer(0, shape[axis] - 1)
        count = draw.integer(1, min(3, shape[axis] - start))
        starts, sizes = [0, 0], list(shape)
        starts[axis], sizes[axis] = start, count
        steps = [1, 1]
        if draw.chance(0.1) and count == 1:
            steps[axis] = 2
        part = Slice(starts=tuple(starts), sizes=tuple(sizes), steps=tuple(steps))
        operands.append(draw.node(part, x if draw.chance(0.9) else y))
        place = start + count
    return _ends(draw, operands[0], draw.node(Concat(axis=axis), *operands))


def concats_of_concats(rng: np.random.Generator) -> Graph:
    draw = InstanceBuilder(rng)
    shape, axis = draw.shape(2), draw.integer(0, 1)
    x = draw.any_input(shape)
    inner_axis = axis if draw.chance(0.8) else 1 - axis
    inner = draw.node(Concat(axis=inner_axis), x, *[x] * draw.integer(0, 1))
    sizes = list(draw.tensors[inner].shape)
    sizes[axis] = draw.integer(1, 4)
    others = [draw.like_input(x, tuple(sizes))] if draw.chance(0.7) else []
    operands = [inner, *others] if draw.chance(0.5) else [*others, inner]
    return _ends(draw, inner, draw.node(Concat(axis=axis), *operands))


# ---- Take and moves of pixels


def take_pairs(rng: np.random.Generator) -> Graph:
    draw = InstanceBuilder(rng)
    first = draw.move(draw.any_input(draw.shape(2)), Take)
    return _ends(draw, first, draw.move(first, Take))


def takes(rng: np.random.Generator) -> Graph:
    draw = InstanceBuilder(rng)
    shape, axis = draw.shape(2, most=4), draw.integer(0, 1)
    order = tuple(range(shape[axis])) if draw.chance(0.6) else draw.permutation(shape[axis])
    return draw.done(draw.node(Take(axis=axis, indices=order), draw.any_input(shape)))


def _shuffled(draw: InstanceBuilder) -> tuple[str, Shape, tuple[int, ...], Shape]:
    """Draw a picture, its shape in parts, an order of the parts and the shape of the result."""
    count, channels, height, width = draw.shape(4, most=3)
    kind = draw.integer(0, 3)
    if kind == 0:
        groups = draw.integer(2, 3)
        parts: Shape = (count, groups, channels, height, width)
        order: tuple[int, ...] = (0, 2, 1, 3, 4)
        shape = last = (count, groups * channels, height, width)
    elif kind == 1:
        parts, order = (count, 2, 2, channels, height, width), (0, 3, 4, 1, 5, 2)
        shape, last = (count, 4 * channels, height, width), (count, channels, 2 * height, 2 * width)
    elif kind == 2:
        parts, order = (count, channels, 2, 2, height, width), (0, 1, 4, 2, 5, 3)
        shape, last = (count, 4 * channels, height, width), (count, channels, 2 * height, 2 * width)
    else:
        parts, order = (count, channels, height, 2, width, 2), (0, 3, 5, 1, 2, 4)
        shape, last = (count, channels, 2 * height, 2 * width), (count, 4 * channels, height, width)
    if draw.chance(0.2):
        order = draw.permutation(len(parts))
    return draw.byte_input(shape), parts, order, last


def shuffles(rng: np.random.Generator) -> Graph:
    """Three moves usually shuffle channels or pixels."""
    draw = InstanceBuilder(rng)
    x, parts, order, last = _shuffled(draw)
    first = draw.node(Reshape(sizes=parts), x)
    return draw.done(draw.node(Reshape(sizes=last), draw.node(Transpose(permutation=order), first)))


def long_shuffles(rng: np.random.Generator) -> Graph:
    draw = InstanceBuilder(rng)
    x, parts, order, last = _shuffled(draw)
    moved = draw.node(Reshape(sizes=parts), x)
    if draw.chance(0.5):
        between = draw.permutation(len(parts))
        moved = draw.node(Transpose(permutation=between), moved)
        order = tuple(between.index(axis) for axis in order)
        moved = draw.node(Transpose(permutation=order), moved)
    else:
        moved = draw.node(Transpose(permutation=order), moved)
        moved = draw.node(Reshape(sizes=(prod(last),)), moved)
    return draw.done(draw.node(Reshape(sizes=last), moved))


# ---- Reshapes around products


def products_of_rows(rng: np.random.Generator) -> Graph:
    """The Reshapes sometimes join or separate other axes."""
    draw = InstanceBuilder(rng)
    shape = draw.shape(draw.integer(2, 4), most=4)
    x, depth = draw.byte_input(shape), shape[-1]
    rows = draw.node(Reshape(sizes=(prod(shape[:-1]), depth)), x)
    columns = draw.integer(1, 5)
    bias = [draw.bias(columns)] if draw.chance(0.5) else []
    dtype = draw.choice((*QUANTIZED, "int32"))
    quantization = None if dtype == "int32" else draw.quantization(dtype)
    weights = draw.weights((depth, columns), 1, zero=draw.choice((0, 3)))
    found = draw.node(MatMul(), rows, weights, *bias, dtype=dtype, quantization=quantization)
    leading = shape[:-1] if draw.chance(0.8) else shape[:-1][::-1]
    return _ends(draw, found, draw.node(Reshape(sizes=(*leading, columns)), found, dtype=dtype))
