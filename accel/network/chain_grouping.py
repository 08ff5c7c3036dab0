"""Which layers can be in one chain: those that read tensors as other layers have written them."""

from collections.abc import Mapping, Sequence

from accel.graph.graph import Graph
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


def repacked_reads(graph: Graph, parts: Sequence[NetworkPart]) -> set[tuple[str, str]]:
    """Return the tensors that a layer reads in another packing than a layer has written, with its result.

    The two layers cannot be in one chain. For example, ``{("conv1", "conv2")}``.
    """
    written: dict[str, _Written] = {}
    found: set[tuple[str, str]] = set()
    for part in parts:
        found |= {
            (name, part.fused.output)
            for name in part.fused.inputs
            if name in written and not _fits(graph, written[name], part, name)
        }
        is_in_chain = part.on_machine or part.moves_nothing or may_alias(graph, part)
        out = None if not is_in_chain else part.output if part.on_machine else _alias(graph, part, written)
        if out is not None:
            written[part.fused.output] = out
    return found


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
