"""Run an exploration: measure the sampler's proposals, then the front's neighbours.

After an interruption, equal results make a sampler propose the same points, whose figures are in the journal.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from accel.base.errors import SweepError, nearest
from accel.base.records import replace
from accel.base.run_choices import EXECUTORS
from accel.core.config import Config
from accel.explore.exploration_result import Exploration, LocalCheck, Origin, Point, count_dominated
from accel.explore.exploration_tasks import Task, Timing, measure_task
from accel.explore.machine_figures import MACHINE_FIGURES, machine_figures
from accel.explore.objectives import Measured, Source, format_value, measured_figures, objectives_of
from accel.explore.pareto_front import pareto_front
from accel.explore.placement_tasks import (
    DEVICE_LIMITS,
    PlacementRun,
    is_final,
    measure_placement,
    placement_tools,
)
from accel.explore.point_samplers import Proposal, make_sampler
from accel.explore.search_space import Infeasible, Values, numbers_of
from accel.explore.space_file import ExplorationSpec
from accel.hw.export.nextpnr import DEVICE
from accel.sweeps.executors import Execute, open_executor
from accel.sweeps.sweep_journal import Journal
from accel.sweeps.sweep_points import task_key
from accel.sweeps.sweep_runner import Note, Progress, journal_remarks
from accel.sweeps.task_figures import Figures

_REFUSED = "refused"
_MAX_REPEATS = 2000
_MIN_NEIGHBOURS = 100
_MAX_INFEASIBLE = 20_000
_PUBLISH_SECONDS = 2.0
Publish = Callable[[Exploration], None]


def explore(
    spec: ExplorationSpec,
    *,
    journal: Path | None = None,
    fresh: bool = False,
    jobs: int = 1,
    executor: str = "processes",
    scheduler: str | None = None,
    max_neighbours: int | None = None,
    simulate_front: bool = False,
    progress: Progress | None = None,
    stage: Note | None = None,
    note: Note | None = None,
    publish: Publish | None = None,
) -> Exploration:
    """Search a space of machines.

    Args:
        journal: file of measurements, to continue after an interruption.
        fresh: measure everything again.
        jobs, executor, scheduler: see :func:`~accel.sweeps.run_sweep`.
        max_neighbours: maximum for the local check. None is the number of trials, but at least 100 if no
            machine is placed. 0 is no check.
        simulate_front: also simulate the front, if not simulated anyway.
        progress: called with numbers of measured points and trials.
        stage: called while machines are placed, for example with ``3 cores left to place``, and afterwards
            with an empty text.
        publish: called with the points so far, at most every two seconds.

    Raises:
        SweepError: unavailable executor or sampler, or no feasible point.
        EngineError: a frequency is needed, and Yosys or nextpnr is missing.
    """
    if executor not in EXECUTORS:
        raise SweepError(f"the executor is {executor!r}; {nearest(executor, EXECUTORS)}")
    if jobs < 1:
        raise SweepError(f"jobs is {jobs}; at least 1 is needed")
    sampler = make_sampler(spec.sampler, spec.space, spec.objectives, spec.seed)
    with Journal(journal, fresh=fresh) as log, open_executor(jobs, executor, scheduler) as execute:
        for text in journal_remarks(log, has_missing=True):
            if note is not None:
                note(text)
        run = _Run(spec, log, execute, progress or (lambda _done, _all: None), stage, publish)
        base = run.measure_base()
        end = run.sample(sampler.propose, sampler.batch)
        check = (
            None if max_neighbours == 0 else run.check_neighbours(max_neighbours or _default_neighbours(spec))
        )
        simulated = run.simulate() if simulate_front and spec.timing != "simulated" else {}
        found = run.exploration(base, end, check, simulated)
    if not found.measured and not found.failed:
        first = found.infeasible[0].message if found.infeasible else "the sampler proposed none"
        raise SweepError(f"no point of the space is feasible; the first: {first}")
    return found


def _default_neighbours(spec: ExplorationSpec) -> int:
    """A placement takes minutes, so there is no least number."""
    return spec.trials if spec.placement is not None else max(spec.trials, _MIN_NEIGHBOURS)


class _Run:
    def __init__(
        self,
        spec: ExplorationSpec,
        log: Journal,
        execute: Execute,
        progress: Progress,
        stage: Note | None,
        publish: Publish | None,
    ) -> None:
        self._stage = stage or (lambda _text: None)
        self._spec, self._log, self._execute, self._progress = spec, log, execute, progress
        self._publish, self._published = publish, 0.0
        self._base: Point | None = None
        self.points: dict[Values, Point] = {}
        self._bounded = {
            name: one
            for name, one in objectives_of(spec.workloads).items()
            if name in spec.measured_limits or any(name in other.names for other in spec.measured_constraints)
        }
        """Figures with a limit or in a constraint that needs a measurement."""
        self._tools = None if spec.placement is None else placement_tools()
        self._done = 0

    def measure_base(self) -> Point:
        """Constraints and limits do not hold for the base machine."""
        space = self._spec.space
        values = tuple(int(getattr(space.base, name)) for name in space.domains)
        draft = Point(values=values, config=space.base, status="measured", origin="base")
        (self._base,) = self._measured([draft], is_bounded=False)
        self._done = 0
        return self._base

    def exploration(
        self,
        base: Point,
        end: str,
        check: LocalCheck | None,
        simulated: Mapping[Values, Mapping[str, Figures]],
        points: Iterable[Point] | None = None,
    ) -> Exploration:
        spec = self._spec
        return Exploration(
            title=spec.title,
            space=spec.space,
            workloads=spec.workloads,
            objectives=spec.objectives,
            timing=spec.timing,
            sampler=spec.sampler,
            seed=spec.seed,
            points=tuple(self.points.values() if points is None else points),
            base=base,
            end=end,
            check=check,
            simulated=simulated,
            placement=spec.placement,
            tools=self._tools,
        )

    def sample(self, propose: Callable[[], Proposal | None], batch: int) -> str:
        trials = self._spec.trials
        self._progress(0, trials)
        while self._done < trials:
            pending, end = self._collect(propose, min(batch, trials - self._done))
            self._measure(dict.fromkeys(one.point for one in pending), "sampler")
            for one in pending:
                one.tell(self._losses(one.point))
            if end:
                return end
        return f"{trials:,} points are measured"

    def _collect(self, propose: Callable[[], Proposal | None], count: int) -> tuple[list[Proposal], str]:
        """Return ``count`` feasible new proposals, or the reason for fewer."""
        pending: list[Proposal] = []
        new: set[Values] = set()
        repeats = infeasible = 0
        while len(new) < count:
            one = propose()
            if one is None:
                return pending, "all points of the space are proposed"
            if one.point in new:
                pending.append(one)
                repeats += 1
            elif one.point in self.points:
                one.tell(self._losses(one.point))
                repeats += 1
            elif self._is_feasible(one.point, "sampler"):
                new.add(one.point)
                pending.append(one)
                repeats = infeasible = 0
            else:
                one.tell(None)
                infeasible += 1
            if repeats > _MAX_REPEATS:
                return pending, f"the sampler repeated known points {_MAX_REPEATS:,} times in a row"
            if infeasible > _MAX_INFEASIBLE:
                return pending, f"{_MAX_INFEASIBLE:,} infeasible points were proposed in a row"
        return pending, ""

    def check_neighbours(self, most: int) -> LocalCheck:
        """Measure the front's neighbours, then those of new points of the front."""
        first = self._front()
        evaluated = rounds = 0
        while True:
            missing = [
                other
                for values in self._front()
                for other in chain(self._spec.space.neighbours(values), self._spec.space.exchanges(values))
                if other not in self.points
                and self._is_feasible(other, "neighbour")
                and self._may_dominate(other, self.points[values])
            ]
            missing = list(dict.fromkeys(missing))
            chosen = missing[: most - evaluated]
            if not chosen:
                break
            self._progress(self._done, self._done + len(chosen))
            self._measure(chosen, "neighbour")
            evaluated += len(chosen)
            rounds += 1
        neighbours = [one for one in self.points.values() if one.origin == "neighbour" and one.losses]
        improved = count_dominated([self.points[values] for values in first], neighbours)
        return LocalCheck(evaluated=evaluated, improved=improved, rounds=rounds, left=len(missing))

    def _may_dominate(self, values: Values, point: Point) -> bool:
        config = self._spec.space.config(values)
        return all(
            one.loss(MACHINE_FIGURES[one.name].value(config)) <= loss
            for one, loss in zip(self._spec.objectives, point.losses, strict=True)
            if one.name in MACHINE_FIGURES
        )

    def simulate(self) -> dict[Values, dict[str, Figures]]:
        front = [self.points[values] for values in self._front()]
        return self._figures(front, "simulated")

    def _front(self) -> list[Values]:
        measured = [one for one in self.points.values() if one.status == "measured"]
        return [measured[index].values for index in pareto_front([one.losses for one in measured])]

    def _losses(self, values: Values) -> Sequence[float] | None:
        return self.points[values].losses or None

    def _is_feasible(self, values: Values, origin: Origin) -> bool:
        """Record an infeasible point with the reason."""
        try:
            self._spec.space.config(values)
        except Infeasible as reason:
            self.points[values] = Point(
                values=values, config=None, status="infeasible", message=str(reason), origin=origin
            )
            return False
        return True

    def _measure(self, new: Iterable[Values], origin: Origin) -> None:
        drafts = [
            Point(values=values, config=self._spec.space.config(values), status="measured", origin=origin)
            for values in new
        ]
        for point in self._measured(drafts):
            self.points[point.values] = point
        self._publish_points({})

    def _publish_points(self, finished: Mapping[Values, Point]) -> None:
        """Publish the known points and the finished ones of an incomplete batch."""
        now = time.monotonic()
        if self._publish is not None and self._base is not None and now - self._published > _PUBLISH_SECONDS:
            self._publish(
                self.exploration(self._base, "", None, {}, [*self.points.values(), *finished.values()])
            )
            self._published = time.monotonic()

    def _measured(self, drafts: Sequence[Point], *, is_bounded: bool = True) -> list[Point]:
        """Measure workloads, then place the machines that are not refused.

        Args:
            is_bounded: whether limits and constraints hold.
        """
        is_placed = self._spec.placement is not None
        figures = self._figures(drafts, self._spec.timing, is_counted=not is_placed)
        points = {
            one.values: self._with_workloads(one, figures[one.values], is_bounded=is_bounded)
            for one in drafts
        }
        if is_placed:
            wanted = [one for one in points.values() if one.status == "measured"]
            self._done += len(points) - len(wanted)
            self._progress(self._done, self._total(wanted))
            finished: dict[Values, Point] = {}
            for values, placement in self._placements(wanted):
                placed = self._with_placement(points[values], placement, is_bounded=is_bounded)
                points[values] = finished[values] = self._with_objectives(placed)
                self._publish_points(finished)
        return [self._with_objectives(one) for one in points.values()]

    def _figures(
        self, points: Sequence[Point], timing: Timing, *, is_counted: bool = True
    ) -> dict[Values, dict[str, Figures]]:
        tasks: dict[str, Task] = {}
        keys: dict[tuple[Values, str], str] = {}
        for point in points:
            assert point.config is not None
            for workload in self._spec.workloads:
                task = workload.make(_without_name(point.config), timing)
                key = keys[point.values, workload.name] = task_key(task)
                tasks[key] = task
        missing = {key: task for key, task in tasks.items() if not self._is_known(key, timing)}
        order = list(missing)
        waiting = {
            point.values: {keys[point.values, one.name] for one in self._spec.workloads}
            for point in points
            if is_counted
        }
        total = self._total(points)
        self._count(waiting, tasks.keys() - missing.keys(), total)
        for index, figures in self._execute(measure_task, list(missing.values())):
            self._log.add(order[index], figures)
            self._count(waiting, {order[index]}, total)
        return {
            point.values: {
                one.name: self._log.known[keys[point.values, one.name]] for one in self._spec.workloads
            }
            for point in points
        }

    def _placements(self, points: Sequence[Point]) -> Iterator[tuple[Values, Figures]]:
        """Yield points and the figures of their placements, in any order. Equal hardware is placed once."""
        options = self._spec.placement
        assert options is not None
        assert self._tools is not None
        runs: dict[str, PlacementRun] = {}
        waiting: dict[str, list[Values]] = {}
        for point in points:
            assert point.config is not None
            run = PlacementRun(
                config=point.config.hardware, seeds=options.seeds, target=options.target, tools=self._tools
            )
            key = task_key(run)
            runs[key] = run
            waiting.setdefault(key, []).append(point.values)
        total = self._total(points)

        def finished(key: str) -> Iterator[tuple[Values, Figures]]:
            for values in waiting[key]:
                self._done += 1
                self._progress(self._done, total)
                yield values, self._log.known[key]

        missing = [
            key
            for key in runs
            if key not in self._log.known or not is_final(self._log.known[key], options.time_limit)
        ]
        for key in runs:
            if key not in missing:
                yield from finished(key)
        with TemporaryDirectory(prefix="accel-placement-", ignore_cleanup_errors=True) as folder:
            measure = partial(measure_placement, time_limit=options.time_limit, folder=Path(folder))
            left = len(missing)
            self._stage(_placements_text(left))
            for index, figures in self._execute(measure, [runs[key] for key in missing]):
                self._log.add(missing[index], figures)
                left -= 1
                self._stage(_placements_text(left))
                yield from finished(missing[index])

    def _total(self, points: Sequence[Point]) -> int:
        return max(self._spec.trials, self._done + len(points))

    def _is_known(self, key: str, timing: Timing) -> bool:
        """Journals of earlier releases lack some figures."""
        known = self._log.known.get(key)
        return known is not None and (
            known["error"] is not None or known.keys() >= {*measured_figures(timing)}
        )

    def _count(self, waiting: dict[Values, set[str]], keys: Iterable[str], total: int) -> None:
        done = set(keys)
        for values in [one for one, left in waiting.items() if left <= done]:
            del waiting[values]
            self._done += 1
            self._progress(self._done, total)
        for left in waiting.values():
            left.difference_update(done)

    def _with_workloads(self, draft: Point, measured: Measured, *, is_bounded: bool) -> Point:
        point = replace(draft, measured=measured)
        errors = {name: one for name, one in measured.items() if one["error"] is not None}
        if errors:
            name, first = next(iter(errors.items()))
            faulty = any(one["error"] != _REFUSED for one in errors.values())
            return replace(point, status="failed", message=f"{name}: {first['message']}", is_fault=faulty)
        if is_bounded:
            return self._checked(point, ("machine", "workloads"))
        reason = None if self._spec.placement is None else _too_large(point)
        return point if reason is None else replace(point, status="infeasible", message=reason)

    def _with_placement(self, draft: Point, placement: Figures, *, is_bounded: bool) -> Point:
        point = replace(draft, placement=placement)
        if placement["error"] is not None:
            return replace(point, status="failed", message=f"placement: {placement['message']}")
        return self._checked(point, ("machine", "workloads", "placement")) if is_bounded else point

    def _checked(self, point: Point, known: Sequence[Source]) -> Point:
        """Return the point, infeasible if a limit or constraint on known figures is violated."""
        assert point.config is not None
        figures = {
            name: one.value(point.config, point.measured, point.placement)
            for name, one in self._bounded.items()
            if one.source in known
        }
        for name, limit in self._spec.measured_limits.items():
            if name in figures and figures[name] > limit:
                message = f"{name} is {format_value(figures[name])}; the limit is {format_value(limit)}"
                return replace(point, status="infeasible", message=message)
        for constraint in self._spec.measured_constraints:
            named = constraint.names & self._bounded.keys()
            if named <= figures.keys():
                try:
                    holds = constraint.value(numbers_of(point.config) | figures)
                except SweepError as error:
                    return replace(point, status="infeasible", message=str(error))
                if not holds:
                    values = ", ".join(f"{name} is {format_value(figures[name])}" for name in sorted(named))
                    message = f"constraint {constraint.text!r} does not hold; {values}"
                    return replace(point, status="infeasible", message=message)
        return point

    def _with_objectives(self, point: Point) -> Point:
        if point.status != "measured":
            return point
        assert point.config is not None
        objectives = {
            one.name: one.value(point.config, point.measured, point.placement)
            for one in self._spec.objectives
        }
        losses = tuple(one.loss(objectives[one.name]) for one in self._spec.objectives)
        return replace(point, objectives=objectives, losses=losses)


def _placements_text(left: int) -> str:
    return {0: "", 1: "1 core left to place"}.get(left, f"{left:,} cores left to place")


def _too_large(point: Point) -> str | None:
    """Return why a machine does not fit the device, or None."""
    assert point.config is not None
    figures = machine_figures(point.config)
    for name, most in DEVICE_LIMITS.items():
        if figures[name] > most:
            return f"{name} is {figures[name]:,}; an {DEVICE} has {most:,}"
    return None


def _without_name(config: Config) -> Config:
    """A common name, so that equal machines are measured once."""
    return replace(config, name="custom")
