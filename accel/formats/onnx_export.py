"""Export of graphs as ONNX models in QOperator format, with every tensor as an output."""

from accel.formats import (  # noqa: F401  # they register their writers
    onnx_elementwise_writers,
    onnx_movement_writers,
    onnx_pooling_writers,
    onnx_product_writers,
)
from accel.formats.onnx_exporter import Exporter
from accel.graph.graph import Graph


def export_onnx(graph: Graph) -> bytes:
    """Export a graph as an ONNX model whose outputs are all computed tensors.

    Integer operators become ONNX Runtime's: QLinearConv, QGemm, QLinearAdd and so on. ONNX Runtime supports
    only some pairs of dtypes. Any other pair is written as the same numbers in a supported dtype, for example
    uint8 weights of an int8 convolution as int8 with a zero point that is 128 lower.

    Returns:
        A serialized ModelProto.
    """
    return Exporter(graph).model()
