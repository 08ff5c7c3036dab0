"""Measure points that the journal lacks, then make the table."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from accel.base.errors import SweepError, nearest
from accel.base.run_choices import EXECUTORS
from accel.compiler.ops.workload import Workload
from accel.sweeps.executors import in_processes, in_this_process, on_dask
from accel.sweeps.sweep_grid import grid_points
from accel.sweeps.sweep_journal import Journal
from accel.sweeps.sweep_points import Point, Synthesis, Task, task_key
from accel.sweeps.sweep_spec import Spec
from accel.sweeps.sweep_table import Table
from accel.sweeps.sweep_task import measure
from accel.sweeps.task_figures import Figures, is_synthesis

Progress = Callable[[int, int], None]
"""Called with numbers of complete and all tasks."""
Note = Callable[[str], None]
_MAX_NOTED_LINES = 3


def run_sweep(
    spec: Spec,
    *,
    journal: Path | None = None,
    fresh: bool = False,
    jobs: int = 1,
    executor: str = "processes",
    scheduler: str | None = None,
    progress: Progress | None = None,
    note: Note | None = None,
) -> Table:
    """Measure the points of a sweep.

    Args:
        journal: file of measurements, to continue after an interruption.
        jobs: number of processes. With several, a script needs ``if __name__ == "__main__":``.
        scheduler: address of a Dask cluster, or ``jobs`` local processes.
    """
    if executor not in EXECUTORS:
        raise SweepError(f"the executor is {executor!r}; {nearest(executor, EXECUTORS)}")
    if jobs < 1:
        raise SweepError(f"jobs is {jobs}; at least 1 is needed")
    with Journal(journal, fresh=fresh) as log:
        tasks: dict[str, Task] = {task_key(task): task for point in spec.points for task in point.tasks}
        remarks = _forget_other_kinds(tasks, log)
        missing = {key: task for key, task in tasks.items() if key not in log.known}
        for text in journal_remarks(log, has_missing=bool(missing)) + remarks:
            if note is not None:
                note(text)
        report_progress = progress or (lambda _done, _all: None)
        done = len(tasks) - len(missing)
        report_progress(done, len(tasks))
        keys = list(missing)
        for index, figures in _execute(list(missing.values()), jobs, executor, scheduler):
            log.add(keys[index], figures)
            done += 1
            report_progress(done, len(tasks))
        return table_of(spec.points, log)


def journal_remarks(log: Journal, *, has_missing: bool) -> list[str]:
    remarks = ["its last line had been cut off; that point is measured again"] if log.dropped else []
    if not has_missing:
        return remarks
    remarks += [
        f"line {number} is damaged and ignored: {why}; its point is measured again"
        for number, why in log.damaged[:_MAX_NOTED_LINES]
    ]
    more = len(log.damaged) - _MAX_NOTED_LINES
    return remarks + ([f"{more:,} more lines are damaged and ignored"] if more > 0 else [])


def _forget_other_kinds(tasks: Mapping[str, Task], log: Journal) -> list[str]:
    """Drop figures of a synthesis under a run's key, and the reverse. Return remarks."""
    remarks = []
    for key, task in tasks.items():
        if key in log.known and is_synthesis(log.known[key]) != isinstance(task, Synthesis):
            names = ", ".join(log.known.pop(key))
            kind = type(task).__name__.lower()
            remarks.append(f"the figures of {key} are {names}, which is not a {kind}; it is measured again")
    return remarks


def table_of(points: Sequence[Point], log: Journal) -> Table:
    rows = []
    for one in points:
        keys = [task_key(task) for task in one.tasks]
        if all(key in log.known for key in keys):
            figures = {column: value for key in keys for column, value in log.known[key].items()}
            if figures.get("vthreads") is None:
                figures.pop("vthreads", None)  # the setting has it
            rows.append(one.settings() | figures)
    return Table.of(rows)


def _execute(
    tasks: list[Task], jobs: int, executor: str, scheduler: str | None
) -> Iterator[tuple[int, Figures]]:
    if not tasks:
        return iter(())
    if executor == "dask":
        return on_dask(measure, tasks, jobs, scheduler)
    return in_this_process(measure, tasks) if jobs == 1 else in_processes(measure, tasks, jobs)


def sweep(
    workloads: Workload | Sequence[Workload],
    *,
    seed: int = 0,
    journal: str | Path | None = None,
    jobs: int = 1,
    executor: str = "processes",
    progress: Progress | None = None,
    **grid: Any,
) -> Table:
    """Measure workloads on a grid of machines and schedules.

    Args:
        journal, jobs, executor, progress: see :func:`run_sweep`.
        grid: values or sequences of ``config``, ``mapping``, ``vthreads``, sides of tiles, for example
            ``tile_m``, and configuration fields. ``run`` has timing fields of the run, ``zip`` lists that
            advance together.

    Raises:
        SweepError: an unknown key, or wrong seed.
        ConfigError, ScheduleError: an impossible value.

    Example:
        ``accel.sweep(accel.gemm(256, 256, 256), vthreads=[1, 2], run={"read_latency": [16, 64, 256]})``
    """
    every = [workloads] if isinstance(workloads, Workload) else list(workloads)
    tables: list[Mapping[str, Any]] = [{"name": one.name, **one.parameters} for one in every]
    grids = [{name: _lists(values) for name, values in grid.items()}]
    points = grid_points([dict(table) for table in tables], grids, seed=seed)
    spec = Spec(name="sweep", title="sweep", points=tuple(points))
    path = None if journal is None else Path(journal)
    return run_sweep(spec, journal=path, jobs=jobs, executor=executor, progress=progress)


def _lists(values: Any) -> Any:
    if isinstance(values, Mapping):
        return {name: _lists(one) for name, one in values.items()}
    if isinstance(values, np.ndarray | np.generic):
        return values.tolist()
    if isinstance(values, Sequence) and not isinstance(values, str):
        return [_lists(one) for one in values]
    return values
