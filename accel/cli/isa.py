"""``accel isa``: the reference of the instruction set."""

import click

from accel.cli.common import config_option, parse_settings, set_option
from accel.cli.output import write
from accel.compiler.target.machine import machine
from accel.core.isa_manual import isa_manual


@click.command()
@config_option("vta")
@set_option("geometry or timing")
def isa(config: str, settings: tuple[str, ...]) -> None:
    """Print the reference of the instruction set.

    Formats, meanings and errors, as Markdown.

    \b
    Example:
      accel isa --config gemm8x8
    """
    write(isa_manual(machine(config, **parse_settings(settings)).config))
