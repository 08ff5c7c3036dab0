"""Nodes that the graph does not know run in ONNX Runtime, between layers of the machine."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import accel
from accel.base.errors import GraphError, ShapeError
from accel.formats.onnx_export import export_onnx
from accel.formats.onnx_file import FileNode
from accel.formats.onnx_import import import_model
from accel.formats.onnx_macs import node_macs
from accel.formats.onnx_runtime import run_onnx_runtime, run_optimized
from accel.graph.foreign_operator import Foreign
from accel.graph.graph import Graph
from accel.graph.graph_evaluation import evaluate
from accel.network.network import Network
from accel.network.network_file import load_network, save_network

onnx = pytest.importorskip("onnx")
helper, TensorProto = onnx.helper, onnx.TensorProto
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
RNG = np.random.default_rng(5)


def quantized(name: str, scale: float = 0.05, zero: int = 3) -> tuple[list[Any], dict[str, np.ndarray]]:
    """A QuantizeLinear and a DequantizeLinear of a tensor, which make ``NAME_q`` and ``NAME_f``."""
    constants = {f"{name}_s": np.float32(scale), f"{name}_z": np.int8(zero)}
    pair = [f"{name}_s", f"{name}_z"]
    return [
        helper.make_node("QuantizeLinear", [name, *pair], [f"{name}_q"]),
        helper.make_node("DequantizeLinear", [f"{name}_q", *pair], [f"{name}_f"]),
    ], constants


def model(
    nodes: list[Any],
    inputs: dict[str, tuple[int, list[Any]]],
    outputs: list[str],
    constants: dict[str, np.ndarray] | None = None,
    opset: int = 17,
) -> bytes:
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info(name, kind, sizes) for name, (kind, sizes) in inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [onnx.numpy_helper.from_array(np.asarray(a), name) for name, a in (constants or {}).items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    content: bytes = made.SerializeToString()
    return content


def around(kind: str, sizes: list[int], *more: np.ndarray, opset: int = 17, **attributes: Any) -> bytes:
    """An operator between quantized tensors: quantized, dequantized, the operator, quantized, dequantized."""
    before, first = quantized("x")
    after, last = quantized("y", 0.1, -2)
    constants = first | last | {f"c{n}": one for n, one in enumerate(more)}
    node = helper.make_node(kind, ["x_f", *(f"c{n}" for n in range(len(more)))], ["y"], **attributes)
    return model([*before, node, *after], {"x": (FLOAT, sizes)}, ["y_f"], constants, opset)


def lstm() -> bytes:
    weights = [RNG.normal(size=size).astype(np.float32) for size in ((1, 32, 6), (1, 32, 8))]
    return around("LSTM", [5, 2, 6], *weights, hidden_size=8)


CASES = {
    "lstm": lstm(),
    "transposed convolution": around(
        "ConvTranspose", [1, 4, 5, 7], RNG.normal(size=(4, 3, 2, 2)).astype(np.float32), strides=[2, 2]
    ),
    "depth to space": around("DepthToSpace", [1, 8, 3, 4], blocksize=2),
    "maximum of axes": around("ReduceMax", [1, 8, 3, 4], axes=[2, 3], keepdims=0),
    "resize": around(
        "Resize", [1, 2, 3, 4], np.zeros(0, np.float32), np.float32([1, 1, 2, 2]), mode="linear"
    ),
    "normalization of a layer": around(
        "LayerNormalization", [3, 16], np.ones(16, np.float32), np.zeros(16, np.float32)
    ),
    "gather at run time": around("Gather", [4, 5], np.array([2, 0], np.int64), axis=1),
    "top": model(
        [helper.make_node("TopK", ["x", "k"], ["values", "places"], axis=1)],
        {"x": (FLOAT, [3, 9])},
        ["values", "places"],
        {"k": np.array([4], np.int64)},
    ),
    "tokens": model(
        [helper.make_node("Gather", ["table", "ids"], ["y"])],
        {"ids": (INT64, [2, 6])},
        ["y"],
        {"table": RNG.normal(size=(2, 8)).astype(np.float32)},
    ),
    "masks": model(
        [
            helper.make_node("Greater", ["x", "zero"], ["mask"]),
            helper.make_node("Where", ["mask", "x", "zero"], ["y"]),
        ],
        {"x": (FLOAT, [3, 5])},
        ["y", "mask"],
        {"zero": np.zeros((), np.float32)},
    ),
    "products of dynamic scales": model(
        [
            helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
            helper.make_node("MatMulInteger", ["q", "w", "z"], ["i"]),
            helper.make_node("Cast", ["i"], ["f"], to=FLOAT),
            helper.make_node("Mul", ["f", "s"], ["y"]),
        ],
        {"x": (FLOAT, [4, 12])},
        ["y"],
        {"w": RNG.integers(-100, 100, (12, 8)).astype(np.int8)},
    ),
}


def branches() -> bytes:
    """An If whose branches read tensors outside of them: a constant, an input, and a result."""
    unknown = helper.make_empty_tensor_value_info
    add = helper.make_node("Add", ["doubled", "c"], ["t"])
    subtract = helper.make_node("Sub", ["x", "c"], ["e"])
    then = helper.make_graph([add], "then", [], [unknown("t")])
    other = helper.make_graph([subtract], "else", [], [unknown("e")])
    nodes = [
        helper.make_node("If", ["condition"], ["y"], then_branch=then, else_branch=other),
        helper.make_node("Add", ["x", "x"], ["doubled"]),
        helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
        helper.make_node("Greater", ["sum", "zero"], ["condition"]),
    ]
    constants = {"c": np.float32([1, 2, 3]), "zero": np.float32(0)}
    return model(nodes, {"x": (FLOAT, [2, 3])}, ["y"], constants)


CASES["branches"] = branches()


def inputs_of(graph: Graph) -> dict[str, Any]:
    return Network(graph=graph).build("tiny-int8").random_inputs(3)


@pytest.mark.parametrize("content", CASES.values(), ids=CASES)
def test_results_are_those_of_onnx_runtime(content: bytes, tmp_path: Path) -> None:
    graph = import_model(content)
    inputs = inputs_of(graph)
    expected = run_onnx_runtime(content, inputs, list(graph.outputs))
    found = evaluate(graph, inputs)
    program = Network(graph=graph).build("tiny-int8")
    result = program.run(inputs)
    assert result.wrong == 0
    save_network(program, tmp_path / "net.accel")
    again = load_network(tmp_path / "net.accel").run(inputs)
    for name in graph.outputs:
        for one in (found, result.outputs, again.outputs):
            assert one[name].dtype == expected[name].dtype
            assert np.array_equal(one[name], expected[name])


@pytest.mark.parametrize("content", CASES.values(), ids=CASES)
def test_they_are_exported_again(content: bytes) -> None:
    graph = import_model(content)
    inputs = inputs_of(graph)
    written = import_model(export_onnx(graph))
    assert evaluate(written, inputs).keys() >= set(graph.outputs)
    for name in graph.outputs:
        assert np.array_equal(evaluate(written, inputs)[name], evaluate(graph, inputs)[name])


@pytest.mark.parametrize("kind", ["Sigmoid", "Tanh", "HardSwish", "LeakyRelu", "Softplus"])
@pytest.mark.parametrize("scale", [1e-6, 1e-4, 1 / 256, 0.02])
def test_tables_of_functions_are_those_of_onnx_runtime(kind: str, scale: float, tmp_path: Path) -> None:
    """Also where the scale of the result is so small that roundings of float32 can be seen."""
    before, first = quantized("x", 0.003, -7)
    after, last = quantized("y", scale, 5)
    nodes = [*before, helper.make_node(kind, ["x_f"], ["y"]), *after]
    content = model(nodes, {"x": (FLOAT, [256])}, ["y_f"], first | last)
    x = (np.arange(-128, 128, dtype=np.float32) + np.float32(7)) * np.float32(0.003)
    expected, _ = run_optimized(content, {"x": x}, ["y_f"])
    graph = import_model(content)
    save_network(Network(graph=graph).build("tiny-int8"), tmp_path / "net.accel")
    again = load_network(tmp_path / "net.accel").graph
    for one in (graph, again):
        assert np.array_equal(evaluate(one, {"x": x})["y_f"], expected["y_f"])


def test_what_is_known_does_not_become_foreign() -> None:
    known = around("Relu", [2, 8])
    assert not any(isinstance(node.operator, Foreign) for node in import_model(known).nodes)


def test_unknown_operators_are_refused_by_name() -> None:
    for node, words in (
        (helper.make_node("Nothing", ["x"], ["y"]), "Nothing of node .* is not supported"),
        (helper.make_node("Own", ["x"], ["y"], domain="example"), "example.Own of node .* is not supported"),
    ):
        made = onnx.load_from_string(model([node], {"x": (FLOAT, [2, 2])}, ["y"]))
        made.opset_import.append(helper.make_opsetid("example", 1))
        with pytest.raises(GraphError, match=words):
            import_model(made.SerializeToString())


def test_constants_of_subgraphs_are_in_the_model() -> None:
    """A path in a file is not opened."""
    made = onnx.load_from_string(branches())
    constant = onnx.numpy_helper.from_array(np.zeros((2, 3), np.float32), "c")
    constant.ClearField("raw_data")
    constant.data_location = TensorProto.EXTERNAL
    constant.external_data.add(key="location", value="/etc/passwd")
    made.graph.node[0].attribute[0].g.initializer.append(constant)
    with pytest.raises(GraphError, match="constants of subgraphs must be in the model"):
        import_model(made.SerializeToString())


def test_what_onnx_runtime_refuses_is_refused_with_its_message() -> None:
    with pytest.raises(GraphError, match=r"node .*ONNX Runtime refuses: "):
        import_model(around("LpNormalization", [1, 7, 3, 4], p=3))


def test_a_constant_without_values() -> None:
    """ONNX Runtime's own operators read beyond its end, which can end the process."""
    given = onnx.load_from_string(model([], {"x": (FLOAT, [1, 3, 6])}, ["y"]))
    given.graph.initializer.append(onnx.numpy_helper.from_array(np.zeros(0, np.float32), "none"))
    given.graph.node.append(helper.make_node("BiasGelu", ["x", "none"], ["y"], domain="com.microsoft"))
    given.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    with pytest.raises(GraphError, match="'none' has no values"):
        import_model(given.SerializeToString())


@pytest.mark.parametrize("is_constant", [True, False])
def test_a_split_without_its_first_part(is_constant: bool) -> None:
    """ONNX Runtime itself ends the process with a segmentation fault."""
    split = helper.make_node("Split", ["x", "sizes"], ["", "y"], axis=0)
    inputs = {"x": (FLOAT, [4]), "sizes": (INT64, [2])}
    sizes = np.array([1, 3], np.int64)
    constants = {"sizes": sizes} if is_constant else {}
    if is_constant:
        del inputs["sizes"]
    graph = import_model(model([split], inputs, ["y"], constants))
    values = np.float32([1, 2, 3, 4])
    feeds = {"x": values} if is_constant else {"x": values, "sizes": sizes}
    found = Network(graph=graph).build("tiny-int8").run(feeds).outputs["y"]
    assert np.array_equal(found, values[1:])


def test_macs_of_a_turned_factor() -> None:
    """transA swaps the last two axes."""
    node = FileNode(
        name="m",
        kind="FusedMatMul",
        domain="com.microsoft",
        opset=1,
        inputs=("a", "b"),
        outputs=("y",),
        attributes={"transA": 1},
    )
    assert node_macs(node, [(2, 5, 3), (2, 5, 4)], (2, 3, 4)) == 2 * 3 * 4 * 5


# --- open sizes --------------------------------------------------------------------------------------


@pytest.fixture
def open_model(tmp_path: Path) -> Path:
    before, first = quantized("x")
    weights = RNG.integers(-9, 9, (4, 3, 3, 3)).astype(np.float32) * np.float32(0.1)
    node = helper.make_node("Conv", ["x_f", "w"], ["y"], pads=[1, 1, 1, 1])
    path = tmp_path / "open.onnx"
    sizes = ["n", 3, "height", None]
    path.write_bytes(model([*before, node], {"x": (FLOAT, sizes)}, ["y"], first | {"w": weights}))
    return path


def test_open_sizes_are_given(open_model: Path) -> None:
    network = accel.load_onnx(open_model, shapes={"x": (1, 3, 6, 10)})
    assert network.graph.tensors["x"].shape == (1, 3, 6, 10)
    assert network.build("tiny-int8").run().outputs["y"].shape == (1, 4, 6, 10)


def test_a_given_shape_takes_precedence_over_the_batch(open_model: Path) -> None:
    network = accel.load_onnx(open_model, batch=3, shapes={"x": (2, 3, 6, 10)})
    assert network.graph.tensors["x"].shape == (2, 3, 6, 10)


def test_the_name_of_an_axis_has_one_size(tmp_path: Path) -> None:
    path = tmp_path / "add.onnx"
    sizes = {"a": (FLOAT, ["n", "m"]), "b": (FLOAT, ["n", "m"])}
    path.write_bytes(model([helper.make_node("Add", ["a", "b"], ["y"])], sizes, ["y"]))
    graph = accel.load_onnx(path, shapes={"a": (5, 3)}).graph
    assert graph.tensors["b"].shape == graph.tensors["y"].shape == (5, 3)


def test_without_them_the_option_is_said(open_model: Path) -> None:
    with pytest.raises(GraphError, match=r"--shape x=n,3,height,\?$"):
        accel.load_onnx(open_model)


@pytest.mark.parametrize(
    "shapes", [{"y": (1, 3, 6, 10)}, {"x": (1, 4, 6, 10)}, {"x": (1, 3, 6)}, {"x": (1, 3, 0, 10)}]
)
def test_shapes_that_do_not_fit_are_refused(shapes: dict[str, tuple[int, ...]], open_model: Path) -> None:
    with pytest.raises((ShapeError, accel.AccelError)):
        accel.load_onnx(open_model, shapes=shapes)


def test_multiplications_of_dynamically_quantized_operators_count() -> None:
    """ONNX Runtime's quantize_dynamic turns an LSTM into a DynamicQuantizeLSTM with as many MACs."""
    sizes = {"w": (1, 6, 32), "r": (1, 8, 32)}
    weights = {name: RNG.integers(-127, 128, size).astype(np.int8) for name, size in sizes.items()}
    scales = {"s": np.full(1, 0.01, np.float32), "z": np.zeros(1, np.int8)}
    node = helper.make_node(
        "DynamicQuantizeLSTM",
        ["x", "w", "r", "", "", "", "", "", "s", "z", "s", "z"],
        ["y"],
        domain="com.microsoft",
        hidden_size=8,
    )
    content = onnx.load_from_string(model([node], {"x": (FLOAT, [5, 2, 6])}, ["y"], weights | scales))
    content.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    graph = import_model(content.SerializeToString())
    assert sum(map(graph.macs, graph.nodes)) == 5 * 2 * 32 * (6 + 8)


def rates(*widths: int, rows: tuple[int, int] = (1, 1)) -> bytes:
    """An If with a branch for each width of its input, of which a model takes only one at a time."""
    branches = [
        helper.make_graph(
            [
                helper.make_node("MatMul", ["x", f"w{n}"], [f"p{n}"]),
                helper.make_node("Expand", [f"p{n}", f"sizes{n}"], [f"y{n}"]),
            ],
            f"branch {n}",
            [],
            [helper.make_empty_tensor_value_info(f"y{n}")],
        )
        for n in range(2)
    ]
    nodes = [
        helper.make_node("Equal", ["rate", "one"], ["condition"]),
        helper.make_node("If", ["condition"], ["z"], then_branch=branches[0], else_branch=branches[1]),
        helper.make_node("Relu", ["z"], ["y"]),
    ]
    constants: dict[str, np.ndarray] = {"one": np.int64(1)}
    for n, (width, count) in enumerate(zip(widths, rows, strict=True)):
        constants[f"w{n}"] = RNG.normal(size=(width, 3)).astype(np.float32)
        constants[f"sizes{n}"] = np.array([count, 3])
    return model(nodes, {"x": (FLOAT, ["n", "width"]), "rate": (INT64, [])}, ["y"], constants)


@pytest.mark.parametrize(("rate", "width"), [(1, 8), (2, 5)])
def test_a_branch_that_does_not_fit_the_sizes(rate: int, width: int, tmp_path: Path) -> None:
    """ONNX Runtime refuses MatMul of (1, 8) and (5, 3), although no run with rate 1 computes it."""
    content = rates(8, 5)
    path = tmp_path / "rates.onnx"
    path.write_bytes(content)
    program = accel.load_onnx(path, shapes={"x": (1, width)}).build("vta-int8")
    feeds = {"x": RNG.normal(size=(1, width)).astype(np.float32), "rate": np.array(rate)}
    np.testing.assert_array_equal(program.run(feeds).outputs["y"], run_onnx_runtime(content, feeds)["y"])


def test_branches_that_never_fit(tmp_path: Path) -> None:
    path = tmp_path / "rates.onnx"
    path.write_bytes(rates(8, 5))
    with pytest.raises(GraphError, match=r"node 'z': ONNX Runtime refuses: .*[Ii]ncompatible dimensions"):
        accel.load_onnx(path, shapes={"x": (1, 7)})


def test_branches_with_results_of_different_shapes_end_the_compiled_part(tmp_path: Path) -> None:
    path = tmp_path / "rates.onnx"
    content = rates(8, 8, rows=(1, 4))
    path.write_bytes(content)
    data = RNG.normal(size=(1, 8)).astype(np.float32)
    program = accel.load_onnx(path, shapes={"x": (1, 8)}).build("vta-int8")
    for rate in (1, 2):
        feeds = {"x": data, "rate": np.array(rate)}
        np.testing.assert_array_equal(program.run(feeds).outputs["y"], run_onnx_runtime(content, feeds)["y"])
