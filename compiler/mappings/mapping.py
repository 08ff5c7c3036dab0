"""A mapping: another operator with the same result, and how the host packs its tensors."""

from collections.abc import Mapping
from math import prod

from msgspec import Struct, field

from accel.base.errors import ScheduleError
from accel.compiler.expr.tensor_expressions import Placeholder, Tensor, producers
from accel.compiler.ops.workload import Workload
from accel.image.program_source import PLAIN
from accel.image.tensor_view import View

AUTO = "auto"
"""Chooses the fastest mapping."""


__all__ = ["AUTO", "PLAIN", "OperatorMapping", "mapping_error", "plain_mapping", "workload_tensors"]


class OperatorMapping(Struct, frozen=True, kw_only=True):
    """An operator computed as a different one.

    Attributes:
        workload: the operator that is scheduled and compiled. Its tensors have the names of the source's.
        views: how the host packs tensors. Other tensors do not change.
    """

    name: str
    source: Workload
    workload: Workload
    views: Mapping[str, View] = field(default_factory=dict)

    @property
    def is_plain(self) -> bool:
        return self.name == PLAIN

    @property
    def keeps_output_layout(self) -> bool:
        return self.source.output.name not in self.views

    @property
    def data_bytes(self) -> int:
        """Bytes of the program's input, without padding to blocks."""
        return prod(_data(self.workload).shape)

    @property
    def factor(self) -> float:
        """Values of the program's input per value of the user's."""
        return self.data_bytes / prod(_data(self.source).shape)


def plain_mapping(workload: Workload) -> OperatorMapping:
    return OperatorMapping(name=PLAIN, source=workload, workload=workload)


def workload_tensors(workload: Workload) -> list[Tensor]:
    inputs = [one for one in producers([workload.output]) if isinstance(one.op, Placeholder)]
    return [*inputs, workload.output]


def _data(workload: Workload) -> Tensor:
    return workload_tensors(workload)[0]


def mapping_error(name: object, workload: Workload, reason: str) -> ScheduleError:
    return ScheduleError(f"the mapping of {workload.name} is {name!r}; {reason}")
