"""What the machine does on networks: their layers, how they are measured, and how that is told."""

from accel.benchmarks.layers import Row, Task, measure, report, total
from accel.benchmarks.networks import NETWORKS, Layer

__all__ = ["NETWORKS", "Layer", "Row", "Task", "measure", "report", "total"]
