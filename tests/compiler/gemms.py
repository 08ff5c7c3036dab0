"""A matrix product with its textbook schedule: tiled to the block, cached, tensorized."""

from collections.abc import Iterator
from itertools import pairwise
from random import Random
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from accel import te
from accel.compiler.target.machine import Machine
from accel.core.config import Config
from accel.te import Nest, Schedule, Tensor

TRANSPOSITIONS = [(False, False), (False, True), (True, False), (True, True)]
SIZES = [(1, 1, 1), (7, 13, 5), (16, 16, 16), (17, 9, 33)]


class Gemm(NamedTuple):
    """The tensors of ``C = A @ B``; either operand may be transposed."""

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
    """Rows, columns and depth of one GEMM block."""
    return config.batch, config.block_out, config.block_in


def tile(s: Schedule, g: Gemm, machine: Machine) -> None:
    """Tile the loops to the machine's block."""
    y, x = s[g.C].op.axis
    s[g.C].tile(y, x, g.k, *block(machine.config))


def cache(s: Schedule, g: Gemm, machine: Machine) -> Tensor:
    """Cache operands and sums in the scratchpads, and return the sums."""
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
    """The nests between the schedule's steps."""
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
    rng = np.random.default_rng(seed)
    return {t.name: rng.integers(-128, 128, t.shape, dtype=np.int8) for t in (g.A, g.B)}


def product(
    g: Gemm, inputs: dict[str, npt.NDArray[np.int8]], transpose_a: bool, transpose_b: bool
) -> npt.NDArray[np.int8]:
    """The low 8 bits of the sums."""
    a, b = (inputs[name].astype(np.int64) for name in "AB")
    return ((a.T if transpose_a else a) @ (b.T if transpose_b else b)).astype(np.int8)


# --- two products, one after the other -------------------------------------------------------------


def two_stages(
    machine: Machine,
    M: int,
    K: int,
    N: int,
    L: int,
    *,
    early: bool = False,
    tiles: tuple[int, int] = (1, 1),
    more_rows: int = 0,
) -> Schedule:
    """``D = (A @ B) @ E``, with the first product stored in DRAM.

    Args:
        machine: a machine whose elements of inp and acc have the same shape.
        M, K, N, L: A is (M, K), B is (K, N), E is (N, L).
        early: load the second product's operands before its sums are set to zero. Then the compute unit has
            no instruction between the last STORE of the first product and the first LOAD of the second.
        tiles: rows and columns of blocks in a tile of the first product.
        more_rows: additional rows of E, which no stage reads.
    """
    A, B = te.placeholder((M, K), name="A"), te.placeholder((K, N), name="B")
    E = te.placeholder((N + more_rows, L), name="E")
    k, n = te.reduce_axis((0, K), name="k"), te.reduce_axis((0, N), name="n")
    T = te.compute((M, N), lambda y, x: te.sum(A[y, k] * B[k, x], axis=k), name="T", dtype="int8")
    D = te.compute((M, L), lambda y, x: te.sum(T[y, n] * E[n, x], axis=n), name="D", dtype="int8")
    s = te.create_schedule(D)
    rows, columns, depth = block(machine.config)
    for product, left, right, (high, wide) in ((T, A, B, tiles), (D, T, E, (1, 1))):
        sums = s[s.cache_write(product, machine.acc_buffer)]
        s[product].tile(*s[product].axis, rows * high, columns * wide)
        sums.compute_at(s[product], "xo")
        (reduce,) = sums.reduce_axis
        sums.tile(*sums.axis, reduce, rows, columns, depth)
        inp, wgt = s.cache_read(left, machine.inp_buffer), s.cache_read(right, machine.wgt_buffer)
        if early and product is D:
            s[inp].compute_at(s[D], "yo")
            s[wgt].compute_at(s[D], "xo")
        sums.tensorize("yi", machine.gemm)
    return s


# --- random schedules ----------------------------------------------------------------------------


def random_schedule(rng: Random, g: Gemm, machine: Machine) -> Schedule:
    """A random schedule: tiles of tiles, loops in any order, copies attached anywhere outside.

    Tiles are whole blocks, except the last ones. Building the schedule may fail: scratchpads are small, and
    the readers of a copy may not share the loop that it is attached to.
    """
    s = te.create_schedule(g.C)
    C, sums = s[g.C], s[s.cache_write(g.C, machine.acc_buffer)]
    rows, columns, depth = block(machine.config)
    if rng.random() < 0.7:
        C.tile(*C.axis, rows * rng.randint(1, 4), columns * rng.randint(1, 3))
        if rng.random() < 0.2:
            C.reorder("xo", "yo")
        sums.compute_at(C, rng.choice(C.leaves[:2]))
    inner: list[te.IterVar] = []
    outer: list[te.IterVar] = []
    for axis, factor in zip((*sums.axis, g.k), (rows, columns, depth), strict=True):
        tiles, within = sums.split(axis, factor)
        inner.append(within)
        outer += sums.split(tiles, rng.randint(1, 4)) if rng.random() < 0.4 else [tiles]
    rng.shuffle(outer)
    if rng.random() < 0.3:
        rng.shuffle(inner)
    sums.reorder(*outer, *inner)
    alike = [(a, b) for a, b in pairwise(outer) if a.kind == b.kind]
    if alike and rng.random() < 0.3:
        sums.fuse(*alike[0])
    for tensor, scope in ((g.A, machine.inp_buffer), (g.B, machine.wgt_buffer)):
        copy = s[s.cache_read(tensor, scope)]
        if rng.random() < 0.7:
            copy.compute_at(sums, rng.choice(sums.leaves[:-3]))
    if rng.random() < 0.2:
        loop = rng.choice(sums.leaves[:-3])
        if all(stage.attach != (sums, loop) for stage in s.stages):
            sums.unroll(loop)
    sums.tensorize(inner[0], machine.gemm)
    return s
