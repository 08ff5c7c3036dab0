"""Float networks quantized by ONNX Runtime's own quantizer: they are read, and equal
ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from accel.formats.compare_with_runtime import compare
from accel.formats.onnx_import import import_model
from accel.formats.onnx_runtime import run_onnx_runtime
from accel.graph.graph_evaluation import evaluate
from tests.formats.quantizer import Setting, quantize
from tests.formats.runtime import Array, model, node

SHAPE = (1, 3, 17, 15)
CLOSE = 0.02
"""Allowed distance of a quantized output from the float network's."""


def network() -> bytes:
    """A float network with most of the operators of image networks."""
    rng = np.random.default_rng(0)
    constants: dict[str, Any] = {
        "low": np.float32(0),
        "high": np.float32(6),
        "pads": np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64),
    }

    def weights(name: str, *shape: int) -> str:
        constants[name] = (rng.normal(size=shape) * 0.3).astype(np.float32)
        return name

    nodes = [
        node("Conv", ["x", weights("w1", 8, 3, 3, 3), weights("b1", 8)], "c1", pads=[1] * 4, strides=[2, 2]),
        node("Clip", ["c1", "low", "high"], "r1"),
        node("Conv", ["r1", weights("w2", 8, 1, 3, 3), weights("b2", 8)], "c2", pads=[1] * 4, group=8),
        node("Relu", ["c2"], "r2"),
        node("Add", ["r1", "r2"], "sum"),
        node("MaxPool", ["sum"], "pooled", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["pooled", weights("w3", 8, 8, 1, 1)], "c3"),
        node("Sigmoid", ["c3"], "gate"),
        node("Mul", ["c3", "gate"], "swish"),
        node("Split", ["swish"], "left", "right", axis=1),
        node("LeakyRelu", ["left"], "leaky", alpha=0.1),
        node("Concat", ["leaky", "right"], "joined", axis=1),
        node("AveragePool", ["joined"], "means", kernel_shape=[2, 2], pads=[1, 1, 0, 0]),
        node("Pad", ["means", "pads"], "padded"),
        node("Conv", ["padded", weights("w4", 6, 8, 3, 3), weights("b4", 6)], "c4"),
        node("HardSwish", ["c4"], "h4"),
        node("GlobalAveragePool", ["h4"], "mean"),
        node("Flatten", ["mean"], "flat"),
        node("Gemm", ["flat", weights("w5", 10, 6), weights("b5", 10)], "scores", transB=1),
        node("Softmax", ["scores"], "y", axis=1),
        node("Transpose", ["h4"], "last", perm=[0, 2, 3, 1]),
        node("MatMul", ["last", weights("w6", 6, 5)], "product"),
        node("Add", ["product", weights("b6", 5)], "z"),
    ]
    return model(nodes, {"x": ("float32", ("n", *SHAPE[1:]))}, ["y", "z"], constants, opset=14)


def picture(seed: int) -> dict[str, Array]:
    return {"x": np.random.default_rng(seed).normal(size=SHAPE).astype(np.float32)}


@pytest.mark.parametrize(
    ("form", "data", "weights", "per_channel"),
    [
        ("QDQ", "QInt8", "QInt8", True),
        ("QDQ", "QUInt8", "QUInt8", False),
        ("QOperator", "QUInt8", "QInt8", True),
        ("QOperator", "QInt8", "QInt8", False),
    ],
)
def test_networks_of_the_quantizer_equal_onnx_runtime(
    form: str, data: str, weights: str, per_channel: bool
) -> None:
    content = network()
    setting = Setting(form=form, data=data, weights=weights, per_channel=per_channel)
    quantized = quantize(content, [picture(seed) for seed in range(8)], setting)
    graph = import_model(quantized)
    feeds = picture(99)
    compare(graph, feeds).raise_if_bad()
    floats = [one for one in graph.nodes if graph.tensors[one.output].dtype == "float32"]
    assert not any(map(graph.macs, floats))
    if form == "QDQ":  # as QOperator, more of them stay float
        assert {one.operator.kind for one in floats} == {"Dequantize", "Softmax"}
    found, wanted = evaluate(graph, feeds), run_onnx_runtime(content, feeds)
    assert np.abs(found["y"] - wanted["y"]).max() < CLOSE
    if form == "QOperator":
        theirs = run_onnx_runtime(quantized, feeds)
        np.testing.assert_array_equal(found["z"], theirs["z"])
        assert np.abs(found["y"] - theirs["y"]).max() < CLOSE
