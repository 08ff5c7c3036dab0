"""``accel replay``: run programs that state their expected results, and compare."""

import os
import signal
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache, partial
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import TypeVar

import click
from rich.console import Console
from rich.progress import track
from rich.table import Table

from accel.base.errors import AccelError
from accel.cli.common import (
    backend_option,
    engine_option,
    json_option,
    limit_options,
    order_option,
    print_json,
    seed_option,
    show,
)
from accel.core.config import Config
from accel.core.isa import Loops
from accel.hw.engines.choose import open_engine
from accel.hw.engines.driver import Engine
from accel.run.backends.choose import check_backend, check_options
from accel.run.options import RunOptions
from accel.run.program import BACKENDS, Program
from accel.run.replay import Replay, load_tests, program_name
from accel.run.replay import replay as replay_program
from accel.run.result import SCHEMA_VERSION

T = TypeVar("T")

_WORTH_PROCESSES = 2.0
"""Seconds of work from which on it pays to start processes."""
_SECONDS = {
    "simulators": {"program": 2e-3, "instruction": 50e-6, "uop": 0.2e-6},
    "rtl": {"program": 30e-3, "instruction": 100e-6, "uop": 3e-6},
}
"""What running takes, roughly."""


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(path_type=Path))
@backend_option("functional", "functional: memory only; sim: cycles too; rtl: the hardware itself.")
@engine_option("What simulates the hardware (backend rtl).")
@order_option
@click.option("--jobs", type=click.IntRange(1), help="Number of processes.  [default: as many as pay off]")
@seed_option
@limit_options
@json_option
def replay(
    paths: tuple[Path, ...],
    backend: str,
    engine: str | None,
    order: str,
    jobs: int | None,
    seed: int,
    max_cycles: int,
    max_uops: int,
    as_json: bool,
) -> int:
    """Run programs that state their expected results.

    A PATH is a vector from another VTA compiler (a folder of config.json, insn.bin, dram_before.npz and
    expect.npz), a test in assembly (.s, see docs/assembly.md), or a folder of such programs. Memory and the
    way the run ends are compared with what is expected. Scratchpads start with random contents, except for
    what a test presets. The exit code is 1 if any of them fails.

    \b
    Example:
      accel replay vectors/ tests/programs --backend sim
      accel replay vectors/ --backend rtl
    """
    check_backend(backend, BACKENDS)
    check_options(backend, RunOptions(order="random" if order == "random" else "program", engine=engine))
    programs = [(str(path), program) for path, program in load_tests(list(paths))]
    if backend == "rtl":
        _build([program for _, program in programs], engine)
    run = partial(
        _replay,
        backend=backend,
        engine=engine,
        seed=seed,
        random_order=order == "random",
        max_cycles=max_cycles,
        max_uops=max_uops,
    )
    if jobs is None:
        seconds = sum(_seconds(program, backend) for _, program in programs)
        jobs = (os.cpu_count() or 1) if seconds > _WORTH_PROCESSES else 1
    done = list(_with_progress(_map(run, programs, jobs), len(programs), "replaying"))
    passed, failed = (sum(one.passed is verdict for one in done) for verdict in (True, False))
    if as_json:
        print_json(
            {
                "schema_version": SCHEMA_VERSION,
                "backend": backend,
                "passed": passed,
                "failed": failed,
                "skipped": len(done) - passed - failed,
                "programs": [one.to_dict() for one in done],
            }
        )
    else:
        _print(done, passed, failed)
    return 1 if failed else 0


def _build(programs: list[Program], engine: str | None) -> None:
    """Build the hardware of the programs where that has not been done; the processes find it."""
    machines = list(dict.fromkeys(program.config.hardware for program in programs))
    for config in _with_progress(machines, len(machines), "building"):
        if engine != "pysim":  # each process elaborates its own
            open_engine(config, engine).close()


@cache
def _machine(config: Config, engine: str | None) -> Engine:
    """The hardware in this process."""
    return open_engine(config, engine)


def _replay(
    named: tuple[str, Program],
    *,
    backend: str,
    engine: str | None,
    seed: int,
    random_order: bool,
    max_cycles: int,
    max_uops: int,
) -> Replay:
    path, program = named
    hardware = _machine(program.config.hardware, engine) if backend == "rtl" else None
    if hardware is not None:
        hardware.reset()
    return replay_program(
        program,
        name=program_name(Path(path)),
        path=path,
        backend=backend,
        hardware=hardware,
        seed=seed,
        order="random" if random_order else "program",
        max_cycles=max_cycles,
        max_uops=max_uops,
    )


def _seconds(program: Program, backend: str) -> float:
    """What a program takes to run, roughly."""
    seconds = _SECONDS["rtl" if backend == "rtl" else "simulators"]
    uops = sum(one.uop_count for one in program.instructions if isinstance(one, Loops))
    instructions = len(program.instructions)
    return seconds["program"] + instructions * seconds["instruction"] + uops * seconds["uop"]


def _map(run: "partial[Replay]", programs: list[tuple[str, Program]], jobs: int) -> Iterator[Replay]:
    """The outcomes in order, from several processes if there are several jobs."""
    if jobs == 1 or len(programs) == 1:
        yield from map(run, programs)
        return
    workers = min(jobs, len(programs))
    with ProcessPoolExecutor(workers, get_context("spawn"), initializer=_leave_interrupts) as pool:
        try:
            yield from pool.map(run, programs)
        except BrokenProcessPool:
            raise AccelError("a process has died, maybe for lack of memory; --jobs 1 takes least") from None
        except BaseException:
            for child in active_children():
                child.kill()
            raise


def _leave_interrupts() -> None:
    """Ctrl-C is for the process that started this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _with_progress(items: Iterable[T], total: int, what: str) -> Iterable[T]:
    """The items, with a progress bar on a terminal."""
    if not sys.stderr.isatty():
        return items
    return track(items, what, total=total, console=Console(stderr=True), transient=True)


def _print(done: list[Replay], passed: int, failed: int) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("program", "result", "instructions", "micro-ops", "cycles"):
        table.add_column(heading, justify="left" if heading in ("program", "result") else "right")
    for one in done:
        verdict = {True: "pass", False: "FAIL", None: "skip"}[one.passed]
        numbers = (one.figures.instructions, one.figures.uops, one.figures.cycles)
        table.add_row(one.name, verdict, *("" if n is None else f"{n:,}" for n in numbers))
    show(table)
    for one in done:
        for difference in one.differences:
            show(f"{one.name}: {difference}")
    skipped = len(done) - passed - failed
    more = f", {skipped} skipped: this backend knows no cycles" if skipped else ""
    show(f"{passed} of {len(done) - skipped} passed{more}")
