"""The backends by name."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from accel.base.errors import AccelError, nearest
from accel.core.config import Config
from accel.run.backends.backend import Backend
from accel.run.backends.simulator import TIMED, UNTIMED, Simulator
from accel.run.options import RunOptions

if TYPE_CHECKING:
    from accel.hw.engines.driver import Engine

SIMULATORS = (TIMED, UNTIMED)
RTL = "rtl"
BACKENDS = (*SIMULATORS, RTL)
"""What runs a program: cycle-level and functional simulator, and the hardware in simulation."""


def open_backend(
    name: str, config: Config, options: RunOptions, *, hardware: "Engine | None" = None
) -> Backend:
    """A backend, ready to run programs of a machine.

    Args:
        name: one of :data:`BACKENDS`.
        config: the machine.
        options: of the runs; what does not go with the backend is refused.
        hardware: of the backend ``rtl``, the machine, after a reset; it stays open when the backend is
            closed. Built if not given.

    Raises:
        AccelError: an unknown backend, or options of another one.
        EngineError: the engine does not exist or cannot be built.
        ProgramError: the wave file cannot be written.
    """
    check_backend(name, BACKENDS)
    check_options(name, options, hardware)
    if name != RTL:
        return Simulator(timed=name == TIMED)
    from accel.run.backends.rtl import Rtl  # noqa: PLC0415  # seldom needed

    return Rtl.open(config, options) if hardware is None else Rtl(hardware, keep=True)


def check_backend(backend: str, valid: Sequence[str]) -> None:
    """Refuse a backend that is none of ``valid``.

    Raises:
        AccelError: naming the nearest.
    """
    if backend not in valid:
        raise AccelError(f"the backend is {backend!r}; {nearest(backend, valid)}")


def check_options(backend: str, options: RunOptions, hardware: object = None) -> None:
    """Refuse what goes with another backend.

    Raises:
        AccelError: an engine, a wave file or hardware without ``rtl``, or a random order with it.
    """
    if backend == RTL:
        if options.order != "program":
            raise AccelError(
                f"the order is {options.order!r} with the backend 'rtl'; the hardware has its own"
            )
        return
    given = {"an engine": options.engine, "a wave file": options.wave, "hardware": hardware}
    for what, value in given.items():
        if value is not None:
            raise AccelError(f"{what} is given with the backend {backend!r}; it goes with 'rtl'")
