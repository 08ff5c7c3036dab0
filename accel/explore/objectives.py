"""Objectives of an exploration."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from accel.base.errors import SweepError, nearest
from accel.core.config import Config
from accel.explore.exploration_tasks import Timing, Workload
from accel.explore.machine_figures import MACHINE_FIGURES
from accel.sweeps.task_figures import FREQUENCY, Figures

Measured = Mapping[str, Figures]
"""By workload's name."""
Source = Literal["machine", "workloads", "placement"]
"""What a figure needs: the machine alone, its measured workloads, or also its placement on an FPGA."""
MICROSECONDS = "microseconds"


class Objective(Struct, frozen=True, kw_only=True):
    """A named figure of a point.

    Attributes:
        name: for example ``cycles`` or ``cycles:resnet18``.
        unit: of the value, or empty.
        value: computes it from the machine, the workloads' figures, and the placement's, which only the
            source ``placement`` reads.
    """

    name: str
    unit: str
    doc: str
    value: Callable[[Config, Measured, Figures], float]
    source: Source
    is_maximized: bool = False

    def loss(self, value: float) -> float:
        return -value if self.is_maximized else value

    @property
    def label(self) -> str:
        """The name with the unit, for example ``frequency (MHz)``."""
        is_named = not self.unit or self.name.partition(":")[0].endswith(self.unit)
        return self.name if is_named else f"{self.name} ({self.unit})"


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

    For example, ``cycles`` is a weighted sum over workloads, and ``cycles:NAME`` one workload's without
    weight.
    """
    found: dict[str, Objective] = {}
    for figure, (unit, doc) in MEASURED_FIGURES.items():
        found[figure] = Objective(
            name=figure,
            unit=unit,
            doc=f"{doc}, a weighted sum over all workloads",
            value=_sum_of(figure, workloads),
            source="workloads",
        )
    for figure, (unit, doc) in MEASURED_FIGURES.items():
        for one in workloads:
            name = f"{figure}:{one.name}"
            found[name] = Objective(
                name=name,
                unit=unit,
                doc=f"{doc} of {one.name}",
                value=_one_of(figure, one.name),
                source="workloads",
            )
    for name, machine_figure in MACHINE_FIGURES.items():
        found[name] = Objective(
            name=name,
            unit=machine_figure.unit,
            doc=machine_figure.doc,
            value=_machine_value(machine_figure.value),
            source="machine",
            is_maximized=name in _MAXIMIZED,
        )
    return found | _placed_objectives(workloads)


def _placed_objectives(workloads: Sequence[Workload]) -> dict[str, Objective]:
    found = [
        Objective(
            name=FREQUENCY,
            unit="MHz",
            doc="highest clock frequency after place and route, the median of the seeds",
            value=lambda _config, _measured, placement: _number(placement[FREQUENCY]),
            source="placement",
            is_maximized=True,
        ),
        Objective(
            name=MICROSECONDS,
            unit=MICROSECONDS,
            doc="cycles divided by the frequency, a weighted sum over all workloads",
            value=_time_of(_sum_of("cycles", workloads)),
            source="placement",
        ),
    ]
    found += [
        Objective(
            name=f"{MICROSECONDS}:{one.name}",
            unit=MICROSECONDS,
            doc=f"cycles of {one.name} divided by the frequency",
            value=_time_of(_one_of("cycles", one.name)),
            source="placement",
        )
        for one in workloads
    ]
    return {one.name: one for one in found}


def measured_figures(timing: Timing) -> tuple[str, ...]:
    return tuple(MEASURED_FIGURES) if timing == "simulated" else _PREDICTED_FIGURES


def check_timing(name: str, timing: Timing) -> None:
    """Raise a SweepError if the figure needs ``simulated``."""
    figure = name.partition(":")[0]
    if figure in MEASURED_FIGURES and figure not in measured_figures(timing):
        raise SweepError(f'{name} is counted in programs, and timing is {timing}; write timing = "simulated"')


def format_value(value: float) -> str:
    """Return text, for example ``1,234`` or ``40.3``."""
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


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


Value = Callable[[Config, Measured, Figures], float]


def _sum_of(figure: str, workloads: Sequence[Workload]) -> Value:
    def value(_config: Config, measured: Measured, _placement: Figures) -> float:
        total = sum(one.weight * _number(measured[one.name][figure]) for one in workloads)
        return int(total) if total == int(total) else total

    return value


def _one_of(figure: str, name: str) -> Value:
    return lambda _config, measured, _placement: _number(measured[name][figure])


def _time_of(cycles: Value) -> Value:
    """Cycles divided by MHz are microseconds."""
    return lambda config, measured, placement: (
        cycles(config, measured, placement) / _number(placement[FREQUENCY])
    )


def _machine_value(compute: Callable[[Config], float]) -> Value:
    return lambda config, _measured, _placement: compute(config)


def _number(figure: object) -> float:
    assert isinstance(figure, int | float)
    return figure
