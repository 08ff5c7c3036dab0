"""Fused nodes."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from accel.graph.elementwise_operators import SAME_BYTES, Clip
from accel.graph.graph import Graph, Node

Bounds = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class FusedNodes:
    """Nodes that are executed as one, in graph order. Only the last result is needed elsewhere.

    For example, ``Conv + Clip + Add`` has one node in ``clips`` and an Add as ``combination``.

    Attributes:
        main: a product such as a convolution, or any node that is not fused.
        pad: a Pad before it, with the value that stands for zero.
        lookup: a function of each byte of their result, looked up in a table.
        combination: the Add or Mul of their result and another tensor.
    """

    main: Node
    pad: Node | None = None
    clips: tuple[Node, ...] = ()
    lookup: Node | None = None
    combination: Node | None = None
    combination_clips: tuple[Node, ...] = ()

    @property
    def nodes(self) -> tuple[Node, ...]:
        candidates = (
            self.pad,
            self.main,
            *self.clips,
            self.lookup,
            self.combination,
            *self.combination_clips,
        )
        return tuple(node for node in candidates if node is not None)

    @property
    def name(self) -> str:
        return self.main.name

    @property
    def output(self) -> str:
        return self.nodes[-1].output

    @property
    def bounded(self) -> str:
        """The result before the look-up."""
        return (self.main, *self.clips)[-1].output

    @property
    def result(self) -> str:
        """The result before the combination."""
        return self.bounded if self.lookup is None else self.lookup.output

    @property
    def inputs(self) -> tuple[str, ...]:
        inside = {node.output for node in self.nodes}
        return tuple(dict.fromkeys(name for node in self.nodes for name in node.inputs if name not in inside))

    @property
    def residual(self) -> str:
        assert self.combination is not None
        left, right = self.combination.inputs
        return right if left == self.result else left

    @property
    def moves_nothing(self) -> bool:
        """Whether only name, shape or quantization change, not the bytes."""
        return isinstance(self.main.operator, SAME_BYTES)

    def operators(self) -> str:
        return " + ".join(node.operator.kind for node in self.nodes)

    def macs(self, graph: Graph) -> int:
        return sum(graph.macs(node) for node in self.nodes)


def bounds(clips: Iterable[Node], dtype: str) -> Bounds:
    limits = np.iinfo(dtype)
    least, most = int(limits.min), int(limits.max)
    for node in clips:
        assert isinstance(node.operator, Clip)
        low, high = (
            int(limit) if bound is None else int(bound)
            for bound, limit in ((node.operator.low, limits.min), (node.operator.high, limits.max))
        )
        least, most = (min(max(value, low), high) for value in (least, most))
    return least, most
