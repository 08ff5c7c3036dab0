"""Points of a sweep: one program on one machine, with everything that its figures depend on."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from accel.base.version import __version__
from accel.compiler.mappings.mapping import AUTO
from accel.compiler.operators.registry import operator_of
from accel.core.config import Config

Values = tuple[tuple[str, Any], ...]
"""Names and values, in order."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """What a program is compiled from.

    Attributes:
        workload: its name.
        parameters: of the workload.
        config: the machine that the schedule is made for.
        vthreads: virtual threads; None: what the model chooses.
        tile: sides that the schedule's tiles must have, in elements.
        steps: of a schedule, as JSON, instead of the one that the model chooses.
        mapping: as which operator it is computed; ``auto``: what takes the fewest cycles.
    """

    workload: str
    parameters: Values
    config: Config
    vthreads: int | None = None
    tile: Values = ()
    steps: str | None = None
    mapping: str = AUTO


@dataclass(frozen=True, kw_only=True)
class Run:
    """A program, and how it is run.

    Attributes:
        timing: configuration fields that differ from those that it was compiled for.
        seed: of the inputs.
    """

    source: Source
    timing: Values = ()
    seed: int = 0

    @cached_property
    def machine(self) -> Config:
        """The configuration of the run."""
        return self.source.config.override(dict(self.timing), kinds=("timing",))


@dataclass(frozen=True, kw_only=True)
class Synthesis:
    """A machine whose cells on an FPGA are to be counted; ``config`` is some :attr:`Config.hardware`."""

    config: Config


Task = Run | Synthesis


def key(task: Task) -> str:
    """What a task is known by from one run of a sweep to the next."""
    data = {"version": __version__, "kind": type(task).__name__, "task": asdict(task)}
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:32]


@dataclass(frozen=True, kw_only=True)
class Point:
    """A run, what its row in the table is labelled with, and perhaps a synthesis.

    Attributes:
        labels: columns that only tell rows apart.
        synthesis: what the machine takes on an FPGA, if that is asked for.
    """

    run: Run
    labels: Values = ()
    synthesis: Synthesis | None = field(default=None)

    @property
    def tasks(self) -> tuple[Task, ...]:
        """What must be done for the row."""
        return (self.run,) if self.synthesis is None else (self.run, self.synthesis)

    def settings(self) -> dict[str, Any]:
        """The columns that are known before anything is measured."""
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
    """The columns of :meth:`Point.settings` of all points, in order."""
    return list({name: None for point in points for name in point.settings()})
