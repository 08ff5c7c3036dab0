from collections.abc import Callable, Sequence

import pytest

from accel.graph.graph import Graph
from accel.graph.movement_operators import Pad
from accel.network.fused_nodes import FusedNodes
from accel.network.fusion_candidates import FusionGroup, fusion_groups, unfused_groups
from tests.network.networks import Small, residual_network


def most_fused(graph: Graph) -> tuple[FusedNodes, ...]:
    """The alternative with the most fusion in each group."""
    return first_alternatives(graph, fusion_groups(graph))


def first_alternatives(graph: Graph, groups: Sequence[FusionGroup]) -> tuple[FusedNodes, ...]:
    stages = {stage.output: stage for group in groups for stage in group.alternatives[0]}
    return tuple(stages[node.output] for node in graph.nodes if node.output in stages)


def names(stages: tuple[FusedNodes, ...]) -> list[str]:
    return [stage.operators() for stage in stages]


def test_products_fuse_bounds_and_sums() -> None:
    graph = residual_network()
    stages = most_fused(graph)
    assert names(stages) == ["Conv + Clip", "Conv + Add + Clip", "GlobalAveragePool", "Reshape", "MatMul"]
    assert stages[1].residual == "a_relu"
    assert stages[1].inputs == ("a_relu", "b_w", "b_b")


@pytest.mark.parametrize("fusion", [fusion_groups, unfused_groups])
def test_each_alternative_contains_every_node_once(
    fusion: Callable[[Graph], tuple[FusionGroup, ...]],
) -> None:
    graph = residual_network()
    found = []
    for group in fusion(graph):
        inside = [[node.name for stage in stages for node in stage.nodes] for stages in group.alternatives]
        assert all(sorted(one) == sorted(inside[0]) for one in inside)
        assert len({tuple(stages) for stages in group.alternatives}) == len(group.alternatives)
        assert all(len(stage.nodes) == 1 for stage in group.unfused)
        found += inside[0]
    assert sorted(found) == sorted(node.name for node in graph.nodes)


def test_alternatives_are_in_an_order_of_execution() -> None:
    graph = residual_network()
    known = {*graph.inputs, *graph.constants}
    for stage in most_fused(graph):
        assert known.issuperset(stage.inputs)
        known.add(stage.output)


def test_tensors_with_other_consumers_are_not_fused() -> None:
    small = Small((1, 8, 6, 6))
    small.conv("x", "a", 8)
    small.clip("a", "b", 0, None)
    assert names(most_fused(small.graph("b"))) == ["Conv + Clip"]
    assert names(most_fused(small.graph("a", "b"))) == ["Conv", "Clip"]


def test_the_later_of_two_convolutions_fuses_the_sum() -> None:
    for order in (("a", "b"), ("b", "a")):
        small = Small((1, 8, 6, 6))
        small.conv("x", "a", 8)
        small.conv("x", "b", 8)
        small.add(*order, "c")
        assert names(most_fused(small.graph("c"))) == ["Conv", "Conv + Add"]
        assert most_fused(small.graph("c"))[1].name == "b"
        ways = [names(stages) for group in fusion_groups(small.graph("c")) for stages in group.alternatives]
        assert ways == [["Conv", "Conv + Add"]] * 2 + [["Conv", "Conv", "Add"]]


def test_a_sum_of_a_tensor_with_itself_is_not_fused() -> None:
    small = Small((1, 8, 6, 6))
    small.conv("x", "a", 8)
    small.add("a", "a", "c")
    assert names(most_fused(small.graph("c"))) == ["Conv", "Add"]


@pytest.mark.parametrize("value", [-11, 0])
def test_padding_with_the_zero_point_is_fused(value: int) -> None:
    small = Small((1, 8, 6, 6))
    pad = Pad(begin=(0, 0, 1, 1), end=(0, 0, 1, 2), value=value)
    small.builder.emit(pad, ["x"], "p")
    small.conv("p", "a", 8)
    expected = ["Pad + Conv"] if value == -11 else ["Pad", "Conv"]
    assert names(most_fused(small.graph("a"))) == expected
