"""Fetch: reads the program in bursts, and dispatches one instruction per cycle."""

from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from accel.core.config import DRAM_ADDRESS_BITS, INSTRUCTION_BYTES, PAGE_BYTES, Config
from accel.core.fault_causes import CAUSE_BITS, Cause
from accel.core.isa import Instruction, Load, Opcode, Transfer, Unit, classes_of, routes_of, variants_of
from accel.core.token_rules import WORKERS
from accel.hw.bus.read_port import ReadChannel
from accel.hw.datapath.instruction_checks import first_fault
from accel.hw.datapath.queue import Queue, Reservation
from accel.hw.datapath.scratchpads import bank_of
from accel.hw.datapath.unit_ports import port_of
from accel.hw.datapath.word_layouts import (
    INDEX_BITS,
    UNIT_BITS,
    log2,
    minimum,
    view,
)
from accel.hw.units.unit_interfaces import Fetched

_BITS = INSTRUCTION_BYTES * 8


class _Arrived(data.StructLayout):
    """A buffered instruction. Its unit is one-hot, or 0 for an unknown opcode."""

    def __init__(self) -> None:
        super().__init__({"word": _BITS, "unit": UNIT_BITS, "units": len(WORKERS), "finish": 1})


class Fetch(wiring.Component):
    """``flush`` begins a program, and ``enable`` allows requests. ``waiting`` shows that the next instruction
    has not arrived, ``more`` that there is one. Each unit has a reservation of its name, taken with each
    dispatched instruction. ``able`` shows that the next instruction would be dispatched if ``active`` were
    set, ``fault`` is its fault. Neither depends on ``active``."""

    def __init__(self, config: Config) -> None:
        self._config = config
        ports: dict[str, Any] = {
            "flush": In(1),
            "enable": In(1),
            "active": In(1),
            "serial": In(1),
            "retired": In(1),
            "address": In(DRAM_ADDRESS_BITS),
            "length": In(INDEX_BITS),
            "read": Out(ReadChannel(config)),
            "fetched": Out(Fetched()),
            "able": Out(1),
            "more": Out(1),
            "waiting": Out(1, init=1),
            "next": Out(INDEX_BITS),
            "fault": Out(CAUSE_BITS),
            **{unit.label: Out(Reservation()) for unit in WORKERS},
        }
        super().__init__(ports)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        lanes = max(1, self._config.bus_bytes // INSTRUCTION_BYTES)
        halves = max(1, INSTRUCTION_BYTES // self._config.bus_bytes)
        arrived = Signal(INDEX_BITS)
        m.submodules.counts = counts = Queue(range(257), self._config.outstanding)
        head, taken = self._buffer(m, lanes, halves, arrived, counts)
        self._request(m, lanes, halves, counts)
        self._hand_out(m, head, taken)
        return m

    def _request(self, m: Module, lanes: int, halves: int, counts: Queue) -> None:
        config, read = self._config, self.read
        position = Signal(DRAM_ADDRESS_BITS - log2(INSTRUCTION_BYTES))
        chunk = Signal(range(config.fetch_chunk + 1))
        asked = Signal(INDEX_BITS)
        left = Signal(INDEX_BITS)
        """Instructions after the current chunk."""
        room = Signal(range(config.fetch_buffer + 1))
        page = PAGE_BYTES // INSTRUCTION_BYTES
        count = Signal(range(min(page, config.fetch_chunk) + 1))
        """Instructions in the requested burst, computed one cycle earlier."""

        def first_of(chunk: Value, position: Value) -> Value:
            lane = position[: log2(lanes)] if lanes > 1 else Const(0, 1)
            longest = Const(config.max_burst_beats * lanes // halves) - lane
            return minimum(chunk, page - position[: log2(page)], longest)

        lane = position[: log2(lanes)] if lanes > 1 else Const(0, 1)
        beats = (lane + count + (lanes - 1)) >> log2(lanes) if halves == 1 else count << log2(halves)
        m.d.comb += [
            read.valid.eq(self.enable & (chunk != 0) & (count <= room)),
            read.request.address.eq(position << log2(INSTRUCTION_BYTES)),
            read.request.beats.eq(beats),
            read.request.index.eq(asked),
            counts.push.eq(read.granted),
            counts.data.eq(count),
        ]
        m.d.sync += room.eq(
            Mux(
                read.granted,
                Mux(self.fetched.push, room - count + 1, room - count),
                Mux(self.fetched.push, room + 1, room),
            )
        )
        rest = (chunk - count)[: len(chunk)]
        following = minimum(left, Const(config.fetch_chunk))
        next_chunk = Signal.like(chunk)
        next_position = Signal.like(position)
        m.d.comb += [
            next_chunk.eq(Mux(rest == 0, following, rest)),
            next_position.eq(position + count),
        ]
        with m.If(read.granted):
            m.d.sync += [
                position.eq(next_position),
                asked.eq(asked + count),
                chunk.eq(next_chunk),
                count.eq(first_of(next_chunk, next_position)),
            ]
            with m.If(rest == 0):
                m.d.sync += left.eq(left - following)
        first = minimum(self.length, Const(config.fetch_chunk))
        begin = self.address >> log2(INSTRUCTION_BYTES)
        with m.If(self.flush):
            m.d.sync += [
                position.eq(begin),
                asked.eq(0),
                chunk.eq(first),
                count.eq(first_of(first, begin)),
                left.eq(self.length - first),
                room.eq(config.fetch_buffer),
            ]

    def _buffer(
        self, m: Module, lanes: int, halves: int, arrived: Signal, counts: Queue
    ) -> tuple[Any, Value]:
        config = self._config
        lane = Signal(max(1, log2(lanes)))
        half = Signal()
        burst_left = Signal(range(257))
        """In instructions."""
        fresh = Signal(init=1)
        """The next beat is a burst's first."""
        taken = Signal(range(lanes + 1))
        rest = Signal(range(257))
        complete = Signal()
        m.d.comb += [
            counts.flush.eq(self.flush),
            rest.eq(Mux(fresh, counts.head, burst_left)),
            taken.eq(minimum(lanes - lane if lanes > 1 else Const(1), rest)),
            complete.eq(self.read.beat_valid & ((half == halves - 1) if halves > 1 else 1)),
            counts.pop.eq(complete & (rest == taken)),
        ]
        beat: Value = self.read.beat_data
        if halves > 1:
            low = Signal(_BITS // 2)
            beat = Cat(low, self.read.beat_data)
            with m.If(self.read.beat_valid):
                m.d.sync += [half.eq(~half), low.eq(self.read.beat_data)]
        with m.If(complete):
            m.d.sync += [
                burst_left.eq(rest - taken),
                fresh.eq(rest == taken),
                arrived.eq(arrived + taken),
            ]
            if lanes > 1:
                m.d.sync += lane.eq(lane + taken)
        with m.If(self.flush):
            m.d.sync += [
                lane.eq(self.address >> log2(INSTRUCTION_BYTES)),
                half.eq(0),
                fresh.eq(1),
                arrived.eq(0),
            ]

        # While a burst is in progress, its next instruction has a place. If a beat holds at most one, the
        # place is written until the instruction is complete.
        depth = max(1, config.fetch_buffer // lanes)
        instructions = []
        for number in range(lanes):
            memory = Memory(shape=_Arrived(), depth=depth, init=[])
            m.submodules[f"bank_{number}"] = memory
            write = memory.write_port()
            read = memory.read_port(domain="comb")
            distance = Signal(max(1, log2(lanes)), name=f"distance_{number}")
            source = Signal(max(1, log2(lanes)), name=f"source_{number}")
            parts = [beat[n * _BITS : (n + 1) * _BITS] for n in range(lanes)]
            word = Signal(_BITS, name=f"arrived_{number}")
            m.d.comb += [
                distance.eq(bank_of(number - arrived, lanes)),
                source.eq(lane + distance),
                write.addr.eq((arrived + distance) >> log2(lanes)),
                word.eq(Array(parts)[source] if lanes > 1 else beat),
                Value.cast(write.data).eq(Value.cast(self._looked_at(word))),
                write.en.eq(counts.valid if lanes == 1 else complete & (distance < taken)),
                read.addr.eq(self.next >> log2(lanes)),
            ]
            instructions.append(Value.cast(read.data))
        head = Array(instructions)[bank_of(self.next, lanes)] if lanes > 1 else instructions[0]
        return data.View(_Arrived(), head), Mux(complete, taken, 0)

    def _looked_at(self, word: Value) -> Value:
        load = view(Load, self._config, word)
        by_store, by_load = (executed_by(unit, load, self._config) for unit in (Unit.STORE, Unit.LOAD))
        unit = Mux(by_store, Unit.STORE, Mux(by_load, Unit.LOAD, Unit.COMPUTE))[:UNIT_BITS]
        known = Value.cast(load.opcode).matches(*classes_of(self._config))
        units = Cat(known & (unit == worker) for worker in WORKERS)
        return Cat(word, unit, units, load.opcode == Opcode.FINISH)

    def _hand_out(self, m: Module, head: Any, taken: Value) -> None:
        held = Signal(range(self._config.fetch_buffer + 1))
        """Arrived, undispatched instructions."""
        last = Signal()
        blocked = Signal()
        """In serial mode, the previous instruction has not retired."""
        m.d.sync += held.eq(held + taken - self.fetched.push)
        with m.If(taken != 0):
            m.d.sync += self.waiting.eq(0)
        with m.Elif(self.fetched.push):
            m.d.sync += self.waiting.eq(held == 1)

        here = Signal()
        m.d.comb += here.eq(self.more & ~self.waiting)
        fault = first_fault(
            m,
            [
                (self.enable & (self.length == 0), Cause.NO_FINISH),
                (here & (head.units == 0), Cause.OPCODE),
                (here & head.finish & ~last, Cause.EARLY_FINISH),
                (here & ~head.finish & last, Cause.NO_FINISH),
            ],
        )
        m.d.comb += [
            self.fault.eq(fault),
            self.fetched.unit.eq(head.unit),
            self.fetched.word.eq(head.word),
            self.fetched.index.eq(self.next),
        ]
        for number, worker in enumerate(WORKERS):
            chosen = here & ~(self.serial & blocked) & head.units[number] & (head.finish == last)
            reservation = port_of(self, worker)
            able = chosen & reservation.room
            m.d.comb += reservation.reserve.eq(self.active & able)
            with m.If(able):
                m.d.comb += self.able.eq(1)
        m.d.comb += self.fetched.push.eq(self.active & self.able)
        with m.If(self.retired):
            m.d.sync += blocked.eq(0)
        with m.If(self.fetched.push):
            m.d.sync += [
                self.next.eq(self.next + 1),
                self.more.eq(~last),
                last.eq(self.next + 2 == self.length),
                blocked.eq(1),
            ]
        with m.If(self.flush):
            m.d.sync += [
                self.next.eq(0),
                self.more.eq(self.length != 0),
                last.eq(self.length == 1),
                held.eq(0),
                self.waiting.eq(1),
                blocked.eq(0),
            ]


def executed_by(unit: Unit, transfer: Any, config: Config) -> Value:
    found = []
    for opcode, cls in classes_of(config).items():
        same = transfer.opcode == opcode
        if not issubclass(cls, Transfer):
            found += _by_variant(unit, opcode, cls, transfer, config)
            continue
        routes = routes_of(cls, config)
        ids = [transfer.memory == memory for memory, route in routes.items() if route.unit is unit]
        if len(ids) == len(routes) and cls.OTHERWISE is unit:
            found.append(same)
        elif ids:
            found.append(same & reduce(or_, ids))
    return reduce(or_, found)


def _by_variant(
    unit: Unit, opcode: int, cls: type[Instruction], transfer: Any, config: Config
) -> list[Value]:
    same = transfer.opcode == opcode
    ids = {memory: one().unit for (number, memory, _), one in variants_of(config).items() if number == opcode}
    if cls().unit is not unit:
        return [same & (transfer.memory == memory) for memory, by in ids.items() if by is unit]
    others = [transfer.memory == memory for memory, by in ids.items() if by is not unit]
    return [same & ~reduce(or_, others) if others else same]
