"""``accel show``: a program at every stage of the compiler."""

from pathlib import Path

import click

from accel.cli.common import complete, load_program
from accel.cli.output import write
from accel.run.stages import STAGES, stage_text


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--stage",
    default="tensorized",
    show_default=True,
    metavar="|".join(STAGES),
    shell_complete=complete(STAGES),
    help="What to show.",
)
def show(file: Path, stage: str) -> None:
    """Show a program at one stage of its compilation.

    nest: the naive loops. scheduled: after split, tile, reorder, caches. tensorized: with intrinsics.
    threads: with virtual threads interleaved. streams: the access/execute streams with their tokens.
    asm: the instructions.

    \b
    Example:
      accel show gemm.accel --stage streams
    """
    write(stage_text(load_program(file), stage))
