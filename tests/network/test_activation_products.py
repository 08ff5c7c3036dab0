"""Products of two tensors of a network, on machines with ``wgt_zero=1``, equal ONNX Runtime."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.core.config import NAMED
from accel.formats.onnx_import import import_model
from accel.formats.onnx_runtime import run_onnx_runtime, run_optimized
from accel.network.network import Network
from accel.network.network_program import NetworkProgram
from tests.formats.runtime import model, node
from tests.strategies import examples

MACHINES = [NAMED[name] for name in ("vta-npu", "gemm8x8-npu", "ecp5-npu", "tiny-npu")]
TYPES = ((np.int8, np.int8, np.int8), (np.uint8, np.uint8, np.uint8), (np.uint8, np.int8, np.uint8))
"""Types of operands and result that ONNX Runtime multiplies."""


def linear_product(
    left: tuple[int, ...],
    right: tuple[int, ...],
    types: tuple[Any, Any, Any],
    zeros: tuple[int, int, int],
    scales: tuple[float, float, float],
    **constants: Any,
) -> bytes:
    """Return a model of one QLinearMatMul of a and b, which are inputs unless they are constants."""
    for name, dtype, zero, scale in zip("aby", types, zeros, scales, strict=True):
        constants |= {f"{name}_scale": np.float32(scale), f"{name}_zero": dtype(zero)}
    names = ["a", "a_scale", "a_zero", "b", "b_scale", "b_zero", "y_scale", "y_zero"]
    inputs = {
        "a": (np.dtype(types[0]).name, left),
        "b": (np.dtype(types[1]).name, right),
    }
    varying = {name: one for name, one in inputs.items() if name not in constants}
    return model([node("QLinearMatMul", names, "y")], varying, ["y"], constants)


def any_values(rng: np.random.Generator, dtype: Any, shape: tuple[int, ...]) -> Any:
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


def built(content: bytes, config: Any) -> NetworkProgram:
    return Network(graph=import_model(content)).build(config)


@examples(40)
@given(st.data())
def test_any_linear_product(data: st.DataObject) -> None:
    batch = tuple(data.draw(st.lists(st.integers(1, 3), max_size=2)))
    M, N, K = (data.draw(st.integers(1, most)) for most in (12, 20, 40))
    types = data.draw(st.sampled_from(TYPES))
    limits = [np.iinfo(dtype) for dtype in types]
    zeros = tuple(
        data.draw(st.sampled_from([0, one.min, one.max]) | st.integers(one.min, one.max)) for one in limits
    )
    exponents = data.draw(st.tuples(*[st.floats(-2, 0)] * 3))
    scales = tuple(10.0**one for one in exponents)
    content = linear_product((*batch, M, K), (*batch, K, N), types, zeros, scales)  # type: ignore[arg-type]
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    inputs = {"a": any_values(rng, types[0], (*batch, M, K)), "b": any_values(rng, types[1], (*batch, K, N))}
    program = built(content, data.draw(st.sampled_from(MACHINES)))
    assert [part.where for part in program.parts] == ["machine"], program.parts[0].reason
    result = program.run(inputs)
    np.testing.assert_array_equal(result.outputs["y"], run_onnx_runtime(content, inputs)["y"])
    assert not result.mismatches


@pytest.mark.parametrize("constant", ["a", "b"])
@pytest.mark.parametrize("shapes", [((20, 30), (30, 24)), ((1, 3, 20, 30), (3, 30, 24))])
def test_products_with_a_constant(constant: str, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    """A constant may be the first operand, and may be several matrices."""
    rng = np.random.default_rng(1)
    values = {name: any_values(rng, np.int8, shape) for name, shape in zip("ab", shapes, strict=True)}
    given = {constant: values.pop(constant)}
    numbers = (3, -7, 5), (0.1, 0.2, 3.0)
    content = linear_product(*shapes, TYPES[0], *numbers, **given)
    program = built(content, MACHINES[0])
    assert [part.where for part in program.parts] == ["machine"]
    found = program.run(values).outputs["y"]
    np.testing.assert_array_equal(found, run_onnx_runtime(content, values)["y"])


def attention(tokens: int, heads: int, width: int, between: str) -> tuple[bytes, dict[str, Any]]:
    """Return the part of a transformer between its projections, with QuantizeLinear and DequantizeLinear
    around each operator, and its inputs: queries, keys and values. ``between`` is the operator between the
    two products."""
    nodes: list[Any] = []
    constants: dict[str, Any] = {"sizes": np.array([1, tokens, heads, width])}

    def quantized(name: str, scale: float, zero: int) -> str:
        constants.update({f"{name}_scale": np.float32(scale), f"{name}_zero": np.int8(zero)})
        pair = [f"{name}_scale", f"{name}_zero"]
        nodes.append(node("QuantizeLinear", [name, *pair], f"{name}_q"))
        nodes.append(node("DequantizeLinear", [f"{name}_q", *pair], f"{name}_d"))
        return f"{name}_d"

    for name, order in (("q", (0, 2, 1, 3)), ("k", (0, 2, 3, 1)), ("v", (0, 2, 1, 3))):
        nodes.append(node("Reshape", [quantized(name, 0.03, 5), "sizes"], f"{name}_heads"))
        nodes.append(node("Transpose", [f"{name}_heads"], f"{name}_in_order", perm=order))
    operands = [quantized(f"{name}_in_order", 0.03, 5) for name in "qkv"]
    nodes.append(node("MatMul", operands[:2], "scores"))
    nodes.append(node(between, [quantized("scores", 0.2, -9)], "shares"))
    nodes.append(node("MatMul", [quantized("shares", 1 / 255, -128), operands[2]], "mixed"))
    nodes.append(node("Transpose", [quantized("mixed", 0.02, 1)], "y", perm=(0, 2, 1, 3)))
    inputs = dict.fromkeys("qkv", ("float32", (1, tokens, heads * width)))
    rng = np.random.default_rng(tokens)
    values = {name: rng.uniform(-3, 3, shape).astype(np.float32) for name, (_, shape) in inputs.items()}
    return model(nodes, inputs, ["y"], constants), values


@pytest.mark.parametrize("between", ["Relu", "Softmax"])
@pytest.mark.parametrize(("tokens", "heads", "width"), [(16, 2, 32), (19, 3, 8)])
def test_attention(tokens: int, heads: int, width: int, between: str) -> None:
    """Both products run on the machine, also with an odd number of tokens."""
    content, inputs = attention(tokens, heads, width, between)
    program = built(content, MACHINES[0])
    assert program.machine_share == 1
    result = program.run(inputs)
    wanted, _ = run_optimized(content, inputs, ["y"])
    assert not result.mismatches
    if between != "Softmax":  # ONNX Runtime has an integer Softmax of its own
        np.testing.assert_array_equal(result.outputs["y"], wanted["y"])


def test_machines_without_zero_points_of_weights() -> None:
    """The host multiplies, and the report says why."""
    shapes = (2, 4, 16), (2, 16, 8)
    content = linear_product(*shapes, (np.int8, np.int8, np.int8), (3, 4, 5), (0.1, 0.1, 1.0))
    (part,) = built(content, "vta-int8").parts
    assert part.where == "host"
    assert part.reason.endswith("has wgt_zero=0, and only machines with wgt_zero=1 do that")


def test_matrices_that_are_multiplied_several_times() -> None:
    """One left matrix for several right ones stays on the host. One right matrix is a longer product."""
    types, numbers = (np.int8, np.int8, np.int8), ((3, 4, 5), (0.1, 0.1, 1.0))
    (part,) = built(linear_product((4, 16), (2, 16, 8), types, *numbers), MACHINES[0]).parts
    assert part.reason == (
        "operands are (4, 16) and (2, 16, 8); the machine multiplies as many matrices of each"
    )
    content = linear_product((3, 4, 16), (16, 8), types, *numbers)
    program = built(content, MACHINES[0])
    assert program.parts[0].where == "machine"
    rng = np.random.default_rng(0)
    inputs = {"a": any_values(rng, np.int8, (3, 4, 16)), "b": any_values(rng, np.int8, (16, 8))}
    found = program.run(inputs).outputs["y"]
    np.testing.assert_array_equal(found, run_onnx_runtime(content, inputs)["y"])
