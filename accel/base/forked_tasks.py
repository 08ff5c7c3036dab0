"""Tasks of one computation in processes that are forked from this one.

A forked process starts at once, with this one's memory. So only results are sent.
"""

import os
import pickle
import signal
import sys
import time
import warnings
from collections.abc import Callable
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
) -> list[ResultT]:
    """Return ``task(number)`` for each number below ``count``.

    If the first tasks show that there is enough work, this process and ``jobs - 1`` others take one number
    after the other. The tasks of a process that fails are done again in this one. Other platforms than Linux
    have one process, because their libraries need not survive a fork.

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
            found |= _shared(task, range(number, count), min(jobs, left))
            break
        found[number] = task(number)
    return [found[number] if number in found else task(number) for number in range(count)]


def _shared(task: Callable[[int], ResultT], left: range, processes: int) -> dict[int, ResultT]:
    """Return results by number, without those of processes that failed."""
    numbers, feed = os.pipe()
    os.write(feed, b"".join(number.to_bytes(_NUMBER_BYTES, "little") for number in left))
    os.close(feed)
    children: dict[int, int] = {}
    """By process, the pipe of its results."""
    try:
        for _ in range(processes - 1):
            _fork(task, numbers, children)
        found = _run(task, numbers)
        for results in children.values():
            found |= _received(results)
    finally:
        os.close(numbers)
        for child, results in children.items():
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


def _fork(task: Callable[[int], ResultT], numbers: int, children: dict[int, int]) -> None:
    """Start a process and add it to ``children``, unless the system refuses."""
    results, end = os.pipe()
    try:
        with warnings.catch_warnings():  # another thread may draw progress, which a child does not
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
    except OSError:
        os.close(results)
        os.close(end)
        return
    if not child:
        for one in (*children.values(), results):  # so that writing fails if the parent has been killed
            os.close(one)
        _work(task, numbers, end)
    children[child] = results
    os.close(end)


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
