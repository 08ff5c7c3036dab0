from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel.base.records import replace
from accel.formats.compare_with_original import compare_modes, compare_with_original
from accel.formats.compare_with_runtime import random_inputs
from accel.formats.onnx_import import load_onnx
from accel.graph.elementwise_operators import Add
from accel.graph.graph import Graph
from tests.formats.runtime import model, node, onnx

CONSTANTS: dict[str, Any] = {
    "s": np.float32(0.05),
    "z": np.int8(-20),
    "t": np.float32(0.1),
    "w": np.arange(-48, 48).astype(np.int8).reshape(4, 6, 2, 2),
    "ws": np.float32(0.01),
    "wz": np.int8(0),
    "low": np.float32(0),
    "high": np.float32(6),
}


def load(path: Path, nodes: list[Any], outputs: list[str]) -> Graph:
    path.write_bytes(
        model(nodes, {"a": ("int8", (1, 6, 40, 40)), "b": ("int8", (1, 6, 40, 40))}, outputs, CONSTANTS)
    )
    return load_onnx(path)


def clipped_sum() -> list[Any]:
    """A sum that ONNX Runtime computes in float32, because Clip changes values, and a
    convolution of it."""
    return [
        node("DequantizeLinear", ["a", "s", "z"], "da"),
        node("DequantizeLinear", ["b", "s", "z"], "db"),
        node("Add", ["da", "db"], "sum"),
        node("Clip", ["sum", "low", "high"], "bounded"),
        node("QuantizeLinear", ["bounded", "t", "z"], "q"),
        node("DequantizeLinear", ["q", "t", "z"], "dq"),
        node("DequantizeLinear", ["w", "ws", "wz"], "dw"),
        node("Conv", ["dq", "dw"], "product"),
        node("QuantizeLinear", ["product", "t", "z"], "y"),
        node("DequantizeLinear", ["y", "t", "z"], "numbers"),
    ]


def test_each_quantized_tensor_is_compared(tmp_path: Path) -> None:
    graph = load(tmp_path / "m.onnx", clipped_sum(), ["numbers"])
    found = compare_with_original(graph, tmp_path / "m.onnx", random_inputs(graph, 3))
    assert [one.name for one in found.tensors] == ["q", "y", "numbers"]
    assert found.first is None
    assert all(one.largest == 0 for one in found.tensors)


def test_a_sum_in_integers_where_the_file_has_float32_is_found(tmp_path: Path) -> None:
    """As QLinearAdd, some sums differ by 1. A comparison with the graph's own export cannot detect this.
    Later tensors are equal, since they are computed from ONNX Runtime's values."""
    graph = load(tmp_path / "m.onnx", clipped_sum(), ["numbers"])
    (first, *rest) = graph.nodes
    assert isinstance(first.operator, Add)
    assert first.operator.in_float32
    wrong = replace(graph, nodes=(replace(first, operator=replace(first.operator, in_float32=False)), *rest))
    found = compare_with_original(wrong, tmp_path / "m.onnx", random_inputs(graph, 3))
    assert found.first is not None
    assert (found.first.name, found.first.operator, found.first.largest) == ("q", "Clip", 1)
    assert [one.differing > 0 for one in found.tensors] == [True, False, False]


@pytest.mark.parametrize("external", [False, True])
def test_weights_may_be_external(external: bool, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    graph = load(path, clipped_sum(), ["numbers", "q"])
    if external:
        package = onnx
        package.save(
            package.load(path), path, save_as_external_data=True, location="weights.bin", size_threshold=0
        )
    found = compare_with_original(graph, path, random_inputs(graph, 3))
    assert (found.first, len(found.tensors)) == (None, 3)


def test_modes_with_values_that_are_not_finite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NaN equals NaN, -inf equals -inf, and a NaN in one mode only is an infinite difference."""
    path = tmp_path / "m.onnx"
    path.write_bytes(model([node("Relu", ["x"], "y")], {"x": ("float32", (5,))}, ["y"], {}))
    graph = load_onnx(path)
    plain, optimized = (np.float32([np.nan, -np.inf, 1, 2, last]) for last in (3, 3.5))
    place = "accel.formats.compare_with_original"
    monkeypatch.setattr(f"{place}.run_onnx_runtime", lambda *_: {"y": plain})
    monkeypatch.setattr(f"{place}.run_optimized", lambda *_: ({"y": optimized}, {}))
    (found,) = compare_modes(graph, path, {"x": np.zeros(5, np.float32)})
    assert (found.differing, found.largest) == (1, 0.5)
    optimized[3] = np.nan
    (found,) = compare_modes(graph, path, {"x": np.zeros(5, np.float32)})
    assert (found.differing, found.largest) == (2, np.inf)
