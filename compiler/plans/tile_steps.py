"""The steps of tiled sums for the pipeline model: loads, computations and stores."""

from __future__ import annotations

import numpy as np

from accel.compiler.plans.pipeline_steps import PlanWork, StepTable
from accel.compiler.plans.plan_arrays import BoolArray, FloatArray, IntArray, ceil_div
from accel.compiler.plans.plan_table import PlanTable
from accel.compiler.plans.program_start import ProgramStart
from accel.compiler.plans.sum_shape import SumShape
from accel.compiler.plans.tile_positions import LoopRounds, StepPositions
from accel.compiler.plans.tile_sizes import TileSizes
from accel.compiler.plans.transfer_cost import Transfer
from accel.compiler.target.accumulator_pieces import piece_count
from accel.core.config import Config


class TileStepModel:
    """Computes the steps of plans of tiled sums, one per step of a tile."""

    def __init__(self, shape: SumShape, config: Config, table: PlanTable) -> None:
        self.shape, self.config, self.table = shape, config, table
        self.store_pace = shape.store_pace(config)
        executes_all = shape.gemm_slots == shape.output_blocks * shape.depth * shape.taps
        self.gemm_instructions = 1 if executes_all else 2  # padding needs an instruction of its own
        if not shape.has_weights and not shape.reset_passes:
            self.gemm_instructions += min(2, sum(taps > 1 for taps in shape.kernel))

    def plan_work(self) -> PlanWork:
        shape, config, threads = self.shape, self.config, self.table.threads
        sizes, count = TileSizes(shape, config, self.table), len(threads)
        loops, start = LoopRounds(sizes), ProgramStart(sizes)
        reload_period, reload_steps, reload_beats = self._reloads(sizes, loops)
        residual_bytes = shape.residual_product * shape.output_blocks * config.out_element_bytes
        return PlanWork(
            steps=loops.tiles * loops.steps * threads,
            period=loops.steps * threads,
            reload_period=reload_period,
            reload_beats=reload_beats,
            reload_steps=reload_steps,
            threads=threads,
            slots=np.full(count, float(shape.slots)),
            load_bytes=loops.traffic.read_bytes() + residual_bytes,
            store_bytes=np.full(count, float(shape.output_blocks * config.out_element_bytes)),
            compute_start=start.compute,
            port_start=start.port,
            load_start=start.load,
            late_acc_beats=start.late_acc_beats,
            late_acc_loads=start.late_acc_loads,
        )

    def _reloads(self, sizes: TileSizes, loops: LoopRounds) -> tuple[IntArray, IntArray, FloatArray]:
        """Return ``PlanWork``'s ``reload_period``, ``reload_steps`` and ``reload_beats``.

        The first row of the table that applies to a plan decides. Without resident operands, a plan whose
        tiles have one step keeps the weights while channels are outermost, and reloads them at once.
        """
        shape, config, table = self.shape, self.config, self.table
        tile, channels_outer = loops.steps * table.threads, ~sizes.pixels_outer
        weights = shape.weight_transfer(config, table.channels, table.depth, table.kernel_rows).beats
        inputs = sizes.step_inputs * (config.inp_element_bytes / config.bus_bytes)
        keeps_weights = channels_outer & (loops.steps == 1) & (loops.groups * loops.channels > 1)
        all_weights, all_inputs = weights * sizes.weight_buffers, inputs * sizes.input_buffers
        by_position, by_channel = loops.positions * tile, loops.channels * tile
        table_rows = [
            (sizes.weights_prefetched | sizes.inputs_prefetched, by_position, 0 * tile, 0.0 * tile),
            (channels_outer & sizes.weights_resident, by_position, tile, all_weights),
            (~channels_outer & sizes.inputs_resident, by_channel, tile, all_inputs),
            (sizes.weights_resident, loops.tiles * tile, by_channel, all_weights),
            (sizes.inputs_resident, loops.tiles * tile, by_position, all_inputs),
            (keeps_weights & shape.has_weights, by_position, 0 * tile, weights * table.threads),
        ]
        applies, periods, steps, beats = zip(*table_rows, strict=True)
        return (
            np.select(applies, periods, by_position),
            np.select(applies, steps, 0),
            np.select(applies, beats, 0.0),
        )

    def steps(self, numbers: IntArray, plans: IntArray) -> StepTable:
        shape, config = self.shape, self.config
        sizes = TileSizes(shape, config, self.table.take(plans))
        at = StepPositions(LoopRounds(sizes), numbers)
        first, last = at.is_first, at.is_last
        loads, weight_beats = self._operand_loads(at)
        blocks = at.channels * at.batches * at.depth
        gemms = np.where(at.exists, blocks * self._executed_taps(at), 0) * 1.0
        elements = at.channels * at.batches * at.rows * at.columns * 1.0
        output = shape.output_transfer(config, at.channels, at.rows, at.columns).times(at.batches)
        stores = output.instructions
        if shape.holds_residual:  # a STORE for each block of channels
            stores = np.maximum(stores, at.channels * at.batches)
        final_instructions = shape.passes - shape.reset_passes + stores * (1 + shape.has_residual)
        steps = StepTable(
            exists=at.exists,
            starts_tile=first,
            ends_tile=last,
            accumulator_set=np.where(sizes.along_depth, 0, at.thread),
            operand_loads=loads,
            reset_slots=elements * first if shape.reset_passes else None,
            product_slots=gemms,
            final_slots=elements * last * (shape.pass_slots - shape.reset_passes),
            store_beats=output.beats * last,
            store_bursts=output.bursts * last,
            instructions=at.exists * self.gemm_instructions
            + loads.instructions
            + first * shape.reset_passes
            + last * final_instructions,
        )
        if shape.loads_padding:
            steps.padding_words = self._padding_words(at, sizes, numbers >= self.table.threads[plans])
        self._add_residual(steps, at, sizes, elements, output)
        if shape.has_bias and not shape.epilogue_in_store and not sizes.bias_resident.all():
            steps.acc_loads_before = self._bias_loads(at, sizes)
        self._add_store_pieces(steps, at, sizes, gemms, elements)
        if shape.reset_passes and not shape.has_residual:
            self._split_last_steps(steps, at, sizes, weight_beats)
        return steps

    def _add_residual(
        self, steps: StepTable, at: StepPositions, sizes: TileSizes, elements: FloatArray, output: Transfer
    ) -> None:
        shape, config = self.shape, self.config
        if shape.epilogue_in_store:
            parameters = shape.channel_transfer(config.par_element_bytes, config, at.channels).beats
            residual = shape.residual_beats(config, at.batches, at.channels, output)
            beats = parameters * ~sizes.bias_resident + residual
            steps.store_unit_beats = at.is_last * beats
        elif shape.residual_product:
            steps.residual_loads = output.where(at.is_last)
            steps.pre_residual_slots = elements * at.is_last * shape.slots_before_residual
            steps.residual_slots = elements * at.is_last
            steps.final_slots = steps.final_slots - steps.pre_residual_slots - steps.residual_slots
        elif shape.has_residual:
            steps.acc_loads_after = output.where(at.is_last)

    def _add_store_pieces(
        self,
        steps: StepTable,
        at: StepPositions,
        sizes: TileSizes,
        gemms: FloatArray,
        elements: FloatArray,
    ) -> None:
        """With a reset, tiles whose accumulators are used again at once have pieces, as have the last tiles.
        Without, only the last tiles have, one per block of channels.
        """
        is_final = at.is_last & at.is_last_round
        if self.shape.reset_passes:
            has_one_set = sizes.along_depth | (sizes.table.threads == 1)
            steps.store_pieces = np.where(is_final | has_one_set, piece_count(elements), 1)
            steps.overlapped_slots = steps.final_slots * (1 - 1 / steps.store_pieces)
        else:
            steps.store_pieces = np.where(is_final, at.channels, 1)
            steps.overlapped_slots = is_final * gemms * (1 - 1 / np.maximum(at.channels, 1))

    def _split_last_steps(
        self, steps: StepTable, at: StepPositions, sizes: TileSizes, weight_beats: FloatArray
    ) -> None:
        """Model the pass ``split_last_steps`` where it saves time. Saved cycles are spread over the steps."""
        assert steps.operand_loads is not None
        assert steps.store_pieces is not None
        threads, depth = sizes.table.threads, sizes.table.depth
        full_rounds = (sizes.depth_steps - 1) % threads + 1
        is_before = (at.steps_left == 1) & (at.thread >= full_rounds)
        number = np.where(is_before, at.thread - full_rounds, threads - full_rounds + at.thread)
        is_split = sizes.along_depth & (threads > 1) & (at.channels > 1) & (sizes.table.resident == 0)
        is_split &= sizes.depth_steps >= 2 * threads  # so that no buffer holds a step's operands already
        is_split = is_split & at.exists & at.is_last_round & ((at.steps_left == 0) | is_before)
        if not is_split.any():
            return
        channels = np.maximum(at.channels, 1)
        elements = channels * at.batches * at.rows * at.columns
        per_piece = ceil_div(channels, piece_count(elements))
        first = np.minimum(per_piece / channels, 1.0)
        last = 1 - (ceil_div(channels, per_piece) - 1) * per_piece / channels
        passes = elements * (self.shape.pass_slots - 1.0)
        last_depth = self.shape.depth - (sizes.depth_steps - 1) * depth
        blocks = ((threads - 1) * depth + last_depth) / np.maximum(at.depth, 1)
        products = blocks * steps.product_slots
        weights_left = blocks * weight_beats * (1 - first)
        after_first = products * (1 - first) + passes
        whole = steps.product_slots * last_depth / np.maximum(at.depth, 1)
        end = (whole + passes) * last
        beats = blocks * steps.operand_loads.beats
        is_split &= (beats > products) & (np.maximum(end, after_first - weights_left) < whole + passes)
        begins = np.rint(threads - weights_left * threads / np.maximum(beats, 1e-9)) - 1
        begins = np.clip(begins, 0, threads - 2)
        shares = np.where(
            number < begins,
            products * first / np.maximum(begins, 1),
            (np.where(begins > 0, after_first, products + passes) - end)
            / np.maximum(threads - 1 - begins, 1),
        )
        shares = np.where(number < threads - 1, shares, steps.product_slots * last)
        steps.product_slots = np.where(is_split, shares, steps.product_slots)
        steps.final_slots = np.where(is_split & at.is_last, passes * last, steps.final_slots)
        steps.overlapped_slots = steps.final_slots * (1 - 1 / steps.store_pieces)

    def _operand_loads(self, at: StepPositions) -> tuple[Transfer, FloatArray]:
        """Return the LOADs of both operands, and the beats of weights."""
        shape, config = self.shape, self.config
        inputs = shape.input_transfer(
            config,
            shape.loaded_extent(0, at.row, at.rows, at.tap, at.taps),
            shape.loaded_extent(1, at.column, at.columns, 0, shape.kernel[1]),
            at.input_blocks,
        ).times(at.batches)
        weights = shape.weight_transfer(config, at.channels, at.depth, at.taps)
        of_inputs, of_weights = at.exists * at.loaded_inputs, at.exists * at.loaded_weights
        loads = Transfer(*(a * of_inputs + b * of_weights for a, b in zip(inputs, weights, strict=True)))
        return loads, weights.beats * of_weights

    def _padding_words(self, at: StepPositions, sizes: TileSizes, is_later: BoolArray) -> FloatArray:
        """Rows of zeros stay if all tiles have the same."""
        keeps_rows = is_later & (sizes.row_tiles * sizes.kernel_steps == 1)
        window = at.row, at.rows, at.column, at.columns, at.tap, at.taps
        words = self.shape.padding_words(*window, keeps_rows=keeps_rows)
        is_loaded = at.exists & ~at.holds_inputs
        return np.asarray(words * at.batches * at.input_blocks * is_loaded * 1.0)

    def _executed_taps(self, at: StepPositions) -> IntArray:
        """Return the executed pairs of output pixels and taps of a step."""
        shape = self.shape
        down = _box_sum(shape.tap_counts(0), at.row, at.rows, at.tap, at.taps)
        across = _box_sum(shape.tap_counts(1), at.column, at.columns, 0 * at.column, shape.kernel[1])
        return down * across

    def _bias_loads(self, at: StepPositions, sizes: TileSizes) -> Transfer:
        """Return the LOADs of a bias that is not resident: once for the outermost loop's channels, or per
        tile."""
        is_shared = ~sizes.pixels_outer & ~sizes.along_groups
        is_needed = np.where(
            is_shared,
            (at.position == 0) & (at.thread == 0),
            ~at.has_one_channel | (at.position == 0),
        )
        is_needed = at.is_first & ~sizes.bias_resident & is_needed
        threads = np.where(is_shared & sizes.along_channels, sizes.table.threads, 1)
        blocks = np.minimum(at.channels * threads, self.shape.channels)
        one = self.shape.channel_transfer(self.config.acc_element_bytes, self.config, blocks)
        return one.times(self.shape.biases).where(is_needed)


def _box_sum(
    prefix_sums: IntArray, row: IntArray, rows: IntArray, column: IntArray, columns: IntArray | int
) -> IntArray:
    width, flat = prefix_sums.shape[1], prefix_sums.reshape(-1)
    above, below = row * width, (row + rows) * width
    left, right = column, column + columns
    return np.asarray(flat[below + right] - flat[above + right] - flat[below + left] + flat[above + left])
