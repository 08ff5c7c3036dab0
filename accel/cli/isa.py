"""``accel isa``: the instruction set manual."""

import click

from accel.cli.shared_options import config_option, parse_settings, set_option
from accel.cli.stdout import write
from accel.compiler.target.machine import machine
from accel.core.isa_manual import isa_manual


@click.command()
@config_option("vta")
@set_option("geometry or timing")
def isa(config: str, settings: tuple[str, ...]) -> None:
    """Print the instruction set manual.

    It has formats, meanings and errors, as Markdown.

    \b
    Example:
      accel isa --config gemm8x8
    """
    write(isa_manual(machine(config, **parse_settings(settings)).config))
