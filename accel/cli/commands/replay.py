from pathlib import Path

import click

from accel.cli.command_groups import runs
from accel.cli.declared_options import (
    backend_option,
    engine_option,
    jobs_option,
    json_option,
    limit_options,
    order_option,
    seed_option,
)


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(path_type=Path))
@backend_option("functional", "functional: memory only; sim: cycles too; rtl: the hardware itself.")
@engine_option("The engine that simulates the hardware (backend rtl).")
@order_option
@jobs_option
@seed_option
@limit_options
@json_option
@runs("accel.cli.replay:replay")
def replay() -> None:
    """Run programs with expected results, and compare.

    A PATH is a vector from another VTA compiler (a folder of config.json, insn.bin, dram_before.npz and
    expect.npz), a test in assembly (.s, see docs/reference/assembly.md), or a folder of these. Memory and the
    end of the run are compared with the expected ones. Scratchpads start with random contents, except for the
    initial state of a test. The exit code is 1 if any program fails.

    \b
    Example:
      accel replay vectors/ tests/programs --backend sim
      accel replay vectors/ --backend rtl
    """
