"""The minimum cost of computations, counted element by element."""

from collections import defaultdict
from itertools import product
from typing import Any

import pytest
from hypothesis import given

import accel
from accel import te
from accel.compiler.expr.compulsory_cost import compulsory
from tests.compiler.convs import convolutions
from tests.strategies import examples

CONFIG = accel.machine("tiny").config


@examples(60)
@given(convolutions(CONFIG, 1))
def test_convolutions(workload: accel.Workload) -> None:
    """Compare with an enumeration of the pairs of input and kernel elements."""
    sizes = workload.parameters
    touched: dict[str, set[Any]] = defaultdict(set)
    _, _, rows, columns = workload.output.shape
    met = 0
    for y, x, dy, dx in product(range(rows), range(columns), *map(range, sizes["kernel"])):
        at = (
            y * sizes["stride"][0] + dy * sizes["dilation"][0] - sizes["padding"][0],
            x * sizes["stride"][1] + dx * sizes["dilation"][1] - sizes["padding"][1],
        )
        if 0 <= at[0] < sizes["H"] and 0 <= at[1] < sizes["W"]:
            met += 1
            touched["data"].add(at)
    N, IC, OC = sizes["N"], sizes["IC"], sizes["OC"]
    inputs = IC // sizes["groups"]
    taps = sizes["kernel"][0] * sizes["kernel"][1]
    found = compulsory([workload.output])
    assert found.macs == N * inputs * OC * rows * columns * taps
    assert found.macs - found.padding_macs == N * inputs * OC * met
    bias = 4 * OC if workload.bias is not None else 0
    residual = N * OC * rows * columns if workload.residual is not None else 0
    assert found.read_bytes == N * IC * len(touched["data"]) + OC * inputs * taps + bias + residual
    assert found.write_bytes == N * OC * rows * columns


def test_partly_needed_intermediate_tensors() -> None:
    A = te.placeholder((20, 6), name="A")
    B = te.compute((18, 6), lambda y, x: A[y, x] + A[y + 2, x], name="B")
    C = te.compute((3, 4), lambda y, x: B[y * 4, x] * 2, name="C", dtype="int8")
    found = compulsory([C])
    assert found.read_bytes == len({0, 4, 8, 2, 6, 10}) * 4
    assert (found.macs, found.padding_macs, found.write_bytes) == (0, 0, 12)


@pytest.mark.parametrize(("name", "padding"), [("vta", 0.0), ("gemm8x8", 0.0)])
def test_ideal_cycles_exclude_padding(name: str, padding: float) -> None:
    config = accel.machine(name).config
    found = compulsory([accel.conv2d(1, 16, 7, 7, 16, 3, padding=1).output])
    assert found.macs == 16 * 16 * 441
    assert found.ideal_cycles(config) == 16 * 16 * 361 / config.macs_per_cycle + padding
