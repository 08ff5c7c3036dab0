"""Real networks, equal to ONNX Runtime in every quantized output; ``--models`` names
their folder."""

from pathlib import Path

import numpy as np
import pytest

from accel.formats.compare_with_runtime import compare, random_inputs
from accel.formats.onnx_import import load_onnx
from accel.formats.tflite_import import load_tflite
from accel.graph.graph import Graph
from accel.graph.graph_evaluation import evaluate
from accel.graph.graph_tensor import QUANTIZED

SOFTMAX = 1
"""Allowed difference of a quantized softmax."""


def runs(folder: Path, file: str) -> dict[str, dict[str, np.ndarray]]:
    found: dict[str, dict[str, np.ndarray]] = {}
    with np.load(folder / file) as arrays:
        for key in arrays:
            run, _, name = key.partition(":")
            found.setdefault(run, {})[name] = arrays[key]
    return found


def from_softmax(graph: Graph, name: str) -> bool:
    node = graph.producers.get(name)
    return node is not None and (
        node.operator.kind == "Softmax"
        or (node.operator.kind == "Quantize" and from_softmax(graph, node.inputs[0]))
    )


def test_both_formats_are_one_graph(model: Path) -> None:
    """For networks with both files, the QDQ and QOperator graphs have equal operators and
    tensor names."""
    other = model.with_name(model.name.removesuffix("_qdq") + "_qop")
    if not model.name.endswith("_qdq") or not other.exists():
        pytest.skip("there is one format of it only")
    one, two = (load_onnx(folder / "model.onnx") for folder in (model, other))
    assert [node.operator for node in one.nodes] == [node.operator for node in two.nodes]
    same = {name for name in one.tensors if one.tensors[name].dtype in QUANTIZED} - one.constants.keys()
    assert (
        same == {name for name in two.tensors if two.tensors[name].dtype in QUANTIZED} - two.constants.keys()
    )
    assert {one.tensors[name] == two.tensors[name] for name in same} == {True}


def test_tensorflow_lite_files_are_the_same_network(model: Path) -> None:
    """This compares with the ONNX file of the same network. TensorFlow Lite has channels last."""
    path = model / "model.tflite"
    if not path.exists():
        pytest.skip("there is no TensorFlow Lite file of it")
    graph, other = load_tflite(path), load_onnx(model / "model.onnx")
    expected = runs(model, "expected.npz")
    for run, inputs in runs(model, "inputs.npz").items():
        (image,) = inputs.values()
        turned = image.transpose(0, 2, 3, 1) if image.ndim == 4 else image
        values = evaluate(graph, dict.fromkeys(graph.inputs, np.ascontiguousarray(turned)))
        (last,) = graph.outputs
        for name, wanted in expected[run].items():
            soft = from_softmax(other, name)
            node = graph.producers[last]
            found = values[last if soft or node.operator.kind != "Softmax" else node.inputs[0]]
            assert np.abs(found.astype(np.int64) - wanted).max() <= (SOFTMAX if soft else 0)
    assert sum(one.operator.kind == "Transpose" for one in graph.nodes) <= 1


def test_every_tensor_is_that_of_onnx_runtime(model: Path) -> None:
    """The graph is exported as a model that outputs all of its tensors."""
    graph = load_onnx(model / "model.onnx")
    for inputs in [*runs(model, "inputs.npz").values(), random_inputs(graph)]:
        comparison = compare(graph, inputs)
        comparison.raise_if_bad()
        assert {one.name for one in comparison.tensors} == {node.output for node in graph.nodes}


def test_outputs_are_those_of_onnx_runtime(model: Path) -> None:
    graph = load_onnx(model / "model.onnx")
    expected = runs(model, "expected.npz")
    for run, inputs in runs(model, "inputs.npz").items():
        values = evaluate(graph, inputs)
        assert expected[run].keys() == set(graph.outputs)
        for name, wanted in expected[run].items():
            found = values[name]
            assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
            if from_softmax(graph, name):
                assert np.abs(found.astype(np.int64) - wanted).max() <= SOFTMAX
            else:
                np.testing.assert_array_equal(found, wanted, err_msg=f"{name} in run {run}")
    assert len(expected) == 3
