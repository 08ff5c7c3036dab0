"""ALU: ``acc[dst] = op(acc[dst], imm or acc[src])``, micro-ops strictly in order.

Vectorised where the order cannot show: no accumulator that is read has been written before, or those
written again are written by an operation whose order does not matter. Otherwise micro-ops are grouped
into levels, each of which depends on earlier levels only.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from accel.access import LoopShape
from accel.isa import AluOp, UopArray
from accel.sim.functional.patterns import Axis, Box, index_chunks, is_injective, strided

Acc = npt.NDArray[np.int32]
Operation = Callable[[Acc, Acc | np.int32], Acc]

_ANY_ORDER: dict[AluOp, np.ufunc] = {
    AluOp.MIN: np.minimum,
    AluOp.MAX: np.maximum,
    AluOp.ADD: np.add,
    AluOp.MUL: np.multiply,
}
"""Operations for which repeated application to one accumulator may be done in any order."""


def shift_right(x: Acc, amount: Acc | np.int32) -> Acc:
    """Arithmetic shift right; a negative amount shifts left. 31 or more to the right leaves the sign,
    32 or more to the left leaves zero."""
    right = np.minimum(np.maximum(amount, 0), 31)
    wide = np.asarray(amount, dtype=np.int64)
    left = np.minimum(np.maximum(-wide, 0), 32)
    shifted = (x.astype(np.int64) << left).astype(np.int32)
    return np.where(wide < 0, shifted, x >> right).astype(np.int32)


OPERATIONS: dict[int, Any] = {op.value: function for op, function in _ANY_ORDER.items()}
OPERATIONS[AluOp.SHR] = shift_right
"""int32 operands to an int32 result; ADD and MUL wrap."""


def alu_immediate(
    acc: Acc, op: int, imm: int, uops: UopArray, shape: LoopShape, box: Box | None, count: int
) -> None:
    """Run the first ``count`` micro-ops with an immediate operand."""
    if box is not None:
        moving = [(a.extent, a.strides[0]) for a in box.axes if a.strides[0]]
        if is_injective(moving):
            target = strided(acc, box.base[0], moving)
            times = _extent([a for a in box.axes if not a.strides[0]])
            target[...] = _repeated(op, target, imm, times)
            return
    operation = OPERATIONS[op]
    operand = np.int32(imm)
    for indices in index_chunks(uops, shape, count):
        dst = indices[:, 0]
        for level in _occurrences(dst):
            acc[dst[level]] = operation(acc[dst[level]], operand)


def _repeated(op: int, values: Acc, imm: int, times: int) -> Acc:
    """``values`` after ``times`` applications of the operation with the same immediate."""
    if op == AluOp.ADD:
        return values + _int32(imm * times)
    if op == AluOp.MUL:
        return values * _int32(pow(imm, times, 1 << 32))
    if op == AluOp.SHR and imm >= 0:
        return values >> np.int32(min(31, imm * times))
    if op == AluOp.SHR:
        return shift_right(values, np.int32(max(-32, imm * times)))
    return np.asarray(OPERATIONS[op](values, np.int32(imm)), dtype=np.int32)


def _int32(value: int) -> np.int32:
    return np.int32((value + (1 << 31)) % (1 << 32) - (1 << 31))


def alu_tensor(acc: Acc, op: int, uops: UopArray, shape: LoopShape, box: Box | None, count: int) -> None:
    """Run the first ``count`` micro-ops with an accumulator as second operand."""
    operation = OPERATIONS[op]
    if box is not None and _tensor_box(acc, op, box):
        return
    for indices in index_chunks(uops, shape, count):
        dst, src = indices[:, 0], indices[:, 1]
        for level in _levels(dst, src):
            acc[dst[level]] = operation(acc[dst[level]], acc[src[level]])


def _tensor_box(acc: Acc, op: int, box: Box) -> bool:
    """Run an affine box as array operations; False if its order might show."""
    moving = [a for a in box.axes if a.strides[0]]
    still = [a for a in box.axes if not a.strides[0]]
    if not is_injective([(a.extent, a.strides[0]) for a in moving]):
        return False
    same = box.base[0] == box.base[1] and all(a.strides[0] == a.strides[1] for a in moving)
    if not (_disjoint(box) or (same and not still)):
        return False
    target = strided(acc, box.base[0], [(a.extent, a.strides[0]) for a in moving])
    operation = OPERATIONS[op]
    if still and op in _ANY_ORDER:
        every = strided(acc, box.base[1], [(a.extent, a.strides[1]) for a in [*moving, *still]])
        reduced = tuple(range(len(moving), len(box.axes)))
        target[...] = operation(target, _ANY_ORDER[AluOp(op)].reduce(every, axis=reduced, dtype=np.int32))
        return True
    axes = [(a.extent, a.strides[1]) for a in moving]
    for step in np.ndindex(*[a.extent for a in still]):
        offset = sum(n * a.strides[1] for n, a in zip(step, still, strict=True))
        source = strided(acc, box.base[1] + offset, axes)
        target[...] = operation(target, source)
    return True


def _disjoint(box: Box) -> bool:
    """Whether the ranges of dst and src do not overlap."""
    low, high = list(box.base[:2]), list(box.base[:2])
    for axis in box.axes:
        for operand in (0, 1):
            reach = axis.strides[operand] * (axis.extent - 1)
            low[operand] += min(0, reach)
            high[operand] += max(0, reach)
    return high[0] < low[1] or high[1] < low[0]


def _extent(axes: list[Axis]) -> int:
    return int(np.prod([a.extent for a in axes], dtype=np.int64))


def _occurrences(dst: npt.NDArray[np.int64]) -> list[npt.NDArray[np.intp]]:
    """Positions grouped by how often their dst has occurred before."""
    order = np.argsort(dst, kind="stable")
    ordered = dst[order]
    fresh = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    starts = np.flatnonzero(fresh)
    rank = np.empty(len(dst), dtype=np.int64)
    rank[order] = np.arange(len(dst)) - np.repeat(starts, np.diff([*starts, len(dst)]))
    return _group(rank)


def _levels(dst: npt.NDArray[np.int64], src: npt.NDArray[np.int64]) -> list[npt.NDArray[np.intp]]:
    """Positions grouped so that a group only reads and overwrites what earlier groups are done with."""
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
