"""Declare instruction fields and compute their bit layout, which is that of VTA's ``hw_spec.h``.

Fields are packed upward from bit 0. A field that would cross a 64-bit boundary starts at it. Fields with
fixed positions must not overlap others. Widths may depend on the configuration. For example, an index of inp
has 11 bits on ``vta``, with 2048 elements.
"""

import dataclasses
from collections.abc import Callable, Hashable, Sequence
from enum import IntEnum
from functools import cache, lru_cache
from typing import Any, ClassVar, cast, dataclass_transform

from msgspec import Struct, StructMeta

from accel.base.errors import ConfigError
from accel.core.config import Config

WORD_BITS = 64
INSTRUCTION_BITS = 128


class FieldSpec(Struct, frozen=True, kw_only=True):
    """One declared field.

    Attributes:
        width: bits, or a function from the configuration to bits.
        default: the value of a field that is not given.
        unit: for example ``elements``, or empty.
        at: fixed position of the first bit, if any.
        before: the inherited field that this one precedes, if any.
        base: the value of a field whose bits are zero.
        requires: the configuration field that is not 0 on machines that have this field, or empty. On other
            machines its value must be the default.
    """

    width: int | Callable[[Config], int]
    doc: str
    default: Any = 0
    unit: str = ""
    signed: bool = False
    enum: type[IntEnum] | None = None
    at: int | None = None
    before: str | None = None
    base: int = 0
    requires: str = ""

    def exists(self, config: Config) -> bool:
        return not self.requires or bool(getattr(config, self.requires))

    def width_in(self, config: Config) -> int:
        return self.width if isinstance(self.width, int) else self.width(config)


def field(
    width: int | Callable[[Config], int],
    doc: str,
    unit: str = "",
    *,
    default: Any = 0,
    signed: bool = False,
    enum: type[IntEnum] | None = None,
    at: int | None = None,
    before: str | None = None,
    base: int = 0,
    requires: str = "",
) -> Any:
    """Declare a field of an instruction, packed in order of declaration unless ``at`` or ``before``."""
    return FieldSpec(
        width=width,
        doc=doc,
        default=default,
        unit=unit,
        signed=signed,
        enum=enum,
        at=at,
        before=before,
        base=base,
        requires=requires,
    )


class _Absent(Struct, frozen=True):
    value: Any


def absent(value: Any) -> Any:
    """Declare that a class lacks a field of its base, which is always ``value``."""
    return _Absent(value)


@dataclass_transform(kw_only_default=True, frozen_default=True)
class _WordType(StructMeta):
    """Makes Structs of classes whose fields are declared by :func:`field` and :func:`absent`."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> "_WordType":
        base: Any = bases[0]
        specs: dict[str, FieldSpec] = dict(getattr(base, "_specs", {}))
        missing: dict[str, Any] = dict(getattr(base, "_absent", {}))
        for key, one in list(namespace.items()):
            if isinstance(one, FieldSpec):
                specs[key], namespace[key] = one, one.default
            elif isinstance(one, _Absent):
                missing[key] = namespace[key] = one.value
                del specs[key]
                namespace["__post_init__"] = _check_absent_fields
        namespace |= {"_specs": specs, "_absent": missing}
        return super().__new__(mcls, name, bases, namespace, frozen=True, kw_only=True)


class _DataclassFields:
    """Lets users copy instructions by :func:`dataclasses.replace`."""

    def __get__(self, word: object, cls: type["Word"]) -> dict[str, dataclasses.Field[Any]]:
        return _dataclass_fields(cls)


class Word(Struct, metaclass=_WordType):
    """Base of instructions and micro-ops."""

    _specs: ClassVar[dict[str, FieldSpec]]
    _absent: ClassVar[dict[str, Any]]
    __dataclass_fields__ = _DataclassFields()


def _check_absent_fields(word: Word) -> None:
    for name, value in word._absent.items():
        if getattr(word, name) != value:
            raise TypeError(f"{type(word).__name__} has no {name}")


@cache
def _dataclass_fields(cls: type[Word]) -> dict[str, dataclasses.Field[Any]]:
    declared = [(name, object, dataclasses.field(default=None)) for name in cls._specs]
    shadow: Any = dataclasses.make_dataclass(cls.__name__, declared, kw_only=True)
    fields: dict[str, dataclasses.Field[Any]] = shadow.__dataclass_fields__
    return fields


def field_specs(cls: type[Word]) -> dict[str, FieldSpec]:
    """Return the declared fields of an instruction or micro-op class by name, in bit order."""
    found: list[tuple[str, FieldSpec]] = []
    for name, spec in cls._specs.items():
        names = [name for name, _ in found]
        place = len(found) if spec.before is None else names.index(spec.before)
        found.insert(place, (name, spec))
    return dict(found)


class Slot(Struct, frozen=True):
    """A field in its word: bits ``[offset, end)``."""

    name: str
    offset: int
    width: int
    spec: FieldSpec

    @property
    def end(self) -> int:
        return self.offset + self.width

    @property
    def low(self) -> int:
        return self.spec.base - ((1 << (self.width - 1)) if self.spec.signed else 0)

    @property
    def high(self) -> int:
        return self.spec.base + (1 << (self.width - self.spec.signed)) - 1


def pack_slots(
    owner: str, specs: Sequence[tuple[str, FieldSpec]], config: Config, *, bits: int = INSTRUCTION_BITS
) -> tuple[Slot, ...]:
    """Compute the positions of fields.

    Raises:
        ConfigError: they need more than ``bits`` bits, or overlap a fixed field.
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
    _check_fixed_positions(owner, slots, config)
    end = max((slot.end for slot in slots), default=0)
    if end > bits:
        raise ConfigError(
            f"configuration {config.name!r} needs {end} bits for {owner}; there are {bits}: {_SPACE_ADVICE}"
        )
    return tuple(slots)


def _check_fixed_positions(owner: str, slots: Sequence[Slot], config: Config) -> None:
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
                    f"{config.name!r}; {fixed.name} stands at bit {fixed.offset}: {_SPACE_ADVICE}"
                )


_SPACE_ADVICE = "make a scratchpad or the micro-op memory smaller"


def class_slots(cls: type[Any], config: Config) -> tuple[Slot, ...]:
    """Return the positions of the fields that a machine has, see :func:`pack_slots`."""
    return _class_slots(cast(Hashable, cls), config)


@lru_cache(maxsize=1024)
def _class_slots(cls: Any, config: Config) -> tuple[Slot, ...]:
    present = [(name, spec) for name, spec in field_specs(cls).items() if spec.exists(config)]
    return pack_slots(cls.__name__, present, config, bits=cls.BITS)


def missing_fields(cls: type[Any], config: Config) -> tuple[tuple[str, str], ...]:
    """Return the fields that a machine lacks, with the configuration fields that they require."""
    return _missing_fields(cast(Hashable, cls), config)


@lru_cache(maxsize=1024)
def _missing_fields(cls: Any, config: Config) -> tuple[tuple[str, str], ...]:
    specs = field_specs(cls).items()
    return tuple((name, spec.requires) for name, spec in specs if not spec.exists(config))
