"""Notes on an ONNX model's nodes, as metadata that viewers show; nothing else in the model changes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from accel.base.errors import GraphError
from accel.formats.onnx_file import onnx

PREFIX = "accel."
"""What keys of notes begin with; earlier notes are replaced."""


@dataclass(frozen=True, kw_only=True)
class Note:
    """What is noted of nodes that are carried out as one.

    Attributes:
        layer: what they are called together.
        main: name of the node that gets all entries; the others only say which layer they are part of.
        made: tensors that they make, as far as the graph that was compiled has them.
        result: of these, what the main node makes.
        entries: by keys without :data:`PREFIX`.
    """

    layer: str
    main: str
    made: tuple[str, ...]
    result: str
    entries: Mapping[str, str]


def annotated(content: bytes, notes: Sequence[Note], whole: Mapping[str, str]) -> bytes:
    """A model with notes.

    A node of the file that makes none of the tensors in ``notes``, as those between a Dequantize and a
    Quantize, goes with the nodes that take its results.

    Args:
        content: a ModelProto that was imported.
        notes: of all nodes that were carried out.
        whole: of the model, by keys without :data:`PREFIX`.
    """
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
    """Refuse to write a model where its external data would not be found.

    Args:
        source: of a model that can be read.
        target: where it is to be written with notes.

    Raises:
        GraphError: it has external data, and the target lies in another folder.
    """
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
    """The notes that each node belongs to, by their numbers."""
    of = {name: number for number, note in enumerate(notes) for name in note.made}
    takers: dict[str, list[int]] = {}
    for number, node in enumerate(nodes):
        for name in node.input:
            takers.setdefault(name, []).append(number)
    behind = {
        number: {taker for name in node.output if name and name not in of for taker in takers.get(name, ())}
        for number, node in enumerate(nodes)
    }
    found: list[set[int]] = [set() for _ in nodes]
    for number in TopologicalSorter(behind).static_order():
        found[number] = {of[name] for name in nodes[number].output if name in of}
        for taker in behind[number]:
            found[number] |= found[taker]
    return found


def _mains(nodes: Sequence[Any], owners: Sequence[set[int]], notes: Sequence[Note]) -> dict[int, int]:
    """The note whose entries a node gets, for those that get any."""
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
    """Give a node or a model these notes, and no earlier ones."""
    kept = [(one.key, one.value) for one in proto.metadata_props if not one.key.startswith(PREFIX)]
    del proto.metadata_props[:]
    for key, value in [*kept, *((PREFIX + key, value) for key, value in entries.items())]:
        proto.metadata_props.add(key=key, value=value)
