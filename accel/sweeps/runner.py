"""Running a sweep: what is not in the journal yet is measured, then rows are put together."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from accel.base.errors import SweepError, nearest
from accel.compiler.ops.workload import Workload
from accel.sweeps.executors import EXECUTORS, here, in_processes, on_dask
from accel.sweeps.figures import Figures, is_synthesis
from accel.sweeps.grid import points
from accel.sweeps.journal import Journal
from accel.sweeps.points import Point, Synthesis, Task, key
from accel.sweeps.spec import Spec
from accel.sweeps.table import Table
from accel.sweeps.task import measure

Progress = Callable[[int, int], None]
"""Called with the number of tasks that are done, and of all."""
Note = Callable[[str], None]
"""Called with a sentence."""


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
    """Measure a sweep's points.

    Args:
        spec: the sweep.
        journal: file of what has been measured; points in it are not measured again. A sweep that was
            interrupted goes on where it stopped.
        fresh: forget what is in the journal.
        jobs: processes. With more than one, a script must guard its main part by
            ``if __name__ == "__main__":``, as for ``multiprocessing``.
        executor: ``processes`` or ``dask``.
        scheduler: address of a Dask cluster; one of ``jobs`` processes on this machine if not given.
        progress: is told how far it is.
        note: is told what is worth knowing of the journal.

    Returns:
        A row for each point, in the spec's order.

    Raises:
        SweepError: an unknown executor, a cluster that cannot be reached, or a journal that cannot be used,
            is damaged, or belongs to a sweep that is under way.
    """
    if executor not in EXECUTORS:
        raise SweepError(f"the executor is {executor!r}; {nearest(executor, EXECUTORS)}")
    if jobs < 1:
        raise SweepError(f"jobs is {jobs}; at least 1 is needed")
    with Journal(journal, fresh=fresh) as log:
        if log.dropped and note is not None:
            note("its last line had been cut off; that point is measured again")
        keys: dict[str, Task] = {key(task): task for point in spec.points for task in point.tasks}
        _check_kinds(keys, log)
        missing = {name: task for name, task in keys.items() if name not in log.known}
        tell = progress or (lambda _done, _all: None)
        done = len(keys) - len(missing)
        tell(done, len(keys))
        names = list(missing)
        for index, figures in _execute(list(missing.values()), jobs, executor, scheduler):
            log.add(names[index], figures)
            done += 1
            tell(done, len(keys))
        return table_of(spec.points, log)


def _check_kinds(keys: Mapping[str, Task], log: Journal) -> None:
    """Refuse a synthesis's figures where a run's belong, or the other way round."""
    for name, task in keys.items():
        if name in log.known and is_synthesis(log.known[name]) != isinstance(task, Synthesis):
            what = type(task).__name__.lower()
            raise SweepError(
                f"the journal's figures of {name} are {', '.join(log.known[name])}, which is no {what}; "
                f"remove that line and its point is measured again, or begin anew with --fresh"
            )


def table_of(points: Sequence[Point], log: Journal) -> Table:
    """The rows of all points whose tasks are all in the journal."""
    rows = []
    for one in points:
        names = [key(task) for task in one.tasks]
        if all(name in log.known for name in names):
            figures = {c: value for name in names for c, value in log.known[name].items()}
            settings = one.settings()
            if figures.get("vthreads") is None:
                figures.pop("vthreads", None)
            rows.append(settings | figures)
    return Table.of(rows)


def _execute(
    tasks: list[Task], jobs: int, executor: str, scheduler: str | None
) -> Iterator[tuple[int, Figures]]:
    if not tasks:
        return iter(())
    if executor == "dask":
        return on_dask(measure, tasks, jobs, scheduler)
    return here(measure, tasks) if jobs == 1 else in_processes(measure, tasks, jobs)


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
        workloads: what is compiled.
        seed: of the inputs.
        journal, jobs, executor, progress: see :func:`run_sweep`.
        grid: values, or sequences or arrays of values whose every combination is measured: ``config``,
            ``mapping``, ``vthreads``, ``tile_m``, ``tile_n``, ``step_k``, and every configuration field. In
            ``run`` timing fields that are set for the run only; the schedule is then made without knowing
            them. In ``zip`` lists that advance together.

    Raises:
        SweepError: an unknown key of the grid, or a bad seed.
        ConfigError, ScheduleError: a value that cannot be.

    Example:
        ``accel.sweep(accel.gemm(256, 256, 256), vthreads=[1, 2], run={"read_latency": [16, 64, 256]})``
    """
    every = [workloads] if isinstance(workloads, Workload) else list(workloads)
    tables: list[Mapping[str, Any]] = [{"name": one.name, **one.parameters} for one in every]
    grids = [{name: _lists(values) for name, values in grid.items()}]
    found = points([dict(t) for t in tables], grids, seed=seed)
    spec = Spec(name="sweep", title="sweep", points=tuple(found))
    path = None if journal is None else Path(journal)
    return run_sweep(spec, journal=path, jobs=jobs, executor=executor, progress=progress)


def _lists(values: Any) -> Any:
    """Sequences and arrays as lists, which are a grid's axes, with Python's own numbers in them."""
    if isinstance(values, Mapping):
        return {name: _lists(one) for name, one in values.items()}
    if isinstance(values, np.ndarray | np.generic):
        return values.tolist()
    if isinstance(values, Sequence) and not isinstance(values, str):
        return [_lists(one) for one in values]
    return values
