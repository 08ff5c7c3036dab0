"""Random quantized networks, equal to ONNX Runtime in every tensor."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from accel.formats.compare_with_runtime import compare
from accel.formats.onnx_import import import_model
from accel.graph.graph_evaluation import evaluate
from tests.formats.generated import KINDS, feeds, generate, models
from tests.formats.runtime import run

IN_THE_SUITE = 50
NETWORKS = st.tuples(
    st.lists(st.sampled_from(sorted(KINDS)), min_size=2, max_size=12), st.integers(0, 2**32 - 1)
)


def assert_equal(kinds: list[str], seed: int) -> int:
    """Compare one network in three forms: QOperator with ONNX Runtime, QDQ with QOperator, and the graph's
    own export with ONNX Runtime, tensor by tensor.

    Returns:
        Number of values that differ by the order of an addition's multiply-adds.
    """
    network = generate(kinds, seed)
    qoperator, qdq, names = models(network)
    inputs = feeds(network)
    graph = import_model(qoperator)
    comparison = compare(graph, inputs)
    comparison.raise_if_bad()
    found, other = evaluate(graph, inputs), evaluate(import_model(qdq), inputs)
    for name in names:
        np.testing.assert_array_equal(other[name], found[name], err_msg=f"{name} as QDQ")
    if not comparison.reordered:
        wanted = run(qoperator, inputs)
        for name in names:
            np.testing.assert_array_equal(found[name], wanted[name], err_msg=name)
    return comparison.reordered


@settings(max_examples=IN_THE_SUITE)
@given(NETWORKS)
def test_networks_are_computed_as_onnx_runtime_does(network: tuple[list[str], int]) -> None:
    assert_equal(*network)
