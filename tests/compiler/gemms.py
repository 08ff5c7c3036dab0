"""GEMM as the literature schedules it: tiled to the block, cached, tensorized."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from accel import te
from accel.config import Config
from accel.machines import Machine
from accel.te import Nest, Schedule, Tensor

TRANSPOSITIONS = [(False, False), (False, True), (True, False), (True, True)]


class Gemm(NamedTuple):
    """The tensors of ``C = A @ B``, either operand stored transposed."""

    A: Tensor
    B: Tensor
    C: Tensor
    k: te.IterVar


def gemm(M: int, N: int, K: int, transpose_a: bool = False, transpose_b: bool = False) -> Gemm:
    A = te.placeholder((K, M) if transpose_a else (M, K), name="A")
    B = te.placeholder((N, K) if transpose_b else (K, N), name="B")
    k = te.reduce_axis((0, K), name="k")
    C = te.compute(
        (M, N),
        lambda y, x: te.sum(
            (A[k, y] if transpose_a else A[y, k]) * (B[x, k] if transpose_b else B[k, x]), axis=k
        ),
        name="C",
        dtype="int8",
    )
    return Gemm(A, B, C, k)


def block(config: Config) -> tuple[int, int, int]:
    """Rows, columns and depth of one GEMM."""
    return config.batch, config.block_out, config.block_in


def tile(s: Schedule, g: Gemm, machine: Machine) -> None:
    """Loop tiling to the machine's block."""
    y, x = s[g.C].op.axis
    s[g.C].tile(y, x, g.k, *block(machine.config))


def cache(s: Schedule, g: Gemm, machine: Machine) -> Tensor:
    """Operands and sums in the scratchpads; returns the sums."""
    sums = s.cache_write(g.C, machine.acc_buffer)
    s.cache_read(g.A, machine.inp_buffer)
    s.cache_read(g.B, machine.wgt_buffer)
    return sums


def tensorized(g: Gemm, machine: Machine) -> Schedule:
    """The published schedule."""
    s = te.create_schedule(g.C)
    tile(s, g, machine)
    s[cache(s, g, machine)].tensorize("yi", machine.gemm)
    return s


def stages(g: Gemm, machine: Machine) -> Iterator[tuple[str, Nest]]:
    """The nests on the way."""
    s = te.create_schedule(g.C)
    yield "naive", te.lower(s)
    tile(s, g, machine)
    yield "tiled", te.lower(s)
    sums = cache(s, g, machine)
    yield "cached", te.lower(s)
    s[sums].tensorize("yi", machine.gemm)
    yield "placed", te.lower(s)
    yield "tensorized", te.tensorize(s)


def operands(g: Gemm, seed: int = 0) -> dict[str, npt.NDArray[np.int8]]:
    """Any int8 values."""
    rng = np.random.default_rng(seed)
    return {t.name: rng.integers(-128, 128, t.shape, dtype=np.int8) for t in (g.A, g.B)}


def product(
    g: Gemm, inputs: dict[str, npt.NDArray[np.int8]], transpose_a: bool, transpose_b: bool
) -> npt.NDArray[np.int8]:
    """The low 8 bits of the sums."""
    a, b = (inputs[name].astype(np.int64) for name in "AB")
    return ((a.T if transpose_a else a) @ (b.T if transpose_b else b)).astype(np.int8)
