"""Sweeps measure grids of workloads, machines and schedules.

``sweep`` takes a grid in Python, ``run_sweep`` one that ``load_spec`` reads. Both return a ``Table``, which
draws plots.
"""

from accel.sweeps.sweep_plots import Plot
from accel.sweeps.sweep_runner import run_sweep, sweep
from accel.sweeps.sweep_spec import Spec, load_spec
from accel.sweeps.sweep_table import Table

__all__ = ["Plot", "Spec", "Table", "load_spec", "run_sweep", "sweep"]
