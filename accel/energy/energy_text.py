"""The report of an energy as text: quantities with units, and rankings."""

from accel.energy.energy_report import Energy, EnergyReport

_UNITS = ((1e12, "J"), (1e9, "mJ"), (1e6, "µJ"), (1e3, "nJ"), (1.0, "pJ"))


def unit_of(picojoules: float) -> tuple[float, str]:
    """Return the largest unit in which a quantity is at least 1: its picojoules and name."""
    return next((one for one in _UNITS if picojoules >= one[0]), _UNITS[-1])


def energy_cells(energy: Energy, unit: float) -> tuple[str, str, str]:
    low, nominal, high = (f"{value / unit:,.3f}" for value in (energy.low, energy.nominal, energy.high))
    return low, nominal, high


def ranking_lines(report: EnergyReport) -> list[str]:
    """Return, for example, ``dram > inp, alu``."""
    return [f"{name} > {', '.join(smaller)}" for name, smaller in report.rankings.items()]
