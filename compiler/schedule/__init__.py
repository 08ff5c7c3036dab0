"""Schedules: how loops are transformed, in memory, as data and in files."""

from accel.base.moved import reexport

__getattr__ = reexport(__name__, "accel.compiler.schedule.schedule", "accel.compiler.schedule.loops")
