"""``accel compile`` of operators."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from accel.base.atomic_files import check_targets
from accel.base.errors import ProgramFault
from accel.base.records import as_dict, replace
from accel.cli.explain_schedule import (
    candidate_dict,
    candidates_table,
    choice_reason,
    chosen_rows,
    mappings_table,
    passes_table,
)
from accel.cli.operator_commands import tile_sides
from accel.cli.shared_options import config_file, given, machine_row, parse_settings
from accel.cli.stdout import wrote
from accel.cli.terminal_output import FiguresTable, busy, print_json, progress_bar, show, terminal_width
from accel.compiler.codegen.reorder_passes import checked_pass_names
from accel.compiler.mappings.mapping import AUTO, PLAIN
from accel.compiler.mappings.mapping_choice import MappingChoice, choose_mapping, find_mapping
from accel.compiler.operators.declared_operator import Operator
from accel.compiler.operators.default_schedule import planner_of
from accel.compiler.ops.integer_mean import Mean
from accel.compiler.ops.quantized_layers import Quantized
from accel.compiler.ops.workload import Workload
from accel.compiler.schedule.schedule_files import load_schedule, save_steps
from accel.compiler.target.machine import Machine, machine
from accel.core.config import Config
from accel.core.isa import Loops
from accel.core.token_rules import is_carrier
from accel.proof.token_check import PROVEN
from accel.run.build_program import build
from accel.run.measured_plans import simulated_cycles
from accel.run.program import Program
from accel.run.result import SCHEMA_VERSION, error_dict
from accel.run.stage_listing import program_pass_effects
from accel.run.tuning_records import Record, faster_record, load_records

if TYPE_CHECKING:
    from rich.console import RenderableType


class Request(Struct, frozen=True, kw_only=True):
    """Values of the options that all workloads share."""

    config: str
    settings: tuple[str, ...]
    vthreads: int | None
    tile: str | None
    mapping: str
    explain: bool
    measure: int | None
    schedule_file: Path | None
    tuned: Path | None
    without: tuple[str, ...]
    save_schedule: Path | None
    output: Path | None
    as_json: bool

    def check(self) -> None:
        context = click.get_current_context()
        checked_pass_names(self.without)
        if self.schedule_file is None:
            return
        if self.explain:
            raise click.UsageError(
                "--explain shows the choice of a schedule; with --schedule there is no choice.", context
            )
        if self.tile is not None:
            raise click.UsageError(
                "--tile is given; with --schedule, the schedule's steps set the tiles.", context
            )
        if self.tuned is not None:
            raise click.UsageError("--tuned brings a schedule; with --schedule there is one.", context)
        if self.measure is not None:
            raise click.UsageError("--measure compares schedules; with --schedule there is one.", context)


class Compiled(Struct, frozen=True, kw_only=True):
    """A program, and its mapping and plans if there was a choice."""

    workload: Workload
    program: Program
    choice: MappingChoice | None


def compile_operator(operator: Operator, arguments: dict[str, Any], options: dict[str, Any]) -> int:
    """Compile an operator's workload, and return the exit code."""
    asked = Request(**options)
    asked.check()
    if asked.output is None and not asked.explain and asked.save_schedule is None:
        asked = replace(asked, output=Path(f"{operator.command}.accel"))
    target = machine(asked.config, **parse_settings(asked.settings))
    workload = operator.workload(arguments)
    written = {"-o": asked.output, "--save-schedule": asked.save_schedule}
    read = {"--schedule": asked.schedule_file, "--tuned": asked.tuned}
    check_targets(given(written), given(read | config_file(asked.config)))
    begin = time.perf_counter()
    try:
        choice, mapping, threads = None, asked.mapping, asked.vthreads
        if asked.schedule_file is not None:
            steps, kept = load_schedule(asked.schedule_file)
            mapping = kept or PLAIN if mapping == AUTO else mapping
        else:
            choice = _chosen(workload, target, asked)
            steps, mapping = choice.schedule(target).steps, choice.mapping.name
            threads = None  # the plan contains them
        with busy("compiling"):
            program = build(
                workload, target, vthreads=threads, steps=steps, mapping=mapping, without=asked.without
            )
            record = None if asked.tuned is None else _faster_record(asked.tuned, workload, program)
            if record is not None:
                choice = None
                program = build(
                    workload, target, steps=record.steps, mapping=record.mapping, without=asked.without
                )
    except ProgramFault as error:
        if not asked.as_json:
            raise
        print_json(_fault(target.config, error))
        return error.exit_code
    program = replace(program, compile_seconds=time.perf_counter() - begin)
    if asked.output is not None:
        program.save(asked.output)
    if asked.save_schedule is not None:
        mapped = None if program.mapping == PLAIN else program.mapping
        save_steps(asked.save_schedule, program.schedule().steps, mapped)
    compiled = Compiled(workload=workload, program=program, choice=choice)
    if asked.as_json:
        print_json(program_figures(compiled, asked))
        return 0
    show(*_told(compiled, asked), wide=asked.explain)
    wrote(*given(written).values())
    return 0


def _faster_record(path: Path, workload: Workload, program: Program) -> Record | None:
    cycles = simulated_cycles(program)
    return faster_record(load_records(path), workload.name, [workload.output], program.config, cycles)


def _chosen(workload: Workload, target: Machine, asked: Request) -> MappingChoice:
    with busy("choosing a schedule"):
        one = find_mapping(workload, PLAIN if asked.mapping == AUTO else asked.mapping)
        sides = planner_of(one.workload).sides
        tile = {} if asked.tile is None else tile_sides(sides, asked.tile)
        found = choose_mapping(
            workload, target.config, mapping=asked.mapping, threads=asked.vthreads, tile=tile
        )
    if asked.measure is None:
        return found
    from accel.run.measured_plans import measure_plans  # seldom needed

    with progress_bar("schedules") as progress:
        return measure_plans(found, target, asked.measure, progress, without=asked.without)


def _told(compiled: Compiled, asked: Request) -> "list[RenderableType]":
    program, choice = compiled.program, compiled.choice
    figures = program_figures(compiled, asked)
    mean, differences = compiled.workload.epilogue, figures["differences"]
    plan = [("threads", str(figures["vthreads"]))]
    if choice is not None:
        plan = chosen_rows(figures["plan"], planner_of(choice.mapping.workload), program.config)
    packed = f"{figures['packed_bytes']:,} bytes, {figures['packing_factor']:.3g} times those given"
    table = FiguresTable(
        [
            *([("mean", str(mean))] if isinstance(mean, Mean) else []),
            *(
                []
                if differences is None
                else [("addition", f"{differences} of 65,536 pairs differ from float32")]
            ),
            machine_row(program.config),
            *([] if program.mapping == PLAIN else [("mapping", program.mapping), ("packed inputs", packed)]),
            *plan,
            ("instructions", f"{figures['instructions']:,}"),
            ("carriers", f"{figures['carriers']:,}"),
            ("micro-ops", f"{figures['uops']:,} executed, {figures['stored_uops']:,} stored"),
            ("DRAM", f"{figures['dram_bytes']:,} bytes"),
            ("tokens", PROVEN),
            ("compiled in", f"{figures['compile_seconds']:.2f} s"),
        ]
    )
    if not asked.explain or choice is None:
        return [table]
    config = program.config
    plans = candidates_table(choice.candidates, planner_of(choice.mapping.workload), config, terminal_width())
    reason = choice_reason(choice.candidates)
    mappings: list[RenderableType] = [mappings_table(choice.compared), ""] if len(choice.compared) > 1 else []
    passes = passes_table(program_pass_effects(program))
    return [*mappings, plans, *([reason] if reason else []), "", passes, "", table]


FIGURES = (
    "schema_version",
    "output",
    "config",
    "vthreads",
    "plan",
    "instructions",
    "carriers",
    "uops",
    "stored_uops",
    "dram_bytes",
    "mapping",
    "mappings",
    "packed_bytes",
    "packing_factor",
    "compile_seconds",
    "mean",
    "differences",
    "schedule",
    "candidates",
    "error",
)
"""Keys of ``--json``, in order."""


def program_figures(compiled: Compiled, asked: Request) -> dict[str, Any]:
    """Return size, plan and compile time of a program."""
    program, choice, mean = compiled.program, compiled.choice, compiled.workload.epilogue
    instructions = program.instructions
    plans, mappings = list[dict[str, Any]](), list[dict[str, Any]]()
    if choice is not None:
        planner = planner_of(choice.mapping.workload)
        plans = [candidate_dict(one, planner, program.config) for one in choice.candidates]
        mappings = [as_dict(one) for one in choice.compared]
    return dict.fromkeys(FIGURES) | {
        "schema_version": SCHEMA_VERSION,
        "config": program.config.label,
        "mapping": program.mapping,
        "mappings": mappings if asked.explain else None,
        "packed_bytes": program.packed_bytes,
        "packing_factor": program.packing_factor,
        "vthreads": program.vthreads,
        "plan": plans[0] if plans else None,
        "instructions": len(instructions),
        "carriers": sum(map(is_carrier, instructions)),
        "uops": sum(i.uop_count for i in instructions if isinstance(i, Loops)),
        "stored_uops": len(program.segments[0][1]) // 4 if program.segments else 0,
        "dram_bytes": program.size,
        "compile_seconds": program.compile_seconds,
        "mean": mean.to_dict() if isinstance(mean, Mean) else None,
        "differences": mean.differences if isinstance(mean, Quantized) and mean.residual else None,
        "output": None if asked.output is None else str(asked.output),
        "schedule": None if asked.save_schedule is None else str(asked.save_schedule),
        "candidates": plans if asked.explain else None,
    }


def _fault(config: Config, error: ProgramFault) -> dict[str, Any]:
    return dict.fromkeys(FIGURES) | {
        "schema_version": SCHEMA_VERSION,
        "config": config.label,
        "error": error_dict(error),
    }
