"""The memories of LOADs and STOREs, as transfers see them.

A transfer's *kind* is the position of its memory in the unit's list of memories; sizes of elements are
constants of the kind, so all arithmetic on them is shifts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from amaranth.hdl import Array, Const, Mux, Value, ValueLike

from accel.core.config import Config
from accel.core.isa import Finishing, Transfer, Unit, routes_of
from accel.core.memories import Route
from accel.hw.datapath.layouts import KIND_BITS, log2


@dataclass(frozen=True)
class Kind:
    """A memory as transfers see it."""

    route: Route
    element_bytes: int
    """Of its DRAM element."""
    lanes: int
    """Elements in a beat; one if an element is as long as a beat or longer."""
    chunks: int
    """Beats in an element; one if an element is as long as a beat or shorter."""
    depth: int

    @property
    def memory(self) -> int:
        """The memory id."""
        return int(self.route.memory)

    @property
    def finished(self) -> bool:
        """Whether values are requantized on their way."""
        return isinstance(self.route.memory, Finishing)


def kind_of(route: Route, config: Config) -> Kind:
    """How a memory meets the bus."""
    size = route.element_bytes(config)
    return Kind(
        route,
        size,
        max(1, config.bus_bytes // size),
        max(1, size // config.bus_bytes),
        route.scratchpad.depth(config),
    )


def kinds_of(cls: type[Transfer], unit: Unit, config: Config) -> list[Kind]:
    """The memories whose LOADs or STOREs a unit executes, in the order of their declaration."""
    return [kind_of(route, config) for route in routes_of(cls, config).values() if route.unit is unit]


def choose(kind: ValueLike, values: Sequence[ValueLike]) -> Value:
    """The value that belongs to a kind."""
    if len(values) == 1:
        return Value.cast(values[0])
    return Array(Value.cast(value) for value in values)[kind]


def dram_lane(kind: ValueLike, elements: Value, kinds: Sequence[Kind]) -> Value:
    """Place within a beat of a DRAM element, by its number."""
    return choose(kind, [elements[: log2(k.lanes)] if k.lanes > 1 else Const(0, 1) for k in kinds])


def kind_number(memory: Value, kinds: Sequence[Kind]) -> Value:
    """Kind of a memory id; nobody's id gives any."""
    number: Value = Const(0, KIND_BITS)
    for position, kind in enumerate(kinds):
        number = Mux(memory == kind.memory, Const(position, KIND_BITS), number)
    return number
