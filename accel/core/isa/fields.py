"""How an instruction is declared: fields with their widths, from which its bit layout follows.

Fields are packed upward from bit 0; one that would cross a 64-bit boundary starts at it.
The format is that of VTA's ``hw_spec.h``; widths depend on the configuration.
"""

import dataclasses
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Any, cast

from accel.base.errors import ConfigError
from accel.core.config import Config

WORD_BITS = 64
"""Fields do not cross multiples of this."""
INSTRUCTION_BITS = 128


@dataclass(frozen=True, kw_only=True)
class FieldSpec:
    """One declared field. ``width`` is a number of bits or a function of the configuration."""

    width: int | Callable[[Config], int]
    doc: str
    signed: bool = False
    enum: type[IntEnum] | None = None

    def width_in(self, config: Config) -> int:
        return self.width if isinstance(self.width, int) else self.width(config)


def field(
    width: int | Callable[[Config], int],
    doc: str,
    *,
    default: Any = 0,
    signed: bool = False,
    enum: type[IntEnum] | None = None,
) -> Any:
    """Declare a field of an instruction; fields follow one another in order of declaration."""
    spec = FieldSpec(width=width, doc=doc, signed=signed, enum=enum)
    return dataclasses.field(default=default, metadata={"isa": spec})


@dataclass(frozen=True)
class Slot:
    """A field's place in the word: bits ``[offset, offset + width)``."""

    name: str
    offset: int
    width: int
    spec: FieldSpec

    @property
    def low(self) -> int:
        return -(1 << (self.width - 1)) if self.spec.signed else 0

    @property
    def high(self) -> int:
        return (1 << (self.width - self.spec.signed)) - 1


def pack_slots(
    owner: str, specs: Sequence[tuple[str, FieldSpec]], config: Config, *, bits: int = INSTRUCTION_BITS
) -> tuple[Slot, ...]:
    """The layout of ``specs`` in ``config``.

    Raises:
        ConfigError: if the fields do not fit into ``bits`` bits.
    """
    slots: list[Slot] = []
    position = 0
    for name, spec in specs:
        width = spec.width_in(config)
        if position // WORD_BITS != (position + width - 1) // WORD_BITS:
            position = -(-position // WORD_BITS) * WORD_BITS
        slots.append(Slot(name, position, width, spec))
        position += width
    if position > bits:
        raise ConfigError(
            f"configuration {config.name!r} needs {position} bits for {owner}; there are {bits}: "
            f"make a scratchpad or the micro-op memory smaller"
        )
    return tuple(slots)


def class_slots(cls: type[Any], config: Config) -> tuple[Slot, ...]:
    """Layout of a declared class, in order of its fields.

    Raises:
        ConfigError: if the fields do not fit into its word.
    """
    return _class_slots(cast(Hashable, cls), config)


@lru_cache(maxsize=1024)
def _class_slots(cls: Any, config: Config) -> tuple[Slot, ...]:
    specs = [(f.name, f.metadata["isa"]) for f in dataclasses.fields(cls) if "isa" in f.metadata]
    return pack_slots(cls.__name__, specs, config, bits=cls.BITS)
