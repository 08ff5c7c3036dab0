"""Integer convolutions and products compared with Python's integers."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from accel.graph.graph_builder import Builder
from accel.graph.graph_evaluation import evaluate
from accel.graph.graph_tensor import Array, Quantization, Tensor
from accel.graph.product_operators import Conv, MatMul
from accel.graph.window_geometry import Windows

RNG = np.random.default_rng(0)


def wrapped(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_sums_are_exact_modulo_32_bits(groups: int) -> None:
    windows = Windows(kernel=(3, 2), strides=(2, 1), dilations=(1, 2), begin=(1, 0), end=(2, 1))
    data = RNG.integers(0, 256, (2, 4, 5, 6)).astype(np.uint8)
    weights = RNG.integers(-128, 128, (4, 4 // groups, 3, 2)).astype(np.int8)
    bias = np.array([2**31 - 1, -(2**31), 0, 7], np.int32)
    zeros = np.array([5, -128, 0, 127])
    made = Builder()
    made.input(Tensor(name="x", shape=data.shape, dtype="uint8", quantization=Quantization.of(1, 200)))
    made.constant("w", weights, Quantization.of(1, zeros, 0))
    made.constant("b", bias)
    operator = Conv(windows=windows, groups=groups)
    made.emit(operator, ["x", "w", "b"], "y", dtype="int32")
    graph = made.graph("made", ["y"])
    found = evaluate(graph, {"x": data})["y"]
    assert found.shape == (2, 4, 3, 5)
    assert graph.macs(graph.nodes[0]) == found.size * 4 // groups * 6
    for n, o, y, x in product(*map(range, found.shape)):
        total = int(bias[o])
        for i, ky, kx in product(range(4 // groups), range(3), range(2)):
            row, column = 2 * y + ky - 1, x + 2 * kx
            if 0 <= row < 5 and column < 6:
                number = int(data[n, o // (4 // groups) * (4 // groups) + i, row, column]) - 200
                total += number * (int(weights[o, i, ky, kx]) - int(zeros[o]))
        assert found[n, o, y, x] == wrapped(total)


def matmul(data: Array, weights: Array, bias: Array) -> Array:
    made = Builder()
    made.input(Tensor(name="x", shape=data.shape, dtype="int8", quantization=Quantization.of(1, -128)))
    made.constant("w", weights, Quantization.of(1, -128))
    made.constant("b", bias)
    made.emit(MatMul(), ["x", "w", "b"], "y", dtype="int32")
    return evaluate(made.graph("made", ["y"]), {"x": data})["y"]


@pytest.mark.parametrize("depth", [100, 258, 259, 70_000])
def test_the_largest_sums(depth: int) -> None:
    """Sums exceed float32's exact integers, and 32 bits."""
    data, weights = np.full((1, depth), 127, np.int8), np.full((depth, 1), 127, np.int8)
    weights[::3] = 126
    exact = sum(255 * (255 - (place % 3 == 0)) for place in range(depth))
    assert matmul(data, weights, np.array([1], np.int32)).tolist() == [[wrapped(exact + 1)]]
