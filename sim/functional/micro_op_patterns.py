"""The iteration space of a GEMM or ALU instruction as a box of axes.

An instruction is two hardware loops around a list of micro-ops. If the list is regular, they form an *affine
box*, which strided views can execute: each index is a base plus the sum of iteration times stride over some
axes. For example, dst 0, 1, 2, 10, 11, 12 have the base 0 and the axes (2 iterations, stride 10) and (3
iterations, stride 1).
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import prod
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from accel.base.fast_unique import distinct
from accel.core.instruction_access import LoopShape
from accel.core.isa import UopArray

Triple = tuple[int, int, int]
_Axes = tuple["Axis", ...]
Scalar = TypeVar("Scalar", bound=np.generic)

_CHUNK_UOPS = 1 << 15
"""Micro-ops whose indices are computed at a time."""


class Axis(NamedTuple):
    """``extent`` iterations with the ``strides`` of dst, src and wgt in elements."""

    extent: int
    strides: Triple


class Box(NamedTuple):
    """Micro-ops in order: the first one's indices, and the axes, outermost first."""

    base: Triple
    axes: tuple[Axis, ...]


def affine_box(uops: UopArray, shape: LoopShape) -> Box | None:
    """Return the box that enumerates the same indices in order, or None. Unused operands have stride zero."""
    columns = np.where(np.array(shape.checked), uops, 0)
    inner = _factor_axes(columns)
    return None if inner is None else _box(columns[0], shape, inner)


def affine_boxes(uops: UopArray, shape: LoopShape, max_boxes: int) -> list[Box] | None:
    """Return at most ``max_boxes`` boxes that together enumerate the indices, each in order, or None."""
    columns = np.where(np.array(shape.checked), uops, 0)
    if _distinct_steps(columns) >= max_boxes * (len(columns).bit_length() + 1):
        return None  # a box has one step per axis, and one to the next box
    firsts = columns
    axes: list[_Axes] = [()] * len(columns)
    count = len(firsts) + 1
    while len(firsts) < count:
        count = len(firsts)
        firsts, axes = _merge_neighbours(firsts, axes)
    if count > max_boxes:
        return None
    return [_box(first, shape, inner) for first, inner in zip(firsts, axes, strict=True)]


def split_axis(box: Box) -> list[Box]:
    """Split a box along one axis that moves dst, preferably one with a negative stride."""
    moving = [n for n, axis in enumerate(box.axes) if axis.strides[0]]
    if not moving:
        return []
    chosen = min(moving, key=lambda n: (box.axes[n].strides[0] > 0, box.axes[n].extent))
    extent, strides = box.axes[chosen]
    rest = box.axes[:chosen] + box.axes[chosen + 1 :]
    bases = [tuple(b + step * s for b, s in zip(box.base, strides, strict=True)) for step in range(extent)]
    return [Box((base[0], base[1], base[2]), rest) for base in bases]


def are_disjoint(boxes: Sequence[Box], dst_count: int) -> bool:
    """Whether the axes that move dst reach no dst twice. ``dst_count`` counts the different dst."""
    iterations = (prod(axis.extent for axis in box.axes if axis.strides[0]) for box in boxes)
    return sum(iterations) == dst_count


def _box(first: UopArray, shape: LoopShape, inner: Sequence[Axis]) -> Box:
    used = shape.checked
    factors = shape.factors
    loops = [
        Axis(shape.iter_out, _masked((factors[0], factors[2], factors[4]), used)),
        Axis(shape.iter_in, _masked((factors[1], factors[3], factors[5]), used)),
    ]
    axes = tuple(axis for axis in [*loops, *inner] if axis.extent > 1)
    return Box((int(first[0]), int(first[1]), int(first[2])), axes)


def _distinct_steps(rows: UopArray) -> int:
    packed = rows @ np.array([1 << 42, 1 << 21, 1], dtype=np.int64)
    return len(distinct(np.diff(packed)))


def _merge_neighbours(firsts: UopArray, axes: list[_Axes]) -> tuple[UopArray, list[_Axes]]:
    """Merge neighbouring boxes, given by first row and axes, with equal axes and distances."""
    steps = np.diff(firsts, axis=0)
    alike = np.array([one == other for one, other in pairwise(axes)], dtype=bool)
    steady = alike[:-1] & alike[1:] & (steps[:-1] == steps[1:]).all(axis=1)
    breaks = [*np.flatnonzero(~steady).tolist(), len(firsts) - 2]
    begins: list[int] = []
    found: list[_Axes] = []
    begin = 0
    while begin < len(firsts):
        begins.append(begin)
        if begin < len(alike) and alike[begin]:
            extent = breaks[bisect_left(breaks, begin)] + 2 - begin
            found.append((_axis(extent, steps[begin]), *axes[begin]))
        else:
            extent = 1
            found.append(axes[begin])
        begin += extent
    return firsts[begins], found


def _axis(extent: int, step: UopArray) -> Axis:
    return Axis(extent, (int(step[0]), int(step[1]), int(step[2])))


def _masked(strides: Triple, used: tuple[bool, bool, bool]) -> Triple:
    return (strides[0] * used[0], strides[1] * used[1], strides[2] * used[2])


def _factor_axes(rows: UopArray) -> list[Axis] | None:
    axes: list[Axis] = []
    while len(rows) > 1:
        step = rows[1] - rows[0]
        steady = (np.diff(rows, axis=0) == step).all(axis=1)
        breaks = np.flatnonzero(~steady)
        extent = int(breaks[0]) + 1 if len(breaks) else len(rows)
        if len(rows) % extent:
            return None
        heads = rows[::extent]
        offsets = np.arange(extent)[:, None] * step
        if not np.array_equal((heads[:, None] + offsets).reshape(-1, 3), rows):
            return None
        axes.append(_axis(extent, step))
        rows = heads
    return axes[::-1]


def all_indices(uops: UopArray, shape: LoopShape, begin: int, end: int) -> UopArray:
    """Return the indices (dst, src, wgt) of micro-ops ``[begin, end)`` in execution order."""
    number = np.arange(begin, end, dtype=np.int64)
    loop, u = np.divmod(number, len(uops))
    i, j = np.divmod(loop, shape.iter_in)
    factors = np.array(shape.factors, dtype=np.int64).reshape(3, 2)
    offsets = i[:, None] * factors[:, 0] + j[:, None] * factors[:, 1]
    return np.asarray(uops[u] + offsets, dtype=np.int64)


def index_chunks(uops: UopArray, shape: LoopShape, count: int) -> Iterator[UopArray]:
    for begin in range(0, count, _CHUNK_UOPS):
        yield all_indices(uops, shape, begin, min(count, begin + _CHUNK_UOPS))


def strided(array: npt.NDArray[Scalar], base: int, axes: list[tuple[int, int]]) -> npt.NDArray[Scalar]:
    """View the elements of ``array`` at ``base`` plus the box of (extent, stride)."""
    extents = tuple(extent for extent, _ in axes)
    steps = tuple(stride * array.strides[0] for _, stride in axes)
    return np.ndarray(
        extents + array.shape[1:],
        array.dtype,
        buffer=array.data,
        offset=base * array.strides[0],
        strides=steps + array.strides[1:],
    )


def is_injective(axes: list[tuple[int, int]]) -> bool:
    """Whether all points of the box (extent, stride) surely differ."""
    reach = 0
    for extent, stride in sorted(axes, key=lambda axis: abs(axis[1])):
        if abs(stride) <= reach:
            return False
        reach += abs(stride) * (extent - 1)
    return True
