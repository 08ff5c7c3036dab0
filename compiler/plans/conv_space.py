"""The plans of a convolution that the search tries."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from accel.base.errors import ScheduleError
from accel.compiler.plans.conv_model import ConvShape
from accel.compiler.plans.conv_plan import ConvPlan
from accel.compiler.plans.part_sizes import all_part_sizes, spread_part_sizes
from accel.compiler.plans.plan_space import (
    THREAD_COUNTS,
    PlanSpace,
    enumerate_plans,
    residencies_with,
    smallest_needs,
)
from accel.compiler.plans.plan_table import OUTER_LOOPS, RESIDENT, THREAD_AXES, PlanTable
from accel.compiler.plans.planner import Blocks
from accel.compiler.plans.tile_sizes import TileSizes
from accel.core.config import Config

_SIZES_TRIED = {"channels": 12, "rows": 14, "columns": 6, "depth": 9, "batches": 3}
"""Numbers of tile sizes to start with."""


def conv_space(shape: ConvShape, config: Config, fixed: Blocks | None = None) -> PlanSpace[ConvPlan]:
    """Return the plans of a convolution with these fixed sizes."""
    tile_sizes = {
        "channels": (1,) if _has_single_channel_tiles(shape) else all_part_sizes(shape.channels),
        "rows": shape.tile_extents(0, shape.rows),
        "columns": shape.tile_extents(1, shape.columns),
        "depth": all_part_sizes(shape.depth),
        "batches": all_part_sizes(shape.batches),
    }
    return PlanSpace(
        shape=shape,
        config=config,
        to_plans=lambda table: conv_plans(shape, config, table),
        has_schedule=lambda sizes: np.ones(len(sizes.tiles), dtype=bool),
        tile_sizes={name: sizes for name, sizes in tile_sizes.items() if name not in (fixed or {})},
        residencies=residencies_with(fixed),
    )


def conv_plans(shape: ConvShape, config: Config, table: PlanTable) -> list[ConvPlan]:
    """Return the plans of a table."""
    bias_resident = TileSizes(shape, config, table).bias_resident
    return [
        ConvPlan(
            channels=channels,
            rows=rows,
            columns=columns,
            depth=depth,
            kernel_rows=kernel_rows,
            threads=threads,
            thread_axis=THREAD_AXES[axis],  # type: ignore[arg-type]
            outer=OUTER_LOOPS[outer],  # type: ignore[arg-type]
            bias_resident=has_bias,
            batches=batches,
            residual_product=shape.residual_product,
            resident=RESIDENT[resident],  # type: ignore[arg-type]
            prefetch=bool(prefetch),
        )
        for (*sizes, axis, outer, batches, resident, prefetch), has_bias in zip(
            table.to_rows(), bias_resident.tolist(), strict=True
        )
        for channels, rows, columns, depth, kernel_rows, threads in [sizes]
    ]


def fitting_plans(
    shape: ConvShape,
    config: Config,
    threads: int | None,
    fixed: Blocks | None = None,
    thread_counts: Sequence[int] = THREAD_COUNTS,
    max_estimate: float = math.inf,
) -> PlanTable:
    """See :func:`enumerate_plans`."""
    space = conv_space(shape, config, fixed)
    return enumerate_plans(space, _tile_sizes(shape, fixed or {}), threads, thread_counts, max_estimate)


def smallest_conv_needs(shape: ConvShape, config: Config) -> dict[str, int]:
    return smallest_needs(shape.residual_variants(), config, _tile_sizes(shape, {}))


def _has_single_channel_tiles(shape: ConvShape) -> bool:
    return shape.loads_padding and shape.is_diagonal


def _tile_sizes(shape: ConvShape, fixed: Blocks) -> Mapping[str, Sequence[int]]:
    kernel_rows = shape.kernel[0]
    whole = {
        "channels": shape.channels,
        "rows": shape.rows,
        "columns": shape.columns,
        "depth": shape.depth,
        "kernel_rows": kernel_rows,
        "batches": shape.batches,
    }
    tried = _SIZES_TRIED
    sizes: dict[str, Sequence[int]] = {
        name: spread_part_sizes(whole[name], tried[name]) for name in ("channels", "depth", "batches")
    }
    sizes["rows"], sizes["columns"] = (
        shape.tile_extents(axis, tried[name]) for axis, name in enumerate(("rows", "columns"))
    )
    sizes["kernel_rows"] = [kernel_rows] if shape.is_transposed else sorted({1, kernel_rows})
    if _has_single_channel_tiles(shape):
        sizes["channels"] = [1]
    multiples = {"rows": shape.upsampling[0], "columns": shape.upsampling[1]}
    multiples["kernel_rows"] = kernel_rows if shape.is_transposed else 1
    for name in filter(fixed.__contains__, whole):
        size, multiple = min(fixed[name], whole[name]), multiples.get(name, 1)
        if size != whole[name] and size % multiple:
            raise ScheduleError(
                f"a tile has {size} {name.replace('_', ' ')}; of this transposed convolution it must have a "
                f"multiple of {multiple}, or all {whole[name]}"
            )
        sizes[name] = [size]
    return sizes
