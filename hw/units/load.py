"""The load unit."""

from typing import Any

from amaranth.hdl import Const, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from msgspec import Struct

from accel.core.config import Config
from accel.core.isa import Load as LoadInstruction
from accel.core.isa import Opcode, SetBytes, Unit, setting_of
from accel.core.scratchpad_specs import INP
from accel.hw.bus.read_port import ReadChannel
from accel.hw.datapath.access_probes import AccessProbes
from accel.hw.datapath.gemm import tap_names
from accel.hw.datapath.scratchpads import Scratchpad, access_ports, connect_access
from accel.hw.datapath.transfer_memories import kinds_of
from accel.hw.datapath.word_layouts import view
from accel.hw.units.load_executor import LoadExecutor
from accel.hw.units.token_counters import connect_tokens
from accel.hw.units.unit_interfaces import OperandReads, unit_ports


class Load(wiring.Component):
    """Executes LOADs and SETs of ``inp`` and ``wgt``."""

    def __init__(self, config: Config, probes: AccessProbes | None = None) -> None:
        self._config = config
        self._probes = probes
        self._kinds = kinds_of(LoadInstruction, Unit.LOAD, config)
        ports = unit_ports(config) | {
            "read": Out(ReadChannel(config)),
            "operands": In(OperandReads(config)),
        }
        super().__init__(ports | access_ports(Unit.LOAD, config))

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        config = self._config
        m.submodules.loader = loader = LoadExecutor(self._kinds, config.loads_in_flight, config)
        may_start: Value = Const(1, 1)
        if config.post:
            settings, may_start = self._set(m, loader)
        control, issue, cause = self.control, self.issue, self.issue.entry.cause
        ready = Signal()
        can = issue.valid & ~loader.read.valid & loader.room & ~loader.conflict
        m.d.comb += [
            ready.eq(can & may_start if config.post else can),
            self.lacking.eq(ready & ~self.tokens.there),
            *(
                []
                if config.loads_in_flight == 1
                else [loader.taking.eq(issue.taking), loader.following.eq(issue.following)]
            ),
            loader.flush.eq(control.flush),
            loader.mem_base.eq(control.mem_base),
            loader.entry.eq(issue.entry),
            loader.faulty.eq(cause != 0),
            loader.start.eq(issue.start),
            self.busy.eq(loader.data_valid | loader.pad_valid),
        ]
        with m.If(ready & self.tokens.there):
            m.d.comb += [self.fault.eq(cause), issue.start.eq(control.enable & (cause == 0))]
        wiring.connect(m, loader.read, wiring.flipped(self.read))
        wiring.connect(m, loader.retirement, wiring.flipped(self.retirement))
        connect_tokens(m, self, config)
        for number, kind in enumerate(self._kinds):
            name = kind.route.scratchpad.name
            taps = tap_names(config) if kind.route.scratchpad is INP else []
            pad = Scratchpad(
                kind.route.scratchpad, self._kinds, config, taps=taps, late=True, probes=self._probes
            )
            m.submodules[name] = pad
            m.d.comb += [
                pad.beat_valid.eq(loader.data_valid & (loader.data_beat.kind == number)),
                pad.beat.eq(loader.data_beat),
                pad.data.eq(loader.data),
            ]
            for read, port in ((name, "read_0"), *zip(taps, taps, strict=True)):
                wiring.connect(m, wiring.flipped(getattr(self.operands, read)), getattr(pad, port))
            with m.If(loader.pad_valid & (loader.pad_kind == number)):
                m.d.comb += [pad.word_valid.eq(1), pad.word_index.eq(loader.pad_index)]
            connect_access(m, self, pad)
            if pad.is_set:
                setting = settings[name]
                m.d.comb += [pad.unsigned.eq(setting.unsigned), pad.zero.eq(setting.zero)]
        return m

    def _set(self, m: Module, loader: LoadExecutor) -> tuple[dict[str, "_Setting"], Value]:
        """Return each scratchpad's setting, and whether SETs allow the head to start."""
        start, flush = self.issue.start, self.control.flush
        found = ((kind.route, setting_of(kind.route, self._config)) for kind in self._kinds)
        classes = {route.scratchpad.name: cls for route, cls in found if cls is not None}
        word = view(SetBytes, self._config, self.issue.entry.word)
        is_set, under_way = Signal(), Signal()
        settings = {
            name: _Setting(
                unsigned=Signal(name=f"{name}_unsigned"), zero=Signal.like(word.zero, name=f"{name}_zero")
            )
            for name in classes
        }
        m.d.comb += is_set.eq(word.opcode == Opcode.SET)
        m.d.sync += under_way.eq(start & is_set & ~flush)
        for name, setting in settings.items():
            is_own = is_set if len(classes) == 1 else is_set & (word.memory == classes[name].MEMORY)
            with m.If(start & is_own):
                m.d.sync += [setting.unsigned.eq(word.unsigned), setting.zero.eq(word.zero)]
            with m.If(flush):
                m.d.sync += [setting.unsigned.eq(0), setting.zero.eq(0)]
        return settings, ~under_way & (~is_set | ~loader.retirement.occupied)


class _Setting(Struct, frozen=True, kw_only=True):
    unsigned: Signal
    zero: Signal
