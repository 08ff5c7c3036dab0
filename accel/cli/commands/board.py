from pathlib import Path

import click

from accel.cli.command_groups import runs
from accel.cli.declared_options import config_option, json_option, seed_option, set_option
from accel.hw.board.board_defaults import CLOCK_MHZ, CONFIG, RATE, SIMULATED


@click.command()
@click.argument("file", required=False, metavar="[FILE]", type=click.Path(path_type=Path))
@click.option("--port", metavar="PORT", help=f"The serial port, or '{SIMULATED}': the design in Verilator.")
@click.option(
    "--bitstream", metavar="OUT.bit", type=click.Path(path_type=Path), help="Write the FPGA's bitstream."
)
@config_option(CONFIG)
@set_option("geometry or timing")
@click.option(
    "--clock", type=float, default=CLOCK_MHZ, show_default=True, help="Clock of the bitstream's core in MHz."
)
@click.option("--rate", type=click.IntRange(1), default=RATE, show_default=True, help="Bits per second.")
@click.option(
    "--count",
    type=click.IntRange(1, 100),
    default=10,
    show_default=True,
    help="Number of pictures to classify if there is no FILE.",
)
@seed_option
@json_option
@runs("accel.cli.board:board")
def board() -> None:
    """Run on an FPGA board, and compare with the simulator.

    The board is a ULX3S with the core, memory and a serial line: docs/how-to/put-it-on-an-fpga.md. Without
    FILE, it classifies handwritten digits with the network of 'accel demo --network'. Inputs of FILE are
    random. With --bitstream, it writes the FPGA's bitstream, which takes many minutes.

    \b
    Example:
      accel board --bitstream ulx3s.bit
      accel board --port /dev/ttyUSB0
      accel board net.accel --port simulated
    """
