"""Matrix products as ``gemm``."""

from math import prod

from accel.graph.graph import Graph
from accel.graph.graph_tensor import Shape, Tensor
from accel.network.fused_nodes import FusedNodes
from accel.network.lowering.layer_operand import Operand
from accel.network.lowering.lowered_layer import LoweredLayer, NotOnMachine
from accel.network.lowering.product_layer import count_int8_summands, product_layer


def lower_matrix_product(graph: Graph, fused: FusedNodes, approximate: bool) -> LoweredLayer:
    """Lower a MatMul of a tensor with weights, or of two tensors.

    For example, the products of 12 heads are a ``gemm`` with ``batch=12``.
    """
    data, weights, *_ = graph.operands(fused.main)
    copies = count_int8_summands(graph, weights) if weights.name in graph.constants else 1
    pairs = _count_pairs(data, weights)
    rows, columns = prod(data.shape[:-1]) // (pairs or 1), weights.shape[-1]
    depth = weights.shape[-2] * copies
    several = () if pairs is None else (pairs,)
    operands = [
        Operand(
            name="A",
            tensor=data.name,
            shape=(*several, rows, depth),
            copies=copies,
            axis=len(data.shape) - 1,
            tensor_shape=data.shape,
        ),
        Operand(
            name="B",
            tensor=weights.name,
            shape=(*several, depth, columns),
            copies=copies,
            axis=len(weights.shape) - 2,
        ),
    ]
    parameters = {"M": rows, "N": columns, "K": depth} | ({} if pairs is None else {"batch": pairs})
    shape = (*several, rows, columns)
    return product_layer(graph, fused, "gemm", parameters, operands, shape, approximate=approximate)


def _count_pairs(data: Tensor, weights: Tensor) -> int | None:
    """Return None if the second operand is one matrix."""
    several = prod(weights.shape[:-2])
    if several == 1:
        return None
    if prod(data.shape[:-2]) != several or _matrices(data) != _matrices(weights):
        raise NotOnMachine(
            f"operands are {data.shape} and {weights.shape}; the machine multiplies as many matrices of each"
        )
    return several


def _matrices(tensor: Tensor) -> Shape:
    return tuple(size for size in tensor.shape[:-2] if size > 1)
