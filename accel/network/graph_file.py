"""Files of graphs that are not compiled.

The zip archive is a compiled network's, with the format ``accel-graph``.
"""

import io
import json
import os
from typing import IO, Any

import numpy as np

from accel.base.arguments import check_path
from accel.base.atomic_files import write_atomically
from accel.base.errors import AccelError, ProgramError
from accel.graph.graph import Graph
from accel.graph.graph_serialization import graph_from_data, graph_to_data
from accel.graph.graph_tensor import Array, Tensor
from accel.image.manifest_entries import read_entry
from accel.image.zip_archive import Archive, damage, is_archive, write_archive

FORMAT = "accel-graph"
VERSION = 1


def save_graph(graph: Graph, path: str | os.PathLike[str]) -> None:
    """Write a graph, all or nothing."""
    target = check_path("graph", path)
    data = {"format": FORMAT, "version": VERSION, "graph": graph_to_data(graph)}
    buffer = io.BytesIO()
    write_archive(buffer, json.dumps(data).encode(), constant_members(graph))
    write_atomically(target, buffer.getvalue())


def load_graph(path: str | os.PathLike[str]) -> Graph:
    source, name = check_path("graph", path), f"graph {os.fspath(path)!r}"
    try:
        with open(source, "rb") as file:
            if not is_archive(file):
                raise ProgramError(f"{name} is not a graph file; save_graph writes such files")
            return _read(name, file)
    except OSError as error:
        raise ProgramError(f"{name} cannot be read: {error.strerror}") from None


def _read(name: str, file: IO[bytes]) -> Graph:
    try:
        archive = Archive(file)
        data = archive.manifest()
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise ProgramError("it holds no graph")
        version = read_entry(data, "version", int)
        if not 1 <= version <= VERSION:
            raise ProgramError(f"its format version is {version}; this release reads up to {VERSION}")
        return read_graph(data, archive)
    except AccelError as error:
        raise ProgramError(f"{name}: {error}") from None
    except Exception as error:  # damaged data raises exceptions of many types
        raise ProgramError(f"{name} is damaged: {damage(error)}") from None


def constant_members(graph: Graph) -> list[tuple[str, bytes]]:
    return [(_member(number), _raw(array)) for number, array in enumerate(graph.constants.values())]


def read_graph(data: dict[str, Any], archive: Archive) -> Graph:
    numbers = iter(range(len(read_entry(read_entry(data, "graph", dict), "constants", list))))

    def read(tensor: Tensor) -> Array:
        raw = archive.member(_member(next(numbers)), tensor.nbytes, tensor.nbytes)
        values = np.frombuffer(raw, dtype=np.dtype(tensor.dtype).newbyteorder("<"))
        return values.astype(tensor.dtype).reshape(tensor.shape)

    return graph_from_data(data["graph"], read)


def _raw(array: Array) -> bytes:
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def _member(number: int) -> str:
    return f"constants/{number}.bin"
