"""Networks on machines, compared with the graph's evaluation."""

from pathlib import Path

import numpy as np
import pytest

import accel
from accel.base.errors import GraphError, ShapeError
from accel.base.records import replace
from accel.graph.elementwise_operators import Add, Clip, Mul, Requantize
from accel.graph.graph import Graph
from accel.graph.graph_tensor import Quantization
from accel.graph.movement_operators import Pad, Reshape
from accel.network.network import Network
from accel.network.network_file import load_network, save_network
from accel.network.network_program import NetworkProgram
from tests.network.networks import MACHINE, Small, residual_network
from tests.thorough import diagonal


def built(graph: Graph, machine: str = MACHINE, *, keep: bool = True) -> NetworkProgram:
    return Network(graph=graph).build(machine, keep=keep)


def where(program: NetworkProgram) -> list[tuple[str, str]]:
    return [(part.fused.operators(), part.where) for part in program.parts]


@pytest.mark.parametrize(("dtype", "machine"), diagonal(["int8", "uint8"], ["vta-int8", "gemm8x8-int8"]))
def test_a_residual_network(dtype: str, machine: str) -> None:
    program = built(residual_network(dtype), machine)
    assert where(program) == [
        ("Conv + Clip", "machine"),
        ("Conv + Add + Clip", "machine"),
        ("GlobalAveragePool", "machine"),
        ("Reshape", "host"),
        ("MatMul", "machine"),
    ]
    assert program.host_macs == 0
    for backend in ("functional", "sim"):
        result = program.run(backend=backend, seed=3)
        assert result.mismatches == {}
        assert {"a_relu", "c_relu", "m", "f", "y"} <= result.tensors.keys()
    assert len(program.chains) == 1
    assert result.cycles == sum(layer.cycles or 0 for layer in result.layers)
    data = result.to_dict()
    assert (data["macs"], data["host_macs"], data["mismatches"]) == (program.macs, 0, 0)
    assert data["utilization"] == pytest.approx(
        program.macs / (data["cycles"] * program.config.macs_per_cycle)
    )


@pytest.mark.parametrize("groups", [1, 4, 16])
def test_grouped_convolutions(groups: int) -> None:
    small = Small((2, 16, 7, 5))
    small.conv("x", "y", 16, pad=1, groups=groups)
    program = built(small.graph("y"))
    assert where(program) == [("Conv", "machine")]
    program.run().raise_if_wrong()


def test_convolutions_with_one_axis() -> None:
    small = Small((1, 6, 31))
    small.conv("x", "y", 9, kernel=5, stride=2, pad=2)
    program = built(small.graph("y"))
    assert where(program) == [("Conv", "machine")]
    assert program.run().outputs["y"].shape == (1, 9, 16)
    program.run().raise_if_wrong()


def test_max_pool() -> None:
    small = Small((1, 16, 9, 9), dtype="uint8")
    small.largest("x", "y")
    program = built(small.graph("y"))
    assert where(program) == [("MaxPool", "machine")]
    program.run().raise_if_wrong()


def test_padding_before_a_convolution() -> None:
    small = Small((1, 8, 6, 6))
    small.builder.emit(Pad(begin=(0, 0, 1, 1), end=(0, 0, 1, 2), value=-11), ["x"], "p")
    small.conv("p", "y", 8, pad=1)
    program = built(small.graph("y"))
    assert where(program) == [("Pad + Conv", "machine")]
    program.run().raise_if_wrong()


@pytest.mark.parametrize(("groups", "zero"), diagonal([1, 4, 8], [0, 90, 128, 255]))
def test_weights_with_zero_points(zero: int, groups: int) -> None:
    """Weights beyond int8 are sums of several int8 values."""
    small = Small((2, 8, 6, 6))
    small.conv("x", "a", 8, weights=("uint8", zero), groups=groups)
    small.conv("a", "y", 8, weights=("uint8", zero), groups=groups)
    program = built(small.graph("y"))
    assert where(program) == [("Conv", "machine")] * 2
    assert program.host_macs == 0
    program.run().raise_if_wrong()


def test_two_layers_read_different_copies_of_one_tensor() -> None:
    """Different groups need different copies. A reshaped tensor shares them."""
    small = Small((2, 8, 6, 6))
    small.conv("x", "a", 8, kernel=1, weights=("uint8", 0), groups=1)
    small.conv("x", "b", 8, kernel=1, weights=("uint8", 0), groups=4)
    small.builder.emit(Reshape(sizes=(48, 12)), ["x"], "f")
    small.matmul("f", "c", 5, weights=("uint8", 0))
    built(small.graph("a", "b", "c")).run().raise_if_wrong()


def test_matrix_products_of_weights_with_zero_points() -> None:
    small = Small((3, 2, 10))
    small.matmul("x", "a", 7, weights=("uint8", 3))
    program = built(small.graph("a"))
    assert where(program) == [("MatMul", "machine")]
    program.run().raise_if_wrong()


def test_multiplications_on_the_host() -> None:
    small = Small((1, 2, 4, 4, 4))
    small.conv("x", "y", 2)
    network = Network(graph=small.graph("y"))
    program = network.build(MACHINE)
    assert where(program) == [("Conv", "host")]
    assert program.host_macs == program.macs
    program.run().raise_if_wrong()
    with pytest.raises(GraphError, match=r"'y' \(Conv\): its windows have 3 axes"):
        network.build(MACHINE, strict=True)


def test_a_machine_without_requantization_is_refused() -> None:
    with pytest.raises(GraphError, match="vta has post=0"):
        built(residual_network(), "vta")


def test_invalid_inputs() -> None:
    program = built(residual_network())
    with pytest.raises(ShapeError, match="'X' is not an input of the network"):
        program.run({"X": np.zeros((1, 20, 9, 7), dtype=np.int8)})
    with pytest.raises(ShapeError, match="input 'x' is missing"):
        program.run({})


def test_mismatches_are_named() -> None:
    result = built(residual_network()).run()
    assert result.mismatches == {}
    wrong = accel.NetworkResult(**{**vars(result), "mismatches": {"b": 3, "y": 1}})
    with pytest.raises(accel.MismatchError, match="3 of 480 values of tensor 'c_relu' differ"):
        accel.NetworkResult(**{**vars(result), "mismatches": {"c_relu": 3, "y": 1}}).raise_if_wrong()
    assert wrong.wrong == 4


def two_convolutions_and_sum(
    left: tuple[float, int], right: tuple[float, int], total: tuple[float, int], dtype: str = "uint8"
) -> Graph:
    """Two convolutions and their sum. Only the right operand may have another dtype than uint8."""
    small = Small((1, 16, 4, 4), dtype="uint8")
    for name, (scale, zero) in (("left", left), ("right", right)):
        small.zero_out = zero
        small.conv("x", name, 16, 1)
        tensor = small.builder.tensors[name]
        small.builder.tensors[name] = replace(tensor, quantization=Quantization.of(scale, zero))
    if dtype != "uint8":
        again = Quantization.of(right[0], right[1] - 128)
        small.builder.emit(Requantize(), ["right"], "other", dtype=dtype, quantization=again)
    names = ["left", "right" if dtype == "uint8" else "other"]
    small.builder.emit(Add(), names, "y", dtype="uint8", quantization=Quantization.of(*total))
    return small.graph("y")


def test_a_sum_whose_last_bit_depends_on_its_order() -> None:
    """Scales and zero points of a MobileNet-v2."""
    program = built(two_convolutions_and_sum((0.09339848, 148), (0.08150082, 140), (0.11155228, 125)))
    assert where(program) == [("Conv", "machine"), ("Conv + Add", "machine")]
    program.run(backend="functional").raise_if_wrong()


def test_a_sum_of_int8_and_uint8() -> None:
    program = built(two_convolutions_and_sum((0.09339848, 148), (0.08150082, 140), (0.11155228, 125), "int8"))
    assert ("Conv + Add", "machine") in where(program)
    program.run(backend="functional").raise_if_wrong()


@pytest.mark.parametrize("rank", [2, 4])
def test_elementwise_layers_and_sums(rank: int, tmp_path: Path) -> None:
    """Each becomes its own layer."""
    small = Small((3, 20) if rank == 2 else (1, 20, 5, 4), dtype="uint8")
    builder, along = small.builder, (20,) if rank == 2 else (1, 20, 1, 1)

    def layer(source: str, output: str) -> None:
        small.matmul(source, output, 20) if rank == 2 else small.conv(source, output, 20, 1)

    layer("x", "a")
    builder.emit(Requantize(), ["a"], "b", dtype="int8", quantization=Quantization.of(0.3713, -3))
    builder.emit(Clip(low=-9, high=50), ["b"], "c")
    factors = np.arange(100, 120).astype(np.int8).reshape(along)
    builder.constant("k", factors, Quantization.of(0.011, 4))
    builder.emit(Mul(), ["c", "k"], "d", dtype="int8", quantization=Quantization.of(0.4, 1))
    builder.emit(Add(), ["d", "k"], "e", dtype="int8", quantization=Quantization.of(0.4127, 2))
    small.zero_out = 0
    builder.emit(Add(), ["c", "e"], "f", dtype="int8", quantization=Quantization.of(0.7219, -5))
    builder.emit(Add(), ["f", "a"], "g", dtype="uint8", quantization=Quantization.of(0.8371, 100))
    layer("g", "y")
    program = built(small.graph("y", "g"))
    assert [part.reason for part in program.parts if not part.on_machine] == []
    assert len(program.chains) == 1
    program.run(backend="functional").raise_if_wrong()
    save_network(program, tmp_path / "net.accel")
    load_network(tmp_path / "net.accel").run().raise_if_wrong()


def test_sums_that_broadcast() -> None:
    small = Small((1, 16, 4, 4))
    small.conv("x", "a", 16, 1)
    small.conv("x", "b", 1, 1)
    small.builder.emit(Add(), ["a", "b"], "y", dtype="int8", quantization=Quantization.of(0.7, -5))
    program = built(small.graph("y"))
    (part,) = (one for one in program.parts if not one.on_machine)
    assert part.reason == (
        "it adds (1, 16, 4, 4) and (1, 1, 4, 4); the machine adds what has one shape, and "
        "pictures and one value per channel"
    )
    program.run(backend="functional").raise_if_wrong()


def test_an_inexact_sum_runs_on_the_host() -> None:
    """The report explains it."""
    graph = two_convolutions_and_sum((0.7503103, 128), (4.407152, 0), (5.421469, 0))
    program = built(graph)
    assert where(program) == [("Conv", "machine"), ("Conv", "machine"), ("Add", "host")]
    (part,) = (one for one in program.parts if not one.on_machine)
    assert part.reason == "integers would change the sum of 2 of 65,536 pairs of values"
    program.run(backend="functional").raise_if_wrong()
    assert where(Network(graph=graph).build(MACHINE, approximate=True))[1] == ("Conv + Add", "machine")
