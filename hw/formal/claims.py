"""What is claimed of a component, in which surroundings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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

from accel.hw.formal.opened import Opened


class Claims(Elaboratable):
    """A component, what its surroundings may do, and what is claimed to hold in every cycle.

    The component's inputs are free: in every cycle anything that no assumption excludes. There is no reset
    but the one before the first cycle.

    Args:
        component: what the claims are about.

    Attributes:
        inside: the component, with its inner signals.
        claimed: names of the claims.
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
        """A property: it is what somebody else relies on."""
        self.claimed.append(name)
        self._module.d.comb += Assert(holds, name)

    def lemma(self, name: str, holds: ValueLike) -> None:
        """What is proven along with the claims because induction needs to know it: a state that violates it
        cannot be reached, but that does not follow from the claims."""
        self._module.d.comb += Assert(holds, f"lemma: {name}")

    def queue(self, path: str, depth: int) -> list[tuple[Value, Signal]]:
        """Let the proof know how a :class:`~accel.hw.datapath.queue.Queue` inside the component is kept.

        Args:
            path: of the queue; none if it is the component.
            depth: how many places it has.

        Returns:
            Of each place, whether an entry is there, and its bits.
        """
        prefix = f"{path}." if path else ""
        first, tail, count = (self.inside.signal(f"{prefix}{name}") for name in ("first", "tail", "count"))
        behind = first + count
        self.lemma(f"{prefix}bounds", (first < depth) & (tail < depth) & (count <= depth))
        room, valid = (self.inside.signal(f"{prefix}{name}") for name in ("room", "valid"))
        self.lemma(f"{prefix}told", (room == (count != depth)) & (valid == (count != 0)))
        self.lemma(f"{prefix}order", tail == Mux(behind < depth, behind, behind - depth))
        entries: list[tuple[Value, Signal]] = []
        for place in range(depth):
            ahead = Mux(first <= place, place - first, place + depth - first)
            entries.append((ahead < count, self.inside.cell(f"{prefix}memory", Const(place, range(depth)))))
        return entries

    def assume(self, holds: ValueLike) -> None:
        """What the surroundings keep to."""
        self._module.d.comb += Assume(holds)

    def rely(self, holds: ValueLike) -> None:
        """What another proof claims, of a part of the component, in such surroundings as it has here."""
        self.assume(holds)

    def free(self, shape: ShapeLike, name: str) -> Signal:
        """A value that may be anything in every cycle."""
        signal = Signal(shape, name=name)
        self._free.append(signal)
        return signal

    def cut(self, path: str) -> Signal:
        """A signal inside the component that may be anything in every cycle, whatever drives it there."""
        signal = self.inside.cut(path)
        self._free.append(signal)
        return signal

    def before(self, value: Value) -> Signal:
        """The value in the cycle before; zero in the first cycle."""
        held: Signal = Signal.like(value, name="before", init=0)
        self._module.d.sync += held.eq(value)
        return held

    def register(self, shape: ShapeLike, name: str) -> Signal:
        """A register for the claims alone, zero in the first cycle; :meth:`follows` says how it goes on."""
        return Signal(shape, name=name)

    def follows(self, register: Signal, value: ValueLike) -> None:
        """Give a register its value in the cycle after."""
        self._module.d.sync += register.eq(value)

    def defined(self, signal: Signal, value: ValueLike) -> None:
        """Give a signal for the claims alone its value."""
        self._module.d.comb += signal.eq(value)

    @property
    def begun(self) -> Value:
        """Whether there was a cycle before."""
        return self._begun

    @property
    def ports(self) -> list[Value]:
        """All that is free."""
        return self._free

    def elaborate(self, platform: object) -> Module:
        return self._module


@dataclass(frozen=True, kw_only=True)
class Proof:
    """Some claims and how they are proven.

    Attributes:
        name: of the part of the machine.
        statement: what is claimed, in words.
        build: makes the claims.
        depth: in how many cycles in a row the claims are taken for granted when they are proven of the next;
            as many first ones are looked at one by one.
    """

    name: str
    statement: str
    build: Callable[[], Claims]
    depth: int = 1


def any_of(values: Sequence[Value]) -> Value:
    """Whether any of some bits is set."""
    return reduce(or_, values, Const(0, 1))


def sum_of(values: Sequence[Value]) -> Value:
    """The sum of values."""
    return sum(values, Const(0, 1))
