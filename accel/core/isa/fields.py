"""How an instruction is declared: fields with their widths, from which its bit layout follows.

Fields are packed upward from bit 0; one that would cross a 64-bit boundary starts at it. A field may have a
place of its own instead, whatever the widths of the others, which must then stay clear of it. The format is
that of VTA's ``hw_spec.h``; widths depend on the configuration.
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
    """One declared field. ``width`` is a number of bits or a function of the configuration; ``at`` the first
    bit, if the field is not packed behind those before it; ``before`` the inherited field that it precedes,
    if it does not follow those declared before it."""

    width: int | Callable[[Config], int]
    doc: str
    signed: bool = False
    enum: type[IntEnum] | None = None
    at: int | None = None
    before: str | None = None

    def width_in(self, config: Config) -> int:
        return self.width if isinstance(self.width, int) else self.width(config)


def field(
    width: int | Callable[[Config], int],
    doc: str,
    *,
    default: Any = 0,
    signed: bool = False,
    enum: type[IntEnum] | None = None,
    at: int | None = None,
    before: str | None = None,
) -> Any:
    """Declare a field of an instruction; fields follow one another in order of declaration, but for those
    that stand ``at`` a bit of their own or ``before`` an inherited one."""
    spec = FieldSpec(width=width, doc=doc, signed=signed, enum=enum, at=at, before=before)
    return dataclasses.field(default=default, metadata={"isa": spec})


def absent(value: Any) -> Any:
    """Declare that a class has no such field, though its base has one: where others look, it is ``value``."""
    return dataclasses.field(default=value, init=False, repr=False, compare=False)


def field_specs(cls: type[Any]) -> dict[str, FieldSpec]:
    """The declared fields of an instruction or micro-op class, by name, in bit order."""
    found: list[tuple[str, FieldSpec]] = []
    for declared in dataclasses.fields(cls):
        spec: FieldSpec | None = declared.metadata.get("isa")
        if spec is None:
            continue
        names = [name for name, _ in found]
        place = len(found) if spec.before is None else names.index(spec.before)
        found.insert(place, (declared.name, spec))
    return dict(found)


@dataclass(frozen=True)
class Slot:
    """A field's place in the word: bits ``[offset, offset + width)``."""

    name: str
    offset: int
    width: int
    spec: FieldSpec

    @property
    def end(self) -> int:
        """The bit behind the last."""
        return self.offset + self.width

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
        ConfigError: the fields do not fit into ``bits`` bits, or one of them reaches another's fixed place.
    """
    slots: list[Slot] = []
    position = 0
    for name, spec in specs:
        width = spec.width_in(config)
        if spec.at is not None:
            slots.append(Slot(name, spec.at, width, spec))
            continue
        if position // WORD_BITS != (position + width - 1) // WORD_BITS:
            position = -(-position // WORD_BITS) * WORD_BITS
        slots.append(Slot(name, position, width, spec))
        position += width
    _check_fixed(owner, slots, config)
    end = max((slot.end for slot in slots), default=0)
    if end > bits:
        raise ConfigError(
            f"configuration {config.name!r} needs {end} bits for {owner}; there are {bits}: {_ADVICE}"
        )
    return tuple(slots)


def _check_fixed(owner: str, slots: Sequence[Slot], config: Config) -> None:
    """Refuse what only fixed fields make possible: two in one place, or one across a boundary."""
    for fixed in (slot for slot in slots if slot.spec.at is not None):
        if fixed.offset // WORD_BITS != (fixed.end - 1) // WORD_BITS:
            raise ConfigError(
                f"{owner}.{fixed.name} has bits {fixed.offset}..{fixed.end - 1} in configuration "
                f"{config.name!r}; no field crosses a multiple of {WORD_BITS}"
            )
        for slot in slots:
            if slot is not fixed and slot.offset < fixed.end and fixed.offset < slot.end:
                raise ConfigError(
                    f"{owner}.{slot.name} has bits {slot.offset}..{slot.end - 1} in configuration "
                    f"{config.name!r}; {fixed.name} stands at bit {fixed.offset}: {_ADVICE}"
                )


_ADVICE = "make a scratchpad or the micro-op memory smaller"


def class_slots(cls: type[Any], config: Config) -> tuple[Slot, ...]:
    """Layout of a declared class, in order of its fields.

    Raises:
        ConfigError: if the fields do not fit into its word.
    """
    return _class_slots(cast(Hashable, cls), config)


@lru_cache(maxsize=1024)
def _class_slots(cls: Any, config: Config) -> tuple[Slot, ...]:
    return pack_slots(cls.__name__, list(field_specs(cls).items()), config, bits=cls.BITS)
