"""Export of graphs as ONNX models in QOperator format, with every tensor as an output."""

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
    """Export a graph as an ONNX model.

    Integer operators become ONNX Runtime's: QLinearConv, QGemm, QLinearAdd and so on. ONNX Runtime supports
    only some pairs of dtypes. Any other pair is written as the same numbers in a supported dtype, for example
    uint8 weights of an int8 convolution as int8 with a zero point that is 128 lower.

    Args:
        outputs: of the model, by default all computed tensors.

    Returns:
        A serialized ModelProto.
    """
    return Exporter(graph).model(outputs)
