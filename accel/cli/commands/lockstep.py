from pathlib import Path

import click

from accel.cli.command_groups import runs
from accel.cli.declared_options import (
    engine_option,
    jobs_option,
    json_option,
    limit_options,
    seed_option,
    set_option,
)


@click.command()
@click.argument("files", nargs=-1, metavar="[PATH...]", type=click.Path(path_type=Path))
@click.option(
    "--vector",
    "vectors",
    multiple=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="A vector's folder, or a folder of vectors.",
)
@engine_option("The engine that simulates the hardware.")
@click.option(
    "--hostile", is_flag=True, help="Memory answers late and stalls at random, and cycles are not compared."
)
@click.option("--serial", is_flag=True, help="Monolithic pipeline: one instruction after another.")
@jobs_option
@seed_option
@set_option("timing")
@limit_options
@json_option
@runs("accel.cli.lockstep:lockstep")
def lockstep() -> None:
    """Compare simulator and hardware in every cycle of a run.

    A PATH is a program file, an assembly text (.s), a vector's folder, or a folder of these. Both sides start
    with the same random inputs and scratchpads. Every event of every cycle, the end of the run, the counters
    and memory must be equal. A program that may race only has to end cleanly. If anything differs, the first
    difference is shown with the events around it on both sides, and the exit code is 1.

    With --hostile, memory answers at random times, and only the end of the run and the contents of memory,
    token counters and scratchpads are compared. For a run that ends with an error, only the rules of the
    bus are checked. The shown cycles are the simulator's.

    \b
    Example:
      accel lockstep gemm.accel --set read_latency=7
    """
