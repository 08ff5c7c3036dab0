from pathlib import Path

import click

from accel.cli.command_groups import runs


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--micro-ops",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="List the first N micro-ops of each GEMM and ALU, with loops expanded.",
)
@runs("accel.cli.disasm:disasm", multiplies=False)
def disasm() -> None:
    """List a program as text that 'accel asm' reads back.

    Tokens are arrows: <load waits for a token from the load unit, >store sends one to the store unit.
    Addresses in DRAM are names of tensors. Comments show what each instruction accesses.

    \b
    Example:
      accel disasm gemm.accel --micro-ops 8
    """
