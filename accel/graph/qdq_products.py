"""Float products of dequantized tensors in quantized form."""

from collections.abc import Sequence

import numpy as np

from accel.graph.elementwise_operators import Add
from accel.graph.graph import Node
from accel.graph.graph_tensor import QUANTIZED, Tensor
from accel.graph.product_operators import MatMul, Product
from accel.graph.qdq_rewriting import Emitter, QdqRewriting

_BIAS_SCALE_TOLERANCE = 1e-4
"""Relative difference of an int32 bias's scale from the product of the operands' scales."""
_INT32 = np.iinfo(np.int32)


def product_emitter(
    rewriting: QdqRewriting, node: Node, inputs: Sequence[str], out: Tensor
) -> Emitter | None:
    """Return an emitter of a quantized product, or None without integers."""
    operator = node.operator
    assert isinstance(operator, Product)
    data, weights = rewriting.byte_source(inputs[0]), rewriting.source(inputs[1])
    if data is None or weights is None or weights.dtype not in QUANTIZED:
        return None
    axis = weights.required_quantization.axis
    channel_axis = operator.channel_axis(weights) % len(weights.shape)
    if axis not in {None, channel_axis} or not operator.factor() > 0:
        return None
    operands = [data.name, weights.name]
    if len(inputs) > 2:
        bias = _int32_bias(rewriting, inputs[2], operator, data, weights)
        if bias is None:
            return None
        operands.append(bias)
    return rewriting.emitter(operator, operands, out, node.name)


def product_and_bias_emitter(rewriting: QdqRewriting, node: Node, out: Tensor) -> Emitter | None:
    """Return the same for an Add of a MatMul and a bias."""
    if not isinstance(node.operator, Add):
        return None
    tensors = rewriting.old.tensors
    for product, bias in (node.inputs, node.inputs[::-1]):
        before = rewriting.old.producers.get(product)
        if (
            before is not None
            and isinstance(before.operator, MatMul)
            and len(before.inputs) == 2
            and rewriting.has_one_consumer(product)
            and tensors[bias].size == tensors[product].shape[-1]
            and tensors[bias].shape[-1] == tensors[product].shape[-1]
        ):
            return product_emitter(rewriting, before, [*before.inputs, bias], out)
    return None


def _int32_bias(
    rewriting: QdqRewriting, name: str, operator: Product, data: Tensor, weights: Tensor
) -> str | None:
    """The unit is the product of the operands' scales: with 0.1 and 0.02, a bias of 0.05 is 25."""
    channels = operator.channels(weights)
    unit = (operator.factor() * data.scale_and_zero[0]) * operator.weight_scales(weights)
    source = rewriting.source(name)
    if source is not None and source.dtype == "int32" and source.shape == (channels,):
        quantization = source.required_quantization
        scales = np.array(quantization.scale, dtype=np.float32)
        has_unit = np.allclose(scales, unit, rtol=_BIAS_SCALE_TOLERANCE, atol=0)
        if not any(quantization.zero) and has_unit:
            return source.name
    numbers = rewriting.constant_numbers(name)
    if numbers is None or numbers.size != channels or not np.isfinite(numbers).all() or not unit.all():
        return None
    rounded = np.rint(numbers.reshape(-1) / unit).astype(np.float64).clip(_INT32.min, _INT32.max)
    return rewriting.new.constant(rewriting.integer_name(name), rounded.astype(np.int32))
