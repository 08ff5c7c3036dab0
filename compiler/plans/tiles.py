"""Plans of sums of products, many at once: tiles of the output, steps of the sum, threads.

What matrix products and convolutions share: which plans fit, what they load, and a rough bound of what each
takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from accel.compiler.plans.arrays import BoolArray, FloatArray, IntArray
from accel.compiler.plans.sums import Sums
from accel.compiler.target.parts import parts_of
from accel.core.config import INSTRUCTION_BYTES, Config
from accel.core.memories import SCRATCHPADS
from accel.core.timing_rules import compute_depth

THREAD_AXES = ("channels", "rows", "depth", "groups")
"""``channels`` and ``rows``: tiles side by side in that direction; ``depth``: the steps of one tile;
``groups``: the same tile of neighbouring groups."""
OUTERS = ("channels", "pixels")
"""The loop over tiles that is outermost: all tiles of some channels come before those of the next ones, or
all channels of a place before the next place."""


KEPT = ("nothing", "weights", "inputs", "both")
"""What scratchpads keep of all steps, as long as tiles need the same of it: where channels are outermost,
weights of the channels and all inputs, else inputs of the place and all weights."""


_APART = 2
"""Micro-ops in place of one where padding is cut off, about."""
_PIECES = 16
"""Of products at the end, at most."""
_PASSES = 8
"""Micro-ops of what else there is than products, about."""


class Tiling(NamedTuple):
    """One array per attribute of a plan; choices by number. Arrays have one element for each plan, or, in
    tables of all combinations of two sets of attributes, shapes that broadcast.

    Attributes:
        channels, depth: blocks in a tile of the output, and in a step of the sum.
        rows, columns: of a tile.
        kernel_rows: in a step.
        threads: virtual threads.
        thread_axis: index into :data:`THREAD_AXES`.
        outer: index into :data:`OUTERS`.
        batches: blocks of the batch in a tile.
        kept: index into :data:`KEPT`.
        ahead: 1 if there is room for what is kept next of the outermost loop, else 0.
    """

    channels: IntArray
    rows: IntArray
    columns: IntArray
    depth: IntArray
    kernel_rows: IntArray
    threads: IntArray
    thread_axis: IntArray
    outer: IntArray
    batches: IntArray
    kept: IntArray
    ahead: IntArray

    @classmethod
    def grid(cls, *choices: Sequence[int]) -> Tiling:
        """All combinations of choices for each attribute."""
        return cls(*(axis.reshape(-1) for axis in np.meshgrid(*choices, indexing="ij")))

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> Tiling:
        """Of plans that are rows of a table."""
        return cls(*np.array(rows, dtype=np.int64).reshape(-1, len(cls._fields)).T)

    def take(self, chosen: IntArray | BoolArray) -> Tiling:
        """Some of the plans."""
        return Tiling(*(array[chosen] for array in self))

    def where(self, chosen: BoolArray) -> Tiling:
        """Those of the plans that are chosen, one behind the other; ``chosen`` may broadcast, too."""
        shape = np.broadcast_shapes(chosen.shape, *(array.shape for array in self))
        places = np.nonzero(np.broadcast_to(chosen, shape))
        return Tiling(*(np.broadcast_to(array, shape)[places] for array in self))

    def rows_of(self) -> list[tuple[int, ...]]:
        """The plans as rows of a table."""
        return list(zip(*(array.tolist() for array in self), strict=True))

    @classmethod
    def joined(cls, tables: Sequence[Tiling]) -> Tiling:
        """All plans of some tables."""
        return cls(*(np.concatenate(columns) for columns in zip(*tables, strict=True)))


def parts(a: IntArray | int, b: IntArray | int) -> IntArray:
    """How many parts of size ``b`` there are of ``a``, the last one maybe smaller."""
    return np.asarray(-(-a // b))


class Sizes:
    """What follows from a table of plans: numbers of tiles and steps, sizes of buffers, bytes."""

    def __init__(self, shape: Sums, config: Config, table: Tiling) -> None:
        self.shape, self.config, self.table = shape, config, table
        self.along_channels = table.thread_axis == THREAD_AXES.index("channels")
        self.along_rows = table.thread_axis == THREAD_AXES.index("rows")
        self.along_depth = table.thread_axis == THREAD_AXES.index("depth")
        self.along_groups = table.thread_axis == THREAD_AXES.index("groups")
        self.pixels_outer = table.outer == OUTERS.index("pixels")
        self.across_channels = parts(shape.channels, table.channels)
        self.down_rows = parts(shape.rows, table.rows)
        self.across_columns = parts(shape.columns, table.columns)
        self.across_batches = parts(shape.batches, table.batches)
        self.pixel_tiles = self.across_batches * self.down_rows * self.across_columns
        self.tiles = shape.groups * self.across_channels * self.pixel_tiles
        self.depths = parts(shape.depth, table.depth)
        self.kernel_parts = parts(shape.kernel[0], table.kernel_rows)
        self.steps = self.depths * self.kernel_parts
        self.elements = table.channels * table.batches * table.rows * table.columns
        """Accumulators of a tile."""
        self.accumulators = np.where(self.along_depth, 1, table.threads) * self.elements
        """Of all threads, without a residual's."""
        self.inputs = (
            (table.channels if shape.diagonal else table.depth)
            * table.batches
            * shape.seen(0, table.rows, table.kernel_rows)
            * shape.seen(1, table.columns, shape.kernel[1])
        )
        """Elements of a step."""
        taps = table.kernel_rows * shape.kernel[1]
        self.weights = table.channels * table.depth * taps if shape.weighted else 0 * table.depth
        """Elements of a step."""
        self.units = 0 if shape.weighted and not shape.residual_product else 1
        """Blocks of the identity matrix, which stay in wgt_buffer throughout."""
        self.weights_kept = table.kept % 2 == KEPT.index("weights")
        self.inputs_kept = table.kept >= KEPT.index("inputs")
        ahead = table.ahead > 0
        self.weights_ahead = ahead & self.weights_kept & ~self.pixels_outer
        self.inputs_ahead = ahead & self.inputs_kept & self.pixels_outer & (not shape.diagonal)
        self.residuals = self.accumulators * shape.residual_product
        """Elements that the load unit brings of a residual, for all threads."""

    @property
    def bias_stays(self) -> BoolArray:
        """Whether the bias of all channels lies beside the tiles throughout."""
        if self.shape.stored:
            return np.full(self.tiled.shape, self.shape.biases <= self.config.par_depth)
        room = self.tiled + self.shape.biases <= self.config.acc_depth
        return self.shape.bias_stays(self.pixels_outer, room)

    @property
    def tiled(self) -> IntArray:
        """Elements of acc_buffer that tiles take."""
        tiled: IntArray = self.accumulators * (1 + self.shape.residual_loaded)
        return tiled

    def fits(self) -> BoolArray:
        """Which plans' buffers and micro-ops fit the scratchpads, and their tokens the counters."""
        return self.has_room() & self.has_micro_ops()

    def has_micro_ops(self) -> BoolArray:
        """Which plans' micro-ops fit their scratchpad, of those that keep something; others load fewer."""
        if not self.table.kept.any():
            return np.full(self.tiled.shape, True)
        return np.asarray((self.table.kept == 0) | (self.micro_ops <= self.config.uop_depth))

    def has_room(self) -> BoolArray:
        """Which plans' buffers fit the scratchpads, and their tokens the counters."""
        found: BoolArray = self.table.threads + self._ahead <= self.config.token_limit
        for name, elements in self.needs().items():
            found = found & (elements <= SCRATCHPADS[name].depth(self.config))
        return found

    def needs(self) -> dict[str, IntArray]:
        """Elements that plans' buffers take, by scratchpad."""
        stays, table, found = self.bias_stays, self.table, {}
        bias: IntArray | int = 0
        if self.shape.stored:
            found["par"] = np.where(stays, 0, table.threads * table.channels)
        else:
            bias = np.where(stays, self.shape.biases, self._bias_of_tiles()) * self.shape.bias
        return found | {
            "inp": self.input_buffers * self.inputs + self.residuals,
            "wgt": self.weight_buffers * self.weights + self.units,
            "acc": self.tiled + bias,
        }

    @cached_property
    def input_buffers(self) -> IntArray:
        """Buffers that inputs of a step have."""
        own = self._threads(self.along_rows | self.along_groups)
        places = self.across_batches * self.across_columns * self._turns(self.along_rows, self.down_rows)
        buffers = self._kept_steps * own * np.where(self.pixels_outer, 1 + self.inputs_ahead, places)
        return np.where(self.inputs_kept, buffers, self.table.threads)

    @cached_property
    def weight_buffers(self) -> IntArray:
        """Buffers that weights of a step have."""
        own = self._threads(self.along_channels | self.along_groups)
        channels = self._turns(self.along_channels, self.across_channels)
        buffers = self._kept_steps * own * np.where(self.pixels_outer, channels, 1 + self.weights_ahead)
        return np.where(self.weights_kept, buffers, self.table.threads)

    @property
    def _ahead(self) -> IntArray:
        """LOADs that wait for no computation."""
        inputs, weights = self.inputs_kept * self.input_buffers, self.weights_kept * self.weight_buffers
        return np.asarray(inputs + weights)

    @cached_property
    def micro_ops(self) -> FloatArray:
        """About how many are loaded: of each kind of tiles and each thread those of all loops but the two
        longest, which an instruction has; where padding is cut off, some of a loop come apart, and of
        columns all. What is kept lies elsewhere for each step. Products that are cut up at the end have
        their own."""
        table, shape = self.table, self.shape
        across = np.full_like(table.depth, shape.kernel[1])
        others = (table.channels, table.batches, table.rows, table.depth)
        every = np.stack([*others, table.columns, table.kernel_rows, across])
        inside = np.prod(np.sort(every, axis=0)[:-2], axis=0)
        down = each(partial(shape.kinds, 0), table.rows, table.kernel_rows)
        cut = each(partial(shape.kinds, 1), table.columns, across)
        kinds = down * cut
        inside = inside * np.where(kinds > 1, _APART, 1)
        apart = np.prod(np.sort(np.stack(others), axis=0)[:-2], axis=0)
        apart = apart * table.columns * table.kernel_rows * across
        inside = np.maximum(inside, apart) if shape.cut else inside
        places = np.where(self.weights_kept & self.pixels_outer, self.across_channels, 1)
        places = places * np.where(self.inputs_kept & ~self.pixels_outer, self.pixel_tiles, 1)
        turns = parts(self.pixel_tiles, self._threads(self.along_rows))
        each_step = np.minimum(parts(down, self.kernel_parts) * cut, turns)
        kinds = np.where(table.kept > 0, self.steps * places * (1 + table.ahead) * each_step, kinds)
        rows = np.where(table.columns < shape.columns, table.channels * table.rows, table.channels)
        ends = 0 if shape.resets else np.minimum(rows, _PIECES) * (rows > 1)
        return np.asarray(table.threads * inside * (kinds + ends) + _PASSES)

    @cached_property
    def _kept_steps(self) -> IntArray:
        """Buffers that something of all steps has."""
        depths = self._turns(self.along_depth, self.depths) * self._threads(self.along_depth)
        return np.asarray(depths * self.kernel_parts)

    def _threads(self, along: BoolArray) -> IntArray:
        return np.where(along, self.table.threads, 1)

    def _turns(self, along: BoolArray, all_parts: IntArray) -> IntArray:
        """Iterations of a loop, of which threads take some side by side."""
        return np.where(along, parts(all_parts, self.table.threads), all_parts)

    def _bias_of_tiles(self) -> IntArray:
        threads: IntArray = np.where(
            ~self.along_depth & (self.pixels_outer | self.along_channels | self.along_groups),
            self.table.threads,
            1,
        )
        return threads * self.table.channels

    @property
    def turns(self) -> IntArray:
        """Iterations of the loop that threads share."""
        others = np.where(self.along_groups, self.shape.groups, self.across_channels)
        return np.where(self.along_depth, self.depths, np.where(self.along_rows, self.down_rows, others))

    def useful(self, threads: int | None = None) -> BoolArray:
        """Whether there is something to do for each thread, or for several if no number of ``threads`` was
        asked for."""
        least = 2 if threads is None else self.table.threads
        useful: BoolArray = np.where(self.table.threads == 1, self.along_channels, self.turns >= least)
        if self.shape.groups > 1:  # tiles of channels do not reach into the next group
            whole = self.shape.channels % self.table.channels == 0
            useful &= whole & ((self.table.threads == 1) | ~self.along_channels)
        return useful

    def keeps_well(self) -> BoolArray:
        """Whether all that is kept would be loaded more often otherwise, and what takes its place later waits
        for no more than a step."""
        ahead = self.table.ahead > 0
        several, one_group = (self.steps > 1) | ahead, self.shape.groups == 1
        inputs, weights = self._read()
        weights_stay = one_group & (self.pixels_outer | (self.across_channels == 1))
        inputs_stay = one_group & (~self.pixels_outer | (self.pixel_tiles == 1))
        of_weights = (several | weights_stay) & ((weights > self._weights_once) | self.weights_ahead)
        of_inputs = (several | inputs_stay) & ((inputs > self._inputs_once) | self.inputs_ahead)
        of_weights &= self.shape.weighted
        found: BoolArray = (~self.weights_kept | of_weights) & (~self.inputs_kept | of_inputs)
        turns, places = self._turns(self.along_channels, self.across_channels), self.pixel_tiles
        outer, inner = np.where(self.pixels_outer, (places, turns), (turns, places))
        useful = (self.weights_ahead | self.inputs_ahead) & one_group & (outer > 1) & (inner > 1)
        found &= useful | ~ahead
        return found

    def instructions(self) -> IntArray:
        """About how many instructions each plan takes."""
        shape = self.shape
        per_step = 2 + np.where(shape.taps > 1, self.table.depth, 1)
        number: IntArray = self.tiles * (self.steps * per_step + shape.passes + 1 + shape.residual)
        return number

    # --- bytes -----------------------------------------------------------------------------------------

    @cached_property
    def alone(self) -> IntArray:
        """Blocks of depth that have a buffer of their own, so that it may still hold them later."""
        threads = np.where(self.along_depth, self.table.threads, 1)
        own = _alone(self.shape.depth, self.table.depth, threads)
        return np.where(self.kernel_parts == 1, own, 0)

    @cached_property
    def rows_again(self) -> BoolArray:
        """Whether a tile's first step needs what the last one of the tile above has left in the buffer."""
        below = np.where(self.pixels_outer, self._turns(self.along_channels, self.across_channels) == 1, True)
        one_depth = self._turns(self.along_depth, self.depths) == 1
        alike = self.shape.same_rows(self.rows_apart, self.table.kernel_rows)
        return np.asarray(below & one_depth & (self.across_columns == 1) & alike & ~self.inputs_kept)

    @property
    def rows_apart(self) -> IntArray:
        """Rows from a tile to the one below that the same buffers are for."""
        return self.table.rows * self._threads(self.along_rows)

    @cached_property
    def _plane(self) -> IntArray:
        """Elements of a block of depth that all tiles load of the input, each by itself but for rows that a
        buffer still holds."""
        shape, table = self.shape, self.table
        down = each(lambda rows, taps: shape.loaded_by(0, rows, taps), table.rows, table.kernel_rows)
        again = np.maximum(shape.rows // table.rows - self._threads(self.along_rows), 0)
        down = down - self.rows_again * again * shape.seen(0, table.rows, table.kernel_rows)
        across = each(
            lambda columns, taps: shape.loaded_by(1, columns, taps),
            table.columns,
            np.full_like(table.columns, shape.kernel[1]),
        )
        return np.asarray(shape.groups * shape.batches * down * across)

    @property
    def _inputs_once(self) -> IntArray:
        """Elements of inputs, if no channels load them again."""
        return (self.shape.channels if self.shape.diagonal else self.shape.depth) * self._plane

    @property
    def _weights_once(self) -> int:
        """Elements of weights."""
        shape = self.shape
        return shape.groups * shape.taps * shape.depth * shape.channels

    def _read(self) -> tuple[FloatArray, FloatArray]:
        """Elements of inputs and of weights that each plan loads if nothing is kept of several steps. What a
        buffer holds is not loaded again."""
        shape, table, plane = self.shape, self.table, self._plane
        beside = np.where(self.along_channels, table.threads, 1)
        above = np.where(self.along_rows, table.threads, 1)
        held, again = np.minimum(beside, self.across_channels), self.across_channels
        one_place = (self.across_batches == 1) & (self.across_columns == 1)
        rows = np.where(self.pixels_outer, shape.rows, one_place * _alone(shape.rows, table.rows, above))
        stays = plane * (1.0 * rows / shape.rows * held + (1 - 1.0 * rows / shape.rows) * again)
        inputs = self.alone * stays + (shape.depth - self.alone) * (plane * again)
        if shape.diagonal:
            inputs = np.asarray(1.0 * plane * shape.channels)
        if not shape.weighted:
            return inputs, np.full(len(table.rows), 1.0 * self.units)
        places = self.across_batches * self.across_columns
        held, again = np.minimum(above, self.down_rows), self.down_rows * places
        own = _alone(shape.channels, table.channels, beside)
        channels = np.where(self.pixels_outer, own, shape.channels)
        stays = channels * held + (shape.channels - channels) * again
        steps = self.alone * stays + (shape.depth - self.alone) * shape.channels * again
        return inputs, 1.0 * shape.groups * shape.taps * steps

    def read_bytes(self) -> FloatArray:
        """Bytes of both operands that each plan loads."""
        inputs, weights = self._read()
        inputs = np.where(self.inputs_kept, self._inputs_once, inputs)
        weights = np.where(self.weights_kept, self._weights_once, weights)
        config = self.config
        read: FloatArray = np.rint(inputs * config.inp_element_bytes + weights * config.wgt_element_bytes)
        return read

    # --- time ------------------------------------------------------------------------------------------

    def quick(self) -> FloatArray:
        """Rough cycles of each plan, for sorting out those that cannot be good."""
        shape, config, table = self.shape, self.config, self.table
        latency = config.read_latency + compute_depth(config) + 8
        inputs = self.inputs * (config.inp_element_bytes / config.bus_bytes)
        weights = self.weights * (config.wgt_element_bytes / config.bus_bytes)
        fills = self.tiles * self.steps
        load = self.read_bytes() / config.bus_bytes
        fetched = self.instructions() * (INSTRUCTION_BYTES / config.bus_bytes)
        biases = shape.bias and not shape.stored
        if shape.stored or shape.residual_product:
            load = load + shape.residual * shape.outputs * (config.out_element_bytes / config.bus_bytes)
        if shape.stored:
            fetched = fetched + np.where(
                self.bias_stays, 0, self.tiles * table.channels * config.par_element_bytes / config.bus_bytes
            )
        store = self.elements * (config.out_element_bytes / config.bus_bytes) * shape.store_pace(config)
        sums = shape.slots + shape.residual_loaded * self.tiles * (latency + store)
        kept = np.where(self.bias_stays, 0, np.where(self.pixels_outer, self.tiles, self.across_channels))
        sums = sums + biases * kept * latency
        alone = table.threads == 1
        waits = latency * np.where(self.alone > 0, np.maximum(self.tiles, 1), fills)
        waited = alone | self.along_depth
        if shape.resets:  # else parts of the next tile are computed beside it
            waited &= parts_of(self.elements) == 1
        stored = np.where(waited, self.tiles * (store + config.write_latency), 0)
        chained = (sums + load + waits) / table.threads
        port = load + np.maximum(0, fetched - config.fetch_buffer * INSTRUCTION_BYTES / config.bus_bytes)
        busy = np.maximum(np.maximum(sums, port), np.maximum(chained, self.tiles * store)) + stored
        cleared = self.elements * shape.resets + self.accumulators * shape.folded
        element = config.par_element_bytes if shape.stored else config.acc_element_bytes * shape.bias
        bias = shape.biases * element / config.bus_bytes
        start = np.maximum(inputs + weights + bias, cleared)
        quick: FloatArray = busy + start + store + 2.0 * latency
        return quick


def _alone(size: int, parts: IntArray, buffers: IntArray) -> IntArray:
    """How much of ``size``, cut into parts that take turns in the buffers, has a buffer of its own."""
    count = -(-size // parts)
    own: IntArray = np.where(count <= buffers, size, np.maximum(0, 2 * buffers - count) * parts)
    return own


def each(of: Callable[[int, int], int], first: IntArray, second: IntArray) -> IntArray:
    """A function of two sizes, of each pair that there is once."""
    base = int(second.max(initial=0)) + 1
    keys = first * base + second
    values: IntArray = np.zeros(int(keys.max(initial=0)) + 1, dtype=np.int64)
    values[keys] = 1
    for key in np.flatnonzero(values).tolist():
        values[key] = of(*divmod(key, base))
    return np.asarray(values[keys])
