"""What the analytical models compare."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from accel.compiler.conv_schedule import ConvPlan
from accel.compiler.model import Prediction
from accel.compiler.plans import GemmPlan
from accel.compiler.pool_schedule import PoolPlan

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
