"""``accel isa``: the reference of the instruction set."""

import click

from accel.cli.common import parse_settings, set_option, write
from accel.machines import machine
from accel.manual import isa_manual


@click.command()
@click.option("--config", default="vta", show_default=True, metavar="NAME|FILE", help="The machine.")
@set_option("geometry or timing")
def isa(config: str, settings: tuple[str, ...]) -> None:
    """Print the instruction set's reference.

    Formats, meaning and errors, as Markdown.

    \b
    Example:
      accel isa --config gemm8x8
    """
    write(isa_manual(machine(config, **parse_settings(settings)).config))
