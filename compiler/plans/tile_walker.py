"""The walk through tiles of sums of products: what each step of each tile loads, computes and stores."""

from __future__ import annotations

import numpy as np

from accel.compiler.plans.arrays import BoolArray, FloatArray, IntArray
from accel.compiler.plans.clocks import Turns, Work, fetched_first
from accel.compiler.plans.sums import Sums
from accel.compiler.plans.tiles import Sizes, Tiling, parts
from accel.compiler.plans.transfers import Moved
from accel.compiler.target.parts import parts_of
from accel.core.config import INSTRUCTION_BYTES, UOP_BYTES, Config
from accel.core.timing_rules import REQUEST_STARTUP, WRITE_DELAY, compute_depth

_DISPATCH = 12
"""Cycles after which the load unit has its first instruction, at most."""


class _Loops:
    """How often the loops of plans repeat, an element for each plan; that over threads is inside the others.

    Attributes:
        rows, channels, groups, depths: turns of threads in these directions.
        steps: turns of threads in a tile.
        places: of tiles on the output, in turns.
    """

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        self.config, self.shape, self.table = sizes.config, sizes.shape, sizes.table
        threads = self.table.threads
        self.rows = np.where(sizes.along_rows, parts(sizes.down_rows, threads), sizes.down_rows)
        self.channels = np.where(
            sizes.along_channels, parts(sizes.across_channels, threads), sizes.across_channels
        )
        self.groups = np.where(sizes.along_groups, parts(self.shape.groups, threads), self.shape.groups)
        self.depths = np.where(sizes.along_depth, parts(sizes.depths, threads), sizes.depths)
        self.steps = self.depths * sizes.kernel_parts
        self.places = sizes.across_batches * self.rows * sizes.across_columns

    @property
    def tiles(self) -> IntArray:
        """Turns of threads over all tiles."""
        return np.asarray(self.groups * self.channels * self.places)


class _Turn:
    """Where turns are, (turns, plans): which tile, which step, and what of it buffers hold already.

    Attributes:
        slot: the thread.
        valid: whether there is such a tile and step.
        first, last: whether the step is the tile's.
        ends: whether the tile is among the last ones of all.
        steps_left: of its tile, behind it.
        place, channel_turn: of the tile, in turns of threads.
        row_at, rows, column_at, columns: of the output.
        channels, batches: blocks.
        depth: blocks of the step.
        tap_at, taps: rows of the kernel.
        inputs: blocks of input channels that the step needs.
        input_held, weights_held: whether the buffers of the step hold what it needs.
        inputs_now, weights_now: how much of that is loaded, of what the step needs or the same one later.
        one_channel: whether a thread only ever has these channels.
    """

    def __init__(self, loops: _Loops, numbers: IntArray) -> None:
        sizes, shape, table = loops.sizes, loops.shape, loops.table
        threads, along_depth, pixels_outer = table.threads, sizes.along_depth, sizes.pixels_outer
        self.slot = slot = numbers % threads
        step, tile = numbers // threads % loops.steps, numbers // threads // loops.steps
        self.ends = tile == loops.tiles - 1
        self.steps_left = loops.steps - 1 - step
        inner = np.where(along_depth, loops.depths, sizes.kernel_parts)
        kernel_part = np.where(along_depth, step // inner, step % inner)
        deep = np.where(along_depth, step % inner * threads + slot, step // inner)
        inner = np.where(pixels_outer, loops.channels, loops.places)
        outer = np.where(pixels_outer, loops.places, loops.channels)
        low, high, group_turn = tile % inner, tile // inner % outer, tile // inner // outer
        self.channel_turn, self.place = np.where(pixels_outer, low, high), np.where(pixels_outer, high, low)
        column = self.place % sizes.across_columns
        row_turn = self.place // sizes.across_columns % loops.rows
        batch = self.place // sizes.across_columns // loops.rows
        channel = np.where(sizes.along_channels, self.channel_turn * threads + slot, self.channel_turn)
        row = np.where(sizes.along_rows, row_turn * threads + slot, row_turn)
        group = np.where(sizes.along_groups, group_turn * threads + slot, group_turn)
        self.valid = valid = (
            (group_turn < loops.groups)
            & (group < shape.groups)
            & (channel < sizes.across_channels)
            & (row < sizes.down_rows)
            & (deep < sizes.depths)
        )
        self.first = valid & (deep == 0) & (kernel_part == 0)
        self.last = valid & (deep == sizes.depths - 1) & (kernel_part == sizes.kernel_parts - 1)
        channel, row, column, deep, kernel_part = (
            np.where(valid, one, 0) for one in (channel, row, column, deep, kernel_part)
        )
        self.channel_at = channel * table.channels
        self.channels = np.minimum(table.channels, shape.channels - self.channel_at)
        self.row_at, self.column_at, self.tap_at = (
            row * table.rows,
            column * table.columns,
            kernel_part * table.kernel_rows,
        )
        self.rows = np.minimum(table.rows, shape.rows - self.row_at)
        self.columns = np.minimum(table.columns, shape.columns - self.column_at)
        self.depth = np.minimum(table.depth, shape.depth - deep * table.depth)
        self.batches = np.minimum(table.batches, shape.batches - np.where(valid, batch, 0) * table.batches)
        self.taps = np.minimum(table.kernel_rows, shape.kernel[0] - self.tap_at)
        self._holding(loops, numbers)

    def _holding(self, loops: _Loops, numbers: IntArray) -> None:
        """What is in the buffers of a thread is what its turn before needed, if that was of another tile."""
        sizes, shape, slot, threads = loops.sizes, loops.shape, self.slot, loops.table.threads

        def of_thread(along: BoolArray, all_parts: IntArray) -> IntArray:
            """Parts of a loop that a thread gets."""
            return np.where(along, (all_parts - slot + threads - 1) // threads, all_parts)

        own_depths = of_thread(sizes.along_depth, sizes.depths)
        one_step = own_depths * sizes.kernel_parts == 1
        own_rows = of_thread(sizes.along_rows, sizes.down_rows)
        one_place = sizes.across_batches * sizes.across_columns * own_rows == 1
        self.one_channel = of_thread(sizes.along_channels, sizes.across_channels) == 1
        self.input_held = one_step & (self.channel_turn > 0) & (sizes.pixels_outer | one_place)
        if shape.diagonal:
            self.input_held = np.zeros_like(self.input_held)
        self.weights_held = one_step & (self.place > 0) & (~sizes.pixels_outer | self.one_channel)
        below = (self.tap_at == 0) & (self.row_at >= sizes.rows_apart) & (self.rows == loops.table.rows)
        self.input_held |= sizes.rows_again & below
        shared = sizes.along_channels & (slot > 0)
        self.input_held |= sizes.inputs_kept & ((self.channel_turn > 0) | shared)
        shared = sizes.along_rows & (slot > 0)
        self.weights_held |= sizes.weights_kept & ((self.place > 0) | shared)
        if not shape.weighted:
            self.weights_held = numbers > 0
        self.inputs = self.channels if shape.diagonal else self.depth
        self._ahead(loops)

    def _ahead(self, loops: _Loops) -> None:
        """What is kept of the outermost loop comes at once for its first iteration, and for others bit by bit
        beside the one before; but what there is no time for beside the first one comes with the second."""
        sizes, shape, config = loops.sizes, loops.shape, loops.config
        channels, threads = loops.table.channels, loops.table.threads
        inputs = sizes.inputs * sizes.steps * (config.inp_element_bytes / config.bus_bytes)
        weights = sizes.weights * sizes.steps * (config.wgt_element_bytes / config.bus_bytes)
        slots = shape.slots / sizes.tiles

        def share_of(
            tiles: IntArray,
            turns: tuple[IntArray, IntArray],
            beside: IntArray,
            beats: tuple[FloatArray, FloatArray],
            left: FloatArray,
            shared: BoolArray,
        ) -> FloatArray:
            """Of what a tile's step needs as much as is loaded beside it: by the tiles of an iteration, the
            turns of the outermost and of the inner loop, tiles under way with the first one, what is kept and
            what else a tile needs, how much of it there is for the next iteration, and which threads need
            what another one does."""
            (around, inner), (own, other) = turns, beats
            free = np.where(tiles > beside, tiles - beside, tiles)
            time = free * (slots - other) - np.where(tiles > beside, 0.0, own)
            early = np.clip(time / np.maximum(own, 1e-9), 0.0, 1.0)
            begins = early * np.where(tiles > beside, inner > 0, 1.0) / free
            late = ((around == 1) & (inner == 0) & ~shared) * (1 - early)
            return np.asarray(np.where(around == 0, begins, 1 / tiles) * left + late)

        begins = (self.channel_turn == 0) & (self.place == 0)
        step = np.where(sizes.along_channels, threads, 1) * channels
        left = np.clip(shape.channels - self.channel_at - step, 0, channels) / np.maximum(self.channels, 1)
        beside = np.where(sizes.along_rows, np.minimum(threads, sizes.down_rows), 1)
        turns = self.channel_turn, self.place
        share = share_of(
            sizes.pixel_tiles, turns, beside, (weights, inputs), left, sizes.along_rows & (self.slot > 0)
        )
        share = np.where(self.place == 0, begins * 1.0, 0.0) * ~self.weights_held + share
        self.weights_now = np.where(sizes.weights_ahead, share, ~self.weights_held * 1.0)
        left = 1.0 * (self.place + 1 < loops.places)
        beside = np.where(sizes.along_channels, np.minimum(threads, sizes.across_channels), 1)
        share = share_of(
            sizes.across_channels,
            turns[::-1],
            beside,
            (inputs, weights),
            left,
            sizes.along_channels & (self.slot > 0),
        )
        share = np.where(self.channel_turn == 0, begins * 1.0, 0.0) * ~self.input_held + share
        self.inputs_now = np.where(sizes.inputs_ahead, share, ~self.input_held * 1.0)


class TileWalker:
    """Says what the turns of tiled sums do: each is a step of a tile, those of threads come in turn."""

    def __init__(self, shape: Sums, config: Config, table: Tiling) -> None:
        self.shape, self.config, self.table = shape, config, table
        self.store_pace = shape.store_pace(config)
        self.gemm_instructions = 1 if shape.gemms == shape.outputs * shape.depth * shape.taps else 2
        if not shape.weighted and not shape.resets:
            self.gemm_instructions += min(2, sum(taps > 1 for taps in shape.kernel))

    def work(self) -> Work:
        """Of each plan as a whole."""
        shape, config, table = self.shape, self.config, self.table
        sizes = Sizes(shape, config, table)
        loops = _Loops(sizes)
        threads, count = table.threads, len(table.threads)
        uops = np.minimum(sizes.micro_ops, config.uop_depth) * UOP_BYTES / config.bus_bytes
        late = self._late(sizes, uops)
        compute, port, load = self._start(sizes, uops)
        rounds, filling, anew = self._rounds(sizes, loops)
        return Work(
            turns=loops.tiles * loops.steps * threads,
            period=loops.steps * threads,
            round=rounds,
            anew=anew,
            filling=filling,
            threads=threads,
            slots=np.full(count, float(shape.slots)),
            load_bytes=sizes.read_bytes() + shape.residual_product * shape.outputs * config.out_element_bytes,
            store_bytes=np.full(count, float(shape.outputs * config.out_element_bytes)),
            compute_start=compute,
            port_start=port,
            load_start=load,
            late=late,
        )

    def _rounds(self, sizes: Sizes, loops: _Loops) -> tuple[IntArray, IntArray, FloatArray]:
        """Turns after which what buffers hold for several tiles is loaded anew, how many of them load it,
        and beats of it; where channels are outermost and nothing is kept, these are weights, which come at
        once."""
        shape, config, table = self.shape, self.config, self.table
        turn, by_channels = loops.steps * table.threads, ~sizes.pixels_outer
        several = loops.groups * loops.channels > 1
        weights = shape.weights_moved(config, table.channels, table.depth, table.kernel_rows).beats
        inputs = sizes.inputs * (config.inp_element_bytes / config.bus_bytes)
        at_once = by_channels & (loops.steps == 1) & several & shape.weighted
        choices = [
            (sizes.weights_ahead | sizes.inputs_ahead, loops.places * turn, 0 * turn, 0.0 * turn),
            (by_channels & sizes.weights_kept, loops.places * turn, turn, weights * sizes.weight_buffers),
            (~by_channels & sizes.inputs_kept, loops.channels * turn, turn, inputs * sizes.input_buffers),
            (sizes.weights_kept, loops.tiles * turn, loops.channels * turn, weights * sizes.weight_buffers),
            (sizes.inputs_kept, loops.tiles * turn, loops.places * turn, inputs * sizes.input_buffers),
            (at_once, loops.places * turn, 0 * turn, weights * table.threads),
        ]
        where, rounds, filling, beats = zip(*choices, strict=True)
        return (
            np.select(where, rounds, loops.places * turn),
            np.select(where, filling, 0),
            np.select(where, beats, 0.0),
        )

    def _late(self, sizes: Sizes, uops: FloatArray) -> FloatArray:
        """Beats of the second LOAD of the compute unit, if it comes behind the first operands: that of the
        bias, or that of micro-ops, which nothing needs in front of a bias that is not folded into a reset."""
        shape, config = self.shape, self.config
        if not shape.bias or shape.stored or (shape.folded and shape.bias_first):
            return 0.0 * uops
        bias = shape.biases * config.acc_element_bytes / config.bus_bytes
        return np.where(sizes.bias_stays, bias if shape.folded else uops, 0.0)

    def _start(self, sizes: Sizes, uops: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """When the compute unit, the port and the load unit are free: after the first instructions,
        micro-ops in so many beats, clearing of accumulators, and what stays in scratchpads throughout. The
        last LOAD of the first step waits until that of the bias has been asked for."""
        config, shape = self.config, self.shape
        first, stays = fetched_first(config), sizes.bias_stays
        bias_late = shape.folded and not shape.bias_first
        if shape.bias and not shape.stored and not shape.folded:  # they come behind the bias
            uops = np.where(stays, 0.0, uops)
        instructions = 3 + sizes.tiles * (3 * sizes.steps + shape.passes + 1)
        port = first + np.minimum(config.fetch_buffer, instructions) * INSTRUCTION_BYTES / config.bus_bytes
        port = port + uops
        compute = np.where(
            uops > 0, np.maximum(port, first + 3 + config.read_latency) + WRITE_DELAY + 1, first
        )
        if shape.folded:
            compute = compute + sizes.accumulators + compute_depth(config)
        load = np.full(len(compute), float(first + _DISPATCH + shape.residual_product))
        if shape.residual_product:
            port = port + config.wgt_element_bytes / config.bus_bytes
        if shape.stored:
            moved = shape.biases * config.par_element_bytes / config.bus_bytes
            return compute, port + np.where(stays, moved, 0), load
        if shape.bias and not bias_late:
            inputs = sizes.inputs * config.inp_element_bytes / config.bus_bytes
            load = np.where(stays, np.maximum(load, compute - inputs), load)
            moved = shape.biases * config.acc_element_bytes / config.bus_bytes
            loading = REQUEST_STARTUP + config.read_latency + moved + WRITE_DELAY + 1
            compute = compute + np.where(stays, loading, 0)
            port = port + np.where(stays, moved, 0)
        return compute, port, load

    def turns(self, numbers: IntArray, plans: IntArray) -> Turns:
        """What turns do."""
        shape, config = self.shape, self.config
        sizes = Sizes(shape, config, self.table.take(plans))
        loops = _Loops(sizes)
        turn = _Turn(loops, numbers)
        first, last = turn.first, turn.last
        loads, weights = self._loads(turn)
        gemms = np.where(turn.valid, turn.channels * turn.batches * turn.depth * self._met(turn), 0) * 1.0
        elements = turn.channels * turn.batches * turn.rows * turn.columns * 1.0
        out = shape.outputs_moved(config, turn.channels, turn.rows, turn.columns).times(turn.batches)
        found = Turns(
            valid=turn.valid,
            first=first,
            last=last,
            set=np.where(sizes.along_depth, 0, turn.slot),
            loads=loads,
            clear=elements * first if shape.resets else None,
            slots=gemms,
            tail=elements * last * (shape.pass_slots - shape.resets),
            stored=out.beats * last,
            stored_bursts=out.bursts * last,
            fetched=turn.valid * self.gemm_instructions
            + loads.instructions
            + first * shape.resets
            + last * (shape.passes - shape.resets + out.instructions * (1 + shape.residual)),
        )
        if shape.padded:
            found.pads = self._pads(turn, sizes, numbers >= self.table.threads[plans])
        if shape.stored:
            parameters = shape.row_moved(config.par_element_bytes, config, turn.channels).beats
            found.port = last * (parameters * ~sizes.bias_stays + shape.residual * out.beats)
        elif shape.residual_product:
            found.added = out.where(last)
            found.ahead = elements * last * shape.passes_before
            found.adding = elements * last
            found.tail = found.tail - found.ahead - found.adding
        elif shape.residual:
            found.between = out.where(last)
        if shape.bias and not shape.stored and not sizes.bias_stays.all():
            found.before = self._biases(turn, sizes)
        self._add_pieces(found, turn, sizes, gemms, elements)
        if shape.resets and not shape.residual:
            self._by_parts(found, turn, sizes, weights)
        return found

    def _add_pieces(
        self, found: Turns, turn: _Turn, sizes: Sizes, gemms: FloatArray, elements: FloatArray
    ) -> None:
        """In how many pieces tiles are stored, and what those need not wait for: where sums are reset, tiles
        whose accumulators are taken again at once, and else those at the end."""
        ends = turn.last & turn.ends
        if self.shape.resets:
            alone = sizes.along_depth | (sizes.table.threads == 1)
            found.pieces = np.where(ends | alone, parts_of(elements), 1)
            found.beside = found.tail * (1 - 1 / found.pieces)
        else:
            found.pieces = np.where(ends, turn.channels, 1)
            found.beside = ends * gemms * (1 - 1 / np.maximum(turn.channels, 1))

    def _by_parts(self, found: Turns, turn: _Turn, sizes: Sizes, weights: FloatArray) -> None:
        """The last steps of the last tile, one of each thread: those of the first channels come first, then
        their passes beside LOADs of the weights of the others."""
        assert found.loads is not None
        assert found.pieces is not None
        count = sizes.table.threads
        full = (sizes.depths - 1) % count + 1
        before = (turn.steps_left == 1) & (turn.slot >= full)
        number = np.where(before, turn.slot - full, count - full + turn.slot)
        several = sizes.along_depth & (count > 1) & (turn.channels > 1) & (sizes.table.kept == 0)
        several &= sizes.depths >= 2 * count  # so that no buffer holds what a step needs already
        there = several & turn.valid & turn.ends & ((turn.steps_left == 0) | before)
        if not there.any():
            return
        channels = np.maximum(turn.channels, 1)
        elements = channels * turn.batches * turn.rows * turn.columns
        rows = parts(channels, parts_of(elements))
        first, last = np.minimum(rows / channels, 1.0), 1 - (parts(channels, rows) - 1) * rows / channels
        passes = elements * (self.shape.pass_slots - 1.0)
        final = self.shape.depth - (sizes.depths - 1) * sizes.table.depth
        blocks = ((count - 1) * sizes.table.depth + final) / np.maximum(turn.depth, 1)
        products, left = blocks * found.slots, blocks * weights * (1 - first)
        behind = products * (1 - first) + passes
        whole = found.slots * final / np.maximum(turn.depth, 1)
        end = (whole + passes) * last
        beats = blocks * found.loads.beats
        there &= (beats > products) & (np.maximum(end, behind - left) < whole + passes)
        begins = np.rint(count - left * count / np.maximum(beats, 1e-9)) - 1
        begins = np.clip(begins, 0, count - 2)
        shares = np.where(
            number < begins,
            products * first / np.maximum(begins, 1),
            (np.where(begins > 0, behind, products + passes) - end) / np.maximum(count - 1 - begins, 1),
        )
        shares = np.where(number < count - 1, shares, found.slots * last)
        found.slots = np.where(there, shares, found.slots)
        found.tail = np.where(there & turn.last, passes * last, found.tail)
        found.beside = found.tail * (1 - 1 / found.pieces)

    def _loads(self, turn: _Turn) -> tuple[Moved, FloatArray]:
        """LOADs of both operands, and beats of those of weights."""
        shape, config = self.shape, self.config
        inputs = shape.inputs_moved(
            config,
            shape.loaded(0, turn.row_at, turn.rows, turn.tap_at, turn.taps),
            shape.loaded(1, turn.column_at, turn.columns, 0, shape.kernel[1]),
            turn.inputs,
        ).times(turn.batches)
        weights = shape.weights_moved(config, turn.channels, turn.depth, turn.taps)
        some, others = turn.valid * turn.inputs_now, turn.valid * turn.weights_now
        every = Moved(*(one * some + other * others for one, other in zip(inputs, weights, strict=True)))
        return every, weights.beats * others

    def _pads(self, turn: _Turn, sizes: Sizes, later: BoolArray) -> FloatArray:
        """Words of zeros around the input; rows of them stay where all tiles have the same ones."""
        between = later & (sizes.down_rows * sizes.kernel_parts == 1)
        place = turn.row_at, turn.rows, turn.column_at, turn.columns, turn.tap_at, turn.taps
        zeros = self.shape.zeros(*place, between=between)
        return np.asarray(zeros * turn.batches * turn.inputs * (turn.valid & ~turn.input_held) * 1.0)

    def _met(self, turn: _Turn) -> IntArray:
        """Pairs of outputs and taps of a step that meet in the input."""
        down = _between(self.shape.met(0), turn.row_at, turn.rows, turn.tap_at, turn.taps)
        across = _between(
            self.shape.met(1), turn.column_at, turn.columns, 0 * turn.column_at, self.shape.kernel[1]
        )
        return down * across

    def _biases(self, turn: _Turn, sizes: Sizes) -> Moved:
        """LOADs of biases that do not stay: with the channels, if these are the outermost loop, and else with
        each tile."""
        shared = ~sizes.pixels_outer & ~sizes.along_groups
        wanted = np.where(shared, (turn.place == 0) & (turn.slot == 0), ~turn.one_channel | (turn.place == 0))
        wanted = turn.first & ~sizes.bias_stays & wanted
        together = np.where(shared & sizes.along_channels, sizes.table.threads, 1)
        blocks = np.minimum(turn.channels * together, self.shape.channels)
        return self.shape.row_moved(self.config.acc_element_bytes, self.config, blocks).where(wanted)


def _between(
    pairs: IntArray, at: IntArray, size: IntArray, other_at: IntArray, other: IntArray | int
) -> IntArray:
    """How many pairs there are within a box, from how many there are before each corner."""
    width, flat = pairs.shape[1], pairs.reshape(-1)
    above, below = at * width, (at + size) * width
    left, right = other_at, other_at + other
    return np.asarray(flat[below + right] - flat[above + right] - flat[below + left] + flat[above + left])
