"""Compilation of an operator."""

import os
import reprlib
import time
from collections.abc import Collection, Mapping
from typing import Any

import numpy.typing as npt

from accel.base.arguments import check_integer
from accel.base.errors import ScheduleError
from accel.base.records import replace
from accel.compiler.codegen.compile_schedule import compile_schedule
from accel.compiler.mappings.mapped_build import compile_mapped
from accel.compiler.mappings.mapping import AUTO, PLAIN
from accel.compiler.mappings.mapping_choice import choose_mapping, find_mapping
from accel.compiler.ops.workload import Workload
from accel.compiler.schedule.schedule import Schedule, Step
from accel.compiler.schedule.schedule_files import rethreaded, scheduled
from accel.compiler.target.machine import Machine, machine
from accel.core.config import Config
from accel.image.image import Image
from accel.run.measured_plans import measure_plans, simulated_cycles
from accel.run.program import Program, as_program
from accel.run.tuning_records import Record, faster_record, load_records, record_key


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
    without: Collection[str] = (),
    tuned: str | os.PathLike[str] | None = None,
) -> Program:
    """Compile a schedule, or a workload with the default schedule, for a machine.

    Args:
        target: a schedule, or a workload, which the options ``tile`` to ``measure`` need.
        on: the machine, its configuration or its name.
        vthreads: instead of the schedule's or model's.
        tile: sizes in elements, for example ``{"tile_m": 64, "step_k": 32}``. The model chooses the others.
        steps: of the schedule, see :mod:`accel.compiler.schedule.schedule_files`.
        constants: inputs with known values.
        mapping: a mapping's name, for example ``plain``, or ``auto`` for the fastest predicted one, see
            ``docs/explain/mappings.md``. With ``tile`` or ``steps``, ``auto`` means ``plain``.
        keep_results: with ``auto``, only mappings that keep the outputs' layout in DRAM.
        measure: simulate this many plans, and choose the fastest.
        without: reorder passes to turn off, for example ``("prefetch-residuals",)``. ``accel show --stage
            passes`` lists them.
        tuned: a file of records of :func:`accel.tune`. A faster schedule in it for this workload and machine
            replaces the chosen one.

    Raises:
        TuningError: the file of records is unreadable or damaged.
        ConfigError, ScheduleError, TensorizeError, ShapeError: the target does not compile for the machine.
        RaceError, DeadlockError, MachineError: the compiled program failed the token check.
    """
    chosen = machine(on)
    begin = time.perf_counter()
    most = None if measure is None else check_integer("measure", measure, error=ScheduleError)
    _check_options(target, tile, steps, mapping, most)
    if isinstance(target, Workload):
        image = _compile_workload(
            target, chosen, vthreads, tile, steps, constants, mapping, keep_results, most, without
        )
    else:
        schedule = target if vthreads is None else rethreaded(target, chosen, vthreads)
        image = compile_schedule(schedule, chosen.config, constants=constants, without=without)
    if tuned is not None:
        if not isinstance(target, Workload) or steps is not None:
            raise ScheduleError("a file of records and a schedule are given; give one of them")
        record = _faster_record(tuned, target, chosen, image, keep_results)
        if record is not None:
            mapped = find_mapping(target, record.mapping)
            schedule = scheduled(mapped.workload, chosen, record.steps or [])
            image = compile_mapped(mapped, schedule, chosen.config, constants=constants, without=without)
    program = as_program(replace(image, compile_seconds=time.perf_counter() - begin))
    program.check().raise_if_bad()
    return program


def _faster_record(
    path: str | os.PathLike[str], workload: Workload, on: Machine, image: Image, keep_results: bool
) -> Record | None:
    records = load_records(path)
    known = records.fastest(record_key(workload.name, [workload.output], on.config))
    if known is None or (keep_results and known.mapping != PLAIN):
        return None
    return faster_record(records, workload.name, [workload.output], on.config, simulated_cycles(image))


def _check_options(
    target: object, tile: Mapping[str, int] | None, steps: list[Step] | None, mapping: str, most: int | None
) -> None:
    if isinstance(target, Workload):
        if steps is not None and tile:
            raise ScheduleError(
                "a tile and steps are given, and the steps contain the tile; give one of them"
            )
        if steps is not None and most:
            raise ScheduleError(
                "a number of plans to measure and steps are given, and the steps are one plan; "
                "give one of them"
            )
        return
    if not isinstance(target, Schedule):
        raise ScheduleError(
            f"the target is {reprlib.repr(target)}; it must be a workload, as accel.gemm makes, or a schedule"
        )
    given = {"steps are": steps is not None, "a tile is": tile, "a number of plans to measure is": most}
    for name, value in given.items():
        if value:
            raise ScheduleError(f"{name} given with a schedule; only a workload takes it")
    if mapping not in (AUTO, PLAIN):
        raise ScheduleError(f"the mapping is {mapping!r}, given with a schedule; only a workload takes it")


def _compile_workload(
    workload: Workload,
    on: Machine,
    vthreads: int | None,
    tile: Mapping[str, int] | None,
    steps: list[Step] | None,
    constants: Mapping[str, npt.NDArray[Any]] | None,
    mapping: str,
    keep_results: bool,
    measure: int | None,
    without: Collection[str],
) -> Image:
    if steps is None:
        choice = choose_mapping(
            workload, on.config, mapping=mapping, threads=vthreads, tile=tile, keep_results=keep_results
        )
        if measure is not None:
            choice = measure_plans(choice, on, measure, without=without)
        return compile_mapped(
            choice.mapping, choice.schedule(on), on.config, constants=constants, without=without
        )
    mapped = find_mapping(workload, PLAIN if mapping == AUTO else mapping)
    schedule = scheduled(mapped.workload, on, steps)
    if vthreads is not None:
        schedule = rethreaded(schedule, on, vthreads)
    return compile_mapped(mapped, schedule, on.config, constants=constants, without=without)
