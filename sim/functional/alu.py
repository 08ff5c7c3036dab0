"""ALU: ``acc[dst] = op(acc[dst], imm or acc[src])``, in the order of the micro-ops.

A few array operations suffice if the order has no effect: no accumulator is read after its write, or the
repeated operation is commutative. Otherwise micro-ops are grouped into levels that need only earlier ones.
"""

from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from accel.core.alu_operations import Operation
from accel.core.instruction_access import LoopShape
from accel.core.isa import Alu, UopArray
from accel.sim.functional.micro_op_patterns import Box, index_chunks, is_injective, strided

Acc = npt.NDArray[np.int32]


class AluBox(NamedTuple):
    target: Acc
    operand: Acc | None
    """The accumulators that are read, or None for an immediate. Axes after those of ``target`` write an
    accumulator repeatedly."""
    times: int
    """Writes of each accumulator."""

    def run(self, operation: Operation, immediate: int) -> None:
        if self.operand is None:
            operation.apply_repeatedly(self.target, immediate, self.times)
        else:
            _apply_operands(operation, self.target, self.operand)


def alu_box(acc: Acc, box: Box, *, immediate: bool) -> AluBox | None:
    """Return the array operations of a box, or None if the order may matter."""
    moving = [(a.extent, a.strides[0]) for a in box.axes if a.strides[0]]
    fixed = [a for a in box.axes if not a.strides[0]]
    if not is_injective(moving):
        return None
    target = strided(acc, box.base[0], moving)
    times = prod(axis.extent for axis in fixed)
    if immediate:
        return AluBox(target, None, times)
    same = box.base[0] == box.base[1] and all(a.strides[0] == a.strides[1] for a in box.axes if a.strides[0])
    if not (_disjoint(box) or (same and not fixed)):
        return None
    read = [(a.extent, a.strides[1]) for a in box.axes if a.strides[0]] + [
        (a.extent, a.strides[1]) for a in fixed
    ]
    return AluBox(target, strided(acc, box.base[1], read), times)


def _apply_operands(operation: Operation, target: Acc, operand: Acc) -> None:
    if operation.is_associative and operand.ndim > target.ndim:
        operand = _combined(operation, operand, target.ndim)
    for step in np.ndindex(operand.shape[target.ndim - 2 : operand.ndim - 2]):
        operation.apply(target, operand[(slice(None),) * (target.ndim - 2) + step])


def _combined(operation: Operation, operand: Acc, ndim: int) -> Acc:
    """Reduce the operands of each accumulator pairwise."""
    function = operation.function
    outer, inner = operand.shape[: ndim - 2], operand.shape[operand.ndim - 2 :]
    values = operand.reshape(*outer, -1, *inner)
    while (count := values.shape[ndim - 2]) > 1:
        pairs = [np.take(values, range(first, count - count % 2, 2), axis=ndim - 2) for first in (0, 1)]
        rest = np.take(values, range(count - count % 2, count), axis=ndim - 2)
        values = np.concatenate([function(*pairs), rest], axis=ndim - 2)
    return np.asarray(values.squeeze(ndim - 2))


def alu_general(
    acc: Acc, operation: Operation, instruction: Alu, uops: UopArray, shape: LoopShape, count: int
) -> None:
    function = operation.function
    for indices in index_chunks(uops, shape, count):
        dst, src = indices[:, 0], indices[:, 1]
        if instruction.use_imm:
            for level in _occurrences(dst):
                acc[dst[level]] = function(acc[dst[level]], np.int32(instruction.imm))
        else:
            for level in _levels(dst, src):
                acc[dst[level]] = function(acc[dst[level]], acc[src[level]])


def _disjoint(box: Box) -> bool:
    low, high = list(box.base[:2]), list(box.base[:2])
    for axis in box.axes:
        for operand in (0, 1):
            reach = axis.strides[operand] * (axis.extent - 1)
            low[operand] += min(0, reach)
            high[operand] += max(0, reach)
    return high[0] < low[1] or high[1] < low[0]


def _occurrences(dst: npt.NDArray[np.int64]) -> list[npt.NDArray[np.intp]]:
    order = np.argsort(dst, kind="stable")
    ordered = dst[order]
    fresh = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    starts = np.flatnonzero(fresh)
    rank = np.empty(len(dst), dtype=np.int64)
    rank[order] = np.arange(len(dst)) - np.repeat(starts, np.diff([*starts, len(dst)]))
    return _group(rank)


def _levels(dst: npt.NDArray[np.int64], src: npt.NDArray[np.int64]) -> list[npt.NDArray[np.intp]]:
    """Group micro-ops into levels, in which none uses another's result. A level reads before it writes, so it
    may overwrite an accumulator that an earlier micro-op reads."""
    written: dict[int, int] = {}
    read: dict[int, int] = {}
    levels = np.empty(len(dst), dtype=np.int64)
    for position, (d, s) in enumerate(zip(dst.tolist(), src.tolist(), strict=True)):
        level = max(written.get(d, -1), written.get(s, -1), read.get(d, -1)) + 1
        levels[position] = level
        written[d] = level
        read[s] = max(read.get(s, -1), level - 1)
    return _group(levels)


def _group(levels: npt.NDArray[np.int64]) -> list[npt.NDArray[np.intp]]:
    order = np.argsort(levels, kind="stable")
    cuts = np.flatnonzero(np.diff(levels[order])) + 1
    return np.split(order, cuts)
