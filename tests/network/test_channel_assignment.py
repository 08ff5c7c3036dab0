"""Channel maps: moves between channels that move no data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel.compiler.target.machine import machine
from accel.graph.graph import Graph
from accel.graph.graph_evaluation import evaluate
from accel.graph.graph_tensor import random_values
from accel.graph.movement_operators import Concat, Pad, Slice, Take
from accel.graph.product_operators import Conv
from accel.network.channel_assignment import assign_channel_maps
from accel.network.channel_maps import UNUSED, ZERO, ChannelMap, common, concatenated
from accel.network.network import Network
from tests.network.moving_networks import moving_network
from tests.network.networks import MACHINE, Small, assert_programs

MACHINES = (MACHINE, "gemm8x8-int8", "ecp5-int8", "tiny-int8")
SEEDS = st.integers(0, 10**6)


def kinds(graph: Graph) -> list[str]:
    return [node.operator.kind for node in graph.nodes]


def test_a_map_has_whole_blocks() -> None:
    assert ChannelMap.plain(3, 4).lanes == (0, 1, 2, ZERO)
    assert ChannelMap.plain(4, 4).is_plain


def test_a_slice_keeps_the_blocks_of_its_channels() -> None:
    found = ChannelMap.plain(10, 4).taken((5, 6), 4)
    assert found == (ChannelMap((UNUSED, 0, 1, UNUSED)), 4)


def test_a_channel_that_is_taken_twice_has_no_lane() -> None:
    assert ChannelMap.plain(4, 4).taken((1, 1), 4) is None


def test_concatenated_maps_keep_their_holes() -> None:
    maps = [ChannelMap.plain(3, 4), ChannelMap.plain(2, 4)]
    assert concatenated(maps).lanes == (0, 1, 2, ZERO, 3, 4, ZERO, ZERO)


def test_padding_fills_lanes_of_zeros() -> None:
    assert ChannelMap.plain(3, 8).padded(1, 2) == ChannelMap((1, 2, 3, 0, 4, 5, ZERO, ZERO))
    assert ChannelMap.plain(3, 4).padded(1, 1) is None


def test_a_lane_is_zero_if_it_is_zero_in_all_operands() -> None:
    left, right = ChannelMap((0, ZERO, ZERO)), ChannelMap((0, ZERO, UNUSED))
    assert common([left, right]).lanes == (0, ZERO, UNUSED)


@pytest.mark.parametrize("on", MACHINES)
def test_concatenation_inside_blocks_is_one_program(on: str) -> None:
    small = Small((1, 7, 6, 6))
    small.zero_out = 3
    small.conv("x", "a", 21, 3, pad=1)
    small.conv("x", "b", 5, 1)
    small.builder.emit(Concat(axis=1), ["a", "b"], "c")
    small.conv("c", "y", 9, 3, pad=1)
    assert_programs(small.graph("y"), 1, on)


def test_a_matrix_product_of_the_last_axis_leaves_channels_alone() -> None:
    """Its weights belong to the columns of the concatenated pictures."""
    small = Small((1, 7, 6, 2))
    small.zero_out = 3
    small.conv("x", "a", 6, 1)
    small.conv("x", "b", 6, 1)
    small.builder.emit(Concat(axis=1), ["a", "b"], "c")
    small.matmul("c", "y", 5)
    graph = small.graph("y")
    program = Network(graph=graph).build(MACHINE)
    inputs = program.random_inputs()
    result = program.run(inputs, backend="functional")
    result.raise_if_wrong()
    assert np.array_equal(result.outputs["y"], evaluate(graph, inputs)["y"])


def test_a_slice_inside_a_block_is_one_program() -> None:
    small = Small((1, 16, 6, 6))
    small.conv("x", "a", 40, 1)
    small.builder.emit(Slice(starts=(0, 7, 0, 0), sizes=(1, 20, 6, 6), steps=(1, 1, 1, 1)), ["a"], "s")
    small.largest("s", "m")
    small.conv("m", "y", 9, 3)
    graph = small.graph("y")
    assert kinds(assign_channel_maps(graph, machine(MACHINE).config)[0]) == [
        "Conv",
        "Slice",
        "MaxPool",
        "Conv",
    ]
    assert_programs(graph, 1)


def test_a_shuffle_permutes_weights() -> None:
    small = Small((1, 16, 6, 6))
    small.conv("x", "a", 12, 1)
    small.builder.emit(Take(axis=1, indices=(0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11)), ["a"], "s")
    small.conv("s", "d", 12, 3, pad=1, groups=12)
    small.conv("d", "y", 9, 1)
    graph = small.graph("y")
    assert kinds(assign_channel_maps(graph, machine(MACHINE).config)[0]) == ["Conv", "Conv", "Conv"]
    assert_programs(graph, 1)


def test_padding_inside_a_block_takes_no_node_and_other_padding_a_product() -> None:
    for channels, expected in ((8, 2), (20, 3)):
        small = Small((1, 16, 6, 6))
        small.conv("x", "a", 12, 1)
        pad = Pad(begin=(0, 0, 0, 0), end=(0, channels - 4, 0, 0), value=3)
        small.builder.emit(pad, ["a"], "p")
        small.conv("p", "y", 9, 1)
        graph = small.graph("y")
        assert kinds(assign_channel_maps(graph, machine(MACHINE).config)[0]) == ["Conv"] * expected
        assert_programs(graph, 1)


def test_padding_with_a_number_is_a_bias() -> None:
    small = Small((1, 16, 6, 6))
    small.conv("x", "a", 12, 1)
    small.builder.emit(Pad(begin=(0, 2, 0, 0), end=(0, 0, 0, 0), value=-77), ["a"], "p")
    small.conv("p", "y", 9, 1)
    assert_programs(small.graph("y"), 1)


def test_maps_that_differ_take_a_product() -> None:
    """The lanes of a Slice and of a shuffle cannot both be those of their sum."""
    small = Small((1, 16, 6, 6))
    small.conv("x", "a", 24, 1)
    small.builder.emit(Slice(starts=(0, 3, 0, 0), sizes=(1, 12, 6, 6), steps=(1, 1, 1, 1)), ["a"], "s")
    small.conv("x", "b", 12, 1)
    small.builder.emit(Take(axis=1, indices=tuple(range(11, -1, -1))), ["b"], "t")
    small.add("s", "t", "u")
    small.conv("u", "y", 9, 1)
    graph = small.graph("y")
    new = assign_channel_maps(graph, machine(MACHINE).config)[0]
    assert sum(isinstance(node.operator, Conv) for node in new.nodes) == 4
    assert_programs(graph, 1)


def test_weights_of_several_scales_and_zero_points() -> None:
    small = Small((1, 16, 6, 6), dtype="uint8")
    small.zero_out = 90
    small.conv("x", "a", 5, 1, weights=("uint8", 128))
    small.conv("x", "b", 5, 1, weights=("uint8", 100))
    small.builder.emit(Concat(axis=1), ["a", "b"], "c")
    small.conv("c", "y", 9, 1, weights=("uint8", 17))
    assert_programs(small.graph("y"), 1)


def test_graphs_without_such_moves_stay_as_they_are() -> None:
    small = Small((1, 16, 6, 6))
    small.zero_out = 3
    small.conv("x", "a", 32, 1)
    small.conv("x", "b", 5, 1)
    small.builder.emit(Concat(axis=1), ["a", "b"], "c")
    small.conv("c", "y", 9, 1)
    graph = small.graph("y")
    assert assign_channel_maps(graph, machine(MACHINE).config)[0] is graph


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.integers(2, 9), st.sampled_from(MACHINES))
def test_random_graphs_compute_the_same(seed: int, steps: int, on: str) -> None:
    graph = moving_network(seed, steps)
    new = assign_channel_maps(graph, machine(on).config)[0]
    inputs = {"x": random_values(np.random.default_rng(seed), graph.tensors["x"])}
    expected, found = evaluate(graph, inputs), evaluate(new, inputs)
    for name in graph.outputs:
        assert np.array_equal(expected[name], found[name])


@settings(max_examples=5, deadline=None)
@given(SEEDS, st.integers(2, 7), st.sampled_from(MACHINES), st.booleans())
def test_random_networks_equal_numpy(seed: int, steps: int, on: str, keep: bool) -> None:
    graph = moving_network(seed, steps)
    inputs = {"x": random_values(np.random.default_rng(seed), graph.tensors["x"])}
    result = Network(graph=graph).build(on, keep=keep).run(inputs, backend="functional")
    result.raise_if_wrong()
    expected = evaluate(graph, inputs)
    for name in graph.outputs:
        assert np.array_equal(expected[name], result.outputs[name])
