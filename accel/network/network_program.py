"""Compiled networks, and their runs."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from accel.base.html_summary import Bar, html_summary
from accel.base.records import replace
from accel.base.run_choices import DEFAULT_MAX_CYCLES, DEFAULT_MAX_UOPS
from accel.core.config import Config
from accel.graph.graph import Graph
from accel.graph.graph_evaluation import check_inputs, evaluate_node
from accel.graph.graph_state import first_states
from accel.graph.graph_tensor import Array, random_values
from accel.network.chained_program import Chain
from accel.network.fusion_report import FusionChoice
from accel.network.host_regions import HostRegion, host_regions
from accel.network.layout_choice import LayoutChoice
from accel.network.lowering.layer_operand import Operand
from accel.network.move_choice import MoveChoice
from accel.network.network_part import NetworkPart
from accel.network.network_result import (
    LayerResult,
    NetworkResult,
    host_layer_result,
    machine_layer_results,
)
from accel.network.partition import PartitionSummary
from accel.rewriting.search_result import SearchResult
from accel.run.result import Result
from accel.run.session import Session, SessionTensor

if TYPE_CHECKING:
    from accel.hw.engines.engine_driver import Engine
    from accel.network.concurrent_host import ConcurrentHost


@dataclass(frozen=True, kw_only=True)
class NetworkProgram:
    """A network compiled for one machine.

    Attributes:
        graph: the graph that it computes.
        steps: chains of the machine and nodes of the host, in the order of execution.
        choices: compared alternatives of fusion and placement.
        arrangements: compared alternatives of layouts.
        partition: the lower bound of the number of programs, or None if unknown.
        moves: compared forms of moves between channels.
        rewriting: how a search found the graph, or None without a search.
        compile_seconds: processor time of the compilation, or None if unknown.
    """

    graph: Graph
    config: Config
    steps: tuple[Chain | NetworkPart, ...]
    choices: tuple[FusionChoice, ...] = ()
    arrangements: tuple[LayoutChoice, ...] = ()
    partition: PartitionSummary | None = None
    moves: tuple[MoveChoice, ...] = ()
    rewriting: SearchResult | None = field(default=None, compare=False)
    compile_seconds: float | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        count = sum(part.on_machine for part in self.parts)
        return (
            f"NetworkProgram({self.graph.name!r} for {self.config.label}, {count} of {len(self.parts)} "
            f"layers and {self.machine_share:.2%} of MACs on the machine)"
        )

    def _repr_html_(self) -> str:
        rows = [
            *(("machine", self.config.label), ("programs", str(len(self.chains)))),
            ("MACs on the machine", f"{self.machine_share:.2%} of {self.macs:,}"),
        ]
        counts = Counter(part.where for part in self.parts)
        bars = [Bar(f"on the {place}", n / len(self.parts), f"{n} layers") for place, n in counts.items()]
        return html_summary("NetworkProgram", rows, bars)

    @cached_property
    def parts(self) -> tuple[NetworkPart, ...]:
        """Layers and host nodes, in the order of execution."""
        return tuple(
            part for step in self.steps for part in (step.parts if isinstance(step, Chain) else (step,))
        )

    @property
    def chains(self) -> tuple[Chain, ...]:
        """The programs of the machine."""
        return tuple(step for step in self.steps if isinstance(step, Chain))

    @cached_property
    def macs(self) -> int:
        """Nominal MACs of convolutions and matrix products."""
        return sum(map(self.graph.macs, self.graph.nodes))

    @cached_property
    def host_macs(self) -> int:
        """Nominal MACs on the host."""
        return sum(part.fused.macs(self.graph) for part in self.parts if not part.on_machine)

    @property
    def machine_share(self) -> float:
        """MACs on the machine divided by all MACs, or 1 if there are none."""
        return 1 - self.host_macs / self.macs if self.macs else 1.0

    def with_timing(self, settings: Mapping[str, int | str]) -> "NetworkProgram":
        """Return the same network for runs with another timing.

        Args:
            settings: timing fields to replace, for example ``{"read_latency": 100}``.

        Raises:
            ConfigError: a field is not a timing field, or a value is bad.
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
        """Return random inputs, as :func:`~accel.graph.graph_tensor.random_values`.

        States of the model have their first values.
        """
        rng = np.random.default_rng(seed)
        first = first_states(self.graph)
        names = [name for name in self.graph.inputs if name not in first]
        return first | {name: random_values(rng, self.graph.tensors[name]) for name in names}

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

        Tensors that the next chain reads in the same packing stay in DRAM.

        Args:
            inputs: arrays by name, in the graph's shapes and dtypes, or :meth:`random_inputs` if None. States
                have their first values by default.
            backend, seed, engine, hardware: as of :meth:`accel.Program.run`.
            max_cycles, max_uops: limits of each program.
            wave: VCD or FST file to write, with one program after another.
            record: keep all events, in the result's ``runs``.

        Raises:
            ShapeError: an input is missing, unknown, or has another shape or dtype.
            AccelError: otherwise as :meth:`accel.Program.run`.
        """
        from concurrent.futures import ThreadPoolExecutor

        from accel.network.concurrent_host import ConcurrentHost

        arrays = self.random_inputs(seed) if inputs is None else {**first_states(self.graph), **inputs}
        given = check_inputs(self.graph, arrays)
        begin = time.perf_counter()
        with (
            Session(
                self.config,
                backend=backend,
                seed=seed,
                engine=engine,
                wave=wave,
                record=hardware is None or hardware.observed,
                hardware=hardware,
            ) as session,
            ThreadPoolExecutor(max_workers=1) as executor,
        ):
            host = ConcurrentHost(executor, self.graph.constants)
            run = _Run(self, session, host, given, max_cycles=max_cycles, max_uops=max_uops, record=record)
            for step in self._regions:
                if progress is not None:
                    progress(step.name)
                run.execute(step)
            run.finish()
            names = [*self.graph.inputs, *(part.fused.output for part in self.parts)]
            tensors = {name: run.array(name) for name in names if run.has(name)}
            layers, packing, cycles = tuple(run.layers), session.packing, session.cycles
        return NetworkResult(
            graph=self.graph,
            config=self.config,
            backend=backend,
            macs=self.macs,
            host_macs=self.host_macs,
            tensors=tensors,
            layers=layers,
            cycles=cycles,
            mismatches=self._mismatches(tensors) if check else None,
            packing=packing,
            runs=tuple(run.runs),
            compile_seconds=self.compile_seconds,
            simulate_seconds=time.perf_counter() - begin,
        )

    @cached_property
    def _regions(self) -> tuple[Chain | HostRegion, ...]:
        return tuple(host_regions(self.graph, self.steps))

    def _mismatches(self, tensors: Mapping[str, Array]) -> dict[str, int]:
        """Compare the machine's results with the graph, evaluated on the operands of the run.

        Host nodes inside a chain are evaluated if layers need them.
        """
        wrong: dict[str, int] = {}
        on_host = {node.output for part in self.parts if not part.on_machine for node in part.fused.nodes}
        in_regions = {
            node.output for step in self._regions if isinstance(step, HostRegion) for node in step.nodes
        }
        values: dict[str, Array] = {**self.graph.constants, **tensors}
        for node in self.graph.nodes:
            if node.output in in_regions or (node.output in on_host and node.output in tensors):
                continue
            expected = evaluate_node(self.graph, node, [values[name] for name in node.inputs])
            found = tensors.get(node.output)
            if found is None:
                values[node.output] = expected
            elif not np.array_equal(found, expected):
                wrong[node.output] = int((found != expected).sum())
        return wrong


class _Run:
    """The host's tensors and those resident in DRAM."""

    def __init__(
        self,
        program: NetworkProgram,
        session: Session,
        host: "ConcurrentHost",
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
        self._host = host
        self._max_cycles = max_cycles
        self._max_uops = max_uops
        self._arrays: dict[str, Array] = {**program.graph.constants, **given}
        self._resident: dict[str, SessionTensor] = {}

    def has(self, name: str) -> bool:
        """Tensors that only layers of a chain need are not available."""
        return name in self._arrays or name in self._resident or name in self._host

    def array(self, name: str) -> Array:
        if name not in self._arrays and name in self._host:
            self._arrays |= self._host.results(name)
        if name not in self._arrays:
            self._arrays[name] = self._resident[name].numpy().reshape(self._graph.tensors[name].shape)
        return self._arrays[name]

    def execute(self, step: Chain | HostRegion) -> None:
        if isinstance(step, Chain):
            try:
                self._on_machine(step)
            except Exception:
                self._host.wait()  # raises an error of the host before the program's
                raise
            return
        for part in step.moves:
            self._on_host(part)
        if step.is_concurrent:
            self._host.start(step, {name: self.array(name) for name in step.inputs})
        else:
            self._arrays |= step.run(self.array)
        self.layers += [host_layer_result(self._graph, part) for part in (*step.moves, *step.parts)]

    def finish(self) -> None:
        self._arrays |= self._host.wait()

    def _on_host(self, part: NetworkPart) -> None:
        node = part.fused.main
        if part.moves_nothing and node.inputs[0] in self._resident:
            self._resident[node.output] = self._resident[node.inputs[0]]
            return
        for one in part.fused.nodes:
            arrays = [self.array(name) for name in one.inputs]
            self._arrays[one.output] = np.ascontiguousarray(evaluate_node(self._graph, one, arrays)).reshape(
                self._graph.tensors[one.output].shape
            )

    def _on_machine(self, chain: Chain) -> None:
        inputs = {name: self._input(operand) for name, operand in chain.operands.items()}
        outputs = self._session.run(
            chain.program, inputs, check=False, max_cycles=self._max_cycles, max_uops=self._max_uops
        )
        for output, name in chain.outputs.items():
            self._resident[name] = outputs[output]
        for part in chain.parts:
            if not part.on_machine and all(self.has(name) for name in part.fused.main.inputs):
                self._on_host(part)
        result = self._session.results[-1]
        self._programs += 1
        self.layers += machine_layer_results(
            self._graph, chain, result, program=self._programs, causes=self._record
        )
        if self._record:
            self.runs.append(result)

    def _input(self, operand: Operand) -> Any:
        name = operand.tensor
        constant = operand.constant_values(self._graph)
        if constant is not None:
            return constant
        if operand.copies > 1:
            return operand.values(self._graph, self.array(name))
        if name not in self._resident:
            self._resident[name] = self._session.tensor(self.array(name))
        return self._resident[name].reshape(*operand.shape)
