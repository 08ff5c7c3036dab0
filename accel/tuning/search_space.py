"""Search spaces: the points of explorers."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from accel.base.errors import AccelError, ScheduleError, TuningError
from accel.base.records import as_dict, field_names
from accel.compiler.expr.expression_data import expression_to_data
from accel.compiler.expr.tensor_expressions import Tensor
from accel.compiler.mappings.mapping import PLAIN, OperatorMapping
from accel.compiler.mappings.mapping_choice import choose_mapping
from accel.compiler.operators.default_schedule import planner_of
from accel.compiler.ops.workload import Workload
from accel.compiler.schedule.knobs import Knob, exclusion, find_declarations, run_template
from accel.compiler.schedule.schedule import Schedule
from accel.compiler.target.machine import Machine
from accel.core.config import Config
from accel.tuning.nest_profile import estimate_cycles, profile_features, profile_schedule

Point = tuple[int, ...]
"""Index of each knob's value."""
Generator = np.random.Generator

ENUMERABLE = 200_000
"""Maximum size of an enumerated space."""
_MAX_TRIES = 200
"""Random points to try before a space counts as empty."""


class SearchSpace(ABC):
    """Points of a computation on a machine.

    Attributes:
        outputs: of the scheduled computation.
        source: outputs of the user's computation, before a mapping.
    """

    name: str
    machine: Machine
    outputs: tuple[Tensor, ...]
    source: tuple[Tensor, ...]
    mapping: str = PLAIN
    knobs: tuple[Knob, ...]
    default_point: Point | None = None
    predicts_cheaply = False
    """Whether the model predicts without lowering a schedule."""

    def __init__(self) -> None:
        self._schedules: dict[Point, Schedule | ScheduleError] = {}
        self._features: dict[Point, dict[str, float] | None] = {}

    def any_schedule(self) -> Schedule:
        for found in self._schedules.values():
            if isinstance(found, Schedule):
                return found
        return self.schedule(self.random_point(np.random.default_rng(0)))

    @property
    def config(self) -> Config:
        return self.machine.config

    @property
    def size(self) -> int:
        return prod(len(one.values) for one in self.knobs)

    def choices(self, point: Point) -> dict[str, Any]:
        return {one.name: one.values[n] for one, n in zip(self.knobs, point, strict=True)}

    def point(self, choices: Mapping[str, Any]) -> Point | None:
        """Return the point with these values, or None outside the space. Orders may be lists."""
        found = []
        for one in self.knobs:
            value = choices.get(one.name)
            value = tuple(value) if isinstance(value, list) else value
            if value not in one.values:
                return None
            found.append(one.values.index(value))
        return tuple(found)

    @abstractmethod
    def exclusion(self, point: Point) -> str | None:
        """Return why a point is excluded before building, or None."""

    @property
    @abstractmethod
    def valid_points(self) -> list[Point] | None:
        """Points without an exclusion, or None if the space is too large to enumerate."""

    @abstractmethod
    def _build(self, point: Point) -> Schedule:
        """Return a schedule, or raise a ScheduleError."""

    def schedule(self, point: Point) -> Schedule:
        found = self._schedules.get(point)
        if found is None:
            try:
                found = self._build(point)
            except ScheduleError as error:
                found = error
            self._schedules[point] = found
        if isinstance(found, ScheduleError):
            raise found
        return found

    def forget(self) -> None:
        self._schedules.clear()

    def features(self, point: Point) -> dict[str, float] | None:
        """Return features, or None if the schedule cannot be lowered or does not fit.

        ``predicted`` is log2 of the analytical model's cycles.
        """
        if point not in self._features:
            try:
                profile = profile_schedule(self.schedule(point), self.config)
            except AccelError:
                self._features[point] = None
            else:
                found = profile_features(profile, self.config)
                predicted = self._planner_prediction(point) or estimate_cycles(profile, self.config)
                knobs = {
                    f"knob {one.name}": _knob_number(one, n) for one, n in zip(self.knobs, point, strict=True)
                }
                self._features[point] = {**found, "predicted": float(np.log2(predicted)), **knobs}
        return self._features[point]

    def provide_features(self, features: Mapping[Point, dict[str, float] | None]) -> None:
        """Take features from records, without lowering schedules."""
        self._features.update(features)

    def predicted(self, point: Point) -> float | None:
        features = self.features(point)
        return None if features is None else features["predicted"]

    def _planner_prediction(self, point: Point) -> float | None:
        return None

    def random_point(self, rng: Generator) -> Point:
        """Return a random valid point, or raise a TuningError if none is found."""
        valid = self.valid_points
        if valid is not None:
            if not valid:
                raise TuningError(f"the constraints of {self.name} exclude all {self.size:,} points")
            return valid[int(rng.integers(len(valid)))]
        for _ in range(_MAX_TRIES):
            point = tuple(int(rng.integers(len(one.values))) for one in self.knobs)
            if self.exclusion(point) is None:
                return point
        raise TuningError(
            f"the constraints of {self.name} exclude {_MAX_TRIES} of {_MAX_TRIES} random points"
        )

    def neighbour(self, point: Point, rng: Generator) -> Point:
        """Return a random valid point that differs in one knob, or else in a few."""
        for _ in range(_MAX_TRIES):
            at = int(rng.integers(len(point)))
            count = len(self.knobs[at].values)
            if count < 2:
                continue
            if rng.random() < 0.5:  # a value next to it
                value = min(max(point[at] + (1 if rng.random() < 0.5 else -1), 0), count - 1)
            else:
                value = int(rng.integers(count))
            changed = self.nearest_valid((*point[:at], value, *point[at + 1 :]), rng)
            if changed is not None and changed != point:
                return changed
        return self.random_point(rng)

    def crossed(self, a: Point, b: Point, rng: Generator) -> Point:
        """Return a valid point with values of both."""
        for _ in range(8):
            takes_first = rng.random(len(a)) < 0.5
            mixed = tuple(x if first else y for x, y, first in zip(a, b, takes_first, strict=True))
            found = self.nearest_valid(mixed, rng)
            if found is not None:
                return found
        return a

    def nearest_valid(self, point: Point, rng: Generator) -> Point | None:
        """Return the point, perhaps a near one, or None."""
        return point if self.exclusion(point) is None else None


def _knob_number(one: Knob, n: int) -> float:
    value = one.values[n]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else float(n)


class TemplateSpace(SearchSpace):
    """Points of a template.

    Args:
        template: makes a schedule, see :mod:`accel.compiler.schedule.knobs`.

    Raises:
        TuningError: no knobs, or an error of the template.
    """

    def __init__(self, template: Callable[[], Schedule], machine: Machine) -> None:
        super().__init__()
        self._template = template
        self.machine = machine
        self.name = getattr(template, "__name__", "template")
        try:
            self._declarations = find_declarations(template)
        except AccelError as error:
            raise TuningError(f"{self.name}: {error}") from error
        self.knobs = self._declarations.knobs
        self._exclusions: dict[Point, str | None] = {}
        self._valid: list[Point] | None = None
        self.outputs = self.source = self._outputs()

    def exclusion(self, point: Point) -> str | None:
        if point not in self._exclusions:
            self._exclusions[point] = exclusion(self._template, self._declarations, self.choices(point))
        return self._exclusions[point]

    @property
    def valid_points(self) -> list[Point] | None:
        if self.size > ENUMERABLE:
            return None
        if self._valid is None:
            every = product(*(range(len(one.values)) for one in self.knobs))
            self._valid = [point for point in every if self.exclusion(point) is None]
        return self._valid

    def _build(self, point: Point) -> Schedule:
        found = run_template(self._template, self._declarations, self.choices(point))
        if not isinstance(found, Schedule):
            raise TuningError(f"{self.name} returns {type(found).__name__}; it must return a schedule")
        return found

    def _outputs(self) -> tuple[Tensor, ...]:
        rng = np.random.default_rng(0)
        first = tuple(0 for _ in self.knobs)
        failure: AccelError | None = None
        for number in range(_MAX_TRIES):
            point = first if number == 0 and self.exclusion(first) is None else self.random_point(rng)
            try:
                return tuple(self.schedule(point).outputs)
            except ScheduleError as error:
                failure = error
        raise TuningError(f"no point of {self.name} can be built; the last one fails with: {failure}")

    def check_computation(self, schedule: Schedule) -> None:
        if expression_to_data(schedule.outputs) != expression_to_data(self.outputs):
            raise TuningError(
                f"the knobs of {self.name} change its computation; they must change its schedule"
            )


class PlanSpace(SearchSpace):
    """Plans of an operator: all that fit with spread tile sizes, and the planner's candidates."""

    predicts_cheaply = True

    def __init__(self, workload: Workload, machine: Machine, mapping: str = PLAIN) -> None:
        super().__init__()
        choice = choose_mapping(workload, machine.config, mapping=mapping)
        self._mapping: OperatorMapping = choice.mapping
        self.machine = machine
        self.name = workload.name
        self.mapping = choice.mapping.name
        self.source = (workload.output,)
        self.outputs = (choice.mapping.workload.output,)
        planner = planner_of(choice.mapping.workload)
        shape = planner.features(choice.mapping.workload, machine.config)
        every = [*choice.candidates, *planner.enumerate(shape, machine.config)]
        plans: dict[Any, float] = {}
        for candidate in every:
            plans.setdefault(candidate.plan, candidate.prediction.cycles)
        rows = [as_dict(plan) for plan in plans]
        self.knobs = tuple(
            Knob(name=one, values=tuple(sorted({row[one] for row in rows})))
            for one in field_names(next(iter(plans)))
        )
        index = [{value: n for n, value in enumerate(one.values)} for one in self.knobs]
        points = [
            tuple(numbers[row[one.name]] for one, numbers in zip(self.knobs, index, strict=True))
            for row in rows
        ]
        self._plans = dict(zip(points, plans.items(), strict=True))
        self.default_point: Point | None = points[0]
        self._valid = sorted(self._plans)

    @cached_property
    def _array(self) -> npt.NDArray[np.int64]:
        return np.array(self._valid, dtype=np.int64)

    def exclusion(self, point: Point) -> str | None:
        return None if point in self._plans else "the plan does not fit the machine, or is no plan"

    @property
    def valid_points(self) -> list[Point]:
        return self._valid

    def _build(self, point: Point) -> Schedule:
        workload = self._mapping.workload
        return planner_of(workload).schedule(workload, self.machine, self._plans[point][0])

    def _planner_prediction(self, point: Point) -> float | None:
        return self._plans[point][1]

    def predicted(self, point: Point) -> float | None:
        return float(np.log2(self._plans[point][1]))

    def nearest_valid(self, point: Point, rng: Generator) -> Point | None:
        if point in self._plans:
            return point
        distance = (self._array != np.array(point)).sum(axis=1)
        nearest = np.flatnonzero(distance == distance.min())
        return self._valid[int(nearest[rng.integers(len(nearest))])]


def make_space(
    target: "Callable[[], Schedule] | Workload", machine: Machine, mapping: str = PLAIN
) -> SearchSpace:
    """Return the space of a template or operator. Raise a TuningError for another target."""
    if isinstance(target, Workload):
        return PlanSpace(target, machine, mapping)
    if not callable(target):
        raise TuningError(
            f"the target is {type(target).__name__}; it must be a template, which is a function that "
            f"returns a schedule, or a workload, as accel.gemm makes"
        )
    return TemplateSpace(target, machine)


__all__ = ["PlanSpace", "Point", "SearchSpace", "TemplateSpace", "make_space"]
