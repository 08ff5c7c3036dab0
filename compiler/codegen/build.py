"""The whole path from a schedule to a program image."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from accel.base.arguments import check_array, check_mapping
from accel.base.errors import ShapeError, nearest
from accel.compiler.codegen.emit import Emission
from accel.compiler.codegen.memory import DramMap
from accel.compiler.codegen.origins import Origins
from accel.compiler.codegen.stream import linked_stream
from accel.compiler.expr.data import expression_to_data
from accel.compiler.nest.nest import Identity, Nest, Parameters, Widen
from accel.compiler.nest.passes import Compilation, lowered
from accel.compiler.schedule.schedule import Schedule
from accel.core.config import Config
from accel.core.isa import check_encodable
from accel.image.image import Image, ImageTensor, Region
from accel.image.source import Options, Source
from accel.image.tensor import Role, array_bytes


def compile_schedule(
    schedule: Schedule,
    config: Config,
    *,
    constants: Mapping[str, npt.NDArray[Any]] | None = None,
    options: Options | None = None,
    fold: bool = True,
) -> Image:
    """Compile a schedule to a program.

    Args:
        schedule: with all stages in scratchpads tensorized or copies.
        config: the machine.
        constants: values of inputs that are known now; they are packed into the program.
        options: how the schedule came about, to be kept in the program.
        fold: fold reset and bias into one step where possible (:mod:`accel.compiler.nest.fold`).

    Raises:
        ConfigError, ScheduleError, TensorizeError: the schedule does not fit the machine.
        ShapeError: a constant of an unknown name, another shape or dtype.
    """
    begin = time.perf_counter()
    check_encodable(config)
    known = _checked_constants(schedule, constants)
    compiled = lowered(Compilation(schedule=schedule, fold=fold, constants=known))
    nest = compiled.nest
    emission = Emission(nest, config)
    stream = linked_stream(emission, nest.starts, Origins(nest, schedule.steps))
    tensors, packed = _tensors(nest, emission.dram, known)
    units = list(_units(nest, emission.dram))
    source = Source(
        expression=expression_to_data(schedule.outputs),
        schedule=list(schedule.steps),
        options=replace(options or Options(), fold=compiled.fold),
    )
    return Image(
        config=config,
        code=stream.code,
        code_offset=stream.code_offset,
        segments=(
            (stream.uop_offset, stream.uops),
            *packed,
            *((region.offset, content) for region, content in units),
        ),
        tensors=tensors,
        regions=tuple(region for region, _ in units),
        source=source,
        compile_seconds=time.perf_counter() - begin,
        references=stream.references,
        provenance=stream.provenance,
    )


def _checked_constants(schedule: Schedule, constants: object) -> dict[str, npt.NDArray[Any]]:
    """Constants by name; those of an unknown name, another shape or dtype are refused."""
    inputs = {tensor.name: tensor for tensor in schedule.inputs}
    found = {}
    for name, value in check_mapping("the constants", constants).items():
        if name not in inputs:
            raise ShapeError(f"the constant {name!r} is no input; {nearest(name, inputs)}")
        found[name] = check_array(name, value, inputs[name].shape, inputs[name].dtype)
    return found


def _tensors(
    nest: Nest, dram: DramMap, constants: dict[str, npt.NDArray[Any]]
) -> tuple[tuple[ImageTensor, ...], list[tuple[int, bytes]]]:
    """The image's tensors, and the segments that hold the constants among them."""
    tensors = []
    segments = []
    widened = {node.target: node for node in nest.body if isinstance(node, Widen)}
    for (placed, _), place in dram.tensors.items():
        widens = widened.get(placed)
        buffer = placed if widens is None else widens.source
        if buffer in nest.locals:
            continue
        role: Role = "output" if buffer in nest.outputs else "input"
        if buffer.name in constants:
            role = "constant"
        tensor = ImageTensor(
            name=buffer.name,
            role=role,
            dtype=buffer.dtype,
            offset=dram.offset(place),
            layout=place.layout,
            preparation=nest.prepared.get(buffer),
            widening=None if widens is None else widens.how,
        )
        if role == "constant":
            segments.append((tensor.offset, tensor.pack(constants[buffer.name]).tobytes()))
        tensors.append(tensor)
    return tuple(tensors), segments


def _units(nest: Nest, dram: DramMap) -> Iterator[tuple[Region, bytes]]:
    """Identity matrices and parameters without a bias, in DRAM."""
    nodes = {node.target: node for node in nest.body if isinstance(node, Identity | Parameters)}
    for (buffer, _), place in dram.tensors.items():
        if buffer in nodes:
            content = array_bytes(place.layout.pack(nodes[buffer].value)).tobytes()
            yield Region(name=buffer.name, offset=dram.offset(place), nbytes=len(content)), content
