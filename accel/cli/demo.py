from collections.abc import Mapping

from accel.base.errors import AccelError
from accel.base.run_choices import DIGITS
from accel.cli.commands.demo import BACKEND, CLOCK, MACHINE, SIZE
from accel.cli.demo_network import demo_network
from accel.cli.picture_options import terminal_timeline
from accel.cli.shared_options import machine_row
from accel.cli.stdout import write
from accel.cli.terminal_output import FiguresTable, busy, show
from accel.compiler.ops.workload import gemm
from accel.compiler.target.machine import machine
from accel.network.model_files import DEFAULT_MACHINE
from accel.run.build_program import build
from accel.run.program import Program
from accel.run.run_headline import headline
from accel.run.stage_listing import STAGES, stage_text

_TITLES = {
    "nest": "1. The computation, as naive loops",
    "scheduled": "2. Scheduled: tiled, operands and sums kept in scratchpads",
    "tensorized": "3. Tensorized: loops replaced by declared intrinsics",
    "streams": "4. Streams: what each unit does, with the tokens between them",
    "asm": "5. Instructions, 128 bits each",
}
_LINES = {"streams": 12, "asm": 12}
_LOOP_LINES = 32
_CHART_CYCLES = 4000
"""In a longer chart, a column's most frequent state hides transfers."""


def demo(
    size: int | None,
    network: bool,
    pictures: int | None,
    backend: str | None,
    clock: int | None,
    verbose: bool,
    config: str | None,
    as_json: bool,
) -> int:
    if network:
        _refuse(
            {"--size": size, "--verbose": verbose or None}, "the matrix product, which --network replaces"
        )
        return demo_network(
            count=DIGITS if pictures is None else pictures,
            config=config or DEFAULT_MACHINE,
            backend=backend or BACKEND,
            clock=CLOCK if clock is None else clock,
            as_json=as_json,
        )
    others = {"--pictures": pictures, "--backend": backend, "--clock": clock, "--json": as_json or None}
    _refuse(others, "the network, which --network runs")
    _demo_product(SIZE if size is None else size, config or MACHINE, verbose=verbose)
    return 0


def _refuse(options: Mapping[str, object], use: str) -> None:
    for name, value in options.items():
        if value is not None:
            raise AccelError(f"{name} is given; it is for {use}")


def _demo_product(size: int, config: str, *, verbose: bool) -> None:
    target = machine(config)
    with busy("compiling"):
        program = build(gemm(size, size, size, transpose_a=True, shift=12), target)
    with busy("running"):
        result = program.run()
    found = headline(result)
    wrong = "all equal" if not result.mismatches else f"{result.mismatches:,} MISMATCHES"
    show(f"C = saturate((A.T @ B) >> 12), int8, {size} x {size} x {size}\n")
    if found is not None:
        show(f"{found.text}\n")
    rows = [
        machine_row(target.config),
        ("cycles", f"{result.cycles:,}"),
        ("utilization", f"{result.utilization or 0:.1%} of the GEMM core"),
        ("instructions", f"{len(program.instructions):,}, no deadlock, no race: proven for every timing"),
        ("compared to numpy", wrong),
    ]
    show(FiguresTable(rows))
    is_long = (result.cycles or 0) > _CHART_CYCLES
    show("\nHow load, compute and store overlap" + (", in the middle of the run" if is_long else ""))
    write(terminal_timeline(result, _CHART_CYCLES if is_long else None))
    if verbose:
        _show_stages(program)
    else:
        show("accel demo --verbose also shows each stage, from loops to instructions")
    result.raise_if_wrong()


def _show_stages(program: Program) -> None:
    for stage in STAGES:
        if stage not in _TITLES:
            continue
        lines = stage_text(program, stage).splitlines()
        most = _LINES.get(stage, _LOOP_LINES)
        show(f"\n{_TITLES[stage]}")
        show("\n".join("    " + line for line in lines[:most]))
        if len(lines) > most:
            show(f"    ... {len(lines) - most:,} more lines")
