"""The predicted cost of a graph, for searches over many similar graphs.

The prediction repeats :meth:`accel.Network.build` up to the placement, and compiles no layer. Groups of fused
nodes are independent, so equal groups of different graphs are predicted once.
"""

import math
from collections.abc import Sequence

from msgspec import Struct

from accel.core.config import Config
from accel.graph.elementwise_operators import Add, ChannelTable, Clip, Function, Mul, Requantize, Table
from accel.graph.graph import Graph, Node
from accel.graph.graph_tensor import QUANTIZED
from accel.graph.movement_operators import Concat, Slice, Transpose
from accel.graph.product_operators import Conv, MatMul, Product
from accel.network.cost import ZERO_COST, Cost
from accel.network.fused_nodes import FusedNodes
from accel.network.fusion_candidates import FusionGroup
from accel.network.fusion_choice import FusionChooser
from accel.network.graph_preparation import prepare_graph
from accel.network.host_inputs import is_packed_by_host
from accel.network.lowering.diagonal_layer import is_matrix
from accel.network.network_part import NetworkPart, Where
from accel.network.partition import PartitionProblem
from accel.network.predicted_cost import host_cost, switch_cycles
from accel.network.tensor_aliases import may_alias
from accel.rewriting.content_numbers import ContentNumbers

_FUSED = Add | ChannelTable | Clip | Function | Mul | Requantize | Table
"""Operators that a layer can execute in addition to its product."""
MAX_CACHED_GRAPHS = 100_000


class _Placed(Struct, frozen=True):
    positions: tuple[int, ...]
    cost: Cost | None


class GraphCosts:
    """Caches predictions by content, for one machine."""

    def __init__(
        self,
        config: Config,
        *,
        approximate: bool = False,
        fusion: bool = True,
        numbers: ContentNumbers | None = None,
    ) -> None:
        self._config = config
        self._approximate = approximate
        self._fusion = fusion
        self._numbers = numbers or ContentNumbers()
        self._graphs: dict[int, Cost] = {}
        self._groups: dict[tuple[int, ...], tuple[_Placed, ...]] = {}

    def cycles(self, graph: Graph) -> int:
        return self.cost(graph).cycles

    def cost(self, graph: Graph) -> Cost:
        key = self._numbers.graph(graph)
        if key not in self._graphs:
            if len(self._graphs) >= MAX_CACHED_GRAPHS:
                self._graphs.clear()
            self._graphs[key] = self._predict(graph)
        return self._graphs[key]

    def node_cycles(self, graph: Graph, *, can_fuse: bool, is_exact: bool) -> int:
        (node,) = graph.nodes
        fused = FusedNodes(main=node)
        if fused.moves_nothing:
            return 0
        part = NetworkPart(fused=fused, where="host")
        if may_alias(graph, part):
            return self._move_cost(graph, node).cycles
        if can_fuse and isinstance(node.operator, _FUSED) and graph.tensors["result"].dtype in QUANTIZED:
            read = sum(graph.tensors[name].size for name in fused.inputs[1:] if name not in graph.constants)
            return -(-read // self._config.bus_bytes)
        if not is_exact and isinstance(node.operator, Product):
            return self._least_cycles(graph, node)
        key = _GroupContents(graph, self._numbers).of([node])
        if key not in self._groups:
            group = FusionGroup(alternatives=((fused,),))
            self._groups[key] = self._choose(graph, group, [node])
        (placed,) = self._groups[key]
        if placed.cost is not None:
            return placed.cost.cycles
        return host_cost(graph, fused, self._config, switches=True).cycles

    def _least_cycles(self, graph: Graph, node: Node) -> int:
        """Return a product's lower bound: the cycles of its multiplications or bytes."""
        config, operator = self._config, node.operator
        macs = graph.macs(node)
        if isinstance(operator, Conv | MatMul) and (isinstance(operator, MatMul) or operator.groups == 1):
            weights = graph.tensors[node.inputs[1]]
            depth, channels = operator.depth(weights), operator.channels(weights)
            taps = math.prod(operator.windows.kernel) if isinstance(operator, Conv) else 1
            macs = (
                macs
                // (depth * channels)
                * (_rounded(depth // taps, config.block_in) * taps * _rounded(channels, config.block_out))
            )
        # reads and writes have channels of their own
        read = sum(graph.tensors[one].size for one in {*node.inputs} if graph.tensors[one].dtype in QUANTIZED)
        per_cycle = config.batch * config.block_in * config.block_out
        nbytes = max(read, graph.tensors[node.output].size)
        return max(macs // per_cycle, nbytes // config.bus_bytes)

    def _predict(self, graph: Graph) -> Cost:
        prepared = prepare_graph(graph, self._config, fusion=self._fusion)
        graph = prepared.graph
        contents = _GroupContents(graph, self._numbers)
        total, parts = ZERO_COST, dict[str, NetworkPart]()
        for group in prepared.groups:
            nodes = [fused.main for fused in group.unfused]
            key = contents.of(nodes)
            if key not in self._groups:
                self._groups[key] = self._choose(graph, group, nodes)
            for placed in self._groups[key]:
                inside = [nodes[at] for at in placed.positions]
                fused = _fused(inside)
                if placed.cost is not None:
                    total += placed.cost
                where: Where = "host" if placed.cost is None else "machine"
                parts[inside[-1].output] = NetworkPart(fused=fused, where=where)
        ordered = [parts[node.output] for node in graph.nodes if node.output in parts]
        return total + self._host_cost(graph, ordered)

    def _choose(self, graph: Graph, group: FusionGroup, nodes: Sequence[Node]) -> tuple[_Placed, ...]:
        chooser = FusionChooser(graph, self._config, approximate=self._approximate)
        options, _ = chooser.choose(group)
        positions = {node.output: at for at, node in enumerate(nodes)}
        return tuple(
            _Placed(
                tuple(positions[node.output] for node in option.fused.nodes),
                None if option.layer is None else chooser.cost(option.fused),
            )
            for option in options
        )

    def _host_cost(self, graph: Graph, parts: Sequence[NetworkPart]) -> Cost:
        aliases = {part.fused.output for part in parts if not part.on_machine and may_alias(graph, part)}
        if self._config.batch > 1:
            aliases -= _between_pictures_and_matrices(graph, parts)
        problem = PartitionProblem(graph, parts, self._config, aliases, repacked=())
        solution, _, _ = problem.solve()
        total = ZERO_COST
        for at, part in enumerate(parts):
            if part.on_machine:
                continue
            if at in solution.in_place:
                total += self._move_cost(graph, part.fused.main)
            else:
                total += host_cost(graph, part.fused, self._config, switches=False)
        cycles = solution.programs * switch_cycles(self._config)
        return total + Cost(cycles=cycles, host_cycles=cycles, nbytes=0)

    def _move_cost(self, graph: Graph, node: Node) -> Cost:
        """A move is free if the result lies inside the operand, or the reverse."""
        if _is_contiguous(graph, node, self._config.block_out):
            return ZERO_COST
        nbytes = graph.tensors[node.output].size
        return Cost(cycles=-(-nbytes // self._config.bus_bytes), host_cycles=0, nbytes=nbytes)


def _between_pictures_and_matrices(graph: Graph, parts: Sequence[NetworkPart]) -> set[str]:
    """Return the results of Transposes from layers of pictures to matrix products, and back.

    With ``batch`` > 1, an element holds ``batch`` rows of a matrix, or one pixel of ``batch`` pictures. So
    layers cannot store whole elements elsewhere.
    """
    is_matrix_product: dict[str, bool] = {}
    """Whether the layer that computes a tensor, perhaps before moves, is a matrix product."""
    transposes: dict[str, set[str]] = {}
    """The Transposes between that layer and a tensor."""
    found: set[str] = set()
    for part in parts:
        fused = part.fused
        if part.on_machine:
            reads = isinstance(fused.main.operator, MatMul)
            for name in fused.inputs:
                if is_matrix_product.get(name, reads) is not reads:
                    found |= transposes[name]
            is_matrix_product[fused.output], transposes[fused.output] = reads, set()
        elif may_alias(graph, part) or fused.moves_nothing:
            first = next((name for name in fused.inputs if name in is_matrix_product), None)
            if first is not None:
                moved = {fused.output} if isinstance(fused.main.operator, Transpose) else set[str]()
                is_matrix_product[fused.output] = is_matrix_product[first]
                transposes[fused.output] = moved.union(*(transposes.get(one, ()) for one in fused.inputs))
    return found


def _is_contiguous(graph: Graph, node: Node, block: int) -> bool:
    """Whether a Concat or Slice moves whole blocks of channels of one picture."""
    operator, out = node.operator, graph.tensors[node.output]
    tensors = [*graph.operands(node), out]
    if len(out.shape) != 4 or out.shape[0] != 1:
        return False
    if isinstance(operator, Concat):
        return operator.axis == 1 and all(one.shape[1] % block == 0 for one in tensors[:-2])
    if not isinstance(operator, Slice):
        return False
    is_along = tensors[0].shape[2:] == out.shape[2:] and operator.steps[1] == 1
    return is_along and operator.starts[1] % block == 0


def _fused(nodes: Sequence[Node]) -> FusedNodes:
    """Roles of nodes do not matter for inputs and output."""
    first, *others = nodes
    return FusedNodes(main=first, clips=tuple(others))


class _GroupContents:
    def __init__(self, graph: Graph, numbers: ContentNumbers) -> None:
        self._graph = graph
        self._numbers = numbers
        self._sources: dict[str, tuple[bool, bool]] = {}

    def of(self, nodes: Sequence[Node]) -> tuple[int, ...]:
        graph, numbers = self._graph, self._numbers
        found: list[int] = []
        known: dict[str, int] = {}
        for node in nodes:
            found += (numbers.operator(node.operator), len(node.inputs))
            for name in node.inputs:
                if name not in known:
                    known[name] = len(known)
                    found.append(self._tensor(name))
                found.append(known[name])
            known[node.output] = len(known)
            found.append(numbers.type_of(graph.tensors[node.output]))
        return tuple(found)

    def _tensor(self, name: str) -> int:
        tensor, values = self._graph.tensors[name], self._graph.constants.get(name)
        if values is not None:
            return self._numbers.constant(tensor, values)
        return self._numbers.number((self._numbers.type_of(tensor), *self._source(name)))

    def _source(self, name: str) -> tuple[bool, bool]:
        if name not in self._sources:
            graph = self._graph
            self._sources[name] = is_packed_by_host(graph, name), is_matrix(graph, graph.tensors[name])
        return self._sources[name]


def _rounded(number: int, block: int) -> int:
    return -(-number // block) * block
