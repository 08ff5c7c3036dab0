"""``accel disasm``: the instructions of a program."""

from pathlib import Path

import click

from accel.cli.common import load_program, write
from accel.listing import assembly_text


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
def disasm(file: Path) -> None:
    """List the instructions of a program.

    Tokens are arrows: <load waits for a token of the load unit, >store sends one to the store unit.

    \b
    Example:
      accel disasm gemm.accel
    """
    write(assembly_text(load_program(file)))
