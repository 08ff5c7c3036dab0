"""Aliases: tensors inside other tensors, so that moves take no pass over the data.

Layers write the operands of a Concat next to each other, and read a Slice in place. For example, channels
0..31 of 64 are the first two blocks of 16. Other tensors are stored again
(:mod:`accel.network.stored_copies`).
"""

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from accel.base.records import replace
from accel.core.config import Config
from accel.graph.graph import Graph
from accel.graph.graph_tensor import QUANTIZED
from accel.graph.movement_operators import Concat, Slice
from accel.image.image_tensor import ImageTensor
from accel.network.byte_orders import ByteOrder, ByteOrders, byte_order
from accel.network.moved_values import MOVES, MovedValues
from accel.network.network_part import NetworkPart
from accel.network.stored_copies import StoredCopy, find_copy, picture_tensor

_Numbers = npt.NDArray[np.int32]


def may_alias(graph: Graph, part: NetworkPart) -> bool:
    is_integer = graph.tensors[part.fused.output].dtype in QUANTIZED
    return is_integer and isinstance(part.fused.main.operator, MOVES)


def alias_order(
    graph: Graph, part: NetworkPart, sources: Sequence[ByteOrder | None]
) -> tuple[ByteOrder, int] | None:
    """Return the byte order of a Concat of adjacent operands, or of a Slice in its operand, and the bytes
    before the Slice.

    None if it is not contiguous, or an operand is outside of DRAM, with None in ``sources``.
    """
    known = [one for one in sources if one is not None]
    if len(known) < len(sources):
        return None
    operator = part.fused.main.operator
    operands, out = graph.operands(part.fused.main), graph.tensors[part.fused.output]
    if isinstance(operator, Concat):
        indices = np.arange(1, out.size + 1, dtype=np.int32).reshape(out.shape)
        ends = np.cumsum([one.shape[operator.axis] for one in operands])[:-1]
        pieces = np.split(indices, ends, axis=operator.axis)
        numbers = [_renumbered(one.numbers, piece) for one, piece in zip(known, pieces, strict=True)]
        return ByteOrder(dtype=out.dtype, numbers=np.concatenate(numbers)), 0
    if not isinstance(operator, Slice):
        return None
    source = np.arange(operands[0].size).reshape(operands[0].shape)
    selected = operator.evaluate(operands, [source], out)
    indices = np.zeros(operands[0].size, dtype=np.int32)
    indices[selected.reshape(-1)] = np.arange(1, out.size + 1)
    sliced = _renumbered(known[0].numbers, indices)
    inside = np.flatnonzero(sliced)
    first, stop = int(inside[0]), int(inside[-1]) + 1
    is_foreign = (sliced[first:stop] == 0) & (known[0].numbers[first:stop] != 0)
    return None if is_foreign.any() else (ByteOrder(dtype=out.dtype, numbers=sliced[first:stop]), first)


def _renumbered(numbers: _Numbers, new_numbers: _Numbers) -> _Numbers:
    return np.concatenate([np.zeros(1, dtype=np.int32), new_numbers.reshape(-1)])[numbers]


class MovePlan(Struct, frozen=True, kw_only=True):
    """How the result of a move lies in DRAM.

    Attributes:
        order: None for a result that is not stored, because only other moves read it.
        start: bytes before a Slice in its operand.
        copy: None for an alias.
    """

    order: ByteOrder | None
    start: int = 0
    copy: StoredCopy | None = None


class MovePlanner:
    """Plans the moves of a chain in order.

    Attributes:
        orders: of the chain's tensors, None outside of DRAM.
    """

    def __init__(self, graph: Graph, parts: Sequence[NetworkPart], config: Config) -> None:
        self._graph = graph
        self._config = config
        self._readers: dict[str, list[NetworkPart]] = {}
        for part in parts:
            for name in part.fused.inputs:
                self._readers.setdefault(name, []).append(part)
        self.moved = MovedValues(graph)
        self.orders = ByteOrders()

    def add_layer(self, part: NetworkPart) -> None:
        out = part.fused.output
        self.moved.add(part)
        if not part.on_machine:
            self.orders.alias(out, part.fused.inputs[0])
            return
        self.orders.add(out, part.output)

    def plan(self, part: NetworkPart, *, is_needed: bool = False) -> MovePlan | None:
        """Return None if the host must execute the move.

        Args:
            is_needed: whether the host or another chain reads the result.
        """
        out = part.fused.output
        self.moved.add(part)
        wanted, is_read = self._wanted(out)
        alias = alias_order(self._graph, part, [self._operand_order(name) for name in part.fused.main.inputs])
        if alias is not None and not is_needed and all(map(alias[0].is_order_of, wanted)):
            self.orders.add(out, alias[0])
            return MovePlan(order=alias[0], start=alias[1])
        if not is_read and not is_needed:
            return MovePlan(order=None) if self.moved.addresses(out) is not None else None
        copy = self.copy(out, wanted)
        if copy is None:
            return None
        assert copy.tensor is not None
        self.orders.add(out, copy.tensor)
        return MovePlan(order=byte_order(copy.tensor), copy=copy)

    def copy(self, name: str, wanted: Sequence[ImageTensor] = ()) -> StoredCopy | None:
        tensor = wanted[0] if wanted else picture_tensor(self._graph.tensors[name], self._config)
        order = None if tensor is None else byte_order(tensor)
        if tensor is None or order is None or not all(map(order.is_order_of, wanted)):
            return None
        written = replace(tensor, role="output")
        return find_copy(self.moved, name, order, self._config, tensor=written)

    def _wanted(self, name: str) -> tuple[list[ImageTensor], bool]:
        """Return the layouts in which layers read a tensor, and whether any reads it."""
        wanted, is_read = list[ImageTensor](), False
        for part in self._readers.get(name, ()):
            if part.layer is None or part.program is None:
                if part.moves_nothing:
                    below, is_below_read = self._wanted(part.fused.output)
                    wanted += below
                    is_read |= is_below_read
                continue
            operands = [one for one in part.layer.operands if one.tensor == name and not one.generated]
            names = {one.name for one in operands if one.copies == 1}
            wanted += [one for one in part.program.tensors if one.name in names]
            is_read |= bool(operands)
        return wanted, is_read

    def _operand_order(self, name: str) -> ByteOrder | None:
        """Return the order of an operand, or of its copy if it is not stored."""
        if self.orders.get(name) is not None or self.moved.addresses(name) is None:
            return self.orders.get(name)
        picture = picture_tensor(self._graph.tensors[name], self._config)
        return None if picture is None else byte_order(picture)

    def operand_copy(self, name: str) -> StoredCopy | None:
        order = self._operand_order(name)
        if order is None:
            return None
        return find_copy(self.moved, name, order, self._config)


class Aliases(Struct):
    """Tensors inside other tensors.

    Attributes:
        inside: the tensor that contains each alias, and the bytes before it.
        copies: by name of the buffer.
        unread: results whose own buffers nobody reads.
    """

    inside: dict[str, tuple[str, int]] = field(default_factory=dict)
    nbytes: dict[str, int] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    orders: ByteOrders = field(default_factory=ByteOrders)
    copies: dict[str, StoredCopy] = field(default_factory=dict)
    unread: set[str] = field(default_factory=set)

    def location(self, name: str) -> tuple[str, int]:
        offset = 0
        while name in self.inside:
            name, bytes_before = self.inside[name]
            offset += bytes_before
        return name, offset

    @property
    def copied(self) -> set[str]:
        return {name for copy in self.copies.values() for name in copy.positions}


def find_aliases(
    graph: Graph, parts: Sequence[NetworkPart], needed: Collection[str], config: Config
) -> Aliases:
    """Tensors lie at multiples of the machine's elements."""
    element = max(config.inp_element_bytes, config.out_element_bytes, config.res_element_bytes)
    aliases = Aliases()
    needs_orders = any(
        may_alias(graph, part)
        if part.layer is None
        else any(operand.copies > 1 for operand in part.layer.operands)
        for part in parts
    )
    planner = MovePlanner(graph, parts, config)
    aliases.orders = planner.orders
    used = _used_by_machine(parts)
    for part in parts:
        out = part.fused.output
        if part.on_machine:
            if needs_orders:
                planner.add_layer(part)
        elif not may_alias(graph, part):
            planner.add_layer(part)
            aliases.inside[out] = (part.fused.inputs[0], 0)
        elif out not in used:
            _fail(aliases, part)
        else:
            _add_move(aliases, planner, part, needed, element)
    # outside of the chain, a tensor must be all that one layer has written
    written = {part.fused.output for part in parts if part.on_machine} | aliases.copies.keys()
    incomplete = {aliases.location(name)[0] for name in needed if not _is_complete(aliases, written, name)}
    aliases.failed |= {
        part.fused.output
        for part in parts
        if not part.on_machine
        and may_alias(graph, part)
        and aliases.location(part.fused.output)[0] in incomplete
    }
    read = {name for part in parts if part.on_machine for name in part.fused.inputs}
    read_buffers = {aliases.location(name)[0] for name in (*read, *needed)}
    _remove_unread(aliases, parts, read_buffers)
    return aliases


def _remove_unread(aliases: Aliases, parts: Sequence[NetworkPart], read_buffers: Collection[str]) -> None:
    """Remove copies and copied results that no layer reads, and buffers that hold nothing else.

    For example, nobody reads a Concat before a DepthToSpace that is stored as copies.
    """

    def is_read(name: str) -> bool:
        return aliases.location(name)[0] in read_buffers

    aliases.copies = {name: copy for name, copy in aliases.copies.items() if is_read(name)}
    aliases.unread = {name for name in aliases.copied if not is_read(name)}
    stored = {part.fused.output for part in parts if part.on_machine} - aliases.unread
    used = {aliases.location(name)[0] for name in stored} | {*read_buffers}
    aliases.nbytes = {
        name: size for name, size in aliases.nbytes.items() if aliases.location(name)[0] in used
    }


def _used_by_machine(parts: Sequence[NetworkPart]) -> set[str]:
    used: set[str] = set()
    for part in reversed(parts):
        if part.on_machine or part.fused.output in used:
            used.update(part.fused.inputs)
    return used


def _fail(aliases: Aliases, part: NetworkPart) -> None:
    aliases.failed.add(part.fused.output)
    aliases.inside[part.fused.output] = (part.fused.inputs[0], 0)


def _add_move(
    aliases: Aliases, planner: MovePlanner, part: NetworkPart, needed: Collection[str], element: int
) -> None:
    out, node = part.fused.output, part.fused.main
    plan = planner.plan(part, is_needed=out in needed)
    if plan is None:
        _fail(aliases, part)
    elif plan.copy is not None:
        aliases.copies[out] = plan.copy
    elif isinstance(node.operator, Slice) and plan.order is not None:
        if plan.start % element == 0:
            aliases.inside[out] = (node.inputs[0], plan.start)
        else:
            _fail(aliases, part)
    elif isinstance(node.operator, Concat) and plan.order is not None:
        _add_concat(aliases, planner, part, needed, element)


def _add_concat(
    aliases: Aliases, planner: MovePlanner, part: NetworkPart, needed: Collection[str], element: int
) -> None:
    out, nbytes = part.fused.output, 0
    places: dict[str, tuple[str, int]] = {}
    copies: dict[str, StoredCopy] = {}
    for number, name in enumerate(part.fused.main.inputs):
        order = planner.orders.get(name)
        root = aliases.location(name)[0]
        buffer = root
        if root in places or root in needed or not _is_whole(aliases, name, element):
            copy = planner.operand_copy(name)
            if copy is None or copy.nbytes % element:
                _fail(aliases, part)
                return
            buffer = f"{name} in {out}, {number}"
            copies[buffer] = copy
            size = copy.nbytes
        else:
            assert order is not None
            size = len(order.numbers)
        places[buffer] = (out, nbytes)
        nbytes += size
    aliases.inside |= places
    aliases.copies |= copies
    aliases.nbytes[out] = nbytes


def _is_complete(aliases: Aliases, written: Collection[str], name: str) -> bool:
    root, offset = aliases.location(name)
    own, whole = aliases.orders.get(name), aliases.orders.get(root)
    if root not in written or own is None or whole is None:
        return root in written
    return not offset and len(own.numbers) == len(whole.numbers)


def _is_whole(aliases: Aliases, name: str, element: int) -> bool:
    root, before = aliases.location(name)
    own, whole = aliases.orders.get(name), aliases.orders.get(root)
    return (
        own is not None
        and whole is not None
        and not before
        and len(own.numbers) == len(whole.numbers)
        and len(own.numbers) % element == 0
    )
