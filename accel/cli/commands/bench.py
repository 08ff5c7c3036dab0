from pathlib import Path

import click

from accel.base.run_choices import BENCHMARKS, EPILOGUES
from accel.cli.command_groups import runs
from accel.cli.declared_options import config_option, json_option, seed_option, set_option


@click.command()
@click.argument("network", metavar="|".join(BENCHMARKS))
@config_option("vta")
@set_option("geometry or timing")
@click.option(
    "--epilogue",
    type=click.Choice(EPILOGUES),
    help="The epilogue: a scale for each channel and zero points, or a shift.  [default: scale on "
    "machines with post=1, shift on others]",
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE.md", help="Write a Markdown page."
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Number of processes. With more than one, seconds include waiting for one another.",
)
@click.option(
    "--mapping",
    metavar="NAME",
    help="The mapping of each layer, see 'accel compile'.  [default: auto for layers "
    "with an input from the host, otherwise plain]",
)
@click.option(
    "--energy",
    is_flag=True,
    help="Also print the energy by component and by layer, from counts of accesses and published energies.",
)
@seed_option
@json_option
@runs("accel.cli.bench:bench")
def bench() -> None:
    """Measure a network's layers against the machine's limit.

    The results are compared with numpy. The exit code is 1 if any differs. docs/reference/networks.md
    explains the epilogues and columns.

    \b
    Example:
      accel bench resnet18
      accel bench resnet18 --config vta-int8 --energy
      accel bench gemm --config gemm8x8 --set read_latency=200 --json
    """
