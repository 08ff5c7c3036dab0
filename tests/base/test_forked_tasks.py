import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from accel.base.forked_tasks import run_tasks

linux = pytest.mark.skipif(sys.platform != "linux", reason="other platforms have one process")


@pytest.mark.parametrize("jobs", [1, 2, 5])
@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("count", [0, 1, 7])
def test_every_task_has_a_result(jobs: int, count: int, *, at_once: bool) -> None:
    assert run_tasks(lambda n: n * n, count, jobs, at_once=at_once) == [n * n for n in range(count)]


def slow_process(number: int) -> int:
    time.sleep(0.03)
    return os.getpid()


@linux
def test_long_tasks_run_in_several_processes() -> None:
    processes = run_tasks(slow_process, 12, 3)
    assert len(processes) == 12
    assert len(set(processes)) == 3
    assert processes[0] == processes[1] == os.getpid()


def test_short_tasks_run_in_this_process() -> None:
    assert set(run_tasks(lambda n: os.getpid(), 100, 4)) == {os.getpid()}


@linux
def test_tasks_of_failed_processes_are_done_again() -> None:
    own = os.getpid()

    def fail(number: int) -> int:
        time.sleep(0.02)
        if os.getpid() != own:
            raise ValueError(number)
        return number

    assert run_tasks(fail, 6, 2, at_once=True) == list(range(6))


@linux
def test_tasks_whose_results_cannot_be_sent_are_done_again() -> None:
    def unsendable(number: int) -> Callable[[], int]:
        time.sleep(0.02)
        return lambda: number

    assert [found() for found in run_tasks(unsendable, 6, 2, at_once=True)] == list(range(6))


KILLED = """
import os, signal, time
from accel.base.forked_tasks import run_tasks

own = os.getpid()

def task(number):
    time.sleep(0.2)
    if os.getpid() == own:
        os.kill(own, signal.SIGKILL)
    return bytes(1 << 20)

run_tasks(task, 9, 4, at_once=True)
"""


@linux
def test_forked_processes_end_after_a_killed_one() -> None:
    """Each has standard output, so it closes after the last one."""
    done = subprocess.run([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, timeout=30, check=False)
    assert done.returncode == -signal.SIGKILL


def test_an_error_of_this_process_ends_the_others() -> None:
    own = os.getpid()

    def fail(number: int) -> int:
        if os.getpid() == own:
            raise ValueError("own")
        time.sleep(60)
        return number

    begin = time.monotonic()
    with pytest.raises(ValueError, match="own"):
        run_tasks(fail, 3, 2, at_once=True)
    assert time.monotonic() - begin < 30
