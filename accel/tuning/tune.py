"""The search for the fastest schedule."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accel.base.arguments import check_integer
from accel.base.errors import ScheduleError, TuningError
from accel.base.run_choices import DEFAULT_EXPLORER, DEFAULT_TRIALS, WITH_RECORDS
from accel.compiler.mappings.mapping import AUTO
from accel.compiler.ops.workload import Workload
from accel.compiler.schedule.schedule import Schedule, Step
from accel.compiler.schedule.schedule_files import save_steps
from accel.compiler.target.machine import Machine, machine
from accel.core.config import Config
from accel.image.program_source import PLAIN
from accel.run.build_program import build
from accel.run.program import Program
from accel.run.result import TimedResult
from accel.run.tuning_records import Record, RecordKey, append_records, load_records, record_key
from accel.tuning.cost_model import Group
from accel.tuning.explorers import Trial, make_explorer
from accel.tuning.measurement import DEFAULT_TIMEOUT, Measurer, Outcome, can_rebuild
from accel.tuning.search_space import Point, SearchSpace, TemplateSpace, make_space

_BATCH = 8
"""Minimum of points to propose at once, or two for each process."""
_MIN_TRIALS_FOR_PROCESSES = 32
_MAX_MESSAGES = 5
"""Messages in a summary."""

Progress = Callable[[int, int], None]
"""Called with numbers of finished and all trials."""


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """The result of a search.

    Attributes:
        name: of the computation.
        explorer, seed: of the search.
        space_size: combinations of values.
        valid_points: or None in a space that is too large to count.
        trials: in the order of measurement, without earlier records.
        recorded: points of earlier records.
        knobs: of the fastest point.
        cycles: of the fastest point.
        default_cycles: of an operator's default schedule, or None for a template.
        steps: of the schedule, as :mod:`accel.compiler.schedule.schedule_files` writes them.
        mapping: name of the scheduled mapping.
        program: proven free of deadlocks and races.
        result: its run, equal to the reference.
        seconds: of the search.
        jobs: processes that measured.
        deaths: workers that died.
    """

    name: str
    config: Config
    explorer: str
    seed: int
    space_size: int
    valid_points: int | None
    trials: tuple[Trial, ...]
    recorded: int
    knobs: dict[str, Any]
    cycles: int
    default_cycles: int | None
    steps: list[Step]
    mapping: str
    program: Program
    result: TimedResult
    seconds: float
    jobs: int
    deaths: int

    @property
    def invalid(self) -> dict[str, int]:
        """Messages of invalid trials with their numbers, the most frequent first."""
        counts: dict[str, int] = {}
        for trial in self.trials:
            if trial.error is not None:
                counts[trial.error] = counts.get(trial.error, 0) + 1
        return dict(sorted(counts.items(), key=lambda item: -item[1]))

    @property
    def trials_per_second(self) -> float:
        """Trials per second, including the choice of points."""
        return len(self.trials) / self.seconds if self.seconds else 0.0

    def save_schedule(self, path: str | os.PathLike[str]) -> None:
        """Write the steps, as TOML for ``.toml``, otherwise as JSON.

        Raises:
            ProgramError: on failure.
        """
        save_steps(Path(path), self.steps, None if self.mapping == PLAIN else self.mapping)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain data."""
        return {
            "name": self.name,
            "config": self.config.label,
            "explorer": self.explorer,
            "seed": self.seed,
            "space_size": self.space_size,
            "valid_points": self.valid_points,
            "trials": len(self.trials),
            "recorded": self.recorded,
            "invalid": sum(self.invalid.values()),
            "messages": dict(list(self.invalid.items())[:_MAX_MESSAGES]),
            "cycles": self.cycles,
            "default_cycles": self.default_cycles,
            "mapping": self.mapping,
            "knobs": self.knobs,
            "seconds": self.seconds,
            "trials_per_second": self.trials_per_second,
            "jobs": self.jobs,
            "deaths": self.deaths,
        }


def tune(
    target: Callable[[], Schedule] | Workload,
    on: Machine | Config | str,
    *,
    trials: int = DEFAULT_TRIALS,
    explorer: str = DEFAULT_EXPLORER,
    seed: int = 0,
    jobs: int | None = None,
    mapping: str = AUTO,
    records: str | os.PathLike[str] | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    progress: Progress | None = None,
) -> Tuning:
    """Search for the fastest schedule of a computation.

    Only the timing of candidates is simulated. The fastest is proven free of deadlocks and races, run, and
    compared with the reference. For example, ``accel.tune(accel.gemm(64, 64, 64, shift=7), "vta",
    trials=32).cycles`` is at most that of the default schedule.

    Args:
        target: a template, which declares knobs and returns a schedule, or a workload, whose points are
            plans.
        on: the machine, its configuration or its name.
        trials: maximum of points to measure.
        explorer: ``random``, ``exhaustive``, ``model``, ``annealing``, ``evolution``, or one of the last two
            with ``+records``, which also learns from records of other computations.
        seed: of all random choices. Equal seeds and one job give equal points.
        jobs: processes. None is one for each core, or one for few trials.
        mapping: of a workload, ``auto``, ``plain`` or another name.
        records: a file. Its records of this computation and machine count as measured, and trials are
            appended.
        timeout: seconds for a measurement in another process.
        progress: called after each batch.

    Raises:
        TuningError: another target, no valid point, a damaged file of records, or ``+records`` without
            records.
        ScheduleError: ``trials``, ``seed`` or ``jobs`` out of range.
        RaceError, DeadlockError, MachineError, MismatchError: the fastest program is wrong.
    """
    count = check_integer("trials", trials, error=ScheduleError)
    chosen_seed = check_integer("seed", seed, least=0, error=ScheduleError)
    if explorer.endswith(WITH_RECORDS) and records is None:
        raise TuningError(
            f"explorer {explorer} learns from records of other computations; name their file with records"
        )
    chosen = machine(on)
    space = make_space(target, chosen, mapping)
    key = record_key(space.name, space.source, chosen.config)
    known, groups = _earlier(space, key, records)
    search = make_explorer(explorer, space, chosen_seed, groups)
    begin = time.perf_counter()
    processes = _jobs(space, jobs, count)
    found: list[Trial] = []
    with Measurer(space.outputs, chosen.config, processes, timeout) as measurer:
        default = _measure_default(space, measurer)
        while len(found) < count:
            size = min(max(_BATCH, 2 * processes), count - len(found))
            points = search.propose([*known, *found], size)
            if not points:
                break
            batch = _measured(space, points, measurer)
            if records is not None:
                best = _fastest([*known, *found])
                append_records(records, [_record(space, key, one, best) for one in batch])
            found += batch
            if progress is not None:
                progress(len(found), count)
        deaths = measurer.deaths
    seconds = time.perf_counter() - begin
    best = _fastest([*known, *found])
    if best is None or best.cycles is None:
        message = next((one.error for one in [*known, *found] if one.error is not None), "there are none")
        raise TuningError(f"none of {len(found):,} trials of {space.name} is valid; the first: {message}")
    if default is not None and default.cycles is not None and default.cycles < best.cycles:
        assert default.point
        best = default
    program, result = _verified(target, space, chosen, best)
    valid = space.valid_points
    return Tuning(
        name=space.name,
        config=chosen.config,
        explorer=explorer,
        seed=chosen_seed,
        space_size=space.size,
        valid_points=None if valid is None else len(valid),
        trials=tuple(found),
        recorded=len(known),
        knobs=space.choices(best.point),
        cycles=result.cycles,
        default_cycles=None if default is None else default.cycles,
        steps=list(space.schedule(best.point).steps),
        mapping=space.mapping,
        program=program,
        result=result,
        seconds=seconds,
        jobs=processes,
        deaths=deaths,
    )


def _jobs(space: SearchSpace, jobs: int | None, trials: int) -> int:
    """Schedules that only this process can build are measured here."""
    if jobs is not None:
        wanted = check_integer("jobs", jobs, error=ScheduleError)
    else:
        wanted = (os.cpu_count() or 1) if trials >= _MIN_TRIALS_FOR_PROCESSES else 1
    if wanted == 1 or not can_rebuild(space.any_schedule(), space.config):
        return 1
    return wanted


def _earlier(
    space: SearchSpace, key: RecordKey, path: str | os.PathLike[str] | None
) -> tuple[list[Trial], list[Group]]:
    """Return a file's trials of the space, and groups of other computations."""
    if path is None:
        return [], []
    records = load_records(path, missing_ok=True)
    mine = records.of(key)
    known = [
        Trial(point=point, cycles=one.cycles, error=one.error)
        for one in mine
        if one.mapping == space.mapping
        and (point := space.point(one.knobs)) is not None
        and space.exclusion(point) is None
    ]
    groups: dict[tuple[str, str, int], list[tuple[dict[str, float], int]]] = {}
    for one in records.every:
        if one.key.identity == key.identity or one.features is None or one.cycles is None:
            continue
        if one.key.timing == key.timing and "predicted" in one.features:
            shared = {name: value for name, value in one.features.items() if not name.startswith("knob ")}
            groups.setdefault(one.key.identity, []).append((shared, one.cycles))
    return known, list(groups.values())


def _measure_default(space: SearchSpace, measurer: Measurer) -> Trial | None:
    point = space.default_point
    return None if point is None else _measured(space, [point], measurer)[0]


def _measured(space: SearchSpace, points: Sequence[Point], measurer: Measurer) -> list[Trial]:
    """A schedule that cannot be built is an invalid trial."""
    outcomes: dict[int, Outcome] = {}
    schedules: list[Schedule] = []
    numbers: list[int] = []
    for number, point in enumerate(points):
        try:
            schedule = space.schedule(point)
        except ScheduleError as error:
            outcomes[number] = Outcome(error=str(error))
            continue
        if isinstance(space, TemplateSpace):
            space.check_computation(schedule)
        schedules.append(schedule)
        numbers.append(number)
    for at, outcome in measurer.measure(schedules):
        outcomes[numbers[at]] = outcome
    return [
        Trial(point=point, cycles=outcomes[number].cycles, error=outcomes[number].error)
        for number, point in enumerate(points)
    ]


def _record(space: SearchSpace, key: RecordKey, trial: Trial, best: Trial | None) -> Record:
    """Only schedules faster than all before have steps."""
    is_best = trial.cycles is not None and (best is None or best.cycles is None or trial.cycles < best.cycles)
    return Record(
        key=key,
        cycles=trial.cycles,
        error=trial.error,
        mapping=space.mapping,
        steps=list(space.schedule(trial.point).steps) if is_best else None,
        knobs=space.choices(trial.point),
        features=None if trial.cycles is None else space.features(trial.point),
    )


def _fastest(trials: Sequence[Trial]) -> Trial | None:
    valid = [one for one in trials if one.cycles is not None]
    return min(valid, key=lambda one: (one.cycles, one.point), default=None)


def _verified(
    target: Callable[[], Schedule] | Workload, space: SearchSpace, on: Machine, best: Trial
) -> tuple[Program, TimedResult]:
    schedule = space.schedule(best.point)
    if isinstance(target, Workload):
        program = build(target, on, steps=list(schedule.steps), mapping=space.mapping)
    else:
        program = build(schedule, on)
    result = program.run()
    result.raise_if_wrong()
    if result.cycles != best.cycles:
        raise TuningError(
            f"the fastest schedule takes {result.cycles:,} cycles; {best.cycles} were recorded, so the "
            f"records are of another release or damaged"
        )
    return program, result
