"""Export of graphs as ONNX models in QOperator format."""

from collections.abc import Sequence

from accel.formats import (  # noqa: F401  # they register their writers
    onnx_elementwise_writers,
    onnx_movement_writers,
    onnx_pooling_writers,
    onnx_product_writers,
)
from accel.formats.onnx_exporter import Exporter
from accel.graph.graph import Graph


def export_onnx(graph: Graph, outputs: Sequence[str] | None = None) -> bytes:
    """Export a graph as a serialized ONNX model, by default with all computed tensors as outputs.

    Integer operators become ONNX Runtime's, such as QLinearConv. Dtypes that it does not combine are
    converted: uint8 weights of an int8 convolution become int8 with a zero point that is 128 lower.
    """
    return Exporter(graph).model(outputs)
