"""Chains with layers whose weights are sums of several int8 values."""

import pytest

from accel.core.config import load_config
from accel.network.network import Network
from accel.network.network_program import NetworkProgram
from tests.network.networks import MACHINE, Small


def built(small: Small) -> NetworkProgram:
    return Network(graph=small.graph("y")).build(MACHINE)


def assert_one_chain(program: NetworkProgram) -> None:
    (chain,) = program.chains
    assert [part.reason for part in program.parts if not part.on_machine] == []
    chain.program.check().raise_if_bad()
    program.run().raise_if_wrong()


@pytest.mark.parametrize(
    ("weights", "channels", "size", "kernel", "stride"),
    [
        (("uint8", 0), 16, 6, 1, 1),  # 0 to 255: sums of three
        (("uint8", 100), 32, 7, 3, 1),
        (("int8", 50), 48, 9, 3, 2),
        (("uint8", 128), 32, 30, 3, 1),  # in tiles
    ],
)
def test_convolutions(weights: tuple[str, int], channels: int, size: int, kernel: int, stride: int) -> None:
    small = Small((1, 16, size, size), dtype="uint8")
    small.zero_out = 90
    small.conv("x", "a", channels, 1)
    small.conv("a", "y", 16, kernel, stride=stride, pad=kernel // 2, weights=weights)
    assert_one_chain(built(small))


def test_a_memory_with_another_base() -> None:
    small = Small((1, 16, 6, 6), dtype="uint8")
    small.zero_out = 90
    small.conv("x", "a", 16, 1)
    small.conv("a", "y", 16, 1, weights=("uint8", 0))
    config = load_config(MACHINE).override({"mem_base": 1 << 20})
    assert_one_chain(Network(graph=small.graph("y")).build(config))


@pytest.mark.parametrize("rows", [1, 5])
def test_matrix_products(rows: int) -> None:
    small = Small((rows, 16))
    small.zero_out = 0
    small.matmul("x", "a", 64)
    small.matmul("a", "y", 20, weights=("int8", 90))
    assert_one_chain(built(small))


def test_partial_blocks_are_copied_by_the_host() -> None:
    """The second copy begins within a block, so that the host has to copy."""
    small = Small((1, 16, 4, 4))
    small.zero_out = 0
    small.conv("x", "a", 20, 1)
    small.conv("a", "y", 16, 1, weights=("int8", 90))
    program = built(small)
    assert len(program.chains) == 2
    program.run(backend="functional").raise_if_wrong()
