"""The table of published energies."""

import math
import tomllib
from bisect import bisect_right
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any

from msgspec import Struct

ACCESS_BITS = 64
"""Width of accesses to SRAM and DRAM in the sources. Others scale in proportion."""
DRAM = "dram"
"""Name of the energy of :data:`ACCESS_BITS` from DRAM."""
_MEAN = "mean"
_SMALL_EXPONENT = 0.5
"""Exponent of the capacity in ``low`` of SRAMs below the smallest published one, as between 8 and 32 KiB at
45 nm."""


class EnergyRange(Struct, frozen=True, kw_only=True):
    """Picojoules, with the names of their sources."""

    low: float
    nominal: float
    high: float
    sources: tuple[str, str, str]


class EnergyTable(Struct, frozen=True, kw_only=True):
    """Energies of operations, and of SRAM accesses by capacity.

    Attributes:
        sources: full citations by name.
        operations: by name, for example ``int8_multiply``.
        sram: by capacity in bytes, in rising order.
    """

    sources: Mapping[str, str]
    operations: Mapping[str, EnergyRange]
    sram: Mapping[int, EnergyRange]

    def sram_access(self, capacity: float) -> EnergyRange:
        """Return the energy of :data:`ACCESS_BITS` from an SRAM of ``capacity`` bytes.

        ``docs/reference/area-and-energy.md`` has the rules for other than published sizes.
        """
        sizes = list(self.sram)
        first = self.sram[sizes[0]]
        if capacity < sizes[0]:
            low = first.low * (capacity / sizes[0]) ** _SMALL_EXPONENT
            return _range(low, first.high, (first.sources[0], _MEAN, first.sources[2]))
        upper = min(max(1, bisect_right(sizes, capacity)), len(sizes) - 1)
        ends = self.sram[sizes[upper - 1]], self.sram[sizes[upper]]
        position = math.log(capacity / sizes[upper - 1]) / math.log(sizes[upper] / sizes[upper - 1])
        low, high = (
            one * (other / one) ** position
            for one, other in ((ends[0].low, ends[1].low), (ends[0].high, ends[1].high))
        )
        return _range(low, high, ends[0].sources)


def _range(low: float, high: float, sources: tuple[str, str, str]) -> EnergyRange:
    return EnergyRange(low=low, nominal=math.sqrt(low * high), high=high, sources=sources)


@lru_cache(maxsize=1)
def energy_table() -> EnergyTable:
    """Return the table of ``access_energies.toml``."""
    text = files("accel.energy").joinpath("access_energies.toml").read_text(encoding="utf-8")
    return parse_energy_table(text)


def parse_energy_table(text: str) -> EnergyTable:
    """Parse a table of energies from TOML."""
    data = tomllib.loads(text)
    return EnergyTable(
        sources=data["sources"],
        operations={name: _read_range(entry) for name, entry in data["operation"].items()},
        sram={entry["bytes"]: _read_range(entry) for entry in data["sram"]},
    )


def _read_range(entry: Mapping[str, Any]) -> EnergyRange:
    low, high = entry["low"], entry["high"]
    nominal = entry.get("nominal", {"pj": math.sqrt(low["pj"] * high["pj"]), "source": _MEAN})
    return EnergyRange(
        low=low["pj"],
        nominal=nominal["pj"],
        high=high["pj"],
        sources=(low["source"], nominal["source"], high["source"]),
    )
