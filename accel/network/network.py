"""Networks for users: load a file, compile it for a machine.

Loading imports no compiler: :meth:`Network.build` does.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from accel.base.arguments import check_integer
from accel.base.errors import GraphError, ScheduleError
from accel.base.html_summary import Bar, html_summary
from accel.base.rewrite_choices import RELAXATION, SEARCHES_BY_COST, Search, check_search
from accel.graph.graph import Graph
from accel.network.model_files import DEFAULT_MACHINE, is_tflite

if TYPE_CHECKING:
    from accel.compiler.target.machine import Machine
    from accel.core.config import Config
    from accel.network.network_program import NetworkProgram
    from accel.rewriting.rule import Rule
    from accel.rewriting.search_result import SearchLimits, SearchResult


@dataclass(frozen=True, kw_only=True, repr=False)
class Network:
    """A network to compile.

    Attributes:
        graph: the graph that it computes.
        rewriting: how :func:`~accel.network.network_rewriting.rewrite` found the graph, or None.
    """

    graph: Graph
    rewriting: SearchResult | None = None

    def __repr__(self) -> str:
        graph = self.graph
        inputs = ", ".join(f"{name} {graph.tensors[name].shape}" for name in graph.inputs)
        return f"Network({inputs} -> {', '.join(graph.outputs)}; {len(graph.nodes)} operators)"

    def _repr_html_(self) -> str:
        graph = self.graph
        rows = [
            (f"{role} {name}", f"{graph.tensors[name].dtype}{list(graph.tensors[name].shape)}")
            for role, names in (("input", graph.inputs), ("output", graph.outputs))
            for name in names
        ]
        counts = Counter(node.operator.kind for node in graph.nodes)
        bars = [Bar(op, n / len(graph.nodes), f"{n} operators") for op, n in counts.most_common(8)]
        return html_summary("Network", rows, bars)

    def build(
        self,
        on: Machine | Config | str = DEFAULT_MACHINE,
        *,
        strict: bool = False,
        approximate: bool = False,
        keep: bool = False,
        fusion: bool = True,
        measure: int | None = None,
        tuned: str | os.PathLike[str] | None = None,
        rewrite: Search = "greedy",
        rules: Sequence[Rule] = (),
        relaxation: float = RELAXATION,
        limits: SearchLimits | None = None,
    ) -> NetworkProgram:
        """Compile the network for a machine with ``post=1``.

        Args:
            on: the machine, its configuration or the configuration's name.
            strict: refuse networks in which the host would multiply.
            approximate: add on the machine even if some sums differ from float32.
            keep: keep the result of every layer, so that runs compare all.
            fusion: execute several nodes as one layer where that saves cycles.
            measure: simulate at most this many plans of each layer, and choose the fastest, unless the whole
                network takes fewer cycles with predicted plans.
            tuned: a file of records of :func:`accel.tune`. Layers take schedules from it that take fewer
                cycles.
            rewrite: how rules are applied. ``greedy`` applies those that help on every machine, ``none``
                none, and ``backtrack`` and ``saturate`` search for the graph with the fewest predicted
                cycles, see :func:`~accel.network.network_rewriting.rewrite`.
            rules: further rules, for example from :func:`accel.rewriting.rules_file.load_rules`.
            relaxation: of ``backtrack``.
            limits: of ``backtrack`` and ``saturate``.

        Raises:
            TuningError: the file of records cannot be read, or is damaged.
            ConfigError: there is no such machine.
            GraphError: the machine has ``post=0``, ``strict`` finds multiplications on the host, or the
                search is unknown.
            MismatchError: the rewritten graph computes other values.
            ScheduleError: ``measure`` is not a positive integer.
        """
        # the compiler: loading a model needs none of it
        from accel.compiler.target.machine import machine  # noqa: PLC0415
        from accel.network.function_parts import with_reasons  # noqa: PLC0415
        from accel.network.graph_preparation import prepare_graph  # noqa: PLC0415
        from accel.network.network_program import NetworkProgram  # noqa: PLC0415
        from accel.network.network_steps import build_steps  # noqa: PLC0415
        from accel.network.placement import check_strict, place  # noqa: PLC0415

        target = machine(on)
        measured_plans = None if measure is None else check_integer("measure", measure, error=ScheduleError)
        records = None
        if tuned is not None:
            from accel.run.tuning_records import load_records  # noqa: PLC0415

            records = load_records(tuned)
        begin = time.perf_counter()
        check_search(rewrite)
        graph, rewriting = self.graph, self.rewriting
        if rules and rewrite == "none":
            raise GraphError("rules are given and rewrite is 'none'; another search must apply them")
        if rules or rewrite in SEARCHES_BY_COST:
            from accel.network.graph_rewriting import rewrite_graph  # noqa: PLC0415
            from accel.rewriting.rules import RULES  # noqa: PLC0415

            rewriting = rewrite_graph(
                graph,
                target.config,
                search=rewrite,
                rules=rules if rewrite == "greedy" else (*rules, *RULES),
                approximate=approximate,
                fusion=fusion,
                relaxation=relaxation,
                limits=limits,
            )
            graph = rewriting.graph
        prepared = prepare_graph(graph, target.config, fusion=fusion, rewrites=rewrite != "none")
        graph, divisions = prepared.graph, prepared.divisions

        def compile_network(measure: int | None) -> NetworkProgram:
            parts, choices = place(
                graph, prepared.groups, target, approximate=approximate, measure=measure, records=records
            )
            parts = with_reasons(parts, divisions)
            if strict:
                check_strict(graph, parts)
            built = build_steps(graph, parts, target.config, keep=keep)
            return NetworkProgram(
                graph=graph,
                config=target.config,
                choices=(*divisions, *choices),
                moves=prepared.moves,
                rewriting=rewriting,
                **built,
            )

        program = compile_network(measured_plans)
        if measured_plans is not None:
            program = min(program, compile_network(None), key=_total_cycles)
        return replace(program, compile_seconds=time.perf_counter() - begin)


def _total_cycles(program: NetworkProgram) -> int:
    from accel.run.measured_plans import simulated_cycles  # noqa: PLC0415  # it imports the compiler

    return sum(simulated_cycles(chain.program) for chain in program.chains)


def load_onnx(
    path: str | os.PathLike[str],
    *,
    batch: int | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> Network:
    """Load a quantized ONNX model, in QOperator or in QDQ format.

    Args:
        batch: size of the first axis if the model leaves it open, or 1 by default.
        shapes: sizes of inputs with other open axes, for example ``{"x": (1, 3, 48, 320)}``.

    Raises:
        GraphError: the file cannot be read, an operator is unknown, a size is known only in a run, the model
            has another fixed batch, or tensors do not fit each other.
        ShapeError: the batch is not a positive integer.
    """
    from accel.formats import onnx_import  # noqa: PLC0415  # one format is enough for one model

    return Network(graph=onnx_import.load_onnx(path, batch=batch, shapes=shapes))


def load_tflite(
    path: str | os.PathLike[str],
    *,
    batch: int | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> Network:
    """Load a TensorFlow Lite model as :func:`load_onnx` does. Inputs and outputs keep the file's layout.

    Variables of the model become inputs and outputs, see
    :class:`~accel.network.network_session.NetworkSession`.
    """
    from accel.formats import tflite_import  # noqa: PLC0415

    return Network(graph=tflite_import.load_tflite(path, batch=batch, shapes=shapes))


def read_network(
    path: str | os.PathLike[str],
    *,
    batch: int | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> Network:
    """Load a TensorFlow Lite model if the name ends in ``.tflite``, else an ONNX model."""
    if is_tflite(path):
        return load_tflite(path, batch=batch, shapes=shapes)
    return load_onnx(path, batch=batch, shapes=shapes)
