"""Entries of a manifest, with checked types."""

from collections.abc import Callable
from typing import Any, TypeVar

from accel.base.errors import ProgramError
from accel.base.json_types import kind_name, shown

T = TypeVar("T")


def read_entry(data: Any, key: str, kind: type[T]) -> T:
    if not isinstance(data, dict) or key not in data:
        raise ProgramError(f"its manifest has no {key!r} where one is needed")
    value = data[key]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ProgramError(f"{key} is {shown(value)} in its manifest; it must be {kind_name(kind)}")
    return value


def read_optional(data: Any, key: str, kind: type[T]) -> T | None:
    return None if data.get(key) is None else read_entry(data, key, kind)


def read_object(data: Any, key: str, make: Callable[[dict[str, Any]], T]) -> T | None:
    value: dict[str, Any] | None = read_optional(data, key, dict)
    return None if value is None else make(value)


def read_offset(data: Any, key: str = "offset") -> int:
    value = read_entry(data, key, int)
    if value < 0:
        raise ProgramError(f"{key} is {value} in its manifest; it must not be negative")
    return value
