import click

from accel.cli.command_groups import runs


@click.command()
@click.option("--c", "as_c", is_flag=True, help="Print a C header instead.")
@runs("accel.cli.registers:registers", multiplies=False)
def registers() -> None:
    """Print the manual of the control registers.

    It has addresses, bits, access and causes, as Markdown.

    \b
    Example:
      accel registers --c > accel_registers.h
    """
