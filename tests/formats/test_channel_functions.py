"""Functions whose constants differ by channel run on the machine and equal ONNX Runtime for all values."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel.base.records import replace
from accel.formats.onnx_import import import_model
from accel.formats.onnx_runtime import run_optimized
from accel.network import function_parts, fusion_choice
from accel.network.cost import ZERO_COST
from accel.network.network import Network
from accel.network.network_program import NetworkProgram
from tests.formats.runtime import Array, model, node

MACHINES = ["vta-int8", "gemm8x8-int8", "ecp5-int8", "tiny-int8"]
SCALES = st.sampled_from([0.05, 0.02, 1 / 64, 0.1]) | st.floats(0.003, 0.3)


class Pair:
    """A scale and a zero point, as constants of a model."""

    def __init__(self, name: str, scale: float, zero: int, dtype: Any) -> None:
        self.names = [f"{name}_scale", f"{name}_zero"]
        self.constants = dict(zip(self.names, (np.float32(scale), dtype(zero)), strict=True))


def all_integers(channels: int, dtype: Any, rank: int) -> Array:
    """Each of the 256 values in each channel."""
    values = np.arange(256) + np.iinfo(dtype).min
    if rank == 2:
        return np.repeat(values[:, None], channels, axis=1).astype(dtype)
    return np.tile(values.reshape(1, 1, 16, 16), (1, channels, 1, 1)).astype(dtype)


def region(
    nodes: list[Any], constants: dict[str, Any], pairs: tuple[Pair, Pair], shape: tuple[int, ...]
) -> bytes:
    """Return a model of integers from ``x`` to ``y``, with float operators from ``f`` to ``g``."""
    source, target = pairs
    return model(
        [
            node("DequantizeLinear", ["x", *source.names], "f"),
            *nodes,
            node("QuantizeLinear", ["g", *target.names], "y"),
        ],
        {"x": (source.constants[source.names[1]].dtype.name, shape)},
        ["y"],
        constants | source.constants | target.constants,
    )


def run(content: bytes, values: Array, machine: str) -> NetworkProgram:
    """Run a model with these integers on the machine, and compare with ONNX Runtime."""
    program = Network(graph=import_model(content)).build(machine)
    result = program.run({"x": values}, backend="functional")
    wanted, _ = run_optimized(content, {"x": values}, ["y"])
    np.testing.assert_array_equal(result.outputs["y"], wanted["y"])
    assert not result.mismatches
    return program


def host_kinds(program: NetworkProgram) -> list[str]:
    return [part.fused.main.operator.kind for part in program.parts if not part.on_machine]


@pytest.fixture
def slow_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that is slower than any layer, so that all supported nodes run on the machine."""
    for module in (function_parts, fusion_choice):
        monkeypatch.setattr(module, "host_cost", lambda *_, **__: replace(ZERO_COST, cycles=1 << 40))


def batch_normalization(rng: np.random.Generator, channels: int) -> dict[str, Any]:
    return {
        "scale": (rng.uniform(0.3, 2, channels) * rng.choice([1, 1, -1], channels)).astype(np.float32),
        "bias": rng.normal(0, 1, channels).astype(np.float32),
        "mean": rng.normal(0, 1, channels).astype(np.float32),
        "variance": rng.uniform(0.2, 3, channels).astype(np.float32),
    }


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("relu", [False, True])
def test_batch_normalization_is_one_layer(machine: str, dtype: Any, relu: bool) -> None:
    channels = 12
    constants = batch_normalization(np.random.default_rng(3), channels)
    nodes = [node("BatchNormalization", ["f", *constants], "n" if relu else "g")]
    nodes += [node("Relu", ["n"], "g")] if relu else []
    least = int(np.iinfo(dtype).min)
    pairs = Pair("s", 0.031, least + 120, dtype), Pair("t", 0.043, least if relu else least + 128, dtype)
    content = region(nodes, constants, pairs, (1, channels, 16, 16))
    program = run(content, all_integers(channels, dtype, 4), machine)
    assert [part.fused.operators() for part in program.parts] == ["ChannelTable"]
    assert not host_kinds(program)


@settings(max_examples=25)
@given(SCALES, SCALES, st.integers(-128, 127), st.integers(-128, 127), st.integers(0, 2**32), st.booleans())
def test_random_batch_normalization_and_prelu_equal_onnx_runtime(
    scale: float, out_scale: float, zero: int, out_zero: int, seed: int, prelu: bool
) -> None:
    rng = np.random.default_rng(seed)
    channels = int(rng.integers(1, 9))
    if prelu:
        slopes = rng.choice([0.25, -0.1, 0.0, 1.0, -1.0, *rng.normal(0, 0.3, 3)], channels)
        constants: dict[str, Any] = {"slope": slopes.astype(np.float32).reshape(-1, 1, 1)}
        nodes = [node("PRelu", ["f", "slope"], "g")]
    else:
        constants = batch_normalization(rng, channels)
        nodes = [node("BatchNormalization", ["f", *constants], "g")]
    pairs = Pair("s", scale, zero, np.int8), Pair("t", out_scale, out_zero, np.int8)
    content = region(nodes, constants, pairs, (1, channels, 16, 16))
    run(content, all_integers(channels, np.int8, 4), "vta-int8")


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("slopes", "layers"),
    [
        ([0.25, 0.1, 0.0, 0.7, 0.3], ["ChannelTable", "ChannelTable + Add"]),
        ([-0.25, -0.1, -0.4, -0.7, -0.3], ["ChannelTable", "ChannelTable + Add"]),
        ([-0.25, 0.1, 0.0, 1.0, 0.3], ["ChannelTable", "ChannelTable + Add", "ChannelTable + Add"]),
        ([0.25], ["ChannelTable", "ChannelTable + Add"]),
    ],
)
@pytest.mark.usefixtures("slow_host")
def test_prelu_is_a_sum_of_layers(machine: str, slopes: list[float], layers: list[str]) -> None:
    constants = {"slope": np.array(slopes, np.float32).reshape(-1, 1, 1)}
    pairs = Pair("s", 0.031, 5, np.int8), Pair("t", 0.0283, -20, np.int8)
    content = region([node("PRelu", ["f", "slope"], "g")], constants, pairs, (1, 5, 16, 16))
    program = run(content, all_integers(5, np.int8, 4), machine)
    assert [part.fused.operators() for part in program.parts] == layers
    assert len(program.chains) == 1


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.usefixtures("slow_host")
def test_channels_of_a_matrix_are_its_last_axis(machine: str) -> None:
    slopes = np.linspace(-0.2, 0.6, 20).astype(np.float32)
    pairs = Pair("s", 0.031, 5, np.int8), Pair("t", 0.0283, -20, np.int8)
    content = region([node("PRelu", ["f", "slope"], "g")], {"slope": slopes}, pairs, (256, 20))
    assert not host_kinds(run(content, all_integers(20, np.int8, 2), machine))


def test_a_max_pool_after_prelu_takes_integers() -> None:
    constants = {"slope": np.array([0.25, 0.1, -0.3], np.float32).reshape(-1, 1, 1)}
    nodes = [
        node("PRelu", ["f", "slope"], "p"),
        node("MaxPool", ["p"], "g", kernel_shape=[2, 2], strides=[2, 2]),
    ]
    pairs = Pair("s", 0.031, 5, np.int8), Pair("t", 0.0283, -20, np.int8)
    program = run(region(nodes, constants, pairs, (1, 3, 16, 16)), all_integers(3, np.int8, 4), "vta-int8")
    assert program.parts[-1].fused.operators() == "MaxPool"
    assert len(program.chains) == 1
    assert not host_kinds(program)


def test_constants_along_another_axis_stay_on_the_host() -> None:
    constants = {"slope": np.linspace(0.1, 0.5, 16).astype(np.float32).reshape(16, 1)}
    pairs = Pair("s", 0.031, 5, np.int8), Pair("t", 0.0283, -20, np.int8)
    content = region([node("PRelu", ["f", "slope"], "g")], constants, pairs, (1, 3, 16, 16))
    program = run(content, all_integers(3, np.int8, 4), "vta-int8")
    assert host_kinds(program) == ["ChannelTable"]
    assert "number for each channel" in program.parts[0].reason


def test_a_function_that_is_not_linear_stays_on_the_host() -> None:
    """x * sigmoid(c * x) with a factor c for each channel."""
    constants = {"factor": np.array([1.0, 1.5, 2.0], np.float32).reshape(-1, 1, 1)}
    nodes = [
        node("Mul", ["f", "factor"], "m"),
        node("Sigmoid", ["m"], "s"),
        node("Mul", ["f", "s"], "g"),
    ]
    pairs = Pair("s", 0.05, 5, np.int8), Pair("t", 0.03, -20, np.int8)
    program = run(region(nodes, constants, pairs, (1, 3, 16, 16)), all_integers(3, np.int8, 4), "vta-int8")
    assert host_kinds(program) == ["ChannelTable"]
    assert "3 of its 3 channels" in program.parts[0].reason


def test_small_functions_stay_on_the_host() -> None:
    """Three layers of 256 values in 1 pixel would take more cycles than the host."""
    slopes = np.linspace(-0.2, 0.6, 256).astype(np.float32)
    pairs = Pair("s", 0.031, 5, np.int8), Pair("t", 0.0283, -20, np.int8)
    content = region([node("PRelu", ["f", "slope"], "g")], {"slope": slopes}, pairs, (1, 256))
    program = run(content, np.zeros((1, 256), np.int8), "vta-int8")
    assert host_kinds(program) == ["ChannelTable"]
    assert program.parts[0].reason == "the host is predicted to take fewer cycles than its 3 layers"
    division = program.choices[0]
    assert division.alternatives[0].stages == ("ChannelTable on the host",)
    assert division.alternatives[1].stages == ("ChannelTable", "ChannelTable + Add", "ChannelTable + Add")
