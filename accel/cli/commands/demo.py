import click

from accel.base.run_choices import BACKENDS, DIGITS
from accel.cli.command_groups import runs
from accel.cli.declared_options import config_option, json_option
from accel.network.model_files import DEFAULT_MACHINE

SIZE, MACHINE = 1024, "gemm8x8"
"""For the matrix product."""
BACKEND, CLOCK = "sim", 100
"""For the network. The clock is in MHz."""


@click.command()
@click.option(
    "--size", type=click.IntRange(1, 4096), help=f"M, N and K of the matrix product.  [default: {SIZE}]"
)
@click.option("--network", is_flag=True, help="Classify handwritten digits instead, with a small network.")
@click.option(
    "--pictures",
    type=click.IntRange(1, DIGITS),
    help=f"Number of pictures for the network.  [default: {DIGITS}]",
)
@click.option(
    "--backend", type=click.Choice(BACKENDS), help=f"The backend of the network.  [default: {BACKEND}]"
)
@click.option(
    "--clock",
    type=click.IntRange(1, 100_000),
    help=f"MHz, for the network's pictures per second.  [default: {CLOCK}]",
)
@click.option("--verbose", is_flag=True, help="Also show each stage of the matrix product.")
@config_option(None, shown=f"{MACHINE}; {DEFAULT_MACHINE} for the network")
@json_option
@runs("accel.cli.demo:demo")
def demo() -> None:
    """Compile, run and check a matrix product or a small network.

    The network classifies handwritten digits that were not in its training data. Every tensor is compared
    with numpy, and the scores with ONNX Runtime if it is installed.

    \b
    Example:
      accel demo --size 256
      accel demo --network --pictures 20
    """
