"""Functions of one byte on machines with tables: fused behind a layer, or as a layer of their own."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import accel
from accel.core.isa import LoadTab, StoreReq
from accel.graph.elementwise_operators import Function, Mul
from accel.graph.graph import Graph
from accel.graph.graph_tensor import Quantization
from accel.network.network import Network
from accel.network.network_file import load_network, save_network
from tests.network.networks import Small
from tests.strategies import examples

MACHINES = [
    accel.machine(name, tab_bytes="1KiB") for name in ("vta-int8", "gemm8x8-int8", "tiny-int8", "ecp5-int8")
]
FUNCTIONS = ("Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid")


def function(small: Small, source: str, output: str, name: str, dtype: str) -> None:
    parameters = (("alpha", 0.1),) if name == "LeakyRelu" else ()
    operator = Function(function=name, parameters=parameters)
    quantization = Quantization.of(0.0049313, 7)
    small.builder.emit(operator, [source], output, dtype=dtype, quantization=quantization)


def activated(name: str = "Sigmoid", *, channels: int = 12, dtype: str = "int8", swish: bool = True) -> Graph:
    """Two convolutions with a function between them, and a residual after the second function."""
    small = Small((1, 5, 9, 7), dtype=dtype)
    small.conv("x", "a", channels, pad=1)
    function(small, "a", "f", name, dtype)
    if swish:
        quantization = Quantization.of(0.0383717, 5)
        small.builder.emit(Mul(), ["a", "f"], "s", dtype=dtype, quantization=quantization)
    small.conv("s" if swish else "f", "b", channels, pad=1)
    function(small, "b", "g", name, dtype)
    small.add("g", "s" if swish else "f", "y")
    return small.graph("y")


def inputs(graph: Graph, seed: int) -> dict[str, np.ndarray]:  # type: ignore[type-arg]
    tensor = graph.tensors["x"]
    bounds = np.iinfo(tensor.dtype)
    rng = np.random.default_rng(seed)
    return {"x": rng.integers(bounds.min, bounds.max, tensor.shape, tensor.dtype, endpoint=True)}


@examples(12)
@given(st.data())
def test_any_function_on_any_machine(data: st.DataObject) -> None:
    graph = activated(
        data.draw(st.sampled_from(FUNCTIONS)),
        channels=data.draw(st.integers(1, 20)),
        dtype=data.draw(st.sampled_from(["int8", "uint8"])),
        swish=data.draw(st.booleans()),
    )
    program = Network(graph=graph).build(data.draw(st.sampled_from(MACHINES)), keep=data.draw(st.booleans()))
    program.run(inputs(graph, 1), backend="functional").raise_if_wrong()
    assert [step for step in program.steps if hasattr(step, "fused")] == []


def test_a_function_costs_a_load_and_no_pass() -> None:
    graph = activated()
    machine = MACHINES[0]
    (chain,) = Network(graph=graph).build(machine).chains
    loads = [one for one in chain.program.instructions if isinstance(one, LoadTab)]
    assert len(loads) == 2
    assert all(one.table for one in chain.program.instructions if isinstance(one, StoreReq))


def test_a_saved_network(tmp_path: Path) -> None:
    graph = activated()
    program = Network(graph=graph).build(MACHINES[2])
    save_network(program, tmp_path / "net.accel")
    loaded = load_network(tmp_path / "net.accel")
    assert [part.fused for part in loaded.chains[0].parts] == [part.fused for part in program.chains[0].parts]
    loaded.run(inputs(graph, 4), backend="functional").raise_if_wrong()


def test_without_tables_the_host_computes_functions() -> None:
    graph = activated()
    program = Network(graph=graph).build("vta-int8")
    hosts = {step.fused.main.operator.kind: step.reason for step in program.steps if hasattr(step, "fused")}
    assert hosts["Sigmoid"] == "no scale and bias reproduce all of its values, and the machine has no tables"
    program.run(inputs(graph, 2), backend="functional").raise_if_wrong()


@pytest.mark.parametrize("machine", MACHINES, ids=str)
def test_a_function_of_an_input(machine: accel.Machine) -> None:
    small = Small((1, 5, 9, 7))
    function(small, "x", "y", "Tanh", "int8")
    small.conv("y", "z", 8)
    graph = small.graph("y", "z")
    program = Network(graph=graph).build(machine)
    program.run(inputs(graph, 3), backend="functional").raise_if_wrong()
