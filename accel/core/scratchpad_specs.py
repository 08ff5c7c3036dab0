"""The scratchpads, each declared once."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from types import MappingProxyType
from typing import Protocol

from accel.core.units import Unit


class Geometry(Protocol):
    """The fields that shape elements. Capacities are the fields ``<name>_bytes``."""

    @property
    def batch(self) -> int: ...

    @property
    def block_in(self) -> int: ...

    @property
    def block_out(self) -> int: ...

    @property
    def post(self) -> int: ...

    @property
    def wgt_zero(self) -> int: ...


@dataclass(frozen=True, kw_only=True)
class Scratchpad:
    """One scratchpad.

    Attributes:
        name: in ports, access sets, assembly and configuration.
        dtype: numpy name of a value's type.
        axes: extents of an element, as configuration fields or numbers, or empty for one value.
        requires: the configuration field that is not 0 on machines with the scratchpad, or empty.
        wide_bits: bits of a value where the field ``wide_if`` is not 0.
        is_queue: whether instructions append and take elements, first in, first out, without an address.
        is_table: whether lanes read single bytes of an element. Hardware words then have one beat.
    """

    name: str
    dtype: str
    axes: tuple[str | int, ...]
    filled_by: Unit
    requires: str = ""
    wide_bits: int = 0
    wide_if: str = ""
    is_queue: bool = False
    is_table: bool = False

    def shape(self, config: Geometry) -> tuple[int, ...]:
        """For example ``(1, 16)`` for inp on ``vta``."""
        return tuple(axis if isinstance(axis, int) else int(getattr(config, axis)) for axis in self.axes)

    def values(self, config: Geometry) -> int:
        """Values in an element."""
        found = 1
        for axis in self.axes:
            found *= axis if isinstance(axis, int) else getattr(config, axis)
        return found

    def element_bytes(self, config: Geometry) -> int:
        """Bytes of an element in DRAM, and of the capacity."""
        return self.values(config) * bits_of(self.dtype) // 8

    def lane_bits(self, config: Geometry) -> int:
        """Bits of a value, signed unless ``dtype`` is unsigned."""
        is_wide = self.wide_if and getattr(config, self.wide_if)
        return max(bits_of(self.dtype), self.wide_bits if is_wide else 0)

    def exists(self, config: Geometry) -> bool:
        """Whether the machine has the scratchpad."""
        return not self.requires or bool(getattr(config, self.requires))

    def word_bits(self, config: Geometry) -> int:
        """Bits of an element in the scratchpad."""
        return self.values(config) * self.lane_bits(config)

    def held_dtype(self, config: Geometry) -> str:
        """Software's type of a value, for example ``int16`` for 9 bits."""
        bits = self.lane_bits(config)
        return self.dtype if bits == bits_of(self.dtype) else f"int{1 << (bits - 1).bit_length()}"

    def held_bytes(self, config: Geometry) -> int:
        """Bytes of an element of ``held_dtype``."""
        return self.values(config) * bits_of(self.held_dtype(config)) // 8

    def depth(self, config: Geometry) -> int:
        """Number of elements."""
        return int(getattr(config, f"{self.name}_bytes")) // self.element_bytes(config)

    def address_bits(self, config: Geometry) -> int:
        """Bits of an element's index."""
        return (self.depth(config) - 1).bit_length()

    def __str__(self) -> str:
        return self.name


@cache
def bits_of(dtype: str) -> int:
    return int(dtype.lstrip("uint"))


UOP = Scratchpad(name="uop", dtype="uint32", axes=(), filled_by=Unit.COMPUTE)
INP = Scratchpad(
    name="inp",
    dtype="int8",
    axes=("batch", "block_in"),
    filled_by=Unit.LOAD,
    wide_bits=9,
    wide_if="post",
)
"""9 bits where ``post=1``, because LOAD.INP subtracts a zero point."""
WGT = Scratchpad(
    name="wgt",
    dtype="int8",
    axes=("block_out", "block_in"),
    filled_by=Unit.LOAD,
    wide_bits=9,
    wide_if="wgt_zero",
)
"""9 bits where ``wgt_zero=1``, because LOAD.WGT subtracts a zero point."""
ACC = Scratchpad(name="acc", dtype="int32", axes=("batch", "block_out"), filled_by=Unit.COMPUTE)
PAR = Scratchpad(name="par", dtype="int32", axes=("block_out", 2), filled_by=Unit.STORE, requires="post")
"""A bias and a scale for each channel, see ``LoadPar``."""
RES = Scratchpad(
    name="res",
    dtype="int8",
    axes=("batch", "block_out"),
    filled_by=Unit.STORE,
    requires="post",
    is_queue=True,
)
"""A queue in a ring: the k-th element loaded in a run is at index k modulo the depth."""
TABLE_BYTES = 256
"""One entry for each byte."""
TABLE_FIELD_BITS = 5
"""The field ``table`` of STOREs has the bits above ``dram_base``, less the flag ``hold``."""
MAX_TABLES = 1 << (TABLE_FIELD_BITS - 1)
"""A power of two: the field is 0, or a table's index plus 1."""
TAB = Scratchpad(
    name="tab",
    dtype="uint8",
    axes=(1, TABLE_BYTES),
    filled_by=Unit.STORE,
    requires="tab_bytes",
    is_table=True,
)

PAR_INDEX_BITS = 14
"""STORE.REQ and STORE.ADD index PAR by the bits of the four pad fields, which they lack, less the two flags
``par_y`` and ``par_x``."""

SCRATCHPADS: Mapping[str, Scratchpad] = MappingProxyType(
    {pad.name: pad for pad in (UOP, INP, WGT, ACC, PAR, RES, TAB)}
)


def scratchpads_of(config: Geometry) -> dict[str, Scratchpad]:
    return {name: pad for name, pad in SCRATCHPADS.items() if pad.exists(config)}


@dataclass(frozen=True, kw_only=True)
class Route:
    """The meaning of a memory id: a scratchpad, and the form of its elements in DRAM.

    Attributes:
        dtype: numpy type of a value in DRAM.
        doc: conversion of the values, in words.
        set_by: memory id of the SET that sets signedness and zero point on machines that have it, if any.
    """

    memory: IntEnum
    scratchpad: Scratchpad
    dtype: str
    unit: Unit
    doc: str = ""
    set_by: IntEnum | None = None

    @property
    def name(self) -> str:
        """Name in mnemonics."""
        return self.memory.name

    @property
    def verbatim(self) -> bool:
        """Whether DRAM has the scratchpad's type, perhaps with a zero point."""
        return self.dtype == self.scratchpad.dtype

    def copies(self, config: Geometry) -> bool:
        """Whether elements have the same bytes in DRAM and in software."""
        return self.dtype == self.scratchpad.held_dtype(config)

    def element_bytes(self, config: Geometry) -> int:
        """Bytes of an element in DRAM, the unit of ``dram_base`` and ``x_stride``."""
        return self.scratchpad.values(config) * bits_of(self.dtype) // 8


def routes(*found: Route) -> Mapping[int, Route]:
    return MappingProxyType({int(route.memory): route for route in found})


def filled(
    memory: IntEnum,
    scratchpad: Scratchpad,
    *,
    dtype: str = "",
    doc: str = "",
    set_by: IntEnum | None = None,
) -> Route:
    """Return the route of a LOAD. The default ``dtype`` is the scratchpad's."""
    return Route(
        memory=memory,
        scratchpad=scratchpad,
        dtype=dtype or scratchpad.dtype,
        unit=scratchpad.filled_by,
        doc=doc,
        set_by=set_by,
    )
