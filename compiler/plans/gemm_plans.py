"""Plans for matrix products: how one is tiled and ordered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from accel.compiler.plans.tiles import KEPT, OUTERS, THREAD_AXES

ThreadAxis = Literal["inner", "depth"]
Outer = Literal["rows", "columns"]
Kept = Literal["nothing", "weights", "inputs", "both"]


@dataclass(frozen=True, kw_only=True)
class GemmPlan:
    """How a matrix product is tiled and ordered.

    Attributes:
        rows, columns: blocks of a tile of the result.
        depth: blocks of a reduce step.
        threads: virtual threads.
        thread_axis: ``inner``: the tiles of the inner loop; ``depth``: the reduce steps of one tile.
        outer: the loop over tiles that is outermost.
        residual_product: whether the GEMM core adds a residual, which the load unit brings; otherwise the ALU
            does, and the compute unit loads it.
        kept: which operand scratchpads keep of all steps, the first one being ``inputs``: that of the outer
            loop's tiles as long as those last, the other one throughout.
        ahead: whether there is room for that of the outer loop's next tiles.
    """

    rows: int
    columns: int
    depth: int
    threads: int
    thread_axis: ThreadAxis
    outer: Outer
    residual_product: bool = False
    kept: Kept = "nothing"
    ahead: bool = False

    def __str__(self) -> str:
        along = {"rows": "columns", "columns": "rows"}[self.outer] if self.thread_axis == "inner" else "depth"
        threads = f", {self.threads} threads along {along}" if self.threads > 1 else ""
        kept = "" if self.kept == "nothing" else f", {self.kept} kept{' ahead' * self.ahead}"
        sizes = f"{self.rows} x {self.columns} x {self.depth} blocks"
        return f"tiles of {sizes}, {self.outer} outermost{threads}{kept}"

    @property
    def row(self) -> tuple[int, ...]:
        """As a row of a :class:`~accel.compiler.plans.tiles.Tiling`; the product's columns are channels."""
        rows_outer = self.outer == "rows"
        axis = "depth" if self.thread_axis == "depth" else "channels" if rows_outer else "rows"
        return (
            *(self.columns, self.rows, 1, self.depth, 1, self.threads),
            THREAD_AXES.index("channels" if self.threads == 1 else axis),
            OUTERS.index("pixels" if rows_outer else "channels"),
            1,
            KEPT.index(self.kept),
            int(self.ahead),
        )

    @classmethod
    def of(cls, row: tuple[int, ...]) -> GemmPlan:
        """The plan that a row of a table means."""
        columns, rows, _, depth, _, threads, axis, outer, _, kept, ahead = row
        return cls(
            rows=rows,
            columns=columns,
            depth=depth,
            threads=threads,
            thread_axis="depth" if THREAD_AXES[axis] == "depth" else "inner",
            outer="rows" if OUTERS[outer] == "pixels" else "columns",
            kept=KEPT[kept],  # type: ignore[arg-type]
            ahead=bool(ahead),
        )
