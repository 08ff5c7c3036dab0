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

    ``elements`` are those that the instruction at hand, if there is one (``valid``), loads (``is_load``) or
    takes (``is_add``); ``following`` those of the one that is at hand in the cycle after it starts, or after
    one without any. ``full`` and ``empty`` tell that the one at hand must not, whatever is under way;
    ``room`` that a LOAD finds room, and ``there`` that a STORE finds all it takes written. ``start`` starts
    it: a LOAD of RES, a STORE of any kind (``is_store``), or another instruction. ``written`` tells that the
    oldest LOAD that was not written now is, ``retire`` that the oldest STORE retires. The next element loaded
    is ``begin``.

    Whether elements find room is known from registers: it is found out in the cycle before, for the
    instruction that stays and for the one that comes if this one starts, which is known late.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "flush": In(1),
                "valid": In(1),
                "elements": In(sram_bits(config)),
                "following": In(sram_bits(config)),
                "is_load": In(1),
                "is_store": In(1),
                "is_add": In(1),
                "full": Out(1),
                "empty": Out(1),
                "room": Out(1),
                "there": Out(1),
                "begin": Out(RES.address_bits(config)),
                "start": In(1),
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
        loaded, taken = Signal(count, name="loaded"), Signal(count, name="taken")
        """What the instruction at hand loads, and what it takes."""
        left, arrived = Signal(count, name="left"), Signal(count, name="arrived")
        names = ("fits", "held_all", "vacant_all", "ready_all")
        fits, held_all, vacant_all, ready_all = (Signal(name=name) for name in names)
        """Whether ``spare``, and so on, is as much as the instruction at hand loads or takes."""
        m.d.comb += [
            loaded.eq(Mux(self.is_load, elements, 0)),
            taken.eq(Mux(self.is_add, elements, 0)),
            self.full.eq(self.is_load & ~fits),
            self.empty.eq(self.is_add & ~held_all),
            self.room.eq(~self.is_load | vacant_all),
            self.there.eq(~self.is_add | ready_all),
            loads.flush.eq(self.flush),
            loads.push.eq(self.start & self.is_load & (elements != 0)),
            loads.data.eq(elements),
            loads.pop.eq(self.written),
            arrived.eq(Mux(self.written, loads.head, 0)),
            stores.flush.eq(self.flush),
            stores.push.eq(self.start & self.is_store),
            stores.data.eq(taken),
            stores.pop.eq(self.retire),
            left.eq(Mux(self.retire, stores.head, 0)),
        ]
        # What starts is known late, what that would change is not.
        waiting = Mux(self.valid, self.elements, self.following)
        for one, all_of, start, more in (
            (spare, fits, Mux(self.is_load, spare - elements, spare + taken), 0),
            (held, held_all, Mux(self.is_load, held + elements, held - taken), 0),
            (vacant, vacant_all, vacant - loaded, left),
            (ready, ready_all, ready - taken, arrived),
        ):
            begun, now, then = (Signal(count, name=f"{one.name}_{name}") for name in ("begun", "now", "then"))
            m.d.comb += [begun.eq(start), now.eq(one + more), then.eq(begun + more)]
            m.d.sync += [
                one.eq(Mux(self.start, then, now)),
                all_of.eq(Mux(self.start, self.following <= then, waiting <= now)),
            ]
        with m.If(self.start & self.is_load):
            m.d.sync += self.begin.eq(self.begin + elements)
        with m.If(self.flush):
            m.d.sync += [held.eq(0), spare.eq(depth), vacant.eq(depth), ready.eq(0), self.begin.eq(0)]
        return m
