"""A graph under construction from an ONNX file: what the rules of single operators are written against."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from accel.base.errors import GraphError
from accel.base.names import Names
from accel.formats.onnx_constants import fold
from accel.formats.onnx_file import File, FileNode
from accel.formats.onnx_schemas import check_node
from accel.graph.builder import Builder
from accel.graph.elementwise import Dequantize, dequantize
from accel.graph.graph import Graph
from accel.graph.movement import Identity
from accel.graph.operator import Operator
from accel.graph.tensor import Array, Quantization, Tensor


class Importer:
    """Tensors, constants and names on the way from a file to a graph."""

    def __init__(self, file: File) -> None:
        self.file = file
        self.builder = Builder()
        self.arrays: dict[str, Array] = dict(file.constants)
        """Constants of any type, by name; those that become tensors are in the builder, too."""
        self.aliases: dict[str, str] = {}
        """Names of the file that stand for tensors of other names."""
        names = {*file.constants, *file.outputs, *(one.name for one in file.inputs)}
        self.builder.reserve(names | {one for node in file.nodes for one in node.outputs if one})
        self.outputs = set(file.outputs)
        self._labels = Names()

    def take(self, node: FileNode, rules: Any) -> None:
        """Import a node.

        Raises:
            GraphError: naming it.
        """
        try:
            check_node(node)
            if not self._fold(node):
                rules[node.domain, node.kind](self, node)
        except GraphError as error:
            told = str(error)
            named = told.startswith("node ")
            raise GraphError(told if named else f"node {node.name!r}: {error}") from None

    def _fold(self, node: FileNode) -> bool:
        """Compute what a node makes of constants; whether all its inputs are such, and it is one of those."""
        known = [None if not name else self.array(name) for name in node.inputs]
        if any(array is None for name, array in zip(node.inputs, known, strict=True) if name):
            return False
        results = fold(node, known)
        self.arrays.update(zip(node.outputs, results or (), strict=False))
        return results is not None

    def graph(self) -> Graph:
        """What was imported.

        Raises:
            GraphError: it has no outputs, or one that nothing computes.
        """
        if not self.file.outputs:
            raise GraphError("it has no outputs, so that there is nothing to compute")
        names = []
        for name in self.file.outputs:
            if name not in self.aliases and name not in self.builder.tensors and name not in self.arrays:
                raise GraphError(f"output {name!r} is no node's result")
            held = self.operand(name)
            if held != name:
                raise AssertionError(f"{name} is {held}")
            names.append(name)
        return self.builder.graph(self.file.name, names)

    # --- what nodes take ---------------------------------------------------------------------------

    def array(self, name: str) -> Array | None:
        """A constant's values, None for what is none."""
        name = self.aliases.get(name, name)
        return self.arrays.get(name)

    def constant(self, node: FileNode, place: int, what: str) -> Array | None:
        """An input that must be constant, perhaps as what a Dequantize makes of one; None if it is left out.

        Raises:
            GraphError: only a run knows it.
        """
        if place >= len(node.inputs) or not node.inputs[place]:
            return None
        found = self.array(node.inputs[place])
        if found is None:
            found = self._dequantized(node.inputs[place])
        if found is None:
            raise GraphError(
                f"{what} is {node.inputs[place]!r}, which only a run knows; it must be a constant"
            )
        return found

    def _dequantized(self, name: str) -> Array | None:
        """What a Dequantize makes of a constant; None for anything else."""
        made = self.builder.nodes.get(self.aliases.get(name, name))
        if made is None or not isinstance(made.operator, Dequantize):
            return None
        source = self.builder.tensors[made.inputs[0]]
        values = self.builder.constants.get(source.name)
        return None if values is None else dequantize(values, source)

    def needed(self, node: FileNode, place: int, what: str) -> Array:
        """An input that must be there and constant.

        Raises:
            GraphError: it is left out, or only a run knows it.
        """
        found = self.constant(node, place, what)
        if found is None:
            raise GraphError(f"{what} is missing; {node.kind} needs it as input {place}")
        return found

    def operand(self, name: str) -> str:
        """The tensor that a name of the file stands for."""
        name = self.aliases.get(name, name)
        if name not in self.builder.tensors:
            if name not in self.arrays:
                raise GraphError(f"tensor {name!r} is empty or missing; it must be there")
            self.builder.constant(name, self.arrays[name])
        return name

    def tensor(self, name: str) -> Tensor:
        """What :meth:`operand` names."""
        return self.builder.tensors[self.operand(name)]

    def quantization(
        self, node: FileNode, scale: int, zero: int | None, dtype: str, axis: int | None = None
    ) -> Quantization:
        """From constants.

        Args:
            node: whose inputs they are.
            scale, zero: their places; a zero point that is left out is 0.
            dtype: of the values, which the zero point's must be.
            axis: what several of them go along.

        Raises:
            GraphError: they are not constant, not positive and finite, or of another type.
        """
        scales = self.needed(node, scale, "the scale")
        zeros = None if zero is None else self.constant(node, zero, "the zero point")
        return self.pair(scales, zeros, dtype, axis)

    @staticmethod
    def pair(scales: Array, zeros: Array | None, dtype: str, axis: int | None = None) -> Quantization:
        """A quantization of a scale's and a zero point's values.

        Raises:
            GraphError: as :meth:`quantization`.
        """
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
        """An operand with its scale and zero point.

        Args:
            node: whose inputs they are.
            place, scale, zero: their places.
            axis: what several scales go along.

        Raises:
            GraphError: as :meth:`quantization`.
        """
        name = self.operand(node.inputs[place])
        dtype = self.builder.tensors[name].dtype
        return self.builder.demand(name, self.quantization(node, scale, zero, dtype, axis))

    def result(self, node: FileNode, scale: int, zero: int | None, default: str) -> dict[str, Any]:
        """The result's dtype and quantization, as :meth:`emit` takes them; the zero point tells the dtype.

        Raises:
            GraphError: as :meth:`quantization`.
        """
        zeros = None if zero is None else self.constant(node, zero, "the zero point")
        dtype = default if zeros is None else zeros.dtype.name
        return {"dtype": dtype, "quantization": self.quantization(node, scale, zero, dtype)}

    # --- what nodes make ---------------------------------------------------------------------------

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
        """Add an operator; where all operands are constants, its values.

        Args:
            node: what it is for.
            operator: what it does.
            inputs: tensors, as :meth:`operand` names them.
            output: the result's name; the node's first output, if not given.
            dtype, quantization: as for :meth:`accel.graph.builder.Builder.emit`.
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
        """A name for a tensor that the file does not have."""
        return self.builder.fresh(f"{node.outputs[0]}/{what}")

    def alias(self, node: FileNode, name: str) -> None:
        """Let the node's first output stand for a tensor, under its own name where somebody asks for it."""
        output = node.outputs[0]
        if output in self.outputs:
            self.emit(node, Identity(), [name])
        else:
            self.aliases[output] = name


def _flat(values: Array) -> Array:
    """Of one number as (), of several along one axis as (C,)."""
    return values.reshape(()) if values.size == 1 else values.reshape([n for n in values.shape if n != 1])
