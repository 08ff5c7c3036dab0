"""Import of ONNX models as graphs."""

import os
from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from accel.base.arguments import check_integer
from accel.base.errors import GraphError, ShapeError, nearest
from accel.base.records import replace
from accel.base.run_choices import MAX_BATCH
from accel.formats.integer_operators import with_integer_operators
from accel.formats.onnx_file import File, FileInput, FileNode, read_file, read_model
from accel.formats.onnx_foreign import import_foreign, obstacle
from accel.formats.onnx_importer import Importer
from accel.formats.onnx_operator_rules import RULES
from accel.formats.onnx_tables import with_runtime_tables
from accel.formats.onnx_tail import has_open_shape, tail_of
from accel.graph.foreign_operator import OpenShapeError
from accel.graph.graph import Graph
from accel.graph.graph_tail import Tail
from accel.graph.graph_tensor import Tensor
from accel.rewriting.constant_rules import EQUAL_QUANTIZES
from accel.rewriting.rule_application import simplify

_OPAQUE = {"Flatten", "Gather", "GlobalMaxPool", "ReduceMax", "Split", "Sum"}
_OPAQUE |= {"DepthToSpace", "Resize", "SpaceToDepth", "Upsample"}

Shapes = Mapping[str, Sequence[int]]


def load_onnx(
    path: str | os.PathLike[str], *, batch: int | None = None, shapes: Shapes | None = None
) -> Graph:
    """Arguments and errors are those of :func:`accel.load_onnx`."""
    return import_file(read_file(path), batch=batch, shapes=shapes)


def import_model(content: bytes, *, folder: Path | None = None, batch: int | None = None) -> Graph:
    return import_file(read_model(content, folder), batch=batch)


def import_file(file: File, *, batch: int | None = None, shapes: Shapes | None = None) -> Graph:
    graph, tail = _as_written(file, batch, shapes or {})
    opaque = {output for node in file.nodes if _is_opaque(node) for output in node.outputs}
    graph, _ = simplify(graph, [EQUAL_QUANTIZES])
    graph = with_runtime_tables(with_integer_operators(graph, opaque))
    return graph if tail is None else replace(graph, tail=tail)


def _is_opaque(node: FileNode) -> bool:
    """For example, Flatten is a Reshape in the graph, but ONNX Runtime moves no Quantize through it."""
    return node.kind in _OPAQUE or (node.kind == "MaxPool" and node.opset < 12)


def _as_written(file: File, batch: int | None, shapes: Shapes) -> tuple[Graph, Tail | None]:
    """Import node by node, up to nodes whose shapes depend on values."""
    _check_operators(file.nodes, set(RULES))
    importer = Importer(file)
    for one, sizes in zip(file.inputs, input_shapes(file.inputs, batch, shapes), strict=True):
        importer.builder.input(Tensor(name=one.name, shape=sizes, dtype=one.dtype))
    tail: list[FileNode] = []
    tail_results: set[str] = set()
    for node in _in_order(file):
        if tail_results.isdisjoint(node.reads) and not has_open_shape(importer, node):
            try:
                importer.take(node, RULES, import_foreign)
                continue
            except OpenShapeError:
                pass
        tail.append(node)
        tail_results.update(filter(None, node.outputs))
    if tail_results.isdisjoint(file.outputs):
        return importer.graph(), None
    found, needed = tail_of(importer, _needed(tail, file.outputs))
    return importer.graph(needed), found


def _needed(nodes: Sequence[FileNode], outputs: Iterable[str]) -> list[FileNode]:
    wanted, found = set(outputs), list[FileNode]()
    for node in reversed(nodes):
        if not wanted.isdisjoint(node.outputs):
            found.insert(0, node)
            wanted.update(node.reads)
    return found


def input_shapes(inputs: Sequence[FileInput], batch: int | None, shapes: Shapes) -> list[tuple[int, ...]]:
    """A given shape takes precedence over the batch."""
    wanted = None if batch is None else check_integer("the batch", batch, most=MAX_BATCH)
    symbols = {one.sizes[0] for one in inputs if one.sizes and isinstance(one.sizes[0], str)}
    found = []
    open_inputs = []
    for declared, one in zip(inputs, with_shapes(inputs, shapes), strict=True):
        sizes: list[int] = []
        for axis, size in enumerate(one.sizes):
            if isinstance(size, int):
                is_declared = declared.sizes[axis] == size and one.name not in shapes
                if axis == 0 and is_declared and wanted not in {None, size}:
                    raise GraphError(
                        f"the batch is {wanted}; the model fixes that of input {one.name!r} to {size}"
                    )
                sizes.append(size)
            elif axis == 0 or size in symbols:
                sizes.append(wanted or 1)
            else:
                open_inputs.append(one)
                break
        found.append(tuple(sizes))
    if open_inputs:
        texts = {one.name: ",".join(map(_size_text, one.sizes)) for one in open_inputs}
        options = " ".join(f"--shape {name}={text}" for name, text in texts.items())
        raise GraphError(f"inputs have open sizes; give them, with numbers for the names: {options}")
    return found


def with_shapes(inputs: Sequence[FileInput], shapes: Shapes) -> list[FileInput]:
    """An axis name has one size: if ``x`` is ``(n, 3)`` and ``(5, 3)`` is given, ``n`` is 5 in all inputs.

    Raises:
        ShapeError: a name is unknown, or a shape contradicts a fixed size.
    """
    names = [one.name for one in inputs]
    for name in shapes:
        if name not in names:
            raise ShapeError(f"a shape is given for {name!r}; {nearest(name, names)}")
    given = {one.name: _given(one, shapes[one.name]) for one in inputs if one.name in shapes}
    known = {
        name: size
        for one in inputs
        for name, size in zip(one.sizes, given.get(one.name, ()), strict=False)
        if isinstance(name, str)
    }
    return [
        replace(
            one,
            sizes=given.get(
                one.name,
                tuple(known.get(size, size) if isinstance(size, str) else size for size in one.sizes),
            ),
        )
        for one in inputs
    ]


def _size_text(size: int | str | None) -> str:
    return "?" if size is None else str(size)


def _given(one: FileInput, shape: Sequence[int]) -> tuple[int, ...]:
    sizes = tuple(check_integer(f"a size of input {one.name!r}", size) for size in shape)
    fixed = [size if isinstance(size, int) else None for size in one.sizes]
    if len(sizes) != len(fixed) or any(f not in {None, size} for f, size in zip(fixed, sizes, strict=True)):
        declared = ",".join(map(_size_text, one.sizes))
        raise ShapeError(f"the shape of input {one.name!r} is {sizes}; the model declares {declared}")
    return sizes


def _check_operators(nodes: Iterable[FileNode], known: set[tuple[str, str]]) -> None:
    reasons = []
    for node in nodes:
        key = (node.domain, node.kind)
        if key in known:
            continue
        if why := obstacle(node):
            reasons.append(f"{node.title} of node {node.name!r} {why}")
    if reasons:
        raise GraphError(f"the model has operators that cannot be imported: {'; '.join(reasons)}")


def _in_order(file: File) -> list[FileNode]:
    sources = dict.fromkeys([*file.constants, *(one.name for one in file.inputs)], -1)
    for place, node in enumerate(file.nodes):
        for name in filter(None, node.outputs):
            if name in sources:
                raise GraphError(f"tensor {name!r} has two producers; it must have one")
            sources[name] = place
    needs: dict[int, list[int]] = {}
    for place, node in enumerate(file.nodes):
        for name in node.reads:
            if name not in sources:
                raise GraphError(
                    f"node {node.name!r} reads {name!r}, which is neither an input nor an initializer nor a "
                    "node's output"
                )
        needs[place] = [sources[name] for name in node.reads if sources[name] >= 0]
    if all(max(before, default=-1) < place for place, before in needs.items()):
        return list(file.nodes)
    try:
        return [file.nodes[place] for place in TopologicalSorter(needs).static_order()]
    except CycleError as error:
        names = ", ".join(repr(file.nodes[place].name) for place in dict.fromkeys(error.args[1]))
        raise GraphError(f"nodes {names} form a cycle; a graph must have none") from None
