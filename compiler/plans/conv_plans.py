"""Plans of convolutions by the table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from accel.base.errors import ScheduleError
from accel.compiler.plans.conv_model import ConvShape
from accel.compiler.plans.conv_schedule import ConvPlan
from accel.compiler.plans.planner import Blocks
from accel.compiler.plans.search import Space, every_plan, kept_with, least_needs
from accel.compiler.plans.sums import every_part, part_sizes
from accel.compiler.plans.tiles import KEPT, OUTERS, THREAD_AXES, Sizes, Tiling
from accel.core.config import Config


def conv_table(plans: Sequence[ConvPlan]) -> Tiling:
    """The table of some plans."""
    return Tiling.of(
        [
            (
                *(p.channels, p.rows, p.columns, p.depth, p.kernel_rows, p.threads),
                THREAD_AXES.index(p.thread_axis),
                OUTERS.index(p.outer),
                p.batches,
                KEPT.index(p.kept),
                int(p.ahead),
            )
            for p in plans
        ]
    )


def conv_plans(shape: ConvShape, config: Config, table: Tiling) -> list[ConvPlan]:
    """The plans of a table one by one."""
    stays = Sizes(shape, config, table).bias_stays
    return [
        ConvPlan(
            channels=channels,
            rows=rows,
            columns=columns,
            depth=depth,
            kernel_rows=kernel_rows,
            threads=threads,
            thread_axis=THREAD_AXES[axis],  # type: ignore[arg-type]
            outer=OUTERS[outer],  # type: ignore[arg-type]
            bias_stays=stay,
            batches=batches,
            residual_product=shape.residual_product,
            kept=KEPT[kept],  # type: ignore[arg-type]
            ahead=bool(ahead),
        )
        for (*sizes, axis, outer, batches, kept, ahead), stay in zip(
            table.rows_of(), stays.tolist(), strict=True
        )
        for channels, rows, columns, depth, kernel_rows, threads in [sizes]
    ]


def conv_space(shape: ConvShape, config: Config, fixed: Blocks | None = None) -> Space[ConvPlan]:
    """The plans of a convolution, without changes of sizes that are given."""
    around = {
        "channels": (1,) if _one_block(shape) else every_part(shape.channels),
        "rows": shape.sizes(0, shape.rows),
        "columns": shape.sizes(1, shape.columns),
        "depth": every_part(shape.depth),
        "batches": every_part(shape.batches),
    }
    return Space(
        shape=shape,
        config=config,
        plan=lambda table: conv_plans(shape, config, table),
        allowed=lambda sizes: np.ones(len(sizes.tiles), dtype=bool),
        around={name: sizes for name, sizes in around.items() if name not in (fixed or {})},
        kept=kept_with(fixed),
    )


def _one_block(shape: ConvShape) -> bool:
    """Whether only tiles of one block of channels are tried: blocks have LOADs of their own, and the zeros of
    each wait for the data of those behind it."""
    return shape.padded and shape.diagonal


def fitting(
    shape: ConvShape, config: Config, threads: int | Sequence[int], fixed: Blocks | None = None
) -> Tiling:
    """All plans that fit and are useful.

    Args:
        shape: of the convolution.
        config: the machine.
        threads: how many virtual threads there are to be, or numbers that may be tried.
        fixed: sizes by the plan's attributes; those that exceed the whole are cut to it.
    """
    one = isinstance(threads, int)
    return every_plan(
        conv_space(shape, config, fixed),
        dict(_sizes(shape, fixed or {})),
        (threads,) if isinstance(threads, int) else threads,
        threads if one else None,  # type: ignore[arg-type]
    )


def _sizes(shape: ConvShape, fixed: Blocks) -> Iterator[tuple[str, Sequence[int]]]:
    """What is tried for each size of a plan.

    Raises:
        ScheduleError: a size of a transposed convolution that splits its phases.
    """
    kernel = shape.kernel[0]
    kernel_rows = [kernel] if shape.is_transposed else sorted({1, kernel})
    tried: dict[str, tuple[int, Sequence[int], int]] = {
        "channels": (shape.channels, [1] if _one_block(shape) else part_sizes(shape.channels, 12), 1),
        "rows": (shape.rows, shape.sizes(0, 14), shape.up[0]),
        "columns": (shape.columns, shape.sizes(1, 6), shape.up[1]),
        "depth": (shape.depth, part_sizes(shape.depth, 9), 1),
        "kernel_rows": (kernel, kernel_rows, kernel if shape.is_transposed else 1),
        "batches": (shape.batches, part_sizes(shape.batches, 3), 1),
    }
    for name, (whole, sizes, step) in tried.items():
        size = min(fixed.get(name, whole), whole)
        if size != whole and size % step:
            raise ScheduleError(
                f"a tile has {size} {name.replace('_', ' ')}; of this transposed convolution it must have a "
                f"multiple of {step}, or all {whole}"
            )
        yield name, [size] if name in fixed else sizes


def least(shape: ConvShape, config: Config) -> dict[str, int]:
    """Elements of each scratchpad that the smallest tiles of a convolution take."""
    return least_needs(shape.choices(), config, dict(_sizes(shape, {})))
