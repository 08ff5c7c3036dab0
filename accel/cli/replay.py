from functools import partial
from pathlib import Path

from accel.base.run_choices import BACKENDS
from accel.cli.terminal_output import print_json, show, text_table
from accel.cli.worker_processes import (
    build_machines,
    in_processes,
    kept_machine,
    with_progress,
    worthwhile_jobs,
)
from accel.run.backends.open_backend import check_backend, check_options
from accel.run.program import Program
from accel.run.replay import Replay, load_tests, program_name
from accel.run.replay import replay as replay_program
from accel.run.result import SCHEMA_VERSION
from accel.run.run_options import RunOptions


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
    check_backend(backend, BACKENDS)
    check_options(backend, RunOptions(order="random" if order == "random" else "program", engine=engine))
    programs = [(str(path), program) for path, program in load_tests(list(paths))]
    if backend == "rtl":
        build_machines([program for _, program in programs], engine)
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
        jobs = worthwhile_jobs([program for _, program in programs], backend)
    done = list(with_progress(in_processes(run, programs, jobs), len(programs), "replaying"))
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
    hardware = kept_machine(program.config.hardware, engine) if backend == "rtl" else None
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


def _print(done: list[Replay], passed: int, failed: int) -> None:
    table = text_table()
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
