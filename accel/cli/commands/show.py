from pathlib import Path

import click

from accel.base.run_choices import NETWORK_STAGES, PROGRAM_STAGES
from accel.cli.command_groups import runs
from accel.cli.declared_options import choice_option


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@choice_option(
    "--stage",
    (*PROGRAM_STAGES, *NETWORK_STAGES),
    "The stage.  [default: tensorized; for a network, placed]",
)
@runs("accel.cli.show:show", multiplies=False)
def show() -> None:
    """Show a program at one stage of its compilation.

    \b
    Stages of a program:
      nest        the naive loops
      scheduled   after split, tile, reorder and caches
      tensorized  with intrinsics
      folded      with reset and bias in one step, where that is possible
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
