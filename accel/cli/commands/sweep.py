from collections.abc import Iterable
from pathlib import Path

import click

from accel.cli.command_groups import runs
from accel.cli.declared_options import complete, json_option
from accel.cli.measuring_options import folder_option, measuring_options


def _workloads() -> Iterable[str]:
    from accel.compiler.operators.operator_registry import WORKLOADS  # it imports the compiler

    return WORKLOADS


def _keys() -> Iterable[str]:
    from accel.sweeps.sweep_grid import grid_keys

    return (f"{name}=" for name in grid_keys() if name not in ("label", "zip"))


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path), metavar="[FILE.toml]")
@click.option(
    "--workload",
    metavar="NAME",
    shell_complete=complete(_workloads),
    help="The workload if there is no file, for example gemm.",
)
@click.option(
    "--vary",
    multiple=True,
    metavar="KEY=VALUE,...",
    shell_complete=complete(_keys),
    help="Values of a parameter, knob or configuration field (repeatable).",
)
@click.option(
    "--plot", "plots", multiple=True, metavar="X,Y[,BY]", help="Draw column Y over X, a line for each BY."
)
@folder_option("the sweep's name")
@click.option("--parquet", is_flag=True, help="Also write the table as Parquet.")
@click.option("--no-plots", is_flag=True, help="Skip the plots.")
@measuring_options
@json_option
@runs("accel.cli.sweep:sweep")
def sweep() -> None:
    """Measure a grid of workloads, machines and schedules.

    FILE.toml describes the measurements and plots (docs/how-to/search-machines-and-schedules.md). --vary
    replaces values in it. Without a file, --workload and --vary define the grid. Keys are the workload's
    parameters, the knobs config and vthreads, sides of tiles as tile_m and tile_oc, and every
    configuration field. A field with the prefix "run." changes the timing of a run but not its schedule.

    FOLDER gets the table as CSV, the plots as SVG and a journal. After an interruption, the same command
    continues. The exit code is 1 if a program is at fault. A point that does not fit its machine is not
    an error.

    \b
    Example:
      accel sweep docs/experiments/latency.toml
      accel sweep --workload gemm --vary M=256 --vary N=256 --vary K=256 --vary vthreads=1,2,4 \\
          --vary run.read_latency=16,64,256 --plot read_latency,utilization,vthreads
    """
