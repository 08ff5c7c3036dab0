"""``accel disasm``: a program as text."""

from pathlib import Path

import click

from accel.assembly import disassemble
from accel.cli.shared_options import load_program
from accel.cli.stdout import write


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--micro-ops",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="List the first N micro-ops of each GEMM and ALU, with loops expanded.",
)
def disasm(file: Path, micro_ops: int) -> None:
    """List a program as text that 'accel asm' reads back.

    Tokens are arrows: <load waits for a token from the load unit, >store sends one to the store unit.
    Addresses in DRAM are names of tensors. Comments show what each instruction accesses.

    \b
    Example:
      accel disasm gemm.accel --micro-ops 8
    """
    write(disassemble(load_program(file), micro_ops=micro_ops))
