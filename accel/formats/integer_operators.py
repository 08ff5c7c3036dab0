"""The passes from float operators to integer operators."""

from collections.abc import Collection

from accel.formats.onnx_tables import runtime_table
from accel.graph.graph import Graph
from accel.graph.integer_sums import sum_integers
from accel.graph.qdq_regions import match_regions
from accel.rewriting.constant_rules import CONSTANT_FOLDING, EQUAL_QUANTIZES
from accel.rewriting.movement_rules import PRODUCT_OF_ROWS
from accel.rewriting.rule_application import simplify
from accel.rewriting.sunk_moves import sink_moves
from accel.rewriting.transpose_cancellation import cancel_transposes


def with_integer_operators(graph: Graph, opaque: Collection[str] = ()) -> Graph:
    """``opaque`` is that of :func:`~accel.graph.float_regions.passes_dequantize`."""
    matched = match_regions(graph, opaque, runtime_table)
    folded, _ = simplify(sum_integers(matched), [CONSTANT_FOLDING])
    plain, _ = simplify(cancel_transposes(folded), [EQUAL_QUANTIZES, PRODUCT_OF_ROWS])
    return sink_moves(plain)
