"""``accel run --state``: one run for each sample."""

from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Shell
from tests.formats.runtime import model, node
from tests.formats.test_tflite_control import MATRIX, accumulator, branching, plus, sum_is_positive


@pytest.fixture
def folder(accel: Shell) -> Path:
    """A model ``m.onnx`` that adds its input to its state, and samples ``x.npy``."""
    inputs = {"x": ("float32", (1, 3)), "h": ("float32", (1, 3))}
    (accel.folder / "m.onnx").write_bytes(model([node("Add", ["x", "h"], "sum")], inputs, ["sum"], {}))
    np.save("x.npy", np.ones((4, 1, 3), np.float32))
    return accel.folder


def test_outputs_become_inputs(accel: Shell, folder: Path) -> None:
    options = ["--state", "sum=h", "--input", "x=x.npy", "--output", "sum=y.npy", "--config", "tiny-int8"]
    assert accel("run", "m.onnx", *options, "--json").json["samples"] == 4
    assert np.load(folder / "y.npy")[:, 0, 0].tolist() == [1, 2, 3, 4]


def test_the_machine_is_named(accel: Shell, folder: Path) -> None:
    options = ["--state", "sum=h", "--input", "x=x.npy"]
    assert "default, --config changes it" in accel("run", "m.onnx", *options).out
    assert "default" not in accel("run", "m.onnx", *options, "--config", "tiny-int8").out
    accel("compile", "onnx", "m.onnx", "-o", "m.accel")
    assert "default" not in accel("run", "m.accel", *options).out


def test_an_input_is_not_overwritten(accel: Shell, folder: Path) -> None:
    options = ["--state", "sum=h", "--input", "x=x.npy", "--output", "sum=x.npy"]
    message = "--output sum would overwrite 'x.npy', which is read as --input x; give another file"
    accel.refused("run", "m.onnx", *options, message=message)


def test_without_samples(accel: Shell, folder: Path) -> None:
    np.save("x.npy", np.zeros((0, 1, 3), np.float32))
    options = ["--state", "sum=h", "--input", "x=x.npy", "--output", "sum=y.npy"]
    accel.refused("run", "m.onnx", *options, message="input 'x' has 0 samples; it must have at least one")


def test_unknown_names(accel: Shell, folder: Path) -> None:
    message = "'y' is not an input of the network; valid are h, x"
    accel.refused("run", "m.onnx", "--state", "sum=h", "--input", "y=x.npy", message=message)


def test_a_run_that_takes_too_long_is_reported_as_json(accel: Shell, folder: Path) -> None:
    """As without ``--state``."""
    scale = {"s": np.float32(0.1), "z": np.int8(0), "w": np.ones((4, 4), np.int8)}
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], "q"),
        node("QLinearMatMul", ["q", "s", "z", "w", "s", "z", "s", "z"], "p"),
        node("DequantizeLinear", ["p", "s", "z"], "y"),
    ]
    (folder / "p.onnx").write_bytes(model(nodes, {"x": ("float32", (4, 4))}, ["y"], scale))
    options = ["--config", "tiny-int8", "--max-cycles", "5", "--json"]
    plain = accel("run", "p.onnx", *options, code=1).json
    assert plain["error"]["cause"] == "limit"
    assert accel("run", "p.onnx", "--state", "y=x", *options, code=1).json == plain


def test_the_models_own_state(accel: Shell, tmp_path: Path) -> None:
    model, samples, after = (tmp_path / name for name in ("sum.tflite", "x.npy", "after.npy"))
    model.write_bytes(accumulator(MATRIX[:2]))
    data = np.random.default_rng(0).normal(size=(4, 2, 3)).astype(np.float32)
    np.save(samples, data)
    arguments = ["--input", f"x={samples}", "--output", f"after={after}"]
    accel("run", model, "--state", "model", *arguments)
    total, wanted = MATRIX[:2], []
    for one in data:
        total = total + one
        wanted.append(total)
    np.testing.assert_array_equal(np.load(after), wanted)


def test_a_model_without_state(accel: Shell, tmp_path: Path) -> None:
    model = tmp_path / "branch.tflite"
    model.write_bytes(branching(sum_is_positive, plus(1), plus(2)))
    message = "--state model is given, and the model has no state; name OUTPUT=INPUT"
    accel.refused("run", model, "--state", "model", message=message)
