"""The store unit. It writes STOREs in bursts while earlier ones await their responses.

A burst's first beat is requested from the accumulators' mirror in the cycle of its grant. It is on the bus
two cycles later, or ``2 + post_depth`` with ``post=1``. If the bus is not ready, the whole pipeline waits.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from accel.core.config import Config
from accel.core.isa import Store as StoreInstruction
from accel.core.isa import StoreAdd, Unit
from accel.core.scratchpad_specs import TAB, TABLE_FIELD_BITS
from accel.hw.bus.abandoned_bursts import AbandonedBursts
from accel.hw.bus.axi import Axi4Write, every_burst, pins
from accel.hw.bus.axi import ports as axi_ports
from accel.hw.bus.read_port import BurstLayout, ReadChannel
from accel.hw.datapath.access_probes import AccessProbes
from accel.hw.datapath.accumulators import MirrorRead
from accel.hw.datapath.beat_walker import BeatWalker, PlacesLayout
from accel.hw.datapath.burst_walker import BurstWalker
from accel.hw.datapath.instruction_checks import first_fault
from accel.hw.datapath.queue import BypassQueue, Queue
from accel.hw.datapath.requantize_lanes import ParLayout, slots_per_beat
from accel.hw.datapath.scratchpads import access_ports
from accel.hw.datapath.transfer_memories import dram_lane, kinds_of
from accel.hw.datapath.word_layouts import BEATS_BITS, INDEX_BITS, log2, view
from accel.hw.units.in_flight import InFlight
from accel.hw.units.requantized_beats import RequantizedBeats
from accel.hw.units.store_unit_loads import StoreUnitLoads, operand_suffixes
from accel.hw.units.token_counters import connect_tokens
from accel.hw.units.unit_interfaces import unit_ports


class Store(wiring.Component):
    """The store unit, with the AXI4 write channels. With ``post=1`` it also has a read channel and the
    scratchpads ``par``, ``res`` and, if there are tables, ``tab``.

    It reads the accumulators through ``out``. ``grant`` shows that the burst ``granted`` is granted, ``last``
    that the bus takes the last beat of ``burst``. ``response`` is the instruction that the bus answers,
    ``bad`` shows an error.

    ``sending`` shows that the bus has not taken an address or beat, ``writing`` that it has not answered a
    burst, except for those before ``abandon``, for which ``stale`` is set. ``stray`` shows an answer without
    a burst.
    """

    def __init__(self, config: Config, probes: AccessProbes | None = None) -> None:
        self.config = config
        self.probes = probes
        self.kinds = kinds_of(StoreInstruction, Unit.STORE, config)
        ports: dict[str, Any] = {
            **unit_ports(config),
            "abandon": In(1),
            "out": Out(MirrorRead(self.kinds, config)),
            **axi_ports(Axi4Write(config)),
            "grant": Out(1),
            "granted": Out(BurstLayout()),
            "last": Out(1),
            "burst": Out(BurstLayout()),
            "response": Out(INDEX_BITS),
            "bad": Out(1),
            "writing": Out(1),
            "sending": Out(1),
            "stale": Out(1),
            "stray": Out(1),
        }
        if config.post:
            ports |= {"read": Out(ReadChannel(config)), **access_ports(Unit.STORE, config)}
        super().__init__(ports)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        config = self.config
        post = bool(config.post)
        m.submodules.bursts = bursts = BurstWalker(self.kinds, config)
        memories = list(operand_suffixes(config)) if post else [""]
        m.submodules.flight = flight = InFlight(
            config.stores_in_flight, config, hazards=post, shared=post, memories=memories
        )
        responses = Queue(_granted_layout(config), config.outstanding)
        m.submodules.responses = responses
        for part in (bursts, flight):
            m.d.comb += part.flush.eq(self.control.flush)
        moves = Signal()
        own = StoreUnitLoads(m, self, flight, ~bursts.valid & flight.room) if post else None
        begins = self._start(m, bursts, flight, responses, moves, own)
        connect_tokens(m, self, config)

        # Grant, addresses, responses.
        m.submodules.abandoned = abandoned = AbandonedBursts(config.outstanding)
        answered, heard = Signal(), Signal()
        advance = Signal()
        idle = Signal(init=1)
        """The complement of ``wvalid``, which has a large fan-out, for grants and requests."""
        goes_on = idle | self.wready
        more = log2(slots_per_beat(config)) if post else 0
        left = Signal(BEATS_BITS + more)
        """Beats of the granted burst not yet requested. Requantized beats count in slots."""
        more_left = Signal()
        total = Signal(BEATS_BITS + more) if post else bursts.beats
        m.d.comb += [
            advance.eq(~self.wvalid | self.wready),
            self.grant.eq(
                self.control.enable
                & bursts.valid
                & ~more_left
                & goes_on
                & responses.room
                & (~self.awvalid | self.awready)
            ),
            bursts.accept.eq(self.grant),
            self.granted.unit.eq(Unit.STORE),
            self.granted.beats.eq(bursts.beats),
            responses.push.eq(self.grant),
            responses.data.last.eq(bursts.last),
            responses.pop.eq(answered),
            *every_burst(pins(self, Axi4Write(config)).aw, config),
            self.bready.eq(1),
            self.bad.eq(heard & self.bresp[1]),
            self.stray.eq(self.bvalid & ~responses.valid),
            answered.eq(self.bvalid & responses.valid),
            heard.eq(answered & ~self.stale),
            abandoned.abandon.eq(self.abandon),
            abandoned.count.eq(responses.count),
            abandoned.answered.eq(answered),
            self.stale.eq(abandoned.oldest),
            self.response.eq(responses.head.index),
            self.writing.eq(abandoned.others),
            flight.data_done.eq(heard & responses.head.last),
            flight.data_slot.eq(responses.head.slot),
        ]
        with m.If(self.awready):
            m.d.sync += self.awvalid.eq(0)
        with m.If(self.grant):
            m.d.sync += [
                self.awvalid.eq(1),
                self.awaddr.eq(bursts.address & ~(config.bus_bytes - 1)),
                self.awlen.eq(bursts.beats - 1),
            ]

        # Beats: requested from the mirror, read, on the bus.
        asking = Signal()
        last = Signal()
        written = Signal() if post else self.busy
        m.d.comb += [
            asking.eq(goes_on & (self.grant | more_left)),
            last.eq((left == 1) | (self.grant & (total == 1))),
            self.out.advance.eq(advance),
            written.eq(self.wvalid & self.wready),
            self.last.eq(written & self.wlast),
        ]
        with m.If(self.grant):
            m.d.sync += [left.eq(total - 1), more_left.eq(total != 1)]
        with m.Elif(asking):
            m.d.sync += [left.eq(left - 1), more_left.eq(left != 1)]
        beats, operands = self._places(m, begins & moves, asking)
        if own is None:
            full = self._write(m, asking, last)
        else:
            finished = RequantizedBeats(m, self, own, beats, operands=operands, asking=asking, last=last)
            full = finished.full
            m.d.comb += [
                self.busy.eq(written | own.loader.data_valid),
                total.eq(Mux(finished.next, bursts.beats << more, bursts.beats)),
            ]

        with m.If(advance):
            m.d.sync += [self.wvalid.eq(full), idle.eq(~full)]

        if self.probes is not None:
            self.probes.drive(m, out_reads=asking, write_bursts=self.grant)

        # Bursts on the bus, for the event of their last beat.
        m.submodules.sent = sent = Queue(BurstLayout(), config.outstanding)
        m.d.comb += [
            self.sending.eq(self.awvalid | sent.valid),
            sent.push.eq(self.grant),
            sent.data.eq(self.granted),
            sent.pop.eq(self.last),
            self.burst.eq(sent.head),
        ]
        return m

    def _start(
        self,
        m: Module,
        bursts: BurstWalker,
        flight: InFlight,
        responses: Queue,
        moves: Signal,
        own: StoreUnitLoads | None,
    ) -> Value:
        config, kinds = self.config, self.kinds
        issue, entry = self.issue, self.issue.entry
        store = view(StoreInstruction, config, entry.word)
        cause = first_fault(m, [(entry.cause != 0, entry.cause), *([] if own is None else own.faults)])
        ready = Signal()
        slot = Signal(range(config.stores_in_flight))
        index = Signal(INDEX_BITS)
        begins = issue.start if own is None else issue.start & own.is_store
        m.d.comb += [
            moves.eq(entry.moves.data),
            ready.eq(issue.valid & (~bursts.valid & flight.room if own is None else own.can_fail)),
            self.lacking.eq(ready & ~self.tokens.there),
            flight.start.eq(begins),
            flight.retiring.index.eq(entry.index),
            flight.retiring.push_prev.eq(store.push_prev),
            flight.retiring.push_next.eq(store.push_next),
            flight.has_data.eq(moves),
            bursts.start.eq(begins & moves),
            bursts.mem_base.eq(self.control.mem_base),
            *([bursts.rows.kind.eq(self._kind)] if len(kinds) > 1 else []),
            bursts.rows.dram_base.eq(store.dram_base),
            bursts.rows.x_size.eq(store.x_size),
            bursts.rows.y_size.eq(store.y_size),
            bursts.rows.x_stride.eq(store.x_stride),
            self.granted.index.eq(index),
            responses.data.slot.eq(slot),
            responses.data.index.eq(index),
        ]
        if own is None:
            wiring.connect(m, flight.retirement, wiring.flipped(self.retirement))
        good = entry.cause == 0
        if own is not None:
            good = own.good & ~Cat(there for there, _ in own.faults).any()
            m.d.comb += own.faulty.eq(~good)
        there = self.tokens.there
        can = ready if own is None else issue.valid & own.can_start
        m.d.comb += issue.start.eq(self.control.enable & can & there & good)
        with m.If(ready & there):
            m.d.comb += self.fault.eq(cause)
        with m.If(bursts.free):
            m.d.sync += [slot.eq(flight.slot), index.eq(entry.index)]
        return begins

    @property
    def _kind(self) -> Value:
        return self.issue.entry.moves.kind if len(self.kinds) > 1 else Const(0)

    def _write(self, m: Module, asking: Signal, last: Signal) -> Value:
        read = Signal()
        read_last = Signal()
        with m.If(self.out.advance):
            m.d.sync += [read.eq(asking), read_last.eq(last)]
            m.d.sync += [
                self.wlast.eq(read_last),
                self.wdata.eq(self.out.data),
                self.wstrb.eq(self.out.strobe),
            ]
        return read

    def _places(self, m: Module, begins: Value, asking: Signal) -> tuple[BeatWalker, Any]:
        """Return the walker over each beat's accumulators, and the next STORE's operands."""
        kinds, kind, config = self.kinds, self._kind, self.config
        store = view(StoreInstruction, config, self.issue.entry.word)
        post = bool(config.post)
        m.submodules.beats = beats = BeatWalker(kinds, config, rows=post)
        layout: dict[str, Any] = {"places": PlacesLayout(config)}
        if post:
            layout["par"] = ParLayout()
        if TAB.exists(config):
            layout["table"] = TABLE_FIELD_BITS
        if config.res_mul:
            layout["hold"] = 1
        m.submodules.queue = queue = BypassQueue(data.StructLayout(layout), 2)
        places = queue.data.places
        if post:
            fields = view(StoreAdd, config, self.issue.entry.word)
            m.d.comb += [getattr(queue.data.par, name).eq(getattr(fields, name)) for name, _ in ParLayout()]
            others = [name for name in ("table", "hold") if name in layout]
            m.d.comb += [getattr(queue.data, name).eq(getattr(fields, name)) for name in others]
        m.d.comb += [
            beats.flush.eq(self.control.flush),
            queue.flush.eq(self.control.flush),
            *([places.kind.eq(kind)] if len(kinds) > 1 else []),
            places.sram.eq(store.sram_base),
            places.lane.eq(dram_lane(kind, store.dram_base, kinds)),
            places.stride.eq(dram_lane(kind, store.x_stride, kinds)),
            places.x_size.eq(store.x_size),
            places.y_size.eq(store.y_size),
            queue.push.eq(begins),
            beats.places.eq(queue.head.places),
            *([] if post else [beats.step.eq(asking)]),
            beats.start.eq(queue.valid & beats.free),
            queue.pop.eq(beats.free),
            self.out.beat.eq(beats.beat),
        ]
        return beats, queue.head


def _granted_layout(config: Config) -> data.StructLayout:
    return data.StructLayout({"last": 1, "slot": range(config.stores_in_flight), "index": INDEX_BITS})
