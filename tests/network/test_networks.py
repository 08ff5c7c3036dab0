"""Real networks on a machine, equal to ONNX Runtime in every quantized output; see ``--models``."""

from pathlib import Path

import numpy as np

import accel
from accel.graph.tensor import QUANTIZED
from tests.formats.test_networks import SOFTMAX, from_softmax, runs
from tests.network.networks import MACHINE


def test_outputs_are_those_of_onnx_runtime(model: Path) -> None:
    network = accel.load_onnx(model / "model.onnx")
    program = network.build(MACHINE, strict=True)
    expected = runs(model, "expected.npz")
    for run, inputs in runs(model, "inputs.npz").items():
        for backend in ("sim", "functional"):
            result = program.run(inputs, backend=backend)
            result.raise_if_wrong()
            for name, wanted in expected[run].items():
                found = result.outputs[name]
                assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
                if from_softmax(network.graph, name):
                    assert np.abs(found.astype(np.int64) - wanted).max() <= SOFTMAX
                elif wanted.dtype.name in QUANTIZED:
                    assert np.array_equal(found, wanted)
