"""The part of DRAM that each instruction refers to."""

import re
import reprlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from accel.base.errors import ProgramError

T = TypeVar("T")
_NAME = re.compile(r"[\w.-]+")

NO_PART = -1
"""For instructions that touch no DRAM."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """A range of the window that moves as one.

    Attributes:
        name: of the content, or empty. Equality ignores it.
    """

    offset: int
    nbytes: int
    name: str = field(default="", compare=False)

    @property
    def stop(self) -> int:
        return self.offset + self.nbytes


class References(Struct, frozen=True, kw_only=True, eq=False):
    """Parts of a program, by instruction.

    Attributes:
        of: int32[instructions], number of a part, or :data:`NO_PART`.
    """

    parts: tuple[Part, ...]
    of: npt.NDArray[np.int32]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, References):
            return NotImplemented
        return self.parts == other.parts and np.array_equal(self.of, other.of)

    __hash__ = None  # type: ignore[assignment]

    def part(self, index: int) -> Part | None:
        """Part of an instruction, or None without an access."""
        number = int(self.of[index])
        return None if number == NO_PART else self.parts[number]

    def check(self, instructions: int, window: int) -> None:
        """Raise a ProgramError unless the references fit a program."""
        if len(self.of) != instructions:
            raise ProgramError(
                f"its references are those of {len(self.of)} instructions; it has {instructions}"
            )
        check_numbers("references", self.of, len(self.parts))
        for part in self.parts:
            if not _NAME.fullmatch(part.name):
                raise ProgramError(
                    f"the name of a part is {reprlib.repr(part.name)}; "
                    f"it is made of letters, digits, '_', '.' and '-'"
                )
            if min(part.offset, part.nbytes) < 0 or part.stop > window:
                raise ProgramError(
                    f"its part {part.name!r} is {part.nbytes} bytes at {part.offset:#x}; "
                    f"the DRAM window has {window}"
                )

    def to_data(self) -> list[dict[str, Any]]:
        """Return the parts for a manifest."""
        return [{"name": part.name, "offset": part.offset, "bytes": part.nbytes} for part in self.parts]

    @classmethod
    def from_data(cls, data: object, numbers: bytes) -> Self:
        """Invert :meth:`to_data` and :func:`numbers_to_bytes`.

        Raises:
            ProgramError: they are damaged.
        """
        return cls(parts=read_records("references", data, _part), of=numbers_from_bytes(numbers))


def _part(data: dict[str, Any]) -> Part:
    name, offset, nbytes = (data[key] for key in ("name", "offset", "bytes"))
    if not isinstance(name, str) or type(offset) is not int or type(nbytes) is not int:
        raise ValueError(data)
    return Part(name=name, offset=offset, nbytes=nbytes)


NUMBER_BYTES = 2
"""Bytes of a number in a table's member."""
_MOST = (1 << 8 * NUMBER_BYTES) - 1


def numbers_to_bytes(numbers: npt.NDArray[np.int32]) -> bytes:
    """Encode numbers as uint16, -1 as zero.

    Raises:
        ProgramError: there are too many records.
    """
    if len(numbers) and int(numbers.max()) >= _MOST:
        raise ProgramError(f"a table has {int(numbers.max()) + 1} records; a program file holds {_MOST}")
    return (numbers + 1).astype("<u2").tobytes()


def numbers_from_bytes(data: bytes) -> npt.NDArray[np.int32]:
    """Invert :func:`numbers_to_bytes`."""
    return np.frombuffer(data, dtype="<u2").astype(np.int32) - 1


def read_records(name: str, data: object, read: Callable[[dict[str, Any]], T]) -> tuple[T, ...]:
    """Read the records of a table.

    Raises:
        ProgramError: a damaged one.
    """
    try:
        if not isinstance(data, list) or not all(isinstance(one, dict) for one in data):
            raise ValueError(data)
        return tuple(map(read, data))
    except (TypeError, ValueError, KeyError):
        raise ProgramError(f"its manifest has damaged {name}") from None


def check_numbers(name: str, numbers: npt.NDArray[np.int32], count: int, *, least: int = NO_PART) -> None:
    """Refuse numbers outside of the records.

    Raises:
        ProgramError: names the first wrong instruction.
    """
    bad = np.flatnonzero((numbers < least) | (numbers >= count))
    if len(bad):
        raise ProgramError(
            f"instruction {bad[0]} has record {numbers[bad[0]]} of its {name}; there are {count}"
        )
