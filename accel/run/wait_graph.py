"""The graph of a run: nodes are events, edges their possible causes.

By the timing contract, the cycle of an event is the maximum of several *bounds*: cycles of earlier events
plus a delay. For example, an instruction starts after its dispatch plus the queue's depth, and after each
token's sender retires.
"""

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from accel.core.config import Config
from accel.core.isa import Unit
from accel.core.timing_rules import (
    EMPTY_DURATION,
    FETCH_STARTUP,
    REQUEST_STARTUP,
    WRITE_DELAY,
    compute_depth,
    dispatch_depth,
    store_depth,
)
from accel.run.burst_tables import FetchBursts, PadWords, ReadBursts, WriteBursts
from accel.run.instruction_dependencies import InstructionDependencies, fast_column
from accel.run.run_record import NONE, NodeKind, RunRecord
from accel.run.wait_causes import Wait
from accel.sim.timing.timed_program import InstructionTiming, TimedProgram, ranges_overlap


class Delay(NamedTuple):
    cycles: int
    unit: Unit
    wait: Wait
    instruction: int


class Edge(NamedTuple):
    """An edge to a later node."""

    bound: int
    """The later node is not before this cycle."""
    kind: NodeKind
    number: int
    delays: tuple[Delay, ...]
    """In order of time, up to the bound."""


class WaitGraph:
    """The graph of a run."""

    def __init__(
        self,
        record: RunRecord,
        program: TimedProgram,
        config: Config,
        *,
        address: int,
        tokens: Sequence[int],
    ) -> None:
        self.record = record
        self._config = config
        self._read_latency, self._outstanding = config.read_latency, config.outstanding
        self._dispatch_depth = dispatch_depth(config)
        self._write_latency, self._store_depth = config.write_latency, store_depth(config)
        self._compute_depth = compute_depth(config)
        self._serial = bool(config.serial)
        self._dependencies = InstructionDependencies(program, config, tokens)
        self._timings = self._dependencies.timings
        self._reads = ReadBursts(record, len(program))
        self._writes = WriteBursts(record, self._dependencies, config)
        self._fetched = FetchBursts(record, len(program), config, address)
        self.pads = PadWords(record, self._dependencies, self._reads)
        self._cycles: tuple[Mapping[int, int] | array[int], ...] = (
            array("q", [0]),
            fast_column(record.dispatch),
            fast_column(record.start),
            fast_column(record.retire),
            self.pads.last_cycles,
            self._reads.grants,
            self._reads.lasts,
            self._writes.grants,
            self._writes.slots,
        )
        self._edges: tuple[Callable[[int], Iterator[Edge]], ...] = (
            lambda _: iter(()),
            self._dispatch_edges,
            self._start_edges,
            self._retire_edges,
            self._pad_edges,
            self._read_grant_edges,
            self._read_last_edges,
            self._write_grant_edges,
            self._write_slot_edges,
        )

    def edges(self, kind: NodeKind, number: int) -> Iterator[Edge]:
        """Yield the edges to a node. The first one with the highest bound is the cause."""
        return self._edges[kind](number)

    def cycle(self, kind: NodeKind, number: int) -> int:
        return self._cycles[kind][number]

    def nodes(self) -> list[tuple[NodeKind, int]]:
        found: list[tuple[NodeKind, int]] = []
        for kind in NodeKind:
            if kind is NodeKind.PAD:
                found += [(kind, index) for index in self.pads.last_cycles]
            elif kind is not NodeKind.BEGIN:
                cycles = self._writes.lasts if kind is NodeKind.WRITE_SLOT else self._cycles[kind]
                found += [(kind, number) for number, cycle in enumerate(cycles) if cycle != NONE]
        return found

    def _edge(self, kind: NodeKind, number: int, *delays: Delay) -> Edge:
        bound = self._cycles[kind][number]
        for delay in delays:
            bound += delay[0]
        return Edge(bound, kind, number, delays)

    def _next_cycle(
        self, kind: NodeKind, number: int, wait: Wait, index: int, unit: Unit | None = None
    ) -> Edge:
        unit = self._timings[index].unit if unit is None else unit
        return Edge(self._cycles[kind][number] + 1, kind, number, (Delay(1, unit, wait, index),))

    def _read_edges(self, burst: int, beats: int, delay: int, unit: Unit, index: int) -> Iterator[Edge]:
        tail = (Delay(delay, unit, Wait.WRITE_BACK, index),) if delay else ()
        if burst:
            yield self._edge(NodeKind.READ_LAST, burst - 1, Delay(beats, unit, Wait.READ_DATA, index), *tail)
        latency = Delay(self._read_latency, unit, Wait.READ_LATENCY, index)
        data = (Delay(beats - 1, unit, Wait.READ_DATA, index),) if beats > 1 else ()
        yield self._edge(NodeKind.READ_GRANT, burst, latency, *data, *tail)

    def _dispatch_edges(self, index: int) -> Iterator[Edge]:
        unit = Unit.FETCH
        if self._serial and index:
            yield self._next_cycle(NodeKind.RETIRE, index - 1, Wait.SERIAL, index, unit)
        leaver = self._dependencies.queue_leaver[index]
        if leaver != NONE:
            yield self._next_cycle(NodeKind.START, leaver, Wait.QUEUE, index, unit)
        if index:
            yield self._next_cycle(NodeKind.DISPATCH, index - 1, Wait.ISSUE, index, unit)
        burst = self._fetched.reads[self._fetched.burst_of[index]]
        yield from self._read_edges(burst, self._fetched.beat_of[index] + 1, WRITE_DELAY, unit, index)

    def _start_edges(self, index: int) -> Iterator[Edge]:
        timing = self._timings[index]
        for counter in timing.pops:
            sender = self._dependencies.senders[counter][index]
            if sender != NONE:
                wait = Wait.RAW if counter.kind == "RAW" else Wait.WAR
                yield self._next_cycle(NodeKind.RETIRE, sender, wait, index)
        previous = self._dependencies.previous[index]
        if previous != NONE:
            if timing.unit is Unit.COMPUTE:
                yield self._compute_edge(previous, timing, index)
            elif timing.runs_alone or self._timings[previous].runs_alone:
                yield self._next_cycle(NodeKind.RETIRE, previous, Wait.EXCLUSIVE, index)
            elif timing.unit is Unit.LOAD:
                yield from self._load_edges(previous, timing, index)
            else:
                yield from self._store_edges(previous, index)
        queued = Delay(self._dispatch_depth, timing.unit, Wait.ISSUE, index)
        yield self._edge(NodeKind.DISPATCH, index, queued)

    def _compute_edge(self, previous: int, timing: InstructionTiming, index: int) -> Edge:
        other = self._timings[previous]
        if timing.is_pipelined and other.is_pipelined:
            slots = Delay(max(1, other.slots), Unit.COMPUTE, Wait.SLOTS, previous)
            return self._edge(NodeKind.START, previous, slots)
        return self._next_cycle(NodeKind.RETIRE, previous, Wait.EXCLUSIVE, index)

    def _granted_edge(self, previous: int, index: int) -> Edge:
        timing = self._timings[previous]
        if not timing.bursts:
            return self._next_cycle(NodeKind.START, previous, Wait.ISSUE, index)
        if timing.is_load:
            return self._next_cycle(NodeKind.READ_GRANT, self._reads.last_of[previous], Wait.REQUESTS, index)
        return self._next_cycle(NodeKind.WRITE_GRANT, self._writes.last_of[previous], Wait.REQUESTS, index)

    def _load_edges(self, previous: int, timing: InstructionTiming, index: int) -> Iterator[Edge]:
        position, limit = self._dependencies.positions[index], self._config.loads_in_flight
        members = self._dependencies.members[Unit.LOAD]
        for number in range(max(0, position - limit), position):
            earlier = members[number]
            if number == position - limit:
                yield self._next_cycle(NodeKind.RETIRE, earlier, Wait.IN_FLIGHT, index)
            elif ranges_overlap(timing, self._timings[earlier]):
                yield self._next_cycle(NodeKind.RETIRE, earlier, Wait.OVERLAP, index)
        yield self._granted_edge(previous, index)

    def _store_edges(self, previous: int, index: int) -> Iterator[Edge]:
        dependencies = self._dependencies
        if dependencies.operand_waits or dependencies.residual_waits:
            yield from self._store_unit_memory_edges(index)
        leaver, same = dependencies.transfer_leaver[index], dependencies.previous_transfer[index]
        if leaver != NONE:
            yield self._next_cycle(NodeKind.RETIRE, leaver, Wait.IN_FLIGHT, index)
        if same != NONE:
            yield self._granted_edge(same, index)
        yield self._next_cycle(NodeKind.START, previous, Wait.ISSUE, index)

    def _store_unit_memory_edges(self, index: int) -> Iterator[Edge]:
        is_load = self._timings[index].is_load
        for other, load_wait, store_wait in (
            (self._dependencies.operand_waits.get(index, NONE), Wait.OPERAND_IN_USE, Wait.OPERAND_LOADED),
            (self._dependencies.residual_waits.get(index, NONE), Wait.RES_FULL, Wait.RES_LOADED),
        ):
            if other == NONE:
                continue
            if is_load:
                yield self._next_cycle(NodeKind.RETIRE, other, load_wait, index)
            else:
                yield self._edge(
                    NodeKind.READ_LAST,
                    self._reads.last_of[other],
                    Delay(WRITE_DELAY, Unit.STORE, Wait.WRITE_BACK, other),
                    Delay(1, Unit.STORE, store_wait, index),
                )

    def _retire_edges(self, index: int) -> Iterator[Edge]:
        timing = self._timings[index]
        unit = timing.unit
        if timing.is_pipelined:
            slots = Delay(max(1, timing.slots), unit, Wait.SLOTS, index)
            drain = Delay(self._compute_depth - 1, unit, Wait.PIPELINE, index)
            yield self._edge(NodeKind.START, index, slots, drain)
            return
        if timing.pad_words:
            yield self._edge(NodeKind.PAD, index)
        if timing.bursts and timing.is_load:
            written = Delay(WRITE_DELAY, unit, Wait.WRITE_BACK, index)
            yield self._edge(NodeKind.READ_LAST, self._reads.last_of[index], written)
        elif timing.bursts:
            yield self._edge(NodeKind.WRITE_SLOT, self._writes.last_of[index], *self._response(index))
        previous = self._dependencies.previous[index]
        if unit is not Unit.COMPUTE and previous != NONE:
            yield self._next_cycle(NodeKind.RETIRE, previous, Wait.IN_ORDER, index)
        if unit is Unit.LOAD or not (timing.bursts or timing.pad_words):
            yield self._edge(NodeKind.START, index, Delay(EMPTY_DURATION, unit, Wait.ISSUE, index))

    def _response(self, index: int) -> tuple[Delay, ...]:
        return (
            Delay(self._store_depth - 1, Unit.STORE, Wait.PIPELINE, index),
            Delay(self._write_latency, Unit.STORE, Wait.WRITE_LATENCY, index),
        )

    def _pad_edges(self, index: int) -> Iterator[Edge]:
        kind, number = self.pads.waits_for[index]
        first, last = self.pads.first_cycles[index], self.pads.last_cycles[index]
        unit = self._timings[index].unit
        words = Delay(last + 1 - first, unit, Wait.PADDING, index)
        lead_cycles = first - self.cycle(kind, number) - 1
        wait = Wait.STARTUP if kind is NodeKind.START else Wait.WRITE_BACK
        lead = (Delay(lead_cycles, unit, wait, index),) if lead_cycles else ()
        yield self._edge(kind, number, *lead, words)

    def _read_grant_edges(self, burst: int) -> Iterator[Edge]:
        reads = self._reads
        unit, index = reads.units[burst], reads.instructions[burst]
        if burst >= self._outstanding:
            leaver = burst - self._outstanding
            yield self._next_cycle(NodeKind.READ_LAST, leaver, Wait.OUTSTANDING, index, unit)
        previous = reads.previous[burst]
        if burst:
            wait = Wait.REQUESTS if previous == burst - 1 else Wait.ARBITRATION
            yield self._next_cycle(NodeKind.READ_GRANT, burst - 1, wait, index, unit)
        if unit is Unit.FETCH:
            leaver = self._fetched.ends[self._fetched.numbers[burst]] - self._config.fetch_buffer - 1
            if leaver >= 0:
                yield self._next_cycle(NodeKind.DISPATCH, leaver, Wait.BUFFER, index, unit)
            if previous == NONE:
                yield self._edge(NodeKind.BEGIN, 0, Delay(FETCH_STARTUP, unit, Wait.STARTUP, NONE))
        if previous != NONE and (unit is Unit.FETCH or reads.instructions[previous] == index):
            yield self._next_cycle(NodeKind.READ_GRANT, previous, Wait.REQUESTS, index, unit)
        elif unit is not Unit.FETCH:
            yield self._edge(NodeKind.START, index, Delay(REQUEST_STARTUP, unit, Wait.STARTUP, index))

    def _read_last_edges(self, burst: int) -> Iterator[Edge]:
        reads = self._reads
        return self._read_edges(burst, reads.beats[burst], 0, reads.units[burst], reads.instructions[burst])

    def _write_grant_edges(self, burst: int) -> Iterator[Edge]:
        index = self._writes.instructions[burst]
        if burst >= self._outstanding:
            leaver = burst - self._outstanding
            response = self._response(self._writes.instructions[leaver])
            full = Delay(1, Unit.STORE, Wait.OUTSTANDING, index)
            yield self._edge(NodeKind.WRITE_SLOT, leaver, *response, full)
        if burst:
            yield self._edge(NodeKind.WRITE_SLOT, burst - 1)
            yield self._next_cycle(NodeKind.WRITE_GRANT, burst - 1, Wait.REQUESTS, index)
        if not burst or self._writes.instructions[burst - 1] != index:
            startup = Delay(REQUEST_STARTUP, Unit.STORE, Wait.STARTUP, index)
            yield self._edge(NodeKind.START, index, startup)

    def _write_slot_edges(self, burst: int) -> Iterator[Edge]:
        index, cycles = self._writes.instructions[burst], self._writes.slot_cycles[burst]
        data = Delay(cycles, Unit.STORE, Wait.WRITE_DATA, index)
        if burst:
            yield self._edge(NodeKind.WRITE_SLOT, burst - 1, data)
        yield self._edge(NodeKind.WRITE_GRANT, burst, data)
