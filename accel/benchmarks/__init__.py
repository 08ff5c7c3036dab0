"""What the machine does on networks: their layers, how they are measured, and how that is told."""

from accel.benchmarks.layers import Row, Task, measure, report, total
from accel.benchmarks.networks import EPILOGUES, NETWORKS, Layer, default_epilogue, layers_of

__all__ = [
    "EPILOGUES",
    "NETWORKS",
    "Layer",
    "Row",
    "Task",
    "default_epilogue",
    "layers_of",
    "measure",
    "report",
    "total",
]
