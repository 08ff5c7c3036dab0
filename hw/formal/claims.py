"""Claims and assumptions about a component."""

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_

from amaranth.hdl import (
    Assert,
    Assume,
    Const,
    Elaboratable,
    Module,
    Mux,
    ResetSignal,
    ShapeLike,
    Signal,
    Value,
    ValueLike,
)
from amaranth.lib import wiring
from msgspec import Struct

from accel.hw.formal.open_component import Opened


class Claims(Elaboratable):
    """A component, assumptions about its inputs, and claims that hold in every cycle.

    Inputs have any value that no assumption excludes. The only reset is before the first cycle. ``inside``
    gives access to the component's internal signals.
    """

    def __init__(self, component: wiring.Component) -> None:
        self.inside = Opened(component)
        self.claimed: list[str] = []
        self._module = m = Module()
        m.submodules.component = self.inside
        self._free: list[Value] = [Value.cast(value) for value in self.inside.inputs().values()]
        self._begun = Signal()
        m.d.sync += self._begun.eq(1)
        self.assume(~ResetSignal())

    def claim(self, name: str, holds: ValueLike) -> None:
        """Add a property for other parts."""
        self.claimed.append(name)
        self._module.d.comb += Assert(holds, name)

    def lemma(self, name: str, holds: ValueLike) -> None:
        """Add a property that excludes unreachable states for the induction, and prove it, too."""
        self._module.d.comb += Assert(holds, f"lemma: {name}")

    def queue(self, path: str, depth: int) -> list[tuple[Value, Signal]]:
        """Return for each place of a queue whether it holds an entry, and its bits. An empty path is the
        component."""
        prefix = f"{path}." if path else ""
        first, tail, count = (self.inside.signal(f"{prefix}{name}") for name in ("first", "tail", "count"))
        behind = first + count
        self.lemma(f"{prefix}bounds", (first < depth) & (tail < depth) & (count <= depth))
        room, valid = (self.inside.signal(f"{prefix}{name}") for name in ("room", "valid"))
        self.lemma(f"{prefix}flags", (room == (count != depth)) & (valid == (count != 0)))
        self.lemma(f"{prefix}order", tail == Mux(behind < depth, behind, behind - depth))
        entries: list[tuple[Value, Signal]] = []
        for place in range(depth):
            ahead = Mux(first <= place, place - first, place + depth - first)
            entries.append((ahead < count, self.inside.cell(f"{prefix}memory", Const(place, range(depth)))))
        return entries

    def assume(self, holds: ValueLike) -> None:
        self._module.d.comb += Assume(holds)

    def rely(self, holds: ValueLike) -> None:
        """Assume another proof's claim."""
        self.assume(holds)

    def free(self, shape: ShapeLike, name: str) -> Signal:
        return self.undriven(Signal(shape, name=name))

    def undriven(self, signal: Signal) -> Signal:
        self._free.append(signal)
        return signal

    def cut(self, path: str) -> Signal:
        """Remove a signal's driver: it may be anything in each cycle."""
        signal = self.inside.cut(path)
        self._free.append(signal)
        return signal

    def before(self, value: Value) -> Signal:
        """Return the previous cycle's value, zero in the first cycle."""
        held: Signal = Signal.like(value, name="before", init=0)
        self._module.d.sync += held.eq(value)
        return held

    def register(self, shape: ShapeLike, name: str) -> Signal:
        """Return a register for claims only, zero in the first cycle. :meth:`follows` drives it."""
        return Signal(shape, name=name)

    def follows(self, register: Signal, value: ValueLike) -> None:
        self._module.d.sync += register.eq(value)

    def defined(self, signal: Signal, value: ValueLike) -> None:
        self._module.d.comb += signal.eq(value)

    @property
    def begun(self) -> Value:
        return self._begun

    @property
    def ports(self) -> list[Value]:
        return self._free

    def elaborate(self, platform: object) -> Module:
        return self._module


class Proof(Struct, frozen=True, kw_only=True):
    """A set of claims and how to prove them.

    Attributes:
        depth: cycles for which an induction step assumes the claims. The first ``depth`` cycles are checked
            one by one.
    """

    name: str
    statement: str
    build: Callable[[], Claims]
    depth: int = 1


def any_of(values: Sequence[Value]) -> Value:
    return reduce(or_, values, Const(0, 1))


def sum_of(values: Sequence[Value]) -> Value:
    return sum(values, Const(0, 1))
