"""Rules, graphs and costs on which searches differ."""

from collections.abc import Callable

import numpy as np

from accel.graph.elementwise_operators import Clip
from accel.graph.graph import Graph
from accel.graph.movement_operators import Transpose
from accel.rewriting.instance_builder import InstanceBuilder
from accel.rewriting.movement_rules import TRANSPOSE_PAIR
from accel.rewriting.pattern import Match, Term, make, op, tensor
from accel.rewriting.rule import Rule

SWAP = (1, 0)


def clipped_transposes(rng: np.random.Generator) -> Graph:
    """A Clip of a transposed tensor, which is transposed back."""
    draw = InstanceBuilder(rng)
    x = draw.byte_input(draw.shape(2), "int8")
    y = draw.node(Transpose(permutation=SWAP), x)
    return draw.done(draw.node(Transpose(permutation=SWAP), draw.node(Clip(low=-5, high=20), y)))


def _transpose_first(match: Match) -> Term:
    transposed = make(match.operator("transpose", Transpose), match["x"])
    return make(match.operator("clip", Clip), transposed)


TRANSPOSE_FIRST = Rule(
    name="transpose-first",
    text="A Transpose of a Clip becomes a Clip of a Transpose.",
    pattern=op(Transpose, op(Clip, tensor("x"), name="clip"), name="transpose"),
    replacement=_transpose_first,
    instance=clipped_transposes,
)


def _transpose_last(match: Match) -> Term:
    return make(match.operator("transpose", Transpose), make(match.operator("clip", Clip), match["x"]))


TRANSPOSE_LAST = Rule(
    name="transpose-last",
    text="A Clip of a Transpose becomes a Transpose of a Clip.",
    pattern=op(Clip, op(Transpose, tensor("x"), name="transpose"), name="clip"),
    replacement=_transpose_last,
    instance=clipped_transposes,
)


def _twice(match: Match) -> Term:
    swap = Transpose(permutation=SWAP)
    return make(swap, make(swap, match["x"])) if len(match["x"].shape) == 2 else match["x"]


TRANSPOSE_TWICE = Rule(
    name="transpose-twice",
    text="A Transpose becomes three: a search with this rule alone never ends.",
    pattern=op(Transpose, tensor("x"), name="transpose"),
    replacement=lambda match: make(match.operator("transpose", Transpose), _twice(match)),
    instance=clipped_transposes,
)

SEARCH_RULES = (TRANSPOSE_PAIR, TRANSPOSE_FIRST, TRANSPOSE_LAST)
"""Transposes around a Clip meet only if one of them moves, which simplifies nothing by itself."""


def chain(count: int) -> Graph:
    """Return ``count`` Clips with a Transpose before and after each."""
    draw = InstanceBuilder(np.random.default_rng(count))
    data = draw.byte_input((3, 4), "int8")
    for number in range(count):
        data = draw.node(Transpose(permutation=SWAP), data)
        data = draw.node(Clip(low=-100 + number, high=100), data)
        data = draw.node(Transpose(permutation=SWAP), data)
    return draw.done(data)


class OperatorCosts:
    """Costs that are the sum over a graph's operators."""

    def __init__(self, price: Callable[[Graph, str], int]) -> None:
        self._price = price

    def cycles(self, graph: Graph) -> int:
        return sum(self._price(graph, node.output) for node in graph.nodes)

    def node_cycles(self, graph: Graph) -> int:
        return self.cycles(graph)


def _price(graph: Graph, output: str) -> int:
    return 100 if isinstance(graph.producers[output].operator, Transpose) else 10


COSTS = OperatorCosts(_price)
"""A Transpose costs 100 cycles, everything else 10."""
