"""Which nodes become one stage."""

import pytest

from accel.graph.movement import Pad
from accel.network.fuse import apart, fuse
from accel.network.stage import Stage
from tests.network.networks import Small, residual_network


def names(stages: tuple[Stage, ...]) -> list[str]:
    return [stage.operators() for stage in stages]


def test_bounds_and_sums_go_with_products() -> None:
    graph = residual_network()
    stages = fuse(graph)
    assert names(stages) == ["Conv + Clip", "Conv + Add + Clip", "GlobalAveragePool", "Reshape", "MatMul"]
    assert stages[1].residual == "a_relu"
    assert stages[1].inputs == ("a_relu", "b_w", "b_b")
    assert [one.output for one in stages[1].without_addition()] == ["b", "c", "c_relu"]


@pytest.mark.parametrize("stages", [fuse, apart])
def test_every_node_is_in_one_stage(stages) -> None:  # type: ignore[no-untyped-def]
    graph = residual_network()
    found = [node for stage in stages(graph) for node in stage.nodes]
    assert sorted(node.name for node in found) == sorted(node.name for node in graph.nodes)


def test_stages_come_behind_what_they_take() -> None:
    graph = residual_network()
    known = {*graph.inputs, *graph.constants}
    for stage in fuse(graph):
        assert known.issuperset(stage.inputs)
        known.add(stage.output)


def test_what_is_needed_elsewhere_stays() -> None:
    small = Small((1, 8, 6, 6))
    small.conv("x", "a", 8)
    small.clip("a", "b", 0, None)
    assert names(fuse(small.graph("b"))) == ["Conv + Clip"]
    assert names(fuse(small.graph("a", "b"))) == ["Conv", "Clip"]


def test_of_two_convolutions_the_later_takes_the_sum() -> None:
    for order in (("a", "b"), ("b", "a")):
        small = Small((1, 8, 6, 6))
        small.conv("x", "a", 8)
        small.conv("x", "b", 8)
        small.add(*order, "c")
        assert names(fuse(small.graph("c"))) == ["Conv", "Conv + Add"]
        assert fuse(small.graph("c"))[1].name == "b"


def test_a_sum_with_itself_stays() -> None:
    small = Small((1, 8, 6, 6))
    small.conv("x", "a", 8)
    small.add("a", "a", "c")
    assert names(fuse(small.graph("c"))) == ["Conv", "Add"]


@pytest.mark.parametrize("value", [-11, 0])
def test_padding_with_the_zero_point_goes_with_the_convolution(value: int) -> None:
    small = Small((1, 8, 6, 6))
    pad = Pad(begin=(0, 0, 1, 1), end=(0, 0, 1, 2), value=value)
    small.builder.emit(pad, ["x"], "p")
    small.conv("p", "a", 8)
    expected = ["Pad + Conv"] if value == -11 else ["Pad", "Conv"]
    assert names(fuse(small.graph("a"))) == expected
