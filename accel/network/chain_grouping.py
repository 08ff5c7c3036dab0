"""Which layers can be in one chain: those that read tensors as other layers have written them."""

from collections.abc import Sequence

from accel.core.config import Config
from accel.graph.graph import Graph
from accel.image.image_tensor import ImageTensor
from accel.network.byte_orders import ByteOrder, byte_order
from accel.network.placement import NetworkPart
from accel.network.repeated_operands import loads_of_copies
from accel.network.tensor_aliases import MovePlanner, may_alias
from accel.run.session_tensors import same_packing

_Written = ImageTensor | ByteOrder
"""How a tensor lies in DRAM: as a layer has written it, or as an alias."""


def split_into_chains(
    graph: Graph, parts: Sequence[NetworkPart], config: Config
) -> list[tuple[NetworkPart, ...]]:
    """Start a new group before each part that reads a tensor in another packing than it was written."""
    groups: list[list[NetworkPart]] = [[]]
    written: dict[str, _Written] = {}
    planner = MovePlanner(graph, parts, config)
    for part in parts:
        if any(name in written and not _fits(graph, written[name], part, name) for name in part.fused.inputs):
            groups.append([])
            written = {}
            planner = MovePlanner(graph, parts, config)
        groups[-1].append(part)
        out = part.fused.output
        if not part.on_machine and may_alias(graph, part):
            plan = planner.plan(part)
            found: _Written | None = None if plan is None else plan.order
        else:
            planner.add_layer(part)
            found = part.output if part.on_machine else written.get(part.fused.main.inputs[0])
        if found is not None:
            written[out] = found
    return [tuple(group) for group in groups if group]


def _fits(graph: Graph, written: _Written, part: NetworkPart, name: str) -> bool:
    if part.layer is None or part.program is None:
        return True
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
