"""The load unit: LOADs of inp and wgt and SETs of inp, with the two scratchpads that are filled."""

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Const, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from accel.core.config import DRAM_ADDRESS_BITS, Config
from accel.core.faults import CAUSE_BITS
from accel.core.isa import Load as LoadInstruction
from accel.core.isa import Opcode, SetInp, Unit
from accel.core.memories import INP
from accel.hw.bus.port import RequestLayout
from accel.hw.datapath.gemm import tap_names
from accel.hw.datapath.layouts import INDEX_BITS, EntryLayout, sram_bits, view
from accel.hw.datapath.scratchpads import Scratchpad, access_ports, connect_access
from accel.hw.datapath.transfer import kinds_of
from accel.hw.units.flight import RetireLayout
from accel.hw.units.loader import Loader


class Load(wiring.Component):
    """The load unit, with inp and wgt scratchpad."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._kinds = kinds_of(LoadInstruction, Unit.LOAD, config)
        ports: dict[str, Any] = {
            "flush": In(1),
            "enable": In(1),
            "mem_base": In(DRAM_ADDRESS_BITS),
            "head_valid": In(1),
            "head": In(EntryLayout(config)),
            "taking": In(1),
            "following": In(EntryLayout(config)),
            "tokens": In(1),
            "start": Out(1),
            "lacking": Out(1),
            "fault": Out(CAUSE_BITS),
            "request_valid": Out(1),
            "request": Out(RequestLayout()),
            "granted": In(1),
            "beat_valid": In(1),
            "beat_data": In(config.bus_bits),
            "retire": Out(1),
            "retired": Out(RetireLayout()),
            "oldest": Out(INDEX_BITS),
            "occupied": Out(1),
            "busy": Out(1),
        }
        for kind in self._kinds:
            ports[f"{kind.route.scratchpad}_index"] = In(sram_bits(config))
        for name in tap_names(config):
            ports |= {f"{name}_index": In(sram_bits(config)), name: Out(INP.word_bits(config))}
        super().__init__(ports | access_ports(Unit.LOAD, config))

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        config = self._config
        m.submodules.loader = loader = Loader(self._kinds, config.loads_in_flight, config)
        may_start: Value = Const(1, 1)
        if config.post:
            setting, may_start = self._set(m, loader)
        cause = self.head.cause
        ready = Signal()
        can = self.head_valid & ~loader.requesting & loader.room & ~loader.conflict
        m.d.comb += [
            ready.eq(can & may_start if config.post else can),
            self.lacking.eq(ready & ~self.tokens),
            *(
                []
                if config.loads_in_flight == 1
                else [loader.taking.eq(self.taking), loader.following.eq(self.following)]
            ),
            loader.flush.eq(self.flush),
            loader.mem_base.eq(self.mem_base),
            loader.entry.eq(self.head),
            loader.faulty.eq(cause != 0),
            loader.start.eq(self.start),
            loader.granted.eq(self.granted),
            loader.beat_valid.eq(self.beat_valid),
            loader.beat_data.eq(self.beat_data),
            self.request_valid.eq(loader.requesting),
            self.request.eq(loader.request),
            self.retire.eq(loader.retire),
            self.retired.eq(loader.retired),
            self.oldest.eq(loader.oldest),
            self.occupied.eq(~loader.empty),
            self.busy.eq(loader.data_valid | loader.pad_valid),
        ]
        with m.If(ready & self.tokens):
            m.d.comb += [self.fault.eq(cause), self.start.eq(self.enable & (cause == 0))]
        for number, kind in enumerate(self._kinds):
            name = kind.route.scratchpad.name
            taps = tap_names(config) if kind.route.scratchpad is INP else []
            pad = Scratchpad(kind.route.scratchpad, self._kinds, config, taps=taps)
            m.submodules[name] = pad
            m.d.comb += [
                pad.beat_valid.eq(loader.data_valid & (loader.data_beat.kind == number)),
                pad.beat.eq(loader.data_beat),
                pad.data.eq(loader.data),
                pad.read_index_0.eq(getattr(self, f"{name}_index")),
                *(getattr(pad, f"{tap}_index").eq(getattr(self, f"{tap}_index")) for tap in taps),
                *(getattr(self, tap).eq(getattr(pad, tap)) for tap in taps),
            ]
            with m.If(loader.pad_valid & (loader.pad_kind == number)):
                m.d.comb += [pad.word_valid.eq(1), pad.word_index.eq(loader.pad_index)]
            connect_access(m, self, pad)
            if pad.is_set:
                m.d.comb += [pad.unsigned.eq(setting.unsigned), pad.zero.eq(setting.zero)]
        return m

    def _set(self, m: Module, loader: Loader) -> tuple["_Setting", Value]:
        """What SETs leave behind, and whether they let the head start.

        A SET goes through the loader as a LOAD that moves nothing.
        """
        word = view(SetInp, self._config, self.head.word)
        is_set, under_way = Signal(), Signal()
        setting = _Setting(unsigned=Signal(name="inp_unsigned"), zero=Signal.like(word.zero, name="inp_zero"))
        m.d.comb += [is_set.eq(word.opcode == Opcode.SET), loader.is_set.eq(is_set)]
        m.d.sync += under_way.eq(self.start & is_set & ~self.flush)
        with m.If(self.start & is_set):
            m.d.sync += [setting.unsigned.eq(word.unsigned), setting.zero.eq(word.zero)]
        with m.If(self.flush):
            m.d.sync += [setting.unsigned.eq(0), setting.zero.eq(0)]
        return setting, ~under_way & (~is_set | loader.empty)


@dataclass(frozen=True, kw_only=True)
class _Setting:
    """The registers of the load unit that SET writes."""

    unsigned: Signal
    zero: Signal
