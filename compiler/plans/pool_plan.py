"""Plans of max pooling, and a table of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from msgspec import Struct

from accel.compiler.plans.plan_arrays import BoolArray, IntArray

PoolThreadAxis = Literal["channels", "rows"]


class PoolPlan(Struct, frozen=True, kw_only=True):
    """How max pooling is tiled.

    Attributes:
        rows, columns: size of a tile of the output, which belongs to one block of the batch.
        thread_axis: the direction of the neighbouring tiles that threads compute.
        identity_products: whether products with an identity matrix copy elements, see ``pool_schedule``.
    """

    channels: int
    rows: int
    columns: int
    threads: int
    thread_axis: PoolThreadAxis
    identity_products: bool = False


class PoolTable(NamedTuple):
    """One array per attribute. All plans use products, or none."""

    channels: IntArray
    rows: IntArray
    columns: IntArray
    threads: IntArray
    along_rows: BoolArray
    identity_products: BoolArray

    @classmethod
    def from_plans(cls, plans: Sequence[PoolPlan]) -> PoolTable:
        rows = [
            (
                *(plan.channels, plan.rows, plan.columns, plan.threads),
                plan.thread_axis == "rows",
                plan.identity_products,
            )
            for plan in plans
        ]
        columns = np.array(rows, dtype=np.int64).reshape(-1, len(cls._fields)).T
        channels, tile_rows, tile_columns, threads, along_rows, products = columns
        return cls(channels, tile_rows, tile_columns, threads, along_rows > 0, products > 0)

    def take(self, chosen: IntArray | BoolArray) -> PoolTable:
        return PoolTable(*(array[chosen] for array in self))  # type: ignore[arg-type]

    def to_plans(self) -> list[PoolPlan]:
        return [
            PoolPlan(
                channels=channels,
                rows=rows,
                columns=columns,
                threads=threads,
                thread_axis="rows" if along_rows else "channels",
                identity_products=products,
            )
            for channels, rows, columns, threads, along_rows, products in zip(
                *(array.tolist() for array in self), strict=True
            )
        ]
