"""Objectives of an exploration."""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from accel.base.errors import SweepError, nearest
from accel.core.config import Config
from accel.explore.exploration_tasks import Timing, Workload
from accel.explore.machine_figures import MACHINE_FIGURES
from accel.sweeps.task_figures import Figures

Measured = Mapping[str, Figures]
"""By workload's name."""


class Objective(Struct, frozen=True, kw_only=True):
    """A named figure of a point.

    Attributes:
        name: for example ``cycles`` or ``cycles:resnet18``.
        unit: of the value, or empty.
    """

    name: str
    unit: str
    doc: str
    value: Callable[[Config, Measured], float]
    is_maximized: bool = False

    def loss(self, value: float) -> float:
        return -value if self.is_maximized else value


MEASURED_FIGURES = {
    "cycles": ("cycles", "cycles"),
    "dram_bytes": ("bytes", "bytes that move to and from DRAM"),
    "energy": ("pJ", "nominal energy of the counted accesses"),
    "energy_low": ("pJ", "energy of the counted accesses by the lowest published values"),
    "energy_high": ("pJ", "energy of the counted accesses by the highest published values"),
}
"""Unit and description by workload's figure."""
_PREDICTED_FIGURES = ("cycles", "dram_bytes")
_MAXIMIZED = {"macs_per_cycle"}


def objectives_of(workloads: Sequence[Workload]) -> dict[str, Objective]:
    """Return all objectives by name.

    ``cycles``, ``dram_bytes`` and energies are weighted sums over workloads. ``cycles:NAME`` is a workload's
    figure without weight. Figures of a machine are objectives, too.
    """
    found: dict[str, Objective] = {}
    for figure, (unit, doc) in MEASURED_FIGURES.items():
        found[figure] = Objective(
            name=figure,
            unit=unit,
            doc=f"{doc}, a weighted sum over all workloads",
            value=_sum_of(figure, workloads),
        )
    for figure, (unit, doc) in MEASURED_FIGURES.items():
        for one in workloads:
            name = f"{figure}:{one.name}"
            found[name] = Objective(
                name=name, unit=unit, doc=f"{doc} of {one.name}", value=_one_of(figure, one.name)
            )
    for name, machine_figure in MACHINE_FIGURES.items():
        found[name] = Objective(
            name=name,
            unit=machine_figure.unit,
            doc=machine_figure.doc,
            value=_machine_value(machine_figure.value),
            is_maximized=name in _MAXIMIZED,
        )
    return found


def measured_figures(timing: Timing) -> tuple[str, ...]:
    return tuple(MEASURED_FIGURES) if timing == "simulated" else _PREDICTED_FIGURES


def check_timing(name: str, timing: Timing) -> None:
    """Raise a SweepError if the figure needs ``simulated``."""
    figure = name.partition(":")[0]
    if figure in MEASURED_FIGURES and figure not in measured_figures(timing):
        raise SweepError(f'{name} is counted in programs, and timing is {timing}; write timing = "simulated"')


def format_value(value: float) -> str:
    """Return text, for example ``1,234``."""
    return f"{value:,}" if value == int(value) else f"{value:,.4g}"


def find_objectives(
    names: Sequence[str], workloads: Sequence[Workload], timing: Timing
) -> tuple[Objective, ...]:
    """Return objectives by their names.

    Raises:
        SweepError: an unknown or repeated name, or one that needs simulation.
    """
    known = objectives_of(workloads)
    for name in names:
        if name not in known:
            raise SweepError(f"{name!r} is not an objective; {nearest(name, known)}")
        if list(names).count(name) > 1:
            raise SweepError(f"the objective {name} is given twice; give each once")
        check_timing(name, timing)
    return tuple(known[name] for name in names)


def _sum_of(figure: str, workloads: Sequence[Workload]) -> Callable[[Config, Measured], float]:
    def value(_config: Config, measured: Measured) -> float:
        total = sum(one.weight * _number(measured[one.name][figure]) for one in workloads)
        return int(total) if total == int(total) else total

    return value


def _one_of(figure: str, name: str) -> Callable[[Config, Measured], float]:
    return lambda _config, measured: _number(measured[name][figure])


def _machine_value(compute: Callable[[Config], float]) -> Callable[[Config, Measured], float]:
    return lambda config, _measured: compute(config)


def _number(figure: object) -> float:
    assert isinstance(figure, int | float)
    return figure
