"""Functions that worker processes import by name and run in tests."""

import os
import signal
from pathlib import Path

from accel.sweeps.sweep_points import Task
from accel.sweeps.sweep_task import Figures, measure


def double(task: tuple[str, int]) -> int:
    """Twice the number."""
    return 2 * task[1]


def die_once(task: tuple[str, int]) -> int:
    """Twice the number. The first process that gets 3 is killed before it returns."""
    folder, number = task
    if number == 3 and _first(folder):
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * number


def die(task: tuple[str, int]) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return task[1]


def measure_and_die_once(task: Task) -> Figures:
    """Measure a task. The first process is killed before it returns."""
    figures = measure(task)
    if _first(os.environ["ACCEL_TEST_FOLDER"]):
        os.kill(os.getpid(), signal.SIGKILL)
    return figures


def _first(folder: str) -> bool:
    try:
        Path(folder, "seen").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def blocks_interrupts(task: int) -> bool:
    """Whether SIGINT is blocked in this process, as it must be from the start."""
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())
