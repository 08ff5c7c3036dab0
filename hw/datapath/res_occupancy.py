"""Occupancy of RES."""

from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from accel.core.config import Config
from accel.core.scratchpad_specs import RES
from accel.hw.datapath.queue import Queue
from accel.hw.datapath.word_layouts import sram_bits


class ResOccupancy(wiring.Component):
    """Counts the elements of RES.

    If ``valid``, the current instruction loads (``is_load``) or takes (``is_add``) ``elements``, and the next
    one ``following``. ``full`` and ``empty`` show faults: program order loads more than the depth, or takes
    more than it has loaded. ``room`` shows that a LOAD fits now, ``there`` that a STORE's elements have been
    written. ``start`` starts the current instruction, ``written`` completes the oldest LOAD, ``retire`` the
    oldest STORE. ``begin`` is the next element to load.

    Starts and retirements are known late, so comparisons for the current and the next instruction are
    computed one cycle ahead.
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
        elements = self.elements[: len(Signal(count))]
        loaded, taken = Signal(count, name="loaded"), Signal(count, name="taken")
        m.d.comb += [
            loaded.eq(Mux(self.is_load, elements, 0)),
            taken.eq(Mux(self.is_add, elements, 0)),
            loads.flush.eq(self.flush),
            loads.push.eq(self.start & self.is_load & (elements != 0)),
            loads.data.eq(elements),
            loads.pop.eq(self.written),
            stores.flush.eq(self.flush),
            stores.push.eq(self.start & self.is_store),
            stores.data.eq(taken),
            stores.pop.eq(self.retire),
        ]
        was = {
            name: self._before(m, name, there, amount)
            for name, there, amount in (
                ("loaded", self.start, loaded),
                ("taken", self.start, taken),
                ("left", self.retire, stores.head),
                ("arrived", self.written, loads.head),
            )
        }
        """Changes of the previous cycle."""
        waiting = Mux(self.valid, self.elements, self.following)
        all_of = {}
        """In program order, ``held`` elements are loaded and not taken. ``spare`` is the rest of the depth.
        ``vacant`` ones are unloaded or taken by retired STOREs, ``ready`` ones written and not taken."""
        for name, initial, more, less, begun, comes, then in (
            ("held", 0, "loaded", "taken", (loaded, taken), Const(0), Const(0)),
            ("spare", depth, "taken", "loaded", (taken, loaded), Const(0), Const(0)),
            ("vacant", depth, "left", "loaded", (Const(0), loaded), self.retire, stores.head),
            ("ready", 0, "arrived", "taken", (Const(0), taken), self.written, loads.head),
        ):
            late = Signal(count, name=f"{name}_before", init=initial)
            now, after = Signal(count, name=name), Signal(count, name=f"{name}_after")
            there = Signal(name=f"{name}_all")
            m.d.comb += [now.eq(late + was[more] - was[less]), after.eq(now + begun[0] - begun[1])]
            m.d.sync += [
                late.eq(now),
                there.eq(
                    Mux(
                        self.start,
                        self._fits(m, f"{name}_start", self.following, after, comes, then),
                        self._fits(m, f"{name}_stay", waiting, now, comes, then),
                    )
                ),
            ]
            with m.If(self.flush):
                m.d.sync += late.eq(initial)
            all_of[name] = there
        m.d.comb += [
            self.full.eq(self.is_load & ~all_of["spare"]),
            self.empty.eq(self.is_add & ~all_of["held"]),
            self.room.eq(~self.is_load | all_of["vacant"]),
            self.there.eq(~self.is_add | all_of["ready"]),
        ]
        with m.If(self.start & self.is_load):
            m.d.sync += self.begin.eq(self.begin + elements)
        with m.If(self.flush):
            m.d.sync += self.begin.eq(0)
        return m

    def _before(self, m: Module, name: str, there: Value, amount: Value) -> Value:
        was, held = Signal(name=f"was_{name}"), Signal.like(amount, name=f"{name}_held")
        m.d.sync += [was.eq(there & ~self.flush), held.eq(amount)]
        return Mux(was, held, 0)

    def _fits(self, m: Module, name: str, wanted: Value, there: Signal, comes: Value, more: Value) -> Value:
        after = Signal.like(there, name=name)
        m.d.comb += after.eq(there + more)
        return Mux(comes, wanted <= after, wanted <= there)
