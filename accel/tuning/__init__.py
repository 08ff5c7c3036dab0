"""Tuning: the search for the fastest schedule of a computation on a machine."""

from accel.tuning.tune import Tuning, tune

__all__ = ["Tuning", "tune"]
