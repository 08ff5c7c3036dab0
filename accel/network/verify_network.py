"""Comparison of a network file with ONNX Runtime."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from accel.formats.compare_with_original import ModeDifference, compare_modes, compare_with_original
from accel.formats.compare_with_runtime import Comparison, compare, random_inputs
from accel.formats.onnx_runtime import saturates
from accel.graph.graph import Graph
from accel.graph.graph_tensor import Array
from accel.network.model_files import is_tflite
from accel.network.network import read_network


@dataclass(frozen=True, kw_only=True)
class Verification:
    """The comparison of a network with ONNX Runtime.

    Attributes:
        operators: each operator of the imported network, evaluated on ONNX Runtime's operands.
        original: each tensor that the file quantizes, compared with all optimizations of ONNX Runtime. None
            for TensorFlow Lite, and where ONNX Runtime saturates products (x86 without VNNI).
        modes: outputs that differ between ONNX Runtime with and without optimizations.
    """

    operators: Comparison
    original: Comparison | None
    modes: tuple[ModeDifference, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether no tensor differs."""
        return self.operators.first is None and (self.original is None or self.original.first is None)


def verify(
    path: str | os.PathLike[str],
    inputs: Mapping[str, Array] | None = None,
    *,
    batch: int | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    seed: int = 0,
) -> Verification:
    """Compare a network with ONNX Runtime, tensor by tensor.

    Args:
        path: an ONNX or TensorFlow Lite file.
        inputs: arrays by name. Missing ones are random.
        batch, shapes: see :func:`accel.load_onnx`.
        seed: of random inputs.

    Raises:
        GraphError: the file cannot be imported, or ONNX Runtime is not installed or refuses it.
        ShapeError: an input is unknown, or has another shape or dtype.
    """
    graph = read_network(path, batch=batch, shapes=shapes).graph
    return verify_graph(graph, path, random_inputs(graph, seed) | dict(inputs or {}))


def verify_graph(graph: Graph, path: str | os.PathLike[str], values: Mapping[str, Array]) -> Verification:
    has_original = not is_tflite(path) and not saturates()
    return Verification(
        operators=compare(graph, values),
        original=compare_with_original(graph, path, values) if has_original else None,
        modes=compare_modes(graph, path, values) if has_original else (),
    )
