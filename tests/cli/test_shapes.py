"""``--shape``: sizes of inputs that a model leaves open."""

from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Shell

onnx = pytest.importorskip("onnx")
helper = onnx.helper


def test_the_commands_take_shapes(tmp_path: Path, accel: Shell) -> None:
    w = onnx.numpy_helper.from_array(np.ones((2, 3, 1, 1), np.float32), "w")
    info = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 3, "height", "width"])
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"])]
    graph = helper.make_graph(nodes, "g", [info], [helper.make_empty_tensor_value_info("y")], [w])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    open_model = tmp_path / "open.onnx"
    open_model.write_bytes(made.SerializeToString())
    output = str(tmp_path / "net.accel")
    accel("compile", "onnx", str(open_model), "--shape", "x=1,3,6,10", "-o", output, "--config", "tiny-int8")
    assert accel("run", output, "--json").json["mismatches"] == 0
    accel("verify", str(open_model), "--shape", "x=1,3,6,10")
    assert accel("run", str(open_model), "--shape", "x=1,3,4,4", "--config", "tiny-int8", "--json").json
    message = accel("compile", "onnx", str(open_model), "--shape", "x=1,3,six", "-o", output, code=2).err
    assert "it must be positive integers" in message
