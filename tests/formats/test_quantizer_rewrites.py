"""Rewrites before and after ONNX Runtime's quantizer: float results stay, and layers become integers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel.formats.concat_scales import share_concat_scales
from accel.formats.decomposed_norms import normalization_nodes
from accel.formats.elementwise_regions import join_elementwise_regions
from accel.formats.float_rewrites import rewrite_float
from accel.formats.onnx_import import import_model
from accel.formats.onnx_runtime import run_onnx_runtime
from accel.formats.quantize_onnx import QuantizedModel, quantize_onnx
from tests.formats.runtime import Array

onnx = pytest.importorskip("onnx")
helper = onnx.helper
RNG = np.random.default_rng(0)
OPSET = 17


def node(kind: str, inputs: str, output: str, **attributes: Any) -> Any:
    return helper.make_node(kind, inputs.split(), [output], name=output, **attributes)


def model(nodes: list[Any], shape: tuple[int, ...], output: str, **constants: Array) -> Any:
    arrays = {
        name: value.astype(np.float32) if value.dtype.kind == "f" else value
        for name, value in constants.items()
    }
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info("x", 1, shape)],
        [helper.make_tensor_value_info(output, 1, None)],
        [onnx.numpy_helper.from_array(value, name) for name, value in arrays.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)


def kinds(content: Any) -> list[str]:
    return [one.op_type for one in content.graph.node]


def run(content: Any, x: Array) -> Array:
    (name,) = (one.name for one in content.graph.output)
    return run_onnx_runtime(content.SerializeToString(), {"x": x})[name]


def numbers(*shape: int) -> Array:
    return RNG.normal(size=shape).astype(np.float32)


def positive(*shape: int) -> Array:
    return RNG.uniform(0.5, 2, shape).astype(np.float32)


def quantized(made: Any, folder: Path, x: Array) -> QuantizedModel:
    path = folder / "float.onnx"
    onnx.save(made, path)
    return quantize_onnx(path, {"x": x})


def imported_kinds(found: QuantizedModel) -> Counter[str]:
    graph = import_model(found.content)
    return Counter(one.operator.kind for one in graph.nodes)


# --- float rewrites ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "shape", "constants", "expected"),
    [
        pytest.param(
            [node("Relu", "x", "r"), node("BatchNormalization", "r s b m v", "y", epsilon=0.1)],
            (2, 6, 5, 4),
            {"s": numbers(6), "b": numbers(6), "m": numbers(6), "v": positive(6)},
            ["Relu", "Conv"],
            id="batch normalization",
        ),
        pytest.param(
            [node("MatMul", "x v", "a"), node("Gemm", "x w a", "y", transB=1)],
            (1, 4),
            {"v": numbers(4, 6), "w": numbers(6, 4)},
            ["MatMul", "Gemm", "Add"],
            id="Gemm with a varying bias",
        ),
        pytest.param(
            [
                node("ConvTranspose", "x w", "c", strides=[2, 2]),
                node("Add", "a c", "d"),
                node("BatchNormalization", "d s b m v", "y"),
            ],
            (1, 3, 5, 4),
            {
                "w": numbers(3, 6, 2, 2),
                "a": numbers(6, 1, 1),
                **{"s": numbers(6), "b": numbers(6), "m": numbers(6), "v": positive(6)},
            },
            ["ConvTranspose"],
            id="transposed convolution",
        ),
        pytest.param(
            [node("MatMul", "x w", "p"), node("Add", "b p", "y")],
            (2, 3, 8),
            {"w": numbers(8, 5), "b": numbers(5)},
            ["Reshape", "Gemm", "Reshape"],
            id="product and bias",
        ),
        pytest.param(
            [
                node("Gemm", "x w b", "p", transB=1),
                node("Reshape", "p heads", "h"),
                node("Transpose", "h", "t", perm=[1, 0, 2]),
                node("Div", "t root", "y"),
            ],
            (4, 8),
            {"w": numbers(6, 8), "b": numbers(6), "heads": np.int64([4, 2, 3]), "root": np.float32([-1.7])},
            ["Gemm", "Reshape", "Transpose"],
            id="scaled heads",
        ),
        pytest.param(
            [node("Max", "x low", "m"), node("Min", "high m", "y")],
            (2, 3),
            {"low": np.float32([-0.25]), "high": np.float32(0.5)},
            ["Clip", "Clip"],
            id="bounds",
        ),
    ],
)
def test_float_results_stay(
    nodes: list[Any], shape: tuple[int, ...], constants: dict[str, Array], expected: list[str]
) -> None:
    made = model(nodes, shape, "y", **{name: np.asarray(value) for name, value in constants.items()})
    x = numbers(*shape)
    wanted = run(made, x)
    assert rewrite_float(made) > 0
    assert kinds(made) == expected
    np.testing.assert_allclose(run(made, x), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("nodes", "shape", "constants"),
    [
        pytest.param(
            [node("BatchNormalization", "x s b m v", "y")],
            (2, 6),
            {"s": numbers(6), "b": numbers(6), "m": numbers(6), "v": positive(6)},
            id="no picture",
        ),
        pytest.param(
            [node("MatMul", "x w", "p"), node("Add", "p b", "y")],
            (2, 3, 8),
            {"w": numbers(8, 5), "b": numbers(3, 1)},
            id="a number for each row",
        ),
        pytest.param([node("Max", "x low", "y")], (2, 3), {"low": numbers(3)}, id="a vector of bounds"),
        pytest.param(
            [node("Gemm", "x w", "p"), node("Div", "root p", "y")],
            (4, 8),
            {"w": numbers(8, 6), "root": np.float32(2)},
            id="a number divided by a product",
        ),
        pytest.param(
            [node("Gemm", "x w", "p"), node("Mul", "root p", "q"), node("Add", "p q", "y")],
            (4, 8),
            {"w": numbers(8, 6), "root": np.float32(2)},
            id="a product that others read",
        ),
        pytest.param(
            [
                node("ConvTranspose", "x w", "c"),
                node("Add", "c a", "d"),
                node("Add", "d c", "y"),
            ],
            (1, 3, 5, 4),
            {"w": numbers(3, 6, 2, 2), "a": numbers(6, 1, 1)},
            id="another reader",
        ),
    ],
)
def test_other_operators_stay(nodes: list[Any], shape: tuple[int, ...], constants: dict[str, Array]) -> None:
    made = model(nodes, shape, "y", **constants)
    assert rewrite_float(made) == 0
    assert kinds(made) == [one.op_type for one in nodes]


def test_a_block_of_densenet_has_no_float_operators(tmp_path: Path) -> None:
    nodes = [
        node("Conv", "x w1", "a"),
        node("Concat", "x a", "xa", axis=1),
        node("BatchNormalization", "xa s b m v", "n"),
        node("Relu", "n", "r"),
        node("Conv", "r w2", "y"),
    ]
    made = model(
        nodes,
        (1, 8, 6, 6),
        "y",
        w1=0.3 * numbers(8, 8, 1, 1),
        w2=numbers(4, 16, 1, 1),
        s=positive(16),
        b=numbers(16),
        m=numbers(16),
        v=positive(16),
    )
    found = imported_kinds(quantized(made, tmp_path, numbers(4, 8, 6, 6)))
    assert found == {"Quantize": 1, "Conv": 3, "Concat": 1, "Dequantize": 1}


# --- regions of one tensor -----------------------------------------------------------------------


def hard_swish(source: str, output: str) -> list[Any]:
    return [
        node("Add", f"{source} three", f"{output}_sum"),
        node("Clip", f"{output}_sum zero six", f"{output}_clip"),
        node("Mul", f"{source} {output}_clip", f"{output}_product"),
        node("Div", f"{output}_product six", output),
    ]


SWISH_CONSTANTS = {name: np.float32(value) for name, value in (("three", 3), ("zero", 0), ("six", 6))}


@pytest.mark.parametrize(
    "between",
    [
        pytest.param(hard_swish("a", "s"), id="hard swish"),
        pytest.param([node("Sigmoid", "a", "g"), node("Mul", "a g", "s")], id="swish"),
        pytest.param(
            [*hard_swish("a", "h"), node("MaxPool", "h", "s", kernel_shape=[2, 2])], id="before a max pool"
        ),
    ],
)
def test_a_function_of_one_tensor_is_one_table(between: list[Any], tmp_path: Path) -> None:
    nodes = [node("Conv", "x w1", "a"), *between, node("Conv", "s w2", "y")]
    made = model(
        nodes, (1, 4, 9, 9), "y", w1=3 * numbers(8, 4, 1, 1), w2=numbers(4, 8, 1, 1), **SWISH_CONSTANTS
    )
    found = quantized(made, tmp_path, numbers(3, 4, 9, 9))
    counts = imported_kinds(found)
    counts.pop("MaxPool", None)
    assert counts == {"Quantize": 1, "Conv": 2, "Table": 1, "Dequantize": 1}
    assert found.errors[0].snr > 30


def test_a_product_of_two_tensors_keeps_its_operands(tmp_path: Path) -> None:
    nodes = [
        node("Conv", "x w1", "a"),
        node("Conv", "x w2", "b"),
        node("Sigmoid", "b", "g"),
        node("Mul", "a g", "p"),
        node("Conv", "p w1", "y"),
    ]
    made = model(nodes, (1, 8, 5, 5), "y", w1=numbers(8, 8, 1, 1), w2=numbers(8, 8, 1, 1))
    counts = imported_kinds(quantized(made, tmp_path, numbers(3, 8, 5, 5)))
    assert counts == {"Quantize": 1, "Conv": 3, "Sigmoid": 1, "Mul": 1, "Dequantize": 1}


def test_pairs_are_replaced_by_the_range_of_their_integers() -> None:
    """The quantizer drops a Clip because the integers saturate. Without the pair, a Clip is there again."""
    parameters = {"scale": np.float32(6 / 255), "zero": np.int8(-128), "wide": np.float32(0.1)}
    nodes = [
        node("QuantizeLinear", "x wide zero", "xq"),
        node("DequantizeLinear", "xq wide zero", "xd"),
        node("Add", "xd three", "sum"),
        node("QuantizeLinear", "sum scale zero", "q"),
        node("DequantizeLinear", "q scale zero", "d"),
        node("Mul", "xd d", "product"),
        node("QuantizeLinear", "product wide zero", "yq"),
        node("DequantizeLinear", "yq wide zero", "y"),
    ]
    made = model(nodes, (200,), "y", three=np.float32(3), **parameters)
    x = np.linspace(-2, 12, 200).astype(np.float32)
    wanted = run(made, x)
    assert join_elementwise_regions(made) == 1
    assert kinds(made) == [
        *("QuantizeLinear", "DequantizeLinear", "Add", "Clip", "Mul", "QuantizeLinear", "DequantizeLinear")
    ]
    np.testing.assert_allclose(run(made, x), wanted, atol=0.2)


# --- Concat --------------------------------------------------------------------------------------


def test_operands_of_concats_share_a_scale_and_biases_follow(tmp_path: Path) -> None:
    nodes = [
        node("Conv", "x w1 b1", "a"),
        node("Conv", "x w2 b2", "b"),
        node("Concat", "a b", "ab", axis=1),
        node("Conv", "a w3 b1", "c"),
        node("Concat", "ab c", "abc", axis=1),
        node("Conv", "abc w4 b4", "y"),
    ]
    made = model(
        nodes,
        (1, 8, 5, 5),
        "y",
        w1=numbers(8, 8, 1, 1),
        w2=1.5 * numbers(8, 8, 1, 1),
        w3=0.4 * numbers(8, 8, 1, 1),
        w4=numbers(4, 24, 1, 1),
        b1=numbers(8),
        b2=numbers(8),
        b4=numbers(4),
    )
    found = quantized(made, tmp_path, numbers(3, 8, 5, 5))
    assert imported_kinds(found) == {"Quantize": 1, "Conv": 4, "Concat": 2, "Dequantize": 1}
    assert found.errors[0].snr > 30


def test_an_operand_that_would_lose_bits_keeps_its_scale(tmp_path: Path) -> None:
    nodes = [
        node("Conv", "x w1", "a"),
        node("Conv", "x w2", "b"),
        node("Concat", "a b", "ab", axis=1),
        node("Conv", "a w1", "c"),
        node("Conv", "ab w3", "y"),
        node("Add", "c y", "z"),
    ]
    made = model(
        nodes, (1, 8, 5, 5), "z", w1=numbers(8, 8, 1, 1), w2=9 * numbers(8, 8, 1, 1), w3=numbers(8, 16, 1, 1)
    )
    counts = imported_kinds(quantized(made, tmp_path, numbers(3, 8, 5, 5)))
    assert counts["Requantize"] == 1


def test_equal_scales_are_left_alone() -> None:
    made = model([node("Concat", "x x", "y", axis=0)], (3, 4), "y")
    before = made.SerializeToString()
    assert share_concat_scales(made) == 0
    assert made.SerializeToString() == before


# --- normalizations ------------------------------------------------------------------------------


def test_decomposed_normalizations_stay_in_float(tmp_path: Path) -> None:
    nodes = [
        node("Conv", "x w1", "a"),
        node("ReduceMean", "a", "mean", axes=[1]),
        node("Sub", "a mean", "d"),
        node("Pow", "d two", "square"),
        node("ReduceMean", "square", "variance", axes=[1]),
        node("Add", "variance epsilon", "safe"),
        node("Sqrt", "safe", "root"),
        node("Div", "d root", "n"),
        node("Mul", "n scale", "scaled"),
        node("Add", "scaled shift", "shifted"),
        node("Conv", "shifted w1", "y"),
    ]
    made = model(
        nodes,
        (1, 8, 5, 5),
        "y",
        w1=numbers(8, 8, 1, 1),
        two=np.float32(2),
        epsilon=np.float32(1e-5),
        scale=numbers(8, 1, 1),
        shift=numbers(8, 1, 1),
    )
    assert set(normalization_nodes(made)) == {one.name for one in nodes[1:-1]}
    graph = import_model(quantized(made, tmp_path, numbers(3, 8, 5, 5)).content)
    inner = [one for one in graph.nodes if one.operator.kind in ("Add", "Mul", "Sub", "Pow")]
    assert {graph.tensors[one.output].dtype for one in inner} == {"float32"}
    assert Counter(one.operator.kind for one in graph.nodes)["Quantize"] == 2


def test_a_cell_of_an_lstm_becomes_integer_products_and_a_sum(tmp_path):
    made = model(
        [node("MatMul", "x v", "a"), node("MatMul", "x w", "b"), node("Add", "a b", "y")],
        (1, 4),
        "y",
        v=numbers(4, 6),
        w=numbers(4, 6),
    )
    found = imported_kinds(quantized(made, tmp_path, numbers(8, 4)))
    assert found == {"Quantize": 1, "MatMul": 2, "Add": 1, "Dequantize": 1}
