"""QDQ regions of Add, Mul and AveragePool against ONNX Runtime on the original file."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from accel.formats.compare_with_runtime import compare
from accel.formats.onnx_import import import_model
from accel.graph.elementwise_operators import Add, Mul
from accel.graph.graph import Graph
from accel.graph.graph_evaluation import evaluate
from accel.graph.graph_tensor import Array
from accel.graph.pooling_operators import AveragePool
from accel.network.network import Network
from accel.network.network_file import load_network, save_network
from tests.formats.runtime import model, node, onnx
from tests.network.networks import MACHINE

ort = pytest.importorskip("onnxruntime", reason="onnxruntime comes with the extra onnx")

PLANE = (1, 16, 12, 10)
ROUND_SCALES = ((0.05, 0.05, 0.1), (0.1, 0.05, 0.05), (0.25, 0.125, 0.5))
RANDOM = np.random.default_rng(7)
RANDOM_SCALES = tuple(tuple(float(one) for one in 10 ** RANDOM.uniform(-2.5, -0.5, 3)) for _ in range(3))
SCALES = [*ROUND_SCALES, *RANDOM_SCALES]
BOUNDS = ["no bounds", "Relu", "Clip 0..6", "Clip 0..6 of 0..5.99", "Clip -1000..1000"]


class Region:
    """A QDQ region under construction."""

    def __init__(self, dtype: str, shapes: dict[str, tuple[int, ...]]) -> None:
        self.dtype = dtype
        self.least = int(np.iinfo(dtype).min)
        self.shapes = shapes
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}

    def quantization(self, name: str, scale: float, zero: int) -> list[str]:
        """Add constants: a scale, and a zero point given as its distance from the type's least value."""
        self.constants |= {
            f"{name} scale": np.float32(scale),
            f"{name} zero": np.array(self.least + zero, dtype=self.dtype),
        }
        return [f"{name} scale", f"{name} zero"]

    def dequantized(self, name: str, scale: float, zero: int) -> str:
        return self.emit("DequantizeLinear", [name, *self.quantization(name, scale, zero)])

    def emit(self, kind: str, inputs: Sequence[str], **attributes: Any) -> str:
        output = f"t{len(self.nodes)}"
        self.nodes.append(node(kind, inputs, output, **attributes))
        return output

    def constant(self, value: Any) -> str:
        name = f"constant {len(self.constants)}"
        self.constants[name] = np.asarray(value)
        return name

    def apply(self, step: str, data: str) -> str:
        """Apply one of the operators that may stand between Dequantize, operator and Quantize."""
        if step == "Relu6":
            return self.emit("Clip", [data, *(self.constant(np.float32(one)) for one in (0, 6))])
        if step == "Reshape":
            return self.emit("Reshape", [data, self.constant([PLANE[0], PLANE[1], PLANE[3], -1])])
        if step == "Unsqueeze":
            return self.emit("Unsqueeze", [data, self.constant([0])])
        if step == "Slice":
            return self.emit("Slice", [data, *(self.constant([one]) for one in (1, 100, 2))])
        if step == "Pad":
            return self.emit("Pad", [data, self.constant([0, 0, 1, 1, 0, 0, 0, 2])])
        attributes = {
            "Transpose": {"perm": [0, 2, 3, 1]},
            "MaxPool": {"kernel_shape": [2, 1]},
            "AveragePool": {"kernel_shape": [2, 2], "strides": [2, 2]},
            "Concat": {"axis": 1},
            "Split": {"axis": 1},
        }
        return self.emit(step, [data, data] if step == "Concat" else [data], **attributes.get(step, {}))

    def model(self, data: str, scale: float, zero: int, *, opset: int = 17) -> bytes:
        """The model, whose output ``y`` is the quantized ``data``."""
        end = node("QuantizeLinear", [data, *self.quantization("y", scale, zero)], "y")
        inputs = {name: (self.dtype, shape) for name, shape in self.shapes.items()}
        return model([*self.nodes, end], inputs, ["y"], self.constants, opset=opset)

    def feeds(self) -> dict[str, Array]:
        return {
            name: RANDOM.integers(self.least, self.least + 256, shape).astype(self.dtype)
            for name, shape in self.shapes.items()
        }


def optimized(content: bytes, feeds: dict[str, Array], path: Any) -> tuple[Array, set[str]]:
    """Output ``y`` of ONNX Runtime with all optimizations, and the kinds of operators that it computes."""
    options = ort.SessionOptions()
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    options.log_severity_level = 4
    options.optimized_model_filepath = str(path / "optimized.onnx")
    session = ort.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    kinds = {one.op_type for one in onnx.load(path / "optimized.onnx").graph.node}
    return session.run(["y"], feeds)[0], kinds


def steps_of(bounds: str, region: Region, data: str) -> tuple[str, float | None, int]:
    """The region's result, and a scale (None for any) and a zero point that suit the bounds."""
    if bounds == "no bounds":
        return data, None, 93
    if bounds == "Relu":
        return region.emit("Relu", [data]), None, 41
    if bounds == "Clip 0..6 of 0..5.99":
        return region.apply("Relu6", data), 0.0235, 0
    if bounds == "Clip 0..6":
        return region.apply("Relu6", data), None, 60
    limits = [region.constant(np.float32(one)) for one in (-1000, 1000)]
    return region.emit("Clip", [data, *limits]), None, 128


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("kind", ["Add", "Mul"])
def test_all_pairs_of_values(kind: str, bounds: str, dtype: str, tmp_path: Any) -> None:
    """Compare all 65,536 pairs for round and random scales. QLinearAdd may order its multiply-adds either
    way."""
    for number, (left, right, out) in enumerate(SCALES):
        region = Region(dtype, {"a": (256, 1), "b": (1, 256)})
        operands = [region.dequantized("a", left, 100 + number), region.dequantized("b", right, 7)]
        data, scale, zero = steps_of(bounds, region, region.emit(kind, operands))
        usual = out if kind == "Add" else left * right * 90
        content = region.model(data, scale or usual, zero)
        values = np.arange(region.least, region.least + 256).astype(dtype)
        feeds = {"a": values[:, None], "b": values[None, :]}
        wanted, kinds = optimized(content, feeds, tmp_path)
        graph = import_model(content)
        first = graph.nodes[0]
        assert isinstance(first.operator, Add | Mul)
        assert first.operator.in_float32 == (f"QLinear{kind}" not in kinds)
        assert first.operator.in_float32 == (bounds in {"Relu", "Clip 0..6"})
        found = evaluate(graph, feeds)["y"]
        if isinstance(first.operator, Add) and not first.operator.in_float32:
            tensors, sums = graph.operands(first), graph.tensors[first.output]
            arrays = [feeds[name] for name in first.inputs]
            orders = [first.operator.ordered(tensors, arrays, sums, swapped=one) for one in (False, True)]
            assert np.logical_or(*(one == wanted for one in orders)).all()
        else:
            np.testing.assert_array_equal(found, wanted)
        compare(graph, feeds).raise_if_bad()


MOVES = ["Reshape", "Transpose", "Unsqueeze", "Slice", "MaxPool", "Identity", "Flatten", "Split"]


@pytest.mark.parametrize("kind", ["Add", "Mul", "AveragePool"])
@pytest.mark.parametrize(
    "steps",
    [
        *((one,) for one in MOVES),
        *(pair for one in MOVES for pair in ((one, "Relu"), ("Relu", one))),
        *product(["Relu6"], ["Transpose", "MaxPool"]),
        ("Relu", "Relu"),
        ("Slice", "Relu", "Slice"),
    ],
    ids=" ".join,
)
def test_operators_between_operator_and_quantize(steps: tuple[str, ...], kind: str, tmp_path: Any) -> None:
    """The bounds either change values or change none."""
    for zero in (0, 60):
        region = Region("uint8", dict.fromkeys("ab", PLANE))
        operands = [region.dequantized("a", 0.05, 100), region.dequantized("b", 0.1, 7)]
        data = region.apply(kind, operands[0]) if kind == "AveragePool" else region.emit(kind, operands)
        for step in steps:
            data = region.apply(step, data)
        assert_as_onnx_runtime(region, region.model(data, 0.1, zero), tmp_path)


@pytest.mark.parametrize("kind", ["Add", "Mul", "AveragePool"])
@pytest.mark.parametrize(
    "steps",
    [*((one,) for one in (*MOVES, "Pad", "Concat")), ("Pad", "Transpose"), ("Transpose", "Pad")],
    ids=" ".join,
)
def test_operators_between_dequantize_and_operator(steps: tuple[str, ...], kind: str, tmp_path: Any) -> None:
    region = Region("uint8", dict.fromkeys("ab", PLANE))
    operands = [region.dequantized("a", 0.05, 100), region.dequantized("b", 0.1, 7)]
    if kind == "AveragePool" and {"Flatten", "Unsqueeze"} & set(steps):
        pytest.skip("a mean of windows needs four axes")
    for step in steps:
        operands = [region.apply(step, one) for one in operands]
    data = region.apply(kind, operands[0]) if kind == "AveragePool" else region.emit(kind, operands)
    assert_as_onnx_runtime(region, region.model(data, 0.1, 60), tmp_path)


@pytest.mark.parametrize("opset", [10, 11, 12, 13, 19])
def test_maxima_of_old_opsets(opset: int, tmp_path: Any) -> None:
    """From opset 12 on, ONNX Runtime moves a Quantize through MaxPool."""
    region = Region("uint8", dict.fromkeys("ab", PLANE))
    operands = [region.dequantized("a", 0.05, 100), region.dequantized("b", 0.1, 7)]
    data = region.apply("MaxPool", region.emit("Mul", operands))
    assert_as_onnx_runtime(region, region.model(data, 0.1, 60, opset=opset), tmp_path)


def test_a_sum_of_several_operands(tmp_path: Any) -> None:
    region = Region("uint8", dict.fromkeys("ab", PLANE))
    operands = [region.dequantized("a", 0.05, 100), region.dequantized("b", 0.1, 7)]
    assert_as_onnx_runtime(region, region.model(region.emit("Sum", operands), 0.1, 60), tmp_path)


def assert_as_onnx_runtime(region: Region, content: bytes, path: Any) -> Graph:
    """Compare the values, and the set of operators that are computed on integers."""
    feeds = region.feeds()
    wanted, kinds = optimized(content, feeds, path)
    graph = import_model(content)
    (operator,) = (one.operator for one in graph.nodes if isinstance(one.operator, Add | Mul | AveragePool))
    assert operator.in_float32 == (f"QLinear{operator.kind}" not in kinds)
    found = evaluate(graph, feeds)["y"]
    # the summation order of float32 means depends on the processor
    tolerance = 1 if isinstance(operator, AveragePool) and operator.in_float32 else 0
    assert np.abs(found.astype(int) - wanted).max() <= tolerance
    compare(graph, feeds).raise_if_bad()
    return graph


@pytest.mark.parametrize("kind", ["Add", "Mul"])
def test_on_the_machine(kind: str, tmp_path: Any) -> None:
    """Add between layers, and Mul by a constant for each channel."""
    shape = (1, 16, 6, 5)
    region = Region("uint8", {"a": shape} if kind == "Mul" else dict.fromkeys("ab", shape))
    left = region.dequantized("a", 0.05, 100)
    if kind == "Mul":
        region.constants["b"] = RANDOM.integers(0, 256, (1, 16, 1, 1)).astype(np.uint8)
    right = region.dequantized("b", 0.1, 7)
    data = region.apply("Relu6", region.emit(kind, [left, right]))
    graph = import_model(region.model(data, 0.03717, 20))
    program = Network(graph=graph).build(MACHINE)
    feeds = region.feeds()
    save_network(program, tmp_path / "net.accel")
    loaded = load_network(tmp_path / "net.accel")
    assert loaded.graph.nodes == graph.nodes
    for one in (program, loaded):
        result = one.run(feeds, backend="functional")
        result.raise_if_wrong()
        np.testing.assert_array_equal(result.outputs["y"], evaluate(graph, feeds)["y"])
