"""The buffers and accumulators that steps use, and the constant times of their LOADs and STOREs.

Arrays have shape (steps, plans). Steps refer to ``UnitClocks`` by flat index. Nobody waits for the last row
of buffers, which a step without a LOAD fills.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from msgspec import Struct

from accel.compiler.plans.pipeline_steps import StepTable
from accel.compiler.plans.plan_arrays import BoolArray, FloatArray, IntArray, divide
from accel.compiler.plans.transfer_cost import Transfer
from accel.core.config import INSTRUCTION_BYTES, Config
from accel.core.timing_rules import REQUEST_STARTUP, compute_depth, store_depth

TOKEN_DELAY = 1
"""Cycles from a push to the pop that it allows."""
NEVER = -1e18
"""A cycle before all others."""
_LOAD_OVERHEAD = 3
"""Cycles that a LOAD is in flight, in addition to latency and beats."""


class OperandLoads(Struct, frozen=True, kw_only=True, dict=True):
    """The operand LOADs of steps.

    Attributes:
        buffers: flat indices of the buffers that must be free.
        data_cycles: cycles from the first beat to the last.
        queue_cycles: how long the LOADs occupy the outstanding bursts, and the LOADs in flight, in shape
            (steps, 2, plans).
    """

    is_present: BoolArray
    buffers: IntArray
    filled: IntArray
    data_cycles: FloatArray
    bursts: FloatArray
    queue_cycles: FloatArray
    padding_words: FloatArray | None

    @cached_property
    def is_any(self) -> list[bool]:
        return list(np.any(self.is_present, axis=1).tolist())


class TileStores(Struct, frozen=True, kw_only=True, dict=True):
    """The STOREs of steps.

    Attributes:
        startup: cycles from the last slot to the first beat, fewer if pieces are stored before that slot.
        queue_cycles: how long the STORE occupies the outstanding bursts.
        until_last_piece: least cycles from the first beat to the last, because the last piece waits for the
            last slot, or None if tiles are complete before their STORE starts.
        earlier_pieces: cycles of all pieces except one, or None if all tiles have one piece.
    """

    is_present: BoolArray
    sets: IntArray
    startup: FloatArray
    data_cycles: FloatArray
    queue_cycles: FloatArray
    until_last_piece: FloatArray | None
    earlier_pieces: FloatArray | None

    @cached_property
    def is_any(self) -> list[bool]:
        return list(np.any(self.is_present, axis=1).tolist())


class StepResources(Struct, frozen=True, kw_only=True):
    """The buffers and accumulators of steps.

    Attributes:
        awaited_sets: flat indices of the accumulators that must be stored before the step.
        piece_cycles: cycles of the first piece of the step's computation, plus the response to a write.
        freed_buffers: flat indices of the operand buffers that are free after the products.
        instruction_beats: beats of instructions that were not fetched before the first step.
    """

    awaited_sets: IntArray
    piece_cycles: FloatArray
    buffers: IntArray
    freed_buffers: IntArray
    residual_buffers: IntArray
    freed_residual_buffers: IntArray
    instruction_beats: FloatArray


class ResourceTable:
    """Computes the resources of steps."""

    def __init__(self, config: Config, steps: StepTable, threads: IntArray, store_pace: float) -> None:
        self._config, self._steps, self._threads, self._store_pace = config, steps, threads, store_pace
        self._count, self._length = len(threads), len(steps.exists)
        self._sets = int(threads.max(initial=1))
        self._unused = self._flat(self._sets)
        self._buffers = self._flat(divide(np.arange(self._length)[:, None], threads)[1])
        self._residual_buffers = self._flat(steps.accumulator_set)

    def _flat(self, row: IntArray | int) -> IntArray:
        return np.asarray(row * self._count + np.arange(self._count))

    def resources(self) -> StepResources:
        steps, config = self._steps, self._config
        slots = steps.product_slots
        slots = slots if steps.reset_slots is None else slots + steps.reset_slots
        piece = slots if steps.store_pieces is None else slots / steps.store_pieces
        is_late = np.cumsum(steps.instructions, axis=0) > config.fetch_buffer
        beats = INSTRUCTION_BYTES / config.bus_bytes
        return StepResources(
            awaited_sets=self._flat(np.where(steps.starts_tile, steps.accumulator_set, self._sets)),
            piece_cycles=piece + config.write_latency,
            buffers=self._buffers,
            freed_buffers=np.where(steps.exists, self._buffers, self._unused),
            residual_buffers=self._residual_buffers,
            freed_residual_buffers=np.where(steps.ends_tile, self._residual_buffers, self._unused),
            instruction_beats=steps.instructions * is_late * beats,
        )

    def stores(self) -> TileStores:
        steps, config, pieces = self._steps, self._config, self._steps.store_pieces
        overlapped = steps.overlapped_slots
        startup = compute_depth(config) + TOKEN_DELAY + REQUEST_STARTUP + store_depth(config)
        overlap: FloatArray | int = 0 if overlapped is None else overlapped
        cycles = steps.store_beats * self._store_pace
        queue_cycles = (steps.store_bursts * config.write_latency + cycles) / config.outstanding
        until_last = None if overlapped is None or pieces is None else overlapped + cycles / pieces
        return TileStores(
            is_present=steps.ends_tile,
            sets=self._flat(np.where(steps.ends_tile, steps.accumulator_set, self._sets + 1)),
            startup=np.where(steps.ends_tile, startup - overlap, NEVER),
            data_cycles=cycles,
            queue_cycles=queue_cycles,
            until_last_piece=until_last,
            earlier_pieces=None if pieces is None else cycles * (1 - 1 / pieces),
        )

    def operand_loads(self) -> tuple[OperandLoads, OperandLoads] | None:
        """Return the LOADs of first steps, and of later ones.

        The later ones are listed at the previous step of the same thread, which frees their buffers.
        """
        padding = self._steps.padding_words
        return self._split(self._steps.operand_loads, self._buffers, padding)

    def residual_loads(self) -> tuple[OperandLoads, OperandLoads] | None:
        return self._split(self._steps.residual_loads, self._residual_buffers, None)

    def _split(
        self, loads: Transfer | None, buffers: IntArray, padding: FloatArray | None
    ) -> tuple[OperandLoads, OperandLoads] | None:
        threads = self._threads
        if loads is None or not self._length:
            return None
        rounds = min(self._sets, self._length)
        is_first = np.arange(rounds)[:, None] < threads
        number = np.arange(self._length)[:, None] + threads
        exists, number = number < self._length, np.minimum(number, self._length - 1)

        def select(part: Callable[[FloatArray], FloatArray], count: int) -> OperandLoads:
            words = None if padding is None else part(padding)
            return self._loads(Transfer(*map(part, loads)), buffers[:count], words)

        return (
            select(lambda array: array[:rounds] * is_first, rounds),
            select(lambda array: np.take_along_axis(array, number, axis=0) * exists, self._length),
        )

    def _loads(self, loads: Transfer, buffers: IntArray, padding: FloatArray | None) -> OperandLoads:
        config, is_present = self._config, loads.instructions > 0
        bursts = (loads.bursts * config.read_latency + loads.beats) / config.outstanding
        flight = loads.instructions * (config.read_latency + _LOAD_OVERHEAD) + loads.beats
        return OperandLoads(
            is_present=is_present,
            buffers=buffers,
            filled=np.where(is_present, buffers, self._unused),
            data_cycles=loads.beats + loads.stall_cycles,
            bursts=loads.bursts,
            queue_cycles=np.stack([bursts, flight / config.loads_in_flight], axis=1),
            padding_words=padding,
        )

    def port_backlog(self) -> FloatArray:
        """Return the beats that operand LOADs may have been granted before a request of another unit."""
        loads = self._steps.operand_loads
        if loads is None:
            return np.zeros(self._count)
        beats, bursts = loads.beats.sum(axis=0), loads.bursts.sum(axis=0)
        return np.asarray(self._config.outstanding * beats / np.maximum(bursts, 1.0))
