"""The test cases of operators that come with ONNX: what ONNX Runtime runs is imported, with equal results."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest

from accel.base.errors import GraphError
from accel.formats.onnx_import import import_model
from accel.graph.graph import Graph
from accel.network.network import Network
from tests.thorough import also

PARTS = 25
"""Without ``--thorough``, the cases of one part of this many are tested."""
UNKNOWN = (
    "is text; it must be",
    "is a sequence; it must be a tensor",
    "is an optional value; it must be a tensor",
    "sizes must be positive",
    "it must hold numbers that numpy has",
    "the model's opset is 1; it must be in",
)
"""Texts of refusals: strings, sequences, and tensors without values."""
LEFT_OUT = ("bernoulli", "dropout", "random", "training_mode", "test_scan_sum")
"""Cases with random results, with results that ONNX Runtime does not repeat, and a Scan of opset 8, which
ONNX's version converter gives other inputs."""


@cache
def cases() -> dict[str, Any]:
    onnx_cases = pytest.importorskip("onnx.backend.test.case.node")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = onnx_cases.collect_testcases(None)
    return {case.name: case for case in found if not any(word in case.name for word in LEFT_OUT)}


def imported(content: bytes) -> Graph | None:
    """Import a model, or return None if it has tensors that graphs do not have."""
    try:
        return import_model(content)
    except GraphError as error:
        if not any(text in str(error) for text in UNKNOWN):
            raise
    return None


@pytest.mark.parametrize("part", [0, *map(also, range(1, PARTS))])
def test_they_equal_onnx_runtime(part: int) -> None:
    for name in sorted(cases())[part::PARTS]:
        check(cases()[name])


def check(case: Any) -> None:
    """Compare the outputs of one case, unless ONNX Runtime does not run it."""
    onnxruntime = pytest.importorskip("onnxruntime")
    content = case.model.SerializeToString()
    given = dict(zip((one.name for one in case.model.graph.input), case.data_sets[0][0], strict=False))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        wanted = session.run(None, given)
    except Exception:  # ONNX Runtime has not all operators of ONNX
        return
    graph = imported(content)
    if graph is None:
        return
    inputs = {name: given[name] for name in graph.inputs}
    found = Network(graph=graph).build("vta-int8").run(inputs, backend="functional").outputs
    for values, (output, array) in zip(wanted, found.items(), strict=True):
        if not isinstance(values, np.ndarray):
            continue
        assert (array.shape, array.dtype) == (values.shape, values.dtype), output
        if values.dtype.kind == "f":
            np.testing.assert_allclose(
                array.astype(np.float64), values.astype(np.float64), rtol=1e-3, atol=1e-5, equal_nan=True
            )
        else:
            np.testing.assert_array_equal(array, values)
