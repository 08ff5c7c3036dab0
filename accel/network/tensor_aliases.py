"""Aliases: tensors inside other tensors, so that Concat and Slice move no data.

Layers write the operands of a Concat next to each other. A Slice is read where it lies. For example, channels
0..31 of 64 are the first two blocks of 16, which layers can read as a tensor of 32 channels.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from accel.core.config import Config
from accel.graph.graph import Graph
from accel.graph.graph_tensor import QUANTIZED
from accel.graph.movement_operators import Concat, Slice
from accel.image.image_tensor import ImageTensor
from accel.network.placement import NetworkPart
from accel.run.session_tensors import value_numbers

_Numbers = npt.NDArray[np.int32]


@dataclass(frozen=True, kw_only=True)
class ByteOrder:
    """The value in each byte of DRAM.

    Attributes:
        numbers: index of each byte's value, from 1 in row-major order, or 0 for none.
    """

    dtype: str
    numbers: _Numbers

    def is_order_of(self, tensor: ImageTensor) -> bool:
        if tensor.dtype != self.dtype or tensor.preparation is not None:
            return False
        expected = value_numbers(tensor)
        return expected is not None and np.array_equal(expected, self.numbers)


def byte_order(tensor: ImageTensor) -> ByteOrder | None:
    """Return the order of a program's tensor, or None if the host prepares it."""
    numbers = value_numbers(tensor)
    return None if numbers is None else ByteOrder(dtype=tensor.dtype, numbers=numbers)


def may_alias(graph: Graph, part: NetworkPart) -> bool:
    """Whether a part is a Concat or a Slice of integers."""
    is_integer = graph.tensors[part.fused.output].dtype in QUANTIZED
    return is_integer and isinstance(part.fused.main.operator, Concat | Slice)


def alias_order(
    graph: Graph, part: NetworkPart, sources: Sequence[ByteOrder | None]
) -> tuple[ByteOrder, int] | None:
    """Return the byte order of a Concat of adjacent operands, or of a Slice in its operand.

    Args:
        sources: orders of the operands, None outside of DRAM.

    Returns:
        The order, and the bytes before a Slice. None if it is not contiguous, or an operand is outside of
        DRAM.
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
    assert isinstance(operator, Slice)
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


@dataclass
class Aliases:
    """Which tensors lie inside others.

    Attributes:
        inside: the tensor that contains each alias, and the bytes before it.
        orders: byte orders of concatenated, sliced or repeated tensors.
    """

    inside: dict[str, tuple[str, int]] = field(default_factory=dict)
    nbytes: dict[str, int] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    orders: dict[str, ByteOrder | None] = field(default_factory=dict)

    def location(self, name: str) -> tuple[str, int]:
        """Return the outermost tensor and the bytes before."""
        offset = 0
        while name in self.inside:
            name, bytes_before = self.inside[name]
            offset += bytes_before
        return name, offset


def find_aliases(
    graph: Graph, parts: Sequence[NetworkPart], needed: Collection[str], config: Config
) -> Aliases:
    """Find out where the tensors of a chain can lie.

    Args:
        config: the machine. Tensors lie at multiples of its elements.
    """
    element = max(config.inp_element_bytes, config.out_element_bytes, config.res_element_bytes)
    aliases = Aliases()
    needs_orders = any(
        may_alias(graph, part)
        if part.layer is None
        else any(operand.copies > 1 for operand in part.layer.operands)
        for part in parts
    )
    for part in parts:
        if part.on_machine:
            aliases.orders[part.fused.output] = byte_order(part.output) if needs_orders else None
        elif may_alias(graph, part):
            _add_alias(aliases, graph, part, element)
        else:
            out, source = part.fused.output, part.fused.inputs[0]
            aliases.orders[out] = aliases.orders.get(source)
            aliases.inside[out] = (source, 0)
    # outside of the chain, a tensor must be all that one layer has written
    written = {part.fused.output for part in parts if part.on_machine}
    incomplete = {aliases.location(name)[0] for name in needed if not _is_complete(aliases, written, name)}
    aliases.failed |= {
        part.fused.output
        for part in parts
        if not part.on_machine
        and may_alias(graph, part)
        and aliases.location(part.fused.output)[0] in incomplete
    }
    return aliases


def _add_alias(aliases: Aliases, graph: Graph, part: NetworkPart, element: int) -> None:
    out, sources, orders = part.fused.output, part.fused.inputs, aliases.orders
    alias = alias_order(graph, part, [orders.get(name) for name in part.fused.main.inputs])
    if alias is None or not _is_possible(aliases, part, alias[1], element):
        aliases.failed.add(out)
        aliases.inside[out] = (sources[0], 0)
        return
    orders[out], start = alias
    if isinstance(part.fused.main.operator, Slice):
        aliases.inside[out] = (sources[0], start)
        return
    nbytes = 0
    for name in sources:
        order = orders[name]
        assert order is not None
        aliases.inside[aliases.location(name)[0]] = (out, nbytes)
        nbytes += len(order.numbers)
    aliases.nbytes[out] = nbytes


def _is_complete(aliases: Aliases, written: Collection[str], name: str) -> bool:
    root, offset = aliases.location(name)
    own, whole = aliases.orders.get(name), aliases.orders.get(root)
    if root not in written or own is None or whole is None:
        return root in written
    return not offset and len(own.numbers) == len(whole.numbers)


def _is_possible(aliases: Aliases, part: NetworkPart, offset: int, element: int) -> bool:
    """Whether the operands of a Concat or the result of a Slice can lie where the alias needs them."""
    node, orders = part.fused.main, aliases.orders
    if isinstance(node.operator, Slice):
        return offset % element == 0
    locations = [aliases.location(name) for name in node.inputs]
    if len({name for name, _ in locations}) < len(locations) or any(before for _, before in locations):
        return False
    for name, (root, _) in zip(node.inputs, locations, strict=True):
        own, whole = orders.get(name), orders.get(root)
        if own is None or whole is None or len(own.numbers) != len(whole.numbers):
            return False
        if len(own.numbers) % element:
            return False
    return True
