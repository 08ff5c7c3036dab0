"""An ONNX model that changes."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from accel.base.unique_names import Names
from accel.formats.onnx_file import onnx
from accel.graph.graph_tensor import Array

Sizes = tuple[int | None, ...]
"""None for open sizes."""


class EditableModel:
    """The main graph of a model. :meth:`finish` writes ``nodes`` back, in an order of execution."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._arrays = {one.name: one for one in model.graph.initializer}
        self.nodes: list[Any] = list(model.graph.node)
        self.outputs = {one.name for one in model.graph.output}
        used = [name for node in self.nodes for name in (node.name, *node.input, *node.output)]
        self._names = Names([*used, *self._arrays, *(one.name for one in model.graph.input)])
        self._has_subgraphs = any(
            attribute.HasField("g") for node in self.nodes for attribute in node.attribute
        )

    def of_kind(self, *kinds: str) -> list[Any]:
        return [one for one in self.nodes if one.op_type in kinds and one.domain in ("", "ai.onnx")]

    def producer(self, name: str, *kinds: str) -> Any | None:
        return next((one for one in self.of_kind(*kinds) if name in one.output), None)

    def reader(self, name: str) -> Any | None:
        """Return the only node that reads a tensor. Subgraphs may read any tensor."""
        readers = [node for node in self.nodes for one in node.input if one == name]
        is_inner = name not in self.outputs and not self._has_subgraphs
        return readers[0] if len(readers) == 1 and is_inner else None

    def constant(self, name: str) -> Array | None:
        """Return a float32 constant as float64."""
        one = self._arrays.get(name)
        if one is None or one.data_type != onnx().TensorProto.FLOAT:
            return None
        return np.asarray(onnx().numpy_helper.to_array(one), np.float64)

    def constants(self, names: Iterable[str]) -> list[Array] | None:
        """Return None unless all are float32 constants."""
        found = [self.constant(name) for name in names]
        known = [one for one in found if one is not None]
        return known if len(known) == len(found) else None

    def add_constant(self, name: str, values: Array) -> str:
        """Floats become float32."""
        values = np.asarray(values, np.float32 if values.dtype.kind == "f" else values.dtype)
        fresh = self._names.fresh(name)
        self._arrays[fresh] = onnx().numpy_helper.from_array(values, fresh)
        return fresh

    def fresh(self, name: str) -> str:
        return self._names.fresh(name)

    def node(self, kind: str, inputs: Sequence[str], output: str, name: str, **values: Any) -> Any:
        return onnx().helper.make_node(kind, list(inputs), [output], name=self.fresh(name), **values)

    def replace(self, old: Sequence[Any], new: Sequence[Any]) -> None:
        """Put nodes in the place of the last old one."""
        removed = {id(node) for node in old}
        last = max(at for at, node in enumerate(self.nodes) if id(node) in removed)
        self.nodes = [
            one
            for at, node in enumerate(self.nodes)
            for one in (new if at == last else () if id(node) in removed else (node,))
        ]

    def bypass(self, node: Any, source: str) -> None:
        """Remove a node whose output the producer of ``source`` computes instead."""
        (output,) = node.output
        self.replace([node], [])
        for one in self.nodes:
            one.output[:] = [output if name == source else name for name in one.output]

    def shapes(self) -> dict[str, Sizes]:
        self.finish()
        inferred = onnx().shape_inference.infer_shapes(self._model).graph
        values = (*inferred.value_info, *inferred.input, *inferred.output)
        return {
            one.name: tuple(dim.dim_value or None for dim in one.type.tensor_type.shape.dim)
            for one in values
            if one.type.tensor_type.HasField("shape")
        }

    def content(self) -> bytes:
        content: bytes = self._model.SerializeToString()
        return content

    def finish(self) -> None:
        graph = self._model.graph
        copies = [type(node).FromString(node.SerializeToString()) for node in self.nodes]
        del graph.node[:]
        graph.node.extend(copies)
        self.nodes = list(graph.node)
        used = {name for node in self.nodes for name in node.input} | self.outputs
        kept = [one for name, one in self._arrays.items() if name in used or self._has_subgraphs]
        del graph.initializer[:]
        graph.initializer.extend(kept)
        self._arrays = {one.name: one for one in graph.initializer}


def attributes(node: Any) -> dict[str, Any]:
    return {one.name: onnx().helper.get_attribute_value(one) for one in node.attribute}
