"""Reports of fusion."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from accel.image.manifest_entries import read_entry, read_object
from accel.network.cost import ZERO_COST, Cost


class Alternative(Struct, frozen=True, kw_only=True):
    """A way to execute a group.

    Attributes:
        stages: each piece, for example ``Conv + Clip`` or ``Add on the host``.
        cost: None if the machine does not support it.
    """

    stages: tuple[str, ...]
    cost: Cost | None
    refused: str = ""
    is_unfused: bool = False

    def to_dict(self) -> dict[str, Any]:
        return {
            "stages": list(self.stages),
            "cost": None if self.cost is None else self.cost.to_dict(),
            "refused": self.refused,
            "apart": self.is_unfused,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Alternative":
        return cls(
            stages=tuple(map(str, read_entry(data, "stages", list))),
            cost=read_object(data, "cost", Cost.from_dict),
            refused=read_entry(data, "refused", str),
            is_unfused=data.get("apart") is True,
        )


class FusionChoice(Struct, frozen=True, kw_only=True):
    """The alternatives of a group: the chosen one, others by cycles, and unsupported ones."""

    name: str
    alternatives: tuple[Alternative, ...]

    @property
    def saved(self) -> Cost:
        chosen = self.alternatives[0].cost or ZERO_COST
        unfused = [one.cost for one in self.alternatives if one.is_unfused and one.cost is not None]
        return min(unfused, key=lambda cost: cost.cycles) - chosen if unfused else ZERO_COST

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "alternatives": [one.to_dict() for one in self.alternatives],
            "savings": self.saved.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "FusionChoice":
        alternatives = tuple(Alternative.from_dict(one) for one in read_entry(data, "alternatives", list))
        return cls(name=read_entry(data, "name", str), alternatives=alternatives)


def total_savings(choices: Sequence[FusionChoice]) -> Cost:
    return sum((choice.saved for choice in choices), ZERO_COST)
