from pathlib import Path

import click

from accel.cli.command_groups import runs
from accel.cli.declared_options import json_option, set_option


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(path_type=Path))
@click.option("--serial", is_flag=True, help="Assume a monolithic pipeline.")
@set_option("timing")
@click.option(
    "--certificate",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write the proof of one program as JSON, for the independent checker.",
)
@json_option
@runs("accel.cli.check:check", multiplies=False)
def check() -> None:
    """Prove that a program neither deadlocks nor races.

    The proof holds for any timing. A PATH is a program file, a vector from another VTA compiler, an assembly
    text (.s), or a folder of these. Two things are legal but reported: tokens that are left over, and reads
    of scratchpad elements that the program has not written (an earlier run may have). If a proof fails, its
    reason is printed and the exit code is 1. If some of several files cannot be read, the remaining ones are
    checked and the exit code is 2. With --json, a value that the check could not determine is null and listed
    in "undetermined".

    \b
    Example:
      accel check gemm.accel
      accel check gemm.accel --certificate gemm.proof.json
    """
