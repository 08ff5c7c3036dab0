"""The store unit: STOREs, written in bursts while earlier ones await their responses.

A burst's first beat is asked of the accumulators' mirror in the cycle of its grant, the others in the
cycles that follow; a beat is on the bus two cycles later, on machines with ``post=1`` and ``post_stages``
more. If the bus is not ready the whole pipeline waits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from accel.core.config import DRAM_ADDRESS_BITS, Config
from accel.core.faults import CAUSE_BITS, Cause
from accel.core.isa import Finishing, Opcode, OwnMemory, SetOut, SetSum, StoreReq, Unit
from accel.core.isa import Load as LoadInstruction
from accel.core.isa import Store as StoreInstruction
from accel.core.memories import PAR, RES
from accel.hw.bus.abandoned import Abandoned
from accel.hw.bus.axi import Axi4Write, every_burst, pins
from accel.hw.bus.axi import ports as axi_ports
from accel.hw.bus.port import BurstLayout, RequestLayout
from accel.hw.datapath.checks import (
    first_fault,
    is_finished,
)
from accel.hw.datapath.finishing import Lanes, ParLayout, SettingLayout, SlotWalker, slots_per_beat
from accel.hw.datapath.layouts import BEATS_BITS, INDEX_BITS, EntryLayout, log2, view
from accel.hw.datapath.queue import BypassQueue, Queue
from accel.hw.datapath.residuals import Residuals
from accel.hw.datapath.scratchpads import Scratchpad, access_ports, connect_access, out_ports
from accel.hw.datapath.transfer import (
    BeatWalker,
    BurstWalker,
    Kind,
    PlacesLayout,
    dram_lane,
    kind_number,
    kinds_of,
)
from accel.hw.units.flight import Flight, RangeLayout, RetireLayout
from accel.hw.units.loader import Loader


class Store(wiring.Component):
    """The store unit, with the AXI4 write channels; with ``post=1`` also with its own read requests, and the
    scratchpads par and res.

    ``sending`` tells of an address or beats that the bus has not taken, ``writing`` of bursts that it has not
    answered, but for those that ``abandon`` gave up, of which ``stale`` tells; ``stray`` of an answer without
    a burst.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._kinds = kinds_of(StoreInstruction, Unit.STORE, config)
        self._stages = config.post_stages if config.post else 0
        ports: dict[str, Any] = {
            "flush": In(1),
            "abandon": In(1),
            "enable": In(1),
            "mem_base": In(DRAM_ADDRESS_BITS),
            "head_valid": In(1),
            "head": In(EntryLayout(config)),
            "tokens": In(1),
            "start": Out(1),
            "lacking": Out(1),
            "fault": Out(CAUSE_BITS),
            **{name: member.flip() for name, member in out_ports(self._kinds, config).items()},
            **axi_ports(Axi4Write(config)),
            "grant": Out(1),
            "granted": Out(BurstLayout()),
            "last": Out(1),
            "burst": Out(BurstLayout()),
            "response": Out(INDEX_BITS),
            "bad": Out(1),
            "retire": Out(1),
            "retired": Out(RetireLayout()),
            "oldest": Out(INDEX_BITS),
            "occupied": Out(1),
            "writing": Out(1),
            "sending": Out(1),
            "stale": Out(1),
            "stray": Out(1),
            "busy": Out(1),
        }
        if config.post:
            ports |= {
                "taking": In(1),
                "following": In(EntryLayout(config)),
                "request_valid": Out(1),
                "request": Out(RequestLayout()),
                "request_granted": In(1),
                "beat_valid": In(1),
                "beat_data": In(config.bus_bits),
                **access_ports(Unit.STORE, config),
            }
        super().__init__(ports)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        config = self._config
        post = bool(config.post)
        m.submodules.bursts = bursts = BurstWalker(self._kinds, config)
        m.submodules.flight = flight = Flight(config.stores_in_flight, config, hazards=post, shared=post)
        responses = Queue(_granted_layout(config), config.outstanding)
        m.submodules.responses = responses
        for part in (bursts, flight):
            m.d.comb += part.flush.eq(self.flush)
        moves = Signal()
        own = self._own(m, flight, ~bursts.valid & flight.room) if post else None
        begins = self._start(m, bursts, flight, responses, moves, own)

        # Grant, addresses, responses.
        m.submodules.abandoned = abandoned = Abandoned(config.outstanding)
        answered, heard = Signal(), Signal()
        advance = Signal()
        idle = Signal(init=1)
        """The opposite of ``wvalid``, in a register of its own, for what is granted and asked for, since all
        of the pipeline takes the other."""
        goes_on = idle | self.wready
        more = log2(slots_per_beat(config)) if post else 0
        left = Signal(BEATS_BITS + more)
        """Beats of the granted burst that are still to be asked of the mirror; of those finished, slots."""
        more_left = Signal()
        total = Signal(BEATS_BITS + more) if post else bursts.beats
        m.d.comb += [
            advance.eq(~self.wvalid | self.wready),
            self.grant.eq(
                self.enable
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

        # Beats: asked of the mirror, read, on the bus.
        asking = Signal()
        last = Signal()
        written = Signal() if post else self.busy
        m.d.comb += [
            asking.eq(goes_on & (self.grant | more_left)),
            last.eq((left == 1) | (self.grant & (total == 1))),
            self.out_advance.eq(advance),
            written.eq(self.wvalid & self.wready),
            self.last.eq(written & self.wlast),
        ]
        with m.If(self.grant):
            m.d.sync += [left.eq(total - 1), more_left.eq(total != 1)]
        with m.Elif(asking):
            m.d.sync += [left.eq(left - 1), more_left.eq(left != 1)]
        beats = self._places(m, begins & moves, asking)
        if own is None:
            full = self._write(m, asking, last)
        else:
            finished, full = self._finish(m, own, beats, begins & moves, asking, last)
            m.d.comb += [
                self.busy.eq(written | own.loader.data_valid),
                total.eq(Mux(finished, bursts.beats << more, bursts.beats)),
            ]

        with m.If(advance):
            m.d.sync += [self.wvalid.eq(full), idle.eq(~full)]

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
        flight: Flight,
        responses: Queue,
        moves: Signal,
        own: "_Own | None",
    ) -> Value:
        """Start what heads the queue; gives whether it is a STORE and starts."""
        config, kinds = self._config, self._kinds
        store = view(StoreInstruction, config, self.head.word)
        cause = first_fault(
            m, [(self.head.cause != 0, self.head.cause), *([] if own is None else own.faults)]
        )
        ready = Signal()
        slot = Signal(range(config.stores_in_flight))
        index = Signal(INDEX_BITS)
        begins = self.start if own is None else self.start & own.is_store
        m.d.comb += [
            moves.eq((store.x_size != 0) & (store.y_size != 0)),
            ready.eq(self.head_valid & (~bursts.valid & flight.room if own is None else own.can_fail)),
            self.lacking.eq(ready & ~self.tokens),
            flight.start.eq(begins),
            flight.retiring.index.eq(self.head.index),
            flight.retiring.push_prev.eq(store.push_prev),
            flight.retiring.push_next.eq(store.push_next),
            flight.has_data.eq(moves),
            bursts.start.eq(begins & moves),
            bursts.mem_base.eq(self.mem_base),
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
            m.d.comb += [
                self.retire.eq(flight.retire),
                self.retired.eq(flight.retired),
                self.oldest.eq(flight.oldest),
                self.occupied.eq(~flight.empty),
            ]
        good = self.head.cause == 0
        if own is not None:
            good = own.good & ~Cat(there for there, _ in own.faults).any()
            m.d.comb += own.faulty.eq(~good)
        can = ready if own is None else self.head_valid & own.can_start
        m.d.comb += self.start.eq(self.enable & can & self.tokens & good)
        with m.If(ready & self.tokens):
            m.d.comb += self.fault.eq(cause)
        with m.If(bursts.free):
            m.d.sync += [slot.eq(flight.slot), index.eq(self.head.index)]
        return begins

    @property
    def _kind(self) -> Value:
        """Of the STORE at the head."""
        store = view(StoreInstruction, self._config, self.head.word)
        return kind_number(store.memory, self._kinds) if len(self._kinds) > 1 else Const(0)

    def _write(self, m: Module, asking: Signal, last: Signal) -> Value:
        """The beats on the bus, a cycle after they have been read; gives whether there is one."""
        read = Signal()
        read_last = Signal()
        with m.If(self.out_advance):
            m.d.sync += [read.eq(asking), read_last.eq(last)]
            m.d.sync += [
                self.wlast.eq(read_last),
                self.wdata.eq(self.out_data),
                self.wstrb.eq(self.out_strobe),
            ]
        return read

    def _staged(self, m: Module, *beat: Signal) -> Sequence[Signal]:
        """What a beat consists of, behind the stages in which outputs are finished; they load together."""
        for number in range(self._stages):
            behind = [Signal(len(part), name=f"stage_{number}_{n}") for n, part in enumerate(beat)]
            m.d.sync += [held.eq(part) for held, part in zip(behind, beat, strict=True)]
            beat = tuple(behind)
        return beat

    def _places(self, m: Module, begins: Value, asking: Signal) -> BeatWalker:
        """Which accumulators each beat holds."""
        kinds, kind = self._kinds, self._kind
        store = view(StoreInstruction, self._config, self.head.word)
        post = bool(self._config.post)
        m.submodules.beats = beats = BeatWalker(kinds, self._config, rows=post)
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
            queue.push.eq(begins),
            beats.places.eq(queue.head),
            *([] if post else [beats.step.eq(asking)]),
            beats.start.eq(queue.valid & beats.free),
            queue.pop.eq(beats.free),
            self.out_beat.eq(beats.beat),
        ]
        return beats

    def _known(self, m: Module) -> data.View:
        """What the unit wants to know early, of the next entry."""
        word = self.following.word
        load, store = (view(cls, self._config, word) for cls in (LoadInstruction, StoreReq))
        moves = (store.x_size != 0) & (store.y_size != 0)
        known = Signal(_KnownLayout(), name="following_known")
        of_par = known.is_load & (load.memory == OwnMemory.PAR)
        m.d.comb += [
            known.is_load.eq(load.opcode == Opcode.LOAD),
            known.is_set.eq(load.opcode == Opcode.SET),
            known.is_store.eq(~known.is_load & ~known.is_set),
            known.of_res.eq(known.is_load & (load.memory == OwnMemory.RES)),
            known.finished.eq(known.is_store & is_finished(store.memory)),
            known.adds.eq(known.is_store & (store.memory == Finishing.ADD)),
            known.touches_par.eq((of_par | known.finished) & moves),
            known.good.eq(self.following.cause == 0),
        ]
        return known

    def _own(self, m: Module, flight: Flight, can_store: Value) -> "_Own":
        """What the unit has to do with par and res, and with SETs: its own LOADs, whether the head may start,
        and what is wrong with it."""
        config = self._config
        kinds = kinds_of(LoadInstruction, Unit.STORE, config)
        m.submodules.loader = loader = Loader(kinds, config.loads_in_flight, config, shared=True)
        m.submodules.residuals = residuals = Residuals(config)
        in_flight = config.loads_in_flight + config.stores_in_flight
        m.submodules.order = order = Queue(1, in_flight)
        """Of each instruction that has not retired, whether it is a STORE."""
        res_kind = next(number for number, kind in enumerate(kinds) if kind.memory == OwnMemory.RES)
        word, box = self.head.word, self.head.box
        load, store = view(LoadInstruction, config, word), view(StoreReq, config, word)
        under_way, faulty = Signal(), Signal()
        known = Signal(_KnownLayout())
        """Of the head, found out while it goes there."""
        is_load, is_set, is_store = known.is_load, known.is_set, known.is_store
        of_res, finished, adds = known.of_res, known.finished, known.adds
        with m.If(self.taking):
            m.d.sync += known.eq(self._known(m))

        # Ranges of par, elements of res.
        touched, following = Signal(RangeLayout(config)), Signal(RangeLayout(config))
        next_load = view(LoadInstruction, config, self.following.word)
        next_store = view(StoreReq, config, self.following.word)
        next_begin = Mux(next_load.opcode == Opcode.LOAD, next_load.sram_base, next_store.par)
        m.d.comb += [
            following.begin.eq(next_begin),
            following.end.eq(self.following.box.end),
            touched.any.eq(known.touches_par),
            touched.begin.eq(Mux(is_load, load.sram_base, store.par)),
            touched.end.eq(box.end),
            flight.range.eq(touched),
            flight.taking.eq(self.taking),
            flight.following.eq(following),
            loader.range.eq(touched),
            loader.taking.eq(self.taking),
            loader.following_range.eq(following),
            loader.sram.eq(Mux(of_res, residuals.begin, load.sram_base)),
            residuals.flush.eq(self.flush),
            residuals.elements.eq(box.elements),
            residuals.is_load.eq(of_res),
            residuals.is_add.eq(adds),
            residuals.load.eq(self.start & of_res),
            residuals.store.eq(flight.start),
            residuals.written.eq(loader.written & (loader.data_beat.kind == res_kind)),
            residuals.retire.eq(flight.retire),
        ]
        waits = (is_load & (loader.conflict | flight.conflict)) | (finished & loader.unwritten)
        waits = waits | ~(residuals.room & residuals.there)
        can_load = ~loader.requesting & loader.room
        free = ~under_way & Mux(is_set, ~order.valid, Mux(is_load, can_load, can_store))
        can_start = free & (is_set | ~waits)

        # What is under way; SETs take the loader's way, as LOADs that move nothing.
        m.d.comb += [
            loader.flush.eq(self.flush),
            loader.mem_base.eq(self.mem_base),
            loader.entry.eq(self.head),
            loader.is_set.eq(is_set),
            loader.start.eq(self.start & ~is_store),
            loader.granted.eq(self.request_granted),
            loader.beat_valid.eq(self.beat_valid),
            loader.beat_data.eq(self.beat_data),
            self.request_valid.eq(loader.requesting),
            self.request.eq(loader.request),
            order.flush.eq(self.flush),
            order.push.eq(self.start),
            order.data.eq(is_store),
            order.pop.eq(self.retire),
            loader.hold.eq(order.head),
            flight.hold.eq(~order.head),
            self.retire.eq(loader.retire | flight.retire),
            self.retired.eq(Mux(order.head, flight.retired, loader.retired)),
            self.oldest.eq(Mux(order.head, flight.oldest, loader.oldest)),
            self.occupied.eq(order.valid),
        ]
        m.d.sync += under_way.eq(self.start & is_set & ~self.flush)
        return _Own(
            faults=[
                (residuals.full, Cause.RESIDUAL_FULL),
                (residuals.empty, Cause.RESIDUAL_EMPTY),
            ],
            faulty=faulty,
            good=known.good,
            is_store=is_store,
            can_start=can_start,
            can_fail=free & (is_set | faulty | ~waits),
            loader=loader,
            kinds=kinds,
            setting=self._set(m, is_set),
        )

    def _set(self, m: Module, is_set: Value) -> data.View:
        """What SETs leave behind."""
        config = self._config
        out, total = (view(cls, config, self.head.word) for cls in (SetOut, SetSum))
        setting = Signal(SettingLayout())
        addition = setting.addition
        taken = self.start & is_set
        with m.If(taken & (out.part == SetOut.PART)):
            m.d.sync += [
                *(getattr(setting.range, name).eq(getattr(out, name)) for name in ("zero", "low", "high")),
                *(
                    getattr(addition, name).eq(getattr(out, name))
                    for name in ("left_zero", "right_zero", "offset", "shift")
                ),
                setting.unsigned.eq(out.unsigned),
            ]
        with m.If(taken & (out.part == SetSum.PART)):
            m.d.sync += [
                *(getattr(addition.range, name).eq(getattr(total, name)) for name in ("zero", "low", "high")),
                addition.left_multiplier.eq(total.left_multiplier),
                addition.right_multiplier.eq(total.right_multiplier),
            ]
        with m.If(self.flush):
            m.d.sync += Value.cast(setting).eq(0)
        return setting

    def _finish(
        self, m: Module, own: "_Own", beats: BeatWalker, begins: Value, asking: Signal, last: Signal
    ) -> tuple[Signal, Value]:
        """The beats on the bus, of values that are finished and of others; gives whether the next one to be
        asked for is finished, and whether there is one for the bus."""
        config = self._config
        par_view = view(StoreReq, config, self.head.word)
        m.submodules.walker = walker = SlotWalker(self._kinds, config)
        m.submodules.pars = pars = BypassQueue(ParLayout(), 2)
        m.submodules.lanes = lanes = Lanes(self._stages, config)
        m.submodules.par = par = Scratchpad(PAR, own.kinds, config, paced=True)
        m.submodules.res = res = Scratchpad(RES, own.kinds, config, paced=True, circular=True)
        m.d.comb += [
            walker.flush.eq(self.flush),
            pars.flush.eq(self.flush),
            pars.push.eq(begins),
            pars.pop.eq(beats.free),
            *(getattr(pars.data, name).eq(getattr(par_view, name)) for name, _ in ParLayout()),
            walker.start.eq(beats.free),
            walker.par.eq(pars.head),
            walker.beat.eq(beats.beat),
            walker.row_last.eq(beats.row_last),
            walker.step.eq(asking),
            beats.step.eq(asking & walker.last),
            self.out_slot.eq(walker.slot),
            lanes.advance.eq(self.out_advance),
            lanes.slot.eq(walker.slot),
            lanes.sums.eq(self.out_sums),
            lanes.par.eq(par.element_0),
            lanes.res.eq(res.element_0),
            lanes.setting.eq(own.setting),
        ]
        loader = own.loader
        for number, (pad, index) in enumerate(((par, walker.par_index), (res, walker.res_index))):
            assert own.kinds[number].route.scratchpad is pad.holds
            m.d.comb += [
                pad.beat_valid.eq(loader.data_valid & (loader.data_beat.kind == number)),
                pad.beat.eq(loader.data_beat),
                pad.data.eq(loader.data),
                pad.advance.eq(self.out_advance),
                pad.read_index_0.eq(index),
            ]
            connect_access(m, self, pad)

        read = {
            "valid": asking,
            "last": last,
            "complete": walker.last,
            "finished": walker.finished,
            "adds": walker.adds,
            "number": walker.number,
            "inside": walker.slot.inside,
        }
        held = {name: Signal(len(value), name=f"read_{name}") for name, value in read.items()}
        with m.If(self.out_advance):
            m.d.sync += [held[name].eq(value) for name, value in read.items()]
            *staged, bytes_, strobe = self._staged(m, *held.values(), self.out_data, self.out_strobe)
            beat = dict(zip(held, staged, strict=True))
            m.d.sync += self.wlast.eq(beat["last"])
            with m.If(beat["finished"]):
                inside = beat["inside"].replicate(config.lanes)
                m.d.sync += [
                    self.wdata.word_select(beat["number"], len(lanes.result)).eq(lanes.result),
                    self.wstrb.word_select(beat["number"], config.lanes).eq(inside),
                ]
            with m.Else():
                m.d.sync += [self.wdata.eq(bytes_), self.wstrb.eq(strobe)]
        m.d.comb += lanes.adds.eq(beat["adds"])
        finished: Signal = walker.finished
        return finished, beat["valid"] & beat["complete"]


def _granted_layout(config: Config) -> data.StructLayout:
    """What is remembered of a burst until its response."""
    return data.StructLayout({"last": 1, "slot": range(config.stores_in_flight), "index": INDEX_BITS})


class _KnownLayout(data.StructLayout):
    """Of an instruction of the store unit: what it is, whether it reads or writes elements of PAR, and
    whether it is good by itself."""

    def __init__(self) -> None:
        names = ("is_load", "is_set", "is_store", "of_res", "finished", "adds", "touches_par", "good")
        super().__init__(dict.fromkeys(names, 1))


@dataclass(frozen=True, kw_only=True)
class _Own:
    """What the store unit of a machine with ``post=1`` has to do besides STOREs.

    Attributes:
        faults: what is wrong with the head.
        faulty: to be told whether anything is.
        good: nothing is wrong with the head by itself.
        is_store: the head is a STORE.
        can_start: but for tokens, if it is not faulty.
        can_fail: but for tokens; if it is faulty, nothing else is waited for.
        loader: of par and res.
        kinds: as it counts them.
        setting: what SETs have set.
    """

    faults: Sequence[tuple[Value, Cause]]
    faulty: Signal
    good: Value
    is_store: Value
    can_start: Value
    can_fail: Value
    loader: Loader
    kinds: Sequence[Kind]
    setting: data.View
