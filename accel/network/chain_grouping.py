"""Which layers can be in one chain: those that read tensors as other layers pack them."""

from collections.abc import Sequence

from accel.core.config import Config
from accel.graph.graph import Graph
from accel.graph.product_operators import MatMul
from accel.image.image_tensor import ImageTensor
from accel.network.byte_orders import ByteOrder, byte_order
from accel.network.network_part import NetworkPart
from accel.network.repeated_operands import loads_of_copies
from accel.network.tensor_aliases import MovePlanner, may_alias
from accel.run.session_tensors import same_packing

_Written = ImageTensor | ByteOrder


class _WrittenTensors:
    def __init__(self, graph: Graph, parts: Sequence[NetworkPart], config: Config) -> None:
        self._graph = graph
        self._planner = MovePlanner(graph, parts, config)
        self._written: dict[str, _Written] = {}

    def repacked(self, part: NetworkPart) -> list[str]:
        return [
            name
            for name in part.fused.inputs
            if name in self._written and not _fits(self._graph, self._written[name], part, name)
        ]

    def add(self, part: NetworkPart) -> None:
        if not part.on_machine and may_alias(self._graph, part):
            plan = self._planner.plan(part)
            found: _Written | None = None if plan is None else plan.order
        else:
            self._planner.add_layer(part)
            source = self._written.get(part.fused.main.inputs[0]) if part.moves_nothing else None
            found = part.output if part.on_machine else source
        if found is not None:
            self._written[part.fused.output] = found


def split_into_chains(
    graph: Graph, parts: Sequence[NetworkPart], config: Config
) -> list[tuple[NetworkPart, ...]]:
    groups: list[list[NetworkPart]] = [[]]
    written = _WrittenTensors(graph, parts, config)
    for part in parts:
        if written.repacked(part):
            groups.append([])
            written = _WrittenTensors(graph, parts, config)
        groups[-1].append(part)
        written.add(part)
    return [tuple(group) for group in groups if group]


def repacked_reads(graph: Graph, parts: Sequence[NetworkPart], config: Config) -> set[tuple[str, str]]:
    """For example, ``{("conv1", "conv2")}``: ``conv2`` reads ``conv1`` repacked, and is in another chain."""
    written = _WrittenTensors(graph, parts, config)
    found: set[tuple[str, str]] = set()
    for part in parts:
        found |= {(name, part.fused.output) for name in written.repacked(part)}
        if part.on_machine or part.moves_nothing or may_alias(graph, part):
            written.add(part)
    return found


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
    """Whether a product of two tensors ends inside a block, so that the host must pad both.

    A layer may leave any values in lanes after the last channel. Constant weights are zero there.
    """
    operator = part.fused.main.operator
    if not isinstance(operator, MatMul):
        return False
    weights = graph.operands(part.fused.main)[1]
    return weights.name not in graph.constants and operator.depth(weights) % block != 0
