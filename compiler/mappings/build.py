"""From a mapping to a program that takes and gives the user's tensors."""

from collections.abc import Mapping as Named
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from accel.base.arguments import check_array, check_mapping
from accel.compiler.codegen.build import compile_schedule
from accel.compiler.expr.data import expression_to_data
from accel.compiler.mappings.mapping import Mapping, tensors_of
from accel.compiler.schedule.schedule import Schedule
from accel.core.config import Config
from accel.image.image import Image
from accel.image.source import Mapped, Options, Source
from accel.image.view import View


def compile_mapped(
    mapping: Mapping,
    schedule: Schedule,
    config: Config,
    *,
    constants: Named[str, npt.NDArray[Any]] | None = None,
) -> Image:
    """Compile a schedule of a mapping's operator.

    Args:
        mapping: whose ``workload`` the schedule is of.
        schedule: with all stages in scratchpads tensorized or copies.
        config: the machine.
        constants: inputs of the mapping's ``source`` whose values are known now.

    Raises:
        ConfigError, ScheduleError, TensorizeError: the schedule does not fit the machine.
        ShapeError: a constant of an unknown name, another shape or dtype.
    """
    source = mapping.source
    options = Options(workload=source.name, parameters=source.parameters)
    if mapping.is_plain:
        return compile_schedule(schedule, config, constants=constants, options=options)
    known = arranged(mapping, check_mapping("the constants", constants))
    image = compile_schedule(schedule, config, constants=known, options=options)
    made = image.source or Source()
    mapped = Mapped(name=mapping.name, expression=expression_to_data(schedule.outputs))
    told = replace(made, expression=expression_to_data([source.output]), mapped=mapped)
    return replace(with_views(image, mapping.views), source=told)


def arranged(mapping: Mapping, constants: Named[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """Values of the source's tensors as the mapping's operator takes them.

    Raises:
        ShapeError: an array of another shape or dtype.
    """
    mine, theirs = (
        {one.name: one for one in tensors_of(workload)} for workload in (mapping.source, mapping.workload)
    )
    found = dict(constants)
    for name, view in mapping.views.items():
        if name in found:
            values = check_array(name, found[name], mine[name].shape, mine[name].dtype)
            found[name] = view.gather(values, theirs[name].shape)
    return found


def with_views(image: Image, views: Named[str, View]) -> Image:
    """A program whose tensors the host arranges by views."""
    tensors = tuple(replace(one, view=views.get(one.name)) for one in image.tensors)
    return replace(image, tensors=tensors)
