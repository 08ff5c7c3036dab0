"""Regions of elementwise functions in a quantized model, with one rounding at their end.

ONNX Runtime's quantizer rounds after each operator that it knows. For example, ``x * sigmoid(x)`` has a pair
of QuantizeLinear and DequantizeLinear before the Mul. With Clips to the range of the integers instead of the
inner pairs, the results are the float function's, rounded once. The quantizer has removed a Relu or Clip
before a pair, because the integers saturate at its bounds.
"""

from typing import Any

import numpy as np

from accel.formats.onnx_file import onnx
from accel.formats.quantized_model import QuantizedModel

_ELEMENTWISE = frozenset(
    {
        *("Abs", "Add", "Celu", "Clip", "Div", "Elu", "Erf", "Exp", "Gelu", "HardSigmoid", "HardSwish"),
        *("LeakyRelu", "Log", "Max", "Min", "Mish", "Mul", "Neg", "Pow", "Reciprocal", "Relu", "Selu"),
        *("Sigmoid", "Softplus", "Softsign", "Sqrt", "Sub", "Tanh", "ThresholdedRelu"),
    }
)
_KEEPS_VALUES = frozenset({"Flatten", "Identity", "MaxPool", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})
_CONSTANT = ""


def join_elementwise_regions(model: Any) -> int:
    """Replace the inner pairs by Clips in place, and return their number."""
    work = _Regions(model)
    work.quantize_ends()
    count = work.replace_inner_pairs()
    if count:
        work.finish()
    return count


class _Regions(QuantizedModel):
    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self._roots: dict[str, str | None] = {}

    def quantize_ends(self) -> None:
        """Quantize before the MaxPools and moves that follow a region."""
        for quantize in self.of_kind("QuantizeLinear"):
            path: list[Any] = []
            name = quantize.input[0]
            while self.kind(name) in _KEEPS_VALUES and self._is_single(name):
                path.append(self.producers[name])
                name = path[-1].input[0]
            if path and self.kind(name) in _ELEMENTWISE and self._is_single(name):
                self._quantize_before(path[-1], name, quantize)
        self.index()

    def _is_single(self, name: str) -> bool:
        return len(self.readers.get(name, ())) == 1 and name not in self.outputs

    def _quantize_before(self, move: Any, name: str, quantize: Any) -> None:
        integers, numbers = self.fresh(f"{name}_QuantizeLinear_Output"), self.fresh(f"{name}_Dequantized")
        values = {one.name: onnx().helper.get_attribute_value(one) for one in quantize.attribute}
        pair = [
            self.node("QuantizeLinear", [name, *quantize.input[1:]], integers, integers, **values),
            self.node("DequantizeLinear", [integers, *quantize.input[1:]], numbers, numbers, **values),
        ]
        moved = type(move).FromString(move.SerializeToString())
        moved.input[0] = numbers
        self.replace([move], [*pair, moved])

    def replace_inner_pairs(self) -> int:
        count = 0
        for quantize in self.of_kind("QuantizeLinear"):
            pairs = self.readers.get(quantize.output[0], [])
            parameters = self.parameters(quantize)
            if parameters is None or not self._is_inside(quantize, pairs):
                continue
            low, high, _ = self.range_of(parameters)
            name = self.fresh(f"{quantize.input[0]}/bounded")
            bounds = [self.add_constant(f"{name}/{one}", np.array(one)) for one in (low, high)]
            self.replace([quantize], [self.node("Clip", [quantize.input[0], *bounds], name, name)])
            for dequantize in pairs:
                for reader in self.readers.get(dequantize.output[0], []):
                    reader.input[:] = [name if one == dequantize.output[0] else one for one in reader.input]
            self.replace(pairs, [])
            count += 1
        return count

    def _is_inside(self, quantize: Any, pairs: list[Any]) -> bool:
        root = self._root(quantize.input[0])
        if not root or self.kind(quantize.input[0]) not in _ELEMENTWISE:
            return False
        names = [one.output[0] for one in pairs]
        is_output = not self.outputs.isdisjoint([quantize.input[0], quantize.output[0], *names])
        readers = [reader for name in names for reader in self.readers.get(name, [])]
        return (
            not is_output
            and bool(readers)
            and all(one.op_type == "DequantizeLinear" for one in pairs)
            and all(self._continues(reader, root) for reader in readers)
        )

    def _continues(self, node: Any, root: str) -> bool:
        """Whether a node belongs to a region whose ends are all quantized."""
        if node.op_type not in _ELEMENTWISE or self._root(node.output[0]) != root:
            return False
        readers = self.readers.get(node.output[0], [])
        return (
            bool(readers)
            and node.output[0] not in self.outputs
            and all(one.op_type == "QuantizeLinear" or self._continues(one, root) for one in readers)
        )

    def _root(self, name: str) -> str | None:
        """Return the only quantized tensor on which a tensor depends, or None."""
        if name not in self._roots:
            self._roots[name] = self._find_root(name)
        return self._roots[name]

    def _find_root(self, name: str) -> str | None:
        node = self.producers.get(name)
        if node is None:
            return _CONSTANT if self.is_number(name) else None
        if node.op_type == "DequantizeLinear":
            return self._root_of_pair(node)
        if node.op_type not in _ELEMENTWISE:
            return None
        roots = {self._root(one) for one in node.input if one}
        roots.discard(_CONSTANT)
        return roots.pop() if len(roots) == 1 else None

    def _root_of_pair(self, dequantize: Any) -> str | None:
        integers = str(dequantize.input[0])
        quantize = self.producers.get(integers)
        if quantize is None:
            return _CONSTANT if self.is_number(integers) else None if self.is_constant(integers) else integers
        if quantize.op_type != "QuantizeLinear":
            return integers
        is_function = self.kind(quantize.input[0]) in _ELEMENTWISE
        return (self._root(quantize.input[0]) if is_function else None) or integers
