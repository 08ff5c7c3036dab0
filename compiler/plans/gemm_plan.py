"""Plans of matrix products, and their rows in a table of plans."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from accel.compiler.plans.plan_table import OUTER_LOOPS, RESIDENT, THREAD_AXES

ThreadAxis = Literal["inner", "depth", "groups"]
OuterLoop = Literal["rows", "columns"]
_OTHER_AXES: tuple[ThreadAxis, ...] = ("depth", "groups")
Resident = Literal["nothing", "weights", "inputs", "both"]


class GemmPlan(Struct, frozen=True, kw_only=True):
    """How a matrix product is tiled and ordered.

    Attributes:
        rows, columns: blocks of a tile of the result.
        depth: blocks of a step of the sum.
        thread_axis: ``inner`` for neighbouring tiles of the inner loop, otherwise see ``THREAD_AXES``. Groups
            are pairs of matrices.
        residual_product, prefetch: as in ``ConvPlan``.
        resident: see ``RESIDENT``. ``inputs`` is the first operand.
    """

    rows: int
    columns: int
    depth: int
    threads: int
    thread_axis: ThreadAxis
    outer: OuterLoop
    residual_product: bool = False
    resident: Resident = "nothing"
    prefetch: bool = False

    def __str__(self) -> str:
        inner = "columns" if self.outer == "rows" else "rows"
        along = {"inner": inner, "depth": "depth", "groups": "pairs of matrices"}[self.thread_axis]
        threads = f", {self.threads} threads along {along}" if self.threads > 1 else ""
        resident = "" if self.resident == "nothing" else f", {self.resident} resident"
        prefetch = " and prefetched" * self.prefetch
        sizes = f"{self.rows} x {self.columns} x {self.depth} blocks"
        return f"tiles of {sizes}, {self.outer} outermost{threads}{resident}{prefetch}"

    @property
    def row(self) -> tuple[int, ...]:
        """Columns become channels in a table of plans."""
        rows_outer = self.outer == "rows"
        inner = "channels" if rows_outer or self.threads == 1 else "rows"
        return (
            *(self.columns, self.rows, 1, self.depth, 1, self.threads),
            THREAD_AXES.index(
                inner if self.threads == 1 or self.thread_axis == "inner" else self.thread_axis
            ),
            OUTER_LOOPS.index("pixels" if rows_outer else "channels"),
            1,
            RESIDENT.index(self.resident),
            int(self.prefetch),
        )

    @classmethod
    def from_row(cls, row: tuple[int, ...]) -> GemmPlan:
        columns, rows, _, depth, _, threads, axis, outer, _, resident, prefetch = row
        return cls(
            rows=rows,
            columns=columns,
            depth=depth,
            threads=threads,
            thread_axis=THREAD_AXES[axis] if THREAD_AXES[axis] in _OTHER_AXES else "inner",  # type: ignore[arg-type]
            outer="rows" if OUTER_LOOPS[outer] == "pixels" else "columns",
            resident=RESIDENT[resident],  # type: ignore[arg-type]
            prefetch=bool(prefetch),
        )
