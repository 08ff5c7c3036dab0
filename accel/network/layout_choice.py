"""The alternatives of a layer's layout."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from accel.image.manifest_entries import read_entry


class LayoutAlternative(Struct, frozen=True, kw_only=True):
    """A mapping of a layer, with its layouts.

    Attributes:
        cycles: predicted in isolation.
        exchange: predicted cycles of the row exchanges around the layer, with the other layers as chosen.
    """

    mapping: str
    cycles: int
    exchange: int

    def to_dict(self) -> dict[str, Any]:
        return {"mapping": self.mapping, "cycles": self.cycles, "exchange": self.exchange}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "LayoutAlternative":
        return cls(
            mapping=read_entry(data, "mapping", str),
            cycles=read_entry(data, "cycles", int),
            exchange=read_entry(data, "exchange", int),
        )


class LayoutChoice(Struct, frozen=True, kw_only=True):
    """The alternatives of a layer: the chosen one, then others by cycles with exchanges."""

    name: str
    alternatives: tuple[LayoutAlternative, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "considered": [one.to_dict() for one in self.alternatives]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "LayoutChoice":
        return cls(
            name=read_entry(data, "name", str),
            alternatives=tuple(map(LayoutAlternative.from_dict, read_entry(data, "considered", list))),
        )
