"""Elementwise operators before moves: the values stay, and one program computes queries times keys."""

from typing import Any

import numpy as np
import pytest

from accel.core.config import NAMED
from accel.formats.onnx_import import import_model
from accel.formats.onnx_runtime import run_optimized
from accel.graph.graph import Graph
from accel.network.network import Network
from tests.formats.runtime import model, node

TOKENS, HEADS, WIDTH = 16, 2, 16
RNG = np.random.default_rng(4)


def scores(*, factor: Any = 0.25, reads_moved: bool = False) -> tuple[bytes, dict[str, Any]]:
    """Return a model of projections, scaled queries and keys, and their product, and its input."""
    nodes: list[Any] = []
    constants: dict[str, Any] = {
        "sizes": np.array([1, TOKENS, HEADS, WIDTH]),
        "factor": np.array(factor, np.float32),
    }

    def quantized(name: str, scale: float, zero: int) -> str:
        constants.update({f"{name}_scale": np.float32(scale), f"{name}_zero": np.int8(zero)})
        pair = [f"{name}_scale", f"{name}_zero"]
        nodes.append(node("QuantizeLinear", [name, *pair], f"{name}_q"))
        nodes.append(node("DequantizeLinear", [f"{name}_q", *pair], f"{name}_d"))
        return f"{name}_d"

    size = HEADS * WIDTH
    data = quantized("x", 0.02, 3)
    for name, order in (("q", (0, 2, 1, 3)), ("k", (0, 2, 3, 1))):
        constants |= {
            f"{name}_w": RNG.integers(-127, 128, (size, size)).astype(np.int8),
            f"{name}_w_scale": np.float32(0.01),
        }
        nodes.append(node("DequantizeLinear", [f"{name}_w", f"{name}_w_scale"], f"{name}_weights"))
        nodes.append(node("MatMul", [data, f"{name}_weights"], f"{name}_made"))
        nodes.append(node("Reshape", [quantized(f"{name}_made", 0.05, -4), "sizes"], f"{name}_heads"))
        heads = quantized(f"{name}_heads", 0.05, -4)
        nodes.append(node("Transpose", [heads], f"{name}_moved", perm=order))
        nodes.append(node("Mul", [quantized(f"{name}_moved", 0.05, -4), "factor"], f"{name}_scaled"))
    operands = [quantized(f"{name}_scaled", 0.02, 7) for name in "qk"]
    nodes.append(node("MatMul", operands, "y"))
    nodes.append(node("QuantizeLinear", ["y", "y_scale", "y_zero"], "y_q"))
    constants |= {"y_scale": np.float32(0.3), "y_zero": np.int8(1)}
    outputs = ["y_q", *(["k_moved_q"] if reads_moved else [])]
    content = model(nodes, {"x": ("float32", (1, TOKENS, size))}, outputs, constants)
    return content, {"x": RNG.uniform(-2, 2, (1, TOKENS, size)).astype(np.float32)}


def kinds_before_product(graph: Graph, operand: int) -> list[str]:
    """Return the operators before the product of two tensors, the last one first."""
    name = next(node for node in graph.nodes if node.output == "y_q").inputs[operand]
    found = []
    while name in graph.producers and len(found) < 3:
        found.append(graph.producers[name].operator.kind)
        name = graph.producers[name].inputs[0]
    return found


def test_moves_meet_the_product() -> None:
    content, inputs = scores()
    graph = import_model(content)
    for operand in (0, 1):
        moved = kinds_before_product(graph, operand)
        assert moved[:2] == ["Transpose", "Reshape"]
        assert moved[2] in {"Mul", "Requantize", "Table"}
    program = Network(graph=graph).build(NAMED["vta-npu"])
    assert len(program.chains) == 1
    result = program.run(inputs)
    wanted, _ = run_optimized(content, inputs, ["y_q"])
    np.testing.assert_array_equal(result.outputs["y_q"], wanted["y_q"])
    assert not result.mismatches


@pytest.mark.parametrize(
    "options", [{"reads_moved": True}, {"factor": RNG.uniform(0.1, 0.4, (HEADS, 1, 1)).astype(np.float32)}]
)
def test_operators_that_stay(options: dict[str, Any]) -> None:
    """Where something else reads the moved tensor, or heads have factors of their own."""
    content, inputs = scores(**options)
    graph = import_model(content)
    assert kinds_before_product(graph, 1)[0] != "Transpose"
    program = Network(graph=graph).build(NAMED["vta-npu"])
    names = list(program.graph.result_names)
    found, (wanted, _) = program.run(inputs).outputs, run_optimized(content, inputs, names)
    for name in names:
        np.testing.assert_array_equal(found[name], wanted[name])
