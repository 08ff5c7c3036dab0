"""What everything that happened in a run had waited for, by the rules of the timing contract.

In the contract every cycle in which something happens is the latest of several: cycles of other things that
happened before, each with a distance. So a run is a graph. Its nodes are found again in what simulator and
hardware report alike, its edges here, so that neither has to note what it waited for.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import IntEnum, StrEnum
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from accel.core.config import Config
from accel.core.events import Event, EventKind
from accel.core.faults import instruction_faults
from accel.core.isa import Instruction, Store, Unit
from accel.core.memories import RES
from accel.core.timing_rules import (
    EMPTY_DURATION,
    FETCH_STARTUP,
    REQUEST_STARTUP,
    WRITE_DELAY,
    compute_depth,
    dispatch_depth,
    fetch_bursts,
    store_depth,
)
from accel.core.token_rules import WORKERS, Counter, queue_depth
from accel.sim.timing.model import TimingRun
from accel.sim.timing.plan import Plan, Shape

_NONE = -1


class Wait(StrEnum):
    """Why cycles passed between one event and the next."""

    STARTUP = "startup"
    ISSUE = "issue"
    QUEUE = "queue full"
    BUFFER = "buffer full"
    SERIAL = "serial"
    RAW = "RAW token"
    WAR = "WAR token"
    SLOTS = "slots"
    PIPELINE = "pipeline"
    EXCLUSIVE = "exclusive"
    IN_FLIGHT = "in flight"
    OVERLAP = "overlap"
    PAR_IN_USE = "par in use"
    PAR_LOADED = "par loaded"
    RES_FULL = "res full"
    RES_LOADED = "res loaded"
    REQUESTS = "requests"
    ARBITRATION = "arbitration"
    OUTSTANDING = "outstanding"
    READ_LATENCY = "read latency"
    READ_DATA = "read data"
    WRITE_BACK = "write-back"
    PADDING = "padding"
    WRITE_DATA = "write data"
    WRITE_LATENCY = "write latency"
    IN_ORDER = "in order"
    STOPPED = "stopped"

    @property
    def label(self) -> str:
        """In a sentence's words."""
        return _LABELS[self]


_LABELS = {
    Wait.STARTUP: "from the start of the run, or of a transfer, to the first request",
    Wait.ISSUE: "one instruction a cycle is handed out, and starts in the next cycle at the earliest",
    Wait.QUEUE: "the unit's queue has no room until an instruction starts",
    Wait.BUFFER: "fetch's buffer has no room until an instruction is handed out",
    Wait.SERIAL: "serial mode: the instruction before has to retire",
    Wait.RAW: "a RAW token is pushed in one cycle and can be popped in the next",
    Wait.WAR: "a WAR token is pushed in one cycle and can be popped in the next",
    Wait.SLOTS: "micro-ops, one a cycle, of MUL one in `mul_slots`",
    Wait.PIPELINE: "the pipeline drains: of compute up to its last write, of store up to the bus",
    Wait.EXCLUSIVE: "a LOAD of compute, a SET or a FINISH runs alone in its unit",
    Wait.IN_FLIGHT: "as many transfers are in flight as the unit allows",
    Wait.OVERLAP: "a LOAD of the same scratchpad elements has to retire",
    Wait.PAR_IN_USE: "elements of par are still in use",
    Wait.PAR_LOADED: "biases and scales are loaded",
    Wait.RES_FULL: "res has no room until a STORE retires",
    Wait.RES_LOADED: "residuals are loaded",
    Wait.REQUESTS: "one burst a cycle is requested",
    Wait.ARBITRATION: "the port grants another unit's burst",
    Wait.OUTSTANDING: "as many bursts are outstanding as the port allows",
    Wait.READ_LATENCY: "from a read's grant to its first beat",
    Wait.READ_DATA: "beats on the read bus",
    Wait.WRITE_BACK: "from the bus into a scratchpad or fetch's buffer",
    Wait.PADDING: "pad words, one a cycle, in cycles without data",
    Wait.WRITE_DATA: "beats on the write bus, and lanes that requantize them",
    Wait.WRITE_LATENCY: "from the last beat of a write to its response",
    Wait.IN_ORDER: "instructions of a unit retire in order, one a cycle",
    Wait.STOPPED: "from the last thing that happened to the error",
}


class Kind(IntEnum):
    """Kinds of nodes; what their number counts is said of each."""

    BEGIN = 0
    """Of the run, in cycle 0."""
    HAND = 1
    """Fetch hands out an instruction; instructions."""
    START = 2
    RETIRE = 3
    PAD = 4
    """The last pad word of a LOAD is written; instructions."""
    GRANT = 5
    """Of a read burst; reads in order of their grants."""
    LAST = 6
    """The last beat of a read burst is on the bus; reads."""
    WRITE_GRANT = 7
    """Of a write burst; writes in order."""
    WRITE_SLOT = 8
    """Behind the last cycle in which a write burst enters the path of ``store_depth`` cycles to the bus."""


class Part(NamedTuple):
    """Cycles of an edge that have one cause; ``instruction`` is :data:`-1` where it is none's."""

    cycles: int
    unit: Unit
    wait: Wait
    instruction: int


class Edge(NamedTuple):
    """From an earlier node to a later one."""

    bound: int
    """No earlier than in this cycle can the later one happen, because of the edge."""
    kind: Kind
    number: int
    """The earlier node."""
    parts: tuple[Part, ...]
    """In order of time; they sum up to the edge's length."""


Column = npt.NDArray[np.int64]


class Record(NamedTuple):
    """Cycles of a run, int64 each; -1 where something did not happen.

    ``hand``, ``start`` and ``retire`` are by instruction. The others are by burst: unit, instruction, beats,
    cycle of the grant and of the last beat; reads of all units in order of their grants, then the writes.
    """

    hand: Column
    start: Column
    retire: Column
    read_units: Column
    read_instructions: Column
    read_beats: Column
    read_grants: Column
    read_lasts: Column
    write_instructions: Column
    write_beats: Column
    write_grants: Column
    write_lasts: Column


def record_of(events: Sequence[Event], instructions: Sequence[Instruction]) -> Record:
    """What a run's events say."""
    cycles = np.full((3, len(instructions)), _NONE, dtype=np.int64)
    rows = {EventKind.QUEUE_PUSH: cycles[0], EventKind.START: cycles[1], EventKind.RETIRE: cycles[2]}
    reads: list[list[int]] = []
    writes: list[list[int]] = []
    pending: dict[tuple[Unit, bool], list[list[int]]] = {}
    ended: dict[tuple[Unit, bool], int] = {}
    for cycle, unit, kind, index, value in events:
        row = rows.get(kind)
        if row is not None:
            row[index] = cycle
        elif kind in (EventKind.BURST_GRANT, EventKind.BURST_LAST):
            port = unit, unit is Unit.STORE and isinstance(instructions[index], Store)
            own = pending.setdefault(port, [])
            if kind == EventKind.BURST_GRANT:
                own.append([int(unit), index, value, cycle, _NONE])
                (writes if port[1] else reads).append(own[-1])
            else:
                own[ended.get(port, 0)][4] = cycle
                ended[port] = ended.get(port, 0) + 1
    columns = [np.array(found, dtype=np.int64).reshape(-1, 5).T for found in (reads, writes)]
    return Record(*cycles, *columns[0], *columns[1][1:])


def plan_of(instructions: Sequence[Instruction], config: Config) -> Plan:
    """A program as the timing model sees it, in which no micro-op is at fault."""
    return Plan(instructions, config, {}, instruction_faults(instructions, config))


def record_of_run(run: TimingRun) -> Record:
    """What the simulator knows, which need not be told event by event."""
    end = run.cycles if run.stop is None else run.stop.cycle
    hand, start, retire = (np.where(one <= end, one, -1) for one in (run.columns[1], *run.columns[3:]))
    tables = []
    for writes in (False, True):
        logs = [log for log in run.logs if log.writes is writes]
        units = [np.full(len(log.grants), int(log.unit)) for log in logs]
        columns = [
            np.concatenate([np.array(getattr(log, name), dtype=np.int64) for log in logs])
            for name in ("instructions", "beats", "grants", "lasts")
        ]
        found = np.stack([np.concatenate(units).astype(np.int64), *columns])
        found = found[:, np.argsort(found[3], kind="stable")]
        found = found[:, found[3] <= end]
        found[4, found[4] > end] = -1
        tables.append(found)
    return Record(hand, start, retire, *tables[0], *tables[1][1:])


class Waits:
    """The graph of a run.

    Args:
        record: what happened.
        plan: the program.
        config: of the run.
        address: of the first instruction.
        tokens: the counters before the run.
    """

    def __init__(
        self, record: Record, plan: Plan, config: Config, *, address: int, tokens: Sequence[int]
    ) -> None:
        self.record = record
        self._config = config
        self._hand: list[int] = record.hand.tolist()
        self._start: list[int] = record.start.tolist()
        self._retire: list[int] = record.retire.tolist()
        self._shapes: list[Shape] = list(map(plan.shapes.__getitem__, plan.numbers.tolist()))
        self._latency, self._outstanding = config.read_latency, config.outstanding
        self._dispatch = dispatch_depth(config)
        self._write_latency, self._store_depth = config.write_latency, store_depth(config)
        self._compute_depth = compute_depth(config)
        self._serial = bool(config.serial)
        self._place_instructions(plan, config)
        self._place_tokens(plan, tokens)
        self._place_reads(record, len(plan))
        self._place_writes(record, len(plan))
        self._place_program(plan, config, address)
        self._place_pads()
        self._place_shared()
        self._cycles: tuple[Mapping[int, int] | list[int], ...] = (
            [0],
            self._hand,
            self._start,
            self._retire,
            self._pad_lasts,
            self._grants,
            self._lasts,
            self._write_grants,
            self._write_slots,
        )
        """By kind."""
        self._edges: tuple[Callable[[int], Iterator[Edge]], ...] = (
            lambda _: iter(()),
            self._hand_edges,
            self._start_edges,
            self._retire_edges,
            self._pad_edges,
            self._grant_edges,
            self._last_edges,
            self._write_grant_edges,
            self._write_slot_edges,
        )

    def edges(self, kind: Kind, number: int) -> Iterator[Edge]:
        """All that a node waited for, which is not the beginning; the first of those with the highest bound
        is what it waited for last."""
        return self._edges[kind](number)

    def cycle(self, kind: Kind, number: int) -> int:
        """When a node happened; -1 if it did not."""
        return self._cycles[kind][number]

    def nodes(self) -> list[tuple[Kind, int]]:
        """All nodes but the beginning that happened."""
        found = [
            (kind, number)
            for kind, column in (
                (Kind.HAND, self._hand),
                (Kind.START, self._start),
                (Kind.RETIRE, self._retire),
                (Kind.GRANT, self._grants),
                (Kind.LAST, self._lasts),
                (Kind.WRITE_GRANT, self._write_grants),
            )
            for number, cycle in enumerate(column)
            if cycle != _NONE
        ]
        found += [(Kind.WRITE_SLOT, n) for n, cycle in enumerate(self._write_lasts) if cycle != _NONE]
        return found + [(Kind.PAD, number) for number in self._pad_lasts]

    # --- where things are --------------------------------------------------------------------------

    def _place_instructions(self, plan: Plan, config: Config) -> None:
        """Of each instruction the one before in its unit, in its stream, and those whose places it takes."""
        before, leaver, same, yields, places = np.full((5, len(plan)), _NONE, dtype=np.int64)
        for unit in WORKERS:
            members = plan.members[unit]
            before[members[1:]] = members[:-1]
            depth = queue_depth(unit, config)
            leaver[members[depth:]] = members[:-depth]
            places[members] = np.arange(len(members))
        fills = np.array([one.fills for one in plan.shapes], dtype=bool)
        alone = np.array([one.alone for one in plan.shapes], dtype=bool)
        store = plan.members[Unit.STORE]
        for filling, limit in ((True, config.loads_in_flight), (False, config.stores_in_flight)):
            numbers = plan.numbers[store]
            own = store[(fills[numbers] == filling) & ~alone[numbers]]
            same[own[1:]] = own[:-1]
            yields[own[limit:]] = own[:-limit]
        self._members: dict[Unit, list[int]] = {unit: plan.members[unit].tolist() for unit in WORKERS}
        self._places: list[int] = places.tolist()
        self._before: list[int] = before.tolist()
        self._leaver: list[int] = leaver.tolist()
        """The one whose start makes room in the queue."""
        self._same: list[int] = same.tolist()
        """Of the store unit's, the one before of its kind, and the one whose place in flight it takes."""
        self._yields: list[int] = yields.tolist()

    def _place_tokens(self, plan: Plan, tokens: Sequence[int]) -> None:
        """Who pushed each token, by counter and the instruction that pops it."""
        self._pusher: dict[Counter, list[int]] = {}
        for counter in Counter:
            popping = np.array([counter in one.pops for one in plan.shapes], dtype=bool)[plan.numbers]
            pushing = np.array([counter in one.pushes for one in plan.shapes], dtype=bool)[plan.numbers]
            popped, pushed = np.flatnonzero(popping), np.flatnonzero(pushing)
            found = np.full(len(plan), _NONE, dtype=np.int64)
            before = tokens[counter]
            count = min(max(0, len(popped) - before), len(pushed))
            found[popped[before : before + count]] = pushed[:count]
            self._pusher[counter] = found.tolist()

    def _place_reads(self, record: Record, count: int) -> None:
        self._grants: list[int] = record.read_grants.tolist()
        self._lasts: list[int] = record.read_lasts.tolist()
        self._beats: list[int] = record.read_beats.tolist()
        self._readers: list[int] = record.read_instructions.tolist()
        units = list(Unit)
        self._units = [units[unit] for unit in record.read_units.tolist()]
        before = np.full(len(self._grants), _NONE, dtype=np.int64)
        last = np.full(count, _NONE, dtype=np.int64)
        for unit in Unit:
            own = np.flatnonzero(record.read_units == int(unit))
            before[own[1:]] = own[:-1]
            if unit is not Unit.FETCH:
                last[record.read_instructions[own]] = own
        self._read_before: list[int] = before.tolist()
        """The unit's burst before."""
        self._last_read: list[int] = last.tolist()
        """Of each instruction."""

    def _place_writes(self, record: Record, count: int) -> None:
        self._writers: list[int] = record.write_instructions.tolist()
        self._write_beats: list[int] = record.write_beats.tolist()
        self._write_grants: list[int] = record.write_grants.tolist()
        self._write_lasts: list[int] = record.write_lasts.tolist()
        self._write_slots: list[int] = (record.write_lasts + 1 - self._store_depth).tolist()
        for number, cycle in enumerate(self._write_lasts):
            if cycle == _NONE:  # cut short by the end, when those behind it may have been granted
                before = self._write_slots[number - 1] if number else 0
                enters = max(self._write_grants[number], before)
                self._write_slots[number] = enters + self._slot_cycles(number)
        last = np.full(count, _NONE, dtype=np.int64)
        last[record.write_instructions] = np.arange(len(self._writers))
        self._last_write: list[int] = last.tolist()

    def _place_program(self, plan: Plan, config: Config, address: int) -> None:
        """Of each instruction the burst of fetch that brings it, and the beat that completes it."""
        planned = fetch_bursts(address, len(plan), config)
        sizes = [len(one.arrival) for one in planned]
        fetched = np.flatnonzero(self.record.read_units == int(Unit.FETCH))
        numbers = np.full(len(self._grants), _NONE, dtype=np.int64)
        numbers[fetched] = np.arange(len(fetched))
        self._fetched: list[int] = fetched.tolist()
        self._fetch_number: list[int] = numbers.tolist()
        self._fetch_numbers: list[int] = np.repeat(np.arange(len(planned)), sizes).tolist()
        self._fetch_beats: list[int] = [beat for one in planned for beat in one.arrival]
        self._fetch_ends = list(accumulate(sizes))

    def _place_pads(self) -> None:
        """The last pad word of each LOAD that has some, and where the first could be written."""
        self._pad_lasts: dict[int, int] = {}
        self._pad_begins: dict[int, tuple[Kind, int, int]] = {}
        if not any(shape.pads for shape in set(self._shapes)):
            return
        for unit in (Unit.LOAD, Unit.COMPUTE):
            self._place_unit_pads(unit)

    def _place_unit_pads(self, unit: Unit) -> None:
        own = np.flatnonzero(self.record.read_units == int(unit))
        lasts = [cycle for cycle in self.record.read_lasts[own].tolist() if cycle != _NONE]
        places = own.tolist()
        position, before = 0, _NONE
        for index in self._members[unit]:
            words, start = self._shapes[index].pads, self._start[index]
            if not words or start == _NONE:
                continue
            cycle = start + REQUEST_STARTUP
            begin = Kind.START, index, cycle
            if position > cycle:
                begin, cycle = (Kind.PAD, before, position), position
            cursor = bisect_left(lasts, cycle - WRITE_DELAY)
            inside = False
            while words:
                written = lasts[cursor] + WRITE_DELAY if cursor < len(lasts) else cycle + words
                first = written - self._beats[places[cursor]] + 1 if cursor < len(lasts) else written
                room = min(words, max(0, first - cycle))
                inside |= room > 0
                words -= room
                cycle += room
                if words:
                    cycle = written + 1
                    if not inside:
                        begin = Kind.LAST, places[cursor], cycle
                    cursor += 1
            position, before = cycle, index
            self._pad_lasts[index] = cycle - 1
            self._pad_begins[index] = begin

    def _place_shared(self) -> None:
        """Of the store unit's instructions, whom they wait for because of PAR and RES."""
        self._par_waits: dict[int, int] = {}
        self._res_waits: dict[int, int] = {}
        parts = [(index, self._shapes[index]) for index in self._members[Unit.STORE]]
        parts = [(index, shape) for index, shape in parts if shape.shared is not None]
        if not parts:
            return
        depth = max(shape.shared.par_end for _, shape in parts if shape.shared is not None)
        used, filled = np.full((2, depth), _NONE, dtype=np.int64)
        """Of each element of PAR, who used or filled it last."""
        loaded, taken = _Elements(), _Elements()
        res_depth = RES.depth(self._config)
        for index, shape in parts:
            part = shape.shared
            assert part is not None
            if part.par_begin < part.par_end:
                own = slice(part.par_begin, part.par_end)
                self._par_waits[index] = int((used if shape.fills else filled)[own].max())
                used[own] = index
                if shape.fills:
                    filled[own] = index
            if part.res and shape.fills:
                leaves = loaded.total + part.res - res_depth
                self._res_waits[index] = taken.place_of(leaves) if leaves > 0 else _NONE
                loaded.add(part.res, index)
            elif part.res:
                self._res_waits[index] = loaded.place_of(taken.total + part.res)
                taken.add(part.res, index)

    # --- edges -------------------------------------------------------------------------------------

    def _edge(self, kind: Kind, number: int, *parts: Part) -> Edge:
        bound = self._cycles[kind][number]
        for part in parts:
            bound += part[0]
        return Edge(bound, kind, number, parts)

    def _behind(self, kind: Kind, number: int, wait: Wait, index: int, unit: Unit | None = None) -> Edge:
        """A cycle behind another node, on the part of instruction ``index``."""
        unit = self._shapes[index].unit if unit is None else unit
        return Edge(self._cycles[kind][number] + 1, kind, number, (Part(1, unit, wait, index),))

    def _read_edges(self, burst: int, beats: int, delay: int, unit: Unit, index: int) -> Iterator[Edge]:
        """To ``delay`` cycles behind a beat of a read burst, ``beats`` of which are on the bus by then."""
        tail = (Part(delay, unit, Wait.WRITE_BACK, index),) if delay else ()
        if burst:
            yield self._edge(Kind.LAST, burst - 1, Part(beats, unit, Wait.READ_DATA, index), *tail)
        latency = Part(self._latency, unit, Wait.READ_LATENCY, index)
        data = (Part(beats - 1, unit, Wait.READ_DATA, index),) if beats > 1 else ()
        yield self._edge(Kind.GRANT, burst, latency, *data, *tail)

    def _hand_edges(self, index: int) -> Iterator[Edge]:
        unit = Unit.FETCH
        if self._serial and index:
            yield self._behind(Kind.RETIRE, index - 1, Wait.SERIAL, index, unit)
        leaver = self._leaver[index]
        if leaver != _NONE:
            yield self._behind(Kind.START, leaver, Wait.QUEUE, index, unit)
        if index:
            yield self._behind(Kind.HAND, index - 1, Wait.ISSUE, index, unit)
        burst = self._fetched[self._fetch_numbers[index]]
        yield from self._read_edges(burst, self._fetch_beats[index] + 1, WRITE_DELAY, unit, index)

    def _start_edges(self, index: int) -> Iterator[Edge]:
        shape = self._shapes[index]
        for counter in shape.pops:
            pusher = self._pusher[counter][index]
            if pusher != _NONE:
                wait = Wait.RAW if counter.kind == "RAW" else Wait.WAR
                yield self._behind(Kind.RETIRE, pusher, wait, index)
        before = self._before[index]
        if before != _NONE:
            if shape.unit is Unit.COMPUTE:
                yield self._compute_edge(before, shape, index)
            elif shape.alone or self._shapes[before].alone:
                yield self._behind(Kind.RETIRE, before, Wait.EXCLUSIVE, index)
            elif shape.unit is Unit.LOAD:
                yield from self._load_edges(before, shape, index)
            else:
                yield from self._store_edges(before, index)
        queued = Part(self._dispatch, shape.unit, Wait.ISSUE, index)
        yield self._edge(Kind.HAND, index, queued)

    def _compute_edge(self, before: int, shape: Shape, index: int) -> Edge:
        other = self._shapes[before]
        if shape.pipelined and other.pipelined:
            return self._edge(Kind.START, before, Part(max(1, other.slots), Unit.COMPUTE, Wait.SLOTS, before))
        return self._behind(Kind.RETIRE, before, Wait.EXCLUSIVE, index)

    def _granted_edge(self, before: int, index: int) -> Edge:
        """Behind the last grant of the transfer before, or its start if it has none."""
        if not self._shapes[before].bursts:
            return self._behind(Kind.START, before, Wait.ISSUE, index)
        if self._shapes[before].fills:
            return self._behind(Kind.GRANT, self._last_read[before], Wait.REQUESTS, index)
        return self._behind(Kind.WRITE_GRANT, self._last_write[before], Wait.REQUESTS, index)

    def _load_edges(self, before: int, shape: Shape, index: int) -> Iterator[Edge]:
        place, limit = self._places[index], self._config.loads_in_flight
        members = self._members[Unit.LOAD]
        for number in range(max(0, place - limit), place):
            earlier = members[number]
            if number == place - limit:
                yield self._behind(Kind.RETIRE, earlier, Wait.IN_FLIGHT, index)
            elif _overlap(shape, self._shapes[earlier]):
                yield self._behind(Kind.RETIRE, earlier, Wait.OVERLAP, index)
        yield self._granted_edge(before, index)

    def _store_edges(self, before: int, index: int) -> Iterator[Edge]:
        if self._par_waits or self._res_waits:
            yield from self._shared_edges(index)
        leaver, same = self._yields[index], self._same[index]
        if leaver != _NONE:
            yield self._behind(Kind.RETIRE, leaver, Wait.IN_FLIGHT, index)
        if same != _NONE:
            yield self._granted_edge(same, index)
        yield self._behind(Kind.START, before, Wait.ISSUE, index)

    def _shared_edges(self, index: int) -> Iterator[Edge]:
        fills = self._shapes[index].fills
        par, res = self._par_waits.get(index, _NONE), self._res_waits.get(index, _NONE)
        if par != _NONE:
            if fills:
                yield self._behind(Kind.RETIRE, par, Wait.PAR_IN_USE, index)
            else:
                yield self._loaded_edge(par, Wait.PAR_LOADED, index)
        if res != _NONE:
            if fills:
                yield self._behind(Kind.RETIRE, res, Wait.RES_FULL, index)
            else:
                yield self._loaded_edge(res, Wait.RES_LOADED, index)

    def _loaded_edge(self, other: int, wait: Wait, index: int) -> Edge:
        """Behind the last write of a LOAD of the store unit."""
        return self._edge(
            Kind.LAST,
            self._last_read[other],
            Part(WRITE_DELAY, Unit.STORE, Wait.WRITE_BACK, other),
            Part(1, Unit.STORE, wait, index),
        )

    def _retire_edges(self, index: int) -> Iterator[Edge]:
        shape = self._shapes[index]
        unit = shape.unit
        if shape.pipelined:
            slots = Part(max(1, shape.slots), unit, Wait.SLOTS, index)
            drain = Part(self._compute_depth - 1, unit, Wait.PIPELINE, index)
            yield self._edge(Kind.START, index, slots, drain)
            return
        if shape.pads:
            yield self._edge(Kind.PAD, index)
        if shape.bursts and shape.fills:
            written = Part(WRITE_DELAY, unit, Wait.WRITE_BACK, index)
            yield self._edge(Kind.LAST, self._last_read[index], written)
        elif shape.bursts:
            yield self._edge(Kind.WRITE_SLOT, self._last_write[index], *self._response(index))
        before = self._before[index]
        if unit is not Unit.COMPUTE and before != _NONE:
            yield self._behind(Kind.RETIRE, before, Wait.IN_ORDER, index)
        if unit is Unit.LOAD or not (shape.bursts or shape.pads):
            yield self._edge(Kind.START, index, Part(EMPTY_DURATION, unit, Wait.ISSUE, index))

    def _response(self, index: int) -> tuple[Part, ...]:
        """From the last cycle of a burst on the path to the bus up to its response."""
        return (
            Part(self._store_depth - 1, Unit.STORE, Wait.PIPELINE, index),
            Part(self._write_latency, Unit.STORE, Wait.WRITE_LATENCY, index),
        )

    def _pad_edges(self, index: int) -> Iterator[Edge]:
        kind, number, begin = self._pad_begins[index]
        unit = self._shapes[index].unit
        words = Part(self._pad_lasts[index] + 1 - begin, unit, Wait.PADDING, index)
        first = begin - self.cycle(kind, number) - 1
        wait = Wait.STARTUP if kind is Kind.START else Wait.WRITE_BACK
        lead = (Part(first, unit, wait, index),) if first else ()
        yield self._edge(kind, number, *lead, words)

    def _grant_edges(self, burst: int) -> Iterator[Edge]:
        unit, index = self._units[burst], self._readers[burst]
        if burst >= self._outstanding:
            leaver = burst - self._outstanding
            yield self._behind(Kind.LAST, leaver, Wait.OUTSTANDING, index, unit)
        own = self._read_before[burst]
        if burst:
            wait = Wait.REQUESTS if own == burst - 1 else Wait.ARBITRATION
            yield self._behind(Kind.GRANT, burst - 1, wait, index, unit)
        if unit is Unit.FETCH:
            leaves = self._fetch_ends[self._fetch_number[burst]] - self._config.fetch_buffer - 1
            if leaves >= 0:
                yield self._behind(Kind.HAND, leaves, Wait.BUFFER, index, unit)
            if own == _NONE:
                yield self._edge(Kind.BEGIN, 0, Part(FETCH_STARTUP, unit, Wait.STARTUP, _NONE))
        if own != _NONE and (unit is Unit.FETCH or self._readers[own] == index):
            yield self._behind(Kind.GRANT, own, Wait.REQUESTS, index, unit)
        elif unit is not Unit.FETCH:
            yield self._edge(Kind.START, index, Part(REQUEST_STARTUP, unit, Wait.STARTUP, index))

    def _last_edges(self, burst: int) -> Iterator[Edge]:
        return self._read_edges(burst, self._beats[burst], 0, self._units[burst], self._readers[burst])

    def _write_grant_edges(self, burst: int) -> Iterator[Edge]:
        index = self._writers[burst]
        if burst >= self._outstanding:
            leaver = burst - self._outstanding
            response, full = (
                self._response(self._writers[leaver]),
                Part(1, Unit.STORE, Wait.OUTSTANDING, index),
            )
            yield self._edge(Kind.WRITE_SLOT, leaver, *response, full)
        if burst:
            yield self._edge(Kind.WRITE_SLOT, burst - 1)
            yield self._behind(Kind.WRITE_GRANT, burst - 1, Wait.REQUESTS, index)
        if not burst or self._writers[burst - 1] != index:
            yield self._edge(Kind.START, index, Part(REQUEST_STARTUP, Unit.STORE, Wait.STARTUP, index))

    def _slot_cycles(self, burst: int) -> int:
        """That a write burst takes to enter the path to the bus."""
        shared = self._shapes[self._writers[burst]].shared
        return self._write_beats[burst] * (1 if shared is None else shared.pace)

    def _write_slot_edges(self, burst: int) -> Iterator[Edge]:
        data = Part(self._slot_cycles(burst), Unit.STORE, Wait.WRITE_DATA, self._writers[burst])
        if burst:
            yield self._edge(Kind.WRITE_SLOT, burst - 1, data)
        yield self._edge(Kind.WRITE_GRANT, burst, data)


def _overlap(one: Shape, other: Shape) -> bool:
    """Whether two LOADs fill overlapping ranges of one scratchpad."""
    if one.sram is None or other.sram is None:
        return False
    memory, begin, end = one.sram
    others, low, high = other.sram
    return memory == others and begin < high and low < end


class _Elements:
    """RES elements that instructions move, counted from one."""

    def __init__(self) -> None:
        self._sums: list[int] = []
        self._places: list[int] = []

    @property
    def total(self) -> int:
        return self._sums[-1] if self._sums else 0

    def add(self, count: int, index: int) -> None:
        """Instruction ``index`` moves the next ``count``."""
        self._sums.append(self.total + count)
        self._places.append(index)

    def place_of(self, number: int) -> int:
        """Who moves element ``number``; -1 if nobody does."""
        place = bisect_left(self._sums, number)
        return self._places[place] if place < len(self._places) else _NONE
