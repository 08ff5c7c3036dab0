"""Import rules for QuantizeLinear and DequantizeLinear."""

from accel.base.errors import GraphError
from accel.formats.onnx_file import MICROSOFT, FileNode, onnx
from accel.formats.onnx_foreign import import_foreign
from accel.formats.onnx_importer import Importer
from accel.formats.onnx_rules import rule
from accel.graph.elementwise_operators import (
    Dequantize,
    Quantize,
)
from accel.graph.graph_tensor import Tensor


def _channel_axis(node: FileNode, tensor: Tensor) -> int | None:
    axis = int(node.attributes.get("axis", 1))
    rank = len(tensor.shape)
    return axis % rank if -rank <= axis < rank else None


def _has_blocks(node: FileNode) -> bool:
    """Only ONNX Runtime computes scales per block."""
    return bool(node.attributes.get("block_size", 0))


@rule("QuantizeLinear")
@rule("QuantizeLinear", domain=MICROSOFT)
def _quantize(importer: Importer, node: FileNode) -> None:
    tensor = importer.tensor(node.inputs[0])
    if len(node.inputs) > 2 and node.inputs[2] in importer.file.four_bit:
        raise GraphError("it quantizes to 4 bits; machines have 8, so quantize activations to int8 or uint8")
    if _has_blocks(node):
        import_foreign(importer, node)
        return
    zeros = importer.constant(node, 2, "the zero point")
    if zeros is not None:
        dtype = zeros.dtype.name
    else:
        wanted = node.attributes.get("output_dtype", 0)
        dtype = onnx().helper.tensor_dtype_to_np_dtype(wanted).name if wanted else "uint8"
    if dtype in {"int16", "uint16"}:
        raise GraphError(
            f"it quantizes to {dtype}; machines have 8 bits, so quantize activations to int8 or uint8"
        )
    scales = importer.needed(node, 1, "the scale")
    quantization = importer.pair(scales, zeros, dtype, _channel_axis(node, tensor))
    importer.emit(node, Quantize(), [tensor.name], dtype=dtype, quantization=quantization)


@rule("DequantizeLinear")
@rule("DequantizeLinear", domain=MICROSOFT)
def _dequantize(importer: Importer, node: FileNode) -> None:
    if _has_blocks(node):
        import_foreign(importer, node)
        return
    axis = _channel_axis(node, importer.tensor(node.inputs[0]))
    name = importer.quantized(node, 0, 1, 2, axis)
    importer.emit(node, Dequantize(), [name], dtype="float32")
