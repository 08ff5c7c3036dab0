"""The store unit: STOREs, written in bursts while earlier ones await their responses.

A burst's first beat is asked of the accumulators' mirror in the cycle of its grant, the others in the
cycles that follow; a beat is on the bus two cycles later, on machines with ``post=1`` and ``post_stages``
more. If the bus is not ready the whole pipeline waits.
"""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Const, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from accel.core.config import DRAM_ADDRESS_BITS, Config
from accel.core.faults import CAUSE_BITS, Cause
from accel.core.isa import Store as StoreInstruction
from accel.core.isa import Unit
from accel.hw.bus.port import BurstLayout
from accel.hw.datapath.checks import first_fault, neighbour_fault, transfer_faults
from accel.hw.datapath.layouts import BEATS_BITS, INDEX_BITS, EntryLayout, view
from accel.hw.datapath.queue import BypassQueue, Queue
from accel.hw.datapath.transfer import (
    BeatLayout,
    BeatWalker,
    BurstWalker,
    PlacesLayout,
    dram_lane,
    kind_number,
    kinds_of,
)
from accel.hw.units.flight import Flight, RetireLayout


class Store(wiring.Component):
    """The store unit, with the AXI4 write channels."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._kinds = kinds_of(StoreInstruction, Unit.STORE, config)
        self._stages = config.post_stages if config.post else 0
        super().__init__(
            {
                "flush": In(1),
                "enable": In(1),
                "mem_base": In(DRAM_ADDRESS_BITS),
                "mem_size": In(DRAM_ADDRESS_BITS + 1),
                "head_valid": In(1),
                "head": In(EntryLayout()),
                "tokens": In(1),
                "start": Out(1),
                "lacking": Out(1),
                "fault": Out(CAUSE_BITS),
                "out_advance": Out(1),
                "out_beat": Out(BeatLayout(self._kinds, config)),
                "out_data": In(config.bus_bits),
                "out_strobe": In(config.bus_bytes),
                "awvalid": Out(1),
                "awready": In(1),
                "awaddr": Out(DRAM_ADDRESS_BITS),
                "awlen": Out(8),
                "wvalid": Out(1),
                "wready": In(1),
                "wdata": Out(config.bus_bits),
                "wstrb": Out(config.bus_bytes),
                "wlast": Out(1),
                "bvalid": In(1),
                "grant": Out(1),
                "granted": Out(BurstLayout()),
                "last": Out(1),
                "burst": Out(BurstLayout()),
                "response": Out(INDEX_BITS),
                "retire": Out(1),
                "retired": Out(RetireLayout()),
                "oldest": Out(INDEX_BITS),
                "occupied": Out(1),
                "writing": Out(1),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        config, kinds = self._config, self._kinds
        m.submodules.bursts = bursts = BurstWalker(kinds, config)
        m.submodules.flight = flight = Flight(config.stores_in_flight, config, hazards=False)
        slots = range(config.stores_in_flight)
        granted_layout = data.StructLayout({"last": 1, "slot": slots, "index": INDEX_BITS})
        m.submodules.responses = responses = Queue(granted_layout, config.outstanding)
        for part in (bursts, flight):
            m.d.comb += part.flush.eq(self.flush)

        # Start.
        store = view(StoreInstruction, config, self.head.word)
        cause = first_fault(
            m,
            [
                (neighbour_fault(store, previous=True, following=False), Cause.NEIGHBOUR),
                *transfer_faults(store, self.head.box, self.mem_size, kinds, pads=False),
            ],
        )
        kind = kind_number(store.memory, kinds) if len(kinds) > 1 else Const(0)
        ready, moves = Signal(), Signal()
        slot, index = Signal(slots), Signal(INDEX_BITS)
        m.d.comb += [
            moves.eq((store.x_size != 0) & (store.y_size != 0)),
            ready.eq(self.enable & self.head_valid & ~bursts.valid & flight.room),
            self.lacking.eq(ready & ~self.tokens),
            flight.start.eq(self.start),
            flight.retiring.index.eq(self.head.index),
            flight.retiring.push_prev.eq(store.push_prev),
            flight.retiring.push_next.eq(store.push_next),
            flight.has_data.eq(moves),
            bursts.start.eq(self.start & moves),
            bursts.mem_base.eq(self.mem_base),
            *([bursts.rows.kind.eq(kind)] if len(kinds) > 1 else []),
            bursts.rows.dram_base.eq(store.dram_base),
            bursts.rows.x_size.eq(store.x_size),
            bursts.rows.y_size.eq(store.y_size),
            bursts.rows.x_stride.eq(store.x_stride),
            self.retire.eq(flight.retire),
            self.retired.eq(flight.retired),
            self.oldest.eq(flight.oldest),
            self.occupied.eq(~flight.empty),
        ]
        with m.If(ready & self.tokens):
            m.d.comb += [self.fault.eq(cause), self.start.eq(cause == 0)]
        with m.If(self.start):
            m.d.sync += [slot.eq(flight.slot), index.eq(self.head.index)]

        # Grant, addresses, responses.
        advance = Signal()
        left = Signal(BEATS_BITS)
        """Beats of the granted burst that are still to be asked of the mirror."""
        m.d.comb += [
            advance.eq(~self.wvalid | self.wready),
            self.grant.eq(
                self.enable
                & bursts.valid
                & (left == 0)
                & advance
                & responses.room
                & (~self.awvalid | self.awready)
            ),
            bursts.accept.eq(self.grant),
            self.granted.unit.eq(Unit.STORE),
            self.granted.index.eq(index),
            self.granted.beats.eq(bursts.beats),
            responses.push.eq(self.grant),
            responses.data.last.eq(bursts.last),
            responses.data.slot.eq(slot),
            responses.data.index.eq(index),
            responses.pop.eq(self.bvalid),
            self.response.eq(responses.head.index),
            self.writing.eq(responses.valid),
            flight.data_done.eq(self.bvalid & responses.head.last),
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

        # Beats: asked of the mirror, read, on the bus.
        asking, read = Signal(), Signal()
        last, read_last = Signal(), Signal()
        m.d.comb += [
            asking.eq(advance & (self.grant | (left != 0))),
            last.eq((left == 1) | (self.grant & (bursts.beats == 1))),
            self.out_advance.eq(advance),
            self.busy.eq(self.wvalid & self.wready),
            self.last.eq(self.busy & self.wlast),
        ]
        with m.If(self.grant):
            m.d.sync += left.eq(bursts.beats - 1)
        with m.Elif(asking):
            m.d.sync += left.eq(left - 1)
        with m.If(advance):
            m.d.sync += [read.eq(asking), read_last.eq(last)]
            valid, final, bytes_, strobe = self._staged(m, read, read_last, self.out_data, self.out_strobe)
            m.d.sync += [
                self.wvalid.eq(valid),
                self.wlast.eq(final),
                self.wdata.eq(bytes_),
                self.wstrb.eq(strobe),
            ]
        self._places(m, store, kind, moves, asking)

        # Bursts on the bus, for the event of their last beat.
        m.submodules.sent = sent = Queue(BurstLayout(), config.outstanding)
        m.d.comb += [
            sent.push.eq(self.grant),
            sent.data.eq(self.granted),
            sent.pop.eq(self.last),
            self.burst.eq(sent.head),
        ]
        return m

    def _staged(self, m: Module, *beat: Signal) -> Sequence[Signal]:
        """What a beat consists of, behind the stages in which outputs are finished; they load together."""
        for number in range(self._stages):
            behind = [Signal(len(part), name=f"stage_{number}_{n}") for n, part in enumerate(beat)]
            m.d.sync += [held.eq(part) for held, part in zip(behind, beat, strict=True)]
            beat = tuple(behind)
        return beat

    def _places(self, m: Module, store: Any, kind: Value, moves: Signal, asking: Signal) -> None:
        """Which accumulators each beat holds."""
        kinds = self._kinds
        m.submodules.beats = beats = BeatWalker(kinds, self._config)
        m.submodules.queue = queue = BypassQueue(PlacesLayout(self._config), 2)
        places = queue.data
        m.d.comb += [
            beats.flush.eq(self.flush),
            queue.flush.eq(self.flush),
            *([places.kind.eq(kind)] if len(kinds) > 1 else []),
            places.sram.eq(store.sram_base),
            places.lane.eq(dram_lane(kind, store.dram_base, kinds)),
            places.stride.eq(dram_lane(kind, store.x_stride, kinds)),
            places.x_size.eq(store.x_size),
            places.y_size.eq(store.y_size),
            queue.push.eq(self.start & moves),
            beats.places.eq(queue.head),
            beats.step.eq(asking),
            beats.start.eq(queue.valid & (beats.idle | (beats.step & beats.last))),
            queue.pop.eq(beats.start),
            self.out_beat.eq(beats.beat),
        ]
