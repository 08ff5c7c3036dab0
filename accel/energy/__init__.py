"""Energy of a run: exact counts of accesses, times published energies."""

from accel.energy.access_counts import AccessCounts, count_accesses
from accel.energy.energy_report import Energy, EnergyReport, energy_of

__all__ = ["AccessCounts", "Energy", "EnergyReport", "count_accesses", "energy_of"]
