"""A QDQ model that changes."""

from typing import Any

import numpy as np

from accel.formats.editable_model import EditableModel
from accel.formats.onnx_file import onnx
from accel.graph.graph_tensor import Array

Parameters = tuple[str, str]
"""The constants with a scale and a zero point."""
_WEIGHTED = ("Conv", "ConvTranspose", "Gemm")


class QuantizedModel(EditableModel):
    """A QDQ model, with ``producers`` and ``readers`` of tensors as of :meth:`index`."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.index()

    def index(self) -> None:
        self.producers: dict[str, Any] = {name: node for node in self.nodes for name in node.output}
        self.readers: dict[str, list[Any]] = {}
        for node in self.nodes:
            for name in node.input:
                self.readers.setdefault(name, []).append(node)

    def kind(self, name: str) -> str:
        return self.producers[name].op_type if name in self.producers else ""

    def is_constant(self, name: str) -> bool:
        return name in self._arrays

    def is_number(self, name: str) -> bool:
        one = self._arrays.get(name)
        return one is not None and all(size == 1 for size in one.dims)

    def values(self, name: str) -> Array | None:
        """Return a constant in its own type."""
        one = self._arrays.get(name)
        return None if one is None else np.asarray(onnx().numpy_helper.to_array(one))

    def set_values(self, name: str, values: Array) -> None:
        self._arrays[name] = onnx().numpy_helper.from_array(np.asarray(values, order="C"), name)

    def parameters(self, node: Any) -> Parameters | None:
        if node.op_type not in ("QuantizeLinear", "DequantizeLinear") or len(node.input) < 3:
            return None
        scale, zero = node.input[1:3]
        return (scale, zero) if self.is_number(scale) and self.is_number(zero) else None

    def activation(self, name: str) -> Parameters | None:
        """Return the parameters of a dequantized tensor, or None."""
        node = self.producers.get(name)
        if node is None or node.op_type != "DequantizeLinear" or self.is_constant(node.input[0]):
            return None
        return self.parameters(node)

    def range_of(self, parameters: Parameters) -> tuple[float, float, float]:
        """Return the least and the greatest number, and the scale."""
        scales, zeros = (self.values(name) for name in parameters)
        assert scales is not None
        assert zeros is not None
        limits, scale, zero = np.iinfo(zeros.dtype), float(scales.reshape(())), int(zeros.reshape(()))
        return (limits.min - zero) * scale, (limits.max - zero) * scale, scale

    def separate(self, quantize: Any) -> None:
        """Separate a tensor's parameters from its operands', also after pooling and moves."""
        parameters = self.parameters(quantize)
        producer = self.producers.get(quantize.input[0])
        sources = [] if producer is None else [self.activation(name) for name in producer.input]
        if parameters is None or parameters not in sources:
            return
        names = [self.add_copy(name) for name in parameters]
        pending = [quantize]
        while pending:
            node = pending.pop()
            if self.parameters(node) != parameters:
                continue
            node.input[1:3] = names
            for reader in self.readers.get(node.output[0], []):
                is_pair = reader.op_type in ("QuantizeLinear", "DequantizeLinear")
                outputs = [] if is_pair else reader.output
                pending += [reader] if is_pair else []
                pending += [one for name in outputs for one in self.readers.get(name, [])]
        self.index()

    def add_copy(self, name: str) -> str:
        values = self.values(name)
        assert values is not None
        fresh = self.fresh(name)
        self.set_values(fresh, values)
        return fresh

    def match_biases(self) -> None:
        """Give each int32 bias the scale of its products."""
        for node in self.of_kind(*_WEIGHTED):
            data = self.activation(node.input[0])
            sources = [self.producers.get(name) for name in node.input[1:3]]
            if data is None or len(sources) < 2 or any(one is None for one in sources):
                continue
            weights, bias = sources
            assert weights is not None
            assert bias is not None
            if weights.op_type == bias.op_type == "DequantizeLinear":
                self._match_bias(data[0], weights.input[1], bias)

    def _match_bias(self, data_scale: str, weight_scale: str, bias: Any) -> None:
        scales = [self.values(name) for name in (data_scale, weight_scale, *bias.input[:2])]
        if any(one is None for one in scales):
            return
        data, weights, integers, old = (np.asarray(one) for one in scales)
        if integers.dtype != np.int32:
            return
        new = (data.reshape(()) * weights).astype(old.dtype)
        if new.shape == old.shape and not np.array_equal(new, old):
            numbers = integers.astype(np.float64) * old
            limits = np.iinfo(np.int32)
            self.set_values(
                bias.input[0], np.clip(np.rint(numbers / new), limits.min, limits.max).astype(np.int32)
            )
            self.set_values(bias.input[1], new)
