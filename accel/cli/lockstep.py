"""``accel lockstep``: simulator and hardware side by side."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import click
from rich.console import Console
from rich.progress import track
from rich.table import Table

from accel.cli.common import (
    engine_option,
    json_option,
    limit_options,
    load_program,
    print_json,
    seed_option,
    set_option,
    show,
)
from accel.core.faults import Cause
from accel.hw.engines.choose import DEFAULT_ENGINE, open_engine
from accel.run.lockstep import Lockstep, Scope
from accel.run.lockstep import lockstep as run_lockstep
from accel.run.replay import find_programs, program_name
from accel.run.result import SCHEMA_VERSION


@click.command()
@click.argument("files", nargs=-1, metavar="[PATH...]", type=click.Path(path_type=Path))
@click.option(
    "--vector",
    "vectors",
    multiple=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="A vector's folder, or a folder of vectors.",
)
@engine_option("What simulates the hardware.")
@click.option(
    "--hostile", is_flag=True, help="Make memory answer late and stall at random; compare only memory."
)
@click.option("--serial", is_flag=True, help="Monolithic pipeline: one instruction after another.")
@seed_option
@set_option("timing")
@limit_options
@json_option
def lockstep(
    files: tuple[Path, ...],
    vectors: tuple[Path, ...],
    engine: str | None,
    hostile: bool,
    serial: bool,
    seed: int,
    settings: tuple[str, ...],
    max_cycles: int,
    max_uops: int,
    as_json: bool,
) -> int:
    """Compare simulator and hardware in every cycle of a run.

    A PATH is a program file, an assembly text (.s), a vector's folder, or a folder of such programs. Both
    sides start from the same random inputs and scratchpads; every event of every cycle, the way the run ends,
    the counters and memory must be equal. A program that may race only has to end cleanly. If anything
    differs, the first difference is shown with what both sides do around it, and the exit code is 1.

    \b
    Example:
      accel lockstep gemm.accel --set read_latency=7
    """
    paths = [*files, *vectors]
    if not paths:
        raise click.UsageError("no program is given; give program files or --vector DIR")
    done: list[tuple[str, str, Lockstep]] = []
    for path in _with_progress(find_programs(paths)):
        program = load_program(path, settings, serial=serial)
        with open_engine(program.config, engine) as hardware:
            one = run_lockstep(
                program, hardware, seed=seed, max_cycles=max_cycles, max_uops=max_uops, hostile=hostile
            )
        done.append((program_name(path), str(path), one))
    failed = sum(not one.equal for *_, one in done)
    if as_json:
        print_json(
            {
                "schema_version": SCHEMA_VERSION,
                "engine": engine or DEFAULT_ENGINE,
                "passed": len(done) - failed,
                "failed": failed,
                "programs": [{"name": name, "path": path} | one.to_dict() for name, path, one in done],
            }
        )
    else:
        _print(done, failed)
    return 1 if failed else 0


def _with_progress(paths: list[Path]) -> Iterable[Path]:
    return track(
        paths,
        "comparing",
        console=Console(stderr=True),
        transient=True,
        disable=not Console(stderr=True).is_terminal,
    )


def _print(done: list[tuple[str, str, Lockstep]], failed: int) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("program", "result", "ends", "cycles", "events"):
        table.add_column(heading, justify="right" if heading in ("cycles", "events") else "left")
    for name, _, one in done:
        verdict = "equal" if one.equal else "DIFFERENT"
        verdict = f"equal, {one.scope.value}" if one.equal and one.scope is not Scope.EVERYTHING else verdict
        ends = "well" if one.cause is Cause.NONE else one.cause.label
        table.add_row(name, verdict, ends, f"{one.cycles:,}", f"{one.events:,}")
    show(table)
    for name, _, one in done:
        for line in _explained(one):
            show(f"{name}: {line}")
    cycles = sum(one.cycles for *_, one in done)
    show(f"{len(done) - failed} of {len(done)} equal, {cycles:,} cycles compared")


def _explained(one: Lockstep) -> Iterator[str]:
    """The difference in lines."""
    difference = one.difference
    if difference is None:
        return
    yield difference.message
    for side, lines in (("simulator", difference.sim), ("hardware", difference.rtl)):
        for line in lines:
            yield f"  {side:9} {line}"
