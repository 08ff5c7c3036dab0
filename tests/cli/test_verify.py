from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from accel.formats.compare_with_original import ModeDifference
from accel.formats.compare_with_runtime import Comparison, TensorDifference
from accel.graph.graph import Graph, Node
from accel.graph.graph_evaluation import evaluate_node
from accel.graph.graph_tensor import Array
from tests.cli.conftest import Shell
from tests.formats.runtime import model, node

CONSTANTS = {
    "s": np.float32(0.1),
    "z": np.uint8(3),
    "w": np.arange(-30, 30).astype(np.int8).reshape(5, 12),
    "ws": np.float32(0.05),
    "wz": np.int8(0),
}


@pytest.fixture
def path(accel: Shell) -> Path:
    """A model with two inputs. The name of one contains ``=``."""
    nodes = [
        node("QLinearMatMul", ["a", "s", "z", "w", "ws", "wz", "s", "z"], "p"),
        node("QLinearAdd", ["p", "s", "z", "b=1", "s", "z", "s", "z"], "y"),
    ]
    inputs = {"a": ("uint8", ("n", 5)), "b=1": ("uint8", ("n", 12))}
    found = accel.folder / "m.onnx"
    found.write_bytes(model(nodes, inputs, ["y"], CONSTANTS))
    return found


def test_a_network_that_is_equal(accel: Shell, path: Path) -> None:
    np.save("b=2.npy", np.zeros((2, 12), np.uint8))
    lines = accel("verify", path, "--batch", 2, "--input", "b=1=b=2.npy").text.splitlines()
    assert lines[0] == "tensor  operator  values  differing  by order  largest difference"
    assert [line.split() for line in lines[1:3]] == [
        ["p", "MatMul", "24", "0", "0", "0"],
        ["y", "Add", "24", "0", "0", "0"],
    ]
    assert lines[3:] == [
        "operators of the network: 2 of 2 tensors equal, 48 values",
        "original file, all optimizations of ONNX Runtime: 2 of 2 tensors equal, 48 values",
    ]
    found = accel("verify", path, "--json").json
    keys = ["values", "differing", "reordered", "first", "tensors"]
    assert list(found) == ["schema_version", "ok", *keys, "original", "modes"]
    assert list(found["original"]) == keys
    assert (found["ok"], found["values"], found["differing"], found["first"]) == (True, 24, 0, None)
    assert found["tensors"][0] == {
        "name": "p",
        "node": "QLinearMatMul of p",
        "operator": "MatMul",
        "values": 12,
        "differing": 0,
        "reordered": 0,
        "largest": 0.0,
        "place": None,
    }


def test_a_network_that_is_run(accel: Shell, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = accel("verify", path, "--backend", "functional", "--config", "tiny-int8").text.splitlines()
    assert lines[-3] == "operators of the network: 2 of 2 tensors equal, 24 values"
    counted = "3 tensors of backend functional: 0 mismatches with numpy"
    assert lines[-1] == f"{counted}, on tiny-int8 (1x4x4, 64-bit bus)"
    last = accel("verify", path, "--backend", "functional").text.splitlines()[-1]
    assert last == f"{counted}, on vta-npu (1x16x16, 64-bit bus); the default, --config changes it"
    found = accel("verify", path, "--json", "--backend", "sim").json
    assert (found["ok"], found["backend"], found["mismatches"]) == (True, "sim", 0)
    changed = evaluate_node

    def wrong(graph: Graph, node: Node, arrays: list[Array]) -> Array:
        return changed(graph, node, arrays) + (node.output == "y")

    monkeypatch.setattr("accel.network.network_program.evaluate_node", wrong)
    message = "12 of 12 values of tensor 'y' differ from the graph's evaluation, the first of 1 such tensors"
    accel.at_fault("verify", path, "--backend", "sim", message=message)
    found = accel("verify", path, "--json", "--backend", "sim", code=1).json
    assert (found["ok"], found["first"], found["mismatches"]) == (False, None, 12)


@pytest.mark.parametrize("function", ["compare", "compare_with_original"])
def test_a_network_that_differs(
    function: str, accel: Shell, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = TensorDifference(
        name="y", node="n", operator="Add", values=12, differing=2, reordered=3, largest=np.inf, place=(0, 1)
    )
    monkeypatch.setattr(f"accel.network.verify_network.{function}", lambda *_: Comparison(tensors=(wrong,)))
    message = (
        "tensor 'y' (Add of node 'n') differs from ONNX Runtime's in 2 of 12 values, by up to inf, "
        "first at (0, 1)"
    )
    outcome = accel.at_fault("verify", path, message=message)
    summary = "0 of 1 tensors equal, 12 values; 3 differ by the order of multiply-adds alone"
    assert [line.partition(": ")[2] for line in outcome.text.splitlines()].count(summary) == 1
    found = accel("verify", path, "--json", code=1).json
    part = found if function == "compare" else found["original"]
    assert (found["ok"], part["first"], part["tensors"][0]["largest"]) == (False, "y", None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--input", "c=x.npy"], "'c' is not an input of the network; valid are a, b=1"),
        (["--input", "a"], "--input is given 'a'; it takes NAME=FILE.npy, as A=a.npy"),
        (["--input", "a=x.npy"], "input a from 'x.npy' cannot be read: No such file or directory"),
        (["--input", "a=a.npy"], "input 'a' has shape [3, 5]; it must be [1, 5]"),
        (["--input", "a=a.npy", "--input", "a=x.npy"], "--input is given a twice, as 'a.npy' and as 'x.npy'"),
    ],
)
def test_bad_input(options: list[str], message: str, accel: Shell, path: Path) -> None:
    np.save("a.npy", np.zeros((3, 5), np.uint8))
    accel.refused("verify", path, *options, message=message)


def test_files_that_are_no_models(accel: Shell) -> None:
    (accel.folder / "m.onnx").write_text("hello")
    accel.refused("verify", "m.onnx", message="'m.onnx': this is not an ONNX model; it does not parse as one")
    accel.refused("verify", "n.onnx", message="'n.onnx' cannot be read: No such file or directory")


def test_an_infinite_difference_of_modes_is_null(
    accel: Shell, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mode = ModeDifference(name="y", differing=1, values=12, largest=np.inf)
    monkeypatch.setattr("accel.network.verify_network.compare_modes", lambda *_: (mode,))
    (found,) = accel("verify", path, "--json").json["modes"]
    assert found == {"name": "y", "differing": 1, "values": 12, "largest": None}
