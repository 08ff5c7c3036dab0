"""Matrix products, with fused bounds and additions, as ``gemm``."""

from math import prod

from accel.graph.graph import Graph
from accel.network.fused_nodes import FusedNodes
from accel.network.lowering.lowered_layer import LoweredLayer, NotOnMachine, Operand
from accel.network.lowering.product_layer import count_int8_summands, product_layer


def lower_matrix_product(graph: Graph, fused: FusedNodes, approximate: bool) -> LoweredLayer:
    """Lower a MatMul."""
    data, weights, *_ = graph.operands(fused.main)
    copies = count_int8_summands(graph, weights)
    if len(weights.shape) > 2:
        raise NotOnMachine("weights are several matrices; the machine's products have one")
    rows, columns, depth = prod(data.shape[:-1]), weights.shape[1], weights.shape[0] * copies
    operands = [
        Operand(
            name="A",
            tensor=data.name,
            shape=(rows, depth),
            copies=copies,
            axis=len(data.shape) - 1,
            tensor_shape=data.shape,
        ),
        Operand(name="B", tensor=weights.name, shape=(depth, columns), copies=copies),
    ]
    parameters = {"M": rows, "N": columns, "K": depth}
    return product_layer(graph, fused, "gemm", parameters, operands, (rows, columns), approximate=approximate)
