"""Moves and bounds of dequantized tensors on their integers."""

import numpy as np

from accel.base.records import replace
from accel.graph.elementwise_operators import Clip, Dequantize
from accel.graph.float_regions import integer_bounds, passes_dequantize
from accel.graph.graph import Node
from accel.graph.graph_operator import Operator
from accel.graph.graph_tensor import Tensor
from accel.graph.movement_operators import Pad, Reshape, Transpose
from accel.graph.qdq_rewriting import QdqRewriting
from accel.graph.quantize_values import dequantize, quantize_number


def integer_form(operator: Operator, tensor: Tensor) -> Operator | None:
    """Return the integer form of an operator that commutes with rounding.

    For example, Clip(0, 6) of a tensor with scale 0.1 and zero point 5 is Clip(5, 65) on integers.

    Returns:
        None for padding with a number that has no exact integer.
    """
    if isinstance(operator, Clip):
        return integer_bounds(operator, tensor)
    if isinstance(operator, Pad) and operator.mode == "constant":
        value = quantize_number(operator.value, tensor)
        number = dequantize(np.array([value], dtype=tensor.dtype), tensor)[0]
        return replace(operator, value=value) if number == np.float32(operator.value) else None
    return operator


def move_integers(rewriting: QdqRewriting, node: Node) -> bool:
    """Move integers instead of floats if possible."""
    sources = [one for name in node.inputs if (one := rewriting.source(name)) is not None]
    if len(sources) < len(node.inputs):
        return False
    first = sources[0]
    if any((one.dtype, one.quantization) != (first.dtype, first.quantization) for one in sources):
        return False
    if first.quantization is not None and not first.quantization.is_per_tensor:
        return _move_constant_channels(rewriting, node, first)
    operator = integer_form(node.operator, first)
    if operator is None:
        return False
    moved = rewriting.integer_name(node.output)
    names = [one.name for one in sources]
    rewriting.emitter(operator, names, first, node.name)(moved)
    rewriting.new.fold(moved)
    _dequantize(rewriting, moved, node)
    is_separated = not rewriting.separated.isdisjoint(node.inputs)
    if is_separated or not passes_dequantize(node, rewriting.opaque):
        rewriting.separated.add(node.output)
    return True


def _move_constant_channels(rewriting: QdqRewriting, node: Node, source: Tensor) -> bool:
    values, quantization = rewriting.new.constants.get(source.name), source.quantization
    if values is None or quantization is None or quantization.axis is None:
        return False
    operator, axis = node.operator, quantization.axis
    if isinstance(operator, Transpose):
        moved_values, moved_axis = values.transpose(operator.permutation), operator.permutation.index(axis)
    elif isinstance(operator, Reshape) and operator.sizes[: axis + 1] == source.shape[: axis + 1]:
        moved_values, moved_axis = values.reshape(operator.sizes), axis
    else:
        return False
    moved = rewriting.integer_name(node.output)
    moved_quantization = replace(quantization, axis=moved_axis)
    rewriting.new.constant(moved, np.ascontiguousarray(moved_values), moved_quantization)
    _dequantize(rewriting, moved, node)
    return True


def _dequantize(rewriting: QdqRewriting, moved: str, node: Node) -> None:
    name = rewriting.new.fresh(f"{node.name}/dequantize")
    rewriting.new.emit(Dequantize(), [moved], node.output, dtype="float32", name=name)
    rewriting.integers[node.output] = moved
