"""Plans of convolutions, and their rows in a table of plans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from accel.compiler.plans.plan_table import OUTER_LOOPS, RESIDENT, THREAD_AXES, PlanTable

ThreadAxis = Literal["channels", "rows", "depth", "groups"]
OuterLoop = Literal["channels", "pixels"]
Resident = Literal["nothing", "weights", "inputs", "both"]


class ConvPlan(Struct, frozen=True, kw_only=True):
    """How a convolution is tiled and ordered.

    The outermost loop runs over groups, which are merged to fill blocks. Groups of a single block count as
    channels instead.

    Attributes:
        channels: blocks of output channels in a tile.
        depth: blocks of input channels in a step of the sum.
        kernel_rows: rows of the kernel in a step.
        outer: see ``OUTER_LOOPS`` in ``plan_table``.
        bias_resident: whether the bias of all channels stays in accumulators, as do operands of operations.
        batches: blocks of the batch in a tile.
        residual_product: whether the load unit loads the residual and the GEMM core adds it, instead of the
            compute unit and the ALU.
        prefetch: whether a second buffer holds the resident operand of the outermost loop's next iteration.
    """

    channels: int
    rows: int
    columns: int
    depth: int
    kernel_rows: int
    threads: int
    thread_axis: ThreadAxis
    outer: OuterLoop
    bias_resident: bool = True
    batches: int = 1
    residual_product: bool = False
    resident: Resident = "nothing"
    prefetch: bool = False


def conv_table(plans: Sequence[ConvPlan]) -> PlanTable:
    return PlanTable.from_rows(
        [
            (
                *(plan.channels, plan.rows, plan.columns, plan.depth, plan.kernel_rows, plan.threads),
                THREAD_AXES.index(plan.thread_axis),
                OUTER_LOOPS.index(plan.outer),
                plan.batches,
                RESIDENT.index(plan.resident),
                int(plan.prefetch),
            )
            for plan in plans
        ]
    )
