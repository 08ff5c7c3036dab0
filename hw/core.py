"""The accelerator: four units, token counters, queues and the two AXI ports.

A run's state is here: which cycle it is, whether it goes on, and what ended it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from accel.core.config import Config
from accel.core.faults import CAUSE_BITS, Cause
from accel.core.isa import Instruction, Unit
from accel.core.isa import Store as StoreInstruction
from accel.core.memories import scratchpads_of
from accel.core.token_rules import WORKERS, Counter, queue_depth
from accel.hw.bus.axi import (
    MANAGER,
    SUBORDINATE,
    Axi4,
    Axi4Read,
    Axi4Write,
    AxiLite,
    connect_inside,
    manager_ports,
    pins,
    subordinate_ports,
)
from accel.hw.bus.control import Control
from accel.hw.bus.port import ReadPort, readers_of
from accel.hw.datapath.gemm import tap_names
from accel.hw.datapath.layouts import (
    BEATS_BITS,
    INDEX_BITS,
    UNIT_BITS,
    EntryLayout,
    bits_for_depth,
    log2,
    minimum,
    view,
)
from accel.hw.datapath.names import STATES, Names
from accel.hw.datapath.queue import Queue
from accel.hw.datapath.scratchpads import as_held, as_read, out_ports
from accel.hw.datapath.transfer import kinds_of
from accel.hw.units.compute import ELSEWHERE, Compute
from accel.hw.units.fetch import Fetch
from accel.hw.units.load import Load
from accel.hw.units.store import Store
from accel.hw.units.tokens import TokenCounters

COUNTER_BITS = 48
"""Of the hardware's own counters of cycles and bytes."""
MAX_CYCLES_BITS = 64


def core_ports(config: Config) -> dict[str, Any]:
    """All signals of the core."""
    return manager_ports(config) | subordinate_ports() | {"irq": Out(1)}


def simulation_ports(config: Config) -> dict[str, Any]:
    """All signals of the simulation top."""
    return core_ports(config) | observation_ports(config)


def observation_ports(config: Config) -> dict[str, Any]:
    """What only simulation sees: events as they happen, the token counters, and ways to fill the scratchpads
    and to look into them: between runs, ``peek_*_data`` is the element that was asked for a cycle before.
    Elements are as software holds them."""
    ports: dict[str, Any] = {
        "running": Out(1),
        "cycle": Out(MAX_CYCLES_BITS),
        "halted": Out(1),
        "ev_push": Out(1),
        "ev_push_unit": Out(UNIT_BITS),
        "ev_push_index": Out(INDEX_BITS),
    }
    for unit in WORKERS:
        ports |= {
            f"ev_{unit.label}_start": Out(1),
            f"ev_{unit.label}_start_index": Out(INDEX_BITS),
            f"ev_{unit.label}_start_pops": Out(2),
            f"ev_{unit.label}_retire": Out(1),
            f"ev_{unit.label}_retire_index": Out(INDEX_BITS),
            f"ev_{unit.label}_retire_pushes": Out(2),
        }
    for name in ("read_grant", "read_last", "write_grant", "write_last"):
        ports[f"ev_{name}"] = Out(1)
        if name.startswith("read"):
            ports[f"ev_{name}_unit"] = Out(UNIT_BITS)
        ports[f"ev_{name}_index"] = Out(INDEX_BITS)
        ports[f"ev_{name}_beats"] = Out(BEATS_BITS)
    for name, pad in scratchpads_of(config).items():
        address, word = bits_for_depth(pad.depth(config)), pad.held_bytes(config) * 8
        ports |= {
            f"pre_{name}_en": In(1),
            f"pre_{name}_addr": In(address),
            f"pre_{name}_data": In(word),
            f"peek_{name}_en": In(1),
            f"peek_{name}_addr": In(address),
            f"peek_{name}_data": Out(word),
        }
    for counter in Counter:
        ports[f"tokens_{counter.value}"] = Out(config.token_bits)
    return ports


class Core(wiring.Component):
    """The synthesizable top: AXI4 manager ``m_axi_*``, AXI4-Lite subordinate ``s_axi_*``, ``irq``.

    One clock and one synchronous active-high reset. ``observed`` adds the ports of
    :func:`observation_ports`; ``named`` adds :class:`~accel.hw.datapath.names.Names`. Both are for simulation
    only.
    """

    def __init__(self, config: Config, *, observed: bool = False, named: bool = False) -> None:
        self.config = config
        self._observed = observed
        self._named = named
        super().__init__(simulation_ports(config) if observed else core_ports(config))

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        parts = self._parts(m)
        control, fetch, port = parts.control, parts.fetch, parts.port
        running, ended = Signal(), Signal()
        halted = Signal()
        cycle = Signal(MAX_CYCLES_BITS)
        active, complete = Signal(), Signal()
        flush = control.start | control.clear
        occupied = parts.all("occupied").any()
        m.d.comb += [
            complete.eq(~fetch.more & (control.program_length != 0) & ~parts.waiting.any() & ~occupied),
            active.eq(running & ~halted & ~complete),
            parts.tokens.clear.eq(control.clear),
        ]
        self._connect_units(m, parts, flush=flush, active=active)
        self._connect_bus(m, parts, running=running, halted=halted)

        found, cause, index = self._first_error(m, parts, cycle)
        stopping = Signal()
        held_cause, held_index = Signal(CAUSE_BITS), Signal(INDEX_BITS)
        drained = ~(port.busy | parts.store.writing | parts.store.awvalid | parts.store.wvalid)
        m.d.comb += [stopping.eq(active & found), ended.eq(running & Mux(halted, drained, complete))]
        with m.If(active & ~stopping):
            m.d.sync += cycle.eq(cycle + 1)
        with m.If(stopping):
            m.d.sync += [halted.eq(1), held_cause.eq(cause), held_index.eq(index)]
        with m.If(ended):
            m.d.sync += running.eq(0)
        with m.If(control.start):
            m.d.sync += [running.eq(1), cycle.eq(0)]
        with m.If(flush):
            m.d.sync += [halted.eq(0), held_cause.eq(0), held_index.eq(0)]
        m.d.comb += [
            control.running.eq(running),
            control.ended.eq(ended),
            control.cause.eq(held_cause),
            control.fault_index.eq(held_index),
            control.cycles.eq(cycle),
        ]
        self._count(m, parts, active & ~stopping)
        if self._observed:
            m.d.comb += [self.running.eq(running), self.cycle.eq(cycle), self.halted.eq(halted)]
            self._observe(m, parts)
        if self._named:
            self._name(m, parts, running)
        return m

    def _parts(self, m: Module) -> "_Parts":
        """All submodules."""
        config = self.config
        m.submodules.control = control = Control(config)
        m.submodules.fetch = fetch = Fetch(config)
        m.submodules.load = load = Load(config)
        m.submodules.compute = compute = Compute(config)
        m.submodules.store = store = Store(config)
        m.submodules.read_port = port = ReadPort(config)
        m.submodules.tokens = tokens = TokenCounters(config)
        queues = {}
        for unit in WORKERS:
            queues[unit] = Queue(EntryLayout(), queue_depth(unit, config))
            m.submodules[f"{unit.label}_queue"] = queues[unit]
        return _Parts(control, fetch, load, compute, store, port, tokens, queues)

    def _first_error(self, m: Module, parts: "_Parts", cycle: Value) -> tuple[Signal, Signal, Signal]:
        """Whether this cycle has an error, its cause and instruction: the limit, else the first by unit
        and age, else a deadlock."""
        fetch, port, compute = parts.fetch, parts.port, parts.compute
        bad_read, bad_write = port.bad, parts.store.bad
        errors: list[tuple[Value, Value | Cause, Value]] = [
            (cycle == parts.control.max_cycles, Cause.LIMIT, self._oldest(parts)),
            (fetch.fault != 0, fetch.fault, fetch.next),
            (bad_read & (port.burst.unit == Unit.FETCH), Cause.BUS, port.burst.index),
        ]
        for unit, part in parts.units.items():
            _, pushes = _token_counters(unit)
            overflow = Cat(parts.tokens.overflow[c] for c in pushes if c is not None).any()
            errors.append((overflow, Cause.TOKEN_OVERFLOW, part.retired.index))
            read = bad_read & (port.burst.unit == unit)
            if unit is Unit.STORE:
                if self.config.post:  # of two answers, that to the earlier instruction
                    first = ~bad_write | (port.burst.index < part.response)
                    errors.append((read & first, Cause.BUS, port.burst.index))
                errors.append((bad_write, Cause.BUS, part.response))
            else:
                errors.append((read, Cause.BUS, port.burst.index))
            if unit is Unit.COMPUTE:
                errors.append((compute.index_fault != 0, compute.index_fault, compute.index_fault_at))
            errors.append((part.fault != 0, part.fault, parts.queues[unit].head.index))
        at_work = (
            parts.all("occupied").any()
            | parts.all("start").any()
            | (port.busy | port.grant | parts.store.writing)
            | (fetch.push | fetch.more & fetch.waiting)
        )
        lacking = parts.all("lacking")
        deadlock = ~at_work & parts.waiting.any() & (lacking == parts.waiting)
        for unit, part in parts.units.items():
            errors.append((deadlock & part.lacking, Cause.DEADLOCK, parts.queues[unit].head.index))

        found, cause, index = Signal(), Signal(CAUSE_BITS), Signal(INDEX_BITS)
        for position, (there, name, where) in enumerate(errors):
            with m.If(there) if position == 0 else m.Elif(there):
                m.d.comb += [found.eq(1), cause.eq(name), index.eq(where)]
        return found, cause, index

    def _connect_units(
        self,
        m: Module,
        parts: "_Parts",
        *,
        flush: Value,
        active: Value,
    ) -> None:
        """Fetch to queues to units, tokens and scratchpads between units."""
        control, fetch, tokens = parts.control, parts.fetch, parts.tokens
        compute, store = parts.compute, parts.store
        holders = {pad: parts.units[pad.filled_by] for pad in ELSEWHERE}
        m.d.comb += [getattr(compute, pad.name).eq(getattr(unit, pad.name)) for pad, unit in holders.items()]
        for index, unit in ((f"{pad}_index", unit) for pad, unit in holders.items()):
            m.d.comb += getattr(unit, index).eq(getattr(compute, index))
        for name in tap_names(self.config):
            index = f"{name}_index"
            m.d.comb += [
                getattr(compute, name).eq(getattr(parts.load, name)),
                getattr(parts.load, index).eq(getattr(compute, index)),
            ]
        stores = kinds_of(StoreInstruction, Unit.STORE, self.config)
        for name, member in out_ports(stores, self.config).items():
            ours, theirs = getattr(compute, name), getattr(store, name)
            m.d.comb += ours.eq(theirs) if member.flow is In else theirs.eq(ours)
        m.d.comb += [
            fetch.flush.eq(flush),
            fetch.active.eq(active),
            fetch.serial.eq(control.serial),
            fetch.address.eq(control.program_address),
            fetch.length.eq(control.program_length),
            fetch.retired.eq(parts.all("retire").any()),
        ]
        for unit, part in parts.units.items():
            queue = parts.queues[unit]
            flags = view(Instruction, self.config, queue.head.word)
            pops, pushes = _token_counters(unit)
            lacks = [
                flag & ~tokens.available[counter]
                for flag, counter in zip((flags.pop_prev, flags.pop_next), pops, strict=True)
                if counter is not None
            ]
            m.d.comb += [
                queue.flush.eq(flush),
                queue.data.eq(fetch.entry),
                queue.push.eq(getattr(fetch, f"push_{unit.label}")),
                queue.pop.eq(part.start),
                getattr(fetch, f"room_{unit.label}").eq(queue.room),
                part.flush.eq(flush),
                part.enable.eq(active),
                part.mem_base.eq(control.mem_base),
                part.mem_size.eq(control.mem_size),
                part.head.eq(queue.head),
                part.head_valid.eq(queue.valid),
                part.tokens.eq(~Cat(*lacks).any()),
            ]
            for flag, counter in zip((flags.pop_prev, flags.pop_next), pops, strict=True):
                if counter is not None:
                    m.d.comb += tokens.pop[counter].eq(part.start & flag)
            retired = (part.retired.push_prev, part.retired.push_next)
            for flag, counter in zip(retired, pushes, strict=True):
                if counter is not None:
                    m.d.comb += tokens.push[counter].eq(part.retire & flag)

    def _connect_bus(self, m: Module, parts: "_Parts", *, running: Value, halted: Value) -> None:
        """Units to the read port, both halves of the bus to the pins."""
        control, fetch, port, store = parts.control, parts.fetch, parts.port, parts.store
        fetching = Signal()
        """From cycle 1 of a run on."""
        m.d.sync += fetching.eq(running)
        m.d.comb += [port.stop.eq(halted), fetch.enable.eq(fetching & running)]
        readers = {Unit.FETCH: fetch, **parts.units}
        for unit in readers_of(self.config):
            part = readers[unit]
            m.d.comb += [
                getattr(port, f"request_{unit.label}_valid").eq(part.request_valid),
                getattr(port, f"request_{unit.label}").eq(part.request),
                (part.request_granted if unit is Unit.STORE else part.granted).eq(
                    getattr(port, f"grant_{unit.label}")
                ),
                part.beat_valid.eq(getattr(port, f"beat_{unit.label}")),
                part.beat_data.eq(self.m_axi_rdata),
            ]
        m.d.comb += self.irq.eq(control.irq)
        memory, software = (pins(self, Axi4(self.config), MANAGER), AxiLite().flip())
        connect_inside(m, pins(port, Axi4Read(self.config)), memory)
        connect_inside(m, pins(store, Axi4Write(self.config)), memory)
        connect_inside(m, pins(control, software, SUBORDINATE), pins(self, software, SUBORDINATE))

    def _oldest(self, parts: "_Parts") -> Value:
        """Place of the first instruction that has not retired."""
        nowhere = (1 << INDEX_BITS) - 1
        candidates: list[Value] = [Mux(parts.fetch.more, parts.fetch.next, nowhere)]
        for unit, part in parts.units.items():
            queue = parts.queues[unit]
            candidates.append(Mux(queue.valid, queue.head.index, nowhere))
            candidates.append(Mux(part.occupied, part.oldest, nowhere))
        return minimum(*candidates)

    def _count(self, m: Module, parts: "_Parts", counted: Value) -> None:
        """Where each unit's cycles go, and what the bus moves."""
        control = parts.control
        for unit, (busy, memory, token) in self._cycle_classes(parts).items():
            name = unit.label
            kinds = {"busy": busy, "memory_stall": ~busy & memory, "token_stall": ~busy & ~memory & token}
            for kind, there in kinds.items():
                counter = Signal(COUNTER_BITS, name=f"{name}_{kind}_cycles")
                with m.If(counted & there):
                    m.d.sync += counter.eq(counter + 1)
                with m.If(control.start):
                    m.d.sync += counter.eq(0)
                m.d.comb += getattr(control, f"{name}_{kind}").eq(counter)
        moved = {
            "read_bytes": self.m_axi_rvalid,
            "written_bytes": self.m_axi_wvalid & self.m_axi_wready,
        }
        for name, there in moved.items():
            beats = Signal(COUNTER_BITS, name=f"{name}_beats")
            with m.If(counted & there):
                m.d.sync += beats.eq(beats + 1)
            with m.If(control.start):
                m.d.sync += beats.eq(0)
            m.d.comb += getattr(control, name).eq(beats << log2(self.config.bus_bytes))

    def _cycle_classes(self, parts: "_Parts") -> dict[Unit, tuple[Value, Value, Value]]:
        """Of each unit, whether it is busy, else waits for memory, else for a token."""
        fetch = parts.fetch
        classes: dict[Unit, tuple[Value, Value, Value]] = {
            Unit.FETCH: (fetch.push, fetch.more & fetch.waiting, fetch.more)
        }
        for unit, part in parts.units.items():
            memory = part.moving if unit is Unit.COMPUTE else part.occupied | part.start
            classes[unit] = (part.busy, memory, part.lacking)
        return classes

    def _name(self, m: Module, parts: "_Parts", running: Value) -> None:
        """Put names to instructions and states."""
        m.submodules.names = names = Names(self.config)
        heads = {unit: (queue.valid, queue.head.word) for unit, queue in parts.queues.items()}
        heads[Unit.FETCH] = (parts.fetch.push, parts.fetch.entry.word)
        starts = {unit: part.start for unit, part in parts.units.items()} | {Unit.FETCH: parts.fetch.push}
        for unit, flags in self._cycle_classes(parts).items():
            values = dict(zip(STATES[1:], (flag & running for flag in flags), strict=True))
            values |= {"valid": heads[unit][0], "word": heads[unit][1], "start": starts[unit]}
            for name, value in values.items():
                m.d.comb += getattr(names, f"{unit.label}_{name}").eq(value)

    def _observe(self, m: Module, parts: "_Parts") -> None:
        """Drive the events, and let the scratchpads be filled and looked into."""
        fetch, port, store = parts.fetch, parts.port, parts.store
        m.d.comb += [
            self.ev_push.eq(fetch.push),
            self.ev_push_unit.eq(fetch.push_unit),
            self.ev_push_index.eq(fetch.next),
            self.ev_read_grant.eq(port.grant),
            self.ev_read_grant_unit.eq(port.granted.unit),
            self.ev_read_grant_index.eq(port.granted.index),
            self.ev_read_grant_beats.eq(port.granted.beats),
            self.ev_read_last.eq(port.last),
            self.ev_read_last_unit.eq(port.burst.unit),
            self.ev_read_last_index.eq(port.burst.index),
            self.ev_read_last_beats.eq(port.burst.beats),
            self.ev_write_grant.eq(store.grant),
            self.ev_write_grant_index.eq(store.granted.index),
            self.ev_write_grant_beats.eq(store.granted.beats),
            self.ev_write_last.eq(store.last),
            self.ev_write_last_index.eq(store.burst.index),
            self.ev_write_last_beats.eq(store.burst.beats),
        ]
        for unit, part in parts.units.items():
            head = parts.queues[unit].head
            flags = view(Instruction, self.config, head.word)
            values = {
                "start": part.start,
                "start_index": head.index,
                "start_pops": Cat(flags.pop_prev, flags.pop_next),
                "retire": part.retire,
                "retire_index": part.retired.index,
                "retire_pushes": Cat(part.retired.push_prev, part.retired.push_next),
            }
            for name, value in values.items():
                m.d.comb += getattr(self, f"ev_{unit.label}_{name}").eq(value)
        for memory, pad in scratchpads_of(self.config).items():
            holder = parts.units[pad.filled_by]
            m.d.comb += [
                getattr(holder, f"preload_{memory}").eq(getattr(self, f"pre_{memory}_en")),
                getattr(holder, f"preload_{memory}_index").eq(getattr(self, f"pre_{memory}_addr")),
                getattr(holder, f"preload_{memory}_word").eq(
                    as_held(getattr(self, f"pre_{memory}_data"), pad, self.config)
                ),
                getattr(holder, f"peek_{memory}").eq(getattr(self, f"peek_{memory}_en")),
                getattr(holder, f"peek_{memory}_index").eq(getattr(self, f"peek_{memory}_addr")),
                getattr(self, f"peek_{memory}_data").eq(as_read(getattr(holder, memory), pad, self.config)),
            ]
        for counter in Counter:
            count = getattr(parts.tokens, f"count_{counter.value}")
            m.d.comb += getattr(self, f"tokens_{counter.value}").eq(count)


def _token_counters(unit: Unit) -> tuple[Sequence[Counter | None], Sequence[Counter | None]]:
    """Counters that a unit pops from and pushes to: those of its previous and of its next neighbour."""
    ends = {(counter.source, counter.target): counter for counter in Counter}
    neighbours = (unit.previous, unit.next)
    pops = [None if n is None else ends[n, unit] for n in neighbours]
    pushes = [None if n is None else ends[unit, n] for n in neighbours]
    return pops, pushes


@dataclass(frozen=True)
class _Parts:
    """What a core is made of."""

    control: Control
    fetch: Fetch
    load: Load
    compute: Compute
    store: Store
    port: ReadPort
    tokens: TokenCounters
    queues: dict[Unit, Queue]

    @property
    def units(self) -> dict[Unit, Any]:
        """The units behind queues."""
        return {Unit.LOAD: self.load, Unit.COMPUTE: self.compute, Unit.STORE: self.store}

    @property
    def waiting(self) -> Value:
        """A bit per unit: its queue has a head."""
        return Cat(queue.valid for queue in self.queues.values())

    def all(self, name: str) -> Value:
        """One port of each unit."""
        return Cat(getattr(unit, name) for unit in self.units.values())
