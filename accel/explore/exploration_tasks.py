"""Measure workloads in worker processes.

Journals identify tasks by class names, field names and values: do not rename them.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from accel.base.errors import AccelError, ProgramFault, SweepError
from accel.benchmarks import Task as LayerTask
from accel.benchmarks import default_epilogue, layers_of
from accel.compiler.mappings.mapping import workload_tensors
from accel.compiler.mappings.mapping_choice import MappingChoice, choose_mapping
from accel.compiler.operators.operator_registry import make_workload
from accel.compiler.target.machine import Machine
from accel.core.config import Config
from accel.energy import AccessCounts, count_accesses, energy_of
from accel.image.image import Image
from accel.run.build_program import build
from accel.run.measured_plans import simulated_cycles
from accel.run.result import bytes_moved, error_dict
from accel.sweeps.sweep_points import Values
from accel.sweeps.task_figures import Figures

Timing = Literal["predicted", "estimated", "simulated"]
"""Cycles are ``predicted`` by a search for plans, ``estimated`` by a quick search, or ``simulated`` with
the program."""
TIMINGS: tuple[Timing, ...] = ("predicted", "estimated", "simulated")


class LayerRun(Struct, frozen=True, kw_only=True):
    operator: str
    parameters: Values
    config: Config
    timing: Timing


class NetworkRun(Struct, frozen=True, kw_only=True):
    """Layers of a benchmark network on a machine, measured one by one."""

    network: str
    config: Config
    timing: Timing


class ModelRun(Struct, frozen=True, kw_only=True):
    """A simulated ONNX or TensorFlow Lite network. The host's time does not count, so a machine is refused if
    the host would multiply.

    Attributes:
        digest: SHA-256, so that a changed file is measured again.
    """

    path: str
    digest: str
    config: Config


Task = LayerRun | NetworkRun | ModelRun


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A workload of an exploration.

    Attributes:
        weight: factor in sums, for example how often it runs.
        command: repeats the measurement, without options of the machine.
    """

    name: str
    weight: float
    make: Callable[[Config, Timing], Task]
    command: tuple[str, ...]


class MakeLayer(Struct, frozen=True):
    operator: str
    parameters: Values

    def __call__(self, config: Config, timing: Timing) -> LayerRun:
        return LayerRun(operator=self.operator, parameters=self.parameters, config=config, timing=timing)


class MakeNetwork(Struct, frozen=True):
    network: str

    def __call__(self, config: Config, timing: Timing) -> NetworkRun:
        return NetworkRun(network=self.network, config=config, timing=timing)


class MakeModel(Struct, frozen=True, dict=True):
    path: Path

    @cached_property
    def digest(self) -> str:
        try:
            return hashlib.sha256(self.path.read_bytes()).hexdigest()
        except OSError as error:
            raise SweepError(f"network {str(self.path)!r} cannot be read: {error.strerror}") from None

    def __call__(self, config: Config, timing: Timing) -> ModelRun:
        return ModelRun(path=str(self.path), digest=self.digest, config=config)


def measure_task(task: Task) -> Figures:
    """Return ``cycles`` and ``dram_bytes``, or the error of a workload that does not fit.

    ``dram_bytes`` are those of LOADs and STOREs. Predicted ones are of operands and results. Simulated tasks
    also have ``energy``, ``energy_low`` and ``energy_high`` in picojoules.
    """
    try:
        found = _MEASURES[type(task)](task)
    except ProgramFault as error:
        return {"error": error_dict(error)["cause"], "message": str(error)}
    except AccelError as error:
        return {"error": "refused", "message": str(error)}
    return {"error": None, "message": None, **found.figures()}


class _Measured(Struct, frozen=True, kw_only=True):
    """Without programs, ``accesses`` is None."""

    cycles: int
    dram_bytes: int
    accesses: AccessCounts | None = None

    def __add__(self, other: "_Measured") -> "_Measured":
        counts = [one.accesses for one in (self, other) if one.accesses is not None]
        return _Measured(
            cycles=self.cycles + other.cycles,
            dram_bytes=self.dram_bytes + other.dram_bytes,
            accesses=sum(counts[1:], counts[0]) if counts else None,
        )

    def __mul__(self, repeats: int) -> "_Measured":
        counts = None if self.accesses is None else self.accesses * repeats
        return _Measured(cycles=self.cycles * repeats, dram_bytes=self.dram_bytes * repeats, accesses=counts)

    def figures(self) -> Figures:
        found: Figures = {"cycles": self.cycles, "dram_bytes": self.dram_bytes}
        if self.accesses is None:
            return found
        total = energy_of(self.accesses).total
        return found | {"energy": total.nominal, "energy_low": total.low, "energy_high": total.high}


def _measure_layer(task: LayerRun) -> _Measured:
    workload = make_workload(task.operator, dict(task.parameters))
    if task.timing == "simulated":
        return _simulated(build(workload, Machine(task.config)))
    return _predicted(choose_mapping(workload, task.config, quick=task.timing == "estimated"))


def _measure_network(task: NetworkRun) -> _Measured:
    found = _Measured(cycles=0, dram_bytes=0)
    for layer in layers_of(task.network, default_epilogue(task.config)):
        own = LayerTask(layer=layer, config=task.config)
        try:
            if task.timing == "simulated":
                one = _simulated(own.build())
            else:
                one = _predicted(own.choice(quick=task.timing == "estimated"))
        except AccelError as error:
            raise type(error)(f"{layer.name}: {error}") from None
        found += one * layer.repeats
    return found


def _measure_model(task: ModelRun) -> _Measured:
    from accel.network.network import read_network  # slow to import

    program = read_network(task.path).build(task.config, strict=True)
    return sum((_simulated(chain.program) for chain in program.chains), _Measured(cycles=0, dram_bytes=0))


_MEASURES: dict[type[Any], Callable[[Any], _Measured]] = {
    LayerRun: _measure_layer,
    NetworkRun: _measure_network,
    ModelRun: _measure_model,
}


def _predicted(choice: MappingChoice) -> _Measured:
    best = choice.candidates[0]
    *_, out = workload_tensors(choice.mapping.workload)
    return _Measured(cycles=round(best.prediction.cycles), dram_bytes=best.read_bytes + prod(out.shape))


def _simulated(program: Image) -> _Measured:
    config = program.config
    by_kind = bytes_moved(program.instructions, config)
    return _Measured(
        cycles=simulated_cycles(program),
        dram_bytes=sum(n for kind, n in by_kind.items() if kind != "instructions"),
        accesses=count_accesses(program.instructions, config, address=config.mem_base + program.code_offset),
    )
