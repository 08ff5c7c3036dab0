from collections.abc import Iterator
from functools import partial
from pathlib import Path

import click

from accel.cli.shared_options import load_program
from accel.cli.terminal_output import print_json, show, text_table
from accel.cli.worker_processes import (
    build_machines,
    in_processes,
    kept_machine,
    with_progress,
    worthwhile_jobs,
)
from accel.core.fault_causes import Cause
from accel.hw.engines.open_engine import DEFAULT_ENGINE
from accel.run.lockstep import Lockstep, Scope
from accel.run.lockstep import lockstep as run_lockstep
from accel.run.program import Program
from accel.run.replay import find_programs, program_name
from accel.run.result import SCHEMA_VERSION


def lockstep(
    files: tuple[Path, ...],
    vectors: tuple[Path, ...],
    engine: str | None,
    hostile: bool,
    serial: bool,
    jobs: int | None,
    seed: int,
    settings: tuple[str, ...],
    max_cycles: int,
    max_uops: int,
    as_json: bool,
) -> int:
    paths = [*files, *vectors]
    if not paths:
        raise click.UsageError("no program is given; give program files or --vector DIR")
    named = [(path, load_program(path, settings, serial=serial)) for path in find_programs(paths)]
    programs = [program for _, program in named]
    build_machines(programs, engine)
    compare = partial(
        _compare, engine=engine, seed=seed, max_cycles=max_cycles, max_uops=max_uops, hostile=hostile
    )
    if jobs is None:
        jobs = worthwhile_jobs(programs, "rtl")
    found = with_progress(in_processes(compare, programs, jobs), len(programs), "comparing")
    done = [(program_name(path), str(path), one) for (path, _), one in zip(named, found, strict=True)]
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


def _compare(
    program: Program, *, engine: str | None, seed: int, max_cycles: int, max_uops: int, hostile: bool
) -> Lockstep:
    hardware = kept_machine(program.config.hardware, engine)
    hardware.reset()
    return run_lockstep(
        program, hardware, seed=seed, max_cycles=max_cycles, max_uops=max_uops, hostile=hostile
    )


def _print(done: list[tuple[str, str, Lockstep]], failed: int) -> None:
    table = text_table()
    for heading in ("program", "result", "ends", "cycles", "events"):
        table.add_column(heading, justify="right" if heading in ("cycles", "events") else "left")
    for name, _, one in done:
        verdict = "equal" if one.equal else "DIFFERENT"
        verdict = f"equal, {one.scope.value}" if one.equal and one.scope is not Scope.EVERYTHING else verdict
        ends = "well" if one.cause is Cause.NONE else one.cause.label
        table.add_row(name, verdict, ends, f"{one.cycles:,}", _count(one.events))
    show(table)
    for name, _, one in done:
        for line in _explained(one):
            show(f"{name}: {line}")
    timed = [one.cycles for *_, one in done if one.scope.has_cycles]
    compared = f"{sum(timed):,} cycles compared" if timed else "no cycles compared"
    show(f"{len(done) - failed} of {len(done)} equal, {compared}")


def _count(events: int | None) -> str:
    return "-" if events is None else f"{events:,}"


def _explained(one: Lockstep) -> Iterator[str]:
    difference = one.difference
    if difference is None:
        return
    yield difference.message
    for side, lines in (("simulator", difference.sim), ("hardware", difference.rtl)):
        for line in lines:
            yield f"  {side:9} {line}"
