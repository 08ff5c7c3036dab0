"""Which layers can be in one chain: those that read tensors as other layers have written them."""

from collections.abc import Mapping, Sequence

from accel.graph.graph import Graph
from accel.graph.product_operators import MatMul
from accel.image.image_tensor import ImageTensor
from accel.network.placement import NetworkPart
from accel.network.repeated_operands import loads_of_copies
from accel.network.tensor_aliases import ByteOrder, alias_order, byte_order, may_alias
from accel.run.session_tensors import same_packing

_Written = ImageTensor | ByteOrder
"""How a tensor lies in DRAM: as a layer has written it, or as an alias."""


def split_into_chains(graph: Graph, parts: Sequence[NetworkPart]) -> list[tuple[NetworkPart, ...]]:
    """Start a new group before each part that reads a tensor in another packing than it was written."""
    groups: list[list[NetworkPart]] = [[]]
    written: dict[str, _Written] = {}
    for part in parts:
        if any(name in written and not _fits(graph, written[name], part, name) for name in part.fused.inputs):
            groups.append([])
            written = {}
        groups[-1].append(part)
        out = part.output if part.on_machine else _alias(graph, part, written)
        if out is not None:
            written[part.fused.output] = out
    return [tuple(group) for group in groups if group]


def _alias(graph: Graph, part: NetworkPart, written: Mapping[str, _Written]) -> _Written | None:
    """Return how the result of a part that moves nothing lies in DRAM, or None."""
    sources = [written.get(name) for name in part.fused.main.inputs]
    if not may_alias(graph, part):
        return sources[0]
    orders = [byte_order(one) if isinstance(one, ImageTensor) else one for one in sources]
    alias = alias_order(graph, part, orders)
    return None if alias is None else alias[0]


def _fits(graph: Graph, written: _Written, part: NetworkPart, name: str) -> bool:
    if part.layer is None or part.program is None:
        return True
    if _sums_incomplete_blocks(graph, part, part.program.config.block_in):
        return False
    operands = [one for one in part.layer.operands if one.tensor == name and not one.generated]
    order = byte_order(written) if isinstance(written, ImageTensor) else written
    for operand in operands:
        if operand.copies > 1 and (
            order is None or loads_of_copies(graph, part.program, operand, order) is None
        ):
            return False
    names = [operand.name for operand in operands if operand.copies == 1]
    tensors = [one for one in part.program.tensors if one.name in names]
    if isinstance(written, ByteOrder):
        return all(map(written.is_order_of, tensors))
    return all(
        one.dtype == written.dtype
        and one.preparation is None
        and one.widening is None
        and same_packing(one, written)
        for one in tensors
    )


def _sums_incomplete_blocks(graph: Graph, part: NetworkPart, block: int) -> bool:
    """Whether a product of two tensors ends inside a block, so that the host must pad both of them.

    A layer may leave any values in the lanes after the last channel. Constant weights are zero there.
    """
    operator = part.fused.main.operator
    if not isinstance(operator, MatMul):
        return False
    weights = graph.operands(part.fused.main)[1]
    return weights.name not in graph.constants and operator.depth(weights) % block != 0
