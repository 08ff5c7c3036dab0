"""``accel show``: a program at every stage of the compiler."""

from pathlib import Path

import click

from accel.base.errors import AccelError
from accel.cli.compile_network import show_network
from accel.cli.declared_options import complete
from accel.cli.shared_options import load_program
from accel.cli.stdout import write
from accel.image.image import is_network
from accel.network.network_text import STAGES as NETWORK_STAGES
from accel.run.stage_listing import STAGES, stage_text


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--stage",
    metavar="|".join((*STAGES, *NETWORK_STAGES)),
    shell_complete=complete((*STAGES, *NETWORK_STAGES)),
    help="The stage.  [default: tensorized; for a network, placed]",
)
def show(file: Path, stage: str | None) -> None:
    """Show a program at one stage of its compilation.

    \b
    Stages of a program:
      nest        the naive loops
      scheduled   after split, tile, reorder and caches
      tensorized  with intrinsics
      threads     with virtual threads interleaved
      passes      the passes that reordered instructions, and how many each moved
      streams     the access/execute streams with their tokens
      asm         the instructions

    \b
    Stages of a network:
      graph       tensors and nodes
      fused       nodes that run as one layer
      placed      the placement of each node, and the reason
      memory      the offsets of tensors between layers

    \b
    Example:
      accel show gemm.accel --stage streams
      accel show net.accel --stage memory
    """
    if is_network(file):
        write(show_network(file, stage or "placed"))
        return
    if stage in NETWORK_STAGES:
        raise AccelError(f"stage {stage!r} is one of networks, and {str(file)!r} holds none")
    write(stage_text(load_program(file), stage or "tensorized"))
