"""Backends by name."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from accel.base.errors import AccelError, nearest
from accel.base.run_choices import BACKENDS, RTL, TIMED
from accel.core.config import Config
from accel.run.backends.backend import Backend
from accel.run.backends.simulator_backend import Simulator
from accel.run.run_options import RunOptions

if TYPE_CHECKING:
    from accel.hw.engines.engine_driver import Engine


def open_backend(
    name: str, config: Config, options: RunOptions, *, hardware: "Engine | None" = None
) -> Backend:
    """Open a backend for programs of one machine.

    Args:
        name: one of :data:`BACKENDS`.
        hardware: see :meth:`~accel.run.program.Program.run`.

    Raises:
        AccelError: an unknown backend, or options for another one.
        EngineError: the engine does not exist or cannot be built.
        ProgramError: the wave file cannot be written.
    """
    check_backend(name, BACKENDS)
    check_options(name, options, hardware)
    if name != RTL:
        return Simulator(timed=name == TIMED)
    from accel.run.backends.rtl_backend import Rtl  # seldom needed

    return Rtl.open(config, options) if hardware is None else Rtl(hardware, leave_open=True)


def check_backend(backend: str, valid: Sequence[str]) -> None:
    """Raise an AccelError with the nearest name for a backend not in ``valid``."""
    if backend not in valid:
        raise AccelError(f"the backend is {backend!r}; {nearest(backend, valid)}")


def check_options(backend: str, options: RunOptions, hardware: object = None) -> None:
    """Raise an AccelError for an engine, a wave file or hardware without ``rtl``, or a random order with
    it."""
    if backend == RTL:
        if options.order != "program":
            raise AccelError(
                f"the order is {options.order!r} with the backend 'rtl'; "
                "the hardware always runs in its own order"
            )
        return
    given = {"an engine": options.engine, "a wave file": options.wave, "hardware": hardware}
    for option, value in given.items():
        if value is not None:
            raise AccelError(f"{option} is given with the backend {backend!r}; only 'rtl' takes it")
