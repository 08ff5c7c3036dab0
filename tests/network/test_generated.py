"""Random quantized networks on a machine, compared with numpy in every tensor."""

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
def test_random_networks_equal_numpy(network: tuple[list[str], int]) -> None:
    """QOperator and QDQ files, two backends, with and without intermediate results."""
    kinds, seed = network
    made = generate(kinds, seed)
    graph = import_model(models(made)[seed % 2])
    inputs = feeds(made)
    for machine, backend, keep in (("vta-int8", "sim", seed % 3 > 0), ("tiny-int8", "functional", True)):
        result = Network(graph=graph).build(machine, keep=keep).run(inputs, backend=backend)
        result.raise_if_wrong()
        assert set(result.outputs) == set(graph.outputs)


def with_final_outputs(graph: Graph) -> Graph:
    """Remove outputs that nodes read, so that these nodes can be fused."""
    taken = {name for node in graph.nodes for name in node.inputs}
    outputs = [name for name in graph.outputs if name not in taken]
    return build_graph(
        graph.name, graph.tensors.values(), graph.constants, graph.nodes, graph.inputs, outputs
    )


@settings(max_examples=IN_THE_SUITE)
@given(NETWORKS)
def test_random_networks_with_fusion_equal_numpy(network: tuple[list[str], int]) -> None:
    """Bounds and sums are fused if nothing else reads the tensors between them."""
    kinds, seed = network
    made = generate(kinds, seed)
    graph = with_final_outputs(import_model(models(made)[0]))
    machine = ("vta-int8", "gemm8x8-int8")[seed % 2]
    Network(graph=graph).build(machine, keep=seed % 3 > 0).run(feeds(made)).raise_if_wrong()
