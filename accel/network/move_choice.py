"""Reports of moves between channels."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from accel.image.manifest_entries import read_entry


class MoveChoice(Struct, frozen=True, kw_only=True):
    """``alternatives`` are text and predicted cycles of the layers that differ, the chosen one first."""

    name: str
    alternatives: tuple[tuple[str, int], ...]

    def to_dict(self) -> dict[str, Any]:
        considered = [{"form": form, "cycles": cycles} for form, cycles in self.alternatives]
        return {"name": self.name, "considered": considered}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "MoveChoice":
        considered = read_entry(data, "considered", list)
        return cls(
            name=read_entry(data, "name", str),
            alternatives=tuple(
                (read_entry(one, "form", str), read_entry(one, "cycles", int)) for one in considered
            ),
        )
