"""Measurements of layers of well-known networks."""

from accel.benchmarks.benchmark_networks import EPILOGUES, NETWORKS, Layer, default_epilogue, layers_of
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
