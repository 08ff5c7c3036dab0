"""How many elements RES holds, for the LOADs that fill it and the STOREs that take them."""

from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value
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
            stores.flush.eq(self.flush),
            stores.push.eq(self.start & self.is_store),
            stores.data.eq(taken),
            stores.pop.eq(self.retire),
        ]
        # What starts and what retires is known late, what that would change is not.
        waiting = Mux(self.valid, self.elements, self.following)
        for one, all_of, begun, comes, more in (
            (spare, fits, Mux(self.is_load, spare - elements, spare + taken), Const(0), Const(0)),
            (held, held_all, Mux(self.is_load, held + elements, held - taken), Const(0), Const(0)),
            (vacant, vacant_all, vacant - loaded, self.retire, stores.head),
            (ready, ready_all, ready - taken, self.written, loads.head),
        ):
            then = Signal(count, name=f"{one.name}_then")
            m.d.comb += then.eq(begun)
            (stays, stay_all), (changed, change_all) = (
                self._with(m, f"{one.name}_{name}", before, wanted, comes, more)
                for name, before, wanted in (("now", one, waiting), ("then", then, self.following))
            )
            m.d.sync += [
                one.eq(Mux(self.start, changed, stays)),
                all_of.eq(Mux(self.start, change_all, stay_all)),
            ]
        with m.If(self.start & self.is_load):
            m.d.sync += self.begin.eq(self.begin + elements)
        with m.If(self.flush):
            m.d.sync += [held.eq(0), spare.eq(depth), vacant.eq(depth), ready.eq(0), self.begin.eq(0)]
        return m

    def _with(
        self, m: Module, name: str, before: Signal, wanted: Value, comes: Value, more: Value
    ) -> tuple[Value, Value]:
        """A count, with more if that comes, and whether it is as much as wanted."""
        after = Signal.like(before, name=f"{name}_more")
        m.d.comb += after.eq(before + more)
        return Mux(comes, after, before), Mux(comes, wanted <= after, wanted <= before)
