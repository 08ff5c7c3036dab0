"""The planner of convolutions, transposed convolutions and means over windows."""

from accel.base.records import replace
from accel.compiler.plans.conv_model import ConvShape, conv_shape
from accel.compiler.plans.conv_plan import ConvPlan, conv_table
from accel.compiler.plans.conv_schedule import conv_schedule
from accel.compiler.plans.conv_space import conv_space, fitting_plans, smallest_conv_needs
from accel.compiler.plans.pipeline_model import predict
from accel.compiler.plans.plan_candidate import Candidate, Prediction, check_threads_fit
from accel.compiler.plans.plan_enumeration import all_candidates
from accel.compiler.plans.plan_search import MAX_ESTIMATE, merge_rankings, search
from accel.compiler.plans.plan_space import default_thread_counts
from accel.compiler.plans.planner import Blocks, Planner, TileSide
from accel.compiler.plans.tile_sizes import TileSizes
from accel.compiler.plans.tile_steps import TileStepModel
from accel.core.config import Config


def conv_candidates(
    shape: ConvShape,
    config: Config,
    threads: int | None = None,
    fixed: Blocks | None = None,
    quick: bool = False,
) -> list[Candidate[ConvPlan]]:
    """See ``Planner.find``."""
    rankings = []
    for variant in shape.residual_variants():
        counts = default_thread_counts(quick=quick)
        table = fitting_plans(variant, config, threads, fixed, counts, MAX_ESTIMATE)
        if len(table.rows):
            rankings.append(search(conv_space(variant, config, fixed), table, threads, quick=quick))
    if not rankings:
        check_threads_fit(
            "convolution" if shape.has_weights else "mean",
            config,
            threads,
            lambda count: _has_plans(shape, config, count),
            lambda: smallest_conv_needs(shape, config),
        )
    return merge_rankings(rankings)


def all_conv_candidates(shape: ConvShape, config: Config) -> list[Candidate[ConvPlan]]:
    return [
        candidate
        for variant in shape.residual_variants()
        for candidate in all_candidates(conv_space(variant, config), fitting_plans(variant, config, None))
    ]


def _has_plans(shape: ConvShape, config: Config, threads: int) -> bool:
    return any(len(fitting_plans(one, config, threads).rows) for one in shape.residual_variants())


def _variant(shape: ConvShape, plan: ConvPlan) -> ConvShape:
    return replace(shape, residual_product=plan.residual_product)


def _fits(shape: ConvShape, config: Config, plan: ConvPlan) -> bool:
    return bool(TileSizes(_variant(shape, plan), config, conv_table([plan])).fits()[0])


def _predict(shape: ConvShape, config: Config, plan: ConvPlan) -> Prediction:
    return predict(TileStepModel(_variant(shape, plan), config, conv_table([plan]))).of_plan(0)


def _outermost(plan: ConvPlan) -> str:
    return "oc" if plan.outer == "channels" else "pixels"


def _threads_along(plan: ConvPlan) -> str:
    return {"channels": "oc", "rows": "h", "depth": "ic", "groups": "groups"}[plan.thread_axis]


CONV_PLANNER = Planner(
    plan_type=ConvPlan,
    sides=(
        TileSide(key="tile_oc", attribute="channels", block="block_out"),
        TileSide(key="tile_h", attribute="rows"),
        TileSide(key="tile_w", attribute="columns"),
        TileSide(key="step_ic", attribute="depth", block="block_in"),
        TileSide(key="step_kh", attribute="kernel_rows"),
        TileSide(key="tile_n", attribute="batches", block="batch", always_shown=False),
    ),
    features=conv_shape,
    find=conv_candidates,
    enumerate=all_conv_candidates,
    fits=_fits,
    predict=_predict,
    schedule=conv_schedule,
    outermost=_outermost,
    threads_along=_threads_along,
    identity_products=lambda plan: plan.residual_product,
)
