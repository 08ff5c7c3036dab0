"""``accel compile``: a workload to a program file."""

from pathlib import Path
from typing import Any

import click
from rich.console import RenderableType

from accel.cli.common import (
    Group,
    busy,
    config_option,
    describe,
    figures_table,
    json_option,
    parse_settings,
    print_json,
    set_option,
    show,
)
from accel.cli.explain import candidate_dict, candidates_table
from accel.compiler.default import Candidate, candidates
from accel.compiler.workload import gemm as gemm_workload
from accel.errors import ProgramFault
from accel.files import check_writable
from accel.isa import Loops
from accel.machines import machine
from accel.order import is_carrier
from accel.program import Program, build
from accel.result import SCHEMA_VERSION, error_dict
from accel.schedules import load_steps, save_steps


@click.group(cls=Group, name="compile")
def compile_command() -> None:
    """Compile a workload to a program file.

    \b
    Example:
      accel compile gemm -m 1024 -n 1024 -k 1024 --shift 12 -o gemm.accel
    """


@compile_command.command()
@click.option("-m", "rows", type=int, required=True, help="Rows of A and C.")
@click.option("-n", "columns", type=int, required=True, help="Columns of B and C.")
@click.option("-k", "depth", type=int, required=True, help="Columns of A, rows of B.")
@config_option("gemm8x8")
@set_option("geometry or timing")
@click.option("--transpose-a", is_flag=True, help="A is stored as (K, M).")
@click.option("--transpose-b", is_flag=True, help="B is stored as (N, K).")
@click.option("--bias", is_flag=True, help="Add an int32 bias of shape (N,).")
@click.option("--relu", is_flag=True, help="Negative values become zero.")
@click.option("--shift", type=int, help="Shift sums right by 0..31 bits, then saturate to int8.")
@click.option("--vthreads", type=int, help="Virtual threads; what is best if not given.")
@click.option("--explain", is_flag=True, help="Show the schedules that were compared.")
@click.option(
    "--schedule",
    "schedule_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Schedule by the steps in this file (.toml or .json).",
)
@click.option(
    "--save-schedule", type=click.Path(path_type=Path), metavar="FILE", help="Write the schedule's steps."
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The program file.")
@json_option
def gemm(
    rows: int,
    columns: int,
    depth: int,
    config: str,
    settings: tuple[str, ...],
    vthreads: int | None,
    explain: bool,
    schedule_file: Path | None,
    save_schedule: Path | None,
    output: Path | None,
    as_json: bool,
    **options: Any,
) -> int:
    """C = A @ B on int8 operands, with int32 sums and an int8 result.

    A is (M, K), B is (K, N). Without --shift and --relu, C holds the low 8 bits of the sums. With either:
    plus bias, shift right, ReLU, saturation to -128..127, in this order.

    Without --schedule, an analytical model of the machine chooses tiles, loop order and virtual threads;
    --explain shows what it compared. With --explain or --save-schedule, -o may be left out.

    \b
    Example:
      accel compile gemm -m 100 -n 300 -k 77 --bias --relu --shift 8 --config vta -o gemm.accel
      accel compile gemm -m 512 -n 512 -k 512 --explain --save-schedule mine.toml
      accel compile gemm -m 512 -n 512 -k 512 --schedule mine.toml --vthreads 4 -o gemm.accel
    """
    if output is None and not explain and save_schedule is None:
        raise click.UsageError("Missing option '-o' / '--output'.", click.get_current_context())
    if explain and schedule_file is not None:
        raise click.UsageError(
            "--explain tells how a schedule was chosen; with --schedule none is.", click.get_current_context()
        )
    target = machine(config, **parse_settings(settings))
    workload = gemm_workload(rows, columns, depth, **options)
    for file in (output, save_schedule):
        if file is not None:
            check_writable(file)
    steps = None if schedule_file is None else load_steps(schedule_file)
    compared = candidates(workload, target.config, vthreads) if explain else None
    try:
        with busy("compiling"):
            program = build(workload, target, vthreads=vthreads, steps=steps)
    except ProgramFault as error:
        if not as_json:
            raise
        figures = dict.fromkeys(FIGURES) | {
            "schema_version": SCHEMA_VERSION,
            "config": target.config.name,
            "error": error_dict(error),
        }
        print_json(figures)
        return error.exit_code
    if output is not None:
        program.save(output)
    if save_schedule is not None:
        save_steps(save_schedule, program.schedule().steps)
    if as_json:
        print_json(program_figures(program, output, save_schedule, compared))
    else:
        show(*_compiled(program, output, save_schedule, compared))
    return 0


def _compiled(
    program: Program, output: Path | None, schedule: Path | None, compared: list[Candidate] | None
) -> list[RenderableType]:
    """What to say of a program that has been compiled."""
    figures = program_figures(program, output, schedule, compared)
    shown = [
        ("machine", describe(program.config)),
        ("instructions", f"{figures['instructions']:,}"),
        ("carriers", f"{figures['carriers']:,}"),
        ("micro-ops", f"{figures['uops']:,} executed, {figures['stored_uops']:,} stored"),
        ("DRAM", f"{figures['dram_bytes']:,} bytes"),
        ("tokens", "no deadlock, no race: proven"),
        ("compiled in", f"{figures['compile_seconds']:.2f} s"),
    ]
    if output is not None:
        shown.append(("written to", str(output)))
    if schedule is not None:
        shown.append(("schedule", str(schedule)))
    table = figures_table(shown)
    return [table] if compared is None else [candidates_table(compared, program.config), "", table]


FIGURES = (
    "schema_version",
    "output",
    "config",
    "instructions",
    "carriers",
    "uops",
    "stored_uops",
    "dram_bytes",
    "compile_seconds",
    "schedule",
    "candidates",
    "error",
)
"""The keys of what ``--json`` prints, in order."""


def program_figures(
    program: Program, output: Path | None, schedule: Path | None, compared: list[Candidate] | None
) -> dict[str, Any]:
    """Size of a program, what compiling it took, and what else was asked for."""
    instructions = program.instructions
    return dict.fromkeys(FIGURES) | {
        "schema_version": SCHEMA_VERSION,
        "config": program.config.name,
        "instructions": len(instructions),
        "carriers": sum(map(is_carrier, instructions)),
        "uops": sum(i.uop_count for i in instructions if isinstance(i, Loops)),
        "stored_uops": len(program.segments[0][1]) // 4 if program.segments else 0,
        "dram_bytes": program.size,
        "compile_seconds": program.compile_seconds,
        "output": None if output is None else str(output),
        "schedule": None if schedule is None else str(schedule),
        "candidates": None if compared is None else [candidate_dict(c, program.config) for c in compared],
    }
