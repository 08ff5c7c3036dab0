"""The iteration space of a GEMM or ALU instruction as a box of axes.

Two hardware loops around a list of micro-ops are, for the micro-ops that compilers emit, an affine box:
each operand's index is a base plus the sum of axis number times stride. Where that holds, a whole
instruction is a few array operations on strided views, whatever its number of micro-ops.
"""

from collections.abc import Iterator
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from accel.access import LoopShape
from accel.isa import UopArray

Triple = tuple[int, int, int]
Scalar = TypeVar("Scalar", bound=np.generic)

_CHUNK = 1 << 15
"""Micro-ops whose indices are held at once where no box is found."""


class Axis(NamedTuple):
    """``extent`` steps; ``strides`` are those of dst, src and wgt, in elements."""

    extent: int
    strides: Triple


class Box(NamedTuple):
    """All micro-ops of an instruction in order, outermost axis first, and the first one's indices."""

    base: Triple
    axes: tuple[Axis, ...]


def affine_box(uops: UopArray, shape: LoopShape) -> Box | None:
    """The box that enumerates the same indices in the same order, or None if there is none.

    Operands that the instruction does not use are left out: their strides are zero.
    """
    columns = np.where(np.array(shape.checked), uops, 0)
    inner = _factor(columns)
    return None if inner is None else _box(columns[0], shape, inner)


def affine_boxes(uops: UopArray, shape: LoopShape, most: int) -> list[Box] | None:
    """Boxes that enumerate the same indices together, each of them in the same order; None if that takes
    more than ``most``."""
    columns = np.where(np.array(shape.checked), uops, 0)
    parts = _runs(columns)
    count = len(columns)
    while len(parts) < count:
        count = len(parts)
        parts = _runs_of_parts(parts)
    if len(parts) > most:
        return None
    return [_box(first, shape, axes) for first, axes in parts]


def apart(box: Box) -> list[Box]:
    """The steps of one axis that moves dst as boxes of their own, if possible one that moves it back."""
    moving = [n for n, axis in enumerate(box.axes) if axis.strides[0]]
    if not moving:
        return []
    chosen = min(moving, key=lambda n: (box.axes[n].strides[0] > 0, box.axes[n].extent))
    extent, strides = box.axes[chosen]
    rest = box.axes[:chosen] + box.axes[chosen + 1 :]
    bases = [tuple(b + step * s for b, s in zip(box.base, strides, strict=True)) for step in range(extent)]
    return [Box((base[0], base[1], base[2]), rest) for base in bases]


def _box(first: UopArray, shape: LoopShape, inner: list[Axis]) -> Box:
    """The box of the hardware's loops around ``inner`` axes."""
    used = shape.checked
    factors = shape.factors
    loops = [
        Axis(shape.iter_out, _masked((factors[0], factors[2], factors[4]), used)),
        Axis(shape.iter_in, _masked((factors[1], factors[3], factors[5]), used)),
    ]
    axes = tuple(axis for axis in [*loops, *inner] if axis.extent > 1)
    return Box((int(first[0]), int(first[1]), int(first[2])), axes)


_Part = tuple[UopArray, list[Axis]]
"""First row, and axes outermost first."""


def _runs(rows: UopArray) -> list[_Part]:
    """``rows`` as runs of equal steps."""
    steps = np.diff(rows, axis=0)
    parts: list[_Part] = []
    begin = 0
    while begin < len(rows):
        same = (steps[begin:] == steps[begin : begin + 1]).all(axis=1)
        breaks = np.flatnonzero(~same)
        extent = (int(breaks[0]) if len(breaks) else len(same)) + 1
        axes = [_axis(extent, steps[begin])] if extent > 1 else []
        parts.append((rows[begin], axes))
        begin += extent
    return parts


def _runs_of_parts(parts: list[_Part]) -> list[_Part]:
    """The same with neighbours taken together that are alike and equal steps apart."""
    found: list[_Part] = []
    begin = 0
    while begin < len(parts):
        first, axes = parts[begin]
        end = begin + 1
        step = parts[end][0] - first if end < len(parts) else first
        while (
            end < len(parts)
            and parts[end][1] == axes
            and np.array_equal(parts[end][0], first + (end - begin) * step)
        ):
            end += 1
        extent = end - begin
        found.append((first, [_axis(extent, step), *axes] if extent > 1 else axes))
        begin = end
    return found


def _axis(extent: int, step: UopArray) -> Axis:
    return Axis(extent, (int(step[0]), int(step[1]), int(step[2])))


def _masked(strides: Triple, used: tuple[bool, bool, bool]) -> Triple:
    return (strides[0] * used[0], strides[1] * used[1], strides[2] * used[2])


def _factor(rows: UopArray) -> list[Axis] | None:
    """Axes, outermost first, whose box enumerates ``rows`` in order; None if they are not affine."""
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
        axes.append(Axis(extent, (int(step[0]), int(step[1]), int(step[2]))))
        rows = heads
    return axes[::-1]


def all_indices(uops: UopArray, shape: LoopShape, begin: int, end: int) -> UopArray:
    """Indices (dst, src, wgt) of micro-ops ``[begin, end)`` in order of execution."""
    number = np.arange(begin, end, dtype=np.int64)
    loop, u = np.divmod(number, len(uops))
    i, j = np.divmod(loop, shape.iter_in)
    factors = np.array(shape.factors, dtype=np.int64).reshape(3, 2)
    offsets = i[:, None] * factors[:, 0] + j[:, None] * factors[:, 1]
    return np.asarray(uops[u] + offsets, dtype=np.int64)


def index_chunks(uops: UopArray, shape: LoopShape, count: int) -> Iterator[UopArray]:
    """The first ``count`` rows of :func:`all_indices`, some at a time."""
    for begin in range(0, count, _CHUNK):
        yield all_indices(uops, shape, begin, min(count, begin + _CHUNK))


def strided(array: npt.NDArray[Scalar], base: int, axes: list[tuple[int, int]]) -> npt.NDArray[Scalar]:
    """A view of ``array``'s elements (its first axis) at ``base`` plus the box of (extent, stride)."""
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
    """Whether no two points of the box (extent, stride) fall on the same element. May say no wrongly."""
    reach = 0
    for extent, stride in sorted(axes, key=lambda axis: abs(axis[1])):
        if abs(stride) <= reach:
            return False
        reach += abs(stride) * (extent - 1)
    return True
