"""What the analytical models compare."""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from accel.base.errors import ScheduleError
from accel.compiler.expr.metrics import bound_by
from accel.core.config import Config


class Plan(Protocol):
    """How an operator is tiled and ordered; a frozen dataclass."""

    @property
    def threads(self) -> int:
        """Virtual threads."""


PlanT = TypeVar("PlanT", bound=Plan)


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What the model says of a plan.

    Attributes:
        cycles: of the whole program.
        compute, load, store: cycles in which each unit is at work.
    """

    cycles: float
    compute: float
    load: float
    store: float

    @property
    def bound(self) -> str:
        """What holds the program back, see :func:`~accel.compiler.expr.metrics.bound_by`."""
        return bound_by(self.cycles, compute=self.compute, load=self.load, store=self.store)


@dataclass(frozen=True, kw_only=True)
class Candidate(Generic[PlanT]):
    """A plan and what the model predicts for it.

    Attributes:
        read_bytes: of operands that it loads from DRAM, those that are loaded again counted again.
        rated: the cycles by which it is compared with others of its operator: those predicted, and some more
            where the model knows less.
        simulated: the cycles that it takes, if somebody has looked.
    """

    plan: PlanT
    prediction: Prediction
    read_bytes: int
    rated: float
    simulated: int | None = None


def check_threads_fit(what: str, config: Config, threads: int | None, fits: Callable[[int], bool]) -> None:
    """Refuse more virtual threads than there is room or work for.

    Args:
        what: is scheduled.
        config: the machine.
        threads: how many were asked for; None: any number.
        fits: whether there are plans with so many; where there are, there are plans with fewer.

    Raises:
        ScheduleError: with the largest number that fits; or not even one does.
    """
    if fits(threads or 1):
        return
    if threads is None or threads == 1 or not fits(1):
        raise ScheduleError(f"not even the smallest tiles of this {what} fit configuration {config.name!r}")
    fewer = range(2, min(threads, config.token_limit + 1))
    most = 1 + bisect_left(fewer, True, key=lambda n: not fits(n))
    raise ScheduleError(
        f"{threads} virtual threads do not fit configuration {config.name!r}; at most {most} do"
    )
