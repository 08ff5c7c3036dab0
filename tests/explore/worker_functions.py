"""Functions that worker processes import by name and run in tests."""

import os
import signal
from pathlib import Path

from accel.explore.exploration_tasks import Task, measure_task
from accel.explore.placement_tasks import PlacementRun
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


def place_by_formula(task: PlacementRun, *, time_limit: float, folder: Path | None = None) -> Figures:
    """Invented figures of a placement: larger cores are slower, and dispatch stages make them faster."""
    del time_limit, folder
    frequency = 80.0 - task.config.block_in - task.config.block_out / 2 + 5 * task.config.dispatch_stages
    spread = float(task.seeds - 1)
    return {
        "error": None,
        "message": None,
        "frequency": frequency,
        "frequency_low": frequency - spread,
        "frequency_high": frequency + spread,
        "placed_lut_slots": 100 * task.config.macs_per_cycle,
        "placed_flip_flops": 50 * task.config.macs_per_cycle,
    }
