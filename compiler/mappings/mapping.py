"""What a mapping is: another operator that computes the same, and how its tensors are made of the user's."""

from collections.abc import Mapping as Named
from dataclasses import dataclass, field
from math import prod
from typing import Any

from accel.base.errors import ScheduleError
from accel.compiler.expr.tensor import Placeholder, Tensor, producers
from accel.compiler.ops.workload import Workload
from accel.image.source import PLAIN
from accel.image.view import View

AUTO = "auto"
"""What stands for the mapping that takes the fewest cycles."""


__all__ = ["AUTO", "PLAIN", "Mapping", "plain", "tensors_of", "unknown_mapping"]


@dataclass(frozen=True, kw_only=True)
class Mapping:
    """An operator computed as another one.

    Attributes:
        name: as users give it.
        source: the operator that is asked for.
        workload: the one that is scheduled and compiled; its tensors bear the names of the source's.
        views: by a tensor's name how the host arranges it; those that are missing stay as they are.
    """

    name: str
    source: Workload
    workload: Workload
    views: Named[str, View] = field(default_factory=dict)

    @property
    def is_plain(self) -> bool:
        """Whether the operator is computed as it is."""
        return self.name == PLAIN

    @property
    def keeps_results(self) -> bool:
        """Whether what is written lies as it does without a mapping."""
        return self.source.output.name not in self.views

    @property
    def data_bytes(self) -> int:
        """Bytes of the input as the program has it, without what elements are filled up with."""
        return prod(_data(self.workload).shape)

    @property
    def factor(self) -> float:
        """How many values the program's input has for each of the user's."""
        return self.data_bytes / prod(_data(self.source).shape)


def plain(workload: Workload) -> Mapping:
    """An operator as it is."""
    return Mapping(name=PLAIN, source=workload, workload=workload)


def tensors_of(workload: Workload) -> list[Tensor]:
    """An operator's inputs and its output."""
    inputs = [one for one in producers([workload.output]) if isinstance(one.op, Placeholder)]
    return [*inputs, workload.output]


def _data(workload: Workload) -> Tensor:
    """The input that runs differ in: the first one that is read."""
    return tensors_of(workload)[0]


def unknown_mapping(name: Any, workload: Workload, why: str) -> ScheduleError:
    """What to say of a mapping that cannot be taken."""
    return ScheduleError(f"the mapping of {workload.name} is {name!r}; {why}")
