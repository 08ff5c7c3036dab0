"""Sparse constants of TensorFlow Lite files as dense arrays.

A sparse tensor is a tree of levels, one for each axis in the order of traversal, then for each axis of
blocks. For example, a CSR matrix has a dense level of rows and a sparse one of columns.
"""

from collections.abc import Sequence
from math import prod

import numpy as np
from msgspec import Struct

from accel.base.errors import GraphError
from accel.graph.graph_tensor import MAX_TENSOR_BYTES, Array, Shape


class Level(Struct, frozen=True, kw_only=True):
    """Each node of a dense level has ``size`` children. In a sparse level, the children of node N have the
    numbers ``indices[segments[N]:segments[N + 1]]``.
    """

    size: int
    segments: Array | None = None
    indices: Array | None = None


def dense_values(
    shape: Shape, order: Sequence[int], block_map: Sequence[int], levels: Sequence[Level], values: Array
) -> Array:
    """Return an array with 0 for values that are not stored.

    Args:
        order: the axis of each level. Axes of blocks follow those of the tensor.
        block_map: the tensor's axis for each axis of blocks.
        values: the stored values in the order of traversal.

    Raises:
        GraphError: the levels contradict each other, the shape, or the number of values.
    """
    rank, count = len(shape), len(shape) + len(block_map)
    if sorted(order) != list(range(count)) or sorted(order[:rank]) != list(range(rank)):
        raise GraphError(f"its traversal order is {tuple(order)}; it must have the {count} axes once")
    if len(set(block_map)) != len(block_map) or not set(block_map) <= set(range(rank)):
        raise GraphError(f"its blocks have the axes {tuple(block_map)}; they must be some of {rank}")
    if len(levels) != count:
        raise GraphError(f"it has {len(levels)} levels; it must have {count}")
    if prod(shape) * values.dtype.itemsize > MAX_TENSOR_BYTES or any(size < 1 for size in shape):
        raise GraphError(f"its shape is {shape}; it must be positive and take up to {MAX_TENSOR_BYTES} bytes")
    sizes, strides = _axes(shape, order, block_map, levels)
    _check_counts([sizes[axis] for axis in order], levels, values.size)
    places = np.zeros(1, np.int64)
    for axis, level in zip(order, levels, strict=True):
        if level.segments is None or level.indices is None:
            steps = np.arange(sizes[axis], dtype=np.int64) * strides[axis]
            places = (places[:, None] + steps).reshape(-1)
        else:
            ends = level.segments.astype(np.int64)
            parents = np.repeat(places, ends[1:] - ends[:-1])
            places = parents + level.indices.astype(np.int64) * strides[axis]
    dense = np.zeros(prod(shape), values.dtype)
    dense[places] = values
    return dense.reshape(shape)


def _axes(
    shape: Shape, order: Sequence[int], block_map: Sequence[int], levels: Sequence[Level]
) -> tuple[list[int], list[int]]:
    rank = len(shape)
    sizes = list(shape)
    strides = [prod(shape[axis + 1 :]) for axis in range(rank)]
    for at, axis in enumerate(block_map):
        size = levels[order.index(rank + at)].size
        if size < 1 or shape[axis] % size:
            raise GraphError(f"its blocks have the size {size}; it must divide {shape[axis]}")
        sizes.append(size)
        strides.append(strides[axis])
        sizes[axis] //= size
        strides[axis] *= size
    return sizes, strides


def _check_counts(sizes: Sequence[int], levels: Sequence[Level], stored: int) -> None:
    """Before memory is allocated, refuse files without an element for each node."""
    nodes = 1
    for at, (size, level) in enumerate(zip(sizes, levels, strict=True)):
        if level.segments is None or level.indices is None:
            if level.size != size:
                raise GraphError(f"level {at} has the size {level.size}; it must be {size}")
            nodes *= size
            continue
        segments, indices = level.segments, level.indices
        if segments.size != nodes + 1:
            raise GraphError(f"level {at} has {segments.size} segments; it must have {nodes + 1}")
        ends = segments.astype(np.int64)
        if ends[0] != 0 or ends[-1] != indices.size or (ends[1:] < ends[:-1]).any():
            raise GraphError(f"the segments of level {at} must ascend from 0 to {indices.size}")
        if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < size:
            raise GraphError(f"the indices of level {at} must be in 0..{size - 1}")
        nodes = int(indices.size)
    if nodes != stored:
        raise GraphError(f"it has {stored} values; its levels have {nodes}")
