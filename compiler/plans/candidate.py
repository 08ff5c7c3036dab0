"""What the analytical models compare."""

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from accel.base.errors import ScheduleError
from accel.compiler.expr.metrics import bound_by
from accel.core.config import Config
from accel.core.memories import SCRATCHPADS


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


def check_threads_fit(
    what: str,
    config: Config,
    threads: int | None,
    fits: Callable[[int], bool],
    least: Callable[[], Mapping[str, int]],
) -> None:
    """Refuse more virtual threads than there is room or work for.

    Args:
        what: is scheduled.
        config: the machine.
        threads: how many were asked for; None: any number.
        fits: whether there are plans with so many; where there are, there are plans with fewer.
        least: elements of each scratchpad that the smallest tiles take.

    Raises:
        ScheduleError: with the largest number that fits; or not even one does, with what is too small.
    """
    if fits(threads or 1):
        return
    if threads is None or threads == 1 or not fits(1):
        raise ScheduleError(
            f"not even the smallest tiles of this {what} fit configuration {config.label!r}"
            f"{_lacking(config, least())}"
        )
    fewer = range(2, min(threads, config.token_limit + 1))
    most = 1 + bisect_left(fewer, True, key=lambda n: not fits(n))
    raise ScheduleError(
        f"{threads} virtual threads do not fit configuration {config.label!r}; at most {most} do"
    )


def _lacking(config: Config, needs: Mapping[str, int]) -> str:
    """The scratchpads that are too small for what is needed of them, for messages."""
    short = [
        f"{elements * pad.element_bytes(config)} bytes of {name} ({name}_bytes is "
        f"{getattr(config, f'{name}_bytes')})"
        for name, elements in needs.items()
        for pad in [SCRATCHPADS[name]]
        if elements > pad.depth(config)
    ]
    return f"; they need {' and '.join(short)}" if short else ""
