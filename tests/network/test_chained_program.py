"""Several layers as one program."""

import numpy as np
import pytest

from accel.base.errors import GraphError
from accel.core.config import load_config
from accel.core.isa import Finish
from accel.graph.elementwise_operators import Requantize
from accel.graph.graph_tensor import Quantization
from accel.network.network import Network
from tests.network.networks import MACHINE, Small, residual_network


def test_settings_are_reset_for_a_layer_that_needs_the_initial_ones() -> None:
    """The last layer saturates to 0..0, which are the initial bounds of the store unit."""
    small = Small((1, 16, 3, 3), dtype="uint8")
    small.zero_out = 100
    small.conv("x", "a", 16, 1)
    for source, output, zero in (("a", "b", 255), ("b", "y", 0)):
        quantization = Quantization.of(1e6, zero)
        small.builder.emit(Requantize(), [source], output, dtype="uint8", quantization=quantization)
    program = Network(graph=small.graph("y")).build(MACHINE)
    assert len(program.chains) == 1
    program.run(backend="functional").raise_if_wrong()


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_one_program_for_all_layers(dtype: str) -> None:
    program = Network(graph=residual_network(dtype)).build(MACHINE)
    (chain,) = program.chains
    assert [part.fused.name for part in chain.layers] == ["a", "b", "m", "y"]
    assert program.steps == (chain,)
    code = chain.program.instructions
    assert [index for index, one in enumerate(code) if isinstance(one, Finish)] == [len(code) - 1]
    assert chain.ends[-1] == len(code)
    assert len(chain.compared) >= 2
    assert program.run().cycles == min(chain.compared.values())
    apart = sum(part.program.run().cycles for part in chain.layers if part.program is not None)
    assert min(chain.compared.values()) < apart
    chain.program.check().raise_if_bad()
    result = program.run(seed=5)
    assert result.mismatches == {}
    assert result.tensors.keys() == {"x", "y"}
    assert result.cycles is not None
    layers = [layer.cycles for layer in result.layers if layer.where == "machine"]
    assert min(cycles for cycles in layers if cycles is not None) > 0
    assert sum(cycles for cycles in layers if cycles is not None) == result.cycles
    moved = program.run().bytes_by_kind
    assert moved["out"] == sum(layer.bytes_by_kind.get("out", 0) for layer in result.layers)


def test_a_memory_that_is_too_small() -> None:
    config = load_config(MACHINE).override({"mem_size": 1 << 15})
    with pytest.raises(GraphError, match="the network does not fit into the machine's memory"):
        Network(graph=residual_network()).build(config)


def test_a_memory_with_another_base() -> None:
    graph = residual_network()
    config = load_config(MACHINE).override({"mem_base": 1 << 20})
    result = Network(graph=graph).build(config).run()
    assert result.mismatches == {}
    assert result.cycles == Network(graph=graph).build(MACHINE).run(check=False).cycles


def test_keeping_all_results_changes_no_value() -> None:
    network = Network(graph=residual_network())
    inputs = network.build(MACHINE).random_inputs(7)
    kept, planned = (network.build(MACHINE, keep=keep).run(inputs) for keep in (True, False))
    assert np.array_equal(kept.outputs["y"], planned.outputs["y"])
    assert kept.tensors.keys() > planned.tensors.keys()


def test_zero_points_do_not_leak_into_the_next_layer() -> None:
    """Each layer must restore settings that earlier layers changed."""
    small = Small((1, 16, 8, 8))
    small.zero_out = 0
    small.conv("x", "a", 16)
    small.conv("a", "b", 16)
    small.zero_out = 5
    small.conv("b", "c", 16)
    program = Network(graph=small.graph("c")).build(MACHINE, keep=True)
    assert len(program.chains) == 1
    assert program.run().mismatches == {}
