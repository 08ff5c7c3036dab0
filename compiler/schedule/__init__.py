"""Schedules: how loops are transformed, in memory, as data and in files."""
