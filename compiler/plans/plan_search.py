"""The search among plans of sums of products.

A rough estimate ranks all plans that fit. The pipeline model predicts the best of these with few steps, and
the best of those with many. Then it predicts neighbours of the best plans, as long as that improves the best.

A quick search tries fewer numbers of threads and no resident operands, predicts only plans with the best
estimates, and executes few steps of each. docs/how-to/explore-machines.md says what that costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Generic

import numpy as np

from accel.base.fast_unique import distinct
from accel.base.records import replace
from accel.compiler.plans.cycle_estimate import estimate_cycles
from accel.compiler.plans.operand_traffic import OperandTraffic
from accel.compiler.plans.pipeline_model import Predictions
from accel.compiler.plans.plan_arrays import FloatArray, IntArray
from accel.compiler.plans.plan_candidate import Candidate, PlanT
from accel.compiler.plans.plan_space import PlanSpace
from accel.compiler.plans.plan_table import PlanTable

_BRIEF_STEPS = 8
"""Steps that the first prediction executes of each plan."""
_ESTIMATED_PER_KIND = 5
"""Predicted plans of each kind: a number of threads, their axis, a loop order, and whether operands are
resident."""
_ESTIMATED_BEST = 128
"""Plans of any kind that are predicted in addition."""
MAX_ESTIMATE = 1.5
"""Plans with estimates above this multiple of the least are not predicted. In 410 searches, the fastest had
at most 1.3 times the least."""
_PREDICTED_BEST = 40
"""Plans of any kind predicted with many steps, in addition to the best of each kind."""
_REFINED_PLANS = 3
"""Best plans whose neighbours are predicted."""
_REFINEMENT_ROUNDS = 3
_QUICK_PER_KIND = 1
_QUICK_BEST = 24
_QUICK_STEPS = 48
_MIN_GAIN = 0.001
"""Share of cycles that a round of refinement must save for another round."""
_MAX_LAG_SHARE = 0.06
"""Plans with (or without) prefetching are refined if they are slower than the others by at most this
share."""
PREFETCH_PENALTY = 0.03
"""Share of cycles that the rating of plans with prefetching adds. The model spreads prefetched LOADs evenly,
while in reality units wait according to their order."""
_ESTIMATE_RESOLUTION = 0.003
"""Estimates that differ by less are equal. The plan with fewer instructions wins."""
TIE_SHARE = 0.002
"""Plans whose cycles differ by less are equal. The plan that reads fewer bytes wins."""


def search(
    space: PlanSpace[PlanT], table: PlanTable, threads: int | None, *, quick: bool = False
) -> list[Candidate[PlanT]]:
    """Return the most promising plans, best first.

    Plans with prefetching are predicted less reliably, so they are ranked separately and displace no others.
    All are predicted together, which is faster.
    """
    kinds = {
        prefetch: replace(space, residencies=[pair for pair in space.residencies if pair[1] == prefetch])
        for prefetch in distinct(table.prefetch).tolist()
    }
    found = _PredictedPlans(space)
    tables = [table.take(table.prefetch == prefetch) for prefetch in kinds]
    if quick:
        best = PlanTable.concatenate(_best_estimated(space, tables, _QUICK_PER_KIND, _QUICK_BEST))
        found.add(best, space.predict(best, _QUICK_STEPS))
        return found.ranked()
    found.add(*_most_promising(space, tables))
    refined: set[tuple[int, ...]] = set()
    fastest = np.inf
    for _ in range(_REFINEMENT_ROUNDS):
        before, fastest = fastest, found.cycles.min()
        if fastest > before * (1 - _MIN_GAIN):
            break
        neighbours: list[tuple[int, ...]] = []
        for prefetch, kind in kinds.items():
            fresh = [row for row in found.best(prefetch) if row not in refined]
            refined.update(fresh)
            neighbours += kind.neighbours(fresh, threads)
        if not neighbours:
            break
        others = space.fitting(PlanTable.from_rows(neighbours), threads).to_rows()
        found.add(PlanTable.from_rows([row for row in dict.fromkeys(others) if row not in found.rows]))
    return found.ranked()


def merge_rankings(rankings: Sequence[list[Candidate[PlanT]]]) -> list[Candidate[PlanT]]:
    if len(rankings) == 1:
        return rankings[0]
    every = [candidate for ranking in rankings for candidate in ranking]
    limit = min((one.rating for one in every), default=0.0) * (1 + TIE_SHARE)

    def order(one: Candidate[PlanT]) -> tuple[bool, float]:
        is_tie = one.rating <= limit
        return not is_tie, one.read_bytes if is_tie else one.rating

    return sorted(every, key=order)


def _most_promising(space: PlanSpace[PlanT], kinds: Sequence[PlanTable]) -> tuple[PlanTable, Predictions]:
    """Return the best plans of several tables, ranked separately, with their predictions.

    Brief predictions that execute all steps, as for many plans of small layers, are kept.
    """
    estimated = _best_estimated(space, kinds, _ESTIMATED_PER_KIND, _ESTIMATED_BEST)
    every = PlanTable.concatenate(estimated)
    brief, instructions = space.predict(every, _BRIEF_STEPS), space.sizes(every).instructions()
    bounds = np.cumsum([0, *(len(table.rows) for table in estimated)]).tolist()
    chosen = np.concatenate(
        [
            begin
            + _best_of_each_kind(table, brief.cycles[begin:end], instructions[begin:end], 1, _PREDICTED_BEST)
            for table, (begin, end) in zip(estimated, pairwise(bounds), strict=True)
        ]
    )
    plans, predictions = every.take(chosen), brief.take(chosen)
    partly = ~predictions.is_whole
    if partly.any():
        predictions = predictions.with_plans(partly, space.predict(plans.take(partly)))
    return plans, predictions


def _best_estimated(
    space: PlanSpace[PlanT], kinds: Sequence[PlanTable], per_kind: int, overall: int
) -> list[PlanTable]:
    found = []
    for table in kinds:
        sizes = space.sizes(table)
        cycles = estimate_cycles(sizes)
        near = np.flatnonzero(cycles <= cycles.min() * MAX_ESTIMATE)
        some = table.take(near)
        best = _best_of_each_kind(some, cycles[near], sizes.instructions()[near], per_kind, overall)
        found.append(PlanTable.from_rows(list(dict.fromkeys(some.take(best).to_rows()))))
    return found


def _best_of_each_kind(
    table: PlanTable, cycles: FloatArray, instructions: IntArray, per_kind: int, overall: int
) -> IntArray:
    level = np.floor(np.log(cycles / cycles.min()) / np.log(1 + _ESTIMATE_RESOLUTION))
    order = np.lexsort((instructions, level))
    kinds = ((table.threads * 8 + table.thread_axis) * 2 + table.outer) * 2 + (table.resident > 0)
    kinds = kinds[order]
    by_kind = np.argsort(kinds, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(kinds[by_kind]) != 0])
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    return distinct(np.concatenate([order[by_kind[rank < per_kind]], order[:overall]]))


class _PredictedPlans(Generic[PlanT]):
    """Plans that the model has predicted with many steps."""

    def __init__(self, space: PlanSpace[PlanT]) -> None:
        self.space = space
        self.rows: set[tuple[int, ...]] = set()
        self.table: PlanTable | None = None
        self.predictions: list[Predictions] = []

    def add(self, table: PlanTable, predictions: Predictions | None = None) -> None:
        if not len(table.rows):
            return
        self.rows.update(table.to_rows())
        self.table = table if self.table is None else PlanTable.concatenate([self.table, table])
        self.predictions.append(self.space.predict(table) if predictions is None else predictions)

    @property
    def cycles(self) -> FloatArray:
        return np.concatenate([part.cycles for part in self.predictions])

    def best(self, prefetch: int) -> list[tuple[int, ...]]:
        assert self.table is not None
        kind, cycles = np.flatnonzero(self.table.prefetch == prefetch), self.cycles
        order = kind[np.argsort(cycles[kind], kind="stable")[:_REFINED_PLANS]]
        if cycles[order[0]] > cycles.min() * (1 + _MAX_LAG_SHARE):
            return []
        return self.table.take(order).to_rows()

    def ranked(self) -> list[Candidate[PlanT]]:
        """Return all plans, best first.

        Ties with the best are ordered by prefetching (plans without first), bytes read, and instructions.
        """
        assert self.table is not None
        sizes = self.space.sizes(self.table)
        read, instructions = OperandTraffic(sizes).read_bytes(), sizes.instructions()
        rating = self.cycles * (1 + PREFETCH_PENALTY * self.table.prefetch)
        is_tie = rating <= rating.min() * (1 + TIE_SHARE)
        keys = (instructions, read, self.table.prefetch)
        order = np.lexsort(
            (*(np.where(is_tie, key, 0) for key in keys), np.where(is_tie, 0.0, rating), ~is_tie)
        )
        plans = self.space.to_plans(self.table)
        predictions = [one for part in self.predictions for one in part.to_list()]
        return [
            Candidate(
                plan=plans[n], prediction=predictions[n], read_bytes=int(read[n]), rating=float(rating[n])
            )
            for n in order.tolist()
        ]
