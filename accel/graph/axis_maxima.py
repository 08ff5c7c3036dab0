"""Maxima along axes as max pools, which machines support."""

from collections.abc import Sequence
from math import prod

from accel.graph.graph_operator import Operator
from accel.graph.graph_tensor import Shape
from accel.graph.movement_operators import Reshape, Transpose
from accel.graph.pooling_operators import MaxPool
from accel.graph.window_geometry import Windows

_MAX_WINDOW = 64
"""Values that accumulators can hold."""


def maximum_operators(sizes: Shape, axes: Sequence[int], result: Shape) -> list[Operator]:
    """Return a chain of operators that computes the maximum along ascending axes.

    For example, the maximum of (1, 8, 20, 16) along axes 1 and 2 is a Transpose to (1, 16, 8, 20), max pools
    of 1x20 and 8x1, and a Reshape. ``result`` is a shape with or without the axes.
    """
    kept = [axis for axis in range(len(sizes)) if axis not in axes]
    steps: list[Operator] = []
    permutation = (*kept, *axes)
    if permutation != tuple(range(len(sizes))):
        steps.append(Transpose(permutation=permutation))
    reduced = tuple(sizes[axis] for axis in axes)
    if len(reduced) > 2:
        reduced = (prod(reduced),)
    outer = [sizes[axis] for axis in kept]
    picture = (outer[0], prod(outer[1:]), *reduced) if 0 in kept else (1, prod(outer), *reduced)
    if picture != tuple(sizes[axis] for axis in permutation):
        steps.append(Reshape(sizes=picture))
    steps += [MaxPool(windows=one) for one in maximum_windows(reduced)]
    if result != (*picture[:2], *[1] * len(reduced)):
        steps.append(Reshape(sizes=result))
    return steps


def maximum_windows(sizes: Shape) -> list[Windows]:
    """Return the windows of max pools that leave one value.

    For example, 14x14 values take a 14x1 and a 1x14 pool, since 196 are more than 64.
    """
    left, found = list(sizes), list[Windows]()
    while prod(left) > _MAX_WINDOW:
        axis = left.index(max(left))
        parts = -(-left[axis] // _MAX_WINDOW)
        length = -(-left[axis] // parts)
        lengths, after = [1] * len(left), [0] * len(left)
        lengths[axis], after[axis] = length, length * parts - left[axis]
        found.append(_windows(lengths, after))
        left[axis] = parts
    return [*found, _windows(left, [0] * len(left))]


def _windows(lengths: Sequence[int], after: Sequence[int]) -> Windows:
    kernel, ones = tuple(lengths), (1,) * len(lengths)
    return Windows(kernel=kernel, strides=kernel, dilations=ones, begin=(0,) * len(ones), end=tuple(after))
