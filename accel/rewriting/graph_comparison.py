"""The comparison of a rewritten graph with the original."""

from __future__ import annotations

import numpy as np

from accel.base.errors import MismatchError
from accel.graph.graph import Graph
from accel.graph.graph_evaluation import evaluate
from accel.graph.graph_tensor import random_values
from accel.rewriting.rule_check import differing_values

_SPREADS = (1.0, 8.0)
"""Largest absolute values of float32 inputs."""


def compare_graphs(original: Graph, rewritten: Graph, seed: int = 0) -> None:
    """Compare outputs and common tensors, bit for bit, on random inputs.

    Raises:
        MismatchError: a tensor differs. The message names the first one.
    """
    for number, spread in enumerate(_SPREADS):
        rng = np.random.default_rng([seed, number])
        inputs = {
            name: random_values(rng, original.tensors[name], -spread, spread) for name in original.inputs
        }
        expected, found = evaluate(original, inputs), evaluate(rewritten, inputs)
        for name in [*(one.output for one in original.nodes), *original.outputs]:
            if name not in found:
                continue
            differing = differing_values(found[name], expected[name])
            if differing:
                raise MismatchError(
                    f"{differing} of {expected[name].size} values of {name!r} differ between the rewritten "
                    "and the original graph; a rule is wrong"
                )
