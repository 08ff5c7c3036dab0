"""``accel quantize`` on a tiny float network, and the loss of accuracy that it reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import pytest

from accel.formats.onnx_import import load_onnx
from accel.formats.onnx_runtime import run_onnx_runtime
from accel.graph.graph_evaluation import evaluate
from accel.network.network import Network
from tests.cli.conftest import Shell
from tests.formats.runtime import Array, model, node

pytest.importorskip("onnxruntime.quantization", reason="onnxruntime comes with the extra onnx")

SAMPLES = 12


def network(batch: int | str = "n", opset: int = 17) -> bytes:
    """A float network with batch normalization and a residual addition."""
    rng = np.random.default_rng(0)

    def drawn(*shape: int, low: float = -0.5, high: float = 0.5) -> Array:
        return rng.uniform(low, high, shape).astype(np.float32)

    constants: dict[str, Any] = {
        "w1": drawn(8, 3, 3, 3),
        "gain": drawn(8, low=0.5, high=2.0),
        "shift": drawn(8),
        "mean": drawn(8),
        "variance": drawn(8, low=0.5, high=2.0),
        "w2": drawn(8, 8, 3, 3),
        "b2": drawn(8),
        "w3": drawn(8, 5),
        "b3": drawn(5),
    }
    nodes = [
        node("Conv", ["picture", "w1"], "c1", pads=[1] * 4),
        node("BatchNormalization", ["c1", "gain", "shift", "mean", "variance"], "n1"),
        node("Relu", ["n1"], "r1"),
        node("Conv", ["r1", "w2", "b2"], "c2", pads=[1] * 4),
        node("Add", ["c2", "r1"], "sum"),
        node("Relu", ["sum"], "r2"),
        node("GlobalAveragePool", ["r2"], "means"),
        node("Flatten", ["means"], "flat"),
        node("Gemm", ["flat", "w3", "b3"], "scores"),
    ]
    return model(nodes, {"picture": ("float32", (batch, 3, 6, 6))}, ["scores"], constants, opset=opset)


def pictures(count: int = SAMPLES) -> Array:
    return np.random.default_rng(1).normal(size=(count, 3, 6, 6)).astype(np.float32)


@pytest.fixture
def files(accel: Shell) -> Path:
    """A model ``m.onnx``, and samples ``d.npz``."""
    (accel.folder / "m.onnx").write_bytes(network())
    np.savez("d.npz", picture=pictures())
    return accel.folder


@pytest.mark.parametrize("activations", ["int8", "uint8"])
def test_a_network_that_machines_can_run(accel: Shell, files: Path, activations: str) -> None:
    options = ["--calibrate", "d.npz", "-o", "q.onnx", "--activations", activations]
    found = accel("quantize", "m.onnx", *options, "--json").json
    names = ["schema_version", "output", "samples", "macs", "float_macs", "per_channel", "outputs", "layers"]
    assert list(found) == names
    assert (found["output"], found["samples"], found["float_macs"]) == ("q.onnx", SAMPLES, 0)
    graph = load_onnx("q.onnx")
    assert found["macs"] == sum(map(graph.macs, graph.nodes)) == 36 * 72 * (3 + 8) + 40
    assert {graph.tensors[one.output].dtype for one in graph.nodes} == {"float32", activations}
    for one in graph.nodes:
        if graph.macs(one):
            weights = graph.operands(one)[1]
            assert weights.dtype == "int8"
            assert len(weights.required_quantization.scale) > 1
    wanted = [run_onnx_runtime(network(), {"picture": one[None]})["scores"] for one in pictures()]
    mine = [evaluate(graph, {"picture": one[None]})["scores"] for one in pictures()]
    (error,) = found["outputs"]
    difference = np.abs(np.array(wanted, float) - np.array(mine, float))
    assert (error["name"], error["values"]) == ("scores", SAMPLES * 5)
    assert error["largest"] == pytest.approx(difference.max())
    assert error["mean"] == pytest.approx(difference.mean())
    power = (np.array(wanted, float) ** 2).sum() / (difference**2).sum()
    assert error["snr"] == pytest.approx(10 * np.log10(power))
    assert error["snr"] > 25
    same = [np.argmax(a) == np.argmax(b) for a, b in zip(wanted, mine, strict=True)]
    assert error["agreement"] == np.mean(same)
    result = (
        Network(graph=graph)
        .build("tiny-int8", strict=True)
        .run({"picture": pictures(1)}, backend="functional")
    )
    assert result.wrong == 0
    np.testing.assert_array_equal(result.outputs["scores"], mine[0])


def test_as_text(accel: Shell, files: Path) -> None:
    lines = accel("quantize", "m.onnx", "--calibrate", "d.npz", "-o", "q.onnx").text.splitlines()
    assert lines[0] == "output  values  largest error  mean error      SNR  same winner"
    assert lines[1].split()[:2] == ["scores", "60"]
    assert lines[2].split() == ["samples", "12"]


@pytest.mark.parametrize("method", ["entropy", "percentile"])
def test_other_ways_to_find_ranges(accel: Shell, files: Path, method: str) -> None:
    arguments = ["quantize", "m.onnx", "--calibrate", "d.npz", "-o", "q.onnx", "--method", method, "--json"]
    assert accel(*arguments).json["outputs"][0]["snr"] > 15


def test_old_opsets_and_fixed_batches(accel: Shell, files: Path) -> None:
    (files / "m.onnx").write_bytes(network(batch=4, opset=11))
    found = accel("quantize", "m.onnx", "--calibrate", "d.npz", "-o", "q.onnx", "--json").json
    assert (found["samples"], found["float_macs"]) == (SAMPLES // 4, 0)
    assert found["outputs"][0]["values"] == SAMPLES * 5


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "the data lacks input 'picture'; every input needs samples"),
        (
            {"pictur": pictures()},
            "the data has 'pictur', which is not an input; did you mean 'picture'?",
        ),
        (
            {"picture": pictures().astype(np.float64)},
            "the data of input 'picture' is float64; the model takes float32",
        ),
        (
            {"picture": pictures()[:, :, 1:]},
            "the data of input 'picture' has shape (12, 3, 5, 6); it must be (samples, 3, 6, 6) or "
            "(runs, ?, 3, 6, 6)",
        ),
        (
            {"picture": pictures()[0]},
            "the data of input 'picture' has shape (3, 6, 6); it must be (samples, 3, 6, 6) or "
            "(runs, ?, 3, 6, 6)",
        ),
        (
            {"picture": pictures()[:0]},
            "the data of input 'picture' has 0 samples; they must be a multiple of the batch 1",
        ),
        (
            {"picture": np.full_like(pictures(), np.inf)},
            "the data of input 'picture' has values that are not finite; only -inf is allowed, as a mask",
        ),
    ],
)
def test_data_that_does_not_fit(accel: Shell, files: Path, data: dict[str, Array], message: str) -> None:
    np.savez("bad.npz", **data)
    accel.refused("quantize", "m.onnx", "--calibrate", "bad.npz", "-o", "q.onnx", message=message)
    assert not (files / "q.onnx").exists()


def test_a_batch_that_does_not_divide_the_samples(accel: Shell, files: Path) -> None:
    (files / "m.onnx").write_bytes(network(batch=5))
    message = "the data of input 'picture' has 12 samples; they must be a multiple of the batch 5"
    accel.refused("quantize", "m.onnx", "--calibrate", "d.npz", "-o", "q.onnx", message=message)


def test_normalization_is_for_pictures(accel: Shell, files: Path) -> None:
    for option in ("--mean", "--std"):
        rest = ["--calibrate", "d.npz", "-o", "q.onnx", option, "0.5"]
        accel.refused(
            "quantize",
            "m.onnx",
            *rest,
            message=f"{option} is given with 'd.npz'; it is for a folder of pictures",
        )


def test_files_that_cannot_be_used(accel: Shell, files: Path) -> None:
    rest = ["--calibrate", "d.npz", "-o", "q.onnx"]
    accel("quantize", "m.onnx", *rest)
    name = "ConvBnFusion_BN_B_shift_DequantizeLinear"
    message = f"the model is already quantized: node '{name}' is a DequantizeLinear"
    accel.refused("quantize", "q.onnx", "--calibrate", "d.npz", "-o", "r.onnx", message=message)
    message = "-o would overwrite 'd.npz', which is read as --calibrate; give another file"
    accel.refused("quantize", "m.onnx", "--calibrate", "d.npz", "-o", "d.npz", message=message)
    (files / "text.npz").write_text("text")
    message = "--calibrate 'text.npz' is no .npz file; numpy.savez writes what is needed"
    accel.refused("quantize", "m.onnx", "--calibrate", "text.npz", "-o", "r.onnx", message=message)
    np.savez("objects.npz", picture=np.array([None]))
    message = "--calibrate 'objects.npz' holds Python objects; arrays of numbers are needed"
    accel.refused("quantize", "m.onnx", "--calibrate", "objects.npz", "-o", "r.onnx", message=message)
    message = "--calibrate 'none.npz' cannot be read: No such file or directory"
    accel.refused("quantize", "m.onnx", "--calibrate", "none.npz", "-o", "r.onnx", message=message)
    assert not (files / "r.onnx").exists()


@pytest.mark.parametrize(
    ("method", "hidden", "is_input"),
    [
        ("minmax", -np.inf, False),
        ("minmax", np.finfo(np.float32).min, False),
        ("minmax", -1e4, False),
        ("entropy", -1e9, False),
        ("entropy", -np.inf, False),
        ("entropy", np.finfo(np.float32).min, True),
        ("percentile", -np.inf, True),
    ],
)
def test_causal_attention(accel: Shell, method: str, hidden: float, is_input: bool) -> None:
    """Scores and a mask need different scales, so their sum and the softmax stay in float32.

    The mask is a constant or an input of the network, and a histogram of -inf is not possible.
    """
    rng = np.random.default_rng(0)
    constants: dict[str, Any] = {name: rng.normal(size=(8, 8)).astype(np.float32) / 3 for name in "qkvo"}
    mask = np.triu(np.full((6, 6), hidden, np.float32), 1)
    nodes = [
        node("MatMul", ["x", "q"], "query"),
        node("MatMul", ["x", "k"], "key"),
        node("Transpose", ["key"], "turned", perm=[0, 2, 1]),
        node("MatMul", ["query", "turned"], "scores"),
        node("Add", ["scores", "mask"], "masked"),
        node("Softmax", ["masked"], "shares", axis=-1),
        node("MatMul", ["x", "v"], "value"),
        node("MatMul", ["shares", "value"], "mixed"),
        node("MatMul", ["mixed", "o"], "y"),
    ]
    inputs = {"x": ("float32", (1, 6, 8))}
    samples = {"x": rng.normal(size=(SAMPLES, 6, 8)).astype(np.float32)}
    if is_input:
        inputs["mask"] = ("float32", (1, 6, 6))
        samples["mask"] = np.tile(mask, (SAMPLES, 1, 1))
    else:
        constants["mask"] = mask
    Path("m.onnx").write_bytes(model(nodes, inputs, ["y"], constants))
    np.savez("d.npz", **samples)
    arguments = ["quantize", "m.onnx", "--calibrate", "d.npz", "-o", "q.onnx", "--method", method, "--json"]
    found = accel(*arguments).json
    assert (found["float_macs"], found["macs"]) == (0, 4 * 6 * 64 + 2 * 36 * 8)
    assert found["outputs"][0]["snr"] > 20
    if not is_input:
        (stored,) = [one for one in onnx.load("q.onnx").graph.initializer if one.name == "mask"]
        np.testing.assert_array_equal(onnx.numpy_helper.to_array(stored), mask)
