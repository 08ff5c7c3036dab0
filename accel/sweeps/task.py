"""The figures of one task; what worker processes do."""

import json
from functools import lru_cache

from accel.base.errors import AccelError, ProgramFault
from accel.compiler.expr.metrics import Compulsory
from accel.compiler.mappings.choose import choose
from accel.compiler.operators.registry import make_workload
from accel.compiler.target.machine import Machine
from accel.run.build import build
from accel.run.program import Program
from accel.run.result import TimedResult, error_dict
from accel.sweeps.figures import CELLS, Figures
from accel.sweeps.points import Run, Source, Synthesis, Task

_KEPT = (
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
"""Figures of a result that become columns as they are."""


def measure(task: Task) -> Figures:
    """What a task gives: columns by name. A program that is refused or at fault gives the error instead."""
    if isinstance(task, Synthesis):
        from accel.hw.export.cells import synthesize  # noqa: PLC0415 - amaranth is not for every sweep

        return {f"{CELLS}{name}": count for name, count in synthesize(task.config).items()}
    try:
        return run(task)
    except ProgramFault as error:
        return {"error": error_dict(error)["cause"], "message": str(error)}
    except AccelError as error:
        return {"error": "refused", "message": str(error)}


def run(task: Run) -> Figures:
    """Compile and run a program.

    Raises:
        AccelError: it is refused, or at fault.
    """
    program = _compiled(task.source)
    result = program.run(seed=task.seed, **dict(task.timing))
    figures = result.to_dict()
    wrong = figures["error"] or {"cause": None, "message": None}
    return {
        "error": wrong["cause"],
        "message": wrong["message"],
        "vthreads": program.vthreads,
        **{name: figures[name] for name in _KEPT},
        "traffic_bytes": result.load_bytes + result.store_bytes,
        **{f"{kind}_bytes_moved": number for kind, number in figures["bytes_by_kind"].items()},
        **(_roofline(result, result.compulsory) if result.compulsory is not None else {}),
        **{
            f"{unit}_{what}": number
            for unit, cycles in figures["stalls"].items()
            for what, number in cycles.items()
        },
        "compile_seconds": program.compile_seconds,
        "simulate_seconds": result.simulate_seconds,
    }


def _roofline(result: TimedResult, least: Compulsory) -> Figures:
    """Where the run is on the roofline: MACs per compulsory byte, MACs per cycle, and the roof above."""
    longest = max(least.read_bytes, least.write_bytes)
    ideal, roofline = least.ideal_cycles(result.config), least.roofline_cycles(result.config)
    return {
        "compulsory_bytes": least.read_bytes + least.write_bytes,
        "intensity": least.real_macs / longest if longest else None,
        "macs_per_cycle": least.real_macs / result.cycles,
        "roof_macs_per_cycle": least.real_macs / roofline if roofline else None,
        "roof_utilization": ideal / roofline if roofline else None,
    }


@lru_cache(maxsize=4)
def _compiled(source: Source) -> Program:
    """A program; those compiled last are kept, since neighbours on a grid often share it."""
    workload = make_workload(source.workload, dict(source.parameters))
    machine = Machine(source.config)
    if source.steps is not None:
        steps = json.loads(source.steps)
        return build(workload, machine, vthreads=source.vthreads, steps=steps, mapping=source.mapping)
    if not source.tile:
        return build(workload, machine, vthreads=source.vthreads, mapping=source.mapping)
    tile = dict(source.tile)
    chosen = choose(workload, machine.config, mapping=source.mapping, threads=source.vthreads, tile=tile)
    return build(workload, machine, steps=chosen.schedule(machine).steps, mapping=chosen.mapping.name)
