"""Reading ONNX models as graphs, and the models that are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel.base.errors import GraphError, ShapeError
from accel.formats.compare_with_runtime import compare
from accel.formats.onnx_import import import_model, load_onnx
from accel.graph.graph import Graph
from accel.graph.graph_evaluation import evaluate
from accel.graph.graph_tensor import Quantization
from accel.graph.product_operators import Conv
from tests.expect import refused
from tests.formats.runtime import Array, model, node, onnx, run

RNG = np.random.default_rng(0)
CONSTANTS: dict[str, Any] = {
    "s": np.float32(0.1),
    "z": np.int8(3),
    "ws": np.array([0.02, 0.5], np.float32),
    "wz": np.zeros(2, np.int8),
    "w": RNG.integers(-128, 128, (2, 3, 3, 3)).astype(np.int8),
    "b": np.array([100, -2000], np.int32),
    "ys": np.float32(1.7),
}
CONV = ["x", "s", "z", "w", "ws", "wz", "ys", "z", "b"]
IMAGE = {"x": ("int8", (1, 3, 8, 7))}


def image(shape: tuple[int, ...] = (1, 3, 8, 7), dtype: str = "int8") -> Array:
    bounds = np.iinfo(dtype)
    return RNG.integers(bounds.min, bounds.max + 1, shape).astype(dtype)


def assert_as_onnx_runtime(
    content: bytes, feeds: dict[str, Array], *, batch: int | None = None, tolerance: float = 0
) -> Graph:
    """Compare the outputs, and each tensor of the graph, with ONNX Runtime."""
    graph = import_model(content, batch=batch)
    found, wanted = evaluate(graph, feeds), run(content, feeds)
    for name, array in wanted.items():
        ours = found[name] if name in found else graph.constants[name]
        assert (ours.shape, ours.dtype) == (array.shape, array.dtype)
        np.testing.assert_allclose(ours.astype(float), array.astype(float), rtol=0, atol=tolerance)
    compare(graph, feeds).raise_if_bad()
    return graph


def kinds(graph: Graph) -> list[str]:
    return [one.operator.kind for one in graph.nodes]


# --- names, sizes, domains -------------------------------------------------------------------------


def test_names_are_those_of_the_file() -> None:
    nodes = [
        node("QLinearConv", ["in=a:0", *CONV[1:]], "layer/1:0", pads=[1] * 4),
        node("MaxPool", ["layer/1:0"], "out.b=c", kernel_shape=[2, 2]),
    ]
    content = model(nodes, {"in=a:0": IMAGE["x"]}, ["out.b=c", "layer/1:0"], CONSTANTS)
    graph = assert_as_onnx_runtime(content, {"in=a:0": image()})
    assert graph.inputs == ("in=a:0",)
    assert graph.outputs == ("out.b=c", "layer/1:0")
    assert [one.name for one in graph.nodes] == ["QLinearConv of layer/1:0", "MaxPool of out.b=c"]


def test_quantizations_propagate_through_operators_that_move_values() -> None:
    """The input gets the scale of the first operator that has one, back through operators
    that only move values."""
    nodes = [
        node("MaxPool", ["x"], "m", kernel_shape=[2, 2], pads=[0, 0, 1, 1]),
        node("QLinearConv", ["m", *CONV[1:]], "y"),
        node("Transpose", ["y"], "t", perm=[0, 2, 3, 1]),
    ]
    graph = assert_as_onnx_runtime(model(nodes, IMAGE, ["t"], CONSTANTS), {"x": image()})
    assert graph.tensors["x"].quantization == graph.tensors["m"].quantization == Quantization.of(0.1, 3)
    assert graph.tensors["t"].quantization == Quantization.of(1.7, 3)
    assert graph.tensors["w"].quantization == Quantization.of(CONSTANTS["ws"], CONSTANTS["wz"], 0)


def test_two_opinions_on_one_tensor() -> None:
    nodes = [
        node("QLinearConv", CONV, "y"),
        node("DequantizeLinear", ["y", "s", "z"], "f"),
        node("DequantizeLinear", ["x", "ys", "z"], "g"),
    ]
    graph = assert_as_onnx_runtime(model(nodes, IMAGE, ["y", "f", "g"], CONSTANTS), {"x": image()})
    assert kinds(graph).count("Reinterpret") == 2
    assert graph.tensors["y"].quantization == Quantization.of(1.7, 3)


def test_domains_that_are_not_used_are_ignored() -> None:
    content = model(
        [node("QLinearConv", CONV, "y")],
        IMAGE,
        ["y"],
        CONSTANTS,
        opsets={"org.pytorch.aten": 1, "ai.onnx.ml": 5},
    )
    assert kinds(import_model(content)) == ["Conv"]


@pytest.mark.parametrize("opset", [10, 13, 17, onnx.defs.onnx_opset_version()])
def test_opsets(opset: int) -> None:
    content = model([node("QLinearConv", CONV, "y", pads=[1] * 4)], IMAGE, ["y"], CONSTANTS, opset=opset)
    assert isinstance(import_model(content).nodes[0].operator, Conv)


@pytest.mark.parametrize("opset", [6, 1000])
def test_opsets_that_are_not_known(opset: int) -> None:
    content = model([node("QLinearConv", CONV, "y")], IMAGE, ["y"], CONSTANTS, opset=opset)
    newest = onnx.defs.onnx_opset_version()
    with refused(GraphError, f"the model's opset is {opset}; it must be in 7..{newest}"):
        import_model(content)


@pytest.mark.parametrize(("batch", "size"), [(None, 1), (1, 1), (3, 3)])
def test_a_symbolic_batch(batch: int | None, size: int) -> None:
    inputs = {"x": ("int8", ("n", 3, 8, 7))}
    content = model([node("QLinearConv", CONV, "y")], inputs, ["y"], CONSTANTS)
    graph = assert_as_onnx_runtime(content, {"x": image((size, 3, 8, 7))}, batch=batch)
    assert graph.tensors["y"].shape == (size, 2, 6, 5)


def test_a_batch_without_a_name_is_refused() -> None:
    content = model(
        [node("QLinearConv", CONV, "y")], {"x": ("int8", ("n", 3, "height", None))}, ["y"], CONSTANTS
    )
    message = "inputs have open sizes; give them, with numbers for the names: --shape x=n,3,height,?"
    with refused(GraphError, message):
        import_model(content)
    with refused(ShapeError, "the batch is 0; it must be in 1..65536"):
        import_model(content, batch=0)


def test_a_fixed_batch_that_disagrees() -> None:
    content = model([node("QLinearConv", CONV, "y")], IMAGE, ["y"], CONSTANTS)
    assert import_model(content, batch=1).tensors["y"].shape[0] == 1
    with refused(GraphError, "the batch is 2; the model fixes that of input 'x' to 1"):
        import_model(content, batch=2)


def test_shapes_are_computed() -> None:
    """Exporters write a view as Shape, Gather, Unsqueeze, Concat, Reshape."""
    nodes = [
        node("Shape", ["x"], "shape"),
        node("Gather", ["shape", "first"], "n", axis=0),
        node("Unsqueeze", ["n", "axes"], "n1"),
        node("Constant", [], "minus", value_ints=[-1]),
        node("Concat", ["n1", "minus"], "wanted", axis=0),
        node("Reshape", ["x", "wanted"], "flat"),
        node("QuantizeLinear", ["flat", "s", "z"], "y"),
    ]
    constants = {
        "first": np.int64(0),
        "axes": np.array([0], np.int64),
        "s": np.float32(0.1),
        "z": np.uint8(7),
    }
    content = model(nodes, {"x": ("float32", ("n", 3, 4))}, ["y"], constants)
    x = RNG.normal(size=(2, 3, 4)).astype(np.float32)
    graph = assert_as_onnx_runtime(content, {"x": x}, batch=2)
    assert kinds(graph) == ["Reshape", "Quantize"]
    assert graph.tensors["y"].shape == (2, 12)


def test_nodes_may_come_in_any_order() -> None:
    nodes = [node("MaxPool", ["y"], "m", kernel_shape=[2, 2]), node("QLinearConv", CONV, "y")]
    graph = import_model(model(nodes, IMAGE, ["m"], CONSTANTS))
    assert kinds(graph) == ["Conv", "MaxPool"]


def test_nodes_that_no_output_needs_are_dropped() -> None:
    nodes = [node("QLinearConv", CONV, "y"), node("MaxPool", ["x"], "m", kernel_shape=[2, 2])]
    graph = import_model(model(nodes, IMAGE, ["y"], CONSTANTS | {"unused": np.zeros(9, np.float32)}))
    assert kinds(graph) == ["Conv"]
    assert "unused" not in graph.tensors


def test_functions_of_the_model_are_inlined() -> None:
    helper = onnx.helper
    body = helper.make_function(
        "mine",
        "twice",
        ["a"],
        ["b"],
        [helper.make_node("Mul", ["a", "a"], ["b"])],
        [helper.make_opsetid("", 17)],
    )
    content = model(
        [helper.make_node("twice", ["x"], ["y"], domain="mine", name="call")],
        {"x": ("float32", (2, 3))},
        ["y"],
        {},
        opsets={"mine": 1},
    )
    made = onnx.ModelProto.FromString(content)
    made.functions.append(body)
    made.ir_version = 8
    graph = import_model(made.SerializeToString())
    x = RNG.normal(size=(2, 3)).astype(np.float32)
    np.testing.assert_array_equal(evaluate(graph, {"x": x})["y"], x * x)


# --- operators whose forms random networks do not have ---------------------------------------------


def test_weights_have_zero_points_of_their_own() -> None:
    """ONNX Runtime uses one zero point for all channels, so the export computes each channel
    separately."""
    for dtype, groups in (("int8", 1), ("uint8", 1), ("uint8", 3)):
        bounds = np.iinfo(dtype)
        weights = RNG.integers(bounds.min, bounds.max + 1, (6, 3 // groups, 2, 2)).astype(dtype)
        constants = CONSTANTS | {
            "w": weights,
            "ws": RNG.uniform(0.01, 0.1, 6).astype(np.float32),
            "wz": RNG.integers(bounds.min, bounds.max + 1, 6).astype(dtype),
            "b": RNG.integers(-999, 999, 6).astype(np.int32),
        }
        graph = import_model(model([node("QLinearConv", CONV, "y", group=groups)], IMAGE, ["y"], constants))
        compare(graph, {"x": image()}).raise_if_bad()


@pytest.mark.parametrize(("data", "weights", "out"), [("int8", "uint8", "int8"), ("uint8", "int8", "int8")])
def test_types_that_onnx_runtime_does_not_pair(data: str, weights: str, out: str) -> None:
    """The export writes the same numbers in types that it accepts."""
    bounds = np.iinfo(weights)
    constants = {
        "s": np.float32(0.1),
        "z": np.array(5, data),
        "w": RNG.integers(bounds.min, bounds.max + 1, (3, 4)).astype(weights),
        "ws": np.float32(0.02),
        "wz": np.array(9, weights),
        "ys": np.float32(0.2),
        "yz": np.array(3, out),
        "c": np.array([1, 2, 3, 400], np.int32),
    }
    nodes = [
        node("QLinearMatMul", ["x", "s", "z", "w", "ws", "wz", "ys", "yz"], "y"),
        node("QGemm", ["x", "s", "z", "w", "ws", "wz", "c", "ys", "yz"], "g"),
    ]
    graph = import_model(model(nodes, {"x": (data, (5, 3))}, ["y", "g"], constants))
    compare(graph, {"x": image((5, 3), data)}).raise_if_bad()


def test_integers_without_a_scale() -> None:
    nodes = [
        node("ConvInteger", ["x", "w", "z"], "c"),
        node("MatMulInteger", ["a", "m", "z"], "p"),
        node("Cast", ["p"], "f", to=onnx.TensorProto.FLOAT),
        node("Mul", ["f", "s"], "g"),
    ]
    constants = CONSTANTS | {"z": np.uint8(9), "m": image((4, 2))}
    inputs = {"x": ("uint8", (1, 3, 8, 7)), "a": ("uint8", (3, 4))}
    feeds = {"x": image(dtype="uint8"), "a": image((3, 4), "uint8")}
    graph = assert_as_onnx_runtime(model(nodes, inputs, ["c", "g"], constants), feeds)
    assert graph.tensors["c"].dtype == "int32"


@pytest.mark.parametrize(
    ("kind", "data", "weights"),
    [("ConvInteger", (1, 3, 5, 4), (2, 3, 2, 2)), ("MatMulInteger", (5, 4), (4, 3))],
)
def test_weights_and_zero_point_that_both_vary(
    kind: str, data: tuple[int, ...], weights: tuple[int, ...]
) -> None:
    """ONNX Runtime computes the product: the sums of weights that correct it are not known at import."""
    nodes = [
        node("DynamicQuantizeLinear", ["x"], "q", "s", "z"),
        node("DynamicQuantizeLinear", ["w"], "wq", "ws", "wz"),
        node(kind, ["q", "wq", "z"], "y"),
    ]
    content = model(nodes, {"x": ("float32", data), "w": ("float32", weights)}, ["y"], {})
    feeds = {name: RNG.normal(size=size).astype(np.float32) for name, size in (("x", data), ("w", weights))}
    assert_as_onnx_runtime(content, feeds)


def test_a_varying_zero_point_for_each_row_is_refused() -> None:
    """As ONNX Runtime does, also where a matrix has as many rows as columns."""
    content = model(
        [node("MatMulInteger", ["a", "m", "z"], "p")],
        {"a": ("uint8", (4, 3)), "z": ("uint8", (4,))},
        ["p"],
        {"m": image((3, 4))},
    )
    with pytest.raises(GraphError, match=r"ONNX Runtime refuses: .* zero point must be a scalar"):
        import_model(content)


@pytest.mark.parametrize("bounds", [(np.inf, np.inf), (-np.inf, -np.inf), (-np.inf, np.inf), (-1, np.inf)])
def test_infinite_bounds(bounds: tuple[float, float]) -> None:
    constants = {"low": np.float32(bounds[0]), "high": np.float32(bounds[1])}
    content = model([node("Clip", ["x", "low", "high"], "y")], {"x": ("float32", (3,))}, ["y"], constants)
    feeds = {"x": np.float32([-2, 0, 5])}
    found = evaluate(import_model(content), feeds)["y"]
    assert np.array_equal(found, run(content, feeds)["y"])


def test_a_gemm_that_ends_in_floats() -> None:
    constants = {
        "s": np.float32(0.1),
        "z": np.int8(5),
        "w": image((4, 3)),
        "ws": np.array([0.1, 0.2, 0.3, 0.4], np.float32),
        "wz": np.zeros(4, np.int8),
        "c": np.array([1, 2, 3, 400], np.int32),
    }
    nodes = [node("QGemm", ["x", "s", "z", "w", "ws", "wz", "c"], "y", transB=1, alpha=0.5)]
    content = model(nodes, {"x": ("int8", (5, 3))}, ["y"], constants)
    assert_as_onnx_runtime(content, {"x": image((5, 3))}, tolerance=1e-3)


@pytest.mark.parametrize("auto_pad", ["VALID", "SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("strides", [[1, 1], [2, 3]])
def test_padding_by_name(auto_pad: str, strides: list[int]) -> None:
    nodes = [
        node("QLinearConv", CONV, "y", auto_pad=auto_pad, strides=strides),
        node("MaxPool", ["x"], "m", auto_pad=auto_pad, strides=strides, kernel_shape=[3, 2]),
    ]
    assert_as_onnx_runtime(model(nodes, IMAGE, ["y", "m"], CONSTANTS), {"x": image()})


def test_an_output_shape_of_too_few_axes_is_refused() -> None:
    nodes = [node("ConvTranspose", ["x", "w"], "y", strides=[2, 2], output_shape=[11])]
    content = model(nodes, {"x": ("float32", (1, 2, 5, 5))}, ["y"], {"w": np.ones((2, 3, 3, 3), np.float32)})
    with pytest.raises(GraphError, match=r"its output_shape is \[11\]; it must have one size for each of 2"):
        import_model(content)


@pytest.mark.parametrize("size", [7, 8, 9])
@pytest.mark.parametrize("stride", [2, 3, 4])
def test_pools_that_round_up(size: int, stride: int) -> None:
    attributes = {"kernel_shape": [3, 2], "strides": [stride, 2], "pads": [1, 0, 1, 1], "ceil_mode": 1}
    nodes = [
        node("MaxPool", ["x"], "m", **attributes),
        node("QLinearAveragePool", ["x", "s", "z", "ys", "z"], "a", **attributes),
    ]
    content = model(nodes, {"x": ("int8", (1, 3, size, size))}, ["m", "a"], CONSTANTS)
    assert_as_onnx_runtime(content, {"x": image((1, 3, size, size))})


def test_pools_with_channels_last() -> None:
    attributes = {"kernel_shape": [3, 2], "channels_last": 1}
    nodes = [
        node("QLinearAveragePool", ["x", "s", "z", "ys", "z"], "a", **attributes),
        node("QLinearGlobalAveragePool", ["x", "s", "z", "ys", "z"], "g", channels_last=1),
    ]
    content = model(nodes, {"x": ("int8", (1, 8, 7, 3))}, ["a", "g"], CONSTANTS)
    assert_as_onnx_runtime(content, {"x": image((1, 8, 7, 3))})


@pytest.mark.parametrize(
    ("kind", "opset", "inputs", "attributes"),
    [
        ("Slice", 13, [np.array([5, -1]), np.array([0, -100]), np.array([2, 3]), np.array([-2, -1])], {}),
        ("Slice", 13, [np.array([1]), np.array([1000])], {}),
        ("Squeeze", 11, [], {"axes": [0]}),
        ("Squeeze", 13, [], {}),
        ("Unsqueeze", 11, [], {"axes": [0, 5]}),
        ("Unsqueeze", 13, [np.array([-1, 0])], {}),
        ("Flatten", 13, [], {"axis": -1}),
        ("Flatten", 13, [], {"axis": 0}),
        ("Reshape", 13, [np.array([0, -1, 7])], {}),
        ("Transpose", 13, [], {}),
        ("Pad", 13, [np.array([0, 0, 1, 2, 0, 1, 0, 3]), np.int8(-7)], {}),
        ("Pad", 13, [np.array([0, 0, 1, 2, 0, 1, 0, 3])], {"mode": "edge"}),
        ("Pad", 13, [np.array([0, 0, 1, 2, 0, 1, 0, 3])], {"mode": "reflect"}),
        ("Pad", 18, [np.array([1, 2]), np.int8(5), np.array([-2])], {}),
        ("Clip", 13, [np.int8(-3), np.int8(100)], {}),
        ("Relu", 14, [], {}),
        ("Identity", 13, [], {}),
        ("GlobalMaxPool", 13, [], {}),
    ],
)  # fmt: skip
def test_operators_on_integers(
    kind: str, opset: int, inputs: list[Array], attributes: dict[str, Any]
) -> None:
    shape = (2, 3, 8, 7) if kind != "Squeeze" or not attributes else (1, 3, 8, 7)
    names = [f"c{place}" for place in range(len(inputs))]
    nodes = [node(kind, ["x", *names], "y", **attributes)]
    if kind == "GlobalMaxPool":  # ONNX Runtime has it for floats only
        nodes = [node("DequantizeLinear", ["x", "s", "z"], "f"), node(kind, ["f"], "y")]
    content = model(
        nodes, {"x": ("int8", shape)}, ["y"], CONSTANTS | dict(zip(names, inputs, strict=True)), opset=opset
    )
    assert_as_onnx_runtime(content, {"x": image(shape)})


@pytest.mark.parametrize(
    ("kind", "opset", "constants", "attributes", "tolerance"),
    [
        ("Softmax", 11, [], {"axis": 1}, 1e-6),
        ("Softmax", 13, [], {"axis": 1}, 1e-6),
        ("ReduceMean", 13, [], {"axes": [2, 3], "keepdims": 0}, 1e-6),
        ("ReduceMean", 18, [np.array([1])], {}, 1e-6),
        ("ReduceMean", 18, [], {}, 1e-6),
        ("Clip", 10, [], {"min": -0.5, "max": 0.25}, 0),
        ("Clip", 13, [np.float32(-0.5)], {}, 0),
        ("Pad", 10, [], {"pads": [0, 0, 1, 2, 0, 1, 0, 3], "value": 1.5}, 0),
        ("Split", 11, [], {"axis": 1, "split": [1, 2]}, 0),
        ("PRelu", 13, [np.array([0.1, 0.2, 0.3], np.float32).reshape(3, 1, 1)], {}, 0),
        ("Min", 13, [np.float32(0.1), np.float32(0.2)], {}, 0),
        ("Sum", 13, [np.float32(0.1), np.float32(0.2)], {}, 0),
        ("Div", 13, [np.float32(0.3)], {}, 0),
        ("Dropout", 13, [], {}, 0),
        (
            "BatchNormalization",
            13,
            [np.array(one, np.float32) for one in ([1, 2, 3], [0, 1, 0], [0.1, 0.2, 0.3], [1, 2, 0.5])],
            {},
            0,
        ),
        ("AveragePool", 13, [], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, 1e-6),
        ("AveragePool", 13, [], {"kernel_shape": [3, 3], "pads": [1] * 4, "count_include_pad": 1}, 1e-6),
    ],
)
def test_operators_on_floats(
    kind: str, opset: int, constants: list[Array], attributes: dict[str, Any], tolerance: float
) -> None:
    names = [f"c{place}" for place in range(len(constants))]
    outputs = ["y", "y2"] if kind == "Split" else ["y"]
    nodes = [node(kind, ["x", *names], *outputs, **attributes)]
    values = dict(zip(names, constants, strict=True))
    content = model(nodes, {"x": ("float32", (1, 3, 8, 7))}, outputs, values, opset=opset)
    feeds = {"x": RNG.normal(size=(1, 3, 8, 7)).astype(np.float32)}
    assert_as_onnx_runtime(content, feeds, tolerance=tolerance)


@pytest.mark.parametrize("kind", ["Min", "Max"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32"])
@pytest.mark.parametrize("shape", [(1, 3, 8, 7), (3, 1, 1)])
def test_extremes_of_integers(kind: str, dtype: str, shape: tuple[int, ...]) -> None:
    """Operands are two inputs and a constant. A Dequantize may follow."""
    bounds = np.iinfo(dtype)
    constants = {"c": np.array(bounds.min + 40, dtype=dtype), "s": np.float32(0.1), "z": np.zeros((), dtype)}
    nodes = [node(kind, ["x", "b", "c"], "y")]
    if dtype != "int32":
        nodes.append(node("DequantizeLinear", ["y", "s", "z"], "numbers"))
    sizes: dict[str, tuple[int, ...]] = {"x": (1, 3, 8, 7), "b": shape}
    outputs = ["y"] if dtype == "int32" else ["y", "numbers"]
    content = model(nodes, {name: (dtype, size) for name, size in sizes.items()}, outputs, constants)
    feeds = {
        name: RNG.integers(bounds.min, bounds.max, size, dtype=dtype, endpoint=True)
        for name, size in sizes.items()
    }
    assert_as_onnx_runtime(content, feeds)


def test_extremes_of_two_types_are_refused() -> None:
    content = model([node("Max", ["x", "b"], "y")], {"x": ("int8", (3,)), "b": ("uint8", (3,))}, ["y"], {})
    with pytest.raises(GraphError, match="Max"):
        import_model(content)


def test_a_batch_normalization_whose_constants_are_quantized() -> None:
    """ONNX Runtime's quantizer leaves it so if it is not folded."""
    parts = ("scale", "bias", "mean", "variance")
    values: dict[str, Any] = {"by": np.float32(0.013), "zero": np.uint8(3)}
    values |= {f"{name}.q": RNG.integers(40, 255, 3).astype(np.uint8) for name in parts}
    nodes = [node("DequantizeLinear", [f"{name}.q", "by", "zero"], name) for name in parts]
    nodes.append(node("BatchNormalization", ["x", *parts], "y", epsilon=1e-3))
    feeds = {"x": RNG.normal(size=(1, 3, 8, 7)).astype(np.float32)}
    assert_as_onnx_runtime(model(nodes, {"x": ("float32", (1, 3, 8, 7))}, ["y"], values), feeds, tolerance=0)


@pytest.mark.parametrize("attributes", [{"axis": 1, "opset": 11}, {"axis": -1, "opset": 13}])
def test_a_quantized_softmax(attributes: dict[str, int]) -> None:
    constants = {"s": np.float32(0.1), "z": np.uint8(3), "ys": np.float32(1 / 256), "yz": np.uint8(0)}
    nodes = [node("QLinearSoftmax", ["x", "s", "z", "ys", "yz"], "y", **attributes)]
    content = model(nodes, {"x": ("uint8", (2, 5, 4))}, ["y"], constants)
    assert_as_onnx_runtime(content, {"x": image((2, 5, 4), "uint8")}, tolerance=1)


def test_float_products() -> None:
    constants = {
        "w": RNG.normal(size=(5, 3)).astype(np.float32),
        "c": RNG.normal(size=(1, 5)).astype(np.float32),
        "k": RNG.normal(size=(5, 2, 3, 1)).astype(np.float32),
        "m": RNG.normal(size=(4, 1)).astype(np.float32),
    }
    nodes = [
        node("Gemm", ["x", "w", "c"], "g", transB=1, alpha=0.5, beta=2.0),
        node("Gemm", ["x", "w", "m"], "h", transB=1),
        node("Gemm", ["x", "x"], "i", transA=1),
        node("Conv", ["a", "k"], "y", group=2, pads=[1, 0, 1, 0], dilations=[2, 1]),
    ]
    inputs = {"x": ("float32", (4, 3)), "a": ("float32", (1, 4, 6, 5))}
    feeds = {name: RNG.normal(size=shape).astype(np.float32) for name, (_, shape) in inputs.items()}
    assert_as_onnx_runtime(
        model(nodes, inputs, ["g", "h", "i", "y"], constants | {"k": constants["k"][:4]}),
        feeds,
        tolerance=1e-5,
    )


# --- errors ----------------------------------------------------------------------------------------


def test_unknown_operators_are_named_all_at_once() -> None:
    nodes = [
        node("QLinearConv", CONV, "y"),
        node("None", ["y"], "n", name="first"),
        node("Odd", ["n"], "o", name="last"),
    ]
    message = (
        "the model has operators that cannot be imported: None of node 'first' is not supported; Odd of node "
        "'last' is not supported"
    )
    with refused(GraphError, message):
        import_model(model(nodes, IMAGE, ["o"], CONSTANTS))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"s": np.float32("nan")}, "a scale is nan; it must be a positive finite number"),
        ({"s": np.float32(0)}, "a scale is 0.0; it must be a positive finite number"),
        ({"ws": np.array([1, -1], np.float32)}, "a scale is -1.0; it must be a positive finite number"),
        ({"s": np.float64(1)}, "a scale is float64; it must be float32"),
        ({"z": np.uint8(1)}, "a zero point is uint8; the values are int8"),
        (
            {"ws": np.ones(3, np.float32)},
            "there are 3 scales and 2 zero points; there must be as many, or one",
        ),
        (
            {"ws": np.ones(3, np.float32), "wz": np.zeros(3, np.int8)},
            "tensor 'w' of shape (2, 3, 3, 3) has 3 scales along axis 0; there must be one for each index",
        ),
        (
            {"s": np.ones(3, np.float32), "z": np.zeros(3, np.int8)},
            "there are 3 scales; one for each channel needs an axis",
        ),
        ({"b": np.zeros(3, np.int32)}, "Conv: the bias is (3,); it must be (2,)"),
        (
            {"w": np.zeros((2, 2, 3, 3), np.int8)},
            "Conv: data is (1, 3, 8, 7) and weights are (2, 2, 3, 3) in 1 groups; channels must be those of "
            "the weights times the groups",
        ),
        (
            {"w": np.zeros((2, 3, 9, 9), np.int8)},
            "a window covers (9, 9); the padded input has (8, 7), where none fits",
        ),
        (
            {"ys": np.float32(1e-45), "ws": np.float32([1e30, 1])},
            "Conv: the scale of 'y' is too small for its operands'; their quotient must be a finite float32",
        ),
    ],
)
def test_tensors_that_do_not_fit(changed: dict[str, Any], message: str) -> None:
    content = model([node("QLinearConv", CONV, "y")], IMAGE, ["y"], CONSTANTS | changed)
    with refused(GraphError, f"node 'QLinearConv of y': {message}"):
        import_model(content)


def test_cycles_and_gaps() -> None:
    cycle = [node("Add", ["x", "b"], "a", name="one"), node("Add", ["x", "a"], "b", name="two")]
    floats = {"x": ("float32", (2,))}
    with pytest.raises(GraphError, match=r"^nodes '(one', 'two|two', 'one)' form a cycle"):
        import_model(model(cycle, floats, ["b"], {}))
    message = "node 'one' reads 'b', which is neither an input nor an initializer nor a node's output"
    with refused(GraphError, message):
        import_model(model(cycle[:1], floats, ["a"], {}))
    twice = [node("Relu", ["x"], "a"), node("Relu", ["x"], "a")]
    with refused(GraphError, "tensor 'a' has two producers; it must have one"):
        import_model(model(twice, floats, ["a"], {}))
    with refused(GraphError, "output 'q' has no producer; a node must compute it"):
        import_model(model(twice[:1], floats, ["q"], {}))
    with refused(GraphError, "the model has no outputs; there is nothing to compute"):
        import_model(model(twice[:1], floats, [], {}))


@pytest.mark.parametrize(
    ("dtype", "sizes", "message"),
    [
        (
            "complex64",
            (2,),
            "input 'x' is complex64; it must be float32, int8, uint8, int32, int64, bool, float16, "
            "float64, int16, uint16, uint32 or uint64",
        ),
        (
            "object",
            (2,),
            "input 'x' is text; it must be float32, int8, uint8, int32, int64, bool, float16, "
            "float64, int16, uint16, uint32 or uint64",
        ),
        ("int8", (0, 3), "tensor 'x' has the shape (0, 3); sizes must be positive"),
        ("int8", (1,) * 9, "tensor 'x' has 9 dimensions; there may be 8"),
        (
            "int8",
            (2**20, 2**20),
            f"tensor 'x' of shape (1048576, 1048576) takes {2**40} bytes; it may take {2**30}",
        ),
    ],
)
def test_inputs_that_no_graph_has(dtype: str, sizes: tuple[int, ...], message: str) -> None:
    with refused(GraphError, message):
        import_model(model([node("Identity", ["x"], "y")], {"x": (dtype, sizes)}, ["y"], {}))


def test_inputs_that_are_no_tensors() -> None:
    helper = onnx.helper
    tensor = helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, [3])
    kinds = {
        "a sequence": helper.make_sequence_type_proto(tensor),
        "an optional value": helper.make_optional_type_proto(tensor),
    }
    for what, kind in kinds.items():
        made = helper.make_graph(
            [helper.make_node("Identity", ["x"], ["y"])],
            "test",
            [helper.make_value_info("x", kind)],
            [helper.make_empty_tensor_value_info("y")],
        )
        content = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
        with refused(GraphError, f"input 'x' is {what}; it must be a tensor of numbers"):
            import_model(content)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (
            [node("Pad", ["x", "huge"], "y")],
            "node 'Pad of y': tensor 'y' of shape (1000003, 1000004) takes 4000028000048 bytes; it may take "
            f"{2**30}",
        ),
        (
            [node("ConstantOfShape", ["large"], "y")],
            "node 'ConstantOfShape of y': a constant would have the shape (1000000, 1000000); it may take "
            "1073741824 bytes",
        ),
        (
            [node("Range", ["zero", "most", "one"], "y")],
            "node 'Range of y': a constant would have the shape (1099511627776,); it may take "
            "1073741824 bytes",
        ),
        (
            [node("Reshape", ["x", "x"], "y")],
            "ONNX Runtime refuses: [ONNXRuntimeError] : 10 : INVALID_GRAPH : This is an invalid model. Type "
            "Error: Type 'tensor(float)' of input parameter (x) of operator (Reshape) in node () is invalid.",
        ),
        ([node("Div", ["one", "zero"], "y")], "node 'Div of y': a constant is divided by zero"),
        (
            [node("MaxPool", ["x"], "y", kernel_shape=[1])],
            "node 'MaxPool of y': its kernel is (1,) and its pads are [0, 0]; the tensor has 0 spatial axes",
        ),
        ([node("MaxPool", ["x"], "y")], "node 'MaxPool of y': its kernel_shape is missing"),
        (
            [node("Transpose", ["x"], "y", perm=[0, 0])],
            "node 'Transpose of y': Transpose: the permutation is (0, 0); the operand is (3, 4)",
        ),
        (
            [node("Concat", ["x", "x"], "y", axis=5)],
            "node 'Concat of y': an axis is 5; the tensor has 2",
        ),
        (
            [node("Split", ["x", "most"], "y", "z")],
            "node 'Split of y': it splits 3 into [1099511627776] for 2 outputs; the parts must add up, one "
            "for each",
        ),
    ],
)
def test_nodes_that_do_not_hold_together(nodes: list[Any], message: str) -> None:
    constants = {
        "huge": np.array([0, 0, 10**6, 10**6], np.int64),
        "zero": np.array(0, np.int64),
        "one": np.array(1, np.int64),
        "large": np.array([10**6, 10**6], np.int64),
        "most": np.array([2**40], np.int64),
    }
    with refused(GraphError, message):
        import_model(model(nodes, {"x": ("float32", (3, 4))}, [nodes[-1].output[0]], constants))


def test_files_that_are_no_models(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    with refused(GraphError, f"{str(path)!r} cannot be read: No such file or directory"):
        load_onnx(path)
    for content in (b"PK\3\4" * 9, b"\xff" * 40):
        path.write_bytes(content)
        with refused(GraphError, f"{str(path)!r}: this is not an ONNX model; it does not parse as one"):
            load_onnx(path)
    path.write_bytes(b"")
    with refused(GraphError, f"{str(path)!r}: this is not an ONNX model; it has no graph or no opset"):
        load_onnx(path)


def external(content: bytes, name: str, **entries: object) -> bytes:
    """Move an initializer's values to another file."""
    made = onnx.ModelProto.FromString(content)
    tensor = next(one for one in made.graph.initializer if one.name == name)
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=str(value))
    done: bytes = made.SerializeToString()
    return done


def test_external_data(tmp_path: Path) -> None:
    content = model([node("QLinearConv", CONV, "y")], IMAGE, ["y"], CONSTANTS)
    folder = tmp_path / "model"
    folder.mkdir()
    path = folder / "model.onnx"
    (folder / "weights.bin").write_bytes(bytes(7) + CONSTANTS["w"].tobytes())
    path.write_bytes(external(content, "w", location="weights.bin", offset=7, length=54))
    feeds = {"x": image()}
    found = evaluate(load_onnx(path), feeds)["y"]
    np.testing.assert_array_equal(found, run(content, feeds)["y"])
    (tmp_path / "outside.bin").write_bytes(bytes(99))
    (folder / "link.bin").symlink_to(tmp_path / "outside.bin")
    what = f"{str(path)!r}: initializer 'w'"
    for entries, message in (
        (
            {"location": "../outside.bin"},
            "lies in '../outside.bin'; external data must be in the model's folder",
        ),
        ({"location": "link.bin"}, "lies in 'link.bin'; external data must be in the model's folder"),
        (
            {"location": str(tmp_path / "outside.bin")},
            f"lies in {str(tmp_path / 'outside.bin')!r}; external data must be in the model's folder",
        ),
        ({}, "lies in ''; external data must be in the model's folder"),
        ({"location": "gone.bin"}, "lies in 'gone.bin'; there is no such file in the model's folder"),
        ({"location": "."}, "lies in '.'; there is no such file in the model's folder"),
        ({"location": "weights.bin", "length": 3}, "has 3 bytes from 0 on in 'weights.bin'; it must have 54"),
        ({"location": "weights.bin", "offset": 30}, "of shape (2, 3, 3, 3) has 31 bytes; it must have 54"),
        ({"location": "weights.bin", "offset": "x"}, "lies in 'weights.bin', which names no part of a file"),
    ):
        path.write_bytes(external(content, "w", **entries))
        with refused(GraphError, f"{what} {message}"):
            load_onnx(path)
    with refused(
        GraphError, "initializer 'w' lies in 'weights.bin'; a model without a folder has no external data"
    ):
        import_model(external(content, "w", location="weights.bin"))


def test_initializers_that_lie_about_their_size() -> None:
    content = model([node("QLinearConv", CONV, "y")], IMAGE, ["y"], CONSTANTS)
    for dims, message in (
        ([2, 3, 3], "of shape (2, 3, 3) has 54 bytes; it must have 18"),
        (
            [2**20, 2**20],
            f"of shape (1048576, 1048576) takes {2**40} bytes; it may take {2**30}, and all together {2**33}",
        ),
        ([-1, 3], "has the shape (-1, 3); sizes must not be negative"),
    ):
        made = onnx.ModelProto.FromString(content)
        tensor = next(one for one in made.graph.initializer if one.name == "w")
        del tensor.dims[:]
        tensor.dims.extend(dims)
        with refused(GraphError, f"initializer 'w' {message}"):
            import_model(made.SerializeToString())


# --- QDQ models of quantizers and exporters --------------------------------------------------------

QDQ: dict[str, Any] = {
    "ws": RNG.uniform(0.001, 0.01, 6).astype(np.float32),
    "wz": np.zeros(6, np.int8),
    "w": (RNG.normal(size=(6, 3, 3, 3)) * 0.3).astype(np.float32),
    "b": RNG.normal(size=6).astype(np.float32),
    "m": RNG.integers(-100, 100, (4, 192)).astype(np.int8),
    "ms": np.float32(0.01),
    "mz": np.int8(0),
    "c": RNG.integers(-1000, 1000, 4).astype(np.int32),
    "cs": np.float32(0.0002),
    "cz": np.int32(0),
    "s": np.float32(0.02),
    "z": np.int8(-5),
    "ys": np.float32(0.05),
    "yz": np.int8(3),
    "low": np.float32(-0.5),
    "high": np.float32(1.2),
}
DATA = [node("QuantizeLinear", ["x", "s", "z"], "q"), node("DequantizeLinear", ["q", "s", "z"], "f")]
FAKE = [
    node("QuantizeLinear", ["w", "ws", "wz"], "wq", axis=0),
    node("DequantizeLinear", ["wq", "ws", "wz"], "wf", axis=0),
]
MATRIX = [
    node("Flatten", ["f"], "flat"),
    node("DequantizeLinear", ["m", "ms", "mz"], "mf"),
    node("DequantizeLinear", ["c", "cs", "cz"], "cf"),
]


@pytest.mark.parametrize(
    ("nodes", "last", "expected"),
    [
        ([*FAKE, node("Conv", ["f", "wf", "b"], "c1")], "c1", ["Conv"]),
        ([*FAKE, node("Conv", ["f", "wf", "b"], "c1"), node("Relu", ["c1"], "r")], "r", ["Conv", "Clip"]),
        ([*MATRIX, node("Gemm", ["flat", "mf", "cf"], "g", transB=1)], "g", ["Reshape", "MatMul"]),
        ([*MATRIX, node("Gemm", ["flat", "mf", "cf"], "g", transB=1, beta=2.0)], "g", ["Reshape", "MatMul"]),
        (
            [*MATRIX, node("Gemm", ["flat", "mf"], "g", transB=1), node("Dropout", ["g"], "d")],
            "d",
            ["Reshape", "MatMul"],
        ),
        ([node("HardSigmoid", ["f"], "h", alpha=1 / 6), node("Mul", ["f", "h"], "p")], "p", ["Table"]),
        ([node("ReduceMean", ["f"], "r", axes=[2, 3], keepdims=0)], "r", ["GlobalAveragePool", "Reshape"]),
        ([node("Clip", ["f", "low", "high"], "r")], "r", ["Requantize", "Clip"]),
        (
            [node("DequantizeLinear", ["q", "s", "z"], "f2"), node("Add", ["f", "f2"], "a")],
            "a",
            ["Add"],
        ),
    ],
)
def test_regions_of_files(nodes: list[Any], last: str, expected: list[str]) -> None:
    made = [*DATA, *nodes, node("QuantizeLinear", [last, "ys", "yz"], "y")]
    graph = import_model(model(made, {"x": ("float32", (1, 3, 8, 8))}, ["y"], QDQ))
    assert kinds(graph) == ["Quantize", *expected]
    feeds = {"x": RNG.normal(size=(1, 3, 8, 8)).astype(np.float32)}
    compare(graph, feeds).raise_if_bad()
    float_form = run(model(made, {"x": ("float32", (1, 3, 8, 8))}, ["y"], QDQ), feeds)["y"]
    assert np.abs(evaluate(graph, feeds)["y"].astype(int) - float_form.astype(int)).max() <= 1
