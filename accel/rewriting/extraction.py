"""The extraction of the cheapest graph from an e-graph, by integer programming.

Each e-node has a variable, 1 if the graph has it. Each output needs an e-node, and each e-node its operands:

    minimize    sum of cost(n) x(n)
    subject to  sum of x(n) over the e-nodes of an output's e-class >= 1
                sum of x(m) over the e-nodes of an operand's e-class >= x(n)

A tensor that is read twice is paid once. A solution must not contain a cycle, for example a Transpose of a
Transpose of itself. So e-classes on possible cycles have a level, and an e-node a greater one than its
operand.

Predicting a layer takes much longer than solving the program. So layers start with a lower bound, and only
those of a solution are predicted, until no cost changes. The last solution is the best up to 0.1 %, since its
costs are predictions and all others are lower bounds.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from accel.base.errors import AccelError
from accel.base.optional_extras import not_installed
from accel.base.records import replace
from accel.base.unique_names import Names
from accel.graph.graph import Graph, Node, with_nodes
from accel.graph.graph_tensor import Array, Tensor
from accel.graph.movement_operators import Identity
from accel.rewriting.search_result import CostModel
from accel.rewriting.tensor_egraph import ENode, TensorEGraph

_NODE_COST = 1 / 1024
"""In cycles, against unneeded e-nodes."""
_GAP = 0.001
"""Relative gap to the least cost. Predictions are less accurate."""
_MOST_SOLUTIONS = 200


class Extractor:
    """Extracts graphs from an e-graph."""

    def __init__(self, graph: Graph, egraph: TensorEGraph, costs: CostModel) -> None:
        self._highs = _import_highspy()
        self._graph = graph
        self._egraph = egraph
        self._costs = costs
        self._predicted: dict[ENode, float] = {}
        self.ran_out_of_time = False

    def graphs(self, stop: float) -> Iterator[tuple[Graph, Counter[str]]]:
        """Yield graphs with predicted costs, the best last, and how many nodes of each every rule has added.

        Args:
            stop: the time of ``time.perf_counter`` at which to stop.
        """
        yield from self._graphs(stop)
        self.ran_out_of_time = time.perf_counter() >= stop

    def _graphs(self, stop: float) -> Iterator[tuple[Graph, Counter[str]]]:
        costs = self._node_costs(stop)
        if costs is None:
            return
        program = _Program(self._highs, self._egraph, self._outputs(), costs)
        for _ in range(_MOST_SOLUTIONS):
            left = stop - time.perf_counter()
            chosen = program.solve(left) if left > 0 else None
            if chosen is None:
                return
            needed = _needed(chosen, self._outputs())
            changed = False
            for node in needed.values():
                if node not in self._predicted and time.perf_counter() < stop:
                    cost = self._predicted[node] = self._cost(node, is_exact=True)
                    changed |= program.change_cost(node, cost)
            yield self._build(needed)
            if not changed:
                return

    def _outputs(self) -> list[int]:
        found = (self._egraph.find(self._egraph.references[name]) for name in self._graph.outputs)
        return list(dict.fromkeys(one for one in found if one not in self._egraph.leaves))

    def _node_costs(self, stop: float) -> dict[ENode, float] | None:
        """Return None if the time runs out."""
        found: dict[ENode, float] = {}
        for nodes in self._egraph.nodes.values():
            for node in nodes:
                if time.perf_counter() >= stop:
                    return None
                found[node] = self._cost(node, is_exact=False)
        return found

    def _cost(self, node: ENode, *, is_exact: bool) -> float:
        cycles = self._costs.node_cycles(
            self._single(node), can_fuse=self._follows_product(node), is_exact=is_exact
        )
        return cycles + _NODE_COST

    def _follows_product(self, node: ENode) -> bool:
        return any(
            self._egraph.operator(one.operator).macs(
                [self._egraph.tensors[name] for name in one.operands], self._egraph.result(one.operator)
            )
            for operand in node.operands
            for one in self._egraph.nodes.get(operand, ())
        )

    def _single(self, node: ENode) -> Graph:
        egraph = self._egraph
        names = [f"operand{at}" for at in range(len(node.operands))]
        first = {
            operand: name for name, operand in zip(reversed(names), reversed(node.operands), strict=True)
        }
        tensors = {name: replace(egraph.tensors[operand], name=name) for operand, name in first.items()}
        tensors["result"] = replace(egraph.result(node.operator), name="result")
        constants = {
            name: egraph.constants[operand] for operand, name in first.items() if operand in egraph.constants
        }
        only = Node(
            name="result",
            operator=egraph.operator(node.operator),
            inputs=tuple(first[operand] for operand in node.operands),
            output="result",
        )
        return Graph(
            name="node", tensors=tensors, constants=constants, nodes=(only,), inputs=(), outputs=("result",)
        )

    def _build(self, chosen: Mapping[int, ENode]) -> tuple[Graph, Counter[str]]:
        """Tensors of the given graph keep their names."""
        egraph, given = self._egraph, self._graph
        names, tensors = Names([*given.tensors, *(node.name for node in given.nodes)]), dict[str, Tensor]()
        constants: dict[str, Array] = {}
        by_reference: dict[int, str] = {}
        for output in given.outputs:
            reference = egraph.find(egraph.references[output])
            if reference in chosen:
                by_reference.setdefault(reference, output)

        def name_of(reference: int) -> str:
            if reference not in by_reference:
                known = egraph.names.get(reference)
                is_free = known is not None and known not in given.outputs
                is_source = reference in egraph.leaves and known is not None
                rule = egraph.creators.get(chosen[reference]) if reference in chosen else None
                name = known if known is not None and (is_free or is_source) else None
                by_reference[reference] = name or names.fresh(rule or "constant")
            name = by_reference[reference]
            tensors[name] = replace(given.tensors.get(name, egraph.tensors[reference]), name=name)
            if reference in egraph.constants:
                constants[name] = egraph.constants[reference]
            return name

        nodes: list[Node] = []
        rules: Counter[str] = Counter()
        for reference, node in chosen.items():
            output = name_of(reference)
            inputs = tuple(map(name_of, node.operands))
            nodes.append(
                Node(name=output, operator=egraph.operator(node.operator), inputs=inputs, output=output)
            )
            if node in egraph.creators:
                rules[egraph.creators[node]] += 1
        for name in given.inputs:
            tensors[name] = given.tensors[name]
        for output in given.outputs:
            reference = egraph.find(egraph.references[output])
            if name_of(reference) != output:
                tensors[output] = given.tensors[output]
                nodes.append(
                    Node(name=output, operator=Identity(), inputs=(name_of(reference),), output=output)
                )
        return with_nodes(given, nodes, tensors=tensors.values(), constants=constants), rules


class _Program:
    def __init__(
        self, highs: Any, egraph: TensorEGraph, outputs: list[int], costs: Mapping[ENode, float]
    ) -> None:
        self._egraph = egraph
        reachable = dict.fromkeys(outputs)
        waiting = list(outputs)
        while waiting:
            for node in egraph.nodes[waiting.pop()]:
                new = [one for one in node.operands if one not in reachable and one not in egraph.leaves]
                reachable.update(dict.fromkeys(new))
                waiting += new
        # an e-node that reads its own e-class is in no graph
        self._members = {
            reference: [node for node in egraph.nodes[reference] if reference not in node.operands]
            for reference in reachable
        }
        self._variables = {
            node: at for at, node in enumerate(node for nodes in self._members.values() for node in nodes)
        }
        self._costs = [costs[node] for node in self._variables]
        self._rows: list[tuple[float, float, dict[int, float]]] = []
        for output in outputs:
            self._rows.append((1.0, highs.kHighsInf, self._sum(output)))
        for reference, nodes in self._members.items():
            own = self._sum(reference)
            self._rows.append((0.0, 1.0, own))  # no graph needs two e-nodes of one e-class
            readers: dict[int, list[ENode]] = {}
            for node in nodes:
                for operand in dict.fromkeys(node.operands):
                    if operand not in egraph.leaves:
                        readers.setdefault(operand, []).append(node)
            for operand, reading in readers.items():
                row = self._sum(operand) | {self._variables[node]: -1.0 for node in reading}
                self._rows.append((0.0, highs.kHighsInf, row))
        self._infinity = highs.kHighsInf
        self._add_short_cycles()
        levels = self._add_levels()
        self._highs = _quiet_solver(highs)
        for option, value in (
            ("output_flag", False),
            ("threads", 1),
            ("random_seed", 0),
            ("mip_rel_gap", _GAP),
        ):
            self._highs.setOptionValue(option, value)
        self._pass(highs, levels)

    def _sum(self, reference: int) -> dict[int, float]:
        return {self._variables[node]: 1.0 for node in self._members[reference]}

    def _add_short_cycles(self) -> None:
        """Forbid pairs of e-nodes that read one another, the most frequent cycles."""
        for reference, nodes in self._members.items():
            for node in nodes:
                for operand in dict.fromkeys(node.operands):
                    for other in self._members.get(operand, ()):
                        if operand > reference and reference in other.operands:
                            pair = {self._variables[node]: 1.0, self._variables[other]: 1.0}
                            self._rows.append((-self._infinity, 1.0, pair))

    def _add_levels(self) -> list[float]:
        """Return the greatest value of each level."""
        readers: dict[int, list[int]] = {reference: [] for reference in self._members}
        operands: dict[int, list[int]] = {reference: [] for reference in self._members}
        for reference, nodes in self._members.items():
            found = dict.fromkeys(one for node in nodes for one in node.operands if one in self._members)
            operands[reference] = list(found)
            for one in found:
                readers[one].append(reference)
        greatest: list[float] = []
        for component in _components(operands, readers):
            if len(component) == 1:
                continue
            count = float(len(component))
            levels = {one: len(self._variables) + len(greatest) + at for at, one in enumerate(component)}
            greatest += [count - 1] * len(component)
            inside = {*component}
            entries = {
                self._variables[node]: 1.0
                for reference in component
                for node in self._members[reference]
                if inside.isdisjoint(node.operands)
            }
            for reference in component:
                # A chosen class on a possible cycle needs a chosen e-node that reads nothing on it. Levels
                # imply this for integers, but not for the fractions with which the solver starts.
                row = entries.copy()
                for at in self._sum(reference):
                    row[at] = row.get(at, 0.0) - 1.0
                self._rows.append((0.0, self._infinity, {at: one for at, one in row.items() if one}))
                for node in self._members[reference]:
                    for operand in dict.fromkeys(node.operands):
                        if operand in levels:
                            row = {levels[reference]: 1.0, levels[operand]: -1.0}
                            row[self._variables[node]] = -count
                            self._rows.append((1.0 - count, self._infinity, row))
        return greatest

    def _pass(self, highs: Any, levels: Sequence[float]) -> None:
        integers = len(self._variables)
        count = integers + len(levels)
        program = highs.HighsLp()
        program.num_col_, program.num_row_ = count, len(self._rows)
        program.col_cost_ = [*self._costs, *(0.0 for _ in levels)]
        program.col_lower_, program.col_upper_ = [0.0] * count, [1.0] * integers + [*levels]
        kinds = highs.HighsVarType
        program.integrality_ = [kinds.kInteger] * integers + [kinds.kContinuous] * len(levels)
        program.row_lower_ = [row[0] for row in self._rows]
        program.row_upper_ = [row[1] for row in self._rows]
        program.a_matrix_.format_ = highs.MatrixFormat.kRowwise
        starts = [0]
        for _, _, row in self._rows:
            starts.append(starts[-1] + len(row))
        program.a_matrix_.start_ = starts
        program.a_matrix_.index_ = [at for _, _, row in self._rows for at in row]
        program.a_matrix_.value_ = [value for _, _, row in self._rows for value in row.values()]
        self._highs.passModel(program)

    def solve(self, seconds: float) -> dict[int, ENode] | None:
        """Return an e-node for each chosen e-class, or None without a solution in time."""
        self._highs.setOptionValue("time_limit", max(seconds, 0.01) + self._highs.getRunTime())
        self._highs.run()
        values = self._highs.getSolution().col_value
        if not len(values):
            return None
        return {
            reference: max(nodes, key=lambda node: values[self._variables[node]])
            for reference, nodes in self._members.items()
            if nodes and max(values[self._variables[node]] for node in nodes) > 0.5
        }

    def change_cost(self, node: ENode, cost: float) -> bool:
        at = self._variables[node]
        changed = abs(self._costs[at] - cost) > _NODE_COST / 2
        if changed:
            self._costs[at] = cost
            self._highs.changeColCost(at, cost)
        return changed


def _quiet_solver(highs: Any) -> Any:
    """Return a solver that prints nothing, not even its version."""

    class Quiet(highs.Highs):  # type: ignore[misc]
        def enableCallbacks(self) -> None:  # called by the constructor
            self.setOptionValue("output_flag", False)
            super().enableCallbacks()

    return Quiet()


def _needed(chosen: Mapping[int, ENode], outputs: list[int]) -> dict[int, ENode]:
    found: dict[int, ENode] = {}
    waiting = [(one, False) for one in reversed(outputs)]
    while waiting:
        reference, is_done = waiting.pop()
        if is_done:
            found[reference] = chosen[reference]
        elif reference in chosen and reference not in found:
            waiting.append((reference, True))
            waiting += [(one, False) for one in reversed(chosen[reference].operands)]
    return found


def _components(
    operands: Mapping[int, Sequence[int]], readers: Mapping[int, Sequence[int]]
) -> list[list[int]]:
    """Return the strongly connected components by Kosaraju's algorithm."""
    order: list[int] = []
    seen: set[int] = set()
    for start in operands:
        waiting = [(start, False)]
        while waiting:
            one, is_done = waiting.pop()
            if is_done:
                order.append(one)
            elif one not in seen:
                seen.add(one)
                waiting.append((one, True))
                waiting += [(other, False) for other in operands[one]]
    found: list[list[int]] = []
    left = dict.fromkeys(reversed(order))
    while left:
        component: list[int] = []
        pending = [next(iter(left))]
        while pending:
            one = pending.pop()
            if one in left:
                del left[one]
                component.append(one)
                pending += readers[one]
        found.append(component)
    return found


def _import_highspy() -> Any:
    try:
        import highspy
    except ImportError:
        raise AccelError(not_installed("the extraction from an e-graph needs highspy", "rewrite")) from None
    return highspy
