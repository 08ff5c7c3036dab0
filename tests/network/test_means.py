"""Means of windows on the machine."""

import numpy as np
import pytest

from accel.graph.pools import AveragePool
from accel.graph.tensor import Quantization, Tensor
from accel.network.means import exact_mean_scale
from accel.network.network import Network
from accel.network.program import NetworkProgram
from tests.network.networks import MACHINE, Small, windows


def averaged(
    scale: float, *, pad: int = 0, counted: bool = False, rank: int = 2, kernel: int = 2
) -> NetworkProgram:
    """A mean between two convolutions, of values with the scale 0.3."""
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
def test_means_that_round_alike(rank: int, pad: int) -> None:
    program = averaged(0.2177, rank=rank, pad=pad, counted=True)
    assert reasons(program) == []
    assert len(program.chains) == 1


def test_means_that_may_round_otherwise() -> None:
    """Half of the sums of four are ties."""
    assert reasons(averaged(0.3)) == ["floating point may round some of its means to the other side"]


def test_means_of_different_numbers() -> None:
    program = averaged(0.2177, pad=1, kernel=3)
    assert reasons(program) == ["its windows have different numbers of values"]


@pytest.mark.parametrize("scales", [(1e-30, 1e-30), (1e30, 1e30)])
def test_scales_out_of_reach(scales: tuple[float, float]) -> None:
    data, out = (
        Tensor(name="t", shape=(1,), dtype="int8", quantization=Quantization.of(np.float32(one), 0))
        for one in scales
    )
    assert exact_mean_scale(data, out, 4, 4) is None
