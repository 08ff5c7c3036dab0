"""An analytical model of the machine: how many cycles a tiled matrix product takes.

The model steps through tiles and reduce steps, not instructions: it knows what each load, each GEMM and
each store takes, which of them share a buffer, and that the units run side by side. It is what default
schedules are chosen by; :mod:`accel.sim` is what they are measured by.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from accel.compiler.plans.candidate import Prediction
from accel.compiler.plans.gemm_plans import BoolArray, FloatArray, GemmPlan, GemmShape, IntArray, PlanTable
from accel.core.config import INSTRUCTION_BYTES, PAGE_BYTES, UOP_BYTES, Config
from accel.core.timing_rules import REQUEST_STARTUP, WRITE_DELAY, compute_depth, store_depth

_MOST_STEPS = 300
"""Reduce steps that are gone through one by one; longer programs are extrapolated."""
_TOKEN = 1
"""Cycles from a push to the pop it allows."""


_Tile = tuple[int, int, int, int]
"""Row, column, height, width."""


@dataclass(frozen=True)
class _Transfer:
    """Bus cycles of one LOAD or STORE, and its number of bursts."""

    beats: float
    bursts: int


class GemmModel:
    """Predicts plans for one shape on one machine."""

    def __init__(self, shape: GemmShape, config: Config) -> None:
        self.shape = shape
        self.config = config
        self.drain = compute_depth(config)

    @property
    def parameters_stay(self) -> bool:
        """Whether the store unit's parameters of all columns fit their scratchpad."""
        return self.shape.stored and self.shape.columns <= self.config.par_depth

    def fits(self, plans: PlanTable) -> BoolArray:
        """Which plans' buffers fit the scratchpads, and their tokens the counters: a unit may be ahead by as
        many steps as there are threads."""
        config = self.config
        inner = np.where(plans.along_depth, 1, plans.threads)
        acc = inner * plans.rows * plans.columns * (1 + (self.shape.residual and not self.shape.stored))
        if self.shape.bias and not self.shape.stored:
            acc = acc + np.where(plans.rows_outer, self.shape.columns, plans.columns)
        parameters = plans.threads * plans.columns * (self.shape.stored and not self.parameters_stay)
        fitting: BoolArray = (
            (parameters <= (config.par_depth if self.shape.stored else 0))
            & (plans.threads * plans.rows * plans.depth <= config.inp_depth)
            & (plans.threads * plans.columns * plans.depth <= config.wgt_depth)
            & (acc <= config.acc_depth)
            & (plans.threads <= config.token_limit)
        )
        return fitting

    def quick(self, plans: PlanTable) -> FloatArray:
        """A rough lower bound of each plan's cycles, for sorting out those that cannot be good."""
        shape, config = self.shape, self.config
        compute = shape.rows * shape.columns * (shape.depth + shape.passes)
        load = (self.traffic(plans) + INSTRUCTION_BYTES * self.instructions(plans)) / config.bus_bytes
        stored_at_once = config.lanes if shape.stored else config.bus_bytes
        store = shape.rows * shape.columns * config.out_element_bytes / stored_at_once
        step = plans.depth * (
            plans.rows * config.inp_element_bytes + plans.columns * config.wgt_element_bytes
        )
        tail = plans.rows * plans.columns * config.out_element_bytes
        together = np.where(plans.threads == 1, compute + load, np.maximum(np.maximum(compute, load), store))
        tile_rows, tile_columns = -(-shape.rows // plans.rows), -(-shape.columns // plans.columns)
        alone = (plans.threads == 1) | plans.along_depth  # one set of accumulators: its store is waited for
        exposed = np.where(alone, tile_rows * tile_columns, 1) * (
            tail / stored_at_once + config.write_latency + self.drain
        )
        if shape.stored:
            data = shape.columns * config.par_element_bytes / config.bus_bytes
            return np.asarray(together + config.read_latency + step / config.bus_bytes + exposed + data)
        if shape.bias:
            biases = np.where(plans.rows_outer, 1, tile_columns)
            data = shape.columns * config.acc_element_bytes / config.bus_bytes
            exposed = exposed + data + biases * (config.read_latency + self.drain)
        if shape.residual:
            exposed = exposed + store + tile_rows * tile_columns * (config.read_latency + self.drain)
        bound: FloatArray = together + config.read_latency + step / config.bus_bytes + exposed
        return bound

    def traffic(self, plans: PlanTable) -> FloatArray:
        """Bytes of both operands that each plan loads. What a buffer holds is not loaded again."""
        shape, config = self.shape, self.config
        tile_rows, tile_columns = -(-shape.rows // plans.rows), -(-shape.columns // plans.columns)
        sets = np.where(plans.along_depth, plans.threads, 1)
        inner = np.where(plans.along_depth, 1, plans.threads)
        depth = _alone(shape.depth, plans.depth, sets)
        a_stays = np.where(
            plans.rows_outer,
            shape.rows * np.minimum(inner, tile_columns),
            shape.rows * tile_columns - _alone(shape.rows, plans.rows, inner) * (tile_columns - 1),
        )
        b_stays = np.where(
            plans.rows_outer,
            shape.columns * tile_rows - _alone(shape.columns, plans.columns, inner) * (tile_rows - 1),
            shape.columns * np.minimum(inner, tile_rows),
        )
        a = depth * a_stays + (shape.depth - depth) * shape.rows * tile_columns
        b = depth * b_stays + (shape.depth - depth) * shape.columns * tile_rows
        loaded: FloatArray = 1.0 * a * config.inp_element_bytes + 1.0 * b * config.wgt_element_bytes
        return loaded

    def instructions(self, plans: PlanTable) -> FloatArray:
        """About how many instructions each plan takes."""
        shape = self.shape
        tiles = -(-shape.rows // plans.rows) * -(-shape.columns // plans.columns)
        number: FloatArray = tiles * (3.0 * -(-shape.depth // plans.depth) + shape.passes + 1)
        return number

    def predict(self, plan: GemmPlan) -> Prediction:
        """The cycles of a plan, and how busy it keeps each unit."""
        return _Walk(self, plan).predict()

    def transfer(self, rows: int, columns: int, whole_columns: int, element: int) -> _Transfer:
        """A box of ``rows`` runs of ``columns`` elements out of a tensor with ``whole_columns`` a row."""
        if columns == whole_columns:
            rows, columns = 1, rows * columns
        row_bytes = columns * element
        longest = min(PAGE_BYTES, self.config.max_burst_beats * self.config.bus_bytes)
        per_row = float(-(-row_bytes // longest))
        if row_bytes % longest and (columns != whole_columns or rows > 1):
            per_row += row_bytes / longest % 1  # rows that are not aligned meet a boundary that often
        lanes = max(1, self.config.bus_bytes // element)  # elements of a beat, in any of which a row starts
        aligned = columns % lanes == whole_columns % lanes == 0
        edges = 0.0 if aligned else (lanes - 1) / lanes
        beats = rows * max(1.0, row_bytes / self.config.bus_bytes + edges)
        return _Transfer(beats, int(rows * per_row + 0.5))

    def data_cycles(self, transfer: _Transfer, latency: int) -> float:
        """Bus cycles, were requests always early: short bursts are limited by how many are in flight."""
        flying = self.config.outstanding
        return max(transfer.beats, transfer.bursts, transfer.bursts * latency / flying)


class _Walk:
    """One pass through the tiles of a plan."""

    def __init__(self, model: GemmModel, plan: GemmPlan) -> None:
        self.model = model
        self.plan = plan
        self.shape = model.shape
        self.config = model.config
        self.load_free = 0.0
        self.port_free = 0.0
        self.compute_free = 0.0
        self.store_free = 0.0
        self.compute_busy = 0.0
        self.load_busy = 0.0
        self.store_busy = 0.0
        self.in_flight = 0.0
        """Beats that operand loads may have been granted ahead of everybody else."""
        self.step_done: dict[int, float] = {}
        """When the GEMM that last read a buffer pair is done: what its next loads wait for."""
        self.stored: dict[int, float] = {}
        """When the last tile in a set of accumulators is stored."""
        self.held: dict[tuple[str, int], _Tile] = {}
        self.ready: dict[tuple[int, int], float] = {}
        """When operands of the next tiles are there that have been asked for already."""

    def predict(self) -> Prediction:
        groups = self._groups()
        steps = -(-self.shape.depth // self.plan.depth)
        per_group = steps * self.plan.threads
        most = max(4, _MOST_STEPS // max(1, per_group))
        self.compute_free = self._startup()
        if self.model.parameters_stay:
            self._parameters(self.shape.columns)
        following = [*groups[1:], []]
        if len(groups) <= 2 * most:
            for group, after in zip(groups, following, strict=True):
                self._group(group, after)
            scale = 1.0
            cycles = max(self.compute_free, self.store_free)
        else:
            for group, after in zip(groups[:most], following, strict=False):
                self._group(group, after)
            before = self.compute_free
            done = sum(r * c for g in groups[:most] for _, _, r, c in g)
            total = sum(r * c for g in groups for _, _, r, c in g)
            tail = max(0.0, self.store_free - self.compute_free)
            scale = total / done
            cycles = before * scale + tail
        return Prediction(
            cycles=cycles,
            compute=self.compute_busy * scale,
            load=self.load_busy * scale,
            store=self.store_busy * scale,
        )

    def _startup(self) -> float:
        """Fetching the first instructions and the LOAD of micro-ops."""
        uops = 64 * UOP_BYTES / self.config.bus_bytes
        fetched = self.config.read_latency + 4
        self.load_free = fetched
        return fetched + self.config.read_latency + uops + 4

    def _groups(self) -> list[list[_Tile]]:
        """The tiles (row, column, height, width), in groups that are interleaved."""
        plan, shape = self.plan, self.shape
        heights = _cuts(shape.rows, plan.rows)
        widths = _cuts(shape.columns, plan.columns)
        outer, inner = (heights, widths) if plan.outer == "rows" else (widths, heights)
        together = plan.threads if plan.thread_axis == "inner" else 1
        groups = []
        for o, first in enumerate(outer):
            for begin in range(0, len(inner), together):
                group = []
                for i in range(begin, min(begin + together, len(inner))):
                    tile = (o, i, first, inner[i]) if plan.outer == "rows" else (i, o, inner[i], first)
                    group.append(tile)
                groups.append(group)
        return groups

    def _group(self, group: list[_Tile], following: list[_Tile]) -> None:
        """Tiles that are interleaved, from their first reduce step to their STOREs.

        While the compute unit waits for a residual, the load unit goes on as far as there are buffers, with
        the tiles that are ``following`` too.
        """
        shape = self.shape
        depths = _cuts(shape.depth, self.plan.depth)
        turns = [(number, slot) for number in range(len(depths)) for slot in range(len(group))]
        ready, self.ready = self.ready, {}
        if self._wants_bias(group[0]):  # meanwhile the load unit goes on as far as there are buffers
            for number, slot in turns[: self.plan.threads]:
                if (number, slot) not in ready:
                    ready[number, slot] = self._load(number, slot, group[slot], depths[number])
        for number, slot in turns:
            if shape.residual and not shape.stored and not slot and number == len(depths) - 1:
                early = [turn for turn in turns if turn[0] == number and turn not in ready]
                ready |= {turn: self._load(*turn, group[turn[1]], depths[number]) for turn in early}
            _, _, height, width = group[slot]
            if not number:
                self._bias(group[slot])
                self._compute(height * width * shape.resets, self.stored.get(slot, 0.0))
            if (number, slot) not in ready:
                ready[number, slot] = self._load(number, slot, group[slot], depths[number])
            done = self._compute(height * width * depths[number], ready[number, slot] + _TOKEN)
            self.step_done[self._buffers(number, slot)] = done
            self._fetch(3)
            if number == len(depths) - 1:
                if shape.residual and not shape.stored:
                    self._accumulators(self._outputs(height, width))
                    if slot < len(following) and len(depths) > 1:
                        self.ready[0, slot] = self._load(0, slot, following[slot], depths[0])
                done = self._compute(height * width * (shape.passes - shape.resets), 0.0)
                self._store(slot, height, width, done)
                self._fetch(shape.passes + 1)

    def _buffers(self, number: int, slot: int) -> int:
        """Which pair of operand buffers a turn uses."""
        return slot if self.plan.thread_axis == "inner" else number % self.plan.threads

    def _fetch(self, instructions: int) -> None:
        """Reading instructions ahead of their time, which takes the port from others."""
        self.port_free += instructions * INSTRUCTION_BYTES / self.config.bus_bytes

    def _compute(self, slots: float, ready: float) -> float:
        """Run micro-ops once they may start; returns when their results are there."""
        start = max(self.compute_free, ready)
        self.compute_free = start + slots
        self.compute_busy += slots
        return self.compute_free + self.model.drain

    def _biased(self, tile: _Tile) -> _Tile:
        """The columns whose bias a tile wants to be there."""
        _, column, _, width = tile
        return (0, self.shape.columns, 0, 0) if self.plan.outer == "rows" else (column, width, 0, 0)

    def _wants_bias(self, tile: _Tile) -> bool:
        return self.shape.bias and not self.shape.stored and self.held.get(("bias", 0)) != self._biased(tile)

    def _bias(self, tile: _Tile) -> None:
        """LOAD of the bias."""
        if not self._wants_bias(tile):
            return
        self.held["bias", 0] = self._biased(tile)
        width = self._biased(tile)[1]
        self._accumulators(self.model.transfer(1, width, width, self.config.acc_element_bytes))

    def _accumulators(self, transfer: _Transfer) -> None:
        """A LOAD into the accumulators; the pipeline is empty before and after."""
        start = self.compute_free + self.model.drain + _TOKEN + REQUEST_STARTUP
        ahead = min(max(0.0, self.port_free - start), self.in_flight)  # granted before, cannot be overtaken
        end = start + max(ahead, self.config.read_latency) + transfer.beats
        self.port_free = max(self.port_free + transfer.beats, end)
        self.compute_free = end + WRITE_DELAY + 1
        self.load_busy += transfer.beats

    def _load(self, step: int, slot: int, tile: _Tile, depth: int) -> float:
        """LOADs of both operands; returns when the data is there."""
        shape, config, model = self.shape, self.config, self.model
        row, column, height, width = tile
        buffers = self._buffers(step, slot)
        free = self.step_done.get(buffers, 0.0)
        done = beats = 0.0
        bursts = 0
        for name, content, box, element in (
            (
                "a",
                (row, step, height, depth),
                (height, depth, shape.rows, shape.depth, shape.transpose_a),
                config.inp_element_bytes,
            ),
            (
                "b",
                (column, step, width, depth),
                (width, depth, shape.columns, shape.depth, not shape.transpose_b),
                config.wgt_element_bytes,
            ),
        ):
            if self.held.get((name, buffers)) == content:
                continue
            self.held[name, buffers] = content
            lines, length, all_lines, all_length, transposed = box
            if transposed:
                lines, length, all_length = length, lines, all_lines
            transfer = model.transfer(lines, length, all_length, element)
            start = max(self.load_free, free + _TOKEN)
            data = model.data_cycles(transfer, config.read_latency)
            first = max(start + REQUEST_STARTUP + config.read_latency, self.port_free)
            self.port_free = first + data
            self.load_free = max(start + 1 + transfer.bursts, self.port_free - config.read_latency)
            self.load_busy += transfer.beats
            beats, bursts = beats + transfer.beats, bursts + transfer.bursts
            self.in_flight = config.outstanding * beats / bursts
            done = self.port_free + WRITE_DELAY
        return done

    def _parameters(self, columns: int) -> None:
        """LOAD of the store unit's parameters, beside which others wait for the port."""
        self.port_free += columns * self.config.par_element_bytes / self.config.bus_bytes

    def _outputs(self, height: int, width: int) -> _Transfer:
        """A tile of the result, or of the residual."""
        return self.model.transfer(height, width, self.shape.columns, self.config.out_element_bytes)

    def _store(self, slot: int, height: int, width: int, ready: float) -> None:
        transfer = self._outputs(height, width)
        start = max(self.store_free, ready + _TOKEN)
        data = self.model.data_cycles(transfer, self.config.write_latency)
        if self.shape.stored:
            data *= self.config.bus_bytes / self.config.lanes
            if not self.model.parameters_stay:
                self._parameters(width)
            if self.shape.residual:
                self.port_free += transfer.beats
        end = start + REQUEST_STARTUP + store_depth(self.config) + data
        self.store_busy += transfer.beats
        self.store_free = end
        self.stored[slot] = end + self.config.write_latency + _TOKEN


def _alone(size: int, parts: IntArray, buffers: IntArray) -> IntArray:
    """How much of ``size``, cut into parts that take turns in the buffers, has a buffer of its own."""
    count = -(-size // parts)
    own: IntArray = np.where(count <= buffers, size, np.maximum(0, 2 * buffers - count) * parts)
    return own


def _cuts(size: int, part: int) -> list[int]:
    """Sizes of the parts that ``size`` is cut into; the last one may be shorter."""
    return [min(part, size - begin) for begin in range(0, size, part)]
