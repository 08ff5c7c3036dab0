"""Predicted cycles and bytes."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from accel.image.manifest_entries import read_entry


class Cost(Struct, frozen=True, kw_only=True):
    """A prediction for a layer in isolation.

    Attributes:
        cycles: of the machine's clock.
        host_cycles: the host's part of ``cycles``.
        nbytes: of tensors and weights moved to or from DRAM.
        is_bound: whether these are the least possible numbers, because no plan was searched.
    """

    cycles: int
    host_cycles: int
    nbytes: int
    is_bound: bool = False

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            cycles=self.cycles + other.cycles,
            host_cycles=self.host_cycles + other.host_cycles,
            nbytes=self.nbytes + other.nbytes,
            is_bound=self.is_bound or other.is_bound,
        )

    def __sub__(self, other: "Cost") -> "Cost":
        return Cost(
            cycles=self.cycles - other.cycles,
            host_cycles=self.host_cycles - other.host_cycles,
            nbytes=self.nbytes - other.nbytes,
            is_bound=self.is_bound or other.is_bound,
        )

    def __str__(self) -> str:
        host = f" (host, assumed: {self.host_cycles:,})" if self.host_cycles else ""
        return f"{self.cycles_text} cycles{host}, {self.nbytes:,} bytes"

    @property
    def cycles_text(self) -> str:
        least = "at least " if self.is_bound else ""
        return f"{least}{self.cycles:,}"

    def to_dict(self) -> dict[str, int | bool]:
        numbers = {"cycles": self.cycles, "host_cycles": self.host_cycles, "bytes": self.nbytes}
        return numbers | {"is_bound": self.is_bound}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Cost":
        cycles, host, nbytes = (read_entry(data, key, int) for key in ("cycles", "host_cycles", "bytes"))
        return cls(cycles=cycles, host_cycles=host, nbytes=nbytes, is_bound=data.get("is_bound") is True)


ZERO_COST = Cost(cycles=0, host_cycles=0, nbytes=0)
