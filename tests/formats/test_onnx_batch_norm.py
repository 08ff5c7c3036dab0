"""Batch normalization after a Gemm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from accel.formats.onnx_batch_norm import fold_batch_norms
from accel.formats.onnx_runtime import run_onnx_runtime
from accel.formats.quantize_onnx import quantize_onnx
from accel.graph.graph_tensor import Array

onnx = pytest.importorskip("onnx")
helper = onnx.helper
RNG = np.random.default_rng(0)


def model(bias: Array | None, norm: dict[str, Any], outputs: list[str], **attributes: Any) -> Any:
    shape = (16, 8) if attributes.get("transB") else (8, 16)
    constants = {"w": RNG.normal(size=shape)} | ({} if bias is None else {"b": bias})
    constants |= {name: RNG.uniform(0.5, 1.5, 16) for name in ("scale", "shift", "mean", "variance")}
    nodes = [
        helper.make_node("Gemm", ["x", "w", *(["b"] if bias is not None else [])], ["g"], **attributes),
        helper.make_node("BatchNormalization", ["g", "scale", "shift", "mean", "variance"], ["n"], **norm),
        helper.make_node("Relu", ["n"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info("x", 1, [3, 8])],
        [helper.make_tensor_value_info(name, 1, [3, 16]) for name in outputs],
        [onnx.numpy_helper.from_array(a.astype(np.float32), name) for name, a in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize(
    ("bias", "norm", "attributes"),
    [
        (RNG.normal(size=16), {}, {"transB": 1}),
        (RNG.normal(size=16), {"epsilon": 0.25}, {"alpha": 0.5, "beta": 2.0}),
        (RNG.normal(size=(3, 1)), {}, {"beta": -1.0}),
        (RNG.normal(size=()), {}, {"transB": 1}),
        (None, {}, {"transB": 1}),
    ],
)
def test_it_becomes_part_of_the_weights(
    bias: Array | None, norm: dict[str, Any], attributes: dict[str, Any]
) -> None:
    made = model(bias, norm, ["y"], **attributes)
    feeds = {"x": RNG.normal(size=(3, 8)).astype(np.float32)}
    wanted = run_onnx_runtime(made.SerializeToString(), feeds)["y"]
    assert fold_batch_norms(made) == 1
    assert [node.op_type for node in made.graph.node] == ["Gemm", "Relu"]
    assert len(made.graph.initializer) == 2
    np.testing.assert_allclose(run_onnx_runtime(made.SerializeToString(), feeds)["y"], wanted, atol=1e-5)


@pytest.mark.parametrize("norm", [{"training_mode": 1}, {}])
def test_it_stays_if_others_read_the_gemm(norm: dict[str, Any]) -> None:
    made = model(None, norm, ["y"] if norm else ["y", "g"])
    assert fold_batch_norms(made) == 0
    assert len(made.graph.node) == 3


def test_a_quantized_network_has_no_float_macs(tmp_path: Any) -> None:
    path = tmp_path / "linear.onnx"
    onnx.save(model(RNG.normal(size=16), {}, ["y"], transB=1), path)
    found = quantize_onnx(path, {"x": RNG.normal(size=(5, 3, 8)).astype(np.float32)})
    assert found.float_macs == 0
    kinds = [node.op_type for node in onnx.load_from_string(found.content).graph.node]
    assert "BatchNormalization" not in kinds
