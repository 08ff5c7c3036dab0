"""Moves as steps of the driver, each of which copies a box of values."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from accel.deployment.deployment_steps import Move, row_major, value_bytes
from accel.graph.graph import Graph, Node
from accel.graph.movement_operators import DepthToSpace, SpaceToDepth, Take

_MOST_PHASES = 16


def take_steps(graph: Graph, node: Node) -> Iterator[Move]:
    """Yield a step for each part of the indices with equal distances."""
    operator = node.operator
    assert isinstance(operator, Take)
    operand, out = graph.tensors[node.inputs[0]], graph.tensors[node.output]
    source, target, axis = row_major(operand.shape), row_major(out.shape), operator.axis
    for first, count, every, begin, step in _equal_distances(operator.indices):
        yield Move(
            value_bytes=value_bytes(out.dtype),
            sizes=_with(out.shape, axis, count),
            source_strides=_with(source, axis, step * source[axis]),
            target_strides=_with(target, axis, every * target[axis]),
            source_start=begin * source[axis],
            target_start=first * target[axis],
        )


def _equal_distances(indices: Sequence[int]) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield first position, count, distance of positions, first index, and distance of indices.

    For example, 0, 0, 1, 1, 2, 2 are the positions 0, 2, 4 and 1, 3, 5, each with the indices 0, 1, 2.
    """
    for phases in range(1, min(_MOST_PHASES, len(indices)) + 1):
        parts = [indices[phase::phases] for phase in range(phases)]
        if all(len({b - a for a, b in pairwise(part)}) <= 1 for part in parts):
            for phase, part in enumerate(parts):
                yield phase, len(part), phases, part[0], part[1] - part[0] if len(part) > 1 else 0
            return
    at = 0
    while at < len(indices):
        step = indices[at + 1] - indices[at] if at + 1 < len(indices) else 0
        end = at + 1
        while end < len(indices) and indices[end] - indices[end - 1] == step:
            end += 1
        yield at, end - at, 1, indices[at], step
        at = end


def pixel_steps(graph: Graph, node: Node) -> Iterator[Move]:
    """Yield a step for each pixel of the squares of DepthToSpace or SpaceToDepth."""
    operator = node.operator
    assert isinstance(operator, DepthToSpace | SpaceToDepth)
    operand, out = graph.tensors[node.inputs[0]], graph.tensors[node.output]
    deep, wide = (operand, out) if isinstance(operator, DepthToSpace) else (out, operand)
    by_pixel, by_position = row_major(deep.shape), row_major(wide.shape)
    block, channels = operator.block, wide.shape[1]
    is_columns_first = not isinstance(operator, DepthToSpace) or operator.columns_first
    for pixel in range(block**2):
        row, column = divmod(pixel, block)
        channel, step = (pixel * channels, 1) if is_columns_first else (pixel, block**2)
        deep_strides = _with(by_pixel, 1, step * by_pixel[1])
        wide_strides = (*by_position[:2], block * by_position[2], block * by_position[3])
        deep_start, wide_start = channel * by_pixel[1], row * by_position[2] + column * by_position[3]
        is_source_deep = isinstance(operator, DepthToSpace)
        yield Move(
            value_bytes=value_bytes(out.dtype),
            sizes=(deep.shape[0], channels, *deep.shape[2:]),
            source_strides=deep_strides if is_source_deep else wide_strides,
            target_strides=wide_strides if is_source_deep else deep_strides,
            source_start=deep_start if is_source_deep else wide_start,
            target_start=wide_start if is_source_deep else deep_start,
        )


def _with(shape: Sequence[int], axis: int, size: int) -> tuple[int, ...]:
    return (*shape[:axis], size, *shape[axis + 1 :])
