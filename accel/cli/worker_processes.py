"""Running many programs in several processes."""

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from multiprocessing import active_children, get_context
from typing import TYPE_CHECKING, TypeVar

from rich.console import Console
from rich.progress import track

from accel.base.errors import AccelError
from accel.core.config import Config
from accel.core.isa import Loops
from accel.run.program import Program

if TYPE_CHECKING:
    from accel.hw.engines.engine_driver import Engine

T = TypeVar("T")
R = TypeVar("R")

_WORTH_PROCESSES = 2.0
"""Seconds of work for which processes pay off."""
_SECONDS = {
    "simulators": {"program": 2e-3, "instruction": 50e-6, "uop": 0.2e-6},
    "rtl": {"program": 30e-3, "instruction": 100e-6, "uop": 3e-6},
}
"""Estimated seconds of a run."""


def worthwhile_jobs(programs: Sequence[Program], backend: str) -> int:
    """Return one process for little work, or one per processor."""
    seconds = sum(_seconds(program, backend) for program in programs)
    return (os.cpu_count() or 1) if seconds > _WORTH_PROCESSES else 1


def _seconds(program: Program, backend: str) -> float:
    seconds = _SECONDS["rtl" if backend == "rtl" else "simulators"]
    uops = sum(one.uop_count for one in program.instructions if isinstance(one, Loops))
    instructions = len(program.instructions)
    return seconds["program"] + instructions * seconds["instruction"] + uops * seconds["uop"]


def build_machines(programs: Iterable[Program], engine: str | None) -> None:
    """Build models before processes need them."""
    from accel.hw.engines.open_engine import open_engine  # it imports amaranth

    machines = list(dict.fromkeys(program.config.hardware for program in programs))
    for config in with_progress(machines, len(machines), "building"):
        if engine != "pysim":  # each process elaborates its own design
            open_engine(config, engine).close()


@cache
def kept_machine(config: Config, engine: str | None) -> "Engine":
    from accel.hw.engines.open_engine import open_engine

    return open_engine(config, engine)


def in_processes(run: Callable[[T], R], items: Sequence[T], jobs: int) -> Iterator[R]:
    """Yield results in order.

    Raises:
        AccelError: a process has died.
    """
    if jobs == 1 or len(items) <= 1:
        yield from map(run, items)
        return
    workers = min(jobs, len(items))
    with ProcessPoolExecutor(workers, get_context("spawn"), initializer=_leave_interrupts) as pool:
        try:
            yield from pool.map(run, items)
        except BrokenProcessPool:
            raise AccelError("a process has died, maybe for lack of memory; --jobs 1 takes least") from None
        except BaseException:
            for child in active_children():
                child.kill()
            raise


def _leave_interrupts() -> None:
    """The parent handles Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def with_progress(items: Iterable[T], total: int, what: str) -> Iterable[T]:
    if not sys.stderr.isatty():
        return items
    return track(items, what, total=total, console=Console(stderr=True), transient=True)
