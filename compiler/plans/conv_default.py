"""Schedules of convolutions for those who bring none, chosen by the analytical model."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from accel.compiler.plans.candidate import Candidate, Prediction, check_threads_fit
from accel.compiler.plans.conv_model import ConvModel, ConvShape, conv_shape, part_sizes
from accel.compiler.plans.conv_plans import THREAD_AXES, ConvTable, Sizes, fitting
from accel.compiler.plans.conv_schedule import ConvPlan, conv_schedule
from accel.compiler.plans.planner import Blocks, Planner, Side, with_threads_made
from accel.core.config import Config

_FINALISTS = 4
"""Plans of each kind (threads, what they run along, loop order) that the model looks at."""
_BEST = 40
"""Plans of any kind that it looks at besides."""
_REFINED = 3
"""The best of them are tried with somewhat other sizes, until that gains nothing."""
_THREADS = (1, 2, 3, 4)
_CLOSE = 0.001
"""Plans whose cycles differ by less than this share are as good as one another; effort decides."""


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
    fixed = fixed or {}
    model = ConvModel(shape, config)
    table = fitting(model.shape, config, threads or _THREADS, fixed)
    if not len(table.rows):
        check_threads_fit(
            "convolution", config, threads, lambda n: bool(len(fitting(model.shape, config, n).rows))
        )
        return []
    sizes = Sizes(model.shape, config, table)
    quick = sizes.quick()
    # the best first; those that hardly differ by the effort
    alike = np.floor(np.log(quick / quick.min()) / np.log(1 + _CLOSE))
    order = np.lexsort((sizes.instructions(), alike))
    kinds = ((table.threads * 8 + table.thread_axis) * 2 + table.outer)[order]
    first = [order[np.flatnonzero(kinds == kind)[:_FINALISTS]] for kind in np.unique(kinds)]
    chosen = np.unique(np.concatenate([*first, order[:_BEST]]))
    found = {plan: model.predict(plan) for plan in table.take(chosen).plans(model.shape, config)}
    looked: set[ConvPlan] = set()
    while True:
        leaders = sorted(found, key=lambda plan: found[plan].cycles)[:_REFINED]
        fresh = [plan for plan in leaders if plan not in looked]
        if not fresh:
            break
        looked.update(fresh)
        for plan in _neighbours(model, fresh, threads, fixed):
            if plan not in found:
                found[plan] = model.predict(plan)
    candidates = [Candidate.predicted(plan, prediction, config) for plan, prediction in found.items()]
    best = min(c.prediction.cycles for c in candidates)
    ranked = sorted(candidates, key=partial(_rank, model, best * (1 + _CLOSE)))
    return with_threads_made(ranked, partial(_turns, model))


def _turns(model: ConvModel, plan: ConvPlan) -> int:
    return int(Sizes(model.shape, model.config, ConvTable.of([plan])).turns[0])


def _rank(model: ConvModel, close: float, candidate: Candidate[ConvPlan]) -> tuple[bool, float]:
    """Plans that are about as good as the best come first, those with the fewest instructions in front."""
    if candidate.prediction.cycles <= close:
        sizes = Sizes(model.shape, model.config, ConvTable.of([candidate.plan]))
        return False, float(sizes.instructions()[0])
    return True, candidate.prediction.cycles


def _neighbours(
    model: ConvModel, plans: Sequence[ConvPlan], threads: int | None, fixed: Blocks
) -> list[ConvPlan]:
    """Plans with one size a little different."""
    shape, config = model.shape, model.config
    table = ConvTable.of([other for plan in plans for other in _resized(model, plan, fixed)])
    sizes = Sizes(shape, config, table)
    return table.take(sizes.fits() & sizes.useful(threads)).plans(shape, config)


def _resized(model: ConvModel, plan: ConvPlan, fixed: Blocks) -> Iterator[ConvPlan]:
    shape = model.shape
    every: dict[str, Callable[[], list[int]]] = {
        "channels": lambda: part_sizes(shape.channels, shape.channels),
        "rows": lambda: shape.tile_sizes(0, shape.rows),
        "columns": lambda: shape.tile_sizes(1, shape.columns),
        "depth": lambda: part_sizes(shape.depth, shape.depth),
    }
    for name, sizes in every.items():
        if name not in fixed:
            for size in _around(sizes(), getattr(plan, name)):
                yield replace(plan, **{name: size})  # type: ignore[arg-type]  # all four are integers
    if plan.threads > 1:
        for axis in THREAD_AXES:
            yield replace(plan, thread_axis=axis)


def _around(every: list[int], part: int) -> list[int]:
    """A size and some next to it."""
    place = every.index(part)
    return every[max(0, place - 2) : place + 3]


def _fits(shape: ConvShape, config: Config, plan: ConvPlan) -> bool:
    return bool(Sizes(shape, config, ConvTable.of([plan])).fits()[0])


def _predict(shape: ConvShape, config: Config, plan: ConvPlan) -> Prediction:
    return ConvModel(shape, config).predict(plan)


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
    ),
    features=conv_shape,
    find=conv_candidates,
    fits=_fits,
    predict=_predict,
    schedule=conv_schedule,
    outermost=_outermost,
    threads_along=_threads_along,
)
"""Tiles of the output, and steps of the sum: input channels, and rows of the kernel."""
