"""Extrapolation of the steady state of long programs.

The pipeline model executes the first steps of a plan, measures its pace, skips whole periods, and executes
the last steps. The skipped steps take the work of the busiest unit, times the measured pace.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from accel.compiler.plans.pipeline_steps import PlanWork, StepTable
from accel.compiler.plans.plan_arrays import FloatArray, IntArray, ceil_div
from accel.compiler.plans.transfer_cost import Transfer
from accel.core.config import INSTRUCTION_BYTES

MAX_STEPS = 96
"""Steps that the model executes of a plan with more."""
_LAST_STEPS_DIVISOR = 4
"""Ratio of all executed steps to those after the skipped ones."""
_MIN_PERIODS = 3
"""Least periods that the model executes."""
_MAX_STEPS_FACTOR = 4
"""The number of executed steps grows at most by this factor for these periods."""


class SampledSteps(NamedTuple):
    """The steps of each plan that the model executes.

    For example, a plan of 1,000 steps with a period of 8 executes steps 0 to 71, skips 904, and executes the
    last 24. The pace is measured from step 32 to 71.

    Attributes:
        first: number of steps before the skipped ones, or -1 if the model executes all steps.
    """

    first: IntArray
    measured_from: IntArray
    skipped: IntArray


def sample_steps(work: PlanWork, max_steps: int) -> SampledSteps:
    """Choose the steps to execute, in whole periods or, if those are long, rounds of threads."""
    executed = np.clip(work.period * _MIN_PERIODS, max_steps, max_steps * _MAX_STEPS_FACTOR)
    unit = np.where(work.period * _MIN_PERIODS <= executed, work.period, work.threads)
    last = ceil_div(ceil_div(executed, _LAST_STEPS_DIVISOR), unit) * unit
    first = np.maximum(1, (executed - last) // unit) * unit
    skipped = np.maximum(0, (work.steps - first - last) // unit) * unit
    skipped = np.where(work.steps > executed, skipped, 0)
    measured_from = np.maximum(first // 2 // unit, 1) * unit
    measured_from = np.where(measured_from >= first, 0, measured_from)
    return SampledSteps(np.where(skipped > 0, first, -1), measured_from, skipped)


class SteadyState:
    """The work of executed and of skipped steps."""

    def __init__(
        self, steps: StepTable, work: PlanWork, sample: SampledSteps, bus_bytes: int, store_pace: float
    ) -> None:
        self._work, self._sample, self._store_pace = work, sample, store_pace
        zero = np.zeros_like(steps.product_slots)

        def beats_of(part: FloatArray | Transfer | None) -> FloatArray:
            return zero if part is None else part.beats if isinstance(part, Transfer) else part

        loads = steps.acc_loads_before if steps.operand_loads is None else steps.operand_loads
        slots = steps.product_slots + steps.final_slots + beats_of(steps.early_slots)
        slots = slots + beats_of(steps.reset_slots)
        slots = slots + beats_of(steps.pre_residual_slots) + beats_of(steps.residual_slots)
        padding = beats_of(steps.padding_words)
        beats, loaded = (zero, zero) if loads is None else (loads.beats + padding, loads.bytes)
        if steps.residual_loads is not None:
            beats, loaded = beats + steps.residual_loads.beats, loaded + steps.residual_loads.bytes
        port = beats_of(steps.operand_loads) + padding + beats_of(steps.acc_loads_before)
        port = port + beats_of(steps.acc_loads_after) + beats_of(steps.store_unit_beats)
        port = port + beats_of(steps.residual_loads) + steps.instructions * (INSTRUCTION_BYTES / bus_bytes)
        self._slots, self._port, self._beats, self._stores = (
            np.vstack([np.zeros(len(work.steps)), np.cumsum(one, axis=0)])
            for one in (slots, port, beats, steps.store_beats)
        )
        executes_all = sample.skipped == 0
        executed_beats, executed_stores = self._beats[-1], self._stores[-1]
        executed_bytes = np.maximum(loaded.sum(axis=0), 1.0)
        beats_of_bytes = work.load_bytes * executed_beats / executed_bytes  # executed and skipped are alike
        self.load_beats = np.where(executes_all, executed_beats, np.maximum(beats_of_bytes, executed_beats))
        self.store_beats = np.where(executes_all, executed_stores, work.store_bytes / bus_bytes)
        self._skipped_slots = np.maximum(work.slots - self._slots[-1], 0)
        self._skipped_beats = np.maximum(self.load_beats - executed_beats, 0)
        self._skipped_stores = np.maximum(self.store_beats - executed_stores, 0) * store_pace

    def skipped_cycles(self, plans: IntArray, measured: FloatArray) -> FloatArray:
        """``measured`` are the cycles from ``measured_from`` on."""
        begin, end = self._sample.measured_from[plans], self._sample.first[plans]
        slots, port, beats, stores = (
            one[end, plans] - one[begin, plans]
            for one in (self._slots, self._port, self._beats, self._stores)
        )
        busiest = np.maximum(np.maximum(slots, port), np.maximum(stores * self._store_pace, 1.0))
        pace = np.maximum(measured / busiest, 1.0)
        port_per_beat = np.where(beats > 0, port / np.maximum(beats, 1e-9), 1.0)
        port_cycles = port_per_beat * self._skipped_beats[plans]
        without_reloads = self._busiest(plans, port_cycles) * pace
        reload_stalls, other_port = self._reload_stalls(plans, measured - port, port_cycles)
        with_stalls = np.maximum(
            self._busiest(plans, other_port) * pace + reload_stalls, self._busiest(plans, port_cycles)
        )
        at_once = np.where(reload_stalls > 0, with_stalls, without_reloads)
        spread = self._spread_reloads(plans, port_cycles) * pace
        return np.asarray(np.where(self._work.reload_steps[plans] > 0, spread, at_once))

    def _busiest(self, plans: IntArray, port_cycles: FloatArray) -> FloatArray:
        others = np.maximum(port_cycles, self._skipped_stores[plans])
        return np.asarray(np.maximum(self._skipped_slots[plans], others))

    def _reload_stalls(
        self, plans: IntArray, slack: FloatArray, port_cycles: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the stalls for data that is reloaded at once, and the port's cycles for other transfers.

        The compute unit continues during such a reload while the other threads have data.

        Args:
            slack: idle cycles of the port in the measured steps.
            port_cycles: port cycles of the skipped steps.
        """
        work, first, skipped = self._work, self._sample.first[plans], self._sample.skipped[plans]
        period = work.reload_period[plans]
        measured_steps = np.maximum(first - self._sample.measured_from[plans], 1)
        reloads = (first + skipped - 1) // period - (first - 1) // period
        beats = work.reload_beats[plans] * (period > first)
        stalls = reloads * np.maximum(beats - work.threads[plans] * slack / measured_steps, 0)
        return stalls, np.maximum(port_cycles - reloads * beats, 0)

    def _spread_reloads(self, plans: IntArray, port_cycles: FloatArray) -> FloatArray:
        """Return the cycles of skipped steps if reloads are spread over the first steps of each period.

        These steps take as long as the reloads, the others as long as the busiest unit.
        """
        work, skipped = self._work, np.maximum(self._sample.skipped[plans], 1)
        period, reload_steps = work.reload_period[plans], np.maximum(work.reload_steps[plans], 1)

        def reload_steps_before(step: IntArray) -> IntArray:
            return np.asarray(step // period * reload_steps + np.minimum(step % period, reload_steps))

        first = self._sample.first[plans]
        steps = reload_steps_before(first + skipped) - reload_steps_before(first)
        reloads, share = steps / reload_steps * work.reload_beats[plans], steps / skipped
        other_port = np.maximum(port_cycles - reloads, 0)
        busy = np.maximum(self._skipped_slots[plans], self._skipped_stores[plans])
        during_reloads = np.maximum(reloads + other_port * share, busy * share)
        return np.asarray(during_reloads + np.maximum(other_port, busy) * (1 - share))
