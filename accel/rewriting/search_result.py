"""Limits and results of searches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from msgspec import Struct

from accel.base.records import as_dict
from accel.base.rewrite_choices import SECONDS
from accel.graph.graph import Graph

Ending = Literal["complete", "graphs", "nodes", "iterations", "seconds"]


@dataclass(frozen=True, kw_only=True)
class SearchLimits:
    """Limits of a search.

    Attributes:
        seconds: of the whole search. With another limit, every run finds the same graph.
        graphs: graphs whose costs backtracking compares.
        nodes: e-nodes in the e-graph of equality saturation.
        iterations: of equality saturation. Each matches all rules once.
        joined_iterations: the first iterations, which also match rules with several roots.
    """

    seconds: float = SECONDS
    graphs: int = 2000
    nodes: int = 5000
    iterations: int = 8
    joined_iterations: int = 3


class CostModel(Protocol):
    def cycles(self, graph: Graph) -> int: ...

    def node_cycles(self, graph: Graph, *, can_fuse: bool, is_exact: bool) -> int:
        """Return the predicted cycles of a graph's only node, as if in the middle of a network.

        Args:
            can_fuse: whether the layer that computes an operand may execute the node, too.
            is_exact: predict the layer, which takes longer, instead of a lower bound.
        """


class CompiledCost(Struct, frozen=True, kw_only=True):
    """``cycles`` are simulated ones of programs, plus predicted ones of the host and of switches to it."""

    cycles: int
    programs: int

    def __str__(self) -> str:
        return f"{self.cycles:,} cycles in {self.programs} program{'' if self.programs == 1 else 's'}"


class CompiledComparison(Struct, frozen=True, kw_only=True):
    """The compiled networks with and without the search."""

    searched: CompiledCost
    greedy: CompiledCost

    @property
    def keeps_search(self) -> bool:
        return self.searched.cycles < self.greedy.cycles

    def describe(self) -> str:
        kept = "the search's graph" if self.keeps_search else "the graph without the search"
        return f"compiled: {self.searched}, {self.greedy} without the search; {kept} is kept"

    def to_dict(self) -> dict[str, Any]:
        return {
            "searched": as_dict(self.searched),
            "greedy": as_dict(self.greedy),
            "kept": "search" if self.keeps_search else "greedy",
        }


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    """The best graph of a search, and how it was found.

    Attributes:
        graph: the best graph, or the graph without the search if ``compiled`` keeps that one.
        rules: applications of each rule between the given and the best graph.
        cycles_before, cycles_after: predicted for the given and the best graph.
        graphs: graphs whose costs were compared.
        nodes: e-nodes of the e-graph, or 0.
        ended_by: what ended the search.
        compiled: the comparison after compilation, or None if nothing was compiled or no other graph found.
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
    compiled: CompiledComparison | None = None

    def describe(self) -> str:
        """Return a text, for example ``912 cycles instead of 1,204, predicted; rules: my-clips 3; ...``."""
        applied = ", ".join(f"{name} {count}" for name, count in self.rules.items()) or "none"
        looked_at = f"{self.graphs:,} graphs" + (f", {self.nodes:,} e-nodes" if self.nodes else "")
        ending = "complete" if self.ended_by == "complete" else f"ended by the limit of {self.ended_by}"
        text = (
            f"{self.cycles_after:,} cycles instead of {self.cycles_before:,}, predicted; rules: {applied}; "
            f"{looked_at} in {self.seconds:.2f} s, {ending}"
        )
        return text if self.compiled is None else f"{text}; {self.compiled.describe()}"

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
            "compiled": None if self.compiled is None else self.compiled.to_dict(),
        }
