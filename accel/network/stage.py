"""Stages: nodes of a graph that are carried out as one."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from accel.graph.elementwise import Clip
from accel.graph.graph import Graph, Node
from accel.graph.movement import Identity, Reshape

Bounds = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Nodes of which only the last one's result is needed elsewhere, in the order of the graph.

    Attributes:
        main: the node that the others go with: a convolution or a product, or any node that stands alone.
        pad: before it, padding with the number zero.
        clips: behind it, each with bounds.
        addition: behind these, the sum with another tensor.
        sum_clips: behind that, each with bounds.
    """

    main: Node
    pad: Node | None = None
    clips: tuple[Node, ...] = ()
    addition: Node | None = None
    sum_clips: tuple[Node, ...] = ()

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All of them."""
        around = (self.pad, self.main, *self.clips, self.addition, *self.sum_clips)
        return tuple(node for node in around if node is not None)

    @property
    def name(self) -> str:
        """What the stage is called: as its main node."""
        return self.main.name

    @property
    def output(self) -> str:
        """The tensor that it makes."""
        return self.nodes[-1].output

    @property
    def result(self) -> str:
        """The tensor that it makes before an addition."""
        return (self.main, *self.clips)[-1].output

    @property
    def inputs(self) -> tuple[str, ...]:
        """The tensors that it takes, each once."""
        inside = {node.output for node in self.nodes}
        return tuple(dict.fromkeys(name for node in self.nodes for name in node.inputs if name not in inside))

    @property
    def residual(self) -> str:
        """The tensor that its addition adds to its own result."""
        assert self.addition is not None
        left, right = self.addition.inputs
        return right if left == self.result else left

    @property
    def moves_nothing(self) -> bool:
        """Whether the values stay as they are, under another name or in another shape."""
        return isinstance(self.main.operator, Identity | Reshape)

    def operators(self) -> str:
        """Its nodes' kinds, as ``Conv + Clip + Add``."""
        return " + ".join(node.operator.kind for node in self.nodes)

    def macs(self, graph: Graph) -> int:
        """Nominal MACs of its nodes."""
        return sum(graph.macs(node) for node in self.nodes)


def bounds(clips: Iterable[Node], dtype: str) -> Bounds:
    """The least and the largest value that bounds one after another leave of an integer type."""
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
