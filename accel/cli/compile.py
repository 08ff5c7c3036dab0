"""``accel compile``: a workload to a program file."""

from pathlib import Path
from typing import Any

import click

from accel.cli.common import (
    Group,
    busy,
    describe,
    figures_table,
    json_option,
    parse_settings,
    print_json,
    set_option,
    show,
)
from accel.compiler.workload import gemm as gemm_workload
from accel.errors import ProgramFault
from accel.files import check_writable
from accel.isa import Loops
from accel.machines import machine
from accel.program import Program, build
from accel.result import SCHEMA_VERSION, error_dict


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
@click.option("--config", default="gemm8x8", show_default=True, metavar="NAME|FILE", help="The machine.")
@set_option("geometry or timing")
@click.option("--transpose-a", is_flag=True, help="A is stored as (K, M).")
@click.option("--transpose-b", is_flag=True, help="B is stored as (N, K).")
@click.option("--bias", is_flag=True, help="Add an int32 bias of shape (N,).")
@click.option("--relu", is_flag=True, help="Negative values become zero.")
@click.option("--shift", type=int, help="Shift sums right by 0..31 bits, then saturate to int8.")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="The program file.")
@json_option
def gemm(
    rows: int,
    columns: int,
    depth: int,
    config: str,
    settings: tuple[str, ...],
    output: Path,
    as_json: bool,
    **options: Any,
) -> int:
    """C = A @ B on int8 operands, with int32 sums and an int8 result.

    A is (M, K), B is (K, N). Without --shift and --relu, C holds the low 8 bits of the sums. With either:
    plus bias, shift right, ReLU, saturation to -128..127, in this order.

    \b
    Example:
      accel compile gemm -m 100 -n 300 -k 77 --bias --relu --shift 8 --config vta -o gemm.accel
    """
    target = machine(config, **parse_settings(settings))
    workload = gemm_workload(rows, columns, depth, **options)
    check_writable(output)
    try:
        with busy("compiling"):
            program = build(workload, target)
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
    program.save(output)
    figures = program_figures(program) | {"output": str(output)}
    if as_json:
        print_json(figures)
        return 0
    shown = [
        ("machine", describe(program.config)),
        ("instructions", f"{figures['instructions']:,}"),
        ("micro-ops", f"{figures['uops']:,} executed, {figures['stored_uops']:,} stored"),
        ("DRAM", f"{figures['dram_bytes']:,} bytes"),
        ("tokens", "no deadlock, no race: proven"),
        ("compiled in", f"{figures['compile_seconds']:.2f} s"),
        ("written to", str(output)),
    ]
    show(figures_table(shown))
    return 0


FIGURES = (
    "schema_version",
    "output",
    "config",
    "instructions",
    "uops",
    "stored_uops",
    "dram_bytes",
    "compile_seconds",
    "error",
)
"""The keys of what ``--json`` prints, in order."""


def program_figures(program: Program) -> dict[str, Any]:
    """Size of a program, and what compiling it took."""
    instructions = program.instructions
    return dict.fromkeys(FIGURES) | {
        "schema_version": SCHEMA_VERSION,
        "config": program.config.name,
        "instructions": len(instructions),
        "uops": sum(i.uop_count for i in instructions if isinstance(i, Loops)),
        "stored_uops": len(program.segments[0][1]) // 4 if program.segments else 0,
        "dram_bytes": program.size,
        "compile_seconds": program.compile_seconds,
    }
