"""Integer products whose left zero point is only known at run time, as after DynamicQuantizeLinear.

The machine multiplies with a zero point of 0, and the host corrects the sums:

    sum of (x - z) * w  =  sum of x * w  -  z * (sum of w)

For example, with z = 3 and weights 2 and 5, every sum is 21 less. Padding stands for z, so windows at the
border have other sums: only taps inside the picture count.
"""

from typing import Any

import numpy as np

from accel.formats.onnx_file import FileNode, onnx
from accel.formats.onnx_foreign import foreign_operator
from accel.formats.onnx_importer import Importer
from accel.graph.graph_builder import Builder
from accel.graph.graph_tensor import Array
from accel.graph.product_operators import Conv, MatMul, Product


def import_varying_zero(
    importer: Importer, node: FileNode, operator: Product, data: str, weights: str
) -> None:
    sums = importer.emit(node, operator, [data, weights], importer.between(node, "sums"), dtype="int32")
    nodes, constants = zero_point_correction(importer.builder, operator, data, weights, sums, "y")
    zero = importer.operand(node.inputs[2])
    operands = [importer.builder.tensors[name] for name in (sums, zero)]
    correction = foreign_operator("ZeroPoint", nodes, constants, operands)
    importer.emit(node, correction, [sums, zero], node.outputs[0], dtype=correction.dtype)


def zero_point_correction(
    builder: Builder, operator: Product, data: str, weights: str, sums: str, result: str
) -> tuple[list[Any], dict[str, Array]]:
    """Return ONNX nodes that correct the sums ``x0`` for the zero point ``x1``, and constants."""
    values = builder.constants[weights].astype(np.int64)
    values = values - builder.tensors[weights].required_quantization.zeros_along(values.ndim)
    rank = len(builder.tensors[sums].shape)
    positions: list[Array] = []
    if isinstance(operator, Conv):
        totals, positions = _window_totals(operator, values, builder.tensors[data].shape[2:])
    else:
        assert isinstance(operator, MatMul)
        totals = values.sum(axis=-2, keepdims=True)
    make = onnx().helper.make_node
    constants = {"totals": totals.astype(np.int32)}
    nodes, name = [], "totals"
    for number, places in enumerate(positions):
        constants[f"places{number}"] = places.astype(np.int64)
        axis = rank - len(positions) + number
        nodes.append(make("Gather", [name, f"places{number}"], [f"totals{number}"], axis=axis))
        name = f"totals{number}"
    int32 = onnx().helper.np_dtype_to_tensor_dtype(np.dtype(np.int32))
    nodes += [
        make("Cast", ["x1"], ["zero"], to=int32),
        make("Mul", ["zero", name], ["excess"]),
        make("Sub", ["x0", "excess"], [result]),
    ]
    return nodes, constants


def _window_totals(conv: Conv, weights: Array, sizes: tuple[int, ...]) -> tuple[Array, list[Array]]:
    """Return sums of weights inside the picture (1, O, ...), and each window's index in them by axis."""
    totals = weights.sum(axis=1)
    positions = []
    for axis, taps in enumerate(conv.windows.taps_inside(sizes)):
        inside, places = np.unique(taps, axis=0, return_inverse=True)
        totals = np.moveaxis(np.tensordot(totals, inside.astype(np.int64), (axis + 1, 1)), -1, axis + 1)
        positions.append(places.reshape(-1))
    return totals[None], positions
