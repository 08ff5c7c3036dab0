"""Annotations on the nodes of an ONNX model: metadata that viewers show."""

from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from msgspec import Struct

from accel.base.errors import GraphError
from accel.formats.onnx_file import onnx

PREFIX = "accel."
"""Existing keys with this prefix are replaced."""


class Note(Struct, frozen=True, kw_only=True):
    """The annotation of one layer.

    Attributes:
        main: the node that gets all entries. Other nodes get only the layer's name.
        made: the nodes' results that the compiled graph contains.
    """

    layer: str
    main: str
    made: tuple[str, ...]
    result: str
    entries: Mapping[str, str]


def annotated(content: bytes, notes: Sequence[Note], whole: Mapping[str, str]) -> bytes:
    """Return a serialized model with annotations. Entries of the ``whole`` model have no prefix."""
    model = onnx().ModelProto()
    model.ParseFromString(content)
    nodes = list(model.graph.node)
    owners = _owners(nodes, notes)
    mains = _mains(nodes, owners, notes)
    for number, node in enumerate(nodes):
        mine = owners[number]
        if number in mains:
            note = notes[mains[number]]
            entries = {"layer": note.layer, **note.entries}
        elif mine:
            entries = {"layer": ", ".join(notes[one].layer for one in sorted(mine))}
        else:
            entries = {"where": "nowhere", "reason": "no output needs it"}
        _set(node, entries)
    _set(model, whole)
    return bytes(model.SerializeToString())


def check_annotation(source: Path, target: Path) -> None:
    """Refuse a target folder without the model's external data."""
    package = onnx()
    model = package.ModelProto()
    model.ParseFromString(source.read_bytes())
    tensors = [*model.graph.initializer, *(a.t for node in model.graph.node for a in node.attribute)]
    if any(one.data_location == package.TensorProto.EXTERNAL for one in tensors):
        here, there = source.parent.resolve(), target.parent.resolve()
        if here != there:
            raise GraphError(
                f"{str(target)!r} would not find the model's external data, which lies in {str(here)!r}; "
                "write it there"
            )


def _owners(nodes: Sequence[Any], notes: Sequence[Note]) -> list[set[int]]:
    of = {name: number for number, note in enumerate(notes) for name in note.made}
    consumers: dict[str, list[int]] = {}
    for number, node in enumerate(nodes):
        for name in node.input:
            consumers.setdefault(name, []).append(number)
    inherits_from = {
        number: {one for name in node.output if name and name not in of for one in consumers.get(name, ())}
        for number, node in enumerate(nodes)
    }
    found: list[set[int]] = [set() for _ in nodes]
    for number in TopologicalSorter(inherits_from).static_order():
        found[number] = {of[name] for name in nodes[number].output if name in of}
        for consumer in inherits_from[number]:
            found[number] |= found[consumer]
    return found


def _mains(nodes: Sequence[Any], owners: Sequence[set[int]], notes: Sequence[Note]) -> dict[int, int]:
    names = {node.name: number for number, node in enumerate(nodes) if node.name}
    makers = {name: number for number, node in enumerate(nodes) for name in node.output}
    found: dict[int, int] = {}
    for number, note in enumerate(notes):
        named = names.get(note.main)
        main = named if named is not None and number in owners[named] else makers.get(note.result)
        if main is not None:
            found.setdefault(main, number)
    return found


def _set(proto: Any, entries: Mapping[str, str]) -> None:
    kept = [(one.key, one.value) for one in proto.metadata_props if not one.key.startswith(PREFIX)]
    del proto.metadata_props[:]
    for key, value in [*kept, *((PREFIX + key, value) for key, value in entries.items())]:
        proto.metadata_props.add(key=key, value=value)
