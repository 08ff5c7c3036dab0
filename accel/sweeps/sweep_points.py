"""The points of a sweep.

Journals identify tasks by class names, field names and values (:func:`task_key`): do not rename them.
"""

import hashlib
import json
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from accel.base.records import as_dict
from accel.base.version import __version__
from accel.compiler.mappings.mapping import AUTO
from accel.compiler.operators.operator_registry import operator_of
from accel.core.config import Config

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Values = tuple[tuple[str, Any], ...]


class Source(Struct, frozen=True, kw_only=True):
    """Configuration and schedule of a program.

    Attributes:
        vthreads: None for the compiler's choice.
        steps: a schedule as JSON, if given.
    """

    workload: str
    parameters: Values
    config: Config
    vthreads: int | None = None
    tile: Values = ()
    steps: str | None = None
    mapping: str = AUTO


class Run(Struct, frozen=True, kw_only=True, dict=True):
    source: Source
    timing: Values = ()
    seed: int = 0

    @cached_property
    def machine(self) -> Config:
        return self.source.config.override(dict(self.timing), kinds=("timing",))


class Synthesis(Struct, frozen=True, kw_only=True):
    """Counts FPGA cells of a :attr:`Config.hardware`."""

    config: Config


Task = Run | Synthesis


def task_key(task: "DataclassInstance") -> str:
    data = {"version": __version__, "kind": type(task).__name__, "task": as_dict(task)}
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:32]


class Point(Struct, frozen=True, kw_only=True):
    """A row of the table: a run, and perhaps a synthesis.

    ``labels`` do not affect figures.
    """

    run: Run
    labels: Values = ()
    synthesis: Synthesis | None = field(default=None)

    @property
    def tasks(self) -> tuple[Task, ...]:
        return (self.run,) if self.synthesis is None else (self.run, self.synthesis)

    def settings(self) -> dict[str, Any]:
        """Return columns known before measurement."""
        source = self.run.source
        sides = operator_of(source.workload).planner.sides
        config = self.run.machine
        machine = config.to_dict()
        return {
            "workload": source.workload,
            **dict(source.parameters),
            **dict(self.labels),
            "config": machine.pop("name"),
            "vthreads": source.vthreads,
            **dict.fromkeys(side.key for side in sides),
            **dict(source.tile),
            **machine,
            "scratchpad_bytes": config.inp_bytes + config.wgt_bytes + config.acc_bytes,
        }


def settings_of(points: Sequence[Point]) -> list[str]:
    return list({name: None for point in points for name in point.settings()})
