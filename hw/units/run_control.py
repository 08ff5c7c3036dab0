"""The state of a run."""

from collections.abc import Sequence
from itertools import count
from typing import Any, NamedTuple

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from accel.core.fault_causes import CAUSE_BITS, Cause
from accel.hw.datapath.word_layouts import INDEX_BITS

MAX_CYCLES_BITS = 64


class ErrorLayout(data.StructLayout):
    def __init__(self) -> None:
        super().__init__({"there": 1, "cause": CAUSE_BITS, "index": INDEX_BITS})


class EventLayout(data.StructLayout):
    def __init__(self) -> None:
        super().__init__({"there": 1, "cause": CAUSE_BITS})


class PlaceLayout(data.StructLayout):
    """A place that may hold the oldest instruction in progress."""

    def __init__(self) -> None:
        super().__init__({"valid": 1, "index": INDEX_BITS})


class RunControl(wiring.Component):
    """Counts cycles, and ends a run.

    An error halts the core in the following cycle. The next cycles determine which of several errors counts.
    Then the run is ``draining``: it ends when the bus is ``drained``, or at once when it is ``late`` or
    cleared. By priority, ``events`` of the whole run follow the cycle limit, and ``errors`` of instructions
    follow them.

    Attributes:
        flush: set with ``start`` and with ``clear``.
        going: units may start instructions and request bursts.
        fetching: fetch may request bursts, from a run's cycle 1 on.
        offers: the bus has not taken an offered address or beat.
        offering: ``offers`` of the cycle before, if ``going`` was not set.
        draining: ``held_cause`` and ``held_index`` are valid.
        cycle: elapsed cycles. After an error, the cycles before it.
    """

    def __init__(self, events: int, errors: int, places: int) -> None:
        super().__init__(
            {
                "start": In(1),
                "clear": In(1),
                "flush": In(1),
                "max_cycles": In(MAX_CYCLES_BITS),
                "complete": In(1),
                "drained": In(1),
                "late": In(1),
                "offers": In(1),
                "events": In(data.ArrayLayout(EventLayout(), events)),
                "errors": In(data.ArrayLayout(ErrorLayout(), errors)),
                "places": In(data.ArrayLayout(PlaceLayout(), places)),
                "running": Out(1),
                "halted": Out(1),
                "going": Out(1),
                "fetching": Out(1),
                "offering": Out(1),
                "draining": Out(1),
                "counted": Out(1),
                "ended": Out(1),
                "cycle": Out(MAX_CYCLES_BITS),
                "held_cause": Out(CAUSE_BITS),
                "held_index": Out(INDEX_BITS),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        active = Signal()
        stopping = Signal()
        settled = Signal()
        begun = Signal()
        limit = Signal()
        now, last = Signal(MAX_CYCLES_BITS), Signal(MAX_CYCLES_BITS)
        whole = limit | Cat(event.there for event in self.events).any()
        found = whole | Cat(error.there for error in self.errors).any()
        over = self.drained | self.late | self.clear
        m.d.comb += [
            active.eq(self.going & ~self.complete),
            self.fetching.eq(begun & self.running),
            stopping.eq(active & found),
            self.draining.eq(self.running & self.halted & settled),
            self.ended.eq(self.running & Mux(self.halted, settled & over, self.complete)),
            self.cycle.eq(Mux(self.halted, last, now)),
        ]
        m.d.sync += [
            begun.eq(self.running),
            self.offering.eq(~self.going & self.offers),
            self.counted.eq(active & ~stopping),
        ]
        with m.If(~self.halted):
            m.d.sync += last.eq(now)
        with m.If(active):
            m.d.sync += [now.eq(now + 1), limit.eq(now + 1 == self.max_cycles)]
        with m.If(stopping):
            m.d.sync += self.halted.eq(1)
        with m.If(stopping | self.ended):
            m.d.sync += self.going.eq(0)
        with m.If(self.ended):
            m.d.sync += self.running.eq(0)
        with m.If(self.start):
            m.d.sync += [self.running.eq(1), self.going.eq(1), now.eq(0), limit.eq(self.max_cycles == 0)]

        cause, index, levels = self._first(m, limit)
        since = Signal(levels)
        """Shift register: bit n is set n + 1 cycles after the error."""
        m.d.sync += since.eq(Cat(stopping, since))
        with m.If(since[-1] & ~settled):
            m.d.sync += [
                settled.eq(1),
                self.held_cause.eq(cause),
                self.held_index.eq(index),
            ]
        with m.If(self.flush):
            m.d.sync += [
                self.halted.eq(0),
                settled.eq(0),
                since.eq(0),
                self.held_cause.eq(0),
                self.held_index.eq(0),
            ]
        return m

    def _first(self, m: Module, limit: Signal) -> tuple[Value, Value, int]:
        """Return the error's cause and index, and after how many cycles they are valid. An event has the
        index of the oldest instruction in progress."""
        there, errors, places = Signal(), Signal.like(self.errors), Signal.like(self.places)
        events = Signal.like(self.events)
        m.d.sync += [there.eq(limit), errors.eq(self.errors), places.eq(self.places), events.eq(self.events)]
        oldest: list[Value] = [place.index | ~place.valid.replicate(INDEX_BITS) for place in places]
        levels = 1
        while len(oldest) > 1:
            oldest = [
                self._older(m, oldest[n : n + 2], f"oldest_{levels}_{n}") for n in range(0, len(oldest), 2)
            ]
            levels += 1

        stops = [
            _StopReason(there, Cause.LIMIT),
            *(_StopReason(event.there, event.cause) for event in events),
        ]
        stops += [_StopReason(error.there, error.cause, error.index, 1) for error in errors]
        size = next(size for size in count(2) if size ** (levels - 1) >= len(stops))
        for number in range(1, levels):
            stops = [
                self._earlier(m, stops[n : n + size], f"{number}_{n}") for n in range(0, len(stops), size)
            ]
        (first,) = stops
        return first.cause, Mux(first.own, first.index, oldest[0]), levels

    def _earlier(self, m: Module, stops: Sequence["_StopReason"], name: str) -> "_StopReason":
        found, late = (
            _StopReason(
                Signal(name=f"{kind}there_{name}"),
                Signal(CAUSE_BITS, name=f"{kind}cause_{name}"),
                Signal(INDEX_BITS, name=f"{kind}index_{name}"),
                Signal(name=f"{kind}own_{name}"),
            )
            for kind in ("found_", "")
        )
        for number, stop in enumerate(stops):
            with m.If(stop.there) if number == 0 else m.Elif(stop.there):
                m.d.comb += [here.eq(its) for here, its in zip(found, stop, strict=True)]
        m.d.sync += [held.eq(here) for held, here in zip(late, found, strict=True)]
        return late

    def _older(self, m: Module, two: list[Value], name: str) -> Signal:
        lower = Signal(INDEX_BITS, name=name)
        m.d.sync += lower.eq(Mux(two[-1] < two[0], two[-1], two[0]))
        return lower


class _StopReason(NamedTuple):
    there: Any
    cause: Any
    index: Any = 0
    own: Any = 0
