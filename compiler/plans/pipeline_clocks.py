"""The cycles in which units, buffers and accumulators become free, for many plans at once."""

from __future__ import annotations

import numpy as np

from accel.compiler.plans.pipeline_steps import PlanWork
from accel.compiler.plans.plan_arrays import BoolArray, FloatArray, IntArray
from accel.compiler.plans.step_resources import NEVER, TOKEN_DELAY, OperandLoads, StepResources, TileStores
from accel.core.config import Config
from accel.core.timing_rules import REQUEST_STARTUP, WRITE_DELAY, compute_depth


class UnitClocks:
    """Clocks of all plans, in cycles.

    Clocks of buffers have a row for each thread, and one more for steps without LOADs. Clocks of accumulators
    have a row for each set, one for a set that is always free, and one for steps without a STORE.

    Attributes:
        compute, port, write: when the compute unit, read port and write port are free.
        load: when the data of the load unit's next request can arrive.
        used: by buffer, when new data can arrive because the old data has been read.
        ready: by buffer, when its data is there.
        stored: by set of accumulators, when its last beat is written.
        partly_stored: by set of accumulators, when its first piece is written.
        read_queues: when the next burst (row 0) and the next LOAD (row 1) can have data, limited by those in
            flight.
        write_queue: the same for written bursts.
        padding_before: by buffer, all zero words up to those of its data.
        padding_written, padding_issued: written zero words, and those of all LOADs so far.
        last_data: when the last beat of an operand LOAD arrived.
    """

    def __init__(self, config: Config, work: PlanWork) -> None:
        self.config = config
        self.latency = float(config.read_latency)
        self.drain = compute_depth(config)
        self.count, threads = len(work.threads), int(work.threads.max(initial=1))
        self.compute, self.port = work.compute_start.copy(), work.port_start.copy()
        self.write = np.zeros(self.count)
        self.load = work.load_start + REQUEST_STARTUP + self.latency
        self.used, self.ready, self.residual_used, self.residual_ready = (
            np.zeros((threads + 1, self.count)) for _ in range(4)
        )
        self.stored, self.partly_stored = np.full((2, threads + 2, self.count), -float(config.write_latency))
        self.read_queues, self.write_queue = np.full((2, self.count), NEVER), np.full(self.count, NEVER)
        self.padding_before = np.zeros((threads + 1, self.count))
        self.padding_written, self.padding_issued, self.last_data = (np.zeros(self.count) for _ in range(3))

    def skip(self, plans: IntArray, cycles: FloatArray) -> None:
        for clock in (self.compute, self.port, self.load, self.write, self.last_data, self.write_queue):
            clock[plans] += cycles
        for clocks in (self.used, self.ready, self.residual_used, self.residual_ready, self.read_queues):
            clocks[:, plans] += cycles
        for clocks in (self.stored[:-2], self.partly_stored[:-2]):
            clocks[:, plans] += cycles

    def load_accumulators(self, beats: FloatArray, instructions: FloatArray, backlog: FloatArray) -> None:
        """The compute unit executes its LOADs one by one. Its pipeline is empty before and after.

        ``backlog`` limits the beats that the read port transfers first for the load unit.
        """
        is_present = instructions > 0
        if not is_present.any():
            return
        compute, port = self.compute[: len(is_present)], self.port[: len(is_present)]
        startup = REQUEST_STARTUP + self.latency
        start = compute + self.drain
        port_busy = np.minimum(np.maximum(port - start, 0), backlog)
        end = start + np.maximum(port_busy, startup) + beats
        end = end + (instructions - 1) * (startup + WRITE_DELAY + 1)
        np.copyto(port, np.maximum(port + beats, end), where=is_present)
        np.copyto(compute, end + WRITE_DELAY + 1, where=is_present)

    def end(self) -> FloatArray:
        written = self.write + self.config.write_latency
        return np.asarray(np.maximum(self.compute + self.drain, written) + 1)


class ActiveClocks:
    """Clocks of the first ``count`` plans, which still have steps, as views of all clocks."""

    def __init__(self, clocks: UnitClocks, count: int) -> None:
        config = clocks.config
        self.active = slice(count)
        self.latency, self.write_latency = clocks.latency, config.write_latency
        self.until_reloaded = clocks.drain + TOKEN_DELAY + REQUEST_STARTUP + clocks.latency
        """Cycles from the last slot that reads a buffer to the first data that replaces it."""
        self.compute, self.load, self.port, self.write = (
            clock[:count] for clock in (clocks.compute, clocks.load, clocks.port, clocks.write)
        )
        self.write_queue, self.last_data, self.padding_written, self.padding_issued = (
            clock[:count]
            for clock in (
                *(clocks.write_queue, clocks.last_data),
                *(clocks.padding_written, clocks.padding_issued),
            )
        )
        self.read_queues = clocks.read_queues[:, :count]
        self.burst_queue, self.load_queue = self.read_queues
        self.operands = clocks.used.reshape(-1), clocks.ready.reshape(-1)
        self.residuals = clocks.residual_used.reshape(-1), clocks.residual_ready.reshape(-1)
        self.stored, self.partly_stored, self.padding_before = (
            clock.reshape(-1) for clock in (clocks.stored, clocks.partly_stored, clocks.padding_before)
        )
        self.buffer_padding, self.buffer_ready = clocks.padding_before[:, :count], clocks.ready[:, :count]
        self._arrival, self._end, self._limit = np.zeros((3, count))  # reused, since allocation takes time

    def load_operands(self, loads: OperandLoads, step: int, *, is_residual: bool = False) -> None:
        """Execute LOADs as soon as their buffers are free."""
        if not loads.is_any[step]:
            return
        at = step, self.active
        used, ready = self.residuals if is_residual else self.operands
        arrival, end, limit, queues = self._arrival, self._end, self._limit, self.read_queues
        is_present = loads.is_present[at]
        used.take(loads.buffers[at], out=arrival, mode="clip")
        np.maximum(arrival, self.load, out=arrival)
        np.maximum(arrival, self.burst_queue, out=arrival)
        np.maximum(arrival, self.load_queue, out=arrival)
        np.maximum(arrival, self.port, out=end)
        if loads.padding_words is not None:
            self._write_padding(loads, at, loads.padding_words[at])
        end += loads.data_cycles[at]
        np.subtract(arrival, self.latency, out=limit)
        np.maximum(queues, limit, out=queues, where=is_present)
        queues += loads.queue_cycles[step, :, self.active]
        np.maximum(self.burst_queue, self.load_queue, out=limit)
        np.maximum(end, limit, out=end)
        np.copyto(self.port, end, where=is_present)
        if loads.padding_words is not None:
            np.copyto(self.last_data, end, where=is_present)
        arrival += loads.bursts[at]
        np.maximum(arrival, limit, out=arrival)
        arrival += REQUEST_STARTUP
        np.copyto(self.load, arrival, where=is_present)
        end += WRITE_DELAY + TOKEN_DELAY
        ready[loads.filled[at]] = end

    def _write_padding(self, loads: OperandLoads, at: tuple[int, slice], words: FloatArray) -> None:
        """Write words of zeros in order, in cycles between the last data of the previous LOADs and the first
        data of these.

        Zeros of earlier LOADs come first, then the LOADs' own, which cannot start before the LOADs do.
        """
        requested, data_begins, is_present = self._arrival - self.latency, self._end, loads.is_present[at]
        before, issued, last_data = self.padding_written.copy(), self.padding_issued, self.last_data
        start = np.where(issued > before, last_data, np.maximum(requested, last_data))
        np.copyto(issued, issued + words, where=is_present)
        written = np.minimum(issued, before + np.maximum(data_begins - start, 0))
        np.copyto(self.padding_written, written, where=is_present)
        completes = (self.buffer_padding > before) & (self.buffer_padding <= written) & is_present
        ready = start + self.buffer_padding - before + (WRITE_DELAY + TOKEN_DELAY)
        np.copyto(self.buffer_ready, np.maximum(self.buffer_ready, ready), where=completes)
        self.padding_before[loads.filled[at]] = issued

    def wait_for_operands(self, buffers: IntArray, *, has_padding: bool) -> None:
        ready = self._arrival
        self.operands[1].take(buffers, out=ready, mode="clip")
        if has_padding:
            missing = self.padding_before[buffers] - self.padding_written
            written = self.last_data + missing + (WRITE_DELAY + TOKEN_DELAY)
            np.maximum(ready, np.where(missing > 0, written, 0.0), out=ready)
        np.maximum(self.compute, ready, out=self.compute)

    def wait_for_first_piece(self, sets: IntArray) -> None:
        self.partly_stored.take(sets, out=self._arrival, mode="clip")
        self._arrival += self.write_latency
        np.maximum(self.compute, self._arrival, out=self.compute)

    def wait_for_last_piece(self, sets: IntArray, piece_cycles: FloatArray) -> None:
        """Let the end of a tile's first computation wait until the previous tile is stored.

        ``piece_cycles`` is as in ``StepResources``.
        """
        self.stored.take(sets, out=self._arrival, mode="clip")
        self._arrival += piece_cycles
        np.maximum(self.compute, self._arrival, out=self.compute)

    def free_buffers(self, buffers: IntArray) -> None:
        np.add(self.compute, self.until_reloaded, out=self._arrival)
        self.operands[0][buffers] = self._arrival

    def add_residual(self, uses: StepResources, step: int, is_present: BoolArray, slots: FloatArray) -> None:
        at = step, self.active
        ready = self.residuals[1].take(uses.residual_buffers[at])
        np.maximum(self.compute, ready, out=self.compute, where=is_present)
        self.compute += slots
        self.residuals[0][uses.freed_residual_buffers[at]] = self.compute + self.until_reloaded

    def store(self, stores: TileStores, step: int) -> None:
        if not stores.is_any[step]:
            return
        at = step, self.active
        write, queue = self.write, self.write_queue
        first, done, end = self._arrival, self._end, self._limit
        np.add(self.compute, stores.startup[at], out=first)
        if stores.until_last_piece is None:
            np.maximum(write, first, out=write)
            np.maximum(queue, write, out=queue)
            write += stores.data_cycles[at]
        else:
            np.maximum(first, write, out=first)
            np.maximum(queue, first, out=queue)
            np.add(first, stores.data_cycles[at], out=done)
            np.add(first, stores.until_last_piece[at], out=end)
            np.maximum(done, end, out=done)
            np.copyto(write, done, where=stores.is_present[at])
        queue += stores.queue_cycles[at]
        np.subtract(queue, self.write_latency, out=done)
        np.maximum(write, done, out=write)
        self.stored[stores.sets[at]] = write
        if stores.earlier_pieces is None:
            np.maximum(first, write, out=first)
        else:
            np.subtract(write, stores.earlier_pieces[at], out=done)
            np.maximum(first, done, out=first)
        self.partly_stored[stores.sets[at]] = first
