"""Loading a file imports no compiler, :meth:`Network.build` does."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accel.base.html_summary import Bar, html_summary
from accel.base.rewrite_choices import RELAXATION, Search
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
        rewriting: how :func:`accel.rewrite` found the graph, or None.
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
        jobs: int = 1,
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
            tuned: a file of records of :func:`accel.tune`. Layers use its schedules where they take fewer
                cycles.
            rewrite: ``greedy`` applies rules that help on every machine, ``none`` none. ``backtrack`` and
                ``saturate`` search for the graph with the fewest predicted cycles, see :func:`accel.rewrite`.
            rules: further rules, for example from :func:`accel.rewriting.rules_file.load_rules`.
            relaxation: of ``backtrack``.
            limits: of ``backtrack`` and ``saturate``.
            jobs: processes that choose plans and compile layers. More than one are forked from this one, on
                Linux only.

        Raises:
            TuningError: the file of records cannot be read, or is damaged.
            ConfigError: there is no such machine.
            GraphError: the machine has ``post=0``, ``strict`` finds multiplications on the host, or the
                search is unknown.
            MismatchError: the rewritten graph computes other values.
            ScheduleError: ``measure`` is not a positive integer.
            ShapeError: ``jobs`` is not a positive integer.
        """
        from accel.network.network_build import build_network

        return build_network(
            self.graph,
            on,
            rewriting=self.rewriting,
            strict=strict,
            approximate=approximate,
            keep=keep,
            fusion=fusion,
            measure=measure,
            tuned=tuned,
            rewrite=rewrite,
            rules=rules,
            relaxation=relaxation,
            limits=limits,
            jobs=jobs,
        )


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
    from accel.formats import onnx_import  # one format is enough for one model

    return Network(graph=onnx_import.load_onnx(path, batch=batch, shapes=shapes))


def load_tflite(
    path: str | os.PathLike[str],
    *,
    batch: int | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> Network:
    """Load a TensorFlow Lite model as :func:`load_onnx` does. Inputs and outputs keep the file's layout.

    Variables of the model become inputs and outputs, see :class:`accel.NetworkSession`.
    """
    from accel.formats import tflite_import

    return Network(graph=tflite_import.load_tflite(path, batch=batch, shapes=shapes))


def read_network(
    path: str | os.PathLike[str],
    *,
    batch: int | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> Network:
    if is_tflite(path):
        return load_tflite(path, batch=batch, shapes=shapes)
    return load_onnx(path, batch=batch, shapes=shapes)
