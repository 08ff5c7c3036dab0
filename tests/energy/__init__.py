"""Tests of accel/energy."""
