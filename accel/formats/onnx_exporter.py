"""Nodes, initializers and names of an exported model."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from accel.base.unique_names import Names
from accel.formats.onnx_file import MICROSOFT, onnx, rename_captured
from accel.graph.graph import Graph, Node
from accel.graph.graph_operator import Operator
from accel.graph.graph_tensor import Array, Tensor
from accel.graph.window_geometry import Windows

OPSET = 21
"""Of ONNX's own operators."""
IR_VERSION = 10
"""Of the file's format."""
BYTE_OFFSET = 128
"""Difference of uint8 and int8 values with the same meaning."""


class Exporter:
    """An ONNX model under construction."""

    def __init__(self, graph: Graph) -> None:
        self._onnx = onnx()
        self._graph = graph
        self._nodes: list[Any] = []
        self._constants: dict[str, Array] = dict(graph.constants)
        self._names = Names(graph.tensors)
        self._is_open = False

    def model(self, outputs: Sequence[str] | None = None) -> bytes:
        helper = self._onnx.helper
        for node in self._graph.nodes:
            WRITERS[type(node.operator)](self, node)
        made = {node.output for node in self._graph.nodes}
        graph = helper.make_graph(
            self._nodes,
            self._graph.name or "graph",
            [self._info(name) for name in self._graph.inputs],
            [self._info(name) for name in outputs or [one for one in self._graph.tensors if one in made]],
            [self._onnx.numpy_helper.from_array(values, name) for name, values in self._constants.items()],
        )
        domains = (("", OPSET), (MICROSOFT, 1))
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid(domain, version) for domain, version in domains],
            ir_version=IR_VERSION,
        )
        content: bytes = model.SerializeToString()
        return content

    def _info(self, name: str) -> Any:
        tensor = self._graph.tensors[name]
        dtype = self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(tensor.dtype))
        shape = (None,) * len(tensor.shape) if self._is_open else tensor.shape
        return self._onnx.helper.make_tensor_value_info(name, dtype, shape)

    def tensor(self, name: str) -> Tensor:
        return self._graph.tensors[name]

    def values(self, name: str) -> Array | None:
        return self._constants.get(name)

    def fresh(self, name: str) -> str:
        return self._names.fresh(name)

    def constant(self, values: Any, dtype: str, name: str = "constant") -> str:
        found = self.fresh(name)
        self._constants[found] = np.asarray(values, dtype=dtype)
        return found

    def write(
        self,
        kind: str,
        inputs: Sequence[str],
        output: str | None = None,
        *,
        domain: str = "",
        **attributes: Any,
    ) -> str:
        made = output or self.fresh(f"{kind}/output")
        self._nodes.append(
            self._onnx.helper.make_node(
                kind, list(inputs), [made], name=f"{kind} of {made}", domain=domain, **attributes
            )
        )
        return made

    def inline(self, model: Any, inputs: Sequence[str], output: str) -> None:
        """Add the node of a model of :class:`~accel.graph.foreign_operator.Foreign`."""
        names = {f"x{n}": name for n, name in enumerate(inputs)} | {"y": output, "": ""}
        sizes = [one for value in model.graph.input for one in value.type.tensor_type.shape.dim]
        self._is_open |= not all(one.HasField("dim_value") for one in sizes)
        for one in model.graph.initializer:
            values = self._onnx.numpy_helper.to_array(one)
            names[one.name] = self.constant(values, values.dtype.name, f"{output}/{one.name}")
        for node in model.graph.node:
            copy = self._onnx.NodeProto()
            copy.CopyFrom(node)
            for one in node.output:
                names.setdefault(one, self.fresh(f"{output}/{one}"))
            copy.input[:] = [names[one] for one in node.input]
            copy.output[:] = [names[one] for one in node.output]
            copy.name = f"{node.op_type} of {next(filter(None, copy.output))}"
            for attribute in copy.attribute:
                if attribute.HasField("g"):
                    rename_captured(attribute.g, names)
            self._nodes.append(copy)

    def pair(self, tensor: Tensor, shift: int = 0, dtype: str | None = None) -> list[str]:
        """Add a tensor's scales and shifted zero points, and return their names."""
        quantization = tensor.required_quantization
        zeros = np.array(quantization.zero) + shift
        scales = np.array(quantization.scale, dtype=np.float32)
        if quantization.is_per_tensor:
            scales, zeros = scales[0], zeros[0]
        return [
            self.constant(scales, "float32", f"{tensor.name}/scale"),
            self.constant(zeros, dtype or tensor.dtype, f"{tensor.name}/zero"),
        ]

    def as_type(self, name: str, dtype: str) -> list[str]:
        """Return the names of values, scale and zero point, converted to int8 or uint8."""
        tensor = self.tensor(name)
        if tensor.dtype == dtype:
            return [name, *self.pair(tensor)]
        shift = BYTE_OFFSET if dtype == "uint8" else -BYTE_OFFSET
        values = self.values(name)
        if values is not None:
            turned = self.constant(values.astype(np.int32) + shift, dtype, f"{name}/{dtype}")
        else:
            wide = self.write("Cast", [name], to=self._onnx.TensorProto.INT32)
            moved = self.write("Add", [wide, self.constant(shift, "int32")])
            turned = self.write("Cast", [moved], to=self.type(dtype))
        return [turned, *self.pair(tensor, shift, dtype)]

    def through_floats(self, node: Node, middle: Callable[[str], str]) -> None:
        """Write a node as DequantizeLinear, nodes that ``middle`` writes, and QuantizeLinear.

        ``middle`` gets the float operand's name and returns that of the float result.
        """
        source, out = self.tensor(node.inputs[0]), self.tensor(node.output)
        numbers = self.write("DequantizeLinear", [source.name, *self.pair(source)])
        self.write("QuantizeLinear", [middle(numbers), *self.pair(out)], node.output)

    def type(self, dtype: str) -> int:
        return int(self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


Writer = Callable[[Exporter, Node], None]
WRITERS: dict[type[Operator], Writer] = {}


def writer(*kinds: type[Operator]) -> Callable[[Any], Any]:
    def register(function: Any) -> Any:
        for kind in kinds:
            WRITERS[kind] = function
        return function

    return register


def window_attributes(windows: Windows) -> dict[str, Any]:
    return {
        "kernel_shape": list(windows.kernel),
        "strides": list(windows.strides),
        "dilations": list(windows.dilations),
        "pads": [*windows.begin, *windows.end],
    }
