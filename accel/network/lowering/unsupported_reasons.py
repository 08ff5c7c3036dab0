"""Why the machine cannot execute an operator."""

from accel.graph.elementwise_operators import SAME_BYTES
from accel.graph.graph import Graph
from accel.graph.movement_operators import Movement
from accel.network.fused_nodes import FusedNodes


def unsupported_reason(graph: Graph, fused: FusedNodes) -> str:
    operator = fused.main.operator
    tensors = [*graph.operands(fused.main), graph.tensors[fused.main.output]]
    if isinstance(operator, SAME_BYTES):
        return "values stay as they are"
    if isinstance(operator, Movement):
        return "the machine moves no values"
    if any(tensor.dtype == "float32" for tensor in tensors):
        return "the machine has no float32"
    return f"the machine has no {operator.kind}"
