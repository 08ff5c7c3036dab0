"""The sources of moved values: bytes of the tensors that layers write.

Moves are evaluated on addresses. For example, a nearest Resize by 2 of a row with the addresses 0, 16 has the
addresses 0, 0, 16, 16.
"""

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from accel.base.fast_unique import distinct
from accel.graph.elementwise_operators import SAME_BYTES
from accel.graph.graph import Graph
from accel.graph.graph_tensor import QUANTIZED
from accel.graph.movement_operators import (
    Concat,
    DepthToSpace,
    Slice,
    SpaceToDepth,
    Take,
    Transpose,
)
from accel.network.byte_orders import ByteOrder, byte_order
from accel.network.network_part import NetworkPart

_Integers = npt.NDArray[np.int64]
MOVES = Concat | DepthToSpace | Slice | SpaceToDepth | Take | Transpose
"""Moves that layers can execute."""
_ROOT_SHIFT = 40
"""An address is the number of the tensor that a layer writes, then 40 bits of the byte in it."""


class ElementSources(Struct, frozen=True, kw_only=True):
    """The elements of a tensor.

    Attributes:
        root: int64[elements], the number of the tensor that holds each.
        element: int64[elements], the position in it.
    """

    root: _Integers
    element: _Integers


class MovedValues:
    """Addresses of a chain's values.

    Attributes:
        roots: tensors that layers write, by number.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.roots: list[str] = []
        self._layers: dict[str, NetworkPart] = {}
        self._moves: dict[str, NetworkPart] = {}
        self._known: dict[str, _Integers | None] = {}

    def add(self, part: NetworkPart) -> None:
        if part.on_machine:
            self._layers[part.fused.output] = part
        elif isinstance(part.fused.main.operator, MOVES | SAME_BYTES):
            self._moves[part.fused.output] = part

    def _addresses_of_layer(self, name: str) -> _Integers | None:
        part, tensor = self._layers[name], self._graph.tensors[name]
        order = byte_order(part.output)
        if order is None or part.output.dtype not in QUANTIZED:
            return None
        addresses = np.zeros(tensor.size + 1, dtype=np.int64)
        addresses[order.numbers] = np.arange(len(order.numbers)) + (len(self.roots) << _ROOT_SHIFT)
        self.roots.append(name)
        return addresses[1:].reshape(tensor.shape)

    def addresses(self, name: str) -> _Integers | None:
        """Return None if no layer of the chain writes the tensor."""
        if name in self._layers and name not in self._known:
            self._known[name] = self._addresses_of_layer(name)
        if name in self._known or name not in self._moves:
            return self._known.get(name)
        node, found = self._moves[name].fused.main, list[_Integers]()
        for one in node.inputs:
            addresses = self.addresses(one)
            if addresses is None:
                return None
            found.append(addresses)
        out = self._graph.tensors[name]
        moved: _Integers = node.operator.evaluate(self._graph.operands(node), found, out)
        self._known[name] = moved
        return moved

    def elements(self, name: str, order: ByteOrder, element_bytes: int) -> ElementSources | None:
        """Return None if an element would mix several ones."""
        addresses = self.addresses(name)
        if addresses is None or len(order.numbers) % element_bytes:
            return None
        lanes = order.numbers.reshape(-1, element_bytes)
        has_value = lanes > 0
        if not has_value.any(axis=1).all():
            return None
        lane_addresses = np.concatenate([np.zeros(1, dtype=np.int64), addresses.reshape(-1)])[lanes]
        first = has_value.argmax(axis=1)
        begins = lane_addresses[np.arange(len(lanes)), first] - first
        expected = begins[:, None] + np.arange(element_bytes)
        roots, begin_bytes = begins >> _ROOT_SHIFT, begins & ((1 << _ROOT_SHIFT) - 1)
        if (lane_addresses != expected)[has_value].any() or (begin_bytes % element_bytes).any():
            return None
        for number in distinct(roots):
            # padding must come from padding, as layers do not write it
            whole_order = byte_order(self._layers[self.roots[number]].output)
            assert whole_order is not None
            whole = whole_order.numbers.reshape(-1, element_bytes)
            chosen = roots == number
            if ((whole[begin_bytes[chosen] // element_bytes] > 0) != has_value[chosen]).any():
                return None
        return ElementSources(root=roots, element=begin_bytes // element_bytes)
