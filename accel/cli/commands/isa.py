"""Help of ``accel isa``."""

import click

from accel.cli.command_groups import runs
from accel.cli.declared_options import config_option, set_option


@click.command()
@config_option("vta")
@set_option("geometry or timing")
@runs("accel.cli.isa:isa")
def isa() -> None:
    """Print the instruction set manual.

    It has formats, meanings and errors, as Markdown.

    \b
    Example:
      accel isa --config gemm8x8
    """
