"""The importer that the rules of TensorFlow Lite's operators use: it resolves tensors, in both layouts.

Pictures of files have channels last, and a graph's have channels first. Inputs and outputs keep the file's
layout. A tensor is transposed where an operator needs the other order, for example next to inputs and
outputs.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from accel.base.arguments import check_integer
from accel.base.errors import GraphError
from accel.formats.onnx_import import MAX_BATCH
from accel.formats.tflite_file import FileOperator, FileTensor, TfliteFile
from accel.graph.elementwise_operators import (
    Clip,
)
from accel.graph.graph import Graph
from accel.graph.graph_builder import Builder
from accel.graph.graph_operator import Operator
from accel.graph.graph_tensor import QUANTIZED, Quantization, Shape, Tensor
from accel.graph.movement_operators import Reshape, Transpose
from accel.graph.quantize_values import quantize

FIRST = (0, 3, 1, 2)
"""Permutation from channels last to channels first."""
LAST = (0, 2, 3, 1)
"""Permutation from channels first to channels last."""
_ACTIVATIONS: dict[int, tuple[float | None, float | None]] = {
    0: (None, None),
    1: (0.0, None),
    2: (-1.0, 1.0),
    3: (0.0, 6.0),
}
"""Bounds of fused activations, by their numbers in the schema: none, RELU, RELU_N1_TO_1, RELU6."""


_SEVERAL = {"SPLIT", "SPLIT_V", "UNPACK"}
"""Operators with any number of outputs."""
_OPTIONAL = {"UNIDIRECTIONAL_SEQUENCE_LSTM"}
"""Operators that omit some of their inputs."""


class TfliteImporter:
    """A graph under construction. Each tensor exists in the layout of the operator that computes it, and in
    the
    other layout if an operator needs that."""

    def __init__(self, file: TfliteFile, batch: int | None) -> None:
        self.file = file
        self.builder = Builder()
        self.builder.reserve(one.name for one in file.tensors)
        self.wanted = None if batch is None else check_integer("the batch", batch, most=MAX_BATCH)
        self._first: dict[int, str] = {}
        """Tensors of four axes with channels first, by the file's index."""
        self._plain: dict[int, str] = {}
        """Tensors in the file's layout, by the file's index."""
        self._computed: dict[int, np.ndarray] = {}
        """Values of constants that the file computes."""
        for place in file.inputs:
            self._input(place)

    def _input(self, place: int) -> None:
        tensor = self.file.tensors[place]
        shape = tensor.shape
        if tensor.open_batch and self.wanted is not None:
            shape = (self.wanted, *shape[1:])
        elif self.wanted not in {None, shape[0] if shape else None}:
            raise GraphError(
                f"the batch is {self.wanted}; the model fixes that of input {tensor.name!r} to {shape[:1]}"
            )
        made = Tensor(
            name=tensor.name, shape=shape, dtype=tensor.dtype, quantization=self.quantization(tensor)
        )
        self.builder.input(made)
        self._plain[place] = tensor.name

    def graph(self) -> Graph:
        names = [self.plain(place) for place in self.file.outputs]
        return self.builder.graph(self.file.name, names)

    def take(self, operator: FileOperator, rules: Mapping[str, tuple[int, Any]]) -> None:
        """Import an operator.

        Args:
            rules: least number of inputs, and the importing function, for each operator name.
        """
        least, rule = rules[operator.kind]
        try:
            has_outputs = len(operator.outputs) == 1 or (operator.kind in _SEVERAL and operator.outputs)
            omits = operator.kind not in _OPTIONAL and -1 in operator.inputs[:least]
            if not has_outputs or len(operator.inputs) < least or omits:
                raise GraphError(f"{operator.kind} has the inputs {operator.inputs}; it needs {least}")
            rule(self, operator)
        except GraphError as error:
            told = str(error)
            name = self.file.tensors[operator.outputs[0]].name if operator.outputs else ""
            raise GraphError(told if told.startswith("node ") else f"node {name!r}: {told}") from None

    # --- operands -----------------------------------------------------------------------------------

    def quantization(self, tensor: FileTensor, axis: int | None = None) -> Quantization | None:
        """Return a tensor's scales and zero points.

        Args:
            axis: axis of several scales, if it differs from the file's.
        """
        if not tensor.scale or tensor.dtype not in QUANTIZED:
            return None
        return Quantization.of(
            np.array(tensor.scale, np.float32),
            np.array(tensor.zero, np.int64),
            tensor.axis if axis is None else axis,
        )

    def constant(self, place: int) -> np.ndarray:
        """Return a constant's values."""
        values = self.file.tensors[place].values
        values = self._computed.get(place) if values is None else values
        if values is None:
            raise GraphError(f"tensor {self.file.tensors[place].name!r} must be a constant")
        return values

    def add_constant(self, place: int, values: np.ndarray) -> None:
        """Make an operator's result a constant."""
        tensor = self.file.tensors[place]
        self._plain[place] = self.builder.constant(tensor.name, values, self.quantization(tensor))
        self._computed[place] = values

    def plain(self, place: int) -> str:
        """Return the name of a tensor in the file's layout."""
        if place in self._plain:
            return self._plain[place]
        tensor = self.file.tensors[place]
        if place in self._first:
            self._plain[place] = self._turned(self._first[place], LAST, tensor.name)
            return tensor.name
        if tensor.values is None:
            raise GraphError(f"tensor {tensor.name!r} comes from nowhere")
        self._plain[place] = self.builder.constant(tensor.name, tensor.values, self.quantization(tensor))
        return tensor.name

    def first(self, place: int) -> str:
        """Return the name of a tensor with channels first. Only tensors of four axes are transposed."""
        tensor = self.file.tensors[place]
        if len(tensor.shape) != 4:
            return self.plain(place)
        if place not in self._first:
            name = self.builder.fresh(f"{tensor.name}/channels_first")
            if tensor.values is not None:
                values = np.ascontiguousarray(tensor.values.transpose(FIRST))
                self._first[place] = self.builder.constant(name, values, self.quantization(tensor))
            else:
                self._first[place] = self._turned(self.plain(place), FIRST, name)
        return self._first[place]

    def _turned(self, name: str, permutation: Shape, output: str) -> str:
        """Permute a tensor's axes. A Reshape suffices if no value moves."""
        sizes = self.builder.tensors[name].shape
        turned = tuple(sizes[axis] for axis in permutation)
        moving = [axis for axis in range(4) if sizes[axis] > 1]
        if [axis for axis in permutation if axis in moving] == moving:
            return self.builder.emit(Reshape(sizes=turned), [name], output)
        return self.builder.emit(Transpose(permutation=permutation), [name], output)

    # --- results ------------------------------------------------------------------------------------

    def emit(
        self, operator: FileOperator, what: Operator, inputs: Sequence[str], *, first: bool = False
    ) -> None:
        """Add an operator, and the bounds of its fused activation."""
        place = operator.outputs[0]
        tensor = self.file.tensors[place]
        if place in self._plain or place in self._first:
            raise GraphError(f"tensor {tensor.name!r} comes from two places; each must have one")
        four = first and len(tensor.shape) == 4
        name = self.builder.fresh(f"{tensor.name}/channels_first") if four else tensor.name
        quantization = self.quantization(tensor)
        bounds = self._bounds(operator, tensor, quantization)
        made = name if bounds is None else self.builder.fresh(f"{tensor.name}/unbounded")
        self.builder.emit(what, inputs, made, dtype=tensor.dtype, quantization=quantization)
        if bounds is not None:
            self.builder.emit(bounds, [made], name)
        if not four and len(tensor.shape) != len(self.builder.tensors[name].shape):
            raise GraphError(f"its result is {self.builder.tensors[name].shape}; the file has {tensor.shape}")
        (self._first if four else self._plain)[place] = name

    def _bounds(
        self, operator: FileOperator, tensor: FileTensor, quantization: Quantization | None
    ) -> Clip | None:
        """Return the operator of a fused activation, or none if it only repeats the type's bounds."""
        number = int(operator.options.get("activation", 0))
        if number not in _ACTIVATIONS:
            raise GraphError(f"its fused activation is {number}; it must be one of {sorted(_ACTIVATIONS)}")
        low, high = _ACTIVATIONS[number]
        if low is None and high is None:
            return None
        if quantization is None:
            return Clip(low=low, high=high)
        return clip_of(low, high, Tensor(name="", shape=(1,), dtype=tensor.dtype, quantization=quantization))


def clip_of(low: float | None, high: float | None, tensor: Tensor) -> Clip | None:
    """Return real bounds as a Clip of a tensor's integers, or None if they only repeat the type's bounds."""
    limits = np.iinfo(tensor.dtype)
    found = [
        default if one is None else int(quantize(np.array([one], dtype=np.float32), tensor)[0])
        for one, default in ((low, limits.min), (high, limits.max))
    ]
    return None if found == [limits.min, limits.max] else Clip(low=found[0], high=found[1])
