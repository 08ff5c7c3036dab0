"""Compiling an operator to a program that can be run."""

import reprlib
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from accel.base.arguments import check_integer
from accel.base.errors import ScheduleError
from accel.compiler.codegen.build import compile_schedule
from accel.compiler.mappings.build import compile_mapped
from accel.compiler.mappings.choose import choose, mapping_of
from accel.compiler.mappings.mapping import AUTO, PLAIN
from accel.compiler.ops.workload import Workload
from accel.compiler.schedule.files import rethreaded, scheduled
from accel.compiler.schedule.schedule import Schedule, Step
from accel.compiler.target.machine import Machine, machine
from accel.core.config import Config
from accel.image.image import Image
from accel.run.program import Program, as_program


def build(
    target: Schedule | Workload,
    on: Machine | Config | str,
    *,
    vthreads: int | None = None,
    tile: Mapping[str, int] | None = None,
    steps: list[Step] | None = None,
    constants: Mapping[str, npt.NDArray[Any]] | None = None,
    mapping: str = AUTO,
    keep_results: bool = False,
    measure: int | None = None,
) -> Program:
    """Compile a schedule, or a workload with the default schedule, for a machine.

    Args:
        target: what to compile.
        on: the machine, its configuration or the configuration's name.
        vthreads: how many virtual threads the loop bound to them is split into; what the schedule says, or
            for a workload what the model chooses, if not given.
        tile: of a workload, sides of tiles and steps in elements, as ``{"tile_m": 64, "step_k": 32}``; the
            model chooses those that are not given. With sides, the mapping ``auto`` is ``plain``, and no
            operand is kept beyond its tile and step.
        steps: of a workload's schedule (:mod:`accel.compiler.schedule.files`), instead of the default one.
        constants: inputs whose values are known now.
        mapping: of a workload, as which operator it is computed: ``plain`` for itself, another name, or
            ``auto`` for what takes the fewest cycles. The host packs inputs for it, see
            ``docs/mappings.md``. With steps, ``auto`` is ``plain``.
        keep_results: whether ``auto`` only takes mappings that leave what is written as it is without one.
        measure: of a workload, how many of the plans that the model ranks best are compiled and simulated;
            the fastest is taken. If not given, the one that is predicted to be.

    Raises:
        ConfigError, ScheduleError, TensorizeError, ShapeError: it does not fit the machine, or is nothing
            that can be compiled.
        RaceError, DeadlockError, MachineError: the compiler's own output failed the token check.
    """
    chosen = machine(on)
    begin = time.perf_counter()
    most = None if measure is None else check_integer("measure", measure, error=ScheduleError)
    if isinstance(target, Workload):
        if steps is not None and tile:
            raise ScheduleError("a tile is given with steps, which say the tiles; give one of the two")
        if steps is not None and most:
            raise ScheduleError(
                "plans are to be measured, and steps are given, which are one; give one of the two"
            )
        image = _compiled(target, chosen, vthreads, tile, steps, constants, mapping, keep_results, most)
    elif not isinstance(target, Schedule):
        raise ScheduleError(
            f"what is to be compiled is {reprlib.repr(target)}; it must be a workload, as accel.gemm makes, "
            f"or a schedule"
        )
    elif steps is not None or tile or most:
        given = (
            "steps are" if steps is not None else "a tile is" if tile else "a number of plans to measure is"
        )
        raise ScheduleError(f"{given} given with a schedule; that goes with a workload")
    elif mapping not in (AUTO, PLAIN):
        raise ScheduleError(f"the mapping is {mapping!r}, given with a schedule; it goes with a workload")
    else:
        schedule = target if vthreads is None else rethreaded(target, chosen, vthreads)
        image = compile_schedule(schedule, chosen.config, constants=constants)
    program = as_program(replace(image, compile_seconds=time.perf_counter() - begin))
    program.check().raise_if_bad()
    return program


def _compiled(
    workload: Workload,
    on: Machine,
    vthreads: int | None,
    tile: Mapping[str, int] | None,
    steps: list[Step] | None,
    constants: Mapping[str, npt.NDArray[Any]] | None,
    mapping: str,
    keep_results: bool,
    measure: int | None,
) -> Image:
    if steps is None:
        choice = choose(
            workload, on.config, mapping=mapping, threads=vthreads, tile=tile, keep_results=keep_results
        )
        if measure is not None:
            from accel.run.measured import measured  # noqa: PLC0415  # seldom needed

            choice = measured(choice, on, measure)
        return compile_mapped(choice.mapping, choice.schedule(on), on.config, constants=constants)
    mapped = mapping_of(workload, PLAIN if mapping == AUTO else mapping)
    schedule = scheduled(mapped.workload, on, steps)
    if vthreads is not None:
        schedule = rethreaded(schedule, on, vthreads)
    return compile_mapped(mapped, schedule, on.config, constants=constants)
