"""The accelerator."""

from typing import Any

from amaranth.hdl import Module, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from accel.core.config import Config
from accel.core.isa import Unit
from accel.core.token_rules import WORKERS, queue_depth
from accel.hw.bus.axi import (
    MANAGER,
    SUBORDINATE,
    Axi4,
    Axi4Read,
    Axi4Write,
    AxiLite,
    connect_inside,
    manager_ports,
    moves,
    pins,
    subordinate_ports,
)
from accel.hw.bus.bus_timeout import BusTimeout
from accel.hw.bus.control_registers import Control
from accel.hw.bus.read_port import ReadPort, readers_of
from accel.hw.core_parts import Parts
from accel.hw.datapath.access_probes import AccessProbes
from accel.hw.datapath.queue import ReservedQueue
from accel.hw.datapath.unit_ports import port_of
from accel.hw.datapath.wave_names import STATES, Names
from accel.hw.datapath.word_layouts import EntryLayout
from accel.hw.error_priority import errors_of, events_of, places_of
from accel.hw.simulation_probes import observation_ports, observe
from accel.hw.units.compute import Compute
from accel.hw.units.cycle_counters import CLASSES, MOVED, CycleCounters
from accel.hw.units.dispatch import Dispatch
from accel.hw.units.fetch import Fetch
from accel.hw.units.load import Load
from accel.hw.units.run_control import RunControl
from accel.hw.units.store import Store
from accel.hw.units.token_counters import TokenCounters


def core_ports(config: Config) -> dict[str, Any]:
    return manager_ports(config) | subordinate_ports() | {"irq": Out(1)}


def simulation_ports(config: Config) -> dict[str, Any]:
    return core_ports(config) | observation_ports(config)


class Core(wiring.Component):
    """The synthesizable top: AXI4 manager ``m_axi_*``, AXI4-Lite subordinate ``s_axi_*``, interrupt ``irq``.

    It has one clock and one synchronous active-high reset. For simulation, ``observed`` adds
    ``observation_ports``, and ``named`` texts for waves.
    """

    def __init__(self, config: Config, *, observed: bool = False, named: bool = False) -> None:
        self.config = config
        self._observed = observed
        self._named = named
        super().__init__(simulation_ports(config) if observed else core_ports(config))

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        parts = self._parts(m)
        ending = self._ending(m, parts)
        self._connect_control(m, parts, ending)
        self._connect_fetch(m, parts, ending)
        self._connect_units(m, parts, ending)
        self._connect_bus(m, parts, ending)
        self._count(m, parts, ending)
        if self._observed:
            observe(m, self, parts, ending)
        if self._named:
            self._name(m, parts, ending.running)
        return m

    def _parts(self, m: Module) -> Parts:
        config = self.config
        m.submodules.control = control = Control(config)
        m.submodules.fetch = fetch = Fetch(config)
        probes = AccessProbes(config) if self._observed else None
        m.submodules.load = load = Load(config, probes)
        m.submodules.compute = compute = Compute(config, probes)
        m.submodules.store = store = Store(config, probes)
        m.submodules.read_port = port = ReadPort(config)
        m.submodules.tokens = tokens = TokenCounters(config)
        m.submodules.watch = watch = BusTimeout()
        m.submodules.dispatch = dispatch = Dispatch(config)
        queues = {}
        for unit in WORKERS:
            queues[unit] = ReservedQueue(EntryLayout(config), queue_depth(unit, config))
            m.submodules[f"{unit.label}_queue"] = queues[unit]
        return Parts(control, fetch, load, compute, store, port, tokens, watch, dispatch, queues, probes)

    def _ending(self, m: Module, parts: Parts) -> RunControl:
        events, errors, places = events_of(parts), errors_of(parts, self.config), places_of(parts)
        m.submodules.ending = ending = RunControl(len(events), len(errors), len(places))
        for event, (there, cause) in zip(ending.events, events, strict=True):
            m.d.comb += [event.there.eq(there), event.cause.eq(cause)]
        for error, (there, cause, index) in zip(ending.errors, errors, strict=True):
            m.d.comb += [error.there.eq(there), error.cause.eq(cause), error.index.eq(index)]
        for place, (valid, index) in zip(ending.places, places, strict=True):
            m.d.comb += [place.valid.eq(valid), place.index.eq(index)]
        m.d.comb += [
            ending.complete.eq(parts.complete),
            ending.drained.eq(parts.drained),
            ending.offers.eq(parts.offers),
            ending.late.eq(parts.watch.late),
        ]
        return ending

    def _connect_control(self, m: Module, parts: Parts, ending: RunControl) -> None:
        control = parts.control
        m.d.comb += [
            ending.start.eq(control.start),
            ending.clear.eq(control.clear),
            ending.flush.eq(control.flush[0]),
            ending.max_cycles.eq(control.max_cycles),
            control.running.eq(ending.running),
            control.draining.eq(ending.draining),
            control.offering.eq(ending.offering),
            control.unanswered.eq(parts.stale),
            control.ended.eq(ending.ended),
            control.cause.eq(ending.held_cause),
            control.fault_index.eq(ending.held_index),
            control.cycles.eq(ending.cycle),
            parts.tokens.clear.eq(control.clear),
            self.irq.eq(control.irq),
        ]

    def _connect_fetch(self, m: Module, parts: Parts, ending: RunControl) -> None:
        control, fetch, dispatch = parts.control, parts.fetch, parts.dispatch
        m.d.comb += [
            fetch.flush.eq(control.flush[0]),
            fetch.enable.eq(ending.fetching),
            fetch.active.eq(ending.going),
            fetch.serial.eq(control.serial),
            fetch.address.eq(control.program_address),
            fetch.length.eq(control.program_length),
            fetch.retired.eq(parts.retiring.any()),
            dispatch.flush.eq(control.flush[0]),
            dispatch.mem_size.eq(control.mem_size),
        ]
        wiring.connect(m, fetch.fetched, dispatch.fetched)
        for number, (unit, queue) in enumerate(parts.queues.items(), 1):
            m.d.comb += queue.flush.eq(control.flush[number])
            wiring.connect(m, port_of(fetch, unit), queue.reservation)
            wiring.connect(m, port_of(dispatch, unit), queue.enqueue)

    def _connect_units(self, m: Module, parts: Parts, ending: RunControl) -> None:
        control = parts.control
        for number, (unit, part) in enumerate(parts.units.items(), 1):
            m.d.comb += [
                part.control.flush.eq(control.flush[number]),
                part.control.enable.eq(ending.going),
                part.control.mem_base.eq(control.mem_base),
            ]
            wiring.connect(m, parts.queues[unit].issue, part.issue)
            wiring.connect(m, part.tokens, port_of(parts.tokens, unit))
        wiring.connect(m, parts.compute.operands, parts.load.operands)
        wiring.connect(m, parts.store.out, parts.compute.out)

    def _connect_bus(self, m: Module, parts: Parts, ending: RunControl) -> None:
        control, port, store = parts.control, parts.port, parts.store
        readers = {Unit.FETCH: parts.fetch, **parts.units}
        for unit in readers_of(self.config):
            wiring.connect(m, readers[unit].read, port_of(port, unit))
        memory, software = (pins(self, Axi4(self.config), MANAGER), AxiLite().flip())
        m.d.comb += [
            port.stop.eq(~ending.going),
            port.abandon.eq(ending.ended),
            store.abandon.eq(ending.ended),
            parts.watch.limit.eq(control.bus_timeout),
            parts.watch.owes.eq(~parts.drained | parts.stale),
            parts.watch.moved.eq(moves(memory)),
        ]
        connect_inside(m, pins(port, Axi4Read(self.config)), memory)
        connect_inside(m, pins(store, Axi4Write(self.config)), memory)
        connect_inside(m, pins(control, software, SUBORDINATE), pins(self, software, SUBORDINATE))

    def _count(self, m: Module, parts: Parts, ending: RunControl) -> None:
        m.submodules.counters = counters = CycleCounters(self.config)
        m.d.comb += [counters.clear.eq(parts.control.start), counters.counted.eq(ending.counted)]
        for unit, flags in parts.cycle_classes().items():
            for kind, there in zip(CLASSES, flags, strict=True):
                name = f"{unit.label}_{kind}"
                m.d.comb += [
                    getattr(counters, f"is_{name}").eq(there),
                    getattr(parts.control, name).eq(getattr(counters, name)),
                ]
        moved = (self.m_axi_rvalid, self.m_axi_wvalid & self.m_axi_wready)
        for name, there in zip(MOVED, moved, strict=True):
            m.d.comb += [
                getattr(counters, f"is_{name}").eq(there),
                getattr(parts.control, name).eq(getattr(counters, name)),
            ]

    def _name(self, m: Module, parts: Parts, running: Value) -> None:
        m.submodules.names = names = Names(self.config)
        heads = {unit: (queue.issue.valid, queue.issue.entry.word) for unit, queue in parts.queues.items()}
        fetched = parts.fetch.fetched
        heads[Unit.FETCH] = (fetched.push, fetched.word)
        starts = {unit: part.issue.start for unit, part in parts.units.items()} | {Unit.FETCH: fetched.push}
        for unit, flags in parts.cycle_classes().items():
            values = dict(zip(STATES[1:], (flag & running for flag in flags), strict=True))
            values |= {"valid": heads[unit][0], "word": heads[unit][1], "start": starts[unit]}
            for name, value in values.items():
                m.d.comb += getattr(names, f"{unit.label}_{name}").eq(value)
