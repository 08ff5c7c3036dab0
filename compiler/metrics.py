"""What a tensor expression costs at least: multiply-accumulates, and bytes that must be read and written."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from accel.compiler.expr import Binary, IterVar, Read, reads
from accel.compiler.linear import variables
from accel.compiler.reference import index_values
from accel.compiler.tensor import Compute, Placeholder, Tensor, producers, reduction
from accel.config import Config


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
    tensors = producers(outputs)
    for tensor in tensors:
        if isinstance(tensor.op, Placeholder):
            read_bytes += _elements_read(tensor, tensors) * np.dtype(tensor.dtype).itemsize
        else:
            total = reduction(tensor.op.body)
            if total is not None and isinstance(total.body, Binary) and total.body.op == "*":
                macs += prod(tensor.shape) * prod(axis.extent for axis in total.axes)
    write_bytes = sum(prod(t.shape) * np.dtype(t.dtype).itemsize for t in outputs)
    return Compulsory(macs=macs, read_bytes=read_bytes, write_bytes=write_bytes)


def _elements_read(tensor: Tensor, tensors: Sequence[Tensor]) -> int:
    seen = np.zeros(tensor.shape, dtype=bool)
    for user in tensors:
        if isinstance(user.op, Compute):
            for read in reads(user.op.body):
                if read.tensor is tensor:
                    _mark(seen, read)
    return int(seen.sum())


def _mark(seen: npt.NDArray[np.bool_], read: Read) -> None:
    """Mark the elements that an access reads; dimensions whose indices share no variable go one by one."""
    used = [set(variables(index)) for index in read.indices]
    if sum(len(u) for u in used) == len(set().union(*used)):
        seen[np.ix_(*(np.unique(index_values(index, variables(index))) for index in read.indices))] = True
        return
    every: list[IterVar] = list(dict.fromkeys(v for index in read.indices for v in variables(index)))
    seen[tuple(index_values(index, every) for index in read.indices)] = True
