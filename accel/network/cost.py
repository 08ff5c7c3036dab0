"""Costs: cycles and bytes that a stage is predicted to take, on the machine or on the host.

What the host takes nobody knows here; the numbers below are assumptions. They favour the host: whatever it
computes besides products is free, it only touches each byte once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from accel.core.config import Config
from accel.graph.graph import Graph
from accel.graph.tensor import Tensor
from accel.image.manifest import read_entry
from accel.network.entry import planned
from accel.network.lower import Layer
from accel.network.stage import Stage

HOST_SWITCH = 1000
"""Cycles from the end of a program until the host works, and back: 10 us at 100 MHz. What the machine itself
takes to end and to start anew comes on top."""
HOST_BYTE = 1
"""Cycles for each byte that the host reads or writes."""
HOST_MAC = 1
"""Cycles for each product on the host."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What something is predicted to take.

    Attributes:
        cycles: of the machine's clock; of a layer, by itself.
        host_cycles: those of them that the host takes, as assumed.
        nbytes: of tensors and weights to and from DRAM, without parameters, micro-ops and instructions.
    """

    cycles: int
    host_cycles: int
    nbytes: int

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            cycles=self.cycles + other.cycles,
            host_cycles=self.host_cycles + other.host_cycles,
            nbytes=self.nbytes + other.nbytes,
        )

    def __sub__(self, other: "Cost") -> "Cost":
        return Cost(
            cycles=self.cycles - other.cycles,
            host_cycles=self.host_cycles - other.host_cycles,
            nbytes=self.nbytes - other.nbytes,
        )

    def __str__(self) -> str:
        """As ``12,345 cycles (2,000 of them assumed of the host), 3,456 bytes``."""
        host = f" ({self.host_cycles:,} of them assumed of the host)" if self.host_cycles else ""
        return f"{self.cycles:,} cycles{host}, {self.nbytes:,} bytes"

    def to_dict(self) -> dict[str, int]:
        """As plain data."""
        return {"cycles": self.cycles, "host_cycles": self.host_cycles, "bytes": self.nbytes}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Cost":
        """The inverse of :meth:`to_dict`.

        Raises:
            ProgramError: an entry is missing or of another type.
        """
        cycles, host, nbytes = (read_entry(data, key, int) for key in ("cycles", "host_cycles", "bytes"))
        return cls(cycles=cycles, host_cycles=host, nbytes=nbytes)


NOTHING = Cost(cycles=0, host_cycles=0, nbytes=0)


def on_machine(graph: Graph, stage: Stage, layer: Layer, config: Config) -> Cost:
    """Of a stage that is a layer.

    Args:
        graph: the stage's.
        stage: one of the graph's.
        layer: that it is.
        config: the machine.

    Raises:
        ScheduleError: it has no schedule there.
    """
    found = planned(graph, layer, config).candidates[0]
    residuals = sum(prod(operand.shape) for operand in layer.operands if operand.name == "residual")
    nbytes = found.read_bytes + residuals + graph.tensors[stage.output].size  # all of them int8 or uint8
    return Cost(cycles=round(found.prediction.cycles), host_cycles=0, nbytes=nbytes)


def on_host(graph: Graph, stage: Stage, config: Config, *, switch: bool) -> Cost:
    """Of a stage on the host.

    Args:
        graph: the stage's.
        stage: one of the graph's.
        config: the machine that waits.
        switch: whether the host begins with it.
    """
    if stage.moves_nothing:
        return NOTHING
    taken = [graph.tensors[name] for name in stage.inputs if name not in graph.constants]
    nbytes = sum(map(_nbytes, [*taken, graph.tensors[stage.output]]))
    cycles = HOST_BYTE * nbytes + HOST_MAC * stage.macs(graph)
    if switch:  # the last write, and of the next program instructions, micro-ops and data
        cycles += HOST_SWITCH + config.write_latency + 3 * config.read_latency
    return Cost(cycles=cycles, host_cycles=cycles, nbytes=nbytes)


def _nbytes(tensor: Tensor) -> int:
    return tensor.size * (1 if tensor.dtype in ("int8", "uint8") else 4)
