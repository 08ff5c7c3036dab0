"""Counters of cycles and of bytes on the bus."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from accel.core.config import Config
from accel.core.isa import Unit
from accel.hw.datapath.word_layouts import log2

COUNTER_BITS = 48
CLASSES = ("busy", "memory_stall", "token_stall")
MOVED = ("read_bytes", "written_bytes")


class CycleCounters(wiring.Component):
    """Counts for each unit the first set one of ``{unit}_is_busy``, ``_memory_stall`` and ``_token_stall``,
    and bus beats as bytes. ``counted`` and ``clear`` refer to the previous cycle."""

    def __init__(self, config: Config) -> None:
        self._config = config
        ports: dict[str, Any] = {"clear": In(1), "counted": In(1)}
        for name in self._names():
            ports |= {f"is_{name}": In(1), name: Out(COUNTER_BITS + self._shift(name))}
        super().__init__(ports)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        there = {name: Signal(name=f"was_{name}") for name in self._names()}
        for unit in Unit:
            before: Any = 0
            for kind in CLASSES:
                name = f"{unit.label}_{kind}"
                one = getattr(self, f"is_{name}")
                m.d.sync += there[name].eq(one & ~before if kind != CLASSES[0] else one)
                before = before | one
        m.d.sync += [there[name].eq(getattr(self, f"is_{name}")) for name in MOVED]
        clear = Signal(init=1)
        """Reset clears the counters through this register, so they need no reset."""
        m.d.sync += clear.eq(self.clear)
        for name, one in there.items():
            counter = Signal(COUNTER_BITS, name=f"counted_{name}", reset_less=True)
            with m.If(self.counted & one):
                m.d.sync += counter.eq(counter + 1)
            with m.If(clear):
                m.d.sync += counter.eq(0)
            m.d.comb += getattr(self, name).eq(counter << self._shift(name))
        return m

    def _shift(self, name: str) -> int:
        return log2(self._config.bus_bytes) if name in MOVED else 0

    @staticmethod
    def _names() -> list[str]:
        return [*(f"{unit.label}_{kind}" for unit in Unit for kind in CLASSES), *MOVED]
