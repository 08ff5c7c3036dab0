"""The analytical model of the machine: predicts the cycles of many plans at once.

A plan is a sequence of steps (``pipeline_steps``). The model executes them in order and keeps the cycle in
which each unit, buffer and set of accumulators becomes free (``pipeline_clocks``). It extrapolates the steady
state of long programs (``steady_state``).

Each numpy operation advances all plans. Plans with more steps come first, so that the unfinished ones are a
slice.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from msgspec import Struct

from accel.base.fast_unique import distinct
from accel.base.records import field_names
from accel.compiler.plans.pipeline_clocks import ActiveClocks, UnitClocks
from accel.compiler.plans.pipeline_steps import PlanWork, StepModel, StepTable
from accel.compiler.plans.plan_arrays import BoolArray, FloatArray, IntArray
from accel.compiler.plans.plan_candidate import Prediction
from accel.compiler.plans.steady_state import MAX_STEPS, SampledSteps, SteadyState, sample_steps
from accel.compiler.plans.step_resources import ResourceTable
from accel.compiler.plans.transfer_cost import Transfer
from accel.core.config import Config
from accel.core.timing_rules import FETCH_STARTUP, WRITE_DELAY

_SPLIT_AREA_SHARE = 0.55
"""Compute steps in two parts, the second with fewer plans, if that leaves at most this share of array
elements."""


_PREDICTED = tuple(part for part in field_names(Prediction))


class Predictions(Struct, frozen=True, kw_only=True):
    """The attributes of ``Prediction``, as arrays.

    ``is_whole`` says whether the model executed all steps, so that a longer prediction gives the same.
    """

    cycles: FloatArray
    compute: FloatArray
    load: FloatArray
    store: FloatArray
    is_whole: BoolArray

    def of_plan(self, number: int) -> Prediction:
        return Prediction(**{name: float(getattr(self, name)[number]) for name in _PREDICTED})

    def take(self, chosen: IntArray) -> Predictions:
        return Predictions(**{part: getattr(self, part)[chosen] for part in field_names(self)})

    def with_plans(self, chosen: BoolArray, others: Predictions) -> Predictions:
        found = self.take(np.arange(len(chosen)))
        for part in field_names(self):
            getattr(found, part)[chosen] = getattr(others, part)
        return found

    def to_list(self) -> list[Prediction]:
        return [self.of_plan(number) for number in range(len(self.cycles))]


def first_instruction_cycle(config: Config) -> int:
    """Return the cycle in which the first instructions have arrived and are checked."""
    return FETCH_STARTUP + config.read_latency + WRITE_DELAY + config.dispatch_stages


def predict(model: StepModel, max_steps: int = MAX_STEPS) -> Predictions:
    """About ``max_steps`` steps of each plan are executed."""
    return _Pipeline(model, model.plan_work(), max_steps).predict()


class _Pipeline:
    def __init__(self, model: StepModel, work: PlanWork, max_steps: int) -> None:
        sample = sample_steps(work, max_steps)
        self.order = np.argsort(sample.skipped - work.steps, kind="stable")
        self.sample = SampledSteps(*(array[self.order] for array in sample))
        self.work = work.take(self.order)
        self.lengths = self.work.steps - self.sample.skipped
        self.longest = int(self.lengths.max(initial=0))
        first, skipped = self.sample.first, self.sample.skipped
        numbers = np.arange(self.longest)[:, None]
        numbers = np.where((first >= 0) & (numbers >= first), numbers + skipped, numbers)
        self.steps = self._step_table(model, numbers, 0, len(self.order))
        resources = ResourceTable(model.config, self.steps, self.work.threads, model.store_pace)
        self.resources, self.stores = resources.resources(), resources.stores()
        self.loads, self.residual_loads = resources.operand_loads(), resources.residual_loads()
        self.port_backlog = resources.port_backlog()
        self.is_any_start = np.any(self.steps.starts_tile, axis=1).tolist()
        self.steady = SteadyState(
            self.steps, self.work, self.sample, model.config.bus_bytes, model.store_pace
        )
        self.clocks = UnitClocks(model.config, self.work)

    def _step_table(self, model: StepModel, numbers: IntArray, begin: int, count: int) -> StepTable:
        """Return steps from ``begin`` on of the first ``count`` plans, long tables in parts with only the
        unfinished plans."""
        lengths, end = self.lengths[:count], len(numbers)
        cuts = distinct(lengths[lengths > begin])
        active = (lengths > cuts[:, None]).sum(axis=1)
        areas = (cuts - begin) * count + (end - cuts) * active
        if not len(cuts) or areas.min() > _SPLIT_AREA_SHARE * (end - begin) * count:
            return model.steps(numbers[begin:, :count], self.order[:count])
        cut, rest = (int(one[areas.argmin()]) for one in (cuts, active))
        early = self._step_table(model, numbers[:cut], begin, count)
        return early.extended(self._step_table(model, numbers, cut, rest))

    def predict(self) -> Predictions:
        clocks, sample = self.clocks, self.sample
        self._issue_first_loads()
        measure_at, skip_at = _plans_by_step(sample.measured_from), _plans_by_step(sample.first)
        measured_from = np.zeros(len(self.order))
        borders = {0, *measure_at, *skip_at, *self.lengths.tolist()} & set(range(self.longest + 1))
        for begin, end in pairwise(sorted(borders)):
            if begin in measure_at:
                measured_from[measure_at[begin]] = clocks.compute[measure_at[begin]]
            if begin in skip_at:
                plans = skip_at[begin]
                measured = clocks.compute[plans] - measured_from[plans]
                clocks.skip(plans, self.steady.skipped_cycles(plans, measured))
            self._execute(begin, end, int((self.lengths > begin).sum()))
        back = np.argsort(self.order)
        return Predictions(
            cycles=clocks.end()[back],
            compute=self.work.slots[back],
            load=self.steady.load_beats[back],
            store=self.steady.store_beats[back],
            is_whole=self.sample.skipped[back] == 0,
        )

    def _issue_first_loads(self) -> None:
        if self.loads is None:
            return
        clocks = ActiveClocks(self.clocks, len(self.order))
        for step in range(len(self.loads[0].bursts)):
            clocks.load_operands(self.loads[0], step)
            if self.residual_loads is not None:
                clocks.load_operands(self.residual_loads[0], step, is_residual=True)
        work = self.work
        self.clocks.load_accumulators(work.late_acc_beats, work.late_acc_loads, self.port_backlog)

    def _execute(self, begin: int, end: int, count: int) -> None:
        clocks, steps, uses = ActiveClocks(self.clocks, count), self.steps, self.resources
        loads, residual_loads = self.loads and self.loads[1], self.residual_loads and self.residual_loads[1]
        for step in range(begin, end):
            self._compute(clocks, step)
            clocks.store(self.stores, step)
            if steps.store_unit_beats is not None:
                clocks.port += steps.store_unit_beats[step, :count]
            clocks.port += uses.instruction_beats[step, :count]
            if loads is not None:
                clocks.load_operands(loads, step)
            if residual_loads is not None:
                clocks.load_operands(residual_loads, step, is_residual=True)

    def _compute(self, clocks: ActiveClocks, step: int) -> None:
        steps, uses, compute = self.steps, self.resources, clocks.compute
        at = step, clocks.active
        if steps.acc_loads_before is not None:
            self._load_accumulators(steps.acc_loads_before, at)
        if steps.early_slots is not None:
            compute += steps.early_slots[at]
        if self.is_any_start[step]:
            clocks.wait_for_first_piece(uses.awaited_sets[at])
        if steps.reset_slots is not None:
            compute += steps.reset_slots[at]
        if steps.operand_loads is not None:
            clocks.wait_for_operands(uses.buffers[at], has_padding=steps.padding_words is not None)
        compute += steps.product_slots[at]
        if self.is_any_start[step]:
            clocks.wait_for_last_piece(uses.awaited_sets[at], uses.piece_cycles[at])
        clocks.free_buffers(uses.freed_buffers[at])
        if steps.acc_loads_after is not None:
            self._load_accumulators(steps.acc_loads_after, at)
        if steps.pre_residual_slots is not None and steps.residual_slots is not None:
            compute += steps.pre_residual_slots[at]
            clocks.add_residual(uses, step, steps.ends_tile[at], steps.residual_slots[at])
        compute += steps.final_slots[at]

    def _load_accumulators(self, loads: Transfer, at: tuple[int, slice]) -> None:
        self.clocks.load_accumulators(loads.beats[at], loads.instructions[at], self.port_backlog[at[1]])


def _plans_by_step(steps: IntArray) -> dict[int, IntArray]:
    return {int(step): np.flatnonzero(steps == step) for step in distinct(steps) if step >= 0}
