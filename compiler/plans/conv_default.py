"""Schedules of convolutions for those who bring none, chosen by the analytical model."""

from dataclasses import replace

from accel.compiler.plans.candidate import Candidate, Prediction, check_threads_fit
from accel.compiler.plans.clocks import predict
from accel.compiler.plans.conv_model import ConvShape, conv_shape
from accel.compiler.plans.conv_plans import conv_space, conv_table, fitting, least
from accel.compiler.plans.conv_schedule import ConvPlan, conv_schedule
from accel.compiler.plans.planner import Blocks, Planner, Side
from accel.compiler.plans.search import ranked_together, search
from accel.compiler.plans.tile_walker import TileWalker
from accel.compiler.plans.tiles import Sizes
from accel.core.config import Config

_THREADS = (1, 2, 3, 4, 6, 8)


def conv_candidates(
    shape: ConvShape, config: Config, threads: int | None = None, fixed: Blocks | None = None
) -> list[Candidate[ConvPlan]]:
    """The most promising plans, best first; none if none has the sizes that are given.

    Args:
        shape: of a convolution.
        config: the machine.
        threads: only plans with so many virtual threads; any number if not given.
        fixed: sizes by the plan's attributes, channels in blocks; those that exceed the whole are cut to it.

    Raises:
        ScheduleError: no plan fits, or none with so many threads, with the largest number that does.
    """
    found = []
    for one in shape.choices():
        table = fitting(one, config, threads or _THREADS, fixed)
        if len(table.rows):
            found.append(search(conv_space(one, config, fixed), table, threads))
    if not found:
        check_threads_fit(
            "convolution",
            config,
            threads,
            lambda n: _any_fits(shape, config, n),
            lambda: least(shape, config),
        )
    return ranked_together(found)


def _any_fits(shape: ConvShape, config: Config, threads: int) -> bool:
    return any(len(fitting(one, config, threads).rows) for one in shape.choices())


def _chosen(shape: ConvShape, plan: ConvPlan) -> ConvShape:
    """The convolution as a plan does it."""
    return replace(shape, residual_product=plan.residual_product)


def _fits(shape: ConvShape, config: Config, plan: ConvPlan) -> bool:
    return bool(Sizes(_chosen(shape, plan), config, conv_table([plan])).fits()[0])


def _predict(shape: ConvShape, config: Config, plan: ConvPlan) -> Prediction:
    return predict(TileWalker(_chosen(shape, plan), config, conv_table([plan]))).one(0)


def _outermost(plan: ConvPlan) -> str:
    return "oc" if plan.outer == "channels" else "pixels"


def _threads_along(plan: ConvPlan) -> str:
    return {"channels": "oc", "rows": "h", "depth": "ic", "groups": "groups"}[plan.thread_axis]


CONV_PLANNER = Planner(
    sides=(
        Side(key="tile_oc", attribute="channels", block="block_out"),
        Side(key="tile_h", attribute="rows"),
        Side(key="tile_w", attribute="columns"),
        Side(key="step_ic", attribute="depth", block="block_in"),
        Side(key="step_kh", attribute="kernel_rows"),
        Side(key="tile_n", attribute="batches", block="batch", told=False),
    ),
    features=conv_shape,
    find=conv_candidates,
    fits=_fits,
    predict=_predict,
    schedule=conv_schedule,
    outermost=_outermost,
    threads_along=_threads_along,
    identity_products=lambda plan: plan.residual_product,
)
"""Tiles of the output, and steps of the sum: input channels, and rows of the kernel."""
