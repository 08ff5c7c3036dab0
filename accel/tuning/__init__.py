"""Tuning: search for the fastest schedule."""

from accel.tuning.tune import Tuning, tune

__all__ = ["Tuning", "tune"]
