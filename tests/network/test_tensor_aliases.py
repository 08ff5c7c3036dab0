from collections.abc import Sequence
from pathlib import Path

import pytest

from accel.base.records import replace
from accel.graph.graph import Graph
from accel.graph.movement_operators import Concat, Slice
from accel.network.network import Network
from accel.network.network_file import load_network, save_network
from accel.network.network_program import NetworkProgram
from tests.network.networks import MACHINE, Small


def built(graph: Graph, *, keep: bool = False) -> NetworkProgram:
    return Network(graph=graph).build(MACHINE, keep=keep)


def moved_by_host(program: NetworkProgram) -> list[str]:
    inside = {id(part) for chain in program.chains for part in chain.parts}
    return [part.fused.output for part in program.parts if id(part) not in inside]


def assert_equal_to_numpy(program: NetworkProgram, tmp_path: Path) -> None:
    result = program.run(backend="functional")
    result.raise_if_wrong()
    save_network(program, tmp_path / "net.accel")
    again = load_network(tmp_path / "net.accel").run()
    again.raise_if_wrong()
    assert {name: array.tobytes() for name, array in again.outputs.items()} == {
        name: array.tobytes() for name, array in result.outputs.items()
    }


class Concatenating(Small):
    """A builder with Concat and Slice."""

    def concat(self, names: Sequence[str], output: str) -> None:
        self.builder.emit(Concat(axis=1), names, output)

    def slice(self, source: str, output: str, start: int, count: int, axis: int = 1) -> None:
        sizes = list(self.builder.tensors[source].shape)
        starts = [0] * len(sizes)
        starts[axis], sizes[axis] = start, count
        operator = Slice(starts=tuple(starts), sizes=tuple(sizes), steps=(1,) * len(sizes))
        self.builder.emit(operator, [source], output)


def dense_blocks() -> Concatenating:
    """Each layer reads the results of all earlier layers."""
    small = Concatenating((1, 16, 5, 3))
    small.zero_out = 3
    small.conv("x", "a", 32, 1)
    small.conv("a", "b", 16, 3, pad=1)
    small.concat(["a", "b"], "ab")
    small.conv("ab", "c", 16, 3, pad=1)
    small.concat(["ab", "c"], "abc")
    small.conv("abc", "y", 8, 1)
    return small


def test_concats_of_concats(tmp_path: Path) -> None:
    program = built(dense_blocks().graph("y"))
    assert len(program.chains) == 1
    assert moved_by_host(program) == []
    assert_equal_to_numpy(program, tmp_path)


def test_slices_of_a_result(tmp_path: Path) -> None:
    small = Concatenating((1, 16, 5, 3))
    small.zero_out = 3
    small.conv("x", "a", 48, 1)
    small.slice("a", "first", 0, 16)
    small.slice("a", "rest", 16, 32)
    small.conv("rest", "b", 32, 3, pad=1)
    small.conv("first", "c", 16, 1)
    small.concat(["b", "c"], "bc")
    small.conv("bc", "y", 8, 1)
    program = built(small.graph("y"))
    assert len(program.chains) == 1
    assert moved_by_host(program) == []
    assert_equal_to_numpy(program, tmp_path)


@pytest.mark.parametrize("why", ["needed", "kept", "channels", "twice", "rows", "input"])
def test_moves_that_are_no_aliases(why: str, tmp_path: Path) -> None:
    """Layers store a result once more. A 1x1 convolution copies a tensor of the host."""
    small = Concatenating((1, 16, 5, 3))
    small.zero_out = -11 if why == "input" else 3
    outputs = ["y"]
    channels = {"channels": 20, "rows": 32}.get(why, 16)
    small.conv("x", "a", channels, 1)
    small.conv("a", "b", 16, 1)
    taken = {"twice": ["a", "a"], "input": ["a", "x"]}.get(why, ["a", "b"])
    if why == "input":
        same = small.builder.tensors["a"].quantization
        small.builder.tensors["x"] = replace(small.builder.tensors["x"], quantization=same)
    if why == "rows":
        small.slice("a", "b_rows", 1, 3, axis=2)
        small.conv("b_rows", "y", 8, 1)
    else:
        small.concat(taken, "ab")
        small.conv("ab", "y", 8, 1)
    if why == "needed":
        outputs.append("b")
    program = built(small.graph(*outputs), keep=why == "kept")
    assert moved_by_host(program) == []
    assert len(program.chains) == 1
    assert_equal_to_numpy(program, tmp_path)
