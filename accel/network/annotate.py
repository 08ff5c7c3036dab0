"""What a run took, as notes on the nodes of the model that was compiled."""

from pathlib import Path

from accel.base.version import __version__
from accel.formats.onnx_annotate import Note, annotated
from accel.network.place import Part
from accel.network.program import NetworkProgram
from accel.network.result import LayerResult, NetworkResult


def annotated_model(path: Path, program: NetworkProgram, result: NetworkResult) -> bytes:
    """An ONNX model in which each node says where it runs, why, and what its layer takes.

    Args:
        path: of the model that was compiled.
        program: what became of it.
        result: of a run of it.
    """
    programs = {
        part.stage.output: number
        for number, chain in enumerate(program.chains, start=1)
        for part in chain.layers
    }
    notes = [
        _note(part, layer, programs.get(part.stage.output))
        for part, layer in zip(program.parts, result.layers, strict=True)
    ]
    whole = {
        "version": __version__,
        "machine": program.config.label,
        "cycles": _text(result.cycles),
        "utilization": _share(result.utilization),
        "macs": str(result.macs),
        "host_macs": str(result.host_macs),
    }
    return annotated(path.read_bytes(), notes, {key: value for key, value in whole.items() if value})


def _note(part: Part, layer: LayerResult, program: int | None) -> Note:
    entries = {
        "where": layer.where,
        "reason": layer.reason,
        "operators": layer.operator,
        "program": _text(program),
        "mapping": layer.mapping,
        "macs": str(layer.macs) if layer.macs else "",
        "cycles": _text(layer.cycles),
        "utilization": _share(layer.utilization) if layer.macs else "",
        "bound_by": layer.bound_by or "",
        "bytes": ", ".join(f"{kind} {count}" for kind, count in layer.bytes_by_kind.items() if count),
    }
    return Note(
        layer=layer.name,
        main=part.stage.main.name,
        made=tuple(node.output for node in part.stage.nodes),
        result=part.stage.main.output,
        entries={key: value for key, value in entries.items() if value},
    )


def _text(number: int | None) -> str:
    return "" if number is None else str(number)


def _share(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"
