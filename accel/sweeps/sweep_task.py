"""Measure a task."""

import json
from functools import lru_cache

from accel.base.errors import AccelError, ProgramFault
from accel.compiler.expr.compulsory_cost import Compulsory
from accel.compiler.mappings.mapping_choice import choose_mapping
from accel.compiler.operators.operator_registry import make_workload
from accel.compiler.target.machine import Machine
from accel.run.build_program import build
from accel.run.program import Program
from accel.run.result import TimedResult, error_dict
from accel.sweeps.sweep_points import Run, Source, Synthesis, Task
from accel.sweeps.task_figures import CELLS, Figures

_RESULT_COLUMNS = (
    "cycles",
    "utilization",
    "roofline_fraction",
    "macs",
    "load_bytes",
    "store_bytes",
    "instructions",
    "carriers",
    "uops",
    "mismatches",
)


def measure(task: Task) -> Figures:
    """Return figures by column, or the error of a program."""
    if isinstance(task, Synthesis):
        from accel.hw.export.ecp5_cells import synthesize  # most sweeps need no amaranth

        return {f"{CELLS}{name}": count for name, count in synthesize(task.config).items()}
    try:
        return run_figures(task)
    except ProgramFault as error:
        return {"error": error_dict(error)["cause"], "message": str(error)}
    except AccelError as error:
        return {"error": "refused", "message": str(error)}


def run_figures(task: Run) -> Figures:
    """Compile and run a program."""
    program = _compiled(task.source)
    result = program.run(seed=task.seed, **dict(task.timing))
    figures = result.to_dict()
    error = figures["error"] or {"cause": None, "message": None}
    return {
        "error": error["cause"],
        "message": error["message"],
        "vthreads": program.vthreads,
        **{name: figures[name] for name in _RESULT_COLUMNS},
        "traffic_bytes": result.load_bytes + result.store_bytes,
        **{f"{kind}_bytes_moved": number for kind, number in figures["bytes_by_kind"].items()},
        **(_roofline(result, result.compulsory) if result.compulsory is not None else {}),
        **{
            f"{unit}_{state}": number
            for unit, cycles in figures["stalls"].items()
            for state, number in cycles.items()
        },
        "compile_seconds": program.compile_seconds,
        "simulate_seconds": result.simulate_seconds,
    }


def _roofline(result: TimedResult, compulsory: Compulsory) -> Figures:
    busier = max(compulsory.read_bytes, compulsory.write_bytes)
    ideal, roofline = compulsory.ideal_cycles(result.config), compulsory.roofline_cycles(result.config)
    return {
        "compulsory_bytes": compulsory.read_bytes + compulsory.write_bytes,
        "intensity": compulsory.real_macs / busier if busier else None,
        "macs_per_cycle": compulsory.real_macs / result.cycles,
        "roof_macs_per_cycle": compulsory.real_macs / roofline if roofline else None,
        "roof_utilization": ideal / roofline if roofline else None,
    }


@lru_cache(maxsize=4)
def _compiled(source: Source) -> Program:
    workload = make_workload(source.workload, dict(source.parameters))
    machine = Machine(source.config)
    if source.steps is not None:
        steps = json.loads(source.steps)
        return build(workload, machine, vthreads=source.vthreads, steps=steps, mapping=source.mapping)
    if not source.tile:
        return build(workload, machine, vthreads=source.vthreads, mapping=source.mapping)
    tile = dict(source.tile)
    chosen = choose_mapping(
        workload, machine.config, mapping=source.mapping, threads=source.vthreads, tile=tile
    )
    return build(workload, machine, steps=chosen.schedule(machine).steps, mapping=chosen.mapping.name)
