"""Real networks on a machine, equal to ONNX Runtime in every quantized output; see ``--models``.

The same network in another format is one graph, as tests/formats/test_networks.py shows.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import accel
from accel.deployment.deployment_plan import deploy_network
from accel.graph.graph import Graph
from accel.graph.graph_tensor import QUANTIZED, Array
from tests.deployment.driver import Driver, Model, library
from tests.formats.test_networks import SOFTMAX, from_softmax, runs
from tests.network.networks import MACHINE
from tests.tools import needs


@pytest.mark.by_default("*_qop", "*_u8")
def test_outputs_equal_onnx_runtime(model: Path, tmp_path: Path) -> None:
    """On the simulators, and as a package driven by C."""
    needs("g++")
    program = accel.load_onnx(model / "model.onnx").build(MACHINE, strict=True)
    deployment = deploy_network(program, "packaged")
    driver = Driver(deployment, library(tmp_path, deployment), Model(program.config))
    assert driver.load() == 0
    expected = runs(model, "expected.npz")
    for run, inputs in runs(model, "inputs.npz").items():
        for backend in ("sim", "functional"):
            result = program.run(inputs, backend=backend)
            result.raise_if_wrong()
            _assert_equal(program.graph, result.outputs, expected[run])
        status, outputs = driver.run(inputs)
        assert status == 0
        _assert_equal(program.graph, outputs, expected[run])


@pytest.mark.by_default("*_dscnn_*_qop", "*_resnet8w8_*")
def test_outputs_with_strips_equal_onnx_runtime(model: Path) -> None:
    """Elements with several rows: depthwise layers and residuals."""
    program = accel.load_onnx(model / "model.onnx").build("gemm8x8-int8", strict=True)
    (run, inputs), *_ = runs(model, "inputs.npz").items()
    result = program.run(inputs, backend="functional")
    result.raise_if_wrong()
    _assert_equal(program.graph, result.outputs, runs(model, "expected.npz")[run])


def _assert_equal(graph: Graph, outputs: Mapping[str, Array], expected: Mapping[str, Array]) -> None:
    assert outputs.keys() == expected.keys()
    for name, wanted in expected.items():
        found = outputs[name]
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        if from_softmax(graph, name):
            assert np.abs(found.astype(np.int64) - wanted).max() <= SOFTMAX
        elif wanted.dtype.name in QUANTIZED:
            assert np.array_equal(found, wanted)
