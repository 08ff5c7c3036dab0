"""Who does the work: this process, several of them, or a Dask cluster.

Each executor calls a function on every task and yields ``(index, outcome)`` as outcomes come in.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from accel.base.errors import SweepError
from accel.base.extras import not_installed

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")
R = TypeVar("R")

EXECUTORS = ("processes", "dask")
_FUTILE = 3
"""Times that a worker may die before a single task is done."""


def here(function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[tuple[int, R]]:
    """One task after the other in this process."""
    for index, task in enumerate(tasks):
        yield index, function(task)


def in_processes(function: Callable[[T], R], tasks: Sequence[T], jobs: int) -> Iterator[tuple[int, R]]:
    """In so many processes. What a process that dies was working on is done again by another.

    Raises:
        SweepError: processes die again and again.
    """
    waiting = dict(enumerate(tasks))
    futile = 0
    while waiting:
        done = 0
        for index, outcome in _pool_round(function, waiting, jobs):
            del waiting[index]
            done += 1
            yield index, outcome
        futile = 0 if done else futile + 1
        if futile == _FUTILE:
            raise SweepError(
                f"worker processes died {_FUTILE} times in a row with {len(waiting)} points to go; "
                f"there may be too little memory, so fewer --jobs may help"
            )


def _pool_round(function: Callable[[T], R], waiting: dict[int, T], jobs: int) -> Iterator[tuple[int, R]]:
    """Outcomes until all is done or a process dies."""
    from concurrent.futures import ProcessPoolExecutor, as_completed  # noqa: PLC0415  # seldom needed
    from concurrent.futures.process import BrokenProcessPool  # noqa: PLC0415
    from multiprocessing import active_children, get_context  # noqa: PLC0415

    others = set(active_children())
    pool = ProcessPoolExecutor(min(jobs, len(waiting)), mp_context=get_context("spawn"), initializer=_start)
    finished = False
    try:
        with _without_interrupts():
            futures = {pool.submit(function, task): index for index, task in list(waiting.items())}
        given: set[Future[R]] = set()
        try:
            for future in as_completed(futures):
                outcome = future.result()
                given.add(future)
                yield futures[future], outcome
        except BrokenProcessPool:
            for future in futures.keys() - given:
                if future.done() and not future.cancelled() and future.exception() is None:
                    yield futures[future], future.result()
        finished = True
    finally:
        if not finished:  # interrupted: what is under way is given up
            for process in set(active_children()) - others:
                process.terminate()
        pool.shutdown(cancel_futures=True)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """An interrupt waits until processes have been started, and they never get any: half started, or before
    :func:`_start`, they would print where it caught them."""
    if not hasattr(signal, "pthread_sigmask") or threading.current_thread() is not threading.main_thread():
        yield
        return
    from multiprocessing.resource_tracker import ensure_running  # noqa: PLC0415  # seldom needed

    ensure_running()  # which would let interrupts through again
    caught: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _frame: caught.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # the processes inherit it
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, handler)
        for number in caught[:1]:
            signal.raise_signal(number)


def _start() -> None:
    """A worker leaves interrupts to its parent, and ends with it."""
    from multiprocessing import parent_process  # noqa: PLC0415  # seldom needed

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent,), daemon=True).start()


def _follow(parent: Any) -> None:
    parent.join()
    os._exit(1)


def check_dask() -> None:
    """Refuse the executor ``dask`` without Dask.

    Raises:
        SweepError: it is not installed.
    """
    try:
        import distributed  # noqa: F401, PLC0415
    except ImportError:
        raise SweepError(not_installed("the executor dask needs distributed", "cluster")) from None


def on_dask(
    function: Callable[[T], R],
    tasks: Sequence[T],
    jobs: int,
    scheduler: str | None = None,
    timeout: float = 30,
) -> Iterator[tuple[int, R]]:
    """On a Dask cluster; Dask gives what a dead worker held to others.

    Args:
        function, tasks: as for the others.
        jobs: worker processes of a cluster on this machine, if no scheduler is given.
        scheduler: address of a running cluster's.
        timeout: seconds that it may take to answer.

    Raises:
        SweepError: Dask is not installed, or there is no such cluster.
    """
    check_dask()
    from distributed import Client, KilledWorker, LocalCluster  # noqa: PLC0415
    from distributed import as_completed as completed  # noqa: PLC0415

    cluster = None
    try:
        if scheduler is None:
            cluster = LocalCluster(
                n_workers=jobs,
                threads_per_worker=1,
                processes=True,
                dashboard_address="127.0.0.1:0",  # any port: None would be the same for all clusters
                scheduler_kwargs={"dashboard": False},
                silence_logs=50,
            )
        client = Client(scheduler if cluster is None else cluster, timeout=timeout)
    except OSError as error:
        raise SweepError(f"the cluster at {scheduler!r} cannot be reached: {error}") from None
    try:
        futures = client.map(function, tasks, pure=False)
        indices = {future.key: index for index, future in enumerate(futures)}
        for future in completed(futures):
            yield indices[future.key], future.result()
    except KilledWorker as error:
        raise SweepError(f"workers die of one point again and again: {error}") from None
    finally:
        client.close()
        if cluster is not None:
            cluster.close()
