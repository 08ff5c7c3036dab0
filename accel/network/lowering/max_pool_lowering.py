"""Maxima of windows as ``max_pool2d``."""

from accel.graph.graph import Graph
from accel.graph.graph_tensor import QUANTIZED
from accel.graph.pooling_operators import MaxPool
from accel.network.fused_nodes import FusedNodes
from accel.network.lowering.layer_operand import Operand
from accel.network.lowering.lowered_layer import LoweredLayer, NotOnMachine
from accel.network.lowering.window_parameters import (
    require_two_axes,
    size_parameters,
    window_parameters,
    with_two_axes,
)


def lower_max_pool(graph: Graph, fused: FusedNodes, _: bool) -> LoweredLayer:
    """Lower a MaxPool."""
    pool, (data,) = fused.main.operator, graph.operands(fused.main)
    assert isinstance(pool, MaxPool)
    if data.dtype not in QUANTIZED:
        raise NotOnMachine(f"its values are {data.dtype}; the machine's maxima are of int8 or uint8")
    require_two_axes(pool.windows)
    return LoweredLayer(
        operator="max_pool2d",
        parameters={
            "N": data.shape[0],
            "C": data.shape[1],
            **size_parameters(data.shape, pool.windows),
            **window_parameters(pool.windows),
            "dtype": data.dtype,
        },
        operands=(
            Operand(name="data", tensor=data.name, shape=with_two_axes(data.shape, pool.windows.rank)),
        ),
        output="out",
    )
