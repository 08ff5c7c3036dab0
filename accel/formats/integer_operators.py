"""The passes that make integer operators from the float operators of an imported model."""

from collections.abc import Collection

from accel.formats.onnx_tables import runtime_table
from accel.graph.constant_folding import fold_constants
from accel.graph.equal_quantizes import merge_equal_quantizes
from accel.graph.graph import Graph
from accel.graph.integer_sums import sum_integers
from accel.graph.product_rows import drop_row_reshapes
from accel.graph.qdq_regions import match_regions
from accel.graph.sunk_moves import sink_moves
from accel.graph.transpose_cancellation import cancel_transposes


def with_integer_operators(graph: Graph, opaque: Collection[str] = ()) -> Graph:
    """Replace float operators between Dequantize and Quantize by integer operators.

    Args:
        opaque: results of nodes that ONNX Runtime does not treat as their operators of the graph.
    """
    matched = match_regions(graph, opaque, runtime_table)
    plain = merge_equal_quantizes(cancel_transposes(fold_constants(sum_integers(matched))))
    return sink_moves(drop_row_reshapes(plain))
