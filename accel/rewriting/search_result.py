"""The limits and the results of searches over rewritten graphs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from accel.base.rewrite_choices import SECONDS
from accel.graph.graph import Graph

Ending = Literal["complete", "graphs", "nodes", "iterations", "seconds"]
"""What ended a search: nothing was left to try, or one of the limits."""


@dataclass(frozen=True, kw_only=True)
class SearchLimits:
    """Limits of a search.

    Attributes:
        seconds: of the whole search. A search that other limits end finds the same graph in every run.
        graphs: graphs whose costs are compared by backtracking.
        nodes: e-nodes in the e-graph of equality saturation.
        iterations: of equality saturation, in each of which all rules are matched once.
        joined_iterations: the first iterations, in which rules with several roots are matched, too.
    """

    seconds: float = SECONDS
    graphs: int = 2000
    nodes: int = 5000
    iterations: int = 8
    joined_iterations: int = 3


class CostModel(Protocol):
    """Predicts costs on a machine."""

    def cycles(self, graph: Graph) -> int:
        """Return the predicted cycles of a graph."""

    def node_cycles(self, graph: Graph, *, can_fuse: bool, is_exact: bool) -> int:
        """Return the predicted cycles of a graph's only node, as if it were in the middle of a network.

        Args:
            can_fuse: whether the layer that computes an operand may execute the node, too.
            is_exact: whether a lower bound is not enough. To predict a layer takes much longer.
        """


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    """The best graph of a search, and how it was found.

    Attributes:
        rules: applications of each rule between the given and the best graph.
        cycles_before, cycles_after: predicted cycles of the given and of the best graph.
        graphs: graphs whose costs were compared.
        nodes: e-nodes of the e-graph, or 0.
        ended_by: what ended the search.
    """

    graph: Graph = field(repr=False)
    search: str
    rules: Mapping[str, int]
    cycles_before: int
    cycles_after: int
    graphs: int
    nodes: int = 0
    seconds: float
    ended_by: Ending

    def describe(self) -> str:
        """Return one sentence, for example ``predicted cycles 9,120 instead of 12,040 by 3 rules ...``."""
        applied = ", ".join(f"{name} {count}" for name, count in self.rules.items()) or "none"
        looked_at = f"{self.graphs:,} graphs" + (f", {self.nodes:,} e-nodes" if self.nodes else "")
        ending = "complete" if self.ended_by == "complete" else f"ended by the limit of {self.ended_by}"
        return (
            f"{self.cycles_after:,} cycles instead of {self.cycles_before:,}, predicted; rules: {applied}; "
            f"{looked_at} in {self.seconds:.2f} s, {ending}"
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "search": self.search,
            "rules": dict(self.rules),
            "cycles_before": self.cycles_before,
            "cycles_after": self.cycles_after,
            "graphs": self.graphs,
            "nodes": self.nodes,
            "seconds": self.seconds,
            "ended_by": self.ended_by,
        }
