"""The points of an exploration and its Pareto front."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import msgspec
from msgspec import Struct

from accel.core.config import Config
from accel.explore.exploration_tasks import Timing, Workload
from accel.explore.machine_figures import machine_figures
from accel.explore.objectives import MEASURED_FIGURES, Objective, measured_figures, objectives_of
from accel.explore.pareto_front import Losses, dominates, pareto_front
from accel.explore.placement_tasks import PlacementOptions, ToolVersions
from accel.explore.search_space import Space, Values
from accel.hw.export.nextpnr import DEVICE
from accel.sweeps.sweep_table import Table
from accel.sweeps.task_figures import FREQUENCY, Figures

_ERROR_FIGURES = ("error", "message")
Status = Literal["measured", "infeasible", "failed"]
Origin = Literal["base", "sampler", "neighbour"]


class Point(Struct, frozen=True, kw_only=True):
    """A proposed machine.

    Attributes:
        config: the machine, or None if impossible or excluded by a constraint.
        status: ``infeasible`` violates a constraint or limit, ``failed`` does not fit a workload.
        placement: empty if the machine is not placed.
        objectives: values by name, for measured points.
        losses: objectives to minimize.
        origin: ``neighbour`` for points of the local check.
        is_fault: whether a program is at fault, see :class:`~accel.base.errors.ProgramFault`.
    """

    values: Values
    config: Config | None
    status: Status
    message: str | None = None
    measured: Mapping[str, Figures] = msgspec.field(default_factory=dict)
    placement: Figures = msgspec.field(default_factory=dict)
    objectives: Mapping[str, float] = msgspec.field(default_factory=dict)
    losses: Losses = ()
    origin: Origin = "sampler"
    is_fault: bool = False


class LocalCheck(Struct, frozen=True, kw_only=True):
    """Whether a neighbour of the front dominates a point of it.

    Neighbours differ in one field by one step, or have half of one field and twice another. A neighbour that
    is worse in an objective without measurement, for example block RAMs, cannot dominate, and is not
    measured.

    Attributes:
        evaluated: measured neighbours.
        improved: dominated points of the sampler's front.
        rounds: rounds of measurements, since new points of the front have further neighbours.
        left: unmeasured neighbours of the final front, because of the limit.
    """

    evaluated: int
    improved: int
    rounds: int
    left: int

    @property
    def is_complete(self) -> bool:
        return self.left == 0

    def describe(self) -> str:
        before = f"{self.evaluated:,} neighbours measured in {self.rounds} rounds"
        if self.improved:
            before += f"; {self.improved} points of the sampler's front were dominated and are replaced"
        if self.is_complete:
            return f"no neighbour dominates a point of the front ({before})"
        return f"incomplete, {self.left:,} neighbours are not measured ({before})"


@dataclass(frozen=True, kw_only=True)
class Exploration:
    """A finished exploration.

    Attributes:
        points: in order of proposal, then of the local check.
        base: the base machine, inside or outside of the space.
        end: why the sampler ended.
        simulated: simulated figures of the front by workload, if requested.
        placement, tools: None if no machine is placed.
    """

    title: str
    space: Space
    workloads: tuple[Workload, ...]
    objectives: tuple[Objective, ...]
    timing: Timing
    sampler: str
    seed: int
    points: tuple[Point, ...]
    base: Point
    end: str
    check: LocalCheck | None
    simulated: Mapping[Values, Mapping[str, Figures]] = field(default_factory=dict)
    placement: PlacementOptions | None = None
    tools: ToolVersions | None = None

    @cached_property
    def measured(self) -> tuple[Point, ...]:
        return tuple(one for one in self.points if one.status == "measured")

    @cached_property
    def front(self) -> tuple[Point, ...]:
        """Non-dominated points by the first objective, without equal ones."""
        best = pareto_front([one.losses for one in self.measured])
        distinct: dict[Losses, Point] = {}
        for index in best:
            distinct.setdefault(self.measured[index].losses, self.measured[index])
        return tuple(sorted(distinct.values(), key=lambda one: one.losses))

    @cached_property
    def known_objectives(self) -> dict[str, Objective]:
        """All figures that could be objectives, by name."""
        return objectives_of(self.workloads)

    @property
    def placed(self) -> int:
        """Machines with different hardware that are placed and routed."""
        points = [*self.points, self.base]
        return len(
            {one.config.hardware for one in points if one.config is not None and FREQUENCY in one.placement}
        )

    def is_on_front(self, point: Point) -> bool:
        return point.values in self._front_values

    @cached_property
    def _front_values(self) -> frozenset[Values]:
        return frozenset(one.values for one in self.front)

    @property
    def best(self) -> Point:
        """The best point by the first objective."""
        return self.front[0]

    @property
    def infeasible(self) -> tuple[Point, ...]:
        return tuple(one for one in self.points if one.status == "infeasible")

    @property
    def failed(self) -> tuple[Point, ...]:
        return tuple(one for one in self.points if one.status == "failed")

    @property
    def faults(self) -> tuple[Point, ...]:
        return tuple(one for one in self.points if one.is_fault)

    def machine_options(self, point: Point) -> list[str]:
        """Return a point's machine as command-line options."""
        settings = self.space.settings(point.values)
        return [
            "--config",
            self.space.base_name,
            *(part for name, value in settings.items() for part in ("--set", f"{name}={value}")),
        ]

    def commands(self, point: Point) -> list[str]:
        """Return commands that repeat a point's measurements."""
        machine = self.machine_options(point)
        return [shlex.join([*one.command, *machine]) for one in self.workloads]

    def row(self, number: int, point: Point) -> dict[str, Any]:
        """Return a point's columns: number, status, fields, figures, objectives and machine."""
        figures: dict[str, Any] = {}
        if point.config is not None:
            figures |= machine_figures(point.config)
        for name, measured in point.measured.items():
            figures |= {f"{figure}:{name}": measured.get(figure) for figure in measured_figures(self.timing)}
        for name, simulated in self.simulated.get(point.values, {}).items():
            figures |= {f"simulated_{figure}:{name}": simulated.get(figure) for figure in MEASURED_FIGURES}
        if FREQUENCY in point.placement:
            figures |= {name: value for name, value in point.placement.items() if name not in _ERROR_FIGURES}
            figures |= {
                name: one.value(point.config, point.measured, point.placement)
                for name, one in self.known_objectives.items()
                if one.source == "placement" and point.config is not None
            }
        return {
            "point": number,
            "status": point.status,
            "front": self.is_on_front(point),
            "origin": point.origin,
            "message": point.message,
            **dict(zip(self.space.domains, point.values, strict=True)),
            **figures,
            **point.objectives,
            "machine": shlex.join(self.machine_options(point)) if point.config is not None else None,
        }

    @cached_property
    def table(self) -> Table:
        """All points as a table."""
        return Table.of(self.row(number, one) for number, one in enumerate(self.points))

    def to_dict(self) -> dict[str, Any]:
        """Return settings, counts, local check and points as plain data."""
        numbers = {one.values: number for number, one in enumerate(self.points)}
        return {
            "title": self.title,
            "timing": self.timing,
            "sampler": self.sampler,
            "seed": self.seed,
            "space_size": self.space.size,
            "objectives": [one.name for one in self.objectives],
            "units": {one.name: one.unit for one in self.objectives},
            "limits": dict(self.space.limits),
            "measured": len(self.measured),
            "infeasible": len(self.infeasible),
            "failed": len(self.failed),
            "end": self.end,
            "placement": self._placement_dict(),
            "base": {
                "name": self.space.base_name,
                "status": self.base.status,
                "message": self.base.message,
                "objectives": dict(self.base.objectives),
            },
            "local_check": None
            if self.check is None
            else {
                "evaluated": self.check.evaluated,
                "improved": self.check.improved,
                "rounds": self.check.rounds,
                "left": self.check.left,
                "is_complete": self.check.is_complete,
            },
            "front": [numbers[one.values] for one in self.front],
            "points": [
                row | {"commands": self.commands(one) if one.config is not None else []}
                for row, one in zip(self.table.rows, self.points, strict=True)
            ],
        }

    def _placement_dict(self) -> dict[str, Any] | None:
        if self.placement is None or self.tools is None:
            return None
        return {
            "device": DEVICE,
            "seeds": self.placement.seeds,
            "target": self.placement.target,
            "time_limit": self.placement.time_limit,
            "yosys": self.tools.yosys,
            "nextpnr": self.tools.nextpnr,
            "placed": self.placed,
        }


def count_dominated(points: Sequence[Point], by: Sequence[Point]) -> int:
    return sum(any(dominates(other.losses, one.losses) for other in by) for one in points)
