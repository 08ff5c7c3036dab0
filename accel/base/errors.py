"""Every error that accel raises on purpose.

A message reads ``<subject> is <value>; <what holds or would be right>``. Bad input ends commands with exit
code 2, :class:`ProgramFault` and its subclasses with exit code 1.
"""

import difflib
from collections.abc import Iterable
from typing import Any


class AccelError(Exception):
    """Base of all errors raised on purpose."""

    exit_code = 2


class ConfigError(AccelError):
    """A machine configuration that does not exist or is inconsistent."""


class ShapeError(AccelError):
    """A tensor with a wrong shape or dtype, or a workload that no machine can hold."""


class ScheduleError(AccelError):
    """A schedule step that does not apply."""


class TensorizeError(ScheduleError):
    """A loop nest that does not unify with its intrinsic."""


class ProgramError(AccelError):
    """Instructions or a program file that cannot be read, written or encoded."""


class GraphError(AccelError):
    """A network that cannot be read, is inconsistent, or has unknown operators."""


class SweepError(AccelError):
    """A sweep with a wrong description, or that cannot run here."""


class TuningError(AccelError):
    """A template, an explorer or a file of records that cannot be used."""


class EngineError(AccelError):
    """An RTL engine that cannot be built or used here."""


class DesignError(EngineError):
    """A design that the tools cannot synthesize, place or route, or not within a time limit."""


class HardwareError(AccelError):
    """The hardware broke a rule of the bus, refused a setting, or did not end."""

    exit_code = 1


class ProgramFault(AccelError):
    """The program is wrong."""

    exit_code = 1


class MachineError(ProgramFault):
    """The machine stopped on one of its error causes.

    ``cause`` is the :class:`~accel.core.fault_causes.Cause`, ``index`` the number of the instruction and
    ``cycle`` the cycle, if simulated. ``result`` is the :class:`~accel.run.result.Result` up to the error.
    """

    result: Any = None

    def __init__(
        self, message: str, *, cause: object = None, index: int | None = None, cycle: int | None = None
    ) -> None:
        super().__init__(message)
        self.cause = cause
        self.index = index
        self.cycle = cycle

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), str(self), self.cause, self.index, self.cycle)


class DeadlockError(MachineError):
    """Every unit that has work waits for a token that nobody will push."""


class LimitExceeded(MachineError):
    """The run needs more cycles or micro-ops than the caller allowed."""


class RunStopped(MachineError):
    """The run was stopped from outside."""


class BusTimeout(MachineError):
    """Memory made no transfer for as long as the caller allowed."""


class RaceError(ProgramFault):
    """Two units touch the same memory, one of them writes, and no token orders them."""


class MismatchError(ProgramFault):
    """Two results that must be equal are not."""


def _rebuild(
    kind: type[MachineError], message: str, cause: object, index: int | None, cycle: int | None
) -> MachineError:
    return kind(message, cause=cause, index=index, cycle=cycle)


_MOST_NAMES = 24

_FEW_MORE = 4


def nearest(name: object, valid: Iterable[str]) -> str:
    """Return ``"did you mean 'x'?"`` for the closest of ``valid``, or a list."""
    names = sorted(valid)
    close = difflib.get_close_matches(name, names, n=1) if isinstance(name, str) else []
    if close:
        return f"did you mean {close[0]!r}?"
    if len(names) > _MOST_NAMES + _FEW_MORE:
        names[_MOST_NAMES:] = [f"and {len(names) - _MOST_NAMES} more"]
    return "valid are " + ", ".join(names)
