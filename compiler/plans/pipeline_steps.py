"""The input of the pipeline model: the steps of plans, and the work of each plan.

A *step* is one iteration of the innermost loop that loads. In a matrix product, it loads operands,
multiplies, and in the last step of a tile executes the epilogue and stores. Virtual threads take turns: of 2
threads, the first one executes steps 0, 2, 4 ...
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from msgspec import Struct

from accel.base.records import field_names
from accel.compiler.plans.plan_arrays import BoolArray, FloatArray, IntArray
from accel.compiler.plans.transfer_cost import Transfer
from accel.core.config import Config


class StepTable(Struct):
    """The work of steps in order, as arrays of shape (steps, plans), or None if no plan has such work.

        ====  ==============================================  ====================================
          1   the compute unit loads accumulators             ``acc_loads_before``
          2   it computes without accumulators                ``early_slots``
          3   the first step of a tile waits until the first piece of its accumulators is stored
          4   it computes without operands                    ``reset_slots``
          5   it waits for operands                           ``operand_loads, padding_words``
          6   it multiplies                                   ``product_slots``
          7   the first step of a tile waits until the last piece of its accumulators is stored
          8   its operand buffers are free
          9   the compute unit loads accumulators             ``acc_loads_after``
         10   it computes, waits for a residual and adds it   ``pre_residual_slots, residual_slots``
         11   it completes the tile                           ``final_slots``
         12   the last step of a tile stores it               ``store_*``
        ====  ==============================================  ====================================

    Attributes:
        exists: whether the plan has this step. Otherwise all its work is zero.
        accumulator_set: index of the tile's accumulators, below the number of threads.
        residual_loads: LOADs of the residual by the load unit.
        overlapped_slots: last slots of the step, during which the tile's first pieces are stored.
        padding_words: zero words that the operand LOADs write.
    """

    exists: BoolArray
    starts_tile: BoolArray
    ends_tile: BoolArray
    accumulator_set: IntArray
    product_slots: FloatArray
    final_slots: FloatArray
    store_beats: FloatArray
    store_bursts: FloatArray
    instructions: FloatArray
    operand_loads: Transfer | None = None
    acc_loads_before: Transfer | None = None
    acc_loads_after: Transfer | None = None
    early_slots: FloatArray | None = None
    reset_slots: FloatArray | None = None
    pre_residual_slots: FloatArray | None = None
    residual_loads: Transfer | None = None
    residual_slots: FloatArray | None = None
    overlapped_slots: FloatArray | None = None
    store_pieces: FloatArray | None = None
    padding_words: FloatArray | None = None
    store_unit_beats: FloatArray | None = None

    def extended(self, later: StepTable) -> StepTable:
        """Append later steps of the first plans. The other plans have none."""

        def joined(early: FloatArray, more: FloatArray | None, fill: int) -> FloatArray:
            steps = len(early)
            every = np.empty((steps + len(later.exists), early.shape[1]), dtype=early.dtype)
            every[:steps] = early
            every[steps:] = fill
            if more is not None:
                every[steps:, : more.shape[1]] = more
            return every

        values: dict[str, Any] = {}
        for one in field_names(self):
            early, more = getattr(self, one), getattr(later, one)
            if isinstance(early, Transfer):
                parts = [None] * len(early) if more is None else more
                values[one] = Transfer(*(joined(a, b, 0) for a, b in zip(early, parts, strict=True)))
            else:
                fill = 1 if one == "store_pieces" else 0
                values[one] = None if early is None else joined(early, more, fill)
        return StepTable(**values)


class PlanWork(Struct, frozen=True, kw_only=True):
    """The work of each plan.

    Attributes:
        period: steps after which the same kinds of steps repeat with another tile.
        reload_period: steps after which the plan replaces data that it keeps for several tiles.
        reload_beats: beats of that data for all threads, or 0.
        reload_steps: steps over which these loads are spread, or 0 if they are issued together.
        threads: virtual threads, which is the number of operand buffers.
        load_bytes: operand bytes, or, without operands, the bytes that the compute unit loads first.
        late_acc_beats, late_acc_loads: as in ``ProgramStart``.
    """

    steps: IntArray
    period: IntArray
    reload_period: IntArray
    reload_beats: FloatArray
    reload_steps: IntArray
    threads: IntArray
    slots: FloatArray
    load_bytes: FloatArray
    store_bytes: FloatArray
    compute_start: FloatArray
    port_start: FloatArray
    load_start: FloatArray
    late_acc_beats: FloatArray
    late_acc_loads: FloatArray

    def take(self, chosen: IntArray) -> PlanWork:
        return PlanWork(**{one: getattr(self, one)[chosen] for one in field_names(self)})


class StepModel(Protocol):
    """The interface of a table of plans."""

    config: Config
    store_pace: float
    """Cycles of a STORE's beat."""

    def plan_work(self) -> PlanWork: ...

    def steps(self, numbers: IntArray, plans: IntArray) -> StepTable:
        """``numbers`` has shape (steps, plans). ``plans`` are indices into the table."""
