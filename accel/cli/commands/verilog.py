from pathlib import Path

import click

from accel.cli.command_groups import runs
from accel.cli.declared_options import config_option, json_option, set_option


@click.command()
@config_option("vta")
@set_option("geometry or timing")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="The Verilog file.")
@click.option(
    "--memories",
    type=click.Choice(["inline", "blackbox"]),
    default="inline",
    show_default=True,
    help="Scratchpads as arrays, or as instances of your own module 'accel_memory'.",
)
@click.option("--slices", is_flag=True, help="Add a register slice to every channel of both buses.")
@click.option(
    "--aresetn", is_flag=True, help="Name clock and reset as in AXI: aclk and aresetn (active low)."
)
@json_option
@runs("accel.cli.verilog:verilog", multiplies=False)
def verilog() -> None:
    """Write the core as Verilog, for simulation and synthesis.

    The module 'accel' has a clock, a synchronous reset, an AXI4 manager, an AXI4-Lite subordinate and an
    interrupt. docs/how-to/simulate-the-core-in-ci.md shows how to simulate it.

    \b
    Example:
      accel verilog --config ecp5 -o accel.v
      accel verilog --config vta --set bus_bits=128 --memories blackbox -o accel.v
      accel verilog --config ecp5 --slices --aresetn -o accel.v
    """
