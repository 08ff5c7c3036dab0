"""``accel show``: a program at every stage of the compiler."""

from pathlib import Path

import click

from accel.base.errors import AccelError
from accel.cli.common import complete, load_program
from accel.cli.network import show_network
from accel.cli.output import write
from accel.image.image import is_network
from accel.network.text import STAGES as NETWORK_STAGES
from accel.run.stages import STAGES, stage_text


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--stage",
    metavar="|".join((*STAGES, *NETWORK_STAGES)),
    shell_complete=complete((*STAGES, *NETWORK_STAGES)),
    help="What to show.  [default: tensorized; of a network, placed]",
)
def show(file: Path, stage: str | None) -> None:
    """Show a program at one stage of its compilation.

    nest: the naive loops. scheduled: after split, tile, reorder, caches. tensorized: with intrinsics.
    threads: with virtual threads interleaved. streams: the access/execute streams with their tokens.
    asm: the instructions.

    Of a network, graph: tensors and nodes. fused: nodes that run as one. placed: where they run, and why.
    memory: where tensors between layers lie.

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
