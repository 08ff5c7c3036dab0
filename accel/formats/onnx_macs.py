"""MACs of ONNX operators that the graph does not know."""

from collections.abc import Sequence
from math import prod

from accel.formats.onnx_file import FileNode
from accel.graph.graph_tensor import Shape

_RECURRENT = {"LSTM", "GRU", "RNN", "DynamicQuantizeLSTM"}
_CONVOLUTIONS = {"Conv": 1, "ConvInteger": 1, "QLinearConv": 3, "FusedConv": 1}
"""Input index of the weights."""
_MATRIX_PRODUCTS = {
    "DynamicQuantizeMatMul",
    "FusedMatMul",
    "Gemm",
    "MatMul",
    "MatMulInteger",
    "MatMulIntegerToFloat",
    "MatMulNBits",
    "QLinearMatMul",
}


def node_macs(node: FileNode, operands: Sequence[Shape | None], result: Shape) -> int:
    """Return nominal MACs, or 0 for operators that are not counted.

    For example, an LSTM of 12 steps with W (1, 32, 16) and R (1, 32, 8) has ``12 * (512 + 256)``.
    """
    shapes = [() if shape is None else shape for shape in operands]
    if node.kind in _RECURRENT:
        steps = prod(shapes[0][:2])
        return steps * (prod(shapes[1]) + prod(shapes[2]))
    if node.kind in _CONVOLUTIONS:
        return prod(result) * prod(shapes[_CONVOLUTIONS[node.kind]][1:])
    if node.kind == "ConvTranspose":
        return prod(shapes[0]) * prod(shapes[1][1:])
    if node.kind in _MATRIX_PRODUCTS:
        is_turned = bool(node.attributes.get("transA")) and len(shapes[0]) > 1
        return prod(result) * shapes[0][-2 if is_turned else -1]
    if node.kind == "Einsum" and len(shapes) > 1:
        return _einsum_macs(str(node.attributes.get("equation", "")), shapes)
    return 0


def _einsum_macs(equation: str, shapes: Sequence[Shape]) -> int:
    """Multiply the sizes of all indices. Ellipses are not counted."""
    terms = equation.replace(" ", "").split("->")[0].split(",")
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=False):
        if "." in term or len(term) != len(shape):
            return 0
        sizes.update(zip(term, shape, strict=True))
    return prod(sizes.values())
