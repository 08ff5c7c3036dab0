"""Sparse constants of TensorFlow Lite files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from accel.base.errors import AccelError, GraphError
from accel.base.records import replace
from accel.formats.tflite_file import read_tflite_model
from accel.formats.tflite_import import import_tflite_model
from accel.formats.tflite_sparsity import Level, dense_values
from accel.graph.graph_evaluation import evaluate
from accel.graph.graph_tensor import Array
from tests.formats.tflite_writer import Sparsity, WrittenGraph, write_tflite

RNG = np.random.default_rng(0)


def sparse(dense: Array, order: Sequence[int], block: dict[int, int], kinds: str) -> tuple[Sparsity, Array]:
    """Return the levels and stored values of a dense array.

    Args:
        block: size of the block along each axis that has one.
        kinds: for each level ``d`` if it is dense, or ``s`` if it is sparse.
    """
    rank = dense.ndim
    sizes = [size // block.get(axis, 1) for axis, size in enumerate(dense.shape)]
    split = dense.reshape([n for axis, size in enumerate(sizes) for n in (size, block.get(axis, 1))])
    outer, inner = [2 * axis for axis in range(rank)], [2 * axis + 1 for axis in block]
    unused = [2 * axis + 1 for axis in range(rank) if axis not in block]
    tree = split.transpose([*outer, *inner, *unused]).reshape(*sizes, *block.values())
    tree = tree.transpose(order)
    levels: list[Any] = []
    nodes = [tree]
    for kind in kinds:
        if kind == "d":
            levels.append(nodes[0].shape[0] if nodes else tree.shape[len(levels)])
            nodes = [child for node in nodes for child in node]
            continue
        segments, indices, kept = [0], [], []
        for node in nodes:
            found = [at for at, child in enumerate(node) if np.any(child)]
            indices += found
            kept += [node[at] for at in found]
            segments.append(len(indices))
        levels.append((segments, indices))
        nodes = kept
    values = np.array([node[()] for node in nodes], dense.dtype)
    return Sparsity(order=order, levels=levels, block_map=list(block)), values


def model(dense: Array, sparsity: Sparsity, values: Array) -> bytes:
    """A file that adds its input and a sparse constant, after a DENSIFY."""
    graph = WrittenGraph()
    x = graph.tensor(*dense.shape, name="x")
    stored = graph.tensor(*dense.shape, dtype=dense.dtype.name, values=values, sparsity=sparsity)
    made = graph.tensor(*dense.shape, dtype=dense.dtype.name)
    graph.add("DENSIFY", [stored], made)
    if dense.dtype == np.float16:
        made, half = graph.tensor(*dense.shape), made
        graph.add("DEQUANTIZE", [half], made)
    y = graph.tensor(*dense.shape, name="y")
    graph.add("ADD", [x, made], y, options="AddOptions", FusedActivationFunction=0)
    graph.inputs, graph.outputs = [x], [y]
    return write_tflite(graph)


CASES = [
    ((5, 6), (0, 1), {}, "ds"),
    ((5, 6), (1, 0), {}, "ds"),
    ((5, 6), (1, 0), {}, "ss"),
    ((5, 6), (0, 1), {}, "dd"),
    ((6, 8), (0, 1, 2, 3), {0: 2, 1: 4}, "dsdd"),
    ((6, 8), (1, 0, 3, 2), {0: 3, 1: 2}, "ssdd"),
    ((6, 8), (0, 1, 2), {1: 4}, "dsd"),
    ((4, 3, 2, 8), (0, 1, 2, 3, 4), {3: 4}, "dddsd"),
    ((4, 3, 2, 6), (3, 1, 0, 2), {}, "sdds"),
]


@pytest.mark.parametrize(("shape", "order", "block", "kinds"), CASES)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("stored_as", ["Int32Vector", "Uint16Vector", "Uint8Vector"])
def test_sparse_constants_become_dense(
    shape: Sequence[int], order: Sequence[int], block: dict[int, int], kinds: str, dtype: str, stored_as: str
) -> None:
    dense = (RNG.normal(size=shape) * (RNG.random(shape) < 0.2)).astype(dtype)
    sparsity, values = sparse(dense, order, block, kinds)
    content = model(dense, replace(sparsity, vector=stored_as), values)
    graph = import_tflite_model(content)
    data = RNG.normal(size=shape).astype(np.float32)
    found = evaluate(graph, {"x": data})["y"]
    np.testing.assert_array_equal(found, data + dense.astype(np.float32))


CSR = [Level(size=2), Level(size=0, segments=np.array([0, 1, 3]), indices=np.array([2, 0, 1]))]
VALUES = np.array([5, 6, 7], np.float32)


def test_a_matrix_in_csr_form() -> None:
    np.testing.assert_array_equal(dense_values((2, 3), (0, 1), (), CSR, VALUES), [[0, 0, 5], [6, 7, 0]])


def level(segments: Sequence[int], indices: Sequence[int]) -> Level:
    return Level(size=0, segments=np.array(segments), indices=np.array(indices, np.int64))


@pytest.mark.parametrize(
    ("shape", "order", "block_map", "levels", "message"),
    [
        ((2, 3), (0, 0), (), CSR, "its traversal order is (0, 0); it must have the 2 axes once"),
        ((2, 3), (2, 1, 0), (0,), CSR, "its traversal order is (2, 1, 0); it must have the 3 axes once"),
        ((2, 3), (0, 1, 2), (5,), CSR, "its blocks have the axes (5,); they must be some of 2"),
        ((2, 3), (0, 1, 2, 3), (1, 1), CSR, "its blocks have the axes (1, 1); they must be some of 2"),
        ((2, 3), (0, 1), (), CSR[:1], "it has 1 levels; it must have 2"),
        ((0, 3), (0, 1), (), CSR, "its shape is (0, 3); it must be positive and take up to 1073741824 bytes"),
        (
            (1 << 20, 1 << 20),
            (0, 1),
            (),
            CSR,
            "its shape is (1048576, 1048576); it must be positive and take up to 1073741824 bytes",
        ),
        ((1 << 20, 3), (0, 1), (), CSR, "level 0 has the size 2; it must be 1048576"),
        (
            (1 << 20, 3),
            (0, 1),
            (),
            [Level(size=1 << 20), CSR[1]],
            "level 1 has 3 segments; it must have 1048577",
        ),
        ((2, 3), (0, 1, 2), (1,), [*CSR, Level(size=2)], "its blocks have the size 2; it must divide 3"),
        ((2, 3), (0, 1, 2), (1,), [*CSR, Level(size=0)], "its blocks have the size 0; it must divide 3"),
        (
            (2, 3),
            (0, 1),
            (),
            [CSR[0], level([0, 4, 3], [0, 1, 2])],
            "the segments of level 1 must ascend from 0 to 3",
        ),
        (
            (2, 3),
            (0, 1),
            (),
            [CSR[0], level([0, 1, 9], [0, 1, 2])],
            "the segments of level 1 must ascend from 0 to 3",
        ),
        (
            (2, 3),
            (0, 1),
            (),
            [CSR[0], level([1, 1, 3], [0, 1, 2])],
            "the segments of level 1 must ascend from 0 to 3",
        ),
        ((2, 3), (0, 1), (), [CSR[0], level([0, 1, 3], [0, 3, 2])], "the indices of level 1 must be in 0..2"),
        (
            (2, 3),
            (0, 1),
            (),
            [CSR[0], level([0, 1, 3], [0, -1, 2])],
            "the indices of level 1 must be in 0..2",
        ),
        ((2, 3), (0, 1), (), [CSR[0], level([0, 1, 1], [0])], "it has 3 values; its levels have 1"),
        ((2, 3), (0, 1), (), [Level(size=2), Level(size=3)], "it has 3 values; its levels have 6"),
    ],
)
def test_levels_that_do_not_fit(
    shape: tuple[int, ...],
    order: Sequence[int],
    block_map: Sequence[int],
    levels: Sequence[Level],
    message: str,
) -> None:
    with pytest.raises(GraphError, match=f"^{re.escape(message)}$"):
        dense_values(shape, order, block_map, levels, VALUES)


def test_damaged_sparse_files() -> None:
    rng = np.random.default_rng(0)
    dense = (rng.normal(size=(6, 8)) * (rng.random((6, 8)) < 0.2)).astype(np.float32)
    content = model(dense, *sparse(dense, (0, 1, 2, 3), {0: 2, 1: 4}, "dsdd"))
    found = set()
    for _ in range(800):
        changed = bytearray(content)
        place = int(rng.integers(8, len(changed)))
        changed[place] = int(rng.choice([0, 1, 127, 255, changed[place] ^ (1 << int(rng.integers(8)))]))
        try:
            read_tflite_model(bytes(changed))
        except AccelError as error:
            found.add(str(error))
    assert all(one.isprintable() for one in found)
    assert any("level" in one for one in found)
