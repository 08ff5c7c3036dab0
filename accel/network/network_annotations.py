"""A run's figures as notes in an ONNX model."""

from pathlib import Path

from accel.base.version import __version__
from accel.formats.onnx_annotations import Note, annotated
from accel.network.network_part import NetworkPart
from accel.network.network_program import NetworkProgram
from accel.network.network_result import LayerResult, NetworkResult


def annotated_model(path: Path, program: NetworkProgram, result: NetworkResult) -> bytes:
    """Return a model whose nodes say where they run, why, and in how many cycles."""
    programs = {
        part.fused.output: number
        for number, chain in enumerate(program.chains, start=1)
        for part in chain.layers
    }
    notes = [
        _note(part, layer, programs.get(part.fused.output))
        for part, layer in zip(program.parts, result.layers, strict=True)
    ]
    entries = {
        "version": __version__,
        "machine": program.config.label,
        "cycles": _number(result.cycles),
        "utilization": _percentage(result.utilization),
        "macs": str(result.macs),
        "host_macs": str(result.host_macs),
    }
    return annotated(path.read_bytes(), notes, {key: value for key, value in entries.items() if value})


def _note(part: NetworkPart, layer: LayerResult, program: int | None) -> Note:
    entries = {
        "where": layer.where,
        "reason": layer.reason,
        "operators": layer.operator,
        "program": _number(program),
        "mapping": layer.mapping,
        "macs": str(layer.macs) if layer.macs else "",
        "cycles": _number(layer.cycles),
        "utilization": _percentage(layer.utilization) if layer.macs else "",
        "bound_by": layer.bound or "",
        "bytes": ", ".join(f"{kind} {count}" for kind, count in layer.bytes_by_kind.items() if count),
    }
    return Note(
        layer=layer.name,
        main=part.fused.main.name,
        made=tuple(node.output for node in part.fused.nodes),
        result=part.fused.main.output,
        entries={key: value for key, value in entries.items() if value},
    )


def _number(number: int | None) -> str:
    return "" if number is None else str(number)


def _percentage(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"
