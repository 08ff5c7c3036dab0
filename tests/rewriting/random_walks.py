"""Random graphs that random rules rewrite again and again, compared with what they were at first.

    python -m tests.rewriting.random_walks [--count 2000] [--seed 0] [--steps 12] [--machine vta-int8]

A walk begins at the instance of a rule, or at a random quantized network, and applies one of the rules that
match at each step. So rules meet the results of other rules. With a machine, the last graph is also compiled
and run. A failing walk is printed with its seed and the rules that it applied.
"""

import argparse
from collections import Counter
from collections.abc import Sequence

import numpy as np
from rich.progress import track

from accel.base.errors import MismatchError
from accel.formats.onnx_import import import_model
from accel.graph.graph import Graph
from accel.graph.graph_evaluation import evaluate
from accel.graph.graph_tensor import random_values
from accel.network.network import Network
from accel.rewriting.editable_graph import EditableGraph
from accel.rewriting.rule import Rule
from accel.rewriting.rule_application import applications
from accel.rewriting.rule_check import differing_values
from accel.rewriting.rules import RULES
from tests.formats.generated import KINDS, generate, models

LARGEST_GRAPH = 60
"""Nodes of a graph that is rewritten further, at most."""


def first_graph(rng: np.random.Generator, rules: Sequence[Rule]) -> Graph:
    """Draw the instance of a rule, or every other time a quantized network."""
    if rng.random() < 0.5:
        return rules[int(rng.integers(len(rules)))].instance(rng)
    kinds = [sorted(KINDS)[int(rng.integers(len(KINDS)))] for _ in range(int(rng.integers(2, 9)))]
    made = generate(kinds, int(rng.integers(1 << 32)))
    return import_model(models(made)[int(rng.integers(2))])


def walk(seed: int, steps: int, machine: str | None = None, rules: Sequence[Rule] = RULES) -> list[str]:
    """Rewrite one graph, and compare.

    Returns:
        The names of the applied rules.

    Raises:
        MismatchError: an output differs.
    """
    rng = np.random.default_rng(seed)
    graph = new = first_graph(rng, rules)
    applied: list[str] = []
    for _ in range(steps):
        editable = EditableGraph(new)
        results = editable.results()
        found = [
            (rule, places)
            for rule in rules
            if (places := [one for output in results for one in applications(editable, rule, output)])
        ]
        if not found or len(new.nodes) > LARGEST_GRAPH:
            break
        rule, places = found[int(rng.integers(len(found)))]
        editable.replace(rule, *places[int(rng.integers(len(places)))])
        applied.append(rule.name)
        new = editable.graph()
    inputs = {name: random_values(rng, graph.tensors[name]) for name in graph.inputs}
    expected, results = evaluate(graph, inputs), evaluate(new, inputs)
    for name in graph.outputs:
        if differing_values(results[name], expected[name]):
            raise MismatchError(f"seed {seed}: {name!r} differs after the rules {', '.join(applied)}")
    if machine is not None and applied:
        Network(graph=new).build(machine).run(inputs, backend="functional").raise_if_wrong()
    return applied


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=2000, help="number of graphs")
    parser.add_argument("--seed", type=int, default=0, help="the first graph's seed")
    parser.add_argument("--steps", type=int, default=12, help="rules applied to each graph, at most")
    parser.add_argument("--machine", help="also compile for this configuration and run")
    chosen = parser.parse_args()
    counts: Counter[str] = Counter()
    for number in track(range(chosen.count), "Graphs", transient=True):
        counts.update(walk(chosen.seed + number, chosen.steps, chosen.machine))
    print(f"{chosen.count} graphs, {counts.total()} applications of {len(counts)} rules, no difference")
    for name, count in counts.most_common():
        print(f"{count:8} {name}")


if __name__ == "__main__":
    main()
