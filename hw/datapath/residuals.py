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
        spare = Signal(count, init=depth)
        """How many more may be loaded by then."""
        vacant = Signal(count, init=depth)
        """The same with what STOREs take that have not retired; what may be loaded now."""
        ready = Signal(count)
        """Loaded by LOADs that are written, less taken by STOREs that have started."""
        elements = self.elements[: len(held)]
        takes = Signal()
        left, arrived = Signal(count), Signal(count)
        m.d.comb += [
            self.full.eq(self.is_load & (self.elements > spare)),
            self.empty.eq(self.is_add & (self.elements > held)),
            self.room.eq(~self.is_load | (self.elements <= vacant)),
            self.there.eq(~self.is_add | (self.elements <= ready)),
            takes.eq(self.store & self.is_add),
            loads.flush.eq(self.flush),
            loads.push.eq(self.load & (elements != 0)),
            loads.data.eq(elements),
            loads.pop.eq(self.written),
            arrived.eq(Mux(self.written, loads.head, 0)),
            stores.flush.eq(self.flush),
            stores.push.eq(self.store),
            stores.data.eq(Mux(self.is_add, elements, 0)),
            stores.pop.eq(self.retire),
            left.eq(Mux(self.retire, stores.head, 0)),
        ]
        # What starts is known late, what that would change is not.
        m.d.sync += [
            vacant.eq(Mux(self.load, vacant - elements + left, vacant + left)),
            ready.eq(Mux(takes, ready - elements + arrived, ready + arrived)),
        ]
        with m.If(self.load):
            m.d.sync += [
                held.eq(held + elements),
                spare.eq(spare - elements),
                self.begin.eq(self.begin + elements),
            ]
        with m.If(takes):
            m.d.sync += [held.eq(held - elements), spare.eq(spare + elements)]
        with m.If(self.flush):
            m.d.sync += [held.eq(0), spare.eq(depth), vacant.eq(depth), ready.eq(0), self.begin.eq(0)]
        return m
