"""Averages of windows on the machine."""

from typing import Any

import numpy as np
import pytest

from accel.formats.onnx_import import import_model
from accel.formats.onnx_runtime import run_onnx_runtime
from accel.graph.graph_tensor import Quantization, Tensor
from accel.graph.pooling_operators import AveragePool
from accel.network.exact_averages import exact_average_scale
from accel.network.network import Network
from accel.network.network_program import NetworkProgram
from tests.formats.runtime import model, node
from tests.network.networks import MACHINE, Small, windows
from tests.thorough import diagonal


def averaged(
    scale: float,
    *,
    pad: int = 0,
    counted: bool = False,
    rank: int = 2,
    kernel: int = 2,
    rewrite: str = "greedy",
    machine: str = MACHINE,
) -> NetworkProgram:
    """An average between two convolutions, of values with the scale 0.3."""
    small = Small((1, 16, 7, 6)[: rank + 2], dtype="uint8")
    small.zero_out = 0
    small.conv("x", "a", 20, 1)
    operator = AveragePool(windows=windows(kernel, stride=2, pad=pad, rank=rank), count_padding=counted)
    quantization = Quantization.of(scale, 3)
    small.builder.emit(operator, ["a"], "b", dtype="uint8", quantization=quantization)
    small.conv("b", "y", 8, 1)
    program = Network(graph=small.graph("y")).build(machine, keep=True, rewrite=rewrite)
    program.run(backend="functional").raise_if_wrong()
    return program


def reasons(program: NetworkProgram) -> list[str]:
    return [part.reason for part in program.parts if not part.on_machine]


@pytest.mark.parametrize(("rank", "pad"), [(2, 0), (1, 0), (2, 1)])
def test_averages_on_the_machine(rank: int, pad: int) -> None:
    program = averaged(0.2177, rank=rank, pad=pad, counted=True)
    assert reasons(program) == []
    assert len(program.chains) == 1


def test_averages_with_ties_run_on_the_host() -> None:
    """Every other sum of four values is a tie."""
    assert reasons(averaged(0.3)) == ["float32 may round some of its means differently"]


def test_windows_with_different_counts_may_run_on_the_host() -> None:
    """Windows of 4 values have ties. Without rules, no average pool is divided, and on machines with several
    rows neither: neighbouring layers in strips save more cycles."""
    assert reasons(averaged(0.3, pad=1, kernel=3)) == ["float32 may round some of its means differently"]
    program = averaged(0.2177, pad=1, kernel=3, rewrite="none")
    assert reasons(program) == ["its windows have different numbers of values"]
    program = averaged(0.2177, pad=1, kernel=3, machine="gemm8x8-int8")
    assert reasons(program) == ["its windows have different numbers of values"]


@pytest.mark.parametrize(("machine", "is_qdq"), diagonal(("vta-npu", "tiny-npu", "ecp5-npu"), (False, True)))
@pytest.mark.parametrize(
    ("shape", "attributes"),
    [
        ((1, 20, 9, 7), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
        ((2, 20, 8, 9), {"kernel_shape": [3, 2], "pads": [1, 0, 1, 0], "strides": [2, 1]}),
        ((1, 8, 6, 7), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
        ((1, 12, 11), {"kernel_shape": [5], "pads": [2, 2]}),
    ],
)
def test_windows_with_different_counts_are_one_program(
    shape: tuple[int, ...], attributes: dict[str, Any], is_qdq: bool, machine: str
) -> None:
    """ONNX Runtime divides by the number of values inside of the picture."""
    channels, rank = shape[1], len(shape) - 2
    rng = np.random.default_rng(3)
    constants: dict[str, Any] = {"w_s": np.float32(0.004), "w_z": np.int8(0)}
    for name, scale, zero in (("x", 0.0371, 3), ("a", 0.0437, 7), ("b", 0.0393, -9), ("y", 0.0517, 0)):
        constants |= {f"{name}_s": np.float32(scale), f"{name}_z": np.int8(zero)}
    constants["w"] = rng.integers(-127, 128, (channels, channels, *[1] * rank)).astype(np.int8)
    weights = ["w", "w_s", "w_z"]
    first = node("QLinearConv", ["x", "x_s", "x_z", *weights, "a_s", "a_z"], "a")
    last = node("QLinearConv", ["b", "b_s", "b_z", *weights, "y_s", "y_z"], "y")
    if is_qdq:
        middle = [
            node("DequantizeLinear", ["a", "a_s", "a_z"], "a_f"),
            node("AveragePool", ["a_f"], "b_f", **attributes),
            node("QuantizeLinear", ["b_f", "b_s", "b_z"], "b"),
        ]
    else:
        names = ["a", "a_s", "a_z", "b_s", "b_z"]
        middle = [node("QLinearAveragePool", names, "b", domain="com.microsoft", **attributes)]
    content = model([first, *middle, last], {"x": ("int8", shape)}, ["b", "y"], constants)
    feeds = {"x": rng.integers(-128, 128, shape).astype(np.int8)}
    program = Network(graph=import_model(content)).build(machine)
    assert len(program.chains) == 1
    assert {part.fused.main.operator.kind for part in program.parts if not part.on_machine} <= {
        "Slice",
        "Concat",
    }
    result = program.run(feeds, backend="functional")
    result.raise_if_wrong()
    want = run_onnx_runtime(content, feeds)
    for name in ("b", "y"):
        np.testing.assert_array_equal(result.outputs[name], want[name])


@pytest.mark.parametrize("scales", [(1e-30, 1e-30), (1e30, 1e30)])
def test_scales_that_overflow_float32(scales: tuple[float, float]) -> None:
    data, out = (
        Tensor(name="t", shape=(1,), dtype="int8", quantization=Quantization.of(np.float32(one), 0))
        for one in scales
    )
    assert exact_average_scale(data, out, 4, 4) is None
