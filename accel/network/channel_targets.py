"""The channel maps of groups."""

from collections.abc import Sequence

from accel.core.config import Config
from accel.graph.graph import Graph, Node
from accel.graph.movement_operators import Concat, DepthToSpace, Pad, SpaceToDepth
from accel.graph.product_operators import Conv
from accel.network.channel_costs import ConvolutionCosts
from accel.network.channel_groups import CHANNEL_AXIS, ChannelGroups, ChannelMove
from accel.network.channel_maps import ZERO, ChannelMap, concatenated
from accel.network.move_choice import MoveChoice


class ChannelTargets:
    """Determines the channel map of each group on demand, by the faster form of each move.

    The first move into a group, or else a DepthToSpace that reads it, determines its map. All other groups
    have the plain map.
    """

    def __init__(self, graph: Graph, groups: ChannelGroups, config: Config) -> None:
        self.choices: list[MoveChoice] = []
        self._graph = graph
        self._groups = groups
        self._block = config.block_out
        self._costs = ConvolutionCosts(graph, config)
        self._targets: dict[str, ChannelMap] = {}

    def of(self, name: str) -> ChannelMap:
        group = self._groups.of(name)
        if group not in self._targets:
            channels = self._graph.tensors[name].shape[CHANNEL_AXIS]
            plain = ChannelMap.plain(channels, self._block)
            self._targets[group] = plain  # for a group that leads to itself
            for move in self._groups.moves_into(group):
                found = self._moved_target(move)
                if found is not None:
                    self._targets[group] = self._faster(group, move, found, plain)
                    return self._targets[group]
            for node in self._groups.reads_by(group, DepthToSpace):
                squares = self.squares(node)
                if self._takes_squares(group, node, squares, plain):
                    self._targets[group] = squares
                    break
        return self._targets[group]

    def _moved_target(self, move: ChannelMove) -> ChannelMap | None:
        if isinstance(move.node.operator, DepthToSpace):
            return None
        found = self.moved([self.of(one) for one in move.node.inputs], move)
        return None if found is None else found[0]

    def _faster(self, group: str, move: ChannelMove, holes: ChannelMap, plain: ChannelMap) -> ChannelMap:
        name = move.node.output
        if len(holes.lanes) <= len(plain.lanes):
            return holes
        cycles = [self._cycles_of_group(group, len(one.lanes)) for one in (holes, plain)]
        product = self._costs.of_product(name, len(holes.lanes), len(plain.lanes))
        if cycles[0] is None or cycles[1] is None or product is None:
            return holes
        forms = [
            (f"{holes}", cycles[0], holes),
            (f"{plain} after a 1x1 convolution", cycles[1] + product, plain),
        ]
        return self._choose(move.node, forms)

    def _choose(self, node: Node, forms: list[tuple[str, int, ChannelMap]]) -> ChannelMap:
        ranked = sorted(forms, key=lambda one: one[1])
        alternatives = tuple((form, cycles) for form, cycles, _ in ranked)
        self.choices.append(MoveChoice(name=node.name, alternatives=alternatives))
        return ranked[0][2]

    def _cycles_of_group(self, group: str, lanes: int) -> int | None:
        total = 0
        tensors = set(self._groups.tensors_of(group))
        for node in self._graph.nodes:
            if tensors.isdisjoint((*node.inputs, node.output)) or node.output in self._groups.moves:
                continue
            cycles: int | None = 0
            if isinstance(node.operator, Conv):
                is_read = node.inputs[0] in tensors
                is_written = node.output in tensors
                cycles = self._costs.of_node(node, lanes if is_read else None, lanes if is_written else None)
            elif node.output in tensors:
                cycles = self._costs.of_lanes(node.output, lanes)
            if cycles is None:
                return None
            total += cycles
        return total

    def squares(self, node: Node) -> ChannelMap:
        """Return the lanes that DepthToSpace needs: its result's for each pixel of a square."""
        assert isinstance(node.operator, DepthToSpace)
        out = self.of(node.output)
        channels = node.operator.source_channels(len(out.positions))
        return ChannelMap(
            tuple(
                int(square[lane]) if lane >= 0 else ZERO
                for square in channels.reshape(-1, channels.shape[-1])
                for lane in out.lanes
            )
        )

    def _takes_squares(self, group: str, node: Node, squares: ChannelMap, plain: ChannelMap) -> bool:
        wide, narrow = (self._cycles_of_group(group, len(one.lanes)) for one in (squares, plain))
        product = self._costs.of_product(node.inputs[0], len(plain.lanes), len(squares.lanes))
        if wide is None or narrow is None or product is None:
            return narrow is None
        forms = [
            (f"{squares}", wide, squares),
            (f"{squares} by a 1x1 convolution", narrow + product, plain),
        ]
        return self._choose(node, forms) is squares

    def moved(self, maps: Sequence[ChannelMap], move: ChannelMove) -> tuple[ChannelMap, int] | None:
        """Return the map of a move's result, and its first lane in the operand."""
        operator = move.node.operator
        if isinstance(operator, Concat):
            return concatenated(maps), 0
        if move.indices is not None:
            return maps[0].taken(move.indices, self._block)
        if isinstance(operator, SpaceToDepth):
            return maps[0].gathered_squares(operator.block**2), 0
        assert isinstance(operator, Pad)
        quantization = self._graph.tensors[move.node.output].required_quantization
        if operator.value != quantization.zero[0]:
            return None
        padded = maps[0].padded(operator.begin[CHANNEL_AXIS], operator.end[CHANNEL_AXIS])
        return None if padded is None else (padded, 0)
