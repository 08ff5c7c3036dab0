from pathlib import Path

import click

from accel.cli.command_groups import runs
from accel.cli.declared_options import json_option


@click.command()
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", metavar="DIR", type=click.Path(path_type=Path), required=True, help="The folder."
)
@click.option("--name", help="Prefix of the C symbols.  [default: the name of FILE]")
@click.option("--embed", is_flag=True, help="Also write the binary files as C arrays.")
@click.option("--example", is_flag=True, help="Also write random inputs and their outputs as C arrays.")
@click.option(
    "--cut",
    is_flag=True,
    help="Leave out nodes that the driver lacks, so that their operands become outputs.",
)
@click.option("--force", is_flag=True, help="Replace an existing package in DIR.")
@json_option
@runs("accel.cli.package:package")
def package() -> None:
    """Write a network or a program as files for firmware.

    DIR receives instructions and constants as they lie in memory, a manifest, and C99 sources without
    dependencies: a driver for the accelerator, and tables by which it quantizes and packs inputs, runs the
    machine and unpacks outputs. docs/how-to/deploy-to-firmware.md shows how to bring it onto a board.

    \b
    Example:
      accel compile onnx model.onnx -o net.accel
      accel package net.accel -o firmware/net
    """
