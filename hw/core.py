"""The accelerator: how its units, token counters, queues and the two AXI ports are connected."""

from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from accel.core.config import Config
from accel.core.isa import Instruction, Unit
from accel.core.isa import Store as StoreInstruction
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
    pins,
    subordinate_ports,
)
from accel.hw.bus.control import Control
from accel.hw.bus.port import ReadPort, readers_of
from accel.hw.bus.watch import Watch
from accel.hw.datapath.gemm import tap_names
from accel.hw.datapath.layouts import EntryLayout, view
from accel.hw.datapath.names import STATES, Names
from accel.hw.datapath.queue import HeadQueue
from accel.hw.datapath.scratchpads import out_ports
from accel.hw.datapath.transfer import kinds_of
from accel.hw.errors import errors_of, events_of, places_of
from accel.hw.observation import observation_ports, observe
from accel.hw.parts import Parts, token_counters
from accel.hw.units.compute import ELSEWHERE, Compute
from accel.hw.units.counters import CLASSES, MOVED, Counters
from accel.hw.units.dispatch import Dispatch
from accel.hw.units.ending import Ending
from accel.hw.units.fetch import Fetch
from accel.hw.units.load import Load
from accel.hw.units.store import Store
from accel.hw.units.tokens import TokenCounters


def core_ports(config: Config) -> dict[str, Any]:
    """All signals of the core."""
    return manager_ports(config) | subordinate_ports() | {"irq": Out(1)}


def simulation_ports(config: Config) -> dict[str, Any]:
    """All signals of the simulation top."""
    return core_ports(config) | observation_ports(config)


class Core(wiring.Component):
    """The synthesizable top: AXI4 manager ``m_axi_*``, AXI4-Lite subordinate ``s_axi_*``, ``irq``.

    One clock and one synchronous active-high reset. ``observed`` adds the ports of
    :func:`~accel.hw.observation.observation_ports`; ``named`` adds :class:`~accel.hw.datapath.names.Names`.
    Both are for simulation only.
    """

    def __init__(self, config: Config, *, observed: bool = False, named: bool = False) -> None:
        self.config = config
        self._observed = observed
        self._named = named
        super().__init__(simulation_ports(config) if observed else core_ports(config))

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        parts = self._parts(m)
        control, fetch, port, store = parts.control, parts.fetch, parts.port, parts.store
        events, errors, places = events_of(parts), errors_of(parts, self.config), places_of(parts)
        m.submodules.ending = ending = Ending(len(events), len(errors), len(places))
        for event, (there, cause) in zip(ending.events, events, strict=True):
            m.d.comb += [event.there.eq(there), event.cause.eq(cause)]
        for error, (there, cause, index) in zip(ending.errors, errors, strict=True):
            m.d.comb += [error.there.eq(there), error.cause.eq(cause), error.index.eq(index)]
        for place, (valid, index) in zip(ending.places, places, strict=True):
            m.d.comb += [place.valid.eq(valid), place.index.eq(index)]
        to_do = fetch.more | parts.dispatch.busy | parts.waiting.any() | parts.all("occupied").any()
        m.d.comb += [
            ending.start.eq(control.start),
            ending.clear.eq(control.clear),
            ending.flush.eq(control.flush[0]),
            ending.max_cycles.eq(control.max_cycles),
            ending.complete.eq(~to_do & (control.program_length != 0)),
            ending.drained.eq(~(port.busy | store.writing | store.sending)),
            ending.late.eq(parts.watch.late),
            port.abandon.eq(ending.ended),
            store.abandon.eq(ending.ended),
            control.running.eq(ending.running),
            control.draining.eq(ending.draining),
            control.unanswered.eq(port.stale | store.stale),
            control.ended.eq(ending.ended),
            control.cause.eq(ending.held_cause),
            control.fault_index.eq(ending.held_index),
            control.cycles.eq(ending.cycle),
            parts.tokens.clear.eq(control.clear),
        ]
        # Of a run that was given up; by the time when a command could come, it has been found out.
        m.d.sync += control.offering.eq(~ending.going & (port.arvalid | store.sending))
        self._connect_units(m, parts, flush=control.flush, active=ending.going)
        self._connect_bus(m, parts, running=ending.running, going=ending.going)
        self._count(m, parts, ending)
        if self._observed:
            observe(m, self, parts, ending)
        if self._named:
            self._name(m, parts, ending.running)
        return m

    def _parts(self, m: Module) -> Parts:
        """All submodules."""
        config = self.config
        m.submodules.control = control = Control(config)
        m.submodules.fetch = fetch = Fetch(config)
        m.submodules.load = load = Load(config)
        m.submodules.compute = compute = Compute(config)
        m.submodules.store = store = Store(config)
        m.submodules.read_port = port = ReadPort(config)
        m.submodules.tokens = tokens = TokenCounters(config)
        m.submodules.watch = watch = Watch()
        m.submodules.dispatch = dispatch = Dispatch(config)
        queues = {}
        for unit in WORKERS:
            queues[unit] = HeadQueue(EntryLayout(config), queue_depth(unit, config))
            m.submodules[f"{unit.label}_queue"] = queues[unit]
        return Parts(control, fetch, load, compute, store, port, tokens, watch, dispatch, queues)

    def _connect_units(
        self,
        m: Module,
        parts: Parts,
        *,
        flush: Value,
        active: Value,
    ) -> None:
        """Fetch to queues to units, tokens and scratchpads between units. A bit of ``flush`` is for fetch,
        and one for each unit behind a queue."""
        control, fetch, tokens = parts.control, parts.fetch, parts.tokens
        compute, store, dispatch = parts.compute, parts.store, parts.dispatch
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
            fetch.flush.eq(flush[0]),
            fetch.active.eq(active),
            fetch.serial.eq(control.serial),
            fetch.address.eq(control.program_address),
            fetch.length.eq(control.program_length),
            fetch.retired.eq(parts.all("retire").any()),
            dispatch.flush.eq(flush[0]),
            dispatch.mem_size.eq(control.mem_size),
            dispatch.push.eq(fetch.push),
            dispatch.unit.eq(fetch.push_unit),
            dispatch.word.eq(fetch.word),
            dispatch.index.eq(fetch.next),
        ]
        for number, (unit, part) in enumerate(parts.units.items(), 1):
            queue = parts.queues[unit]
            flags = view(Instruction, self.config, queue.head.word)
            foresees = unit is Unit.LOAD or (unit is Unit.STORE and self.config.post)
            pops, pushes = token_counters(unit)
            lacks = [
                flag & ~tokens.available[counter]
                for flag, counter in zip((flags.pop_prev, flags.pop_next), pops, strict=True)
                if counter is not None
            ]
            m.d.comb += [
                queue.flush.eq(flush[number]),
                queue.announces.eq(getattr(fetch, f"push_{unit.label}")),
                queue.data.eq(dispatch.entry),
                queue.push.eq(getattr(dispatch, f"push_{unit.label}")),
                queue.pop.eq(part.start),
                getattr(fetch, f"room_{unit.label}").eq(queue.room),
                part.flush.eq(flush[number]),
                part.enable.eq(active),
                part.mem_base.eq(control.mem_base),
                part.head.eq(queue.head),
                part.head_valid.eq(queue.valid),
                *([part.taking.eq(queue.taking), part.following.eq(queue.following)] if foresees else []),
                part.tokens.eq(~Cat(*lacks).any()),
            ]
            for flag, counter in zip((flags.pop_prev, flags.pop_next), pops, strict=True):
                if counter is not None:
                    m.d.comb += tokens.pop[counter].eq(part.start & flag)
            retired = (part.retired.push_prev, part.retired.push_next)
            for flag, counter in zip(retired, pushes, strict=True):
                if counter is not None:
                    m.d.comb += tokens.push[counter].eq(part.retire & flag)

    def _connect_bus(self, m: Module, parts: Parts, *, running: Value, going: Value) -> None:
        """Units to the read port, both halves of the bus to the pins."""
        control, fetch, port, store = parts.control, parts.fetch, parts.port, parts.store
        fetching = Signal()
        """From cycle 1 of a run on."""
        m.d.sync += fetching.eq(running)
        m.d.comb += [port.stop.eq(~going), fetch.enable.eq(fetching & running)]
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
        moved = [
            getattr(self, f"{MANAGER}{channel}valid") & getattr(self, f"{MANAGER}{channel}ready")
            for channel in Axi4(self.config).members
        ]
        m.d.comb += [
            self.irq.eq(control.irq),
            parts.watch.limit.eq(control.bus_timeout),
            parts.watch.owes.eq(port.busy | port.stale | store.sending | store.writing | store.stale),
            parts.watch.moved.eq(Cat(moved).any()),
        ]
        memory, software = (pins(self, Axi4(self.config), MANAGER), AxiLite().flip())
        connect_inside(m, pins(port, Axi4Read(self.config)), memory)
        connect_inside(m, pins(store, Axi4Write(self.config)), memory)
        connect_inside(m, pins(control, software, SUBORDINATE), pins(self, software, SUBORDINATE))

    def _count(self, m: Module, parts: Parts, ending: Ending) -> None:
        """Where each unit's cycles go, and what the bus moves."""
        m.submodules.counters = counters = Counters(self.config)
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
        """Put names to instructions and states."""
        m.submodules.names = names = Names(self.config)
        heads = {unit: (queue.valid, queue.head.word) for unit, queue in parts.queues.items()}
        heads[Unit.FETCH] = (parts.fetch.push, parts.fetch.word)
        starts = {unit: part.start for unit, part in parts.units.items()} | {Unit.FETCH: parts.fetch.push}
        for unit, flags in parts.cycle_classes().items():
            values = dict(zip(STATES[1:], (flag & running for flag in flags), strict=True))
            values |= {"valid": heads[unit][0], "word": heads[unit][1], "start": starts[unit]}
            for name, value in values.items():
                m.d.comb += getattr(names, f"{unit.label}_{name}").eq(value)
