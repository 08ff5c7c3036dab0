"""What a tensor expression costs at least: multiply-accumulates, and bytes that must be read and written."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from accel.compiler.expr import Binary, IterVar, Read, reads
from accel.compiler.linear import variables
from accel.compiler.reference import index_values, values_at
from accel.compiler.tensor import Compute, Placeholder, Tensor, producers, reduction
from accel.config import Config

Array = npt.NDArray[Any]
Elements = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Compulsory:
    """The least that any program for an expression must do.

    Attributes:
        macs: multiply-accumulates, without any padding.
        read_bytes: of the elements of its inputs that are read at least once, in their dtypes.
        write_bytes: of its outputs.
    """

    macs: int
    read_bytes: int
    write_bytes: int

    def ideal_cycles(self, config: Config) -> float:
        """Cycles in which a fully busy GEMM core does the multiply-accumulates."""
        return self.macs / config.macs_per_cycle

    def roofline_cycles(self, config: Config) -> float:
        """The larger of what the GEMM core and each direction of the bus need."""
        return max(
            self.ideal_cycles(config),
            self.read_bytes / config.bus_bytes,
            self.write_bytes / config.bus_bytes,
        )


def compulsory(outputs: Sequence[Tensor]) -> Compulsory:
    """Count what ``outputs`` take at least."""
    macs = read_bytes = 0
    needed = _needed(outputs)
    for tensor, elements in needed.items():
        if isinstance(tensor.op, Placeholder):
            read_bytes += int(elements.sum()) * np.dtype(tensor.dtype).itemsize
        else:
            total = reduction(tensor.op.body)
            if total is not None and isinstance(total.body, Binary) and total.body.op == "*":
                macs += int(elements.sum()) * prod(axis.extent for axis in total.axes)
    write_bytes = sum(prod(t.shape) * np.dtype(t.dtype).itemsize for t in outputs)
    return Compulsory(macs=macs, read_bytes=read_bytes, write_bytes=write_bytes)


def _needed(outputs: Sequence[Tensor]) -> dict[Tensor, Elements]:
    """Of every tensor that ``outputs`` depend on, the elements that they do depend on."""
    tensors = producers(outputs)
    needed = {tensor: np.full(tensor.shape, tensor in outputs) for tensor in tensors}
    for user in reversed(tensors):
        if isinstance(user.op, Compute):
            for read in reads(user.op.body):
                assert isinstance(read.tensor, Tensor)
                if not needed[read.tensor].all():
                    _mark(needed[read.tensor], user.op, needed[user], read)
    return needed


def _mark(marked: Elements, user: Compute, elements: Elements, read: Read) -> None:
    """Mark what ``elements`` of ``user`` read by an access; indices beyond the tensor are padding."""
    used = [set(variables(index)) for index in read.indices]
    if elements.all() and sum(len(u) for u in used) == len(set().union(*used)):
        # dimensions whose indices share no variable go one by one
        values = [np.unique(index_values(i, variables(i))) for i in read.indices]
        marked[np.ix_(*(v[(v >= 0) & (v < n)] for v, n in zip(values, marked.shape, strict=True)))] = True
        return
    places: dict[IterVar, Array] = dict(zip(user.axis, np.nonzero(elements), strict=True))
    summed = [v for v in user.reduce_axis if any(v in u for u in used)]
    for numbers in product(*(range(v.extent) for v in summed)):
        at = places | {v: np.array(n) for v, n in zip(summed, numbers, strict=True)}
        index = [values_at(i, at) for i in read.indices]
        inside = np.logical_and.reduce([(i >= 0) & (i < n) for i, n in zip(index, marked.shape, strict=True)])
        marked[tuple(np.broadcast_to(i, inside.shape)[inside] for i in index)] = True
