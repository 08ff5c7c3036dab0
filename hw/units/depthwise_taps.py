"""The taps of a depthwise MAC."""

from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value

from accel.core.config import Config
from accel.core.isa.field_widths import STEP_BITS, TAPS_BITS
from accel.hw.datapath.gemm import tap_names
from accel.hw.datapath.loop_sequencer import Sequencer


class DepthwiseTaps:
    """A depthwise MAC's taps, set by SET.ACC: their number, and each one's distance from the first."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._names = tap_names(config)
        self.taps = Signal(TAPS_BITS, name="acc_taps")
        bits = STEP_BITS + len(self._names).bit_length()
        self._offsets = {name: Signal(bits, name=f"{name}_offset") for name in self._names}
        self._reach = Signal(bits, name="taps_reach")

    def take(self, m: Module, setting: Any, *, start: Value, flush: Value) -> None:
        offsets: list[Value] = [Const(0, 1)]
        for tap in range(1, len(self._names) + 1):
            doubled = Cat(Const(0, 1), offsets[tap // 2])
            offsets.append(setting.step if tap == 1 else doubled + setting.step if tap % 2 else doubled)
        last = Array(offsets)[(setting.taps - 1)[: len(self._names).bit_length()]] if self._names else 0
        with m.If(start):
            m.d.sync += [self.taps.eq(setting.taps), self._reach.eq(Mux(setting.taps == 0, 0, last))]
            m.d.sync += [held.eq(one) for held, one in zip(self._offsets.values(), offsets[1:], strict=True)]
        with m.If(flush):
            m.d.sync += self.taps.eq(0)

    def indices(self, m: Module, operands: Any, sequencer: Sequencer, uop: Any) -> Value:
        """Present the indices of all taps but the first, and return the last."""
        highest = Signal(max(len(sequencer.src), len(self._reach)) + 1, name="src_last")
        held = Signal(len(highest), name="src_last_offset")
        reach = Mux(sequencer.operation.depthwise, self._reach, 0)
        m.d.sync += [held.eq(sequencer.src + reach), highest.eq(uop.src + held)]
        for name, distance in self._offsets.items():
            port = getattr(operands, name).index
            behind, index = Signal(len(port), name=f"{name}_held"), Signal(len(port), name=f"{name}_at")
            m.d.sync += [behind.eq(sequencer.src + distance), index.eq(uop.src + behind)]
            m.d.comb += port.eq(index)
        return highest
