"""Groups of tensors that must have one channel map.

Elementwise operators, pools and depthwise convolutions compute a lane from the same lane of their operands,
so their tensors form a group. Convolutions and matrix products relate no groups, because their weights can be
permuted.
"""

from collections.abc import Iterator

from msgspec import Struct

from accel.graph.elementwise_operators import (
    Add,
    ChannelTable,
    Clip,
    Function,
    Mul,
    Quantize,
    Reinterpret,
    Requantize,
    Softmax,
    Table,
)
from accel.graph.foreign_operator import Foreign
from accel.graph.graph import Graph, Node
from accel.graph.graph_operator import Operator
from accel.graph.graph_tensor import QUANTIZED, Tensor
from accel.graph.movement_operators import (
    Concat,
    DepthToSpace,
    Identity,
    Pad,
    Slice,
    SpaceToDepth,
    Take,
)
from accel.graph.pooling_operators import AveragePool, GlobalAveragePool, MaxPool
from accel.graph.product_operators import Conv, ConvTranspose, MatMul

CHANNEL_AXIS = 1
UNARY = Clip | Function | Identity | Reinterpret | Requantize | Table
POOLS = AveragePool | GlobalAveragePool | MaxPool
_ON_MACHINE = (
    Conv | ConvTranspose | MatMul | Add | Mul | POOLS | Clip | Requantize | Function | Table | ChannelTable
)


def has_channels(tensor: Tensor) -> bool:
    """Whether a tensor can have a channel map: (N, C, H, W) of bytes with one scale."""
    quantization = tensor.quantization
    return (
        len(tensor.shape) == 4
        and tensor.dtype in QUANTIZED
        and quantization is not None
        and quantization.is_per_tensor
    )


class ChannelMove(Struct, frozen=True, kw_only=True):
    """``indices`` of a Slice or Take are the operand's channel for each channel of the result."""

    node: Node
    indices: tuple[int, ...] | None = None


def channel_move(graph: Graph, node: Node) -> ChannelMove | None:
    """Return a node as a move of channels, if it is one."""
    operator, out = node.operator, graph.tensors[node.output]
    operands = graph.operands(node)
    if not all(map(has_channels, (*operands, out))) or any(name in graph.constants for name in node.inputs):
        return None
    others = [axis for axis in range(4) if axis != CHANNEL_AXIS]
    if isinstance(operator, DepthToSpace | SpaceToDepth):
        return ChannelMove(node=node)
    if isinstance(operator, Concat) and operator.axis == CHANNEL_AXIS:
        return ChannelMove(node=node)
    if isinstance(operator, Pad) and operator.mode == "constant":
        moves_channels = operator.begin[CHANNEL_AXIS] or operator.end[CHANNEL_AXIS]
        is_pure = not any(operator.begin[axis] or operator.end[axis] for axis in others)
        return ChannelMove(node=node) if moves_channels and is_pure else None
    if isinstance(operator, Slice):
        is_pure = all(out.shape[axis] == operands[0].shape[axis] for axis in others)
        start, count, step = (one[CHANNEL_AXIS] for one in (operator.starts, operator.sizes, operator.steps))
        is_pure = is_pure and all(operator.steps[axis] == 1 for axis in others)
        if not is_pure or out.shape == operands[0].shape:
            return None
        return ChannelMove(node=node, indices=tuple(range(start, start + count * step, step)))
    if isinstance(operator, Take) and operator.axis == CHANNEL_AXIS:
        return ChannelMove(node=node, indices=operator.indices)
    return None


def tied_tensors(graph: Graph, node: Node) -> tuple[str, ...]:
    """Return operands and result if a node computes each lane from the same lanes."""
    operator, out = node.operator, graph.tensors[node.output]
    varying = [name for name in node.inputs if name not in graph.constants]
    tensors = [out, *(graph.tensors[name] for name in varying)]
    if not varying or not all(map(has_channels, tensors)):
        return ()
    if any(one.shape[CHANNEL_AXIS] != out.shape[CHANNEL_AXIS] for one in tensors):
        return ()
    if isinstance(operator, Conv):
        is_tied = is_depthwise(graph, node) and has_constant_weights(graph, node)
    elif isinstance(operator, Add | Mul):
        is_tied = out.shape[CHANNEL_AXIS] > 1 and all(
            is_constant_per_channel(graph.tensors[name], out)
            for name in node.inputs
            if name in graph.constants
        )
    elif isinstance(operator, ChannelTable):
        is_tied = operator.axis == CHANNEL_AXIS or has_one_row(graph, node)
    elif isinstance(operator, Slice | Take | Pad | Concat):
        is_tied = channel_move(graph, node) is None and _moves_pixels(operator)
        is_tied = is_tied and len(varying) == len(node.inputs)
    else:
        is_tied = isinstance(operator, UNARY | POOLS)
    return (*varying, node.output) if is_tied else ()


def is_made_by_host(graph: Graph, name: str) -> bool:
    """Whether a tensor is an input, or the result of an operator that no machine has."""
    node = graph.producers.get(name)
    return node is None or isinstance(node.operator, Quantize | Foreign | Softmax)


def is_depthwise(graph: Graph, node: Node) -> bool:
    data, weights = graph.operands(node)[:2]
    assert isinstance(node.operator, Conv)
    return node.operator.groups == data.shape[CHANNEL_AXIS] == weights.shape[0]


def has_one_row(graph: Graph, node: Node) -> bool:
    return graph.tensors[node.inputs[1]].shape[0] == 1


def has_constant_weights(graph: Graph, node: Node) -> bool:
    return all(name in graph.constants for name in node.inputs[1:])


def is_constant_per_channel(tensor: Tensor, out: Tensor) -> bool:
    shape = (1,) * (4 - len(tensor.shape)) + tensor.shape
    has_one_scale = tensor.quantization is None or tensor.quantization.is_per_tensor
    return has_one_scale and shape in ((1, 1, 1, 1), (1, out.shape[CHANNEL_AXIS], 1, 1))


def _moves_pixels(operator: Slice | Take | Pad | Concat) -> bool:
    if isinstance(operator, Take | Concat):
        return operator.axis != CHANNEL_AXIS
    if isinstance(operator, Pad):
        return not operator.begin[CHANNEL_AXIS] and not operator.end[CHANNEL_AXIS]
    return operator.steps[CHANNEL_AXIS] == 1


class ChannelGroups:
    """``moves`` are the moves of channels between active groups, by output."""

    def __init__(self, graph: Graph, block: int) -> None:
        self._graph = graph
        self._block = block
        self._parent: dict[str, str] = {}
        for node in graph.nodes:
            first, *others = tied_tensors(graph, node) or ("",)
            for other in others:
                self._parent[self.of(other)] = self.of(first)
        found = (channel_move(graph, node) for node in graph.nodes)
        self.moves: dict[str, ChannelMove] = {one.node.output: one for one in found if one is not None}
        self._active = self._find_active()
        self.moves = {name: one for name, one in self.moves.items() if self.is_active(name)}

    def of(self, name: str) -> str:
        """Return the tensor that represents the group."""
        while name in self._parent:
            above = self._parent[name]
            if above == name:
                break
            name = above
        return name

    def is_active(self, name: str) -> bool:
        return self.of(name) in self._active

    def moves_into(self, group: str) -> Iterator[ChannelMove]:
        return (one for name, one in self.moves.items() if self.of(name) == group)

    def reads_by(self, group: str, kind: type[Operator]) -> Iterator[Node]:
        for node in self._graph.nodes:
            if isinstance(node.operator, kind) and any(self.of(name) == group for name in node.inputs):
                yield node

    def tensors_of(self, group: str) -> Iterator[str]:
        return (name for name in self._graph.tensors if self.of(name) == group)

    def _find_active(self) -> set[str]:
        """Return the groups around moves that split blocks and whose result the machine reads."""
        read = set(self._read_on_machine())
        active: set[str] = set()
        changed = True
        while changed:
            changed = False
            for name, move in self.moves.items():
                groups = {self.of(one) for one in (*move.node.inputs, name)}
                splits_for_machine = self.of(name) in read and self._splits_block(move)
                if (splits_for_machine or not active.isdisjoint(groups)) and not groups <= active:
                    active |= groups
                    changed = True
        return active

    def _read_on_machine(self) -> Iterator[str]:
        groups: set[str] = set()
        for node in reversed(self._graph.nodes):
            is_move = node.output in self.moves and self.of(node.output) in groups
            tensors = (*node.inputs, node.output)
            is_on_machine = isinstance(node.operator, _ON_MACHINE) and all(
                self._graph.tensors[name].dtype != "float32" for name in tensors
            )
            if is_move or is_on_machine:
                groups.update(map(self.of, node.inputs))
        return iter(groups)

    def _splits_block(self, move: ChannelMove) -> bool:
        sizes = [one.shape[CHANNEL_AXIS] for one in self._graph.operands(move.node)]
        operator = move.node.operator
        if isinstance(operator, Concat):
            by_host = [is_made_by_host(self._graph, name) for name in move.node.inputs]
            return any(size % self._block for size in sizes[:-1]) or len(set(by_host)) > 1
        if isinstance(operator, SpaceToDepth):
            return sizes[0] % self._block > 0
        if isinstance(operator, DepthToSpace):
            return not operator.columns_first or sizes[0] // operator.block**2 % self._block > 0
        if move.indices is None:
            return True
        first, stop = move.indices[0], move.indices[-1] + 1
        is_whole = first % self._block == 0 and (stop % self._block == 0 or stop == sizes[0])
        return move.indices != tuple(range(first, stop)) or not is_whole
