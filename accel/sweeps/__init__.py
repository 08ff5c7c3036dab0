"""Sweeps: grids of workloads, machines and schedules, measured point by point.

``sweep`` measures what Python code asks for; ``load_spec`` reads what a file asks for, and ``run_sweep``
measures that. Both give a ``Table``, which draws plots.
"""

from accel.sweeps.plots import Plot
from accel.sweeps.runner import run_sweep, sweep
from accel.sweeps.spec import Spec, load_spec
from accel.sweeps.table import Table

__all__ = ["Plot", "Spec", "Table", "load_spec", "run_sweep", "sweep"]
