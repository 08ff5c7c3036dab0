"""``accel demo``: the main job from end to end, each stage in short."""

from collections.abc import Mapping

import click

from accel.base.errors import AccelError
from accel.cli.common import busy, config_option, json_option, show
from accel.cli.demo_network import demo_network
from accel.cli.output import write
from accel.cli.pictures import terminal_timeline
from accel.cli.run import print_result
from accel.compiler.ops.workload import gemm
from accel.compiler.target.machine import machine
from accel.network.digits import COUNT
from accel.network.network import DEFAULT_MACHINE
from accel.run.build import build
from accel.run.program import BACKENDS
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
_SIZE, _MACHINE = 1024, "gemm8x8"
"""Of the matrix product."""
_BACKEND, _CLOCK = "sim", 100
"""Of the network; the clock in MHz."""


@click.command()
@click.option(
    "--size", type=click.IntRange(1, 4096), help=f"M, N and K of the matrix product.  [default: {_SIZE}]"
)
@click.option("--network", is_flag=True, help="Classify handwritten digits instead, with a small network.")
@click.option(
    "--pictures",
    type=click.IntRange(1, COUNT),
    help=f"How many the network classifies.  [default: {COUNT}]",
)
@click.option("--backend", type=click.Choice(BACKENDS), help=f"What runs the network.  [default: {_BACKEND}]")
@click.option(
    "--clock",
    type=click.IntRange(1, 100_000),
    help=f"MHz, for the network's pictures per second.  [default: {_CLOCK}]",
)
@config_option(None, f"{_MACHINE}; {DEFAULT_MACHINE} for the network")
@json_option
def demo(
    size: int | None,
    network: bool,
    pictures: int | None,
    backend: str | None,
    clock: int | None,
    config: str | None,
    as_json: bool,
) -> int:
    """Compile, run and check a matrix product or a small network.

    Of the matrix product each stage is shown in brief. The network classifies handwritten digits that it has
    not learned; every tensor is compared with numpy, and scores with ONNX Runtime if it is installed.

    \b
    Example:
      accel demo --size 256
      accel demo --network --pictures 20
    """
    if network:
        _refuse({"--size": size}, "the matrix product, which --network replaces")
        return demo_network(
            count=COUNT if pictures is None else pictures,
            config=config or DEFAULT_MACHINE,
            backend=backend or _BACKEND,
            clock=_CLOCK if clock is None else clock,
            as_json=as_json,
        )
    others = {"--pictures": pictures, "--backend": backend, "--clock": clock, "--json": as_json or None}
    _refuse(others, "the network, which --network runs")
    _demo_product(_SIZE if size is None else size, config or _MACHINE)
    return 0


def _refuse(options: Mapping[str, object], use: str) -> None:
    """Refuse options of the other demonstration."""
    for name, value in options.items():
        if value is not None:
            raise AccelError(f"{name} is given; it is for {use}")


def _demo_product(size: int, config: str) -> None:
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
