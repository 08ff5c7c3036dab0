from pathlib import Path

import click

from accel.base.run_choices import SAMPLERS
from accel.cli.command_groups import runs
from accel.cli.declared_options import choice_option, json_option
from accel.cli.measuring_options import folder_option, measuring_options


@click.command(name="explore")
@click.argument("file", type=click.Path(path_type=Path), metavar="SPACE.toml")
@folder_option("the file's name")
@choice_option("--sampler", SAMPLERS, "Replace the file's sampler.")
@click.option("--trials", type=click.IntRange(1), help="Replace the number of points to measure.")
@click.option("--seed", type=click.IntRange(0), help="Replace the sampler's seed.")
@click.option(
    "--max-neighbours",
    type=click.IntRange(0),
    metavar="N",
    help="Most points that the local check measures; 0 turns it off.  [default: the trials, and at least 100 "
    "if no core is placed]",
)
@click.option("--simulate-front", is_flag=True, help="Also simulate the points of the front.")
@click.option("--no-picture", is_flag=True, help="Skip the picture.")
@measuring_options
@json_option
@runs("accel.cli.explore:explore_command")
def explore_command() -> None:
    """Search a space of machines for the best ones.

    SPACE.toml has the fields of the machine with their values, constraints, limits, workloads and
    objectives (docs/how-to/explore-machines.md). A sampler proposes points, and each is measured on all
    workloads. If an objective needs the frequency, its core is also placed and routed on an FPGA, which takes
    minutes. At the end, the neighbours of the Pareto front are measured, too.

    FOLDER gets all points as CSV, the front as a page and as SVG, and a journal. 'accel studio FOLDER' shows
    the points, also while the exploration runs. After an interruption, the same command continues. The exit
    code is 1 if a program is at fault. A machine that violates a limit or does not fit a workload is not an
    error.

    \b
    Example:
      accel explore docs/experiments/explore/ecp5-resnet.toml
      accel explore space.toml --sampler random --trials 50 --json
    """
