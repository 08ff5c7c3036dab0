"""ONNX files as plain data. Every size is checked before memory is allocated."""

import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from accel.base.errors import GraphError
from accel.base.optional_extras import not_installed
from accel.formats.model_file import read_model_file
from accel.graph.graph import MAX_BYTES, MAX_NODES
from accel.graph.graph_tensor import DTYPES, MAX_TENSOR_BYTES, Array

OLDEST_OPSET = 10
CONVERTED_OPSET = 7
"""ONNX's version converter brings these models to :data:`OLDEST_OPSET`."""
MICROSOFT = "com.microsoft"
"""The domain of ONNX Runtime's operators, for example QLinearAdd."""


class FileNode(Struct, frozen=True, kw_only=True):
    """A node of the file.

    Attributes:
        name: or its first output's if it has none.
        opset: the version of its domain.
        inputs, outputs: tensor names, empty for omitted ones.
        attributes: numbers, strings, arrays, lists of them, and subgraphs as ``onnx.GraphProto``.
        captured: outer tensors that the subgraphs read.
    """

    name: str
    kind: str
    domain: str
    opset: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    captured: tuple[str, ...] = ()

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(filter(None, (*self.inputs, *self.captured))))

    @property
    def title(self) -> str:
        found = f"{self.domain}.{self.kind}" if self.domain else self.kind
        return found if found.isprintable() else repr(found)


_KINDS = {
    "map_type": "a map",
    "opaque_type": "a value of an unknown type",
    "optional_type": "an optional value",
    "sequence_type": "a sequence",
    "sparse_tensor_type": "a sparse tensor",
}
"""Unsupported types of inputs."""
_UNPACKED = {"int4": "int8", "uint4": "uint8"}
"""These become wider, with the same values."""


class FileInput(Struct, frozen=True, kw_only=True):
    """A declared input. A size is a number, the name of an open size, or None for one without name."""

    name: str
    dtype: str
    sizes: tuple[int | str | None, ...]


class File(Struct, frozen=True, kw_only=True):
    """A model. ``four_bit`` are names of constants."""

    name: str
    inputs: tuple[FileInput, ...]
    outputs: tuple[str, ...]
    nodes: tuple[FileNode, ...]
    constants: Mapping[str, Array]
    four_bit: frozenset[str] = frozenset()


def onnx() -> Any:
    try:
        import onnx as package
        import onnx.numpy_helper
    except ImportError:
        raise GraphError(not_installed("ONNX files need onnx", "onnx")) from None
    return package


def read_file(path: str | os.PathLike[str]) -> File:
    """External data must lie in the same folder."""
    return read_model_file(path, read_model)


def read_model(content: bytes, folder: Path | None = None) -> File:
    """Without a folder, external data is refused."""
    package = onnx()
    model = package.ModelProto()
    try:
        model.ParseFromString(content)
    except Exception:
        raise GraphError("this is not an ONNX model; it does not parse as one") from None
    if not model.HasField("graph") or not model.opset_import:
        raise GraphError("this is not an ONNX model; it has no graph or no opset")
    if len(model.functions):
        model = _inlined(package, model)
    graph = model.graph
    if len(graph.node) > MAX_NODES:
        raise GraphError(f"the model has {len(graph.node)} nodes; it may have {MAX_NODES}")
    if len(graph.sparse_initializer):
        raise GraphError("the model has sparse initializers; they must be dense")
    opsets = {_domain(_text(one.domain)): one.version for one in model.opset_import}
    newest = package.defs.onnx_opset_version()
    version = opsets.get("", OLDEST_OPSET)
    if not CONVERTED_OPSET <= version <= newest:
        raise GraphError(f"the model's opset is {version}; it must be in {CONVERTED_OPSET}..{newest}")
    if version < OLDEST_OPSET:
        model = _converted(package, model, version)
        graph, opsets[""] = model.graph, OLDEST_OPSET
    reader = _Reader(package, folder)
    constants = {}
    stored = {one.name: one for one in graph.initializer}
    stored |= {
        name: attribute.t
        for one in graph.node
        if one.op_type == "Constant"
        for name, attribute in zip(one.output, one.attribute, strict=False)
    }
    for one in graph.initializer:
        if one.name in constants:
            raise GraphError(f"initializer {one.name!r} appears twice; names must be unique")
        constants[_text(one.name)] = reader.array(one, f"initializer {one.name!r}")
    return File(
        name=_text(graph.name),
        inputs=tuple(_input(package, one) for one in graph.input if one.name not in constants),
        outputs=tuple(_text(one.name) for one in graph.output),
        nodes=tuple(reader.nodes(graph.node, opsets)),
        constants=constants,
        four_bit=frozenset(name for name, one in stored.items() if reader.is_four_bit(one)),
    )


def captured(graph: Any) -> list[str]:
    made = {one.name for one in (*graph.input, *graph.initializer)}
    found: list[str] = []
    for node in graph.node:
        inner = [name for one in node.attribute if one.HasField("g") for name in captured(one.g)]
        found += [_text(name) for name in (*node.input, *inner) if name and name not in made]
        made |= set(node.output)
    found += [one.name for one in graph.output if one.name not in made]
    return found


def rename_captured(graph: Any, names: Mapping[str, str]) -> None:
    made = {one.name for one in (*graph.input, *graph.initializer)}
    for node in graph.node:
        outside = {name: new for name, new in names.items() if name not in made}
        node.input[:] = [outside.get(name, name) for name in node.input]
        for one in node.attribute:
            if one.HasField("g"):
                rename_captured(one.g, outside)
        made |= set(node.output)
    for one in graph.output:
        if one.name not in made:
            one.name = names.get(one.name, one.name)


def _text(value: str | bytes) -> str:
    if isinstance(value, bytes):
        raise GraphError(f"a name is {value!r}; it must be UTF-8")
    return value


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name


def _converted(package: Any, model: Any, version: int) -> Any:
    from onnx import version_converter

    try:
        return version_converter.convert_version(model, OLDEST_OPSET)
    except Exception as error:
        raise GraphError(
            f"the model's opset is {version}, and it cannot be converted to {OLDEST_OPSET}: "
            f"{' '.join(str(error).split())}"
        ) from None


def _inlined(package: Any, model: Any) -> Any:
    try:
        from onnx import inliner

        return inliner.inline_local_functions(model)
    except Exception as error:
        names = ", ".join(sorted({one.name for one in model.functions}))
        raise GraphError(f"the model's own functions {names} cannot be inlined: {error}") from None


def _input(package: Any, value: Any) -> FileInput:
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type":
        what = _KINDS.get(kind, "a value without a type")
        raise GraphError(f"input {value.name!r} is {what}; it must be a tensor of numbers")
    declared = value.type.tensor_type
    if not declared.HasField("shape"):
        raise GraphError(f"input {value.name!r} has no shape; its sizes must be declared")
    sizes: list[int | str | None] = []
    for one in declared.shape.dim:
        which = one.WhichOneof("value")
        is_fixed = which == "dim_value" and one.dim_value >= 0  # some exporters write -1 for open sizes
        sizes.append(one.dim_value if is_fixed else (_text(one.dim_param) or None))
    try:
        dtype = package.helper.tensor_dtype_to_np_dtype(declared.elem_type).name
    except (KeyError, ValueError, TypeError):
        raise GraphError(
            f"input {value.name!r} has the type {declared.elem_type}, which ONNX does not have"
        ) from None
    if dtype not in DTYPES:
        what = "text" if dtype == "object" else dtype
        raise GraphError(
            f"input {value.name!r} is {what}; it must be {', '.join(DTYPES[:-1])} or {DTYPES[-1]}"
        )
    return FileInput(name=_text(value.name), dtype=dtype, sizes=tuple(sizes))


class _Reader:
    def __init__(self, package: Any, folder: Path | None) -> None:
        self._package = package
        self._folder = folder
        self._bytes = 0

    def nodes(self, protos: Iterable[Any], opsets: Mapping[str, int]) -> Iterable[FileNode]:
        for place, one in enumerate(protos):
            domain, kind = _domain(_text(one.domain)), _text(one.op_type)
            inputs, outputs = (tuple(map(_text, names)) for names in (one.input, one.output))
            name = _text(one.name) or next(filter(None, outputs), f"{kind} {place}")
            attributes = {_text(a.name): self._attribute(a, name) for a in one.attribute}
            if domain not in opsets:
                raise GraphError(
                    f"node {name!r} is of domain {domain or 'ai.onnx'!r}; the model imports no opset of it"
                )
            yield FileNode(
                name=name,
                kind=kind,
                domain=domain,
                opset=opsets[domain],
                inputs=inputs,
                outputs=outputs,
                attributes=attributes,
                captured=tuple(
                    dict.fromkeys(text for a in one.attribute if a.HasField("g") for text in captured(a.g))
                ),
            )

    def _attribute(self, proto: Any, node: str) -> Any:
        """Return None for a kind that no importer reads."""
        kinds = self._package.AttributeProto
        what = f"attribute {proto.name!r} of node {node!r}"
        plain = {kinds.FLOAT: "f", kinds.INT: "i", kinds.FLOATS: "floats", kinds.INTS: "ints"}
        if proto.type in plain:
            value = getattr(proto, plain[proto.type])
            return value if proto.type in {kinds.FLOAT, kinds.INT} else list(value)
        if proto.type == kinds.STRING:
            return proto.s.decode("utf-8", "replace")
        if proto.type == kinds.STRINGS:
            return [one.decode("utf-8", "replace") for one in proto.strings]
        if proto.type == kinds.TENSOR:
            return self.array(proto.t, what)
        if proto.type == kinds.GRAPH:
            self._check_subgraph(proto.g, what)
            return proto.g
        return None

    def _check_subgraph(self, graph: Any, what: str) -> None:
        """Refuse large or external constants, which ONNX Runtime would read itself."""
        attributes = [one for node in graph.node for one in node.attribute]
        for one in (*graph.initializer, *(a.t for a in attributes if a.HasField("t"))):
            if one.data_location == self._package.TensorProto.EXTERNAL:
                raise GraphError(f"{what} has external data; constants of subgraphs must be in the model")
            self.array(one, what)
        for inner in attributes:
            if inner.HasField("g"):
                self._check_subgraph(inner.g, what)

    def array(self, proto: Any, what: str) -> Array:
        shape = tuple(proto.dims)
        if any(size < 0 for size in shape):
            raise GraphError(f"{what} has the shape {shape}; sizes must not be negative")
        try:
            dtype = np.dtype(self._package.helper.tensor_dtype_to_np_dtype(proto.data_type))
        except (KeyError, ValueError, TypeError):
            raise GraphError(f"{what} has the type {proto.data_type}, which ONNX does not have") from None
        if dtype.name in _UNPACKED:
            return self._unpacked(proto, _UNPACKED[dtype.name], what)
        if dtype.kind not in "fiub" or dtype.itemsize > 8:
            raise GraphError(f"{what} is {dtype.name}; it must hold numbers that numpy has")
        if proto.HasField("segment"):
            raise GraphError(f"{what} comes in segments; it must be whole")
        size = math.prod(shape) * dtype.itemsize
        self._bytes += size
        if size > MAX_TENSOR_BYTES or self._bytes > MAX_BYTES:
            raise GraphError(
                f"{what} of shape {shape} takes {size} bytes; it may take {MAX_TENSOR_BYTES}, and all "
                f"together {MAX_BYTES}"
            )
        if proto.data_location == self._package.TensorProto.EXTERNAL:
            raw = self._external(proto, size, what)
        elif proto.HasField("raw_data"):
            raw = proto.raw_data
        else:
            return self._typed(proto, shape, dtype, what)
        if len(raw) != size:
            raise GraphError(f"{what} of shape {shape} has {len(raw)} bytes; it must have {size}")
        return np.frombuffer(raw, dtype=dtype.newbyteorder("<")).astype(dtype).reshape(shape)

    def is_four_bit(self, proto: Any) -> bool:
        types = self._package.TensorProto
        return proto.data_type in {types.INT4, types.UINT4}

    def _unpacked(self, proto: Any, dtype: str, what: str) -> Array:
        size = math.prod(proto.dims)
        self._bytes += size
        if size > MAX_TENSOR_BYTES or self._bytes > MAX_BYTES:
            raise GraphError(f"{what} has {size} values; it may have {MAX_TENSOR_BYTES}")
        if proto.data_location == self._package.TensorProto.EXTERNAL:
            raise GraphError(f"{what} has 4-bit values in another file; they must be in the model")
        try:
            return np.asarray(self._package.numpy_helper.to_array(proto)).astype(dtype)
        except (ValueError, TypeError) as error:
            raise GraphError(f"{what} cannot be read: {error}") from None

    def _typed(self, proto: Any, shape: tuple[int, ...], dtype: Any, what: str) -> Array:
        field = self._package.helper.tensor_dtype_to_field(proto.data_type)
        count = len(getattr(proto, field))
        if count != math.prod(shape):
            raise GraphError(f"{what} of shape {shape} has {count} values; it must have {math.prod(shape)}")
        try:
            found: Array = self._package.numpy_helper.to_array(proto)
        except Exception as error:
            raise GraphError(f"{what} cannot be read: {error}") from None
        return found

    def _external(self, proto: Any, size: int, what: str) -> bytes:
        entries = {_text(one.key): _text(one.value) for one in proto.external_data}
        location = entries.get("location", "")
        if self._folder is None:
            raise GraphError(f"{what} lies in {location!r}; a model without a folder has no external data")
        folder = self._folder.resolve()
        try:
            path = (folder / location).resolve()
            offset, length = int(entries.get("offset", "0")), int(entries.get("length", str(size)))
        except (ValueError, OSError, RuntimeError):
            raise GraphError(f"{what} lies in {location!r}, which names no part of a file") from None
        if not location or not path.is_relative_to(folder):
            raise GraphError(f"{what} lies in {location!r}; external data must be in the model's folder")
        if offset < 0 or length != size:
            raise GraphError(
                f"{what} has {length} bytes from {offset} on in {location!r}; it must have {size}"
            )
        try:
            if not path.is_file():
                raise GraphError(f"{what} lies in {location!r}; there is no such file in the model's folder")
            with path.open("rb") as file:
                file.seek(offset)
                return bytes(file.read(size))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise GraphError(f"{what} lies in {location!r}, which cannot be read: {reason}") from None
