"""A plan with its prediction, and the error for too many virtual threads."""

from bisect import bisect_left
from collections.abc import Callable, Mapping
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from accel.base.errors import ScheduleError
from accel.compiler.expr.compulsory_cost import bound_by, busiest_unit
from accel.core.config import Config
from accel.core.scratchpad_specs import SCRATCHPADS


class Plan(Protocol):
    """How an operator is tiled and ordered: a frozen dataclass."""

    @property
    def threads(self) -> int: ...


PlanT = TypeVar("PlanT", bound=Plan)


class Prediction(Struct, frozen=True, kw_only=True):
    """Cycles that the analytical model predicts for a plan.

    Attributes:
        compute, load, store: cycles in which each unit is busy.
    """

    cycles: float
    compute: float
    load: float
    store: float

    @property
    def bound(self) -> str:
        """The limiting resource, see ``bound_by``."""
        return bound_by(self.cycles, compute=self.compute, load=self.load, store=self.store)

    @property
    def busiest(self) -> str:
        """For example, ``compute 71%``."""
        busy = {"compute": self.compute, "load": self.load, "store": self.store}
        unit, share = busiest_unit(self.cycles, busy)
        return f"{unit} {share:.0%}"


class Candidate(Struct, Generic[PlanT], frozen=True, kw_only=True):
    """A plan and its prediction.

    Attributes:
        read_bytes: operand bytes that the plan loads from DRAM, with repetitions.
        rating: predicted cycles, plus a penalty if the prediction is less reliable. It ranks candidates.
        simulated_cycles: measured cycles, if the plan was simulated.
    """

    plan: PlanT
    prediction: Prediction
    read_bytes: int
    rating: float
    simulated_cycles: int | None = None


def check_threads_fit(
    operator: str,
    config: Config,
    threads: int | None,
    fits: Callable[[int], bool],
    smallest_needs: Callable[[], Mapping[str, int]],
) -> None:
    """Raise a ScheduleError if no plan has the requested number of virtual threads, or any if it is None.

    If a plan ``fits`` with some threads, plans with fewer threads exist. ``smallest_needs`` is as in
    ``plan_space``.
    """
    if fits(threads or 1):
        return
    if threads is None or threads == 1 or not fits(1):
        raise ScheduleError(
            f"not even the smallest tiles of this {operator} fit configuration {config.label!r}"
            f"{_shortage(config, smallest_needs())}"
        )
    fewer = range(2, min(threads, config.token_limit + 1))
    most = 1 + bisect_left(fewer, True, key=lambda n: not fits(n))
    raise ScheduleError(
        f"{threads} virtual threads do not fit configuration {config.label!r}; at most {most} do"
    )


def _shortage(config: Config, needs: Mapping[str, int]) -> str:
    short = [
        f"{elements * pad.element_bytes(config)} bytes of {name} ({name}_bytes is "
        f"{getattr(config, f'{name}_bytes')})"
        for name, elements in needs.items()
        for pad in [SCRATCHPADS[name]]
        if elements > pad.depth(config)
    ]
    return f"; they need {' and '.join(short)}" if short else ""
