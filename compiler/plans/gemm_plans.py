"""Plans for matrix products: how one is tiled and ordered, alone and many at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[Any]

ThreadAxis = Literal["inner", "depth"]
Outer = Literal["rows", "columns"]


@dataclass(frozen=True, kw_only=True)
class GemmShape:
    """A matrix product in blocks of the GEMM core.

    Attributes:
        rows, columns, depth: blocks of M, N and K.
        transpose_a, transpose_b: how the operands lie in DRAM.
        bias: whether accumulators take a bias per column.
        residual: whether another tensor is added to each tile.
        passes: operations on each accumulator besides GEMM: reset, bias and epilogue.
        resets: those of them in front of the sums, 0 or 1.
        stored: whether the store unit finishes the sums, with parameters that it loads.
    """

    rows: int
    columns: int
    depth: int
    transpose_a: bool
    transpose_b: bool
    bias: bool
    residual: bool
    passes: int
    resets: int = 1
    stored: bool = False


@dataclass(frozen=True, kw_only=True)
class GemmPlan:
    """How a matrix product is tiled and ordered.

    Attributes:
        rows, columns: blocks of a tile of the result.
        depth: blocks of a reduce step.
        threads: virtual threads.
        thread_axis: ``inner``: the tiles of the inner loop; ``depth``: the reduce steps of one tile.
        outer: the loop over tiles that is outermost.
    """

    rows: int
    columns: int
    depth: int
    threads: int
    thread_axis: ThreadAxis
    outer: Outer

    def __str__(self) -> str:
        along = {"rows": "columns", "columns": "rows"}[self.outer] if self.thread_axis == "inner" else "depth"
        threads = f", {self.threads} threads along {along}" if self.threads > 1 else ""
        return f"tiles of {self.rows} x {self.columns} x {self.depth} blocks, {self.outer} outermost{threads}"


class PlanTable(NamedTuple):
    """Many plans at once, one array per attribute."""

    rows: IntArray
    columns: IntArray
    depth: IntArray
    threads: IntArray
    along_depth: BoolArray
    rows_outer: BoolArray

    @classmethod
    def of(cls, plans: Sequence[GemmPlan]) -> PlanTable:
        """The table of some plans."""
        return cls(
            np.array([p.rows for p in plans]),
            np.array([p.columns for p in plans]),
            np.array([p.depth for p in plans]),
            np.array([p.threads for p in plans]),
            np.array([p.thread_axis == "depth" for p in plans]),
            np.array([p.outer == "rows" for p in plans]),
        )

    def take(self, chosen: IntArray) -> PlanTable:
        """Some of the plans."""
        rows, columns, depth, threads, along_depth, rows_outer = (array[chosen] for array in self)
        return PlanTable(rows, columns, depth, threads, along_depth, rows_outer)  # type: ignore[arg-type]

    def plans(self) -> list[GemmPlan]:
        """The plans one by one."""
        columns = [array.tolist() for array in self]
        return [
            GemmPlan(
                rows=rows,
                columns=width,
                depth=depth,
                threads=threads,
                thread_axis="depth" if along_depth else "inner",
                outer="rows" if rows_outer else "columns",
            )
            for rows, width, depth, threads, along_depth, rows_outer in zip(*columns, strict=True)
        ]
