import click

from accel.cli.command_groups import runs
from accel.cli.declared_options import json_option, set_option


@click.command()
@click.argument("name", required=False, metavar="[NAME|FILE]")
@set_option("geometry or timing")
@click.option(
    "--markdown", "as_markdown", is_flag=True, help="Print the reference of all fields as Markdown."
)
@click.option(
    "--area", is_flag=True, help="Print the predicted resources on an ECP5, and the errors of the prediction."
)
@json_option
@runs("accel.cli.configs:configs", multiplies=False)
def configs() -> None:
    """List the machines, or every field of one.

    --config accepts a file with the output of --json. docs/how-to/change-the-machine.md describes further
    formats.

    \b
    Example:
      accel configs gemm8x8
      accel configs ecp5 --area
      accel configs vta --set inp_bytes=64KiB --json > mine.json
      accel compile gemm -m 64 -n 64 -k 64 --config mine.json
    """
