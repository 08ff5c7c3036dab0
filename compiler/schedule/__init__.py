"""Schedules: transformations of loops, in memory, as data and in files."""

from accel.base.deprecated_modules import reexport

__getattr__ = reexport(__name__, "accel.compiler.schedule.schedule", "accel.compiler.schedule.stage_splits")
