"""Runs in ONNX Runtime that take too long are ended."""

import base64
import time
from typing import Any

import numpy as np
import pytest

from accel.graph import run_time_limit
from accel.graph.foreign_operator import OpenShapeError, run_foreign

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
helper, TensorProto = onnx.helper, onnx.TensorProto


def loop(trips: int) -> str:
    """A model that adds 1 to its input in a loop."""
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            helper.make_node("Add", ["before", "one"], ["after"]),
            helper.make_node("Identity", ["going"], ["going_on"]),
        ],
        "body",
        [
            value("trip", TensorProto.INT64, []),
            value("going", TensorProto.BOOL, []),
            value("before", TensorProto.FLOAT, [2]),
        ],
        [value("going_on", TensorProto.BOOL, []), value("after", TensorProto.FLOAT, [2])],
    )
    constants: dict[str, Any] = {
        "trips": np.array(trips, np.int64),
        "true": np.array(True),
        "one": np.float32([1, 1]),
    }
    graph = helper.make_graph(
        [helper.make_node("Loop", ["trips", "true", "x0"], ["y"], body=body)],
        "loop",
        [value("x0", TensorProto.FLOAT, [2])],
        [value("y", TensorProto.FLOAT, [2])],
        [onnx.numpy_helper.from_array(values, name) for name, values in constants.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return base64.b64encode(made.SerializeToString()).decode()


def test_a_loop_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_time_limit, "MAX_SECONDS", 0.1)
    monkeypatch.setattr(run_time_limit, "_INTERVAL_SECONDS", 0.05)
    begin = time.monotonic()
    with pytest.raises(OpenShapeError, match=r"ONNX Runtime refuses: .*terminate"):
        run_foreign(loop(1 << 60), [np.zeros(2, np.float32)])
    assert time.monotonic() - begin < 30


def test_other_runs_are_not_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a run that begins after the thread of earlier runs has ended."""
    monkeypatch.setattr(run_time_limit, "_INTERVAL_SECONDS", 0.02)
    for _ in range(3):
        assert run_foreign(loop(5), [np.zeros(2, np.float32)]).tolist() == [5, 5]
        time.sleep(0.1)
