"""Which function lowers which operator."""

from collections.abc import Callable, Mapping

from accel.base.errors import ShapeError
from accel.graph.elementwise_operators import Add, ChannelTable, Clip, Function, Mul, Requantize, Table
from accel.graph.graph import Graph
from accel.graph.graph_operator import Operator
from accel.graph.pooling_operators import AveragePool, GlobalAveragePool, MaxPool
from accel.graph.product_operators import Conv, ConvTranspose, MatMul
from accel.network.fused_nodes import FusedNodes
from accel.network.lowering.average_lowering import lower_average, lower_global_average
from accel.network.lowering.combination_lowering import lower_combination
from accel.network.lowering.convolution_lowering import lower_convolution
from accel.network.lowering.elementwise_lowering import lower_elementwise
from accel.network.lowering.lowered_layer import LoweredLayer, NotOnMachine
from accel.network.lowering.matrix_product_lowering import lower_matrix_product
from accel.network.lowering.max_pool_lowering import lower_max_pool
from accel.network.lowering.transposed_convolution_lowering import lower_transposed_convolution
from accel.network.lowering.unsupported_reasons import unsupported_reason

Lowering = Callable[[Graph, FusedNodes, bool], LoweredLayer]
"""The last argument is ``approximate`` of :func:`lower`. Raises NotOnMachine, or a ShapeError that names an
unsupported size.
"""

LOWERINGS: Mapping[type[Operator], Lowering] = {
    Conv: lower_convolution,
    ConvTranspose: lower_transposed_convolution,
    MatMul: lower_matrix_product,
    GlobalAveragePool: lower_global_average,
    AveragePool: lower_average,
    MaxPool: lower_max_pool,
    Add: lower_combination,
    Mul: lower_combination,
    Requantize: lower_elementwise,
    Clip: lower_elementwise,
    Function: lower_elementwise,
    Table: lower_elementwise,
    ChannelTable: lower_elementwise,
}
"""By the operator of the main node. All other operators run on the host."""


def lower(graph: Graph, fused: FusedNodes, *, approximate: bool = False) -> LoweredLayer:
    """Lower fused nodes, or raise NotOnMachine.

    With ``approximate``, some values of sums and products may differ from float32.
    """
    lowering = LOWERINGS.get(type(fused.main.operator))
    if lowering is None:
        raise NotOnMachine(unsupported_reason(graph, fused))
    try:
        return lowering(graph, fused, approximate)
    except ShapeError as error:
        raise NotOnMachine(str(error)) from None
