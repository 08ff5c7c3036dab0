from pathlib import Path

import click

from accel.cli.command_groups import runs
from accel.cli.declared_options import json_option, seed_option, set_option


@click.command()
@click.argument("a", metavar="A", type=click.Path(path_type=Path))
@click.argument("b", metavar="B", type=click.Path(path_type=Path))
@click.option(
    "--html", metavar="FILE.html", type=click.Path(path_type=Path), help="Write the comparison as a page."
)
@seed_option
@set_option("timing")
@json_option
@runs("accel.cli.diff:diff")
def diff() -> None:
    """Compare two runs, and explain the difference.

    A and B are runs that 'accel run --save' has written, or programs or networks, which are then run on the
    simulator. --seed and --set apply to these. The output has figures, cycles by unit and cause, traffic,
    both timelines on one scale, and the entries of the critical paths that explain most of the
    difference. For networks it also has the cycles of each layer and program. The exit code is 0 whether
    or not the runs differ.

    \b
    Example:
      accel run gemm.accel --save before.accelrun
      accel run gemm.accel --set read_latency=200 --save after.accelrun
      accel diff before.accelrun after.accelrun --html diff.html
    """
