"""Compile an operator by a mapping, into a program with the user's tensors."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy.typing as npt

from accel.base.arguments import check_array, check_mapping
from accel.base.records import replace
from accel.compiler.codegen.compile_schedule import compile_schedule
from accel.compiler.expr.expression_data import expression_to_data
from accel.compiler.mappings.mapping import OperatorMapping, workload_tensors
from accel.compiler.schedule.schedule import Schedule
from accel.core.config import Config
from accel.image.image import Image
from accel.image.program_source import Mapped, Options, Source
from accel.image.tensor_view import View


def compile_mapped(
    mapping: OperatorMapping,
    schedule: Schedule,
    config: Config,
    *,
    constants: Mapping[str, npt.NDArray[Any]] | None = None,
    without: Collection[str] = (),
    like: Image | None = None,
) -> Image:
    """Compile a schedule of a mapping's operator.

    Args:
        constants: inputs of the mapping's ``source`` with known values.
        like: as in ``compile_schedule``, with the same mapping.
    """
    source = mapping.source
    options = Options(workload=source.name, parameters=source.parameters)
    if mapping.is_plain:
        return compile_schedule(
            schedule, config, constants=constants, options=options, without=without, like=like
        )
    packed = _pack(mapping, check_mapping("the constants", constants))
    image = compile_schedule(schedule, config, constants=packed, options=options, without=without, like=like)
    mapped = Mapped(name=mapping.name, expression=expression_to_data(schedule.outputs))
    expression = expression_to_data([source.output])
    origin = replace(image.source or Source(), expression=expression, mapped=mapped)
    return replace(with_views(image, mapping.views), source=origin)


def _pack(mapping: OperatorMapping, constants: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    sources, targets = (
        {one.name: one for one in workload_tensors(workload)}
        for workload in (mapping.source, mapping.workload)
    )
    packed = dict(constants)
    for name, view in mapping.views.items():
        if name in packed:
            values = check_array(name, packed[name], sources[name].shape, sources[name].dtype)
            packed[name] = view.gather(values, targets[name].shape)
    return packed


def with_views(image: Image, views: Mapping[str, View]) -> Image:
    tensors = tuple(replace(one, view=views.get(one.name)) for one in image.tensors)
    return replace(image, tensors=tensors)
