"""Annotations of a model's nodes: each node gets its layer's notes, and nothing else changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel.base.errors import GraphError
from accel.formats.onnx_annotations import Note, annotated, check_annotation
from tests.formats.runtime import model, node, onnx

CONSTANTS: dict[str, Any] = {
    "s": np.float32(0.1),
    "z": np.int8(3),
    "w": np.ones((2, 3, 1, 1), np.int8),
    "wz": np.int8(0),
}
NODES = [
    node("DequantizeLinear", ["x", "s", "z"], "xf"),
    node("DequantizeLinear", ["w", "s", "wz"], "wf"),
    node("Conv", ["xf", "wf"], "a", name="first"),
    node("Relu", ["a"], "b", name=""),
    node("QuantizeLinear", ["b", "s", "z"], "q"),
    node("DequantizeLinear", ["q", "s", "z"], "qf"),
    node("MaxPool", ["xf"], "m", kernel_shape=[1, 1]),
    node("QuantizeLinear", ["m", "s", "z"], "y"),
]
MODEL = model(NODES, {"x": ("int8", (1, 3, 2, 2))}, ["q", "y"], CONSTANTS)
NOTES = [
    Note(layer="conv", main="first", made=("q",), result="q", entries={"cycles": "12", "where": "machine"}),
    Note(layer="pool", main="not in the file", made=("y",), result="y", entries={"where": "host"}),
]


def notes(content: bytes) -> tuple[list[dict[str, str]], dict[str, str]]:
    """The metadata of the nodes and of the model."""
    found = onnx.load_from_string(content)
    return [{one.key: one.value for one in part.metadata_props} for part in found.graph.node], {
        one.key: one.value for one in found.metadata_props
    }


def test_nodes_go_with_their_layers() -> None:
    found, whole = notes(annotated(MODEL, NOTES, {"cycles": "12"}))
    conv, pool = {"accel.layer": "conv"}, {"accel.layer": "pool"}
    assert found == [
        {"accel.layer": "conv, pool"},
        conv,
        {**conv, "accel.cycles": "12", "accel.where": "machine"},
        conv,
        conv,
        {"accel.where": "nowhere", "accel.reason": "no output needs it"},
        pool,
        {**pool, "accel.where": "host"},
    ]
    assert whole == {"accel.cycles": "12"}


def test_nothing_else_changes() -> None:
    """Metadata of other tools stays. Earlier annotations of ours are removed."""
    before = onnx.load_from_string(MODEL)
    before.graph.node[0].metadata_props.add(key="mine", value="1")
    before.metadata_props.add(key="author", value="somebody")
    old = onnx.load_from_string(before.SerializeToString())
    old.graph.node[0].metadata_props.add(key="accel.cycles", value="7")
    found = onnx.load_from_string(annotated(old.SerializeToString(), NOTES, {}))
    assert {one.key for one in found.graph.node[0].metadata_props} == {"mine", "accel.layer"}
    for part in (*found.graph.node, found):
        kept = [(one.key, one.value) for one in part.metadata_props if not one.key.startswith("accel.")]
        del part.metadata_props[:]
        for key, value in kept:
            part.metadata_props.add(key=key, value=value)
    assert found == before


def test_external_data_stays_where_it_is(tmp_path: Path) -> None:
    found = onnx.load_from_string(MODEL)
    path = tmp_path / "m.onnx"
    onnx.save(found, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    (tmp_path / "other").mkdir()
    check_annotation(path, tmp_path / "other" / ".." / "out.onnx")
    with pytest.raises(GraphError, match="would not find the model's external data"):
        check_annotation(path, tmp_path / "other" / "out.onnx")
    path.write_bytes(MODEL)
    check_annotation(path, tmp_path / "other" / "out.onnx")
