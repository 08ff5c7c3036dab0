"""Float products of dequantized tensors as int32 sums that the host scales.

For example, Dequantize, Conv, SiLU in exports of TensorRT becomes a Conv with int32 sums, a Dequantize with
the product of both scales, an Add of the bias, and SiLU.
"""

import numpy as np
import numpy.typing as npt

from accel.graph.elementwise_operators import Add, Dequantize
from accel.graph.graph import Graph, Node
from accel.graph.graph_builder import Builder
from accel.graph.graph_tensor import QUANTIZED, Quantization, Tensor
from accel.graph.movement_operators import Reshape
from accel.graph.product_operators import Product
from accel.graph.quantize_values import dequantize


def sum_integers(graph: Graph) -> Graph:
    """Replace float products of dequantized activations and constant int8 or uint8 weights."""
    found = {node.output: pair for node in graph.nodes if (pair := _integers(graph, node)) is not None}
    if not found:
        return graph
    builder = Builder.like(graph)
    for node in graph.nodes:
        if node.output in found:
            _emit(builder, graph, node, *found[node.output])
            continue
        out = graph.tensors[node.output]
        builder.emit(
            node.operator,
            node.inputs,
            node.output,
            dtype=out.dtype,
            quantization=out.quantization,
            name=node.name,
        )
    return builder.graph(graph.name, graph.outputs)


def _integers(graph: Graph, node: Node) -> tuple[Tensor, Tensor] | None:
    operator = node.operator
    if not isinstance(operator, Product) or graph.tensors[node.output].dtype != "float32":
        return None
    sources: list[Tensor] = []
    for name in node.inputs[:2]:
        producer = graph.producers.get(name)
        if producer is None or not isinstance(producer.operator, Dequantize):
            return None
        sources.append(graph.tensors[producer.inputs[0]])
    data, weights = sources
    is_constant = weights.name in graph.constants and data.name not in graph.constants
    if not is_constant or not {data.dtype, weights.dtype} <= {*QUANTIZED}:
        return None
    axis = weights.required_quantization.axis
    channel_axis = operator.channel_axis(weights) % len(weights.shape)
    if not data.required_quantization.is_per_tensor or axis not in {None, channel_axis}:
        return None
    scales = _scales(operator, data, weights)
    return (data, weights) if np.isfinite(scales).all() and (scales > 0).all() else None


def _scales(operator: Product, data: Tensor, weights: Tensor) -> npt.NDArray[np.float32]:
    with np.errstate(over="ignore", under="ignore"):
        factor = operator.factor() * data.scale_and_zero[0]
        return factor * operator.weight_scales(weights)


def _emit(builder: Builder, graph: Graph, node: Node, data: Tensor, weights: Tensor) -> None:
    operator = node.operator
    assert isinstance(operator, Product)
    scales = _scales(operator, data, weights)
    out = graph.tensors[node.output]
    axis = operator.result_axis(len(out.shape))
    quantization = Quantization.of(scales, 0, axis if scales.size > 1 else None)
    sums = builder.emit(
        operator,
        [data.name, weights.name],
        builder.fresh(f"{node.output}/sums"),
        dtype="int32",
        quantization=quantization,
        name=node.name,
    )
    has_bias = len(node.inputs) > 2
    scaled = builder.fresh(f"{node.output}/scaled") if has_bias else node.output
    builder.emit(Dequantize(), [sums], scaled, dtype="float32", name=builder.fresh(f"{node.name}/scale"))
    if not has_bias:
        return
    bias = _bias(builder, graph, node, axis)
    builder.emit(Add(), [scaled, bias], node.output, dtype="float32", name=builder.fresh(f"{node.name}/bias"))


def _bias(builder: Builder, graph: Graph, node: Node, axis: int) -> str:
    name = node.inputs[2]
    sizes = [1] * len(graph.tensors[node.output].shape)
    sizes[axis] = graph.tensors[name].shape[0]
    producer = graph.producers.get(name)
    values = graph.constants.get(name)
    if values is None and producer is not None and isinstance(producer.operator, Dequantize):
        integers = graph.tensors[producer.inputs[0]]
        if integers.name in graph.constants:
            values = dequantize(graph.constants[integers.name], integers)
    shaped = builder.fresh(f"{node.output}/bias")
    if values is not None:
        return builder.constant(shaped, values.reshape(sizes))
    return builder.emit(Reshape(sizes=tuple(sizes)), [name], shaped, name=shaped)
