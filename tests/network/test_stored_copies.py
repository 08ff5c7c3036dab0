"""Moves that layers execute when they store their results."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel.core.isa import Store, StoreReq
from accel.core.isa.opcodes import Finishing
from accel.graph.graph_evaluation import evaluate
from accel.graph.graph_tensor import random_values
from accel.graph.movement_operators import Concat, DepthToSpace, Slice, SpaceToDepth, Take, Transpose
from accel.network.network import Network
from accel.network.relocated_transfers import scatter_store
from tests.network.moving_networks import PIXELS, SUMS, moving_network
from tests.network.networks import MACHINE, Small, assert_programs

MACHINES = (MACHINE, "gemm8x8-int8", "ecp5-int8", "tiny-int8")


def repeated(small: Small, source: str, output: str, factor: int) -> str:
    for axis in (2, 3):
        size = small.builder.tensors[source].shape[axis]
        indices = tuple(np.repeat(np.arange(size), factor).tolist())
        target = output if axis == 3 else f"{output}_rows"
        source = small.builder.emit(Take(axis=axis, indices=indices), [source], target)
    return source


@pytest.mark.parametrize("on", MACHINES)
def test_a_resize_in_front_of_a_concat(on: str) -> None:
    small = Small((1, 8, 4, 6))
    small.zero_out = 3
    small.conv("x", "a", 16, 1)
    small.conv("a", "b", 12, 3, pad=1, stride=2)
    repeated(small, "b", "r", 2)
    small.builder.emit(Concat(axis=1), ["r", "a"], "c")
    small.conv("c", "y", 8, 3, pad=1)
    assert_programs(small.graph("y"), 1, on)


@pytest.mark.parametrize("columns_first", [True, False])
def test_channels_become_pixels_and_pixels_channels(columns_first: bool) -> None:
    small = Small((1, 8, 6, 6))
    small.conv("x", "a", 5, 1)
    small.builder.emit(SpaceToDepth(block=2), ["a"], "s")
    small.conv("s", "b", 24, 3, pad=1)
    small.builder.emit(DepthToSpace(block=2, columns_first=columns_first), ["b"], "d")
    small.conv("d", "y", 8, 3, pad=1)
    assert_programs(small.graph("y"), 1)


@pytest.mark.parametrize("axis", [1, 2, 3])
def test_a_concat_of_several_pictures(axis: int) -> None:
    small = Small((2, 8, 4, 4))
    small.zero_out = 3
    small.conv("x", "a", 16, 1)
    small.conv("x", "b", 16, 3, pad=1)
    small.builder.emit(Concat(axis=axis), ["a", "b"], "c")
    small.conv("c", "y", 8, 1)
    assert_programs(small.graph("y"), 1)


def test_rows_of_a_slice_with_steps() -> None:
    small = Small((1, 8, 6, 6))
    small.conv("x", "a", 16, 1)
    small.builder.emit(Slice(starts=(0, 0, 1, 5), sizes=(1, 16, 3, 3), steps=(1, 1, 2, -2)), ["a"], "s")
    small.conv("s", "y", 8, 1)
    assert_programs(small.graph("y"), 1)


def test_a_transpose_of_rows_and_columns() -> None:
    small = Small((1, 8, 4, 6))
    small.conv("x", "a", 16, 1)
    small.builder.emit(Transpose(permutation=(0, 1, 3, 2)), ["a"], "t")
    small.conv("t", "y", 8, 3, pad=1)
    assert_programs(small.graph("y"), 1)


def test_a_sum_in_two_concats() -> None:
    """Its residuals are loaded again for each copy."""
    small = Small((1, 16, 4, 4))
    small.zero_out = 3
    small.conv("x", "a", 16, 1)
    small.conv("a", "b", 16, 3, pad=1)
    small.add("a", "b", "s")
    small.conv("s", "d", 16, 1)
    small.builder.emit(Concat(axis=1), ["s", "s"], "twice")
    small.builder.emit(Concat(axis=2), ["s", "s"], "high")
    small.conv("twice", "y", 8, 1)
    small.conv("high", "z", 8, 1)
    program = assert_programs(small.graph("y", "z", "d"), 1)
    stores = [one for one in program.chains[0].program.instructions if isinstance(one, Store)]
    assert sum(one.sram_elements for one in stores if one.memory == Finishing.ADD) == 4 * 16


def test_a_result_that_is_read_elsewhere_only_is_not_stored_itself() -> None:
    small = Small((1, 8, 4, 4))
    small.conv("x", "a", 16, 1)
    repeated(small, "a", "r", 2)
    small.conv("r", "y", 8, 1)
    program = assert_programs(small.graph("y"), 1)
    first = program.chains[0].program.instructions[: program.chains[0].ends[0]]
    assert sum(one.sram_elements for one in first if isinstance(one, Store)) == 4 * 16


def test_a_concat_that_only_moves_read_is_not_stored() -> None:
    """A DepthToSpace of several results: each is stored where the next layer reads it, and only there."""
    small = Small((1, 16, 6, 5))
    small.zero_out = 3
    phases = [small.conv("x", f"a{number}", 16, 1) for number in range(4)]
    small.builder.emit(Concat(axis=1), phases, "c")
    small.builder.emit(DepthToSpace(block=2), ["c"], "d")
    small.conv("d", "y", 8, 3, pad=1)
    (chain,) = assert_programs(small.graph("y"), 1).chains
    stored = sum(one.y_size * one.x_size for one in chain.program.instructions if isinstance(one, StoreReq))
    assert stored == 4 * 30 + 120
    assert chain.memory.nbytes == 4096  # 120 elements of 16 bytes, in whole pages


def test_elements_that_are_mixed_stay_on_the_host() -> None:
    small = Small((1, 16, 4, 16))
    small.conv("x", "a", 16, 1)
    small.builder.emit(Transpose(permutation=(0, 3, 2, 1)), ["a"], "t")
    small.conv("t", "y", 8, 1)
    assert_programs(small.graph("y"), 2)


def store(**fields: int) -> Store:
    return Store(**{"sram_base": 0, "dram_base": 0, "y_size": 1, "x_size": 4, "x_stride": 4, **fields})


def test_a_row_with_equal_distances_is_one_store() -> None:
    ((piece, elements),) = scatter_store(store(), 0, np.array([0, 2, 4, 6]))
    assert (piece.y_size, piece.x_size, piece.x_stride, piece.dram_base) == (4, 1, 2, 0)
    assert elements.tolist() == [0, 1, 2, 3]


def test_elements_without_a_position_are_left_out() -> None:
    pieces = scatter_store(store(), 0, np.array([7, -1, 9]))
    assert [(one.sram_base, one.dram_base, one.x_size) for one, _ in pieces] == [(0, 7, 1), (2, 9, 1)]


def test_parameters_of_each_column_become_those_of_each_row() -> None:
    fields = {"memory": Finishing.REQ, "par": 3, "sram_base": 0, "dram_base": 0}
    wide = StoreReq(**fields, y_size=1, x_size=4, x_stride=4, par_x=True)
    ((piece, _),) = scatter_store(wide, 0, np.array([0, 3, 6, 9]))
    assert isinstance(piece, StoreReq)
    assert (piece.par, piece.par_x, piece.par_y) == (3, False, True)


@given(st.integers(1, 4), st.integers(1, 5), st.integers(0, 3), st.data())
def test_scattered_elements_are_at_their_positions(
    rows: int, columns: int, gap: int, data: st.DataObject
) -> None:
    stride, base = columns + gap, 100
    count = (rows - 1) * stride + columns
    numbers = data.draw(st.permutations(range(3 * count)))[:count]
    kept = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    positions = np.where(kept, numbers, -1)
    written: dict[int, int] = {}
    whole = store(y_size=rows, x_size=columns, x_stride=stride, dram_base=base)
    for piece, elements in scatter_store(whole, base, positions):
        targets = [
            piece.dram_base + y * piece.x_stride + x for y, x in np.ndindex(piece.y_size, piece.x_size)
        ]
        assert elements.tolist() == list(range(piece.sram_base, piece.sram_base + piece.sram_elements))
        written |= dict(zip(targets, elements.tolist(), strict=True))
    expected = {
        base + positions[y * stride + x]: y * columns + x
        for y, x in np.ndindex(rows, columns)
        if positions[y * stride + x] >= 0
    }
    assert written == expected


@pytest.mark.parametrize("kinds", [PIXELS, SUMS])
@settings(max_examples=5, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 7), st.sampled_from(MACHINES), st.booleans())
def test_random_networks_equal_numpy(
    kinds: tuple[str, ...], seed: int, steps: int, on: str, keep: bool
) -> None:
    graph = moving_network(seed, steps, kinds)
    inputs = {"x": random_values(np.random.default_rng(seed), graph.tensors["x"])}
    result = Network(graph=graph).build(on, keep=keep).run(inputs, backend="functional")
    result.raise_if_wrong()
    expected = evaluate(graph, inputs)
    for name in graph.outputs:
        assert np.array_equal(result.outputs[name], expected[name])
