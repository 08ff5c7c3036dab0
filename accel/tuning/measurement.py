"""Compile schedules, and simulate their timing, in this process or others."""

import json
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from types import FrameType, TracebackType
from typing import Any

from msgspec import Struct

from accel.base.errors import AccelError, ScheduleError
from accel.compiler.codegen.compile_schedule import compile_schedule
from accel.compiler.expr.expression_data import expression_from_data, expression_to_data
from accel.compiler.expr.tensor_expressions import Tensor
from accel.compiler.schedule.schedule import Schedule, Step, create_schedule
from accel.compiler.schedule.schedule_steps import apply_steps
from accel.compiler.target.machine import Machine
from accel.core.config import Config
from accel.core.config import from_dict as config_from_dict
from accel.sim.timing.timing_model import simulate_timing
from accel.sweeps.executors import start_worker, without_interrupts

_MAX_DEATHS = 3
"""Deaths of workers in a row before schedules run one at a time."""
_DEATH = "the worker process died while it measured this schedule"
DEFAULT_TIMEOUT = 120


class Outcome(Struct, frozen=True, kw_only=True):
    cycles: int | None = None
    error: str | None = None
    seconds: float = 0.0


class _TimedOut(Exception):
    pass


def measure_schedule(schedule: Schedule, config: Config) -> Outcome:
    begin = time.perf_counter()
    try:
        image = compile_schedule(schedule, config)
        run = simulate_timing(image.instructions, config, address=config.mem_base + image.code_offset)
    except AccelError as error:
        return Outcome(error=str(error), seconds=time.perf_counter() - begin)
    seconds = time.perf_counter() - begin
    if run.stop is not None:
        return Outcome(error=run.stop.fault.message, seconds=seconds)
    return Outcome(cycles=run.cycles, seconds=seconds)


def rebuild(outputs: Sequence[Tensor], steps: Sequence[Step], config: Config) -> Schedule:
    """Make a schedule, or raise a ScheduleError for an impossible step."""
    schedule, machine = create_schedule(outputs), Machine(config)
    apply_steps(schedule, steps, machine.intrinsic, machine.scope)
    return schedule


def can_rebuild(schedule: Schedule, config: Config) -> bool:
    """Whether another process can rebuild a schedule, from the machine's own intrinsics and ALU
    operations."""
    if config.operations != Config().operations:
        return False
    try:
        rebuild(schedule.outputs, schedule.steps, config)
    except ScheduleError:
        return False
    return True


class Measurer:
    """Measures schedules of a computation.

    Args:
        jobs: number of processes. 1 is this process.

    Attributes:
        deaths: died workers. Others repeat their measurements.
    """

    def __init__(
        self, outputs: Sequence[Tensor], config: Config, jobs: int, timeout: float = DEFAULT_TIMEOUT
    ) -> None:
        self._outputs, self._config, self._jobs = outputs, config, jobs
        self._data = json.dumps([expression_to_data(outputs), config.to_dict()]) if jobs > 1 else ""
        self._timeout = timeout
        self._pool: ProcessPoolExecutor | None = None
        self.deaths = 0

    def __enter__(self) -> "Measurer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(abandon=kind is not None)

    def close(self, *, abandon: bool = False) -> None:
        """End the workers, with ``abandon`` without waiting for measurements."""
        if self._pool is None:
            return
        if abandon:
            for process in list(self._pool._processes.values()):
                process.terminate()
        self._pool.shutdown(cancel_futures=True)
        self._pool = None

    @property
    def worker_ids(self) -> list[int]:
        return [] if self._pool is None else list(self._pool._processes)

    def measure(self, schedules: Sequence[Schedule]) -> Iterator[tuple[int, Outcome]]:
        """Yield numbers and outcomes in the order of completion."""
        if self._jobs == 1:
            for number, schedule in enumerate(schedules):
                yield number, measure_schedule(schedule, self._config)
            return
        waiting = {number: list(schedule.steps) for number, schedule in enumerate(schedules)}
        deaths = 0
        while waiting and deaths < _MAX_DEATHS:
            done = 0
            for number, outcome in self._until_death(waiting):
                del waiting[number]
                done += 1
                yield number, outcome
            deaths = 0 if done else deaths + 1
        for number, steps in waiting.items():  # one of them kills its worker
            outcomes = [one for _, one in self._until_death({number: steps})]
            yield number, outcomes[0] if outcomes else Outcome(error=_DEATH)

    def _until_death(self, waiting: dict[int, list[Step]]) -> list[tuple[int, Outcome]]:
        pool = self._started()
        found: list[tuple[int, Outcome]] = []
        futures: dict[Future[Outcome], int] = {}
        try:
            for number, steps in waiting.items():
                futures[pool.submit(_measure_steps, steps)] = number
            for future in as_completed(futures):
                found.append((futures[future], future.result()))
        except BrokenProcessPool:
            known = {number for number, _ in found}
            for future, number in futures.items():
                if number not in known and future.done() and future.exception() is None:
                    found.append((number, future.result()))
            self.deaths += 1
            self.close()
        return found

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            with without_interrupts():
                self._pool = ProcessPoolExecutor(
                    self._jobs,
                    mp_context=get_context("spawn"),
                    initializer=_start,
                    initargs=(self._data, self._timeout),
                )
        return self._pool


_task: tuple[Sequence[Tensor], Config, float] | None = None
"""A worker's outputs, machine and timeout in seconds."""


def _start(data: str, timeout: float) -> None:
    global _task  # noqa: PLW0603  # a worker has one computation
    start_worker()
    expression, config = json.loads(data)
    _task = expression_from_data(expression), config_from_dict(config), timeout


def _measure_steps(steps: list[Step]) -> Outcome:
    assert _task is not None
    outputs, config, timeout = _task
    try:
        with _time_limit(timeout):
            return measure_schedule(rebuild(outputs, steps, config), config)
    except _TimedOut:
        return Outcome(error=f"the measurement takes more than {timeout:g} seconds", seconds=timeout)


class _time_limit:  # noqa: N801  # a context manager
    """Raise _TimedOut, if the platform has timers."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._is_used = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()

    def __enter__(self) -> None:
        if self._is_used:
            signal.signal(signal.SIGALRM, _raise_timed_out)
            signal.setitimer(signal.ITIMER_REAL, self._seconds)

    def __exit__(self, *_: Any) -> None:
        if self._is_used:
            signal.setitimer(signal.ITIMER_REAL, 0)


def _raise_timed_out(_number: int, _frame: FrameType | None) -> None:
    raise _TimedOut
