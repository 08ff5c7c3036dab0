"""Functions that worker processes import by name and run in tests."""

import os
import signal
from pathlib import Path

from accel.explore.exploration_tasks import Task, measure_task
from accel.sweeps.task_figures import Figures


def measure_and_die_once(task: Task) -> Figures:
    """Measure a task. The first process is killed before it returns."""
    figures = measure_task(task)
    try:
        Path(os.environ["ACCEL_TEST_FOLDER"], "seen").touch(exist_ok=False)
    except FileExistsError:
        return figures
    os.kill(os.getpid(), signal.SIGKILL)
    return figures
