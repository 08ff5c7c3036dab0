"""How many elements RES holds, for the LOADs that fill it and the STOREs that take them."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from accel.core.config import Config
from accel.core.memories import RES
from accel.hw.datapath.layouts import sram_bits
from accel.hw.datapath.queue import Queue


class Residuals(wiring.Component):
    """Counts of the elements of RES.

    ``elements`` are those that the instruction at hand loads (``is_load``) or takes (``is_add``). ``full``
    and ``empty`` tell that it must not, whatever is under way; ``room`` that a LOAD finds room, and ``there``
    that a STORE finds all it takes written. ``load`` and ``store`` start a LOAD of RES and a STORE of any
    kind; ``written`` tells that the oldest LOAD that was not written now is, ``retire`` that the oldest STORE
    retires. The next element loaded is ``begin``.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "flush": In(1),
                "elements": In(sram_bits(config)),
                "is_load": In(1),
                "is_add": In(1),
                "full": Out(1),
                "empty": Out(1),
                "room": Out(1),
                "there": Out(1),
                "begin": Out(RES.address_bits(config)),
                "load": In(1),
                "store": In(1),
                "written": In(1),
                "retire": In(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        depth = RES.depth(self._config)
        count = range(depth + 1)
        m.submodules.loads = loads = Queue(count, self._config.loads_in_flight)
        m.submodules.stores = stores = Queue(count, self._config.stores_in_flight)
        held = Signal(count)
        """Loaded by LOADs that have started, less taken by STOREs that have."""
        kept = Signal(count)
        """The same, less taken by STOREs that have retired."""
        ready = Signal(count)
        """Loaded by LOADs that are written, less taken by STOREs that have started."""
        elements = self.elements[: len(held)]
        comes, goes = Signal(count), Signal(count)
        left, arrived = Signal(count), Signal(count)
        m.d.comb += [
            self.full.eq(self.is_load & (self.elements != 0) & (held + self.elements > depth)),
            self.empty.eq(self.is_add & (self.elements > held)),
            self.room.eq(~self.is_load | (kept + self.elements <= depth)),
            self.there.eq(~self.is_add | (self.elements <= ready)),
            comes.eq(Mux(self.load, elements, 0)),
            goes.eq(Mux(self.store & self.is_add, elements, 0)),
            loads.flush.eq(self.flush),
            loads.push.eq(self.load & (elements != 0)),
            loads.data.eq(elements),
            loads.pop.eq(self.written),
            arrived.eq(Mux(self.written, loads.head, 0)),
            stores.flush.eq(self.flush),
            stores.push.eq(self.store),
            stores.data.eq(goes),
            stores.pop.eq(self.retire),
            left.eq(Mux(self.retire, stores.head, 0)),
        ]
        m.d.sync += [
            held.eq(held + comes - goes),
            kept.eq(kept + comes - left),
            ready.eq(ready + arrived - goes),
            self.begin.eq(self.begin + comes),
        ]
        with m.If(self.flush):
            m.d.sync += [held.eq(0), kept.eq(0), ready.eq(0), self.begin.eq(0)]
        return m
