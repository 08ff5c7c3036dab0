"""The energy of a run by component."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct, field

from accel.core.access_names import read_names, write_names
from accel.core.config import Config
from accel.core.memory_banks import MIRROR, memory_banks
from accel.core.scratchpad_specs import ACC, TAB
from accel.energy.access_counts import READ_BYTES, WRITTEN_BYTES, AccessCounts
from accel.energy.energy_table import ACCESS_BITS, DRAM, EnergyRange, energy_table

_SRAM = "sram:"
REQUANTIZE_OPERATIONS = {"int32_multiply": 1, "int32_add": 3}
"""Operations of a requantized value: the product with the scale, and sums with bias, rounding and zero
point."""
RESIDUAL_OPERATIONS = {"int32_multiply": 2, "int32_add": 2}
"""Further operations of a value with a residual."""


class Energy(Struct, frozen=True, eq=False):
    """Amounts of published energies. ``low``, ``nominal`` and ``high`` are picojoules.

    Attributes:
        amounts: operations or 64-bit accesses by name: an operation of the table, or for example
            ``sram:4096`` for a capacity in bytes.
    """

    amounts: Mapping[str, float] = field(default_factory=dict)

    def __add__(self, other: "Energy") -> "Energy":
        names = {**self.amounts, **other.amounts}
        return Energy({name: self.amounts.get(name, 0) + other.amounts.get(name, 0) for name in names})

    def __mul__(self, factor: float) -> "Energy":
        return Energy({name: factor * amount for name, amount in self.amounts.items()})

    @property
    def low(self) -> float:
        return sum(amount * _published(name).low for name, amount in self.amounts.items())

    @property
    def nominal(self) -> float:
        return sum(amount * _published(name).nominal for name, amount in self.amounts.items())

    @property
    def high(self) -> float:
        return sum(amount * _published(name).high for name, amount in self.amounts.items())

    def exceeds(self, other: "Energy") -> bool:
        """Return whether this energy is larger for every choice of the published ones in their ranges.

        The choice is the same on both sides. For example, 3 products exceed 2 products, although their ranges
        overlap.
        """
        least = 0.0
        for name in {**self.amounts, **other.amounts}:
            more = self.amounts.get(name, 0) - other.amounts.get(name, 0)
            least += more * (_published(name).low if more > 0 else _published(name).high)
        return least > 0

    def to_dict(self) -> dict[str, float]:
        """Return low, nominal and high in picojoules."""
        return {"low": self.low, "nominal": self.nominal, "high": self.high}


def _published(name: str) -> EnergyRange:
    if name.startswith(_SRAM):
        return energy_table().sram_access(float(name.removeprefix(_SRAM)))
    return energy_table().operations[name]


class EnergyReport(Struct, frozen=True, eq=False, dict=True):
    """The energy of a run.

    Attributes:
        components: energies by component, for example ``mac array``, ``inp`` and ``dram``.
        parts: energies of the layers of a network by name, in order of execution, without reads of
            instructions.
    """

    counts: AccessCounts
    components: Mapping[str, Energy]
    parts: "Sequence[tuple[str, EnergyReport]]" = ()

    @cached_property
    def total(self) -> Energy:
        """The sum of all components."""
        return sum(self.components.values(), Energy())

    @cached_property
    def rankings(self) -> dict[str, list[str]]:
        """The components that each one exceeds, see :meth:`Energy.exceeds`.

        Only components with accesses that exceed another are listed.
        """
        used = [name for name, energy in self.components.items() if energy.high]
        ordered = sorted(used, key=lambda name: -self.components[name].nominal)
        found = {
            name: [one for one in ordered if self.components[name].exceeds(self.components[one])]
            for name in ordered
        }
        return {name: smaller for name, smaller in found.items() if smaller}

    def to_dict(self) -> dict[str, Any]:
        """Return counts, energies in picojoules, and rankings."""
        found: dict[str, Any] = {
            "unit": "pJ",
            "total": self.total.to_dict(),
            "components": {name: energy.to_dict() for name, energy in self.components.items()},
            "exceeds": self.rankings,
            "counts": self.counts.to_dict(),
            "sources": dict(energy_table().sources),
        }
        if self.parts:
            found["layers"] = [
                {
                    "name": name,
                    "total": one.total.to_dict(),
                    "components": {part: energy.to_dict() for part, energy in one.components.items()},
                    "counts": one.counts.to_dict(),
                }
                for name, one in self.parts
            ]
        return found


def energy_of(counts: AccessCounts, parts: Sequence[tuple[str, AccessCounts]] = ()) -> EnergyReport:
    """Return the energy of counted accesses.

    Args:
        parts: names and accesses of layers.
    """
    layers = [(name, EnergyReport(one, _components(one))) for name, one in parts]
    return EnergyReport(counts, _components(counts), layers)


def _components(counts: AccessCounts) -> dict[str, Energy]:
    config = counts.config
    found = {
        "mac array": Energy({"int8_multiply": counts.macs, "int32_add": counts.macs}),
        "alu": _lanes_energy(counts, config),
    }
    if config.post:
        requantized = Energy(REQUANTIZE_OPERATIONS) * (counts["par_reads"] * config.lanes)
        added = Energy(RESIDUAL_OPERATIONS) * (counts["res_reads"] * config.lanes)
        found["requantization"] = requantized + added
    moved = counts[READ_BYTES] + counts[WRITTEN_BYTES]
    return found | memory_energies(counts) | {DRAM: Energy({DRAM: moved * 8 / ACCESS_BITS})}


def _lanes_energy(counts: AccessCounts, config: Config) -> Energy:
    lanes = config.batch * config.block_out
    return Energy({"int32_add": counts["alu"] * lanes, "int32_multiply": counts["alu_mul"] * lanes})


def memory_energies(counts: AccessCounts) -> dict[str, Energy]:
    """Return the energy of each scratchpad, and of the mirror of the accumulators.

    ``docs/reference/area-and-energy.md`` says which bits an access moves.
    """
    config = counts.config
    bits = dict.fromkeys(memory_banks(config), 0.0)
    for count, name in read_names(config).items():
        memory = memory_banks(config)[name]
        ports = memory.copies if name == TAB.name else 1
        bits[name] += counts[count] * ports * memory.banks * memory.word_bits
    for name, (_, lanes) in write_names(config).items():
        memory = memory_banks(config)[name]
        bits[name] += counts[lanes] * memory.copies * memory.lane_bits
        if name == ACC.name:
            bits[MIRROR] += counts[lanes] * memory_banks(config)[MIRROR].lane_bits
    return {
        name: Energy({f"{_SRAM}{memory_banks(config)[name].bank_bytes:g}": amount / ACCESS_BITS})
        for name, amount in bits.items()
    }
