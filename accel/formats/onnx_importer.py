"""The construction of a graph from an ONNX file."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from accel.base.errors import GraphError
from accel.base.unique_names import Names
from accel.formats.onnx_constant_folding import fold
from accel.formats.onnx_file import File, FileNode
from accel.formats.onnx_schemas import check_node
from accel.graph.elementwise_operators import Dequantize
from accel.graph.foreign_operator import OpenShapeError
from accel.graph.graph import Graph
from accel.graph.graph_builder import Builder
from accel.graph.graph_operator import Operator
from accel.graph.graph_tensor import FOREIGN_DTYPES, Array, Quantization, Tensor
from accel.graph.movement_operators import Identity, Movement
from accel.graph.quantize_values import dequantize

_MOVES = {"Concat", "Flatten", "Gather", "Identity", "Pad", "Reshape", "Shape", "Size", "Slice", "Split"}
_MOVES |= {"Squeeze", "Transpose", "Unsqueeze"}
"""They take tensors of any dtype."""


class Importer:
    """A graph under construction."""

    def __init__(self, file: File) -> None:
        self.file = file
        self.builder = Builder()
        self.arrays: dict[str, Array] = dict(file.constants)
        """Constants of any dtype, which operators turn into tensors of the builder."""
        self.aliases: dict[str, str] = {}
        """Names of the same tensor, for example the output of an Identity."""
        names = {*file.constants, *file.outputs, *(one.name for one in file.inputs)}
        self.builder.reserve(names | {one for node in file.nodes for one in node.outputs if one})
        self.outputs = set(file.outputs)
        self._used = {*file.outputs, *(one for node in file.nodes for one in node.reads)}
        self._labels = Names()

    def take(self, node: FileNode, rules: Any, other: Any) -> None:
        try:
            if (node.domain, node.kind) in rules or not node.domain:
                check_node(node)
            if not self._fold(node):
                omits_first = not node.outputs[0] and node.kind != "Split"
                is_foreign = self._has_foreign_dtype(node) or omits_first
                rule = None if is_foreign else rules.get((node.domain, node.kind))
                self._import(node, rule, other)
        except OpenShapeError:
            raise
        except GraphError as error:
            message = str(error)
            is_named = message.startswith("node ")
            raise GraphError(message if is_named else f"node {node.name!r}: {message}") from None

    def _import(self, node: FileNode, rule: Any, other: Any) -> None:
        """ONNX Runtime may compute a node that the rule refuses."""
        if rule is None:
            other(self, node)
            return
        try:
            rule(self, node)
        except GraphError as error:
            if node.kind.startswith(("Q", "Dequantize")) and self._has_constant_scales(node):
                raise  # ONNX Runtime even accepts scales that are not positive
            try:
                other(self, node)
            except OpenShapeError:
                raise
            except GraphError:
                raise error from None

    def _has_constant_scales(self, node: FileNode) -> bool:
        factor = 3 if node.kind in {"QLinearConv", "QLinearMatMul", "QGemm"} else 0
        others = [name for at, name in enumerate(node.inputs) if name and at not in {0, factor}]
        return all(self.array(name) is not None for name in others)

    def _has_foreign_dtype(self, node: FileNode) -> bool:
        if node.domain or node.kind in _MOVES:
            return False
        names = (self.aliases.get(name, name) for name in node.inputs)
        return any(
            name in self.builder.tensors and self.builder.tensors[name].dtype in FOREIGN_DTYPES
            for name in names
        )

    def _fold(self, node: FileNode) -> bool:
        known = [None if not name else self.array(name) for name in node.inputs]
        if any(array is None for name, array in zip(node.inputs, known, strict=True) if name):
            return False
        results = fold(node, known)
        self.arrays.update(zip(node.outputs, results or (), strict=False))
        return results is not None

    def used(self) -> set[str]:
        return self._used

    def graph(self, outputs: Sequence[str] | None = None) -> Graph:
        if not self.file.outputs:
            raise GraphError("the model has no outputs; there is nothing to compute")
        names = []
        for name in self.file.outputs if outputs is None else outputs:
            if name not in self.aliases and name not in self.builder.tensors and name not in self.arrays:
                raise GraphError(f"output {name!r} has no producer; a node must compute it")
            held = self.operand(name)
            if held != name:
                raise AssertionError(f"{name} is {held}")
            names.append(name)
        return self.builder.graph(self.file.name, names)

    def array(self, name: str) -> Array | None:
        name = self.aliases.get(name, name)
        return self.arrays.get(name)

    def constant(self, node: FileNode, place: int, what: str) -> Array | None:
        """Return a constant or dequantized constant, or None if it is omitted."""
        if place >= len(node.inputs) or not node.inputs[place]:
            return None
        found = self.array(node.inputs[place])
        if found is None:
            found = self._dequantized(node.inputs[place])
        if found is None:
            raise GraphError(
                f"{what} is {node.inputs[place]!r}, which is only known at run time; it must be a constant"
            )
        return found

    def _dequantized(self, name: str) -> Array | None:
        made = self.builder.nodes.get(self.aliases.get(name, name))
        if made is None or not isinstance(made.operator, Dequantize):
            return None
        source = self.builder.tensors[made.inputs[0]]
        values = self.builder.constants.get(source.name)
        return None if values is None else dequantize(values, source)

    def needed(self, node: FileNode, place: int, what: str) -> Array:
        found = self.constant(node, place, what)
        if found is None:
            raise GraphError(f"{what} is missing; {node.kind} needs it as input {place}")
        return found

    def operand(self, name: str) -> str:
        """Return the graph's name of the file's tensor."""
        name = self.aliases.get(name, name)
        if name not in self.builder.tensors:
            if name not in self.arrays:
                raise GraphError(f"tensor {name!r} is missing; an operand must be present")
            self.builder.constant(name, self.arrays[name])
        return name

    def tensor(self, name: str) -> Tensor:
        return self.builder.tensors[self.operand(name)]

    def quantization(
        self, node: FileNode, scale: int, zero: int | None, dtype: str, axis: int | None = None
    ) -> Quantization:
        """An omitted zero point is 0."""
        scales = self.needed(node, scale, "the scale")
        zeros = None if zero is None else self.constant(node, zero, "the zero point")
        return self.pair(scales, zeros, dtype, axis)

    @staticmethod
    def pair(scales: Array, zeros: Array | None, dtype: str, axis: int | None = None) -> Quantization:
        if scales.dtype != np.float32:
            raise GraphError(f"a scale is {scales.dtype.name}; it must be float32")
        if zeros is None:
            return Quantization.of(_flat(scales), 0, axis)
        if zeros.dtype != dtype:
            raise GraphError(f"a zero point is {zeros.dtype.name}; the values are {dtype}")
        return Quantization.of(_flat(scales), _flat(zeros), axis)

    def quantized(
        self, node: FileNode, place: int, scale: int, zero: int | None, axis: int | None = None
    ) -> str:
        name = self.operand(node.inputs[place])
        dtype = self.builder.tensors[name].dtype
        return self.builder.require_quantization(name, self.quantization(node, scale, zero, dtype, axis))

    def result(self, node: FileNode, scale: int, zero: int | None, default: str) -> dict[str, Any]:
        """Return arguments of :meth:`emit`. Without a zero point, the dtype is ``default``."""
        zeros = None if zero is None else self.constant(node, zero, "the zero point")
        dtype = default if zeros is None else zeros.dtype.name
        return {"dtype": dtype, "quantization": self.quantization(node, scale, zero, dtype)}

    def emit(
        self,
        node: FileNode,
        operator: Operator,
        inputs: Sequence[str],
        output: str | None = None,
        *,
        dtype: str | None = None,
        quantization: Quantization | None = None,
    ) -> str:
        """Add an operator, or its values if all operands are constants, and return the result's name.

        ``output`` is the node's first output by default.
        """
        name = node.outputs[0] if output is None else output
        label = node.name if output is None else f"{node.name}/{output}"
        made = self.builder.emit(
            operator, inputs, name, dtype=dtype, quantization=quantization, name=self._labels.fresh(label)
        )
        if not isinstance(operator, Dequantize) and self.builder.fold(made):
            self.arrays[made] = self.builder.constants[made]
        return made

    def between(self, node: FileNode, what: str) -> str:
        return self.builder.fresh(f"{node.outputs[0]}/{what}")

    def is_dequantized(self, name: str) -> bool:
        """Whether only moves lie between a Dequantize and a tensor."""
        node = self.builder.nodes.get(name)
        while node is not None and isinstance(node.operator, Movement):
            node = self.builder.nodes.get(node.inputs[0])
        return node is not None and isinstance(node.operator, Dequantize)

    def alias(self, node: FileNode, name: str) -> None:
        """Rename a tensor, or copy it if the name is a model output's."""
        output = node.outputs[0]
        if output in self.outputs:
            self.emit(node, Identity(), [name])
        else:
            self.aliases[output] = name


def _flat(values: Array) -> Array:
    """Reshape one value to (), and several along one axis to (C,)."""
    return values.reshape(()) if values.size == 1 else values.reshape([n for n in values.shape if n != 1])


def check_single_output(node: FileNode) -> None:
    if any(node.outputs[1:]):
        raise GraphError(f"its output {node.outputs[1]!r} is used; only the first output is supported")
