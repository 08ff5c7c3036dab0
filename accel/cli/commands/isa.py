import click

from accel.cli.command_groups import runs
from accel.cli.declared_options import config_option, set_option


@click.command()
@config_option("vta")
@set_option("geometry or timing")
@click.option("--c", "as_c", is_flag=True, help="Print a C header instead.")
@runs("accel.cli.isa:isa", multiplies=False)
def isa() -> None:
    """Print the instruction set manual.

    It has formats, meanings and errors, as Markdown. The C header has the numbers of opcodes, memories and
    ALU operations, also of your own, and the bits of all fields.

    \b
    Example:
      accel isa --config gemm8x8
      accel isa --config vta-npu --c > accel_isa.h
    """
