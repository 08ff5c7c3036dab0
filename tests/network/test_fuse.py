"""Which nodes become one stage."""

from collections.abc import Callable, Sequence

import pytest

from accel.graph.graph import Graph
from accel.graph.movement import Pad
from accel.network.fuse import Group, apart, fuse
from accel.network.stage import Stage
from tests.network.networks import Small, residual_network


def fused(graph: Graph) -> tuple[Stage, ...]:
    """The stages of which each takes as much with it as it can."""
    return staged(graph, fuse(graph))


def staged(graph: Graph, groups: Sequence[Group]) -> tuple[Stage, ...]:
    stages = {stage.output: stage for group in groups for stage in group.alternatives[0]}
    return tuple(stages[node.output] for node in graph.nodes if node.output in stages)


def names(stages: tuple[Stage, ...]) -> list[str]:
    return [stage.operators() for stage in stages]


def test_bounds_and_sums_go_with_products() -> None:
    graph = residual_network()
    stages = fused(graph)
    assert names(stages) == ["Conv + Clip", "Conv + Add + Clip", "GlobalAveragePool", "Reshape", "MatMul"]
    assert stages[1].residual == "a_relu"
    assert stages[1].inputs == ("a_relu", "b_w", "b_b")


@pytest.mark.parametrize("fusion", [fuse, apart])
def test_every_node_is_in_one_stage_of_each_alternative(
    fusion: Callable[[Graph], tuple[Group, ...]],
) -> None:
    graph = residual_network()
    found = []
    for group in fusion(graph):
        inside = [[node.name for stage in stages for node in stage.nodes] for stages in group.alternatives]
        assert all(sorted(one) == sorted(inside[0]) for one in inside)
        assert len({tuple(stages) for stages in group.alternatives}) == len(group.alternatives)
        assert all(len(stage.nodes) == 1 for stage in group.apart)
        found += inside[0]
    assert sorted(found) == sorted(node.name for node in graph.nodes)


def test_stages_come_behind_what_they_take() -> None:
    graph = residual_network()
    known = {*graph.inputs, *graph.constants}
    for stage in fused(graph):
        assert known.issuperset(stage.inputs)
        known.add(stage.output)


def test_what_is_needed_elsewhere_stays() -> None:
    small = Small((1, 8, 6, 6))
    small.conv("x", "a", 8)
    small.clip("a", "b", 0, None)
    assert names(fused(small.graph("b"))) == ["Conv + Clip"]
    assert names(fused(small.graph("a", "b"))) == ["Conv", "Clip"]


def test_of_two_convolutions_the_later_takes_the_sum() -> None:
    for order in (("a", "b"), ("b", "a")):
        small = Small((1, 8, 6, 6))
        small.conv("x", "a", 8)
        small.conv("x", "b", 8)
        small.add(*order, "c")
        assert names(fused(small.graph("c"))) == ["Conv", "Conv + Add"]
        assert fused(small.graph("c"))[1].name == "b"
        ways = [names(stages) for group in fuse(small.graph("c")) for stages in group.alternatives]
        assert ways == [["Conv", "Conv + Add"]] * 2 + [["Conv", "Conv", "Add"]]


def test_a_sum_with_itself_stays() -> None:
    small = Small((1, 8, 6, 6))
    small.conv("x", "a", 8)
    small.add("a", "a", "c")
    assert names(fused(small.graph("c"))) == ["Conv", "Add"]


@pytest.mark.parametrize("value", [-11, 0])
def test_padding_with_the_zero_point_goes_with_the_convolution(value: int) -> None:
    small = Small((1, 8, 6, 6))
    pad = Pad(begin=(0, 0, 1, 1), end=(0, 0, 1, 2), value=value)
    small.builder.emit(pad, ["x"], "p")
    small.conv("p", "a", 8)
    expected = ["Pad + Conv"] if value == -11 else ["Pad", "Conv"]
    assert names(fused(small.graph("a"))) == expected
