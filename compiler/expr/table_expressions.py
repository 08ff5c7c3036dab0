"""Functions of a byte in expressions, as tables of 256 entries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from accel.base.arguments import plain_integers
from accel.base.errors import ShapeError
from accel.base.json_types import shown
from accel.base.records import replace
from accel.compiler.expr.quantization import bounds_of
from accel.compiler.expr.scalar_expressions import Expr, Function
from accel.core.scratchpad_specs import TABLE_BYTES

Array = npt.NDArray[Any]


def check_entries(entries: object) -> tuple[int, ...]:
    """Return 256 int8 or uint8 values as bytes of 0 to 255, or raise a ShapeError."""
    found = plain_integers(entries)
    if found is None or len(found) != TABLE_BYTES or not all(-128 <= entry <= 255 for entry in found):
        raise ShapeError(f"the table is {shown(entries)}; it must be {TABLE_BYTES} values of int8 or uint8")
    return tuple(entry & 0xFF for entry in found)


class LookedUp(Function, frozen=True):
    """An entry in place of an int8 or uint8 value: ``entries[value & 255]``.

    Attributes:
        entries: 256 bytes.
        to: int8 or uint8, the type of the results.
    """

    NAME: ClassVar[str] = "looked_up"

    value: Expr
    entries: tuple[int, ...]
    to: str

    def parts(self) -> tuple[Expr, ...]:
        return (self.value,)

    def rewritten(self, change: Callable[[Expr], Expr]) -> LookedUp:
        return replace(self, value=change(self.value))

    def values(self, *parts: Array) -> Array:
        table = np.array(self.entries, dtype=np.uint8).view(self.to).astype(np.int32)
        found: Array = table[np.asarray(parts[0]) & (TABLE_BYTES - 1)]
        return found

    def settings(self) -> dict[str, Any]:
        return {"table": self.to}

    def to_data(self) -> dict[str, Any]:
        return {"entries": list(self.entries), "to": self.to}

    @classmethod
    def from_data(cls, data: Mapping[str, Any], parts: tuple[Expr, ...]) -> LookedUp:
        (value,) = parts
        bounds_of(data["to"])
        return cls(value, check_entries(data["entries"]), data["to"])


class TableEntry(Function, frozen=True):
    NAME: ClassVar[str] = "entry"

    index: Expr
    entries: tuple[int, ...]

    def parts(self) -> tuple[Expr, ...]:
        return (self.index,)

    def rewritten(self, change: Callable[[Expr], Expr]) -> TableEntry:
        return replace(self, index=change(self.index))

    def values(self, *parts: Array) -> Array:
        found: Array = np.array(self.entries, dtype=np.int64)[parts[0]]
        return found
