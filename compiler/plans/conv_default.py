"""Schedules of convolutions for those who bring none, chosen by the analytical model."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from accel.compiler.ops.workload import Workload
from accel.compiler.plans.candidate import Candidate, unfit
from accel.compiler.plans.conv_model import ConvModel, conv_shape, part_sizes
from accel.compiler.plans.conv_plans import THREAD_AXES, ConvTable, Sizes, fitting
from accel.compiler.plans.conv_schedule import ConvPlan
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
    workload: Workload, config: Config, threads: int | None = None
) -> list[Candidate[ConvPlan]]:
    """The most promising plans, best first.

    Args:
        workload: a convolution.
        config: the machine.
        threads: only plans with so many virtual threads; any number if not given.

    Raises:
        ScheduleError: no plan fits, or none with so many threads.
    """
    model = ConvModel(conv_shape(workload, config), config)
    table = fitting(model.shape, config, _THREADS if threads is None else (threads,))
    if not len(table.rows):
        raise unfit(
            "convolution", config, threads, lambda n: bool(len(fitting(model.shape, config, (n,)).rows))
        )
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
        for plan in _neighbours(model, fresh):
            if plan not in found:
                found[plan] = model.predict(plan)
    candidates = [Candidate.predicted(plan, prediction, config) for plan, prediction in found.items()]
    best = min(c.prediction.cycles for c in candidates)
    return sorted(candidates, key=partial(_rank, model, best * (1 + _CLOSE)))


def _rank(model: ConvModel, close: float, candidate: Candidate[ConvPlan]) -> tuple[bool, float]:
    """Plans that are about as good as the best come first, those with the fewest instructions in front."""
    if candidate.prediction.cycles <= close:
        sizes = Sizes(model.shape, model.config, ConvTable.of([candidate.plan]))
        return False, float(sizes.instructions()[0])
    return True, candidate.prediction.cycles


def _neighbours(model: ConvModel, plans: Sequence[ConvPlan]) -> list[ConvPlan]:
    """Plans with one size a little different."""
    shape, config = model.shape, model.config
    table = ConvTable.of([other for plan in plans for other in _resized(model, plan)])
    sizes = Sizes(shape, config, table)
    return table.take(sizes.fits() & sizes.useful()).plans(shape, config)


def _resized(model: ConvModel, plan: ConvPlan) -> Iterator[ConvPlan]:
    shape = model.shape
    for channels in _near(shape.channels, plan.channels):
        yield replace(plan, channels=channels)
    for rows in _around(shape.tile_sizes(0, shape.rows), plan.rows):
        yield replace(plan, rows=rows)
    for columns in _around(shape.tile_sizes(1, shape.columns), plan.columns):
        yield replace(plan, columns=columns)
    for depth in _near(shape.depth, plan.depth):
        yield replace(plan, depth=depth)
    if plan.threads > 1:
        for axis in THREAD_AXES:
            yield replace(plan, thread_axis=axis)


def _near(size: int, part: int) -> list[int]:
    """Sizes that cut into one or two parts more or less."""
    return _around(part_sizes(size, size), part)


def _around(every: list[int], part: int) -> list[int]:
    """A size and some next to it."""
    place = every.index(part)
    return every[max(0, place - 2) : place + 3]
