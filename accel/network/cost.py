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
    """

    cycles: int
    host_cycles: int
    nbytes: int

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            cycles=self.cycles + other.cycles,
            host_cycles=self.host_cycles + other.host_cycles,
            nbytes=self.nbytes + other.nbytes,
        )

    def __sub__(self, other: "Cost") -> "Cost":
        return Cost(
            cycles=self.cycles - other.cycles,
            host_cycles=self.host_cycles - other.host_cycles,
            nbytes=self.nbytes - other.nbytes,
        )

    def __str__(self) -> str:
        host = f" (host, assumed: {self.host_cycles:,})" if self.host_cycles else ""
        return f"{self.cycles:,} cycles{host}, {self.nbytes:,} bytes"

    def to_dict(self) -> dict[str, int]:
        return {"cycles": self.cycles, "host_cycles": self.host_cycles, "bytes": self.nbytes}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Cost":
        cycles, host, nbytes = (read_entry(data, key, int) for key in ("cycles", "host_cycles", "bytes"))
        return cls(cycles=cycles, host_cycles=host, nbytes=nbytes)


ZERO_COST = Cost(cycles=0, host_cycles=0, nbytes=0)
