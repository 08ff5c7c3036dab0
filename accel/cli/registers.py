"""``accel registers``: the manual of the control registers."""

import click

from accel.cli.stdout import write
from accel.core.register_manual import c_header, registers_manual


@click.command()
@click.option("--c", "as_c", is_flag=True, help="Print a C header instead.")
def registers(as_c: bool) -> None:
    """Print the manual of the control registers.

    It has addresses, bits, access and causes, as Markdown.

    \b
    Example:
      accel registers --c > accel_registers.h
    """
    write(c_header() if as_c else registers_manual())
