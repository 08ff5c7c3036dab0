"""Scales for which integers give float32's sums and averages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import accel
from accel.formats.onnx_import import import_model
from accel.formats.onnx_runtime import run_onnx_runtime
from accel.formats.quantize_onnx import quantize_onnx
from accel.graph.graph_tensor import Array
from accel.network.exact_scales import with_exact_scales
from accel.network.network import Network
from tests.network.networks import MACHINE

onnx = pytest.importorskip("onnx")
helper = onnx.helper
RNG = np.random.default_rng(1)


def node(kind: str, inputs: str, output: str, **attributes: Any) -> Any:
    return helper.make_node(kind, inputs.split(), [output], name=output, **attributes)


def saved(folder: Path, nodes: list[Any], **constants: Array) -> Path:
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info("x", 1, (1, 8, 8, 8))],
        [helper.make_tensor_value_info(nodes[-1].output[0], 1, None)],
        [onnx.numpy_helper.from_array(value.astype(np.float32), name) for name, value in constants.items()],
    )
    path = folder / "float.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def on_host(content: bytes, machine: accel.Machine | str = MACHINE) -> list[str]:
    program = Network(graph=import_model(content)).build(machine)
    program.run().raise_if_wrong()
    return [
        part.fused.main.operator.kind
        for part in program.parts
        if not part.on_machine and part.fused.main.operator.kind not in ("Quantize", "Dequantize")
    ]


def test_an_average_gets_a_scale_of_its_own(tmp_path: Path) -> None:
    window = {"kernel_shape": [2, 2], "strides": [2, 2]}
    nodes = [
        node("Conv", "x w", "a"),
        node("AveragePool", "a", "m", **window),
        node("MaxPool", "m", "p", **window),
        node("Conv", "p w b", "y"),
    ]
    path = saved(tmp_path, nodes, w=RNG.normal(size=(8, 8, 1, 1)), b=RNG.normal(size=8))
    samples = {"x": RNG.normal(size=(3, 8, 8, 8)).astype(np.float32)}
    assert on_host(quantize_onnx(path, samples).content) == ["AveragePool"]
    found = accel.quantize(path, samples)
    assert on_host(found.content) == []
    assert found.errors[0].snr > 30
    graph = import_model(found.content)
    scale = {one.name: one for one in graph.tensors.values()}
    (average,) = (one for one in graph.nodes if one.operator.kind == "AveragePool")
    (pool,) = (one for one in graph.nodes if one.operator.kind == "MaxPool")
    before, after = (scale[name].scale_and_zero[0] for name in (average.inputs[0], average.output))
    assert after * 0.98 < before < after
    assert scale[pool.output].scale_and_zero[0] == after


@pytest.mark.parametrize("attributes", [{}, {"coordinate_transformation_mode": "asymmetric"}])
def test_a_linear_resize_gets_a_scale_of_its_own(attributes: dict[str, Any], tmp_path: Path) -> None:
    """With one scale, a sixteenth of all results are ties. Averages of parts of windows are exact, too."""
    nodes = [
        node("Conv", "x w", "a"),
        helper.make_node("Resize", ["a", "", "scales"], ["r"], name="r", mode="linear", **attributes),
        node("AveragePool", "r", "m", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
        node("Conv", "m w", "y"),
    ]
    path = saved(tmp_path, nodes, w=RNG.normal(size=(8, 8, 1, 1)), scales=np.array([1, 1, 2, 2]))
    samples = {"x": RNG.normal(size=(3, 8, 8, 8)).astype(np.float32)}
    plain = on_host(quantize_onnx(path, samples).content)
    assert {"Resize", "AveragePool"} <= set(plain)
    found = accel.quantize(path, samples)
    assert set(on_host(found.content)) <= {
        "Take",
        "Slice",
        "Concat",
        "DepthToSpace",
    }  # layers execute these moves
    program = Network(graph=import_model(found.content)).build(MACHINE)
    assert len(program.chains) == 1
    assert found.errors[0].snr > 25
    feeds = {"x": samples["x"][:1].reshape(1, 8, 8, 8)}
    want = run_onnx_runtime(found.content, feeds)["y"]
    np.testing.assert_array_equal(program.run(feeds).outputs["y"], want)


def test_sums_are_exact_for_ten_networks(tmp_path: Path) -> None:
    """Round scales, whose sums often lie halfway between two integers, are the worst case."""
    hosts = [0, 0]
    for seed in range(10):
        rng = np.random.default_rng(seed)
        nodes = [
            node("Conv", "x w1", "a"),
            node("Conv", "x w2", "b"),
            node("Add", "a b", "s"),
            node("Conv", "s w1", "y"),
        ]
        weights = {name: np.round(rng.normal(size=(8, 8, 1, 1)), 1) for name in ("w1", "w2")}
        x = np.round(rng.normal(size=(2, 8, 8, 8)), 1).astype(np.float32)
        content = quantize_onnx(saved(tmp_path, nodes, **weights), {"x": x}).content
        hosts[0] += len(on_host(content))
        hosts[1] += len(on_host(with_exact_scales(content)))
    assert hosts[0] > hosts[1] == 0


def test_products_are_exact_for_ten_networks(tmp_path: Path) -> None:
    machine, hosts = accel.machine(MACHINE, res_mul=1), [0, 0]
    for seed in range(10):
        rng = np.random.default_rng(seed)
        nodes = [
            node("Conv", "x w1", "a"),
            node("Conv", "x w2", "b"),
            node("Mul", "a b", "s"),
            node("Conv", "s w1", "y"),
        ]
        weights = {name: np.round(rng.normal(size=(8, 8, 1, 1)), 1) for name in ("w1", "w2")}
        x = np.round(rng.normal(size=(2, 8, 8, 8)), 1).astype(np.float32)
        content = quantize_onnx(saved(tmp_path, nodes, **weights), {"x": x}).content
        hosts[0] += len(on_host(content, machine))
        hosts[1] += len(on_host(with_exact_scales(content), machine))
    assert hosts[0] >= hosts[1] == 0


def test_an_exact_model_stays_as_it_is(tmp_path: Path) -> None:
    path = saved(tmp_path, [node("Conv", "x w", "y")], w=RNG.normal(size=(8, 8, 1, 1)))
    content = quantize_onnx(path, {"x": RNG.normal(size=(3, 8, 8, 8)).astype(np.float32)}).content
    assert with_exact_scales(content) == content
