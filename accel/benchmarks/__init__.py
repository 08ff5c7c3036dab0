"""Measurements of layers of well-known networks."""

from accel.base.run_choices import EPILOGUES
from accel.benchmarks.benchmark_networks import NETWORKS, Layer, default_epilogue, layers_of
from accel.benchmarks.measure_layers import Row, Task, measure, network_energy, report, total

__all__ = [
    "EPILOGUES",
    "NETWORKS",
    "Layer",
    "Row",
    "Task",
    "default_epilogue",
    "layers_of",
    "measure",
    "network_energy",
    "report",
    "total",
]
