"""ONNX models as graphs."""

import os
from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from accel.base.arguments import check_integer
from accel.base.errors import GraphError
from accel.formats.onnx_file import File, FileInput, FileNode, read_file, read_model
from accel.formats.onnx_importer import Importer
from accel.formats.onnx_rules import RULES
from accel.graph.folding import fold_constants
from accel.graph.graph import Graph
from accel.graph.regions import match_regions
from accel.graph.tensor import Tensor

MAX_BATCH = 1 << 16
"""Inputs in a batch."""
_RECURRENT = {"GRU", "LSTM", "RNN", "Scan", "Loop", "If", "DynamicQuantizeLSTM"}
"""Operators with a state or with bodies of their own."""


def load_onnx(path: str | os.PathLike[str], *, batch: int | None = None) -> Graph:
    """The graph of an ONNX model, quantized in QOperator or in QDQ format.

    Args:
        path: of the model; external data must lie in its folder.
        batch: the size of a first axis that the model leaves open, 1 if not given.

    Raises:
        GraphError: the file cannot be read, an operator is unknown, a size depends on a run, the batch
            disagrees with one that the model fixes, or tensors do not fit.
        ShapeError: the batch is no positive integer.
    """
    return import_file(read_file(path), batch=batch)


def import_model(content: bytes, *, folder: Path | None = None, batch: int | None = None) -> Graph:
    """The graph of an ONNX model in memory.

    Args:
        content: a ModelProto.
        folder: where external data lies; None refuses any.
        batch: as for :func:`load_onnx`.

    Raises:
        GraphError, ShapeError: as :func:`load_onnx`.
    """
    return import_file(read_model(content, folder), batch=batch)


def import_file(file: File, *, batch: int | None = None) -> Graph:
    """The graph of an ONNX model that was read.

    Args:
        file: the model.
        batch: as for :func:`load_onnx`.

    Raises:
        GraphError, ShapeError: as :func:`load_onnx`.
    """
    graph = as_written(file, batch=batch)
    return fold_constants(match_regions(graph))


def as_written(file: File, *, batch: int | None = None) -> Graph:
    """The graph node by node: of a QDQ model one of float operators between Quantize and Dequantize.

    Args:
        file: the model.
        batch: as for :func:`load_onnx`.

    Raises:
        GraphError, ShapeError: as :func:`load_onnx`.
    """
    _check_operators(file.nodes, set(RULES))
    importer = Importer(file)
    for one, sizes in zip(file.inputs, _sizes(file.inputs, batch), strict=True):
        importer.builder.input(Tensor(name=one.name, shape=sizes, dtype=one.dtype))
    for node in _in_order(file):
        importer.take(node, RULES)
    return importer.graph()


def _sizes(inputs: Sequence[FileInput], batch: int | None) -> list[tuple[int, ...]]:
    """The inputs' shapes.

    Raises:
        GraphError: a size that is open and no batch's, or a batch that is fixed to another number.
        ShapeError: the batch is no positive integer.
    """
    wanted = None if batch is None else check_integer("the batch", batch, most=MAX_BATCH)
    symbols = {one.sizes[0] for one in inputs if one.sizes and isinstance(one.sizes[0], str)}
    found = []
    for one in inputs:
        sizes: list[int] = []
        for axis, size in enumerate(one.sizes):
            if isinstance(size, int):
                if axis == 0 and wanted not in {None, size}:
                    raise GraphError(
                        f"the batch is {wanted}; the model fixes that of input {one.name!r} to {size}"
                    )
                sizes.append(size)
            elif axis == 0 or size in symbols:
                sizes.append(wanted or 1)
            else:
                told = "without a name" if size is None else repr(size)
                raise GraphError(
                    f"axis {axis} of input {one.name!r} is {told}, of a size that only a run knows; only the "
                    "first may be, the batch"
                )
        found.append(tuple(sizes))
    return found


def _check_operators(nodes: Iterable[FileNode], known: set[tuple[str, str]]) -> None:
    """Refuse operators that nobody here knows, all in one message.

    Raises:
        GraphError: naming them.
    """
    reasons = []
    for node in nodes:
        key = (node.domain, node.kind)
        if key in known:
            continue
        why = "has a state or a body of its own" if node.kind in _RECURRENT else "is not known"
        reasons.append(f"{node.title} of node {node.name!r} {why}")
    if reasons:
        raise GraphError(f"the model has operators that cannot be imported: {'; '.join(reasons)}")


def _in_order(file: File) -> list[FileNode]:
    """Nodes behind those whose results they take.

    Raises:
        GraphError: a cycle, a tensor that nothing brings, or one that comes from two places.
    """
    sources = dict.fromkeys([*file.constants, *(one.name for one in file.inputs)], -1)
    for place, node in enumerate(file.nodes):
        for name in filter(None, node.outputs):
            if name in sources:
                raise GraphError(f"tensor {name!r} comes from two places; each must have one")
            sources[name] = place
    needs: dict[int, list[int]] = {}
    for place, node in enumerate(file.nodes):
        for name in filter(None, node.inputs):
            if name not in sources:
                raise GraphError(
                    f"node {node.name!r} takes {name!r}, which is no input, no initializer and no node's "
                    "result"
                )
        needs[place] = [sources[name] for name in node.inputs if name and sources[name] >= 0]
    if all(max(before, default=-1) < place for place, before in needs.items()):
        return list(file.nodes)
    try:
        return [file.nodes[place] for place in TopologicalSorter(needs).static_order()]
    except CycleError as error:
        names = ", ".join(repr(file.nodes[place].name) for place in dict.fromkeys(error.args[1]))
        raise GraphError(f"nodes {names} wait for one another; a graph must have no cycle") from None
