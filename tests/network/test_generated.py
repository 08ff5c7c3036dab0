"""Random quantized networks on a machine, equal to numpy's reading of them in every tensor."""

from __future__ import annotations

from hypothesis import given, settings

from accel.formats.onnx_import import import_model
from accel.graph.graph import Graph, build_graph
from accel.network.network import Network
from tests.formats.generated import feeds, generate, models
from tests.formats.test_generated import NETWORKS

IN_THE_SUITE = 12


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


def only_last(graph: Graph) -> Graph:
    """The graph of whose outputs those stay that nothing takes: the others can be fused."""
    taken = {name for node in graph.nodes for name in node.inputs}
    outputs = [name for name in graph.outputs if name not in taken]
    return build_graph(
        graph.name, graph.tensors.values(), graph.constants, graph.nodes, graph.inputs, outputs
    )


@settings(max_examples=IN_THE_SUITE)
@given(NETWORKS)
def test_networks_whose_layers_are_fused(network: tuple[list[str], int]) -> None:
    """Bounds and sums go with products where nobody else needs what is in between."""
    kinds, seed = network
    made = generate(kinds, seed)
    graph = only_last(import_model(models(made)[0]))
    machine = ("vta-int8", "gemm8x8-int8")[seed % 2]
    Network(graph=graph).build(machine, keep=seed % 3 > 0).run(feeds(made)).raise_if_wrong()
