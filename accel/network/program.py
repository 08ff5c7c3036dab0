"""Compiled networks: run them, layer by layer, on every backend."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from accel.core.config import Config
from accel.graph.evaluate import check_inputs, evaluate, evaluate_node
from accel.graph.graph import Graph
from accel.graph.tensor import Array
from accel.network.arrange import Arrangement
from accel.network.chain import Chain
from accel.network.choose import Choice
from accel.network.place import Part
from accel.network.result import LayerResult, NetworkResult, host_layer, machine_layers
from accel.run.result import Result
from accel.run.session import Session, SessionTensor
from accel.sim.functional.executor import DEFAULT_MAX_UOPS
from accel.sim.timing.model import DEFAULT_MAX_CYCLES

if TYPE_CHECKING:
    from accel.hw.engines.driver import Engine


@dataclass(frozen=True, kw_only=True)
class NetworkProgram:
    """A network for one machine.

    Attributes:
        graph: what it computes.
        config: the machine.
        steps: chains of the machine and nodes of the host, in the order in which they run.
        choices: what was compared where nodes could be fused or placed in several ways.
        arrangements: what was compared where layers could have pictures in several layouts.
        compile_seconds: that compiling took; None if it is not known.
    """

    graph: Graph
    config: Config
    steps: tuple[Chain | Part, ...]
    choices: tuple[Choice, ...] = ()
    arrangements: tuple[Arrangement, ...] = ()
    compile_seconds: float | None = None

    def __repr__(self) -> str:
        count = sum(part.on_machine for part in self.parts)
        return (
            f"NetworkProgram({self.graph.name!r} for {self.config.label}, {count} of {len(self.parts)} "
            f"stages and {self.machine_share:.2%} of MACs on the machine)"
        )

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The stages, in the order in which they run."""
        return tuple(
            part for step in self.steps for part in (step.parts if isinstance(step, Chain) else (step,))
        )

    @property
    def chains(self) -> tuple[Chain, ...]:
        """What the machine runs."""
        return tuple(step for step in self.steps if isinstance(step, Chain))

    @cached_property
    def macs(self) -> int:
        """Nominal MACs of convolutions and products."""
        return sum(map(self.graph.macs, self.graph.nodes))

    @cached_property
    def host_macs(self) -> int:
        """Those of them that the host does."""
        return sum(part.stage.macs(self.graph) for part in self.parts if not part.on_machine)

    @property
    def machine_share(self) -> float:
        """Of the MACs, those on the machine; 1 if there are none."""
        return 1 - self.host_macs / self.macs if self.macs else 1.0

    def with_timing(self, settings: Mapping[str, int | str]) -> "NetworkProgram":
        """The same network for runs with another timing.

        Args:
            settings: timing fields to replace, as ``{"read_latency": 100}``.

        Raises:
            ConfigError: a setting that is no timing field, or a bad value.
        """
        if not settings:
            return self
        config = self.config.override(settings, kinds=("timing",))
        steps = (
            replace(step, program=step.program.with_timing(config)) if isinstance(step, Chain) else step
            for step in self.steps
        )
        return replace(self, config=config, steps=tuple(steps))

    def random_inputs(self, seed: int = 0) -> dict[str, Array]:
        """A value for every input: any integers, and float32 from -1 to 1.

        Args:
            seed: of the random numbers.
        """
        rng = np.random.default_rng(seed)
        found: dict[str, Array] = {}
        for name in self.graph.inputs:
            tensor = self.graph.tensors[name]
            if tensor.dtype == "float32":
                found[name] = rng.uniform(-1, 1, tensor.shape).astype(np.float32)
            else:
                bounds = np.iinfo(tensor.dtype)
                found[name] = rng.integers(bounds.min, bounds.max, tensor.shape, tensor.dtype, endpoint=True)
        return found

    def run(
        self,
        inputs: Mapping[str, Array] | None = None,
        *,
        backend: str = "sim",
        seed: int = 0,
        check: bool = True,
        engine: str | None = None,
        max_cycles: int = DEFAULT_MAX_CYCLES,
        max_uops: int = DEFAULT_MAX_UOPS,
        wave: str | Path | None = None,
        record: bool = False,
        progress: Callable[[str], None] | None = None,
        hardware: "Engine | None" = None,
    ) -> NetworkResult:
        """Run the network.

        Tensors that one layer leaves in DRAM and the next takes in the same packing stay there.

        Args:
            inputs: arrays by name, in the graph's shapes and dtypes; all random if None.
            backend: ``sim`` (function and cycles), ``functional`` (function only) or ``rtl`` (the hardware).
            seed: of random inputs, and of what is in the scratchpads at the start.
            check: compare every tensor that is there with the graph's evaluation in numpy.
            engine: what simulates the hardware.
            max_cycles, max_uops: limits of each program.
            wave: of the hardware, a VCD or FST file to write; programs are in it one behind the other.
            record: keep all that happened, as :attr:`~accel.network.result.NetworkResult.runs`.
            progress: called with the name of each stage before it runs.
            hardware: of the backend ``rtl``, the machine, after a reset; built if not given.

        Raises:
            AccelError: an unknown backend, or options of another backend.
            ShapeError: an input is missing, unknown, or has another shape or dtype.
            MachineError, DeadlockError, LimitExceeded: the machine stopped early.
            EngineError: the engine does not exist or cannot be built.
            HardwareError: the hardware breaks a rule.
        """
        given = check_inputs(self.graph, self.random_inputs(seed) if inputs is None else inputs)
        wanted = evaluate(self.graph, given) if check else {}
        begin = time.perf_counter()
        with Session(
            self.config,
            backend=backend,
            seed=seed,
            engine=engine,
            wave=wave,
            record=hardware is None or hardware.observed,
            hardware=hardware,
        ) as session:
            run = _Run(self, session, given, max_cycles=max_cycles, max_uops=max_uops, record=record)
            for step in self.steps:
                if progress is not None:
                    progress(step.parts[0].stage.name if isinstance(step, Chain) else step.stage.name)
                run.carry_out(step)
            made = [*self.graph.inputs, *(part.stage.output for part in self.parts)]
            tensors = {name: run.array(name) for name in made if run.has(name)}
            layers, packing, cycles = tuple(run.layers), session.packing, session.cycles
        wrong = {
            name: int((array != wanted[name]).sum())
            for name, array in tensors.items()
            if name in wanted and not np.array_equal(array, wanted[name])
        }
        return NetworkResult(
            graph=self.graph,
            config=self.config,
            backend=backend,
            macs=self.macs,
            host_macs=self.host_macs,
            tensors=tensors,
            layers=layers,
            cycles=cycles,
            mismatches=wrong if check else None,
            packing=packing,
            runs=tuple(run.runs),
            compile_seconds=self.compile_seconds,
            simulate_seconds=time.perf_counter() - begin,
        )


class _Run:
    """A run in progress: what is known of each tensor, with the host or in DRAM."""

    def __init__(
        self,
        program: NetworkProgram,
        session: Session,
        given: Mapping[str, Array],
        *,
        max_cycles: int,
        max_uops: int,
        record: bool,
    ) -> None:
        self.layers: list[LayerResult] = []
        self.runs: list[Result] = []
        self._record = record
        self._programs = 0
        self._graph = program.graph
        self._session = session
        self._max_cycles = max_cycles
        self._max_uops = max_uops
        self._arrays: dict[str, Array] = {**program.graph.constants, **given}
        self._resident: dict[str, SessionTensor] = {}

    def has(self, name: str) -> bool:
        """Whether a tensor is there; one that only layers of a chain need is not."""
        return name in self._arrays or name in self._resident

    def array(self, name: str) -> Array:
        """A tensor's values, in the graph's shape."""
        if name not in self._arrays:
            self._arrays[name] = self._resident[name].numpy().reshape(self._graph.tensors[name].shape)
        return self._arrays[name]

    def carry_out(self, step: Chain | Part) -> None:
        """Run a step where it was placed."""
        if isinstance(step, Chain):
            self._on_machine(step)
        else:
            self._on_host(step)
            self.layers.append(host_layer(self._graph, step))

    def _on_host(self, part: Part) -> None:
        node = part.stage.main
        if part.moves_nothing and node.inputs[0] in self._resident:
            self._resident[node.output] = self._resident[node.inputs[0]]
            return
        for one in part.stage.nodes:
            arrays = [self.array(name) for name in one.inputs]
            self._arrays[one.output] = np.ascontiguousarray(evaluate_node(self._graph, one, arrays)).reshape(
                self._graph.tensors[one.output].shape
            )

    def _on_machine(self, chain: Chain) -> None:
        inputs: dict[str, Any] = {}
        for called, operand in chain.operands.items():
            name = operand.tensor
            known = operand.known(self._graph)
            if known is not None:
                inputs[called] = known
                continue
            if operand.copies > 1:
                inputs[called] = operand.values(self._graph, self.array(name))
                continue
            if name not in self._resident:
                self._resident[name] = self._session.tensor(self.array(name))
            inputs[called] = self._resident[name].reshape(*operand.shape)
        done = self._session.run(
            chain.program, inputs, check=False, max_cycles=self._max_cycles, max_uops=self._max_uops
        )
        for called, name in chain.outputs.items():
            self._resident[name] = done[called]
        for part in chain.parts:
            if not part.on_machine and all(self.has(name) for name in part.stage.main.inputs):
                self._on_host(part)
        result = self._session.results[-1]
        self._programs += 1
        self.layers += machine_layers(self._graph, chain, result, program=self._programs, causes=self._record)
        if self._record:
            self.runs.append(result)
