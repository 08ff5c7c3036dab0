"""The scratchpads of the machine, each declared once: what an element is, how many there are, who fills it.

What a memory id of a LOAD or STORE stands for is declared with that instruction, as a :class:`Route`
through one of these scratchpads; which operands a GEMM or ALU instruction finds in which of them, as its
:class:`~accel.core.isa.operands.Operand` list.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from types import MappingProxyType
from typing import Protocol

from accel.core.units import Unit


class Geometry(Protocol):
    """What of a configuration shapes elements; the capacity of each scratchpad is its ``<name>_bytes``."""

    @property
    def batch(self) -> int: ...

    @property
    def block_in(self) -> int: ...

    @property
    def block_out(self) -> int: ...

    @property
    def post(self) -> int: ...


@dataclass(frozen=True, kw_only=True)
class Scratchpad:
    """One scratchpad.

    Attributes:
        name: by which ports, access sets, assembly and the fields of a configuration know it.
        dtype: of a value, as numpy names it.
        axes: what shapes an element: block sizes, by their configuration fields, or numbers; none if it is
            one value.
        filled_by: the unit that executes its LOADs.
        post_bits: of a value in the scratchpad on machines with ``post=1``, if those are more than in DRAM.
        post: whether only machines with ``post=1`` have it.
    """

    name: str
    dtype: str
    axes: tuple[str | int, ...]
    filled_by: Unit
    post_bits: int = 0
    post: bool = False

    def shape(self, config: Geometry) -> tuple[int, ...]:
        """Shape of an element."""
        return tuple(axis if isinstance(axis, int) else int(getattr(config, axis)) for axis in self.axes)

    def values(self, config: Geometry) -> int:
        """Values in an element."""
        found = 1
        for axis in self.axes:
            found *= axis if isinstance(axis, int) else getattr(config, axis)
        return found

    def element_bytes(self, config: Geometry) -> int:
        """Bytes of an element, as DRAM holds it and the capacity counts it."""
        return self.values(config) * bits_of(self.dtype) // 8

    def lane_bits(self, config: Geometry) -> int:
        """Bits of a value as the scratchpad holds it; signed unless the type says otherwise."""
        return max(bits_of(self.dtype), self.post_bits if config.post else 0)

    def word_bits(self, config: Geometry) -> int:
        """Bits of an element as the scratchpad holds it."""
        return self.values(config) * self.lane_bits(config)

    def held_dtype(self, config: Geometry) -> str:
        """The type in which software holds a value of the scratchpad, as numpy names it."""
        bits = self.lane_bits(config)
        return self.dtype if bits == bits_of(self.dtype) else f"int{1 << (bits - 1).bit_length()}"

    def held_bytes(self, config: Geometry) -> int:
        """Bytes of an element as software holds it."""
        return self.values(config) * bits_of(self.held_dtype(config)) // 8

    def depth(self, config: Geometry) -> int:
        """Elements."""
        return int(getattr(config, f"{self.name}_bytes")) // self.element_bytes(config)

    def address_bits(self, config: Geometry) -> int:
        """Bits of an element's index."""
        return (self.depth(config) - 1).bit_length()

    def __str__(self) -> str:
        return self.name


@cache
def bits_of(dtype: str) -> int:
    """Bits of a value, from its type's name."""
    return int(dtype.lstrip("uint"))


UOP = Scratchpad(name="uop", dtype="uint32", axes=(), filled_by=Unit.COMPUTE)
INP = Scratchpad(name="inp", dtype="int8", axes=("batch", "block_in"), filled_by=Unit.LOAD, post_bits=9)
"""On machines with ``post=1`` a zero point is subtracted on the way in."""
WGT = Scratchpad(name="wgt", dtype="int8", axes=("block_out", "block_in"), filled_by=Unit.LOAD)
ACC = Scratchpad(name="acc", dtype="int32", axes=("batch", "block_out"), filled_by=Unit.COMPUTE)
PAR = Scratchpad(name="par", dtype="int32", axes=("block_out", 2), filled_by=Unit.STORE, post=True)
"""Of each channel the bias, and the scale: its multiplier in the low 24 bits, its exponent in the high 8."""
RES = Scratchpad(name="res", dtype="int8", axes=("batch", "block_out"), filled_by=Unit.STORE, post=True)
"""Operands of additions, used first in, first out: the k-th one loaded in a run is element k modulo the
depth."""

PAR_INDEX_BITS = 14
"""Of an index into PAR, as STOREs have it."""

SCRATCHPADS: Mapping[str, Scratchpad] = MappingProxyType(
    {pad.name: pad for pad in (UOP, INP, WGT, ACC, PAR, RES)}
)
"""All of them, by name; :func:`scratchpads_of` has those of a machine."""


def scratchpads_of(config: Geometry) -> dict[str, Scratchpad]:
    """The scratchpads that a machine has, by name."""
    return {name: pad for name, pad in SCRATCHPADS.items() if config.post or not pad.post}


@dataclass(frozen=True, kw_only=True)
class Route:
    """What a memory id stands for in a LOAD or a STORE: a scratchpad, and its elements' form in DRAM.

    Attributes:
        memory: the id, with its name in this instruction.
        scratchpad: what is filled or read.
        dtype: of a value in DRAM.
        unit: that executes the transfer.
        doc: what happens to values on the way, if anything does.
        set_by: memory id of the SET that says, on machines with ``post=1``, whether values are unsigned, and
            what is subtracted from them; None if there is none.
    """

    memory: IntEnum
    scratchpad: Scratchpad
    dtype: str
    unit: Unit
    doc: str = ""
    set_by: IntEnum | None = None

    @property
    def name(self) -> str:
        """As mnemonics have it."""
        return self.memory.name

    @property
    def verbatim(self) -> bool:
        """Whether values in DRAM have the scratchpad's own type, so that a SET at most changes them."""
        return self.dtype == self.scratchpad.dtype

    def copies(self, config: Geometry) -> bool:
        """Whether elements are always the same bytes in DRAM and in the scratchpad, as software holds it."""
        return self.dtype == self.scratchpad.held_dtype(config)

    def element_bytes(self, config: Geometry) -> int:
        """Bytes of an element in DRAM, by which ``dram_base`` and ``x_stride`` count."""
        return self.scratchpad.values(config) * bits_of(self.dtype) // 8


def routes(*found: Route) -> Mapping[int, Route]:
    """The routes of an instruction by memory id, in the order in which they are declared."""
    return MappingProxyType({int(route.memory): route for route in found})


def filled(
    memory: IntEnum,
    scratchpad: Scratchpad,
    *,
    dtype: str = "",
    doc: str = "",
    set_by: IntEnum | None = None,
) -> Route:
    """The route of a LOAD, executed by the unit that fills the scratchpad; verbatim if no dtype is given."""
    return Route(
        memory=memory,
        scratchpad=scratchpad,
        dtype=dtype or scratchpad.dtype,
        unit=scratchpad.filled_by,
        doc=doc,
        set_by=set_by,
    )
