"""Tests of accel/area."""
