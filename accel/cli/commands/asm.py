from pathlib import Path

import click

from accel.cli.command_groups import runs
from accel.cli.declared_options import json_option


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="The program file.")
@json_option
@runs("accel.cli.asm:asm", multiplies=False)
def asm() -> None:
    """Assemble a text into a program file.

    'accel disasm' prints the same language, which docs/reference/assembly.md describes. The program file
    also contains the initial state and the expected results of a test.

    \b
    Example:
      accel asm test.s -o test.accel
    """
