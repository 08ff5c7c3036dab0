"""Averages of windows on the machine."""

import numpy as np
import pytest

from accel.graph.graph_tensor import Quantization, Tensor
from accel.graph.pooling_operators import AveragePool
from accel.network.exact_averages import exact_average_scale
from accel.network.network import Network
from accel.network.network_program import NetworkProgram
from tests.network.networks import MACHINE, Small, windows


def averaged(
    scale: float, *, pad: int = 0, counted: bool = False, rank: int = 2, kernel: int = 2
) -> NetworkProgram:
    """An average between two convolutions, of values with the scale 0.3."""
    small = Small((1, 16, 7, 6)[: rank + 2], dtype="uint8")
    small.zero_out = 0
    small.conv("x", "a", 20, 1)
    operator = AveragePool(windows=windows(kernel, stride=2, pad=pad, rank=rank), count_padding=counted)
    quantization = Quantization.of(scale, 3)
    small.builder.emit(operator, ["a"], "b", dtype="uint8", quantization=quantization)
    small.conv("b", "y", 8, 1)
    program = Network(graph=small.graph("y")).build(MACHINE, keep=True)
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


def test_windows_with_different_counts_run_on_the_host() -> None:
    program = averaged(0.2177, pad=1, kernel=3)
    assert reasons(program) == ["its windows have different numbers of values"]


@pytest.mark.parametrize("scales", [(1e-30, 1e-30), (1e30, 1e30)])
def test_scales_that_overflow_float32(scales: tuple[float, float]) -> None:
    data, out = (
        Tensor(name="t", shape=(1,), dtype="int8", quantization=Quantization.of(np.float32(one), 0))
        for one in scales
    )
    assert exact_average_scale(data, out, 4, 4) is None
