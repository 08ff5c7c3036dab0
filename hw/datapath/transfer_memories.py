"""The memories of LOADs and STOREs in the transfer hardware.

A transfer's *kind* is the index of its memory in the unit's list. Element sizes are constants of the kind, so
arithmetic with them is shifts.
"""

from collections.abc import Sequence

from amaranth.hdl import Array, Const, Mux, Value, ValueLike
from msgspec import Struct

from accel.core.config import Config
from accel.core.isa import Finishing, Transfer, Unit, routes_of
from accel.core.scratchpad_specs import Route
from accel.hw.datapath.word_layouts import kind_bits, log2

RESIDUAL_STORES = (Finishing.ADD, Finishing.MUL)


class Kind(Struct, frozen=True):
    """A memory as the transfer hardware needs it."""

    route: Route
    element_bytes: int
    lanes: int
    """Elements in a beat, at least 1."""
    chunks: int
    """Beats in an element, at least 1."""
    depth: int

    @property
    def memory(self) -> int:
        return int(self.route.memory)

    @property
    def is_requantized(self) -> bool:
        return isinstance(self.route.memory, Finishing)


def kind_of(route: Route, config: Config) -> Kind:
    size = route.element_bytes(config)
    return Kind(
        route,
        size,
        max(1, config.bus_bytes // size),
        max(1, size // config.bus_bytes),
        route.scratchpad.depth(config),
    )


def kinds_of(cls: type[Transfer], unit: Unit, config: Config) -> list[Kind]:
    """Return the memories of a unit's LOADs or STOREs, in declaration order."""
    return [kind_of(route, config) for route in routes_of(cls, config).values() if route.unit is unit]


def choose(kind: ValueLike, values: Sequence[ValueLike]) -> Value:
    if len(values) == 1:
        return Value.cast(values[0])
    return Array(Value.cast(value) for value in values)[kind]


def dram_lane(kind: ValueLike, elements: Value, kinds: Sequence[Kind]) -> Value:
    return choose(kind, [elements[: log2(k.lanes)] if k.lanes > 1 else Const(0, 1) for k in kinds])


def kind_number(memory: Value, kinds: Sequence[Kind], config: Config) -> Value:
    """Return a memory id's kind, or any if unknown."""
    bits = kind_bits(config)
    number: Value = Const(0, bits)
    for position, kind in enumerate(kinds):
        number = Mux(memory == kind.memory, Const(position, bits), number)
    return number
