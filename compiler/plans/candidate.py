"""What the analytical models compare."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from accel.base.errors import ScheduleError
from accel.compiler.plans.conv_schedule import ConvPlan
from accel.compiler.plans.gemm_plans import GemmPlan
from accel.compiler.plans.model import Prediction
from accel.compiler.plans.pool_schedule import PoolPlan
from accel.core.config import Config

PlanT = TypeVar("PlanT", GemmPlan, ConvPlan, PoolPlan)


@dataclass(frozen=True, kw_only=True)
class Candidate(Generic[PlanT]):
    """A plan and what the model predicts for it.

    Attributes:
        read_bytes: of operands that it loads from DRAM, those that are loaded again counted again.
    """

    plan: PlanT
    prediction: Prediction
    read_bytes: int

    @classmethod
    def predicted(cls, plan: PlanT, prediction: Prediction, config: Config) -> "Candidate[PlanT]":
        """A candidate that reads as much as the prediction has loads at work."""
        return cls(plan=plan, prediction=prediction, read_bytes=round(prediction.load * config.bus_bytes))


def unfit(what: str, config: Config, threads: int | None, fits: Callable[[int], bool]) -> ScheduleError:
    """What to raise where no plan fits.

    Args:
        what: is scheduled.
        config: the machine.
        threads: how many virtual threads were asked for, if any were.
        fits: whether there are plans with so many.
    """
    most = next((n for n in range((threads or 1) - 1, 0, -1) if fits(n)), 0)
    if not most or threads is None:
        return ScheduleError(f"not even the smallest tiles of this {what} fit configuration {config.name!r}")
    return too_many_threads(config, threads, most)


def too_many_threads(config: Config, threads: int, most: int) -> ScheduleError:
    """What to raise where only ``most`` virtual threads fit."""
    return ScheduleError(
        f"{threads} virtual threads do not fit configuration {config.name!r}; at most {most} do"
    )
