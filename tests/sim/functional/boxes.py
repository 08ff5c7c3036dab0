"""Instructions whose micro-ops enumerate a box of axes, for the vectorised paths."""

import math
from itertools import product
from random import Random
from typing import Any

import numpy as np

from accel.base.records import replace
from accel.core.config import Config
from accel.core.isa import Loops, Products, UopArray, encode_uops
from accel.sim.functional.micro_op_patterns import Axis
from accel.sim.functional.scratchpads import Scratchpads

MACHINE = Config(
    batch=2, block_in=4, block_out=2, uop_bytes=512, inp_bytes=512, wgt_bytes=512, acc_bytes=1024
)
"""64 elements in each scratchpad, 128 micro-ops."""
SECOND = replace(MACHINE, post=1)
"""The same machine with ``post=1``."""


def rows_of(axes: list[Axis], lowest: tuple[int, int, int] = (0, 0, 0)) -> UopArray:
    """Return the rows (dst, src, wgt) of a box in order, outermost axis first; ``lowest`` are the least
    indices."""
    steps = np.array(list(product(*[range(axis.extent) for axis in axes])), dtype=np.int64)
    strides = np.array([axis.strides for axis in axes], dtype=np.int64).reshape(-1, 3)
    rows = steps.reshape(math.prod(axis.extent for axis in axes), len(axes)) @ strides
    return np.asarray(rows - rows.min(axis=0) + np.array(lowest), dtype=np.int64)


def box_instruction(cls: type[Loops], axes: list[Axis], rows: UopArray, **fields: Any) -> Loops:
    """Return an instruction that runs ``rows`` within the two loops ``axes``, whose strides are not
    negative."""
    factors: dict[str, Any] = {}
    for operand, name in enumerate(("dst", "src", "wgt") if issubclass(cls, Products) else ("dst", "src")):
        for axis, loop in zip(axes, ("out", "in"), strict=True):
            factors[f"{name}_factor_{loop}"] = axis.strides[operand]
    return cls(uop_end=len(rows), iter_out=axes[0].extent, iter_in=axes[1].extent, **factors, **fields)


def any_box(rng: Random, *, wgt: int) -> tuple[list[Axis], UopArray]:
    """Return two loops and the micro-ops of up to three axes, whose points may coincide or have negative
    strides.

    ``wgt`` is the largest stride of the third operand.
    """
    loops = [
        Axis(rng.randint(1, 4), (rng.choice((0, 1, 4, 9)), rng.randint(0, 4), rng.randint(0, wgt)))
        for _ in range(2)
    ]
    inner = [
        Axis(rng.randint(1, 4), (rng.randint(-3, 3), rng.randint(-3, 3), rng.randint(-wgt, wgt)))
        for _ in range(rng.randint(0, 3))
    ]
    return loops, rows_of(inner, (rng.randint(0, 8), rng.randint(0, 8), 0))


def random_pads(rows: UopArray, seed: int = 0, machine: Config = MACHINE) -> Scratchpads:
    """Return random contents, with micro-ops ``rows`` at 0, and half of the accumulators small enough to
    shift by."""
    pads = Scratchpads.random(machine, seed)
    pads.acc[::2] %= 67
    pads.acc[::2] -= 33
    pads.uop[: len(rows)] = encode_uops(rows, machine)
    return pads
