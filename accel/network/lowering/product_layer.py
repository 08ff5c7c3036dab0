"""The common parts of convolutions and matrix products."""

from typing import Any

from accel.base.records import replace
from accel.compiler.ops.quantized_layers import Quantized
from accel.graph.graph import Graph
from accel.graph.graph_tensor import QUANTIZED, Shape, Tensor
from accel.graph.product_operators import Product
from accel.network.fused_nodes import FusedNodes
from accel.network.lowering.layer_operand import Operand, weights_without_zero
from accel.network.lowering.lowered_layer import LoweredLayer, NotOnMachine
from accel.network.lowering.quantized_epilogue import (
    fused_residual,
    quantized_epilogue,
    require_exact_residual,
    residual_shape,
)


def product_layer(
    graph: Graph,
    fused: FusedNodes,
    operator: str,
    parameters: dict[str, Any],
    operands: list[Operand],
    shape: Shape,
    *,
    approximate: bool,
) -> LoweredLayer:
    """Add bias, residual and epilogue to a product."""
    tensors, result = graph.operands(fused.main), graph.tensors[fused.main.output]
    assert isinstance(fused.main.operator, Product)
    if result.dtype == "int32":
        return _sums(graph, fused, operator, parameters, operands)
    if result.dtype not in QUANTIZED:
        raise NotOnMachine(f"its result is {result.dtype}; the machine's products are int8, uint8 or int32")
    scales = fused.main.operator.scales(tensors, result)
    has_bias = len(tensors) > 2
    if has_bias:
        bias = tensors[2]
        if bias.name not in graph.constants:
            raise NotOnMachine("its bias is not a constant")
        operands.append(Operand(name="bias", tensor=bias.name, shape=bias.shape))
    residual = None
    if fused.combination is not None:
        residual, other = fused_residual(graph, fused)
        operands.append(Operand(name="residual", tensor=other.name, shape=residual_shape(residual, shape)))
    quantized = quantized_epilogue(graph, tensors[0], result, scales, fused, residual)
    quantized = replace(quantized, **_weight_bytes(graph, tensors[1]))
    quantized, differences = require_exact_residual(quantized, approximate=approximate)
    return LoweredLayer(
        operator=operator,
        parameters=parameters | {"bias": has_bias, "quantized": quantized},
        operands=tuple(operands),
        output="C" if operator == "gemm" else "out",
        differences=differences,
    )


def _sums(
    graph: Graph, fused: FusedNodes, operator: str, parameters: dict[str, Any], operands: list[Operand]
) -> LoweredLayer:
    data, weights, *bias = graph.operands(fused.main)
    if bias or fused.clips or fused.lookup or fused.combination is not None:
        raise NotOnMachine("its result is int32 sums; the machine adds a bias only if it also requantizes")
    quantized = Quantized(
        scale=1.0,
        input_zero=int(data.scale_and_zero[1]),
        input_dtype=data.dtype,
        output_dtype="int32",
        **_weight_bytes(graph, weights),
    )
    return LoweredLayer(
        operator=operator,
        parameters=parameters | {"bias": False, "quantized": quantized},
        operands=tuple(operands),
        output="C" if operator == "gemm" else "out",
    )


def _weight_bytes(graph: Graph, weights: Tensor) -> dict[str, Any]:
    """Constants lose their zero points at compile time."""
    if weights.name in graph.constants:
        return {}
    return {"weight_zero": int(weights.scale_and_zero[1]), "weight_dtype": weights.dtype}


def count_int8_summands(graph: Graph, weights: Tensor) -> int:
    """For example, uint8 weights with zero point 128 need one."""
    if weights.name not in graph.constants:
        raise NotOnMachine("its weights are not a constant")
    if weights.dtype not in QUANTIZED:
        raise NotOnMachine(f"its weights are {weights.dtype}; the machine's are int8")
    values = weights_without_zero(weights, graph.constants[weights.name])
    low, high = int(values.min()), int(values.max())
    return max(1, -(low // 128), -(-high // 127))
