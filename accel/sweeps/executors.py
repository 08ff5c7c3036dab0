"""Executors of tasks: this process, several processes, or a Dask cluster."""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from accel.base.child_processes import end_programs, end_programs_on_termination
from accel.base.errors import SweepError
from accel.base.optional_extras import not_installed

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")
R = TypeVar("R")

_MAX_DEATHS = 3
"""Deaths of workers in a row without a complete task."""


def in_this_process(function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[tuple[int, R]]:
    for index, task in enumerate(tasks):
        yield index, function(task)


def in_processes(function: Callable[[T], R], tasks: Sequence[T], jobs: int) -> Iterator[tuple[int, R]]:
    """Run tasks in ``jobs`` processes. Another one repeats the task of a dead one."""
    waiting = dict(enumerate(tasks))
    deaths = 0
    while waiting:
        done = 0
        for index, outcome in _until_death(function, waiting, jobs):
            del waiting[index]
            done += 1
            yield index, outcome
        deaths = 0 if done else deaths + 1
        if deaths == _MAX_DEATHS:
            raise SweepError(
                f"worker processes died {_MAX_DEATHS} times in a row with {len(waiting)} points to go; "
                f"there may be too little memory, so fewer --jobs may help"
            )


def _until_death(function: Callable[[T], R], waiting: dict[int, T], jobs: int) -> Iterator[tuple[int, R]]:
    from concurrent.futures import ProcessPoolExecutor, as_completed  # seldom needed
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import active_children, get_context

    others = set(active_children())
    pool = ProcessPoolExecutor(
        min(jobs, len(waiting)), mp_context=get_context("spawn"), initializer=start_worker
    )
    is_complete = False
    try:
        with without_interrupts():
            futures = {pool.submit(function, task): index for index, task in list(waiting.items())}
        yielded: set[Future[R]] = set()
        try:
            for future in as_completed(futures):
                outcome = future.result()
                yielded.add(future)
                yield futures[future], outcome
        except BrokenProcessPool:
            for future in futures.keys() - yielded:
                if future.done() and not future.cancelled() and future.exception() is None:
                    yield futures[future], future.result()
        is_complete = True
    finally:
        if not is_complete:  # running tasks are abandoned
            for process in set(active_children()) - others:
                process.terminate()
        pool.shutdown(cancel_futures=True)


@contextmanager
def without_interrupts() -> Iterator[None]:
    """Delay an interrupt until workers have started. They would print tracebacks."""
    if not hasattr(signal, "pthread_sigmask") or threading.current_thread() is not threading.main_thread():
        yield
        return
    from multiprocessing.resource_tracker import ensure_running

    ensure_running()  # before, since it unblocks interrupts
    caught: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _frame: caught.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # inherited
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, handler)
        for number in caught[:1]:
            signal.raise_signal(number)


def start_worker() -> None:
    """Leave interrupts to the parent process, and end with it. Programs that the worker runs end first."""
    from multiprocessing import parent_process

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_programs_on_termination(os._exit)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_exit_after, args=(parent,), daemon=True).start()


def _exit_after(parent: Any) -> None:
    parent.join()
    end_programs()
    os._exit(1)


def check_dask() -> None:
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise SweepError(not_installed("the executor dask needs distributed", "cluster")) from None


def on_dask(
    function: Callable[[T], R],
    tasks: Sequence[T],
    jobs: int,
    scheduler: str | None = None,
    timeout: float = 30,
) -> Iterator[tuple[int, R]]:
    """Run tasks on a Dask cluster, which repeats tasks of dead workers."""
    with _dask_client(jobs, scheduler, timeout) as client:
        yield from _with_client(client, function, tasks)


@contextmanager
def _dask_client(jobs: int, scheduler: str | None, timeout: float = 30) -> Iterator[Any]:
    check_dask()
    from distributed import Client, LocalCluster

    cluster = None
    try:
        if scheduler is None:
            cluster = LocalCluster(
                n_workers=jobs,
                threads_per_worker=1,
                processes=True,
                dashboard_address="127.0.0.1:0",  # None would be one port for all clusters
                scheduler_kwargs={"dashboard": False},
                silence_logs=50,
            )
        client = Client(scheduler if cluster is None else cluster, timeout=timeout)
    except OSError as error:
        raise SweepError(f"the cluster at {scheduler!r} cannot be reached: {error}") from None
    try:
        yield client
    except BaseException:
        if cluster is not None:  # tasks that run cannot be cancelled
            client.run(end_programs, on_error="ignore")
        raise
    finally:
        client.close()
        if cluster is not None:
            cluster.close()


def _with_client(client: Any, function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[tuple[int, R]]:
    from distributed import KilledWorker
    from distributed import as_completed as completed

    try:
        futures = client.map(function, tasks, pure=False)
        indices = {future.key: index for index, future in enumerate(futures)}
        for future in completed(futures):
            yield indices[future.key], future.result()
    except KilledWorker as error:
        raise SweepError(f"workers die repeatedly at one point: {error}") from None


class Execute(Protocol):
    """Yields indices and results of tasks in any order."""

    def __call__(self, function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[tuple[int, R]]: ...


@contextmanager
def open_executor(jobs: int, executor: str, scheduler: str | None = None) -> Iterator[Execute]:
    if executor == "dask":
        with _dask_client(jobs, scheduler) as client:
            yield lambda function, tasks: _with_client(client, function, tasks)
    elif jobs == 1:
        yield in_this_process
    else:
        yield lambda function, tasks: in_processes(function, tasks, jobs)
