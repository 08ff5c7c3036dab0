"""Channel maps for the tensors of a graph, so that moves between channels move no data.

docs/explain/networks.md has the reasons, and a Concat of 20 and 16 channels as example.
"""

import numpy as np
from msgspec import Struct

from accel.base.records import replace
from accel.core.config import Config
from accel.graph.elementwise_operators import Add, ChannelTable, Mul
from accel.graph.graph import Graph, Node
from accel.graph.graph_builder import Builder
from accel.graph.graph_operator import Operator
from accel.graph.graph_tensor import Quantization, Tensor
from accel.graph.movement_operators import Concat, DepthToSpace, Pad, Reshape, Slice, SpaceToDepth, Take
from accel.graph.product_operators import Conv, ConvTranspose, MatMul, Product
from accel.network.channel_costs import POINT
from accel.network.channel_groups import (
    CHANNEL_AXIS,
    POOLS,
    ChannelGroups,
    ChannelMove,
    has_constant_weights,
    has_one_row,
    is_made_by_host,
    tied_tensors,
)
from accel.network.channel_maps import UNUSED, ZERO, ChannelMap, common
from accel.network.channel_targets import ChannelTargets
from accel.network.lane_constants import LaneConstants
from accel.network.move_choice import MoveChoice


def assign_channel_maps(graph: Graph, config: Config) -> tuple[Graph, tuple[MoveChoice, ...]]:
    """Return the new graph, and the compared forms of moves.

    The graph stays the same if no move splits a block, or if blocks of inputs and outputs differ.
    """
    if config.block_in != config.block_out:
        return graph, ()
    groups = ChannelGroups(graph, config.block_out)
    if not groups.moves:
        return graph, ()
    targets = ChannelTargets(graph, groups, config)
    new = _Rewriting(graph, groups, targets).graph()
    return new, tuple(targets.choices)


class _LaneTensor(Struct, frozen=True, kw_only=True):
    name: str
    map: ChannelMap


class _Rewriting:
    def __init__(self, graph: Graph, groups: ChannelGroups, targets: ChannelTargets) -> None:
        self._old = graph
        self._groups = groups
        self._targets = targets
        self._new = Builder.like(graph)
        self._constants = LaneConstants(graph, self._new)
        self._consumers = graph.consumers()
        self._in_lanes: dict[str, _LaneTensor] = {}
        self._plain = {*graph.inputs, *graph.constants}
        """Tensors that the new graph also has under their old names."""

    def graph(self) -> Graph:
        for node in self._old.nodes:
            self._rewrite(node)
        for name in self._old.outputs:
            self._as_plain(name)
        new = self._new.graph(self._old.name, self._old.outputs)
        return replace(new, tail=self._old.tail, states=self._old.states)

    # --- nodes -----------------------------------------------------------------------------------

    def _rewrite(self, node: Node) -> None:
        is_active = [self._groups.is_active(name) for name in (*node.inputs, node.output)]
        is_matrix = node.inputs[0] in self._in_lanes and len(self._old.tensors[node.inputs[0]].shape) == 2
        if is_matrix and isinstance(node.operator, MatMul):
            self._rewrite_product(node)
        elif not any(is_active):
            self._emit_as_before(node)
        elif node.output in self._groups.moves:
            self._rewrite_move(self._groups.moves[node.output])
        elif tied_tensors(self._old, node):
            self._rewrite_tied(node)
        elif _permutes_weights(self._old, node):
            self._rewrite_convolution(node)
        elif self._is_channel_matrix(node):
            self._rewrite_reshape(node)
        else:
            for name in node.inputs:
                self._as_plain(name)
            self._emit_as_before(node)

    def _emit_as_before(self, node: Node) -> None:
        out = self._old.tensors[node.output]
        self._emit(node, node.operator, node.inputs, node.output, out)
        self._plain.add(node.output)

    def _emit(
        self, node: Node, operator: Operator, inputs: tuple[str, ...] | list[str], output: str, out: Tensor
    ) -> None:
        self._new.emit(
            operator, inputs, output, dtype=out.dtype, quantization=out.quantization, name=node.name
        )

    def _new_name(self, name: str, channel_map: ChannelMap) -> str:
        if channel_map.is_plain and name not in self._plain:
            self._plain.add(name)
            return name
        return self._new.fresh(f"{name}/lanes")

    def _rewrite_convolution(self, node: Node) -> None:
        data, weights, *bias = node.inputs
        operator, out = node.operator, self._old.tensors[node.output]
        maps: dict[int, ChannelMap] = {}
        if self._groups.is_active(data):
            source = self._lanes(data)
            data, maps[1] = source.name, source.map
        output = node.output
        if self._groups.is_active(output):
            target = self._targets.of(output)
            zeros = ChannelMap(tuple(max(lane, ZERO) for lane in target.lanes))
            maps[0] = zeros
            output = self._new_name(node.output, zeros)
            self._in_lanes[node.output] = _LaneTensor(name=output, map=zeros)
            bias = [self._constants.permuted(one, {0: zeros}) for one in bias]
            if isinstance(operator, Product):
                operator = operator.with_channels([max(lane, 0) for lane in zeros.lanes])
        else:
            self._plain.add(output)
        weights = self._constants.permuted(weights, maps)
        self._emit(node, operator, [data, weights, *bias], output, out)

    def _is_channel_matrix(self, node: Node) -> bool:
        shape, out = self._old.tensors[node.inputs[0]].shape, node.output
        return (
            isinstance(node.operator, Reshape)
            and self._old.tensors[out].shape == shape[:2]
            and out not in self._old.outputs
            and all(
                isinstance(one.operator, MatMul)
                and one.inputs[0] == out
                and has_constant_weights(self._old, one)
                and len(self._old.tensors[one.inputs[1]].shape) == 2
                for one in self._consumers[out]
            )
        )

    def _rewrite_reshape(self, node: Node) -> None:
        source, out = self._lanes(node.inputs[0]), self._old.tensors[node.output]
        sizes = (out.shape[0], len(source.map.lanes))
        output = self._new.fresh(f"{node.output}/lanes")
        self._in_lanes[node.output] = _LaneTensor(name=output, map=source.map)
        self._emit(node, Reshape(sizes=sizes), [source.name], output, out)

    def _rewrite_product(self, node: Node) -> None:
        source = self._in_lanes[node.inputs[0]]
        weights = self._constants.permuted(node.inputs[1], {0: source.map})
        inputs = [source.name, weights, *node.inputs[2:]]
        self._emit(node, node.operator, inputs, node.output, self._old.tensors[node.output])
        self._plain.add(node.output)

    def _rewrite_tied(self, node: Node) -> None:
        operator, out = node.operator, self._old.tensors[node.output]
        varying = [self._lanes(name) for name in node.inputs if name not in self._old.constants]
        found = common([one.map for one in varying])
        if isinstance(operator, Conv):
            operator = replace(operator, groups=len(found.lanes))
            operator = operator.with_channels([max(lane, 0) for lane in found.lanes])
            found = ChannelMap(tuple(max(lane, ZERO) for lane in found.lanes))
        elif isinstance(operator, Slice):
            operator = replace(operator, sizes=_with_channels(operator.sizes, len(found.lanes)))
        if not isinstance(operator, Conv | POOLS) and not self._keeps_zero(node):
            found = found.unused_instead_of_zero()
        inputs = [
            self._in_lanes[name].name
            if name not in self._old.constants
            else self._lane_constant(node, name, found)
            for name in node.inputs
        ]
        output = self._new_name(node.output, found)
        self._in_lanes[node.output] = _LaneTensor(name=output, map=found)
        self._emit(node, operator, inputs, output, out)

    def _lane_constant(self, node: Node, name: str, channel_map: ChannelMap) -> str:
        tensor = self._old.tensors[name]
        if isinstance(node.operator, ChannelTable):
            return name if has_one_row(self._old, node) else self._constants.permuted(name, {0: channel_map})
        if isinstance(node.operator, Conv):
            return self._constants.permuted(name, {0: channel_map})
        rank = len(tensor.shape)
        return name if tensor.size == 1 else self._constants.permuted(name, {rank - 3: channel_map})

    def _keeps_zero(self, node: Node) -> bool:
        operator, tensors = node.operator, [*self._old.operands(node), self._old.tensors[node.output]]
        if isinstance(operator, Slice | Take | Concat):
            return True
        if isinstance(operator, ChannelTable):
            # lanes without a channel have rows of zero points
            return not has_one_row(self._old, node) or self._has_zero_at_zero(node)
        zeros = [np.array(_zero_point(one), dtype=one.dtype).reshape(1, 1, 1, 1) for one in tensors]
        if isinstance(operator, Pad):
            return operator.mode != "constant" or operator.value == zeros[-1].item()
        single = [replace(one, shape=(1, 1, 1, 1)) for one in tensors]
        if isinstance(operator, Add | Mul) and any(name in self._old.constants for name in node.inputs):
            sizes = {name: self._old.tensors[name].size for name in node.inputs}
            zeros = [
                self._old.constants[name].reshape(1, 1, 1, 1)
                if name in self._old.constants and sizes[name] == 1
                else zero
                for name, zero in zip((*node.inputs, node.output), zeros, strict=True)
            ]
        result = operator.evaluate(single[:-1], zeros[:-1], single[-1])
        return bool((result == zeros[-1]).all())

    def _has_zero_at_zero(self, node: Node) -> bool:
        data, out = self._old.tensors[node.inputs[0]], self._old.tensors[node.output]
        entry = _zero_point(data) - np.iinfo(data.dtype).min
        return int(self._old.constants[node.inputs[1]][0, entry]) == _zero_point(out)

    # --- moves -----------------------------------------------------------------------------------

    def _rewrite_move(self, move: ChannelMove) -> None:
        node = move.node
        if self._is_between_plain(node):
            self._move_plain(move)
            return
        sources = [self._lanes(name) for name in node.inputs]
        if isinstance(node.operator, DepthToSpace):
            self._rewrite_depth_to_space(node, node.operator, sources[0])
            return
        found = self._targets.moved([one.map for one in sources], move)
        target = self._targets.of(node.output)
        if found is None or not found[0].agrees(target):
            self._move_by_product(move, sources, target)
            return
        moved, first = found
        is_slice = move.indices is not None or isinstance(node.operator, Pad)
        is_whole = is_slice and len(moved.lanes) == len(sources[0].map.lanes)
        if is_whole:
            self._in_lanes[node.output] = _LaneTensor(name=sources[0].name, map=moved)
            return
        operator = node.operator
        if is_slice:
            shape = self._new.tensors[sources[0].name].shape
            operator = Slice(
                starts=(0, first, 0, 0), sizes=_with_channels(shape, len(moved.lanes)), steps=(1, 1, 1, 1)
            )
        output = self._new_name(node.output, moved)
        self._in_lanes[node.output] = _LaneTensor(name=output, map=moved)
        out = self._old.tensors[node.output]
        self._emit(node, operator, [one.name for one in sources], output, out)

    def _rewrite_depth_to_space(self, node: Node, operator: DepthToSpace, source: _LaneTensor) -> None:
        squares = self._targets.squares(node)
        if not source.map.agrees(squares):
            source = self._product(node.inputs[0], source, None, 0, squares)
        count = operator.block**2
        lanes = len(source.map.lanes) // count
        pixels = [source.map.lanes[at * lanes : (at + 1) * lanes] for at in range(count)]
        out = self._targets.of(node.output)
        found = ChannelMap(
            tuple(
                channel if channel >= 0 else ZERO if all(one[lane] == ZERO for one in pixels) else UNUSED
                for lane, channel in enumerate(out.lanes)
            )
        )
        output = self._new_name(node.output, found)
        self._in_lanes[node.output] = _LaneTensor(name=output, map=found)
        tensor = self._old.tensors[node.output]
        self._emit(node, replace(operator, columns_first=True), [source.name], output, tensor)

    def _move_by_product(self, move: ChannelMove, sources: list[_LaneTensor], target: ChannelMap) -> None:
        """Channels of padding have a bias and no weight."""
        node = move.node
        source = sources[0]
        if isinstance(node.operator, Concat | SpaceToDepth):
            name = self._new.fresh(f"{node.output}/lanes")
            found = self._targets.moved([one.map for one in sources], move)
            assert found is not None
            joined = found[0]
            self._emit(
                node, node.operator, [one.name for one in sources], name, self._old.tensors[node.output]
            )
            source = _LaneTensor(name=name, map=joined)
            self._in_lanes[node.output] = self._product(node.output, source, None, 0, target)
            return
        indices, value = self._moved_channels(move, len(source.map.positions))
        self._in_lanes[node.output] = self._product(node.output, source, indices, value, target)

    def _lanes(self, name: str) -> _LaneTensor:
        if name not in self._in_lanes:
            source, target = self._plain_lanes(name), self._targets.of(name)
            # layers cannot store a tensor of the host where a Concat needs it
            is_joined = is_made_by_host(self._old, name) and any(
                isinstance(one.operator, Concat) for one in self._consumers[name]
            )
            is_there = target.agrees(source.map) and not is_joined
            self._in_lanes[name] = source if is_there else self._product(name, source, None, 0, target)
        return self._in_lanes[name]

    def _plain_lanes(self, name: str) -> _LaneTensor:
        channels = self._old.tensors[name].shape[CHANNEL_AXIS]
        return _LaneTensor(name=name, map=ChannelMap(tuple(range(channels))))

    def _is_between_plain(self, node: Node) -> bool:
        """Whether a move's operand is plain, and so must be its result."""
        needs_plain = [
            one.output not in self._groups.moves
            and not tied_tensors(self._old, one)
            and not _permutes_weights(self._old, one)
            for one in self._consumers[node.output]
        ]
        is_plain = node.inputs[0] in self._plain and node.inputs[0] not in self._in_lanes
        return is_plain and all(needs_plain) and isinstance(node.operator, Slice | Take | Pad)

    def _move_plain(self, move: ChannelMove) -> None:
        node, channels = move.node, self._old.tensors[move.node.output].shape[CHANNEL_AXIS]
        target = ChannelMap(tuple(range(channels)))
        indices, value = self._moved_channels(move, len(self._plain_lanes(node.inputs[0]).map.lanes))
        source = self._plain_lanes(node.inputs[0])
        self._product(node.output, source, indices, value, target, output=node.output)
        self._plain.add(node.output)

    def _moved_channels(self, move: ChannelMove, count: int) -> tuple[list[int], int]:
        """Return ``indices`` and ``value`` of :meth:`_product`."""
        operator = move.node.operator
        if not isinstance(operator, Pad):
            return list(move.indices or ()), 0
        out = self._old.tensors[move.node.output]
        begin = operator.begin[CHANNEL_AXIS]
        channels = range(out.shape[CHANNEL_AXIS])
        indices = [channel - begin if begin <= channel < begin + count else -1 for channel in channels]
        return indices, int(operator.value) - _zero_point(out)

    def _as_plain(self, name: str) -> None:
        if name in self._plain:
            return
        self._plain.add(name)
        source = self._in_lanes[name]
        channels = self._old.tensors[name].shape[CHANNEL_AXIS]
        if any(self._needs_plain_on_machine(one) for one in self._consumers[name]):
            self._product(name, source, None, 0, ChannelMap(tuple(range(channels))), output=name)
            return
        lanes = source.map.lanes_of(channels)
        operator: Operator = Take(axis=CHANNEL_AXIS, indices=lanes)
        if lanes == tuple(range(lanes[0], lanes[0] + channels)):
            sizes = _with_channels(self._old.tensors[name].shape, channels)
            operator = Slice(starts=(0, lanes[0], 0, 0), sizes=sizes, steps=(1, 1, 1, 1))
        self._new.emit(operator, [source.name], name, name=self._new.fresh(f"{name}/channels"))

    def _needs_plain_on_machine(self, node: Node) -> bool:
        is_product = isinstance(node.operator, Conv | ConvTranspose | MatMul)
        return is_product and not tied_tensors(self._old, node) and not _permutes_weights(self._old, node)

    def _product(
        self,
        name: str,
        source: _LaneTensor,
        indices: list[int] | None,
        value: int,
        target: ChannelMap,
        output: str | None = None,
    ) -> _LaneTensor:
        """Add a 1x1 convolution with scale 1 that moves channels to the lanes of a target.

        Args:
            indices: the source's channel for each channel of the target, or -1 for ``value``, minus the zero
                point. None keeps channels.
        """
        lanes = [lane if lane < 0 or indices is None else indices[lane] for lane in target.lanes]
        weights = np.zeros((len(lanes), len(source.map.lanes), 1, 1), dtype=np.int8)
        bias = np.zeros(len(lanes), dtype=np.int32)
        for row, (channel, lane) in enumerate(zip(lanes, target.lanes, strict=True)):
            if channel >= 0:
                weights[row, source.map.positions[channel]] = 1
            elif lane >= 0:
                bias[row] = value
        operands = [source.name, self._new.constant(self._new.fresh(f"{name}/move"), weights, _ONE)]
        if bias.any():
            operands.append(self._new.constant(self._new.fresh(f"{name}/fill"), bias))
        zeros = ChannelMap(tuple(max(lane, ZERO) for lane in target.lanes))
        tensor = self._old.tensors[name]
        moved = output or self._new_name(name, zeros)
        self._new.emit(
            Conv(windows=POINT, groups=1),
            operands,
            moved,
            dtype=tensor.dtype,
            quantization=tensor.quantization,
            name=self._new.fresh(f"{name}/move"),
        )
        return _LaneTensor(name=moved, map=zeros)


_ONE = Quantization(scale=(1.0,), zero=(0,))


def _permutes_weights(graph: Graph, node: Node) -> bool:
    operator = node.operator
    return isinstance(operator, Conv) and operator.groups == 1 and has_constant_weights(graph, node)


def _with_channels(shape: tuple[int, ...], channels: int) -> tuple[int, ...]:
    return (*shape[:CHANNEL_AXIS], channels, *shape[CHANNEL_AXIS + 1 :])


def _zero_point(tensor: Tensor) -> int:
    return 0 if tensor.quantization is None else tensor.quantization.zero[0]
