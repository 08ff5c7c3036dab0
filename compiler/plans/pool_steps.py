"""The steps of max pooling for the pipeline model: each tile is one.

If the compute unit loads elements into accumulators, loads and comparisons alternate, and only stores overlap
with them. Good plans then have few large loads. If products copy elements, loads overlap too, and good plans
have few slots.
"""

from __future__ import annotations

import numpy as np

from accel.base.records import replace
from accel.compiler.plans.pipeline_model import Predictions, first_instruction_cycle, predict
from accel.compiler.plans.pipeline_steps import PlanWork, StepTable
from accel.compiler.plans.plan_arrays import FloatArray, IntArray, ceil_div
from accel.compiler.plans.pool_sizes import PoolSizes
from accel.compiler.plans.program_start import DISPATCH_CYCLES
from accel.compiler.plans.steady_state import MAX_STEPS
from accel.compiler.plans.transfer_cost import Transfer, box_transfer
from accel.core.config import INSTRUCTION_BYTES, UOP_BYTES
from accel.core.timing_rules import WRITE_DELAY, compute_depth


class PoolStepModel:
    """Computes the steps of plans of max pooling, the tiles of threads in turn."""

    store_pace = 1.0

    def __init__(self, sizes: PoolSizes) -> None:
        self.sizes, self.shape, self.config, self.table = sizes, sizes.shape, sizes.config, sizes.table

    def predict(self, max_steps: int = MAX_STEPS) -> Predictions:
        """A compute unit that loads is busy meanwhile."""
        found = predict(self, max_steps)
        return found if self.sizes.uses_products else replace(found, compute=found.compute + found.load)

    def plan_work(self) -> PlanWork:
        sizes, table, config, count = self.sizes, self.table, self.config, len(self.table.rows)
        blocks = self.shape.batches * self.shape.channels
        rows, columns = sizes.total_inputs(0, table.rows), sizes.total_inputs(1, table.columns)
        outputs = sizes.height * sizes.width
        row_rounds, channel_rounds = self._rounds(sizes.row_tiles, sizes.channel_tiles, self.table.threads)
        start = np.full(count, 2.0 * config.read_latency + compute_depth(config))
        port = 0 * start
        if sizes.uses_products:
            start, port = self._start()
        row_of_tiles = table.threads * sizes.column_tiles
        dispatch = (first_instruction_cycle(config) + DISPATCH_CYCLES) * sizes.uses_products
        return PlanWork(
            steps=self.shape.batches * channel_rounds * row_rounds * row_of_tiles,
            period=row_of_tiles,
            reload_period=row_of_tiles,
            reload_beats=np.zeros(count),
            reload_steps=np.zeros(count, dtype=np.int64),
            threads=table.threads,
            slots=1.0 * blocks * sizes.total_slots(),
            load_bytes=1.0 * blocks * rows * columns * config.out_element_bytes,
            store_bytes=np.full(count, 1.0 * blocks * outputs * config.out_element_bytes),
            compute_start=start,
            port_start=port,
            load_start=np.full(count, float(dispatch)),
            late_acc_beats=np.zeros(count),
            late_acc_loads=np.zeros(count),
        )

    def _start(self) -> tuple[FloatArray, FloatArray]:
        """Return when compute unit and read port are free: after the first instructions and the micro-ops.

        An instruction's two loops replace the micro-ops of a tile's two longest dimensions.
        """
        table, config = self.table, self.config
        dimensions = np.sort(np.stack([table.channels, table.rows, table.columns]), axis=0)
        uops = table.threads * self.sizes.tile_instructions * dimensions[0]
        uops = np.minimum(uops, config.uop_depth)
        first = first_instruction_cycle(config)
        fetched = uops * UOP_BYTES + config.wgt_element_bytes + config.fetch_buffer * INSTRUCTION_BYTES
        port = first + fetched / config.bus_bytes
        return np.maximum(port, first + 3.0 + config.read_latency) + WRITE_DELAY + 1, port

    def _rounds(
        self, row_tiles: IntArray, channel_tiles: IntArray, threads: IntArray
    ) -> tuple[IntArray, IntArray]:
        return (
            np.where(self.table.along_rows, ceil_div(row_tiles, threads), row_tiles),
            np.where(self.table.along_rows, channel_tiles, ceil_div(channel_tiles, threads)),
        )

    def steps(self, numbers: IntArray, plans: IntArray) -> StepTable:
        sizes = PoolSizes(self.shape, self.config, self.table.take(plans))
        return PoolStepModel(sizes)._steps(numbers)

    def _steps(self, numbers: IntArray) -> StepTable:
        sizes, table = self.sizes, self.table
        thread, round_number = numbers % table.threads, numbers // table.threads
        column, round_number = round_number % sizes.column_tiles, round_number // sizes.column_tiles
        row_rounds, channel_rounds = self._rounds(sizes.row_tiles, sizes.channel_tiles, table.threads)
        row, channel = round_number % row_rounds, round_number // row_rounds % channel_rounds
        batch = round_number // row_rounds // channel_rounds
        row = np.where(table.along_rows, row * table.threads + thread, row)
        channel = np.where(table.along_rows, channel, channel * table.threads + thread)
        exists = (batch < self.shape.batches) & (row < sizes.row_tiles) & (channel < sizes.channel_tiles)
        blocks = np.minimum(table.channels, self.shape.channels - channel * table.channels)
        blocks = np.where(exists, blocks, 0)
        down = sizes.span(0, np.where(exists, row, 0), table.rows)
        across = sizes.span(1, np.where(exists, column, 0), table.columns)
        load = self._transfer(blocks, sizes.slide.size, down.inputs, across.inputs)
        store = self._transfer(blocks, sizes.slide.outputs, down.outputs, across.outputs)
        steps = StepTable(
            exists=exists,
            starts_tile=exists,
            ends_tile=exists,
            accumulator_set=thread,
            product_slots=np.zeros(exists.shape),
            final_slots=np.zeros(exists.shape),
            store_beats=store.beats,
            store_bursts=store.bursts,
            instructions=np.zeros(exists.shape),
        )
        if sizes.uses_products:
            copies, maxima = sizes.product_slots(down, across)
            resets = blocks * copies * (sizes.product_copy_slots - 1.0)
            steps.operand_loads = load
            steps.reset_slots = resets / sizes.copied_phases
            steps.product_slots = blocks * copies + resets - steps.reset_slots
            steps.final_slots = blocks * maxima * 1.0
            steps.instructions = exists * (sizes.tile_instructions + load.instructions + store.instructions)
        else:
            first, second = sizes.alu_slots(down, across)
            steps.acc_loads_before = load
            steps.early_slots = blocks * first * 1.0
            steps.product_slots = blocks * second * 1.0
        return steps

    def _transfer(
        self, channels: IntArray, tensor_size: tuple[int, int], rows: IntArray, columns: IntArray
    ) -> Transfer:
        height, width = tensor_size
        boxes, lines = (channels, height * width), (rows, width)
        return box_transfer(self.config, self.config.out_element_bytes, boxes, lines, columns)
