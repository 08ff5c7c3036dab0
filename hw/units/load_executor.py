"""Execution of LOADs."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from accel.core.config import DRAM_ADDRESS_BITS, Config
from accel.core.isa import Load
from accel.hw.bus.read_port import ReadChannel
from accel.hw.datapath.beat_walker import BeatLayout, BeatWalker, PlacesLayout
from accel.hw.datapath.burst_walker import BurstWalker
from accel.hw.datapath.pads import PadsLayout, PadWalker
from accel.hw.datapath.queue import BypassQueue, Queue
from accel.hw.datapath.transfer_memories import Kind, dram_lane
from accel.hw.datapath.word_layouts import GAP_BITS, INDEX_BITS, EntryLayout, kind_bits, sram_bits, view
from accel.hw.units.in_flight import InFlight, RangeLayout, Retirement


class LoadExecutor(wiring.Component):
    """Executes LOADs of some ``kinds`` in order, up to ``depth`` in flight.

    ``start`` begins the LOAD in ``entry``, which must not be at fault, or a SET, which moves nothing.
    ``read.valid`` shows that the previous LOAD waits for grants. With ``taking``, ``following`` is the next
    entry, of which only the range matters. A bus beat is written one cycle later (``data_valid``). Pad words
    are written in cycles without data.

    With ``shared``, the unit has other instructions that move data, and its LOADs have no pads. It supplies
    the target address (``sram``) and the next ranges. ``written`` shows that a LOAD's data is complete.
    ``range``, ``hold``, ``unwritten`` and ``memories`` are those of ``InFlight``.
    """

    def __init__(
        self,
        kinds: Sequence[Kind],
        depth: int,
        config: Config,
        *,
        shared: bool = False,
        memories: Sequence[str] = ("",),
    ) -> None:
        self._kinds = kinds
        self._memories = memories
        self._depth = depth
        self._config = config
        self._shared = shared
        self._hazards = depth > 1 or shared
        more: dict[str, Any] = {"taking": In(1)} if self._hazards else {}
        if self._hazards and not shared:
            more |= {"following": In(EntryLayout(config))}
        if shared:
            more |= {
                "sram": In(sram_bits(config)),
                **{f"range{one}": In(RangeLayout(config)) for one in memories},
                **{f"following_range{one}": In(RangeLayout(config)) for one in memories},
                "hold": In(1),
                "unwritten": Out(1),
                "written": Out(1),
            }
        super().__init__(
            {
                "flush": In(1),
                "mem_base": In(DRAM_ADDRESS_BITS),
                "entry": In(EntryLayout(config)),
                "faulty": In(1),
                "start": In(1),
                "room": Out(1),
                "conflict": Out(1),
                "read": Out(ReadChannel(config)),
                "data_valid": Out(1),
                "data_beat": Out(BeatLayout(kinds, config)),
                "data": Out(config.bus_bits),
                "pad_valid": Out(1),
                "pad_kind": Out(kind_bits(config)),
                "pad_index": Out(sram_bits(config)),
                "retirement": Out(Retirement()),
                **more,
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        config, kinds, shared = self._config, self._kinds, self._shared
        m.submodules.bursts = bursts = BurstWalker(kinds, config)
        m.submodules.beats = beats = BeatWalker(kinds, config)
        m.submodules.flight = flight = InFlight(
            self._depth, config, hazards=self._hazards, shared=shared, memories=self._memories
        )
        if self._hazards:
            m.d.comb += flight.taking.eq(self.taking)
        slots = range(self._depth)
        data_layout = data.StructLayout({"places": PlacesLayout(config), "slot": slots})
        m.submodules.data_queue = data_queue = Queue(data_layout, self._depth)
        for part in (bursts, beats, flight, data_queue):
            m.d.comb += part.flush.eq(self.flush)

        load = view(Load, config, self.entry.word)
        box = self.entry.box
        kind = Signal(kind_bits(config))
        gap = Signal(GAP_BITS)
        has_data = Signal()
        m.d.comb += [
            kind.eq(self.entry.moves.kind),
            gap.eq(load.x_pad_0 + load.x_pad_1),
            has_data.eq(self.entry.moves.data),
            flight.start.eq(self.start),
            flight.retiring.index.eq(self.entry.index),
            flight.retiring.push_prev.eq(load.push_prev),
            flight.retiring.push_next.eq(load.push_next),
            flight.has_data.eq(has_data),
            self.room.eq(flight.room),
            self.conflict.eq(flight.conflict),
        ]
        wiring.connect(m, flight.retirement, wiring.flipped(self.retirement))

        index = Signal(INDEX_BITS)
        rows, read = bursts.rows, self.read
        m.d.comb += [
            bursts.mem_base.eq(self.mem_base),
            bursts.start.eq(self.start & has_data),
            rows.kind.eq(kind),
            rows.dram_base.eq(load.dram_base),
            rows.x_size.eq(load.x_size),
            rows.y_size.eq(load.y_size),
            rows.x_stride.eq(load.x_stride),
            bursts.accept.eq(read.granted),
            read.valid.eq(bursts.valid),
            read.request.address.eq(bursts.address),
            read.request.beats.eq(bursts.beats),
            read.request.index.eq(index),
        ]
        with m.If(bursts.free):
            m.d.sync += index.eq(self.entry.index)

        # A beat's target is determined while it is on the bus, one cycle before its write. The first beat
        # comes at least two cycles after the start, when the walker is loaded.
        places = data_queue.data.places
        slot = Signal(slots)
        written_slot = Signal(slots)
        written_last = Signal()
        m.d.comb += [
            places.kind.eq(kind),
            places.sram.eq(self.sram if shared else load.sram_base + box.head),
            places.gap.eq(gap),
            places.lane.eq(dram_lane(kind, load.dram_base, kinds)),
            places.stride.eq(dram_lane(kind, load.x_stride, kinds)),
            places.x_size.eq(load.x_size),
            places.y_size.eq(load.y_size),
            data_queue.data.slot.eq(flight.slot),
            data_queue.push.eq(self.start & has_data),
            beats.step.eq(read.beat_valid),
            beats.places.eq(data_queue.head.places),
            beats.start.eq(data_queue.valid & beats.free),
            data_queue.pop.eq(beats.start),
        ]
        m.d.sync += [
            self.data_valid.eq(read.beat_valid),
            self.data_beat.eq(beats.beat),
            self.data.eq(read.beat_data),
            written_slot.eq(slot),
            written_last.eq(beats.last),
        ]
        with m.If(beats.free):
            m.d.sync += slot.eq(data_queue.head.slot)
        m.d.comb += [
            flight.data_done.eq(self.data_valid & written_last),
            flight.data_slot.eq(written_slot),
        ]

        if shared:
            for one in self._memories:
                m.d.comb += [
                    getattr(flight, f"range{one}").eq(getattr(self, f"range{one}")),
                    getattr(flight, f"following{one}").eq(getattr(self, f"following_range{one}")),
                ]
            m.d.comb += [
                flight.hold.eq(self.hold),
                self.unwritten.eq(flight.unwritten),
                self.written.eq(flight.data_done),
            ]
        else:
            m.d.comb += [
                flight.range.any.eq(self.entry.moves.some & ~self.faulty),
                flight.range.kind.eq(kind),
                flight.range.begin.eq(load.sram_base),
                flight.range.end.eq(box.end),
            ]
            if self._hazards:
                following = view(Load, config, self.following.word)
                m.d.comb += [
                    flight.following.kind.eq(self.following.moves.kind),
                    flight.following.begin.eq(following.sram_base),
                    flight.following.end.eq(self.following.box.end),
                ]
            self._pad(m, flight, kind, gap)
        return m

    def _pad(self, m: Module, flight: InFlight, kind: Signal, gap: Signal) -> None:
        config = self._config
        load, box = view(Load, config, self.entry.word), self.entry.box
        m.submodules.pads = pads = PadWalker(config)
        slots = range(self._depth)
        pads_layout = data.StructLayout({"pads": PadsLayout(config), "slot": slots})
        m.submodules.pads_queue = pads_queue = BypassQueue(pads_layout, self._depth)
        filled = pads_queue.data.pads
        pads_slot = Signal(slots)
        m.d.comb += [
            flight.has_pads.eq(self.entry.moves.pads),
            pads.flush.eq(self.flush),
            pads_queue.flush.eq(self.flush),
            filled.kind.eq(kind),
            filled.sram.eq(load.sram_base),
            filled.head.eq(box.head),
            filled.gap.eq(gap),
            filled.tail.eq(box.tail),
            filled.body.eq(box.body),
            filled.x_size.eq(load.x_size),
            filled.y_size.eq(load.y_size),
            pads_queue.data.slot.eq(flight.slot),
            pads_queue.push.eq(self.start & self.entry.moves.pads),
            self.pad_valid.eq(pads.valid & ~self.data_valid),
            self.pad_kind.eq(pads.kind),
            self.pad_index.eq(pads.index),
            pads.step.eq(self.pad_valid),
            pads.pads.eq(pads_queue.head.pads),
            pads.start.eq(pads_queue.valid & pads.free),
            pads_queue.pop.eq(pads.free),
            flight.pads_done.eq(self.pad_valid & pads.last),
            flight.pads_slot.eq(pads_slot),
        ]
        with m.If(pads.free):
            m.d.sync += pads_slot.eq(pads_queue.head.slot)
