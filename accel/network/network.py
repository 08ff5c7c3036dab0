"""Networks as users handle them: load, look at, build."""

import os
import time
from dataclasses import dataclass

from accel.compiler.target.machine import Machine, machine
from accel.core.config import Config
from accel.formats import onnx_import
from accel.graph.graph import Graph
from accel.network.fuse import fuse
from accel.network.place import check_strict, place
from accel.network.program import NetworkProgram

DEFAULT_MACHINE = "vta-int8"
"""What networks are compiled for if nothing else is said."""


@dataclass(frozen=True, kw_only=True)
class Network:
    """A network that is to be compiled.

    Attributes:
        graph: what it computes.
    """

    graph: Graph

    def build(
        self,
        on: Machine | Config | str = DEFAULT_MACHINE,
        *,
        strict: bool = False,
        approximate: bool = False,
    ) -> NetworkProgram:
        """Compile the network for a machine with ``post=1``.

        Args:
            on: the machine, its configuration or the configuration's name.
            strict: refuse multiplications on the host.
            approximate: let additions whose integers are not exact stay on the machine.

        Raises:
            ConfigError: there is no such machine.
            GraphError: the machine has ``post=0``, or ``strict`` finds multiplications on the host.
        """
        target = machine(on)
        begin = time.perf_counter()
        parts = place(self.graph, fuse(self.graph), target, approximate=approximate)
        if strict:
            check_strict(self.graph, parts)
        return NetworkProgram(
            graph=self.graph,
            config=target.config,
            parts=parts,
            compile_seconds=time.perf_counter() - begin,
        )


def load_onnx(path: str | os.PathLike[str], *, batch: int | None = None) -> Network:
    """A network from an ONNX model, quantized in QOperator or in QDQ format.

    Args:
        path: of the model; external data must lie in its folder.
        batch: the size of a first axis that the model leaves open, 1 if not given.

    Raises:
        GraphError: the file cannot be read, an operator is unknown, a size depends on a run, the batch
            disagrees with one that the model fixes, or tensors do not fit.
        ShapeError: the batch is no positive integer.
    """
    return Network(graph=onnx_import.load_onnx(path, batch=batch))
