"""Tasks of one computation in processes that are forked from this one.

A forked process starts at once, with this one's memory. So only results are sent.
"""

import os
import pickle
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TypeVar

ResultT = TypeVar("ResultT")

_WORTH_SECONDS = 0.05
"""Seconds of work that pay off a fork."""
_MAX_JOBS = 8
"""By default. More tasks seldom run at the same time."""
_NUMBER_BYTES = 4
_MAX_TASKS = 1 << 10
"""A pipe holds their numbers."""


def default_jobs() -> int:
    """Return one process for each core that this one may use."""
    return min(len(os.sched_getaffinity(0)), _MAX_JOBS) if sys.platform == "linux" else 1


def run_tasks(
    task: Callable[[int], ResultT], count: int, jobs: int, *, at_once: bool = False
) -> dict[int, ResultT]:
    """Return ``task(number)`` by number, for numbers below ``count``.

    If the first tasks show that there is enough work, this process and ``jobs - 1`` others take one number
    after the other. Results of a process that fails are missing. Other platforms than Linux have one process,
    because their libraries need not survive a fork.

    Args:
        at_once: fork before the first task.
    """
    can_fork = jobs > 1 and sys.platform == "linux" and count <= _MAX_TASKS
    found: dict[int, ResultT] = {}
    begin = time.perf_counter()
    for number in range(count):
        seconds, left = time.perf_counter() - begin, count - number
        is_worth = seconds > _WORTH_SECONDS and seconds / max(number, 1) * left > _WORTH_SECONDS
        if can_fork and left > 1 and (at_once or is_worth):
            return found | _shared(task, range(number, count), min(jobs, left))
        found[number] = task(number)
    return found


def _shared(task: Callable[[int], ResultT], left: range, processes: int) -> dict[int, ResultT]:
    numbers, feed = os.pipe()
    os.write(feed, b"".join(number.to_bytes(_NUMBER_BYTES, "little") for number in left))
    os.close(feed)
    children = list(_forks(task, numbers, processes - 1))
    try:
        found = _run(task, numbers)
        for _, results in children:
            found |= _received(results)
    finally:
        os.close(numbers)
        for child, results in children:
            os.close(results)
            os.kill(child, signal.SIGKILL)  # it has ended, unless this process was interrupted
            os.waitpid(child, 0)
    return found


def _run(task: Callable[[int], ResultT], numbers: int) -> dict[int, ResultT]:
    found = {}
    while taken := os.read(numbers, _NUMBER_BYTES):
        number = int.from_bytes(taken, "little")
        found[number] = task(number)
    return found


def _forks(task: Callable[[int], ResultT], numbers: int, count: int) -> Iterator[tuple[int, int]]:
    """Yield processes, as many as the system allows, with the pipes of their results."""
    opened: list[int] = []
    for _ in range(count):
        results, end = os.pipe()
        opened.append(results)
        try:
            with warnings.catch_warnings():  # another thread may draw progress, which a child does not
                warnings.simplefilter("ignore", DeprecationWarning)
                child = os.fork()
        except OSError:
            os.close(results)
            os.close(end)
            return
        if not child:
            for one in opened:  # so that writing fails if the parent has been killed
                os.close(one)
            _work(task, numbers, end)
        os.close(end)
        yield child, results


def _work(task: Callable[[int], ResultT], numbers: int, end: int) -> None:
    """End this process after its tasks, without cleanup or message."""
    try:
        with suppress(BaseException), os.fdopen(end, "wb") as file:
            file.write(pickle.dumps(_run(task, numbers)))
    finally:
        os._exit(0)


def _received(results: int) -> dict[int, ResultT]:
    content = bytearray()
    while part := os.read(results, 1 << 20):
        content += part
    try:
        found: dict[int, ResultT] = pickle.loads(content)  # noqa: S301
    except EOFError:  # the process failed
        return {}
    return found
