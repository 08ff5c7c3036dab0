"""``accel demo``: the main job from end to end, each stage in short."""

import click

from accel.cli.common import busy, config_option, show
from accel.cli.output import write
from accel.cli.pictures import terminal_timeline
from accel.cli.run import print_result
from accel.compiler.ops.workload import gemm
from accel.compiler.target.machine import machine
from accel.run.program import build
from accel.run.stages import STAGES, stage_text

_TITLES = {
    "nest": "1. The computation, as naive loops",
    "scheduled": "2. Scheduled: tiled, operands and sums kept in scratchpads",
    "tensorized": "3. Tensorized: loops replaced by declared intrinsics",
    "streams": "4. Streams: what each unit does, with the tokens between them",
    "asm": "5. Instructions, 128 bits each",
}
_LINES = {"streams": 12, "asm": 12}
"""How much of a stage is shown; of the others, which are loops, more."""
_LOOP_LINES = 32


@click.command()
@click.option("--size", type=click.IntRange(1, 4096), default=1024, show_default=True, help="M, N and K.")
@config_option("gemm8x8")
def demo(size: int, config: str) -> None:
    """Compile, prove, run and check a matrix product.

    Shows each stage in brief.

    \b
    Example:
      accel demo --size 256
    """
    target = machine(config)
    show(f"C = saturate((A.T @ B) >> 12), int8, {size} x {size} x {size}, on {target.config}\n")
    with busy("compiling"):
        program = build(gemm(size, size, size, transpose_a=True, shift=12), target)
    for stage in STAGES:
        if stage not in _TITLES:
            continue
        lines = stage_text(program, stage).splitlines()
        most = _LINES.get(stage, _LOOP_LINES)
        show(_TITLES[stage])
        show("\n".join("    " + line for line in lines[:most]))
        if len(lines) > most:
            show(f"    ... {len(lines) - most:,} more lines")
        show("")
    show("6. Checked before it runs: no deadlock, no race, whatever the timing\n")
    with busy("running"):
        result = program.run()
    show("7. Run, cycle by cycle, and compared with numpy")
    print_result(program, result)
    show("\n8. How load, compute and store overlap")
    write(terminal_timeline(result))
    result.raise_if_wrong()
