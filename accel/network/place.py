"""Placement: what the machine does and what the host does, and why."""

from collections.abc import Sequence
from dataclasses import dataclass

from accel.base.errors import GraphError, ScheduleError, ShapeError
from accel.compiler.mappings.build import compile_mapped
from accel.compiler.target.machine import Machine
from accel.graph.graph import Graph
from accel.image.tensor import ImageTensor
from accel.network.choose import Choice, Chooser, Where
from accel.network.entry import enters, planned
from accel.network.fuse import Group
from accel.network.layout import Laid
from accel.network.lower import Layer, NotOnMachine
from accel.network.stage import Stage
from accel.run.measured import measured
from accel.run.program import Program, as_program


@dataclass(frozen=True, kw_only=True)
class Part:
    """A stage where it was placed.

    Attributes:
        stage: of the graph.
        where: ``machine`` or ``host``.
        reason: why it is on the host; empty on the machine.
        layer, program: what the machine runs, by itself; None on the host, and in a network from a file.
        laid: how its tensors lie, if pictures do not lie as they are; None in a network from a file, too.
        mapping: by which it is computed; empty on the host, and where that is not known.
        alone: cycles that it is predicted to take by itself; None on the host, and where that is not known.
    """

    stage: Stage
    where: Where
    reason: str = ""
    layer: Layer | None = None
    program: Program | None = None
    laid: Laid | None = None
    mapping: str = ""
    alone: int | None = None

    @property
    def on_machine(self) -> bool:
        """Whether the machine runs it."""
        return self.where == "machine"

    @property
    def output(self) -> ImageTensor:
        """What the machine makes, where pictures lie as they are."""
        assert self.layer is not None
        if self.laid is not None:
            return self.laid.plain
        assert self.program is not None
        return next(one for one in self.program.tensors if one.name == self.layer.output)

    @property
    def moves_nothing(self) -> bool:
        """Whether the values stay as they are, under another name or in another shape."""
        return self.stage.moves_nothing


class _Compiler:
    """Compiles layers; those that are alike share a program.

    Args:
        graph: the layers'.
        machine: that programs are for.
        measure: plans of each layer that are simulated, if any are.
    """

    def __init__(self, graph: Graph, machine: Machine, measure: int | None) -> None:
        self._graph, self._machine, self._measure = graph, machine, measure
        self._known: list[tuple[Layer, Program, int]] = []

    def program(self, layer: Layer) -> tuple[Program, int]:
        """A layer's program, and the cycles that it takes by itself, as predicted or simulated. It is proven
        as a part of its chain.

        Raises:
            NotOnMachine: the compiler finds no schedule.
        """
        first = enters(self._graph, layer)
        for other, program, cycles in self._known:
            same = (other.operator, other.parameters) == (layer.operator, layer.parameters)
            if same and enters(self._graph, other) == first:
                return program, cycles
        machine = self._machine
        try:
            choice = planned(self._graph, layer, machine.config)
            if self._measure is not None:
                choice = measured(choice, machine, self._measure)
            program = as_program(compile_mapped(choice.mapping, choice.schedule(machine), machine.config))
        except (ScheduleError, ShapeError) as error:
            raise NotOnMachine(str(error)) from None
        best = choice.candidates[0]
        cycles = round(best.prediction.cycles) if best.simulated is None else best.simulated
        self._known.append((layer, program, cycles))
        return program, cycles


def place(
    graph: Graph,
    groups: Sequence[Group],
    machine: Machine,
    *,
    approximate: bool = False,
    measure: int | None = None,
) -> tuple[tuple[Part, ...], tuple[Choice, ...]]:
    """Compile what is on the machine, as :class:`~accel.network.choose.Chooser` decides; leave the rest to
    the host.

    Args:
        graph: the groups'.
        groups: from a pass before; every node is in one of them.
        machine: that programs are for.
        approximate: whether additions may differ from floating point.
        measure: plans of each layer that are simulated, if any are.

    Returns:
        The parts in an order in which they can run, and what was compared for each group that has several
        alternatives.

    Raises:
        GraphError: the machine has ``post=0``.
    """
    if not machine.config.post:
        raise GraphError(
            f"{machine.config.label} has post=0; networks are compiled for machines with post=1, as vta-int8"
        )
    chooser = Chooser(graph, machine.config, approximate=approximate)
    compiler = _Compiler(graph, machine, measure)
    found: dict[str, Part] = {}
    choices: dict[str, Choice] = {}
    for group in groups:
        parts, choice = _placed(group, chooser, compiler)
        found |= {part.stage.output: part for part in parts}
        if len(choice.alternatives) > 1:
            choices[parts[-1].stage.output] = choice
    order = [node.output for node in graph.nodes]
    return (
        tuple(found[name] for name in order if name in found),
        tuple(choices[name] for name in order if name in choices),
    )


def _placed(group: Group, chooser: Chooser, compiler: _Compiler) -> tuple[list[Part], Choice]:
    """A group's parts. What turns out to have no program is chosen anew, without it."""
    while True:
        options, choice = chooser.choose(group)
        parts = []
        for option in options:
            program, alone = None, None
            if option.layer is not None:
                try:
                    program, alone = compiler.program(option.layer)
                except NotOnMachine as error:
                    chooser.refuse(option, str(error))
                    break
            parts.append(
                Part(
                    stage=option.stage,
                    where=option.where,
                    reason=option.why,
                    layer=option.layer,
                    program=program,
                    mapping="" if program is None else program.mapping,
                    alone=alone,
                )
            )
        else:
            return parts, choice


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
        hint = f" ({QUANTIZE})" if multiplies_floats(graph, parts) else ""
        raise GraphError(f"nodes with multiplications are left to the host{hint}: {'; '.join(wrong)}")


QUANTIZE = "some are of float32; 'accel quantize' makes a network of integers"
"""What to tell whoever brings a network that is not quantized."""


def multiplies_floats(graph: Graph, parts: Sequence[Part]) -> bool:
    """Whether multiplications are left to the host because their operands are float32."""
    return any(
        tensor.dtype == "float32"
        for part in parts
        if not part.on_machine and part.stage.macs(graph)
        for tensor in graph.operands(part.stage.main)
    )
