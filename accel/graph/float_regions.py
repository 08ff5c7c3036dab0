"""QDQ regions that ONNX Runtime computes in float32 although they begin and end with integers.

With all graph optimizations and ``session.qdqisint8allowed=1``, ONNX Runtime replaces Dequantize, Add and
Quantize by QLinearAdd (likewise Mul and AveragePool) only if they are adjacent. Two rewrites bring them
together:

1. A Dequantize moves down, and a Quantize up, through Reshape, Transpose, Slice and MaxPool, but not through
   Flatten, Gather, Pad, Concat or Split. Identity is removed.
2. Bounds directly before a Quantize are dropped if no quantized value lies outside of them. After this step a
   Quantize moves through Transpose only.

Other regions stay in float32, where each operation rounds. For example, Add, Clip(0, 6) and Quantize become
QLinearAdd if the Quantize covers 0 to 5.9, but not if it covers -1 to 7.

Found by experiment with onnxruntime 1.32.
"""

from collections.abc import Collection, Sequence

import numpy as np

from accel.graph.elementwise_operators import Clip
from accel.graph.graph import Node
from accel.graph.graph_operator import Operator
from accel.graph.graph_tensor import Tensor
from accel.graph.movement_operators import Identity, Reshape, Slice, Transpose
from accel.graph.pooling_operators import MaxPool
from accel.graph.quantize_values import quantize_number

_PASSED = (Identity, Reshape, Transpose, Slice, MaxPool)


def passes_dequantize(node: Node, opaque: Collection[str]) -> bool:
    """Whether ONNX Runtime moves a Dequantize or Quantize through a node.

    Args:
        opaque: results of nodes that ONNX Runtime treats otherwise than their graph operators.
    """
    return isinstance(node.operator, _PASSED) and node.output not in opaque


def ends_in_float32(steps: Sequence[Node], out: Tensor, opaque: Collection[str]) -> bool:
    """Whether the operator before ``steps`` to the Quantize stays in float32."""
    count = len(steps)
    while count and passes_dequantize(steps[count - 1], opaque):
        count -= 1
    return not all(_vanishes(node.operator, out) for node in steps[:count])


def _vanishes(operator: Operator, out: Tensor) -> bool:
    if isinstance(operator, Clip):
        return bounds_nothing(integer_bounds(operator, out), out)
    return isinstance(operator, Identity | Transpose)


def integer_bounds(clip: Clip, tensor: Tensor) -> Clip:
    low, high = (None if one is None else quantize_number(one, tensor) for one in (clip.low, clip.high))
    return Clip(low=low, high=high)


def bounds_nothing(clip: Clip, tensor: Tensor) -> bool:
    bounds = np.iinfo(tensor.dtype)
    return clip.low in {None, bounds.min} and clip.high in {None, bounds.max}
