"""The path from a schedule to a program image."""

import time
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy.typing as npt

from accel.base.arguments import check_array, check_mapping
from accel.base.errors import ShapeError, nearest
from accel.base.records import replace
from accel.compiler.codegen.dram_map import DramMap
from accel.compiler.codegen.equal_forms import image_like
from accel.compiler.codegen.linked_stream import linked_stream
from accel.compiler.codegen.nest_emission import Emission
from accel.compiler.codegen.reorder_passes import (
    PASS_NAMES,
    PassEffect,
    checked_pass_names,
    pass_effects,
    reorder,
)
from accel.compiler.codegen.statement_origins import Origins
from accel.compiler.expr.expression_data import expression_to_data
from accel.compiler.nest.nest import HostConstant, HostPack, Nest
from accel.compiler.nest.nest_passes import Compilation, run_passes
from accel.compiler.schedule.schedule import Schedule
from accel.core.config import Config
from accel.core.fault_causes import Cause
from accel.core.isa import check_encodable
from accel.image.image import Image, ImageTensor, Region
from accel.image.image_tensor import Role, array_bytes
from accel.image.program_source import Options, Source
from accel.proof.check_program import check_program

_MANY_TOKENS = 64
"""Enough with reorder passes, which cut epilogues into pieces, each with a token: layers have at most 16."""


def compile_schedule(
    schedule: Schedule,
    config: Config,
    *,
    constants: Mapping[str, npt.NDArray[Any]] | None = None,
    options: Options | None = None,
    fold: bool = True,
    without: Collection[str] = (),
    like: Image | None = None,
) -> Image:
    """Compile a schedule to a program.

    Args:
        schedule: with all stages in scratchpads tensorized or copies.
        constants: values of inputs, which are packed into the program.
        options: the origin of the schedule, which the program keeps.
        fold: fold reset and bias into one step (``fold_bias``).
        without: names of reorder passes to turn off (``reorder_passes``): all, if a counter cannot hold their
            tokens.
        like: the program of a schedule that has a bias and differs only in scales, zero points and bounds.
            Its instructions are copied, with other SETs. The host packs scales next to the bias.
    """
    begin = time.perf_counter()
    check_encodable(config)
    off = checked_pass_names(without)
    known = _checked_constants(schedule, constants)
    compiled = run_passes(Compilation(schedule=schedule, folds_bias=fold, constants=known))
    nest = compiled.nest
    source = Source(
        expression=expression_to_data(schedule.outputs),
        schedule=list(schedule.steps),
        options=replace(options or Options(), fold=compiled.folds_bias, without=off),
    )
    equal = None if like is None else image_like(like, nest, schedule.steps)
    if equal is not None:
        return replace(equal, source=source, compile_seconds=time.perf_counter() - begin)
    emission = Emission(nest, config)
    program = reorder(emission.program(), off)
    stream = linked_stream(emission, program, Origins(nest, schedule.steps))
    tensors, packed = _tensors(nest, emission.dram, known)
    units = list(_units(nest, emission.dram))
    image = Image(
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
    if config.token_limit < _MANY_TOKENS and off != PASS_NAMES and _overflows(image):
        return compile_schedule(
            schedule, config, constants=constants, options=options, fold=fold, without=PASS_NAMES
        )
    return image


def _overflows(image: Image) -> bool:
    """Whether more tokens may wait than a counter holds."""
    faults = check_program(image).faults
    return any(fault.cause is Cause.TOKEN_OVERFLOW for _, fault in faults)


def reorder_effects(
    schedule: Schedule, config: Config, *, fold: bool = True, without: Collection[str] = ()
) -> list[PassEffect]:
    off = checked_pass_names(without)
    emission = Emission(run_passes(Compilation(schedule=schedule, folds_bias=fold)).nest, config)
    return list(pass_effects(emission.program(), off))


def _checked_constants(schedule: Schedule, constants: object) -> dict[str, npt.NDArray[Any]]:
    inputs = {tensor.name: tensor for tensor in schedule.inputs}
    found = {}
    for name, value in check_mapping("the constants", constants).items():
        if name not in inputs:
            raise ShapeError(f"the constant {name!r} is not an input; {nearest(name, inputs)}")
        found[name] = check_array(name, value, inputs[name].shape, inputs[name].dtype)
    return found


def _tensors(
    nest: Nest, dram: DramMap, constants: dict[str, npt.NDArray[Any]]
) -> tuple[tuple[ImageTensor, ...], list[tuple[int, bytes]]]:
    tensors = []
    segments = []
    widened = {node.target: node for node in nest.body if isinstance(node, HostPack)}
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
            preparation=nest.preparations.get(buffer),
            widening=None if widens is None else widens.packing,
        )
        if role == "constant":
            segments.append((tensor.offset, tensor.pack(constants[buffer.name]).tobytes()))
        tensors.append(tensor)
    return tuple(tensors), segments


def _units(nest: Nest, dram: DramMap) -> Iterator[tuple[Region, bytes]]:
    nodes = {node.target: node for node in nest.body if isinstance(node, HostConstant)}
    for (buffer, _), place in dram.tensors.items():
        if buffer in nodes:
            content = array_bytes(place.layout.pack(nodes[buffer].value)).tobytes()
            yield Region(name=buffer.name, offset=dram.offset(place), nbytes=len(content)), content
