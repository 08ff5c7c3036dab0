"""The minimum cost of a tensor expression."""

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from accel.base.fast_unique import distinct
from accel.compiler.expr.guarded_loops import hoist
from accel.compiler.expr.linear_expressions import variables
from accel.compiler.expr.numpy_reference import index_values, values_at
from accel.compiler.expr.scalar_expressions import (
    Binary,
    Cast,
    Condition,
    IterVar,
    Read,
    Sum,
    reads,
    substitute,
)
from accel.compiler.expr.tensor_expressions import Compute, Placeholder, Tensor, producers, reduction
from accel.core.config import Config

Array = npt.NDArray[Any]
Elements = npt.NDArray[np.bool_]


class Compulsory(Struct, frozen=True, kw_only=True):
    """The minimum work of any program for an expression.

    Attributes:
        macs: multiply-accumulates of all sums, without padding to blocks.
        padding_macs: those with the zeros around a tensor, which a program may omit.
        read_bytes: bytes of the needed input elements.
        write_bytes: bytes of the outputs.
    """

    macs: int
    padding_macs: int
    read_bytes: int
    write_bytes: int

    @property
    def real_macs(self) -> int:
        """Multiply-accumulates without those of padding."""
        return self.macs - self.padding_macs

    def ideal_cycles(self, config: Config) -> float:
        """Return the cycles of a fully busy GEMM core, without padding."""
        return self.real_macs / config.macs_per_cycle

    def roofline_cycles(self, config: Config) -> float:
        """Return the largest of the cycles of GEMM core, reads and writes.

        For example, 4,096 multiply-accumulates at 256 per cycle and 1,024 bytes at 8 per cycle take at least
        128.
        """
        return max(
            self.ideal_cycles(config),
            self.read_bytes / config.bus_bytes,
            self.write_bytes / config.bus_bytes,
        )


_BUSY_SHARE = 0.85
"""A unit that is busy for more than this share bounds a run."""


def bound_by(cycles: float, *, compute: float, load: float, store: float) -> str:
    """Return ``compute``, ``loads`` or ``stores`` for a unit that is almost always busy, or ``latency``."""
    unit, busy = max((("compute", compute), ("loads", load), ("stores", store)), key=lambda one: one[1])
    return unit if busy > _BUSY_SHARE * cycles else "latency"


def busiest_unit(cycles: float, busy: Mapping[str, float]) -> tuple[str, float]:
    """Return the busiest unit and its share of ``cycles``.

    For example, 100 cycles with ``busy={"load": 60, "compute": 71}`` give ``("compute", 0.71)``.
    """
    unit = max(busy, key=lambda one: busy[one])
    return unit, busy[unit] / cycles


def compulsory(outputs: Sequence[Tensor]) -> Compulsory:
    """Return the minimum work for ``outputs``."""
    macs = padding_macs = read_bytes = 0
    needed = _needed_elements(outputs)
    for tensor, elements in needed.items():
        if isinstance(tensor.op, Placeholder):
            read_bytes += int(elements.sum()) * np.dtype(tensor.dtype).itemsize
        else:
            total = reduction(tensor.op.body)
            if total is not None and isinstance(total.body, Binary) and total.body.op == "*":
                count = int(elements.sum()) * prod(axis.extent for axis in total.axes)
                macs += count
                if elements.all():
                    padding_macs += count - _nonzero_products(tensor.op, total)
    write_bytes = sum(prod(t.shape) * np.dtype(t.dtype).itemsize for t in outputs)
    return Compulsory(macs=macs, padding_macs=padding_macs, read_bytes=read_bytes, write_bytes=write_bytes)


def _nonzero_products(op: Compute, total: Sum) -> int:
    factors, found = hoist(total.body)
    conditions = list(found)
    for read in reads(factors):
        assert isinstance(read.tensor, Tensor)
        if isinstance(read.tensor.op, Compute):
            of = read.tensor.op
            at = dict(zip(of.axis, read.indices, strict=True))
            guards = hoist(of.body.value if isinstance(of.body, Cast) else of.body)[1]
            conditions += [(substitute(a, at), substitute(b, at)) for a, b in guards]
    count = 1
    left = [*op.axis, *total.axes]
    while left:
        group, joined = {left[0]}, list[Condition]()
        while more := [c for c in conditions if c not in joined and _variables(c) & group]:
            joined += more
            group.update(*map(_variables, more))
        count *= _combinations([v for v in left if v in group], joined)
        left = [v for v in left if v not in group]
    return count


def _variables(condition: Condition) -> set[IterVar]:
    return {v for side in condition for v in variables(side)}


def _combinations(axes: Sequence[IterVar], conditions: Sequence[Condition]) -> int:
    if not conditions:
        return prod(v.extent for v in axes)
    grid = np.meshgrid(*(np.arange(v.extent) for v in axes), indexing="ij", sparse=True)
    at: dict[IterVar, Array] = dict(zip(axes, grid, strict=True))
    met = [values_at(a, at) < values_at(b, at) for a, b in conditions]
    return int(np.broadcast_to(np.logical_and.reduce(met), [v.extent for v in axes]).sum())


def _needed_elements(outputs: Sequence[Tensor]) -> dict[Tensor, Elements]:
    tensors = producers(outputs)
    needed = {tensor: np.full(tensor.shape, tensor in outputs) for tensor in tensors}
    for user in reversed(tensors):
        if isinstance(user.op, Compute):
            for read in reads(user.op.body):
                assert isinstance(read.tensor, Tensor)
                if not needed[read.tensor].all():
                    _mark_read(needed[read.tensor], user.op, needed[user], read)
    return needed


def _mark_read(marked: Elements, user: Compute, elements: Elements, read: Read) -> None:
    """Indices outside the tensor are padding."""
    used = [set(variables(index)) for index in read.indices]
    if elements.all() and sum(len(u) for u in used) == len(set().union(*used)):
        # dimensions without shared variables are independent
        values = [distinct(index_values(i, variables(i)).ravel()) for i in read.indices]
        marked[np.ix_(*(v[(v >= 0) & (v < n)] for v, n in zip(values, marked.shape, strict=True)))] = True
        return
    places: dict[IterVar, Array] = dict(zip(user.axis, np.nonzero(elements), strict=True))
    summed = [v for v in user.reduce_axis if any(v in u for u in used)]
    for numbers in product(*(range(v.extent) for v in summed)):
        at = places | {v: np.array(n) for v, n in zip(summed, numbers, strict=True)}
        index = [values_at(i, at) for i in read.indices]
        inside = np.logical_and.reduce([(i >= 0) & (i < n) for i, n in zip(index, marked.shape, strict=True)])
        marked[tuple(np.broadcast_to(i, inside.shape)[inside] for i in index)] = True
