"""The host packs data for the first layer; other layers read tensors as they were written."""

from pathlib import Path

import pytest

import accel
from accel.graph.movement_operators import Movement, Reshape, Transpose
from accel.network.network import Network
from tests.network.networks import MACHINE, Small


def test_only_the_first_layer_is_mapped(tmp_path: Path) -> None:
    small = Small((1, 3, 13, 12), dtype="uint8")
    small.conv("x", "a", 16, kernel=5, stride=2, pad=2)
    small.conv("a", "b", 16, kernel=1)
    small.conv("b", "c", 8, kernel=3, pad=1)
    program = Network(graph=small.graph("c")).build(MACHINE, keep=True)
    mappings = [part.program.mapping for part in program.parts if part.program is not None]
    assert mappings[0] in ("rows", "columns", "windows")
    assert mappings[1:] == ["plain", "plain"]
    accel.save_network(program, tmp_path / "n.accel")
    for one in (program, accel.load_network(tmp_path / "n.accel")):
        result = one.run(seed=4)
        assert result.mismatches == {}
    views = [tensor.view for chain in program.chains for tensor in chain.program.tensors]
    assert [view.fill for view in views if view is not None and view.shape == (1, 3, 13, 12)] == [small.zero]


@pytest.mark.parametrize(
    ("shape", "movement"),
    [
        ((1, 13, 12, 3), Transpose(permutation=(0, 3, 1, 2))),
        ((1, 39, 12, 1), Reshape(sizes=(1, 3, 13, 12))),
    ],
)
def test_a_layer_after_a_moved_input_is_mapped(shape: tuple[int, ...], movement: Movement) -> None:
    """For example channels last, as in TensorFlow Lite files."""
    small = Small(shape)
    small.builder.emit(movement, ["x"], "t")
    small.conv("t", "a", 16, kernel=5, stride=2, pad=2)
    small.conv("a", "b", 16, kernel=3, pad=1)
    program = Network(graph=small.graph("b")).build(MACHINE, keep=True)
    mappings = [part.program.mapping for part in program.parts if part.program is not None]
    assert mappings[0] in ("rows", "columns", "windows")
    assert mappings[1] == "plain"
    for backend in ("sim", "functional"):
        assert program.run(seed=5, backend=backend).mismatches == {}


def test_a_layer_after_a_moved_result_is_plain() -> None:
    small = Small((1, 3, 13, 12))
    small.conv("x", "a", 3, kernel=1)
    small.builder.emit(Transpose(permutation=(0, 1, 3, 2)), ["a"], "t")
    small.conv("t", "b", 16, kernel=5, stride=2, pad=2)
    program = Network(graph=small.graph("b")).build(MACHINE)
    mappings = [part.program.mapping for part in program.parts if part.program is not None]
    assert mappings[-1] == "plain"
