"""The manifest of a package as plain data."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from accel.base.version import __version__
from accel.core.alu_operations import STOCK_NAMES
from accel.core.config import ALU_OPS, PAGE_BYTES, SPECS, Config
from accel.core.config.alu_ops_field import with_digests
from accel.core.registers import ID, MAP_VERSION, REGISTERS, constants
from accel.deployment.binary_files import Content
from accel.deployment.deployment_steps import (
    Binary,
    ChannelLookup,
    Deployment,
    Detail,
    Fill,
    HostArray,
    Lookup,
    Means,
    Move,
    Pack,
    Prepare,
    Run,
    Scaled,
    Show,
    Softmax,
    Step,
    Stream,
    Unpack,
)

FORMAT = "accel-package"
VERSION = 1
"""It changes whenever an entry changes its meaning."""
MANIFEST = "manifest.json"


def identity(config: Config) -> dict[str, int]:
    """Return the constant registers that a machine must have. Timing may differ."""
    return {
        name: value
        for name, value in constants(config).items()
        if name in SPECS and SPECS[name].kind == "geometry"
    }


def manifest(deployment: Deployment, content: Content, files: Mapping[str, bytes]) -> dict[str, Any]:
    """Return the manifest."""
    names = list(content.files)
    config = deployment.config
    return {
        "format": FORMAT,
        "version": VERSION,
        "accel": __version__,
        "name": deployment.name,
        "machine": {
            "label": config.label,
            "geometry": {name: getattr(config, name) for name in SPECS if SPECS[name].kind == "geometry"},
            **({} if config.alu_ops == STOCK_NAMES else {ALU_OPS: with_digests(config.alu_ops)}),
            "registers": [
                {"name": name, "offset": REGISTERS[name].offset, "value": value}
                for name, value in ({"id": ID, "version": MAP_VERSION} | identity(config)).items()
            ],
        },
        "memory": {"bytes": deployment.memory_bytes, "alignment": PAGE_BYTES},
        "workspace_bytes": deployment.workspace_bytes,
        "files": {
            name: {"bytes": len(data), "sha256": sha256(data).hexdigest()} for name, data in files.items()
        },
        "segments": [
            {
                "stream": one.stream,
                "offset": one.offset,
                "bytes": len(one.content),
                "file": names[one.file],
                "file_offset": one.file_offset,
                "crc32": one.crc,
                "sha256": sha256(one.content).hexdigest(),
            }
            for one in content.segments
        ],
        "streams": [_stream(stream) for stream in deployment.streams],
        "inputs": [_array(one) for one in deployment.inputs],
        "outputs": [_array(one) for one in deployment.outputs],
        "arrays": [_array(one) | {"place": one.place, "at": one.at} for one in deployment.arrays],
        "steps": [_step(deployment, step) for step in deployment.steps],
        "left_out": [{"name": name, "reason": reason} for name, reason in deployment.left_out],
    }


def _stream(stream: Stream) -> dict[str, Any]:
    return {
        "window": {"offset": stream.offset, "bytes": stream.window_bytes},
        "entry": stream.offset + stream.image.code_offset,
        "instructions": len(stream.image.instructions),
        "cycles": stream.cycles,
        "layers": list(stream.layers),
    }


def _array(one: HostArray) -> dict[str, Any]:
    quantization = one.quantization
    return {
        "name": one.name,
        "dtype": one.dtype,
        "shape": list(one.shape),
        "bytes": one.nbytes,
        "quantization": None
        if quantization is None
        else {
            "scale": list(quantization.scale),
            "zero": list(quantization.zero),
            "axis": quantization.axis,
        },
    }


def _step(deployment: Deployment, step: Step) -> dict[str, Any]:
    return {
        "kind": step.detail.kind,
        "source": step.source,
        "other": step.other,
        "target": step.target,
        **_detail(deployment, step.detail),
    }


def _detail(deployment: Deployment, detail: Detail) -> dict[str, Any]:
    match detail:
        case Pack() | Unpack():
            tensor = detail.tensor
            return {
                "stream": detail.stream,
                "offset": deployment.streams[detail.stream].offset + tensor.offset,
                "bytes": tensor.nbytes,
                "dtype": tensor.dtype,
                "layout": tensor.layout.to_dict(),
                "view": None if tensor.view is None else tensor.view.to_dict(),
            }
        case Run():
            return {"stream": detail.stream}
        case Scaled():
            return {
                "dtype": detail.dtype,
                "shape": list(detail.shape),
                "scale": list(detail.quantization.scale),
                "zero": list(detail.quantization.zero),
                "axis": detail.quantization.axis,
            }
        case Show():
            return {"dtype": detail.dtype, "view": detail.view.to_dict()}
        case Move():
            return {
                "value_bytes": detail.value_bytes,
                "sizes": list(detail.sizes),
                "source_start": detail.source_start,
                "source_strides": list(detail.source_strides),
                "target_start": detail.target_start,
                "target_strides": list(detail.target_strides),
            }
        case Fill():
            return {
                "values": detail.values.hex(),
                "value_bytes": detail.value_bytes,
                "bytes": detail.nbytes,
            }
        case Lookup():
            return {"table": list(detail.table), "values": detail.size}
        case ChannelLookup():
            return {
                "tables": list(detail.tables),
                "outer": detail.outer,
                "channels": detail.channels,
                "inner": detail.inner,
            }
        case Softmax():
            return {"outer": detail.outer, "count": detail.count, "inner": detail.inner}
        case Binary():
            return {
                "operation": detail.operation,
                "dtype": detail.dtype,
                "sizes": list(detail.sizes),
                "source_strides": list(detail.source_strides),
                "other_strides": list(detail.other_strides),
                "zeros": list(detail.zeros),
                "factors": list(detail.factors),
            }
        case Means():
            return {
                "dtype": detail.dtype,
                "planes": detail.planes,
                "sizes": list(detail.sizes),
                "outputs": list(detail.outputs),
                "kernel": list(detail.windows.kernel),
                "strides": list(detail.windows.strides),
                "dilations": list(detail.windows.dilations),
                "begin": list(detail.windows.begin),
                "count_padding": detail.count_padding,
                "source": {"scale": detail.source[0], "zero": detail.source[1]},
                "target": {"scale": detail.target[0], "zero": detail.target[1]},
            }
        case Prepare():
            return {
                "values": detail.size,
                "accepted": list(detail.accepted),
                "bounds": list(detail.bounds),
                "offset": detail.offset,
            }
