"""Networks as users handle them: load, look at, build."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from accel.base.arguments import check_integer
from accel.base.errors import ScheduleError
from accel.compiler.target.machine import Machine, machine
from accel.core.config import Config
from accel.formats import onnx_import, tflite_import
from accel.graph.graph import Graph
from accel.network.arrange import Arrangement, arrange
from accel.network.chain import Chain, chain, divide
from accel.network.fuse import apart, fuse
from accel.network.place import Part, check_strict, place
from accel.network.program import NetworkProgram
from accel.network.schedule import schedule
from accel.network.views import find_views, may_be_view
from accel.run.measured import cycles_of

DEFAULT_MACHINE = "vta-int8"
"""What networks are compiled for if nothing else is said."""


@dataclass(frozen=True, kw_only=True)
class Network:
    """A network that is to be compiled.

    Attributes:
        graph: what it computes.
    """

    graph: Graph

    def build(
        self,
        on: Machine | Config | str = DEFAULT_MACHINE,
        *,
        strict: bool = False,
        approximate: bool = False,
        keep: bool = False,
        fusion: bool = True,
        measure: int | None = None,
    ) -> NetworkProgram:
        """Compile the network for a machine with ``post=1``.

        Args:
            on: the machine, its configuration or the configuration's name.
            strict: refuse multiplications on the host.
            approximate: let additions whose integers are not exact stay on the machine.
            keep: keep the result of every stage, so that a run compares all of them.
            fusion: let nodes be carried out as one; without it every node is by itself, to compare with.
            measure: plans of each layer that are compiled and simulated, to take the fastest; if not given,
                the one that is predicted to be. Layers are measured by themselves, and in a network one
                begins while another ends: if all together take more cycles than as predicted, these are
                what is compiled.

        Raises:
            ConfigError: there is no such machine.
            GraphError: the machine has ``post=0``, or ``strict`` finds multiplications on the host.
            ScheduleError: ``measure`` is no positive integer.
        """
        target = machine(on)
        most = None if measure is None else check_integer("measure", measure, error=ScheduleError)
        begin = time.perf_counter()
        groups = fuse(self.graph) if fusion else apart(self.graph)

        def compiled(measure: int | None) -> NetworkProgram:
            parts, choices = place(self.graph, groups, target, approximate=approximate, measure=measure)
            if strict:
                check_strict(self.graph, parts)
            steps, arrangements = link(self.graph, parts, target.config, keep=keep)
            return NetworkProgram(
                graph=self.graph,
                config=target.config,
                steps=steps,
                choices=choices,
                arrangements=arrangements,
            )

        found = compiled(most)
        if most is not None:
            found = min(found, compiled(None), key=_cycles)
        return replace(found, compile_seconds=time.perf_counter() - begin)


def _cycles(program: NetworkProgram) -> int:
    """What all of a network's programs take."""
    return sum(cycles_of(chain.program) for chain in program.chains)


def link(
    graph: Graph, parts: Sequence[Part], config: Config, *, keep: bool = False
) -> tuple[tuple[Chain | Part, ...], tuple[Arrangement, ...]]:
    """Chains of the machine and nodes of the host, in the order in which they run; and how layers could have
    been arranged.

    Args:
        graph: the parts'.
        parts: placed and compiled.
        config: the machine.
        keep: whether the result of every stage is kept.
    """
    views = {part.stage.output for part in parts if not part.on_machine and may_be_view(graph, part)}
    while True:
        groups: list[tuple[Part, ...]] = []
        for group in schedule(graph, parts, views):
            groups += divide(graph, group) if any(part.on_machine for part in group) else [group]
        needed = [_needed(graph, groups, at, keep=keep) for at in range(len(groups))]
        wrong: set[str] = set()
        for group, outside in zip(groups, needed, strict=True):
            if any(part.on_machine for part in group):
                wrong |= find_views(graph, group, outside, config).wrong
            else:
                wrong |= views.intersection(part.stage.output for part in group)
        if not wrong:
            break
        views -= wrong
    steps: list[Chain | Part] = []
    compared: list[Arrangement] = []
    for group, outside in zip(groups, needed, strict=True):
        if any(part.on_machine for part in group):
            told = [_told(part) if part.stage.output in views else part for part in group]
            laid, more = arrange(graph, told, outside, config)
            compared += more
            steps.append(chain(graph, laid, outside, config))
        else:
            steps += group
    return tuple(steps), tuple(compared)


def _needed(graph: Graph, groups: Sequence[Sequence[Part]], at: int, *, keep: bool) -> set[str]:
    """The tensors that are needed outside a group, by those behind it or in the end."""
    behind = (name for other in groups[at + 1 :] for part in other for name in part.stage.inputs)
    kept = (part.stage.output for part in groups[at] if keep)
    return {*graph.outputs, *behind, *kept}


def _told(part: Part) -> Part:
    """A part that moves nothing, with that as the reason why it is nowhere."""
    return replace(part, reason="layers write and take its values where they are")


def load_onnx(path: str | os.PathLike[str], *, batch: int | None = None) -> Network:
    """A network from an ONNX model, quantized in QOperator or in QDQ format.

    Args:
        path: of the model; external data must lie in its folder.
        batch: the size of a first axis that the model leaves open, 1 if not given.

    Raises:
        GraphError: the file cannot be read, an operator is unknown, a size depends on a run, the batch
            disagrees with one that the model fixes, or tensors do not fit.
        ShapeError: the batch is no positive integer.
    """
    return Network(graph=onnx_import.load_onnx(path, batch=batch))


def load_tflite(path: str | os.PathLike[str], *, batch: int | None = None) -> Network:
    """A network from a quantized TensorFlow Lite model; its inputs and outputs keep the file's layout.

    Args:
        path: of the model.
        batch: the size of a first axis that the model leaves open, 1 if not given.

    Raises:
        GraphError: the file cannot be read, an operator is unknown, the batch disagrees with one that the
            model fixes, or tensors do not fit.
        ShapeError: the batch is no positive integer.
    """
    return Network(graph=tflite_import.load_tflite(path, batch=batch))


def read_network(path: str | os.PathLike[str], *, batch: int | None = None) -> Network:
    """A network from a file: TensorFlow Lite's if its name ends in ``.tflite``, else ONNX.

    Args:
        path: of the model.
        batch: the size of a first axis that the model leaves open, 1 if not given.

    Raises:
        GraphError, ShapeError: as :func:`load_onnx` and :func:`load_tflite`.
    """
    return load_tflite(path, batch=batch) if is_lite(path) else load_onnx(path, batch=batch)


def is_lite(path: str | os.PathLike[str]) -> bool:
    """Whether a file is TensorFlow Lite's, by its name."""
    return os.fspath(path).endswith(".tflite")
