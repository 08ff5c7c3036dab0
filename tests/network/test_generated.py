"""Random quantized networks on a machine, equal to numpy's reading of them in every tensor."""

from __future__ import annotations

from hypothesis import given, settings

from accel.formats.onnx_import import import_model
from accel.network.network import Network
from tests.formats.generated import feeds, generate, models
from tests.formats.test_generated import NETWORKS

IN_THE_SUITE = 25


@settings(max_examples=IN_THE_SUITE)
@given(NETWORKS)
def test_networks_are_computed_as_numpy_does(network: tuple[list[str], int]) -> None:
    """From a file in either format, by function and in time; with and without what only layers need."""
    kinds, seed = network
    made = generate(kinds, seed)
    graph = import_model(models(made)[seed % 2])
    inputs = feeds(made)
    for machine, backend, keep in (("vta-int8", "sim", seed % 3 > 0), ("tiny-int8", "functional", True)):
        result = Network(graph=graph).build(machine, keep=keep).run(inputs, backend=backend)
        result.raise_if_wrong()
        assert set(result.outputs) == set(graph.outputs)
