"""Placement: what the machine does and what the host does, and why."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from accel.base.errors import GraphError, ScheduleError, ShapeError
from accel.compiler.codegen.build import compile_schedule
from accel.compiler.operators.default import default_schedule
from accel.compiler.target.machine import Machine
from accel.graph.graph import Graph
from accel.graph.movement import Identity, Reshape
from accel.network.lower import Layer, NotOnMachine, lower
from accel.network.stage import Stage
from accel.run.program import Program, as_program

Where = Literal["machine", "host"]


@dataclass(frozen=True, kw_only=True)
class Part:
    """A stage where it was placed.

    Attributes:
        stage: of the graph.
        where: ``machine`` or ``host``.
        reason: why it is on the host; empty on the machine.
        layer, program: what the machine runs, by itself; None on the host, and in a network from a file.
    """

    stage: Stage
    where: Where
    reason: str = ""
    layer: Layer | None = None
    program: Program | None = None

    @property
    def on_machine(self) -> bool:
        """Whether the machine runs it."""
        return self.where == "machine"

    @property
    def moves_nothing(self) -> bool:
        """Whether the values stay as they are, under another name or in another shape."""
        return isinstance(self.stage.main.operator, Identity | Reshape)


def place(
    graph: Graph, stages: Sequence[Stage], machine: Machine, *, approximate: bool = False
) -> tuple[Part, ...]:
    """Compile what the machine can do; leave the rest to the host.

    A stage that the machine cannot do as a whole is taken apart.

    Args:
        graph: the stages'.
        stages: from a pass before.
        machine: that programs are for.
        approximate: whether additions may differ from floating point.
    """
    if not machine.config.post:
        raise GraphError(
            f"{machine.config.label} has post=0; networks are compiled for machines with post=1, as vta-int8"
        )
    compiled: list[tuple[Layer, Program]] = []
    waiting, parts = list(stages[::-1]), list[Part]()
    refusals: dict[str, str] = {}
    while waiting:
        stage = waiting.pop()
        try:
            layer = lower(graph, stage, approximate=approximate)
            program = _compiled(layer, machine, compiled)
            parts.append(Part(stage=stage, where="machine", layer=layer, program=program))
        except NotOnMachine as error:
            if stage.addition is not None:
                refusals[stage.addition.name] = str(error)
                waiting += stage.without_addition()[::-1]
            elif stage.pad is not None:
                waiting += stage.without_pad()[::-1]
            elif stage.clips:
                waiting += [Stage(main=node) for node in stage.nodes[::-1]]
            else:
                reason = str(error)
                if parts and parts[-1].on_machine and parts[-1].stage.output in stage.inputs:
                    reason = refusals.get(stage.name, reason)  # all but the addition was possible
                parts.append(Part(stage=stage, where="host", reason=reason))
    return tuple(parts)


def _compiled(layer: Layer, machine: Machine, known: list[tuple[Layer, Program]]) -> Program:
    """A layer's program; layers that are alike share one. It is proven as a part of its chain.

    Raises:
        NotOnMachine: the compiler finds no schedule.
    """
    for other, program in known:
        if (other.operator, other.parameters) == (layer.operator, layer.parameters):
            return program
    try:
        schedule = default_schedule(layer.workload(), machine)
        program = as_program(compile_schedule(schedule, machine.config))
    except (ScheduleError, ShapeError) as error:
        raise NotOnMachine(str(error)) from None
    known.append((layer, program))
    return program


def check_strict(graph: Graph, parts: Sequence[Part]) -> None:
    """Refuse multiplications on the host.

    Raises:
        GraphError: naming each node, and why it is there.
    """
    wrong = [
        f"{part.stage.name!r} ({part.stage.main.operator.kind}): {part.reason}"
        for part in parts
        if not part.on_machine and part.stage.macs(graph)
    ]
    if wrong:
        raise GraphError(f"nodes with multiplications are left to the host: {'; '.join(wrong)}")
