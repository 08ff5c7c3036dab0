"""A writer of small TensorFlow Lite files for tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from accel.graph.graph_tensor import Array


@dataclass(kw_only=True)
class Sparsity:
    """Sparsity of a tensor: levels are sizes of dense ones, or segments and indices of sparse ones."""

    order: Sequence[int]
    levels: Sequence[int | tuple[Sequence[int], Sequence[int]]]
    block_map: Sequence[int] = ()
    vector: str = "Int32Vector"


@dataclass(kw_only=True)
class FilledTensor:
    """A tensor of a written file."""

    shape: Sequence[int]
    dtype: str = "float32"
    name: str = ""
    values: Array | None = None
    signature: Sequence[int] = ()
    scale: float = 0.0
    zero: int = 0
    sparsity: Sparsity | None = None
    is_variable: bool = False


@dataclass(kw_only=True)
class WrittenGraph:
    """A graph of a written file."""

    tensors: list[FilledTensor] = field(default_factory=list)
    operators: list[tuple[str, Sequence[int], Sequence[int], str, dict[str, Any]]] = field(
        default_factory=list
    )
    inputs: Sequence[int] = ()
    outputs: Sequence[int] = ()

    def tensor(self, *shape: int, **others: Any) -> int:
        """Add a tensor and return its index."""
        self.tensors.append(FilledTensor(shape=shape, **others))
        return len(self.tensors) - 1

    def known(self, values: Any, dtype: str = "float32") -> int:
        """Add a constant and return its index."""
        array = np.asarray(values, dtype)
        return self.tensor(*array.shape, dtype=dtype, values=array)

    def add(
        self, kind: str, inputs: Sequence[int], *outputs: int, options: str = "", **fields: Any
    ) -> Sequence[int]:
        """Add an operator. Its options are of this table, with these fields."""
        self.operators.append((kind, inputs, outputs, options, fields))
        return outputs


class _Writer:
    def __init__(self) -> None:
        self.out: Any = pytest.importorskip("flatbuffers").Builder(1024)
        self.lite: Any = pytest.importorskip("tflite")
        self.codes: list[str] = []
        self.buffers: list[Any] = []

    def numbers(self, table: str, name: str, items: Sequence[Any], prepend: str = "PrependInt32") -> Any:
        getattr(self.lite, f"{table}Start{name}Vector")(self.out, len(items))
        for item in reversed(items):
            getattr(self.out, prepend)(item)
        return self.out.EndVector()

    def table(self, name: str, **fields: Any) -> Any:
        """Write a table. Lists and strings are written before it."""
        made = {}
        for key, value in fields.items():
            if isinstance(value, str):
                made[key] = self.out.CreateString(value)
            elif isinstance(value, list):
                made[key] = self.numbers(name, key, value)
            else:
                made[key] = value
        getattr(self.lite, f"{name}Start")(self.out)
        for key, value in made.items():
            getattr(self.lite, f"{name}Add{key}")(self.out, value)
        return getattr(self.lite, f"{name}End")(self.out)

    def objects(self, table: str, name: str, items: Sequence[Any]) -> Any:
        return self.numbers(table, name, items, "PrependUOffsetTRelative")

    def vector(self, kind: str, items: Sequence[int]) -> Any:
        prepend = {
            "Int32Vector": "PrependInt32",
            "Uint16Vector": "PrependUint16",
            "Uint8Vector": "PrependUint8",
        }
        return self.table(kind, Values=self.numbers(kind, "Values", items, prepend[kind]))

    def sparsity(self, one: Sparsity) -> Any:
        levels = []
        for level in one.levels:
            if isinstance(level, int):
                levels.append(self.table("DimensionMetadata", Format=0, DenseSize=level))
                continue
            kind = getattr(self.lite.SparseIndexVector, one.vector)
            segments, indices = (self.vector(one.vector, part) for part in level)
            fields = {"ArraySegmentsType": kind, "ArraySegments": segments}
            fields |= {"ArrayIndicesType": kind, "ArrayIndices": indices}
            levels.append(self.table("DimensionMetadata", Format=1, **fields))
        more = {"BlockMap": list(one.block_map)} if one.block_map else {}
        metadata = self.objects("SparsityParameters", "DimMetadata", levels)
        return self.table("SparsityParameters", TraversalOrder=list(one.order), DimMetadata=metadata, **more)

    def tensor(self, one: FilledTensor, place: int) -> Any:
        fields: dict[str, Any] = {"Name": one.name or f"t{place}", "Shape": list(one.shape)}
        if one.signature:
            fields["ShapeSignature"] = list(one.signature)
        if one.scale:
            scale = self.numbers("QuantizationParameters", "Scale", [one.scale], "PrependFloat32")
            zero = self.numbers("QuantizationParameters", "ZeroPoint", [one.zero], "PrependInt64")
            fields["Quantization"] = self.table("QuantizationParameters", Scale=scale, ZeroPoint=zero)
        if one.is_variable:
            fields["IsVariable"] = True
        if one.sparsity is not None:
            fields["Sparsity"] = self.sparsity(one.sparsity)
        if one.values is not None:
            self.buffers.append(self.table("Buffer", Data=self.out.CreateByteVector(one.values.tobytes())))
            fields["Buffer"] = len(self.buffers) - 1
        return self.table("Tensor", Type=getattr(self.lite.TensorType, one.dtype.upper()), **fields)

    def operator(self, one: tuple[str, Sequence[int], Sequence[int], str, dict[str, Any]]) -> Any:
        kind, inputs, outputs, options, values = one
        if kind not in self.codes:
            self.codes.append(kind)
        fields: dict[str, Any] = {"Inputs": list(inputs), "Outputs": list(outputs)}
        if options:
            fields["BuiltinOptions"] = self.table(options, **values)
            fields["BuiltinOptionsType"] = getattr(self.lite.BuiltinOptions, options)
        return self.table("Operator", OpcodeIndex=self.codes.index(kind), **fields)

    def graph(self, one: WrittenGraph) -> Any:
        tensors = [self.tensor(tensor, place) for place, tensor in enumerate(one.tensors)]
        operators = [self.operator(operator) for operator in one.operators]
        fields = {
            "Tensors": self.objects("SubGraph", "Tensors", tensors),
            "Operators": self.objects("SubGraph", "Operators", operators),
        }
        return self.table("SubGraph", Inputs=list(one.inputs), Outputs=list(one.outputs), **fields)


def write_tflite(*graphs: WrittenGraph) -> bytes:
    """Return a file with these graphs. The first one is the main graph."""
    writer = _Writer()
    writer.buffers.append(writer.table("Buffer"))
    made = [writer.graph(graph) for graph in graphs]
    numbers = [getattr(writer.lite.BuiltinOperator, kind) for kind in writer.codes]
    codes = [
        writer.table("OperatorCode", DeprecatedBuiltinCode=min(number, 127), BuiltinCode=number)
        for number in numbers
    ]
    model = writer.table(
        "Model",
        Version=3,
        OperatorCodes=writer.objects("Model", "OperatorCodes", codes),
        Subgraphs=writer.objects("Model", "Subgraphs", made),
        Buffers=writer.objects("Model", "Buffers", writer.buffers),
    )
    writer.out.Finish(model, b"TFL3")
    return bytes(writer.out.Output())
