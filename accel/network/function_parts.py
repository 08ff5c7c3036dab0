"""Functions of one quantized operand as sums of clamped linear functions.

A PRelu is no clamped linear function, but its positive and its negative part are:

    PRelu(x) = max(PRelu(x), zero) + min(PRelu(x), zero) - zero

The second part is a layer with the first one as residual. With a negative slope, both branches are above zero
and become a rising and a falling part.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np
from msgspec import Struct

from accel.base.errors import ScheduleError, ShapeError
from accel.base.records import replace
from accel.base.unique_names import Names
from accel.core.config import Config
from accel.graph.elementwise_operators import Add, ChannelTable, Function, Table
from accel.graph.graph import Graph, Node, with_nodes
from accel.graph.graph_tensor import QUANTIZED, Array, Quantization, Tensor
from accel.graph.quantize_values import all_values
from accel.network.clamped_linear import fit_channels
from accel.network.cost import ZERO_COST, Cost
from accel.network.fused_nodes import FusedNodes
from accel.network.fusion_report import Alternative, FusionChoice
from accel.network.lowering.elementwise_lowering import table_of_results
from accel.network.lowering.lowered_layer import NotOnMachine
from accel.network.lowering.lowering_table import lower
from accel.network.network_part import NetworkPart
from accel.network.predicted_cost import host_cost, machine_cost

_MAX_PARTS = 3
"""Limit, since each part reads and writes the whole tensor."""
_SPLITS = (0.5, 0.25, 0.75)
"""Where a function is divided if not at its zero point, as shares of its range."""
_PROBED_CHANNELS = 8
"""They are tried first. Most functions without parts have none in any channel."""


class _Parts(Struct, frozen=True, kw_only=True):
    """Functions whose sum, less the split values of all but one, is a node's function.

    Attributes:
        split: the value that parts have where another part differs from it.
        tables: int64[256, channels] of each part.
    """

    axis: int
    split: int
    tables: tuple[Array, ...]

    def zero(self, at: int, out_zero: int) -> int:
        is_last = at == len(self.tables) - 1
        return out_zero if is_last else self.split


def divide_functions(graph: Graph, config: Config) -> tuple[Graph, tuple[FusionChoice, ...]]:
    """Replace functions that the machine lacks by sums of functions that it has, where that saves cycles.

    The choices have the predicted cycles of each function with such a sum.
    """
    found = {
        node.output: parts
        for node in graph.nodes
        if _may_divide(graph, node, config) and (parts := _find_parts(graph, node)) is not None
    }
    if not found:
        return graph, ()
    divided = _Division(graph, found)
    choices = {
        output: choice
        for output in found
        if (choice := _choose(graph, graph.producers[output], divided, config)) is not None
    }
    chosen = {
        output: parts
        for output, parts in found.items()
        if output in choices and len(choices[output].alternatives[0].stages) > 1
    }
    result = divided.graph
    if chosen.keys() != found.keys():
        result = _Division(graph, chosen).graph if chosen else graph
    return result, tuple(choices.values())


def with_reasons(parts: Sequence[NetworkPart], choices: Sequence[FusionChoice]) -> tuple[NetworkPart, ...]:
    layers = {
        choice.name: len(choice.alternatives[-1].stages)
        for choice in choices
        if len(choice.alternatives[0].stages) == 1
    }
    return tuple(
        replace(
            part,
            reason=f"the host is predicted to take fewer cycles than its {layers[part.fused.name]} layers",
        )
        if not part.on_machine and part.fused.name in layers
        else part
        for part in parts
    )


def _may_divide(graph: Graph, node: Node, config: Config) -> bool:
    kinds = ChannelTable if config.tab_bytes else ChannelTable | Function | Table
    tensors = (graph.tensors[node.inputs[0]], graph.tensors[node.output])
    return (
        isinstance(node.operator, kinds)
        and node.inputs[0] not in graph.constants
        and all(one.dtype in QUANTIZED and one.quantization is not None for one in tensors)
    )


def _find_parts(graph: Graph, node: Node) -> _Parts | None:
    """Return None if the machine has the function itself, or no parts."""
    fused = FusedNodes(main=node)
    try:
        data, table = table_of_results(graph, fused)
    except NotOnMachine:
        return None
    axis = node.operator.axis if isinstance(node.operator, ChannelTable) else 0
    zeros = int(data.scale_and_zero[1]), int(graph.tensors[node.output].scale_and_zero[1])
    return _parts_of(data.dtype, zeros, axis, table.tobytes(), table.dtype.name)


@lru_cache(maxsize=4096)
def _parts_of(
    dtype: str, zeros: tuple[int, int], axis: int, entries: bytes, table_dtype: str
) -> _Parts | None:
    """Divide a table (256, channels). ``zeros`` are the zero points of the operand and of the result."""
    table = np.frombuffer(entries, table_dtype).reshape(256, -1)
    zero = zeros[1]
    values = all_values(dtype).astype(np.int64) - zeros[0]
    inexact = [at for at, one in enumerate(fit_channels(values, table, zero)) if one is None]
    if not inexact:
        return None
    for split in _split_values(table, zero):
        tables = _divide(table, split, zero)
        if tables is None:
            continue
        parts = _Parts(axis=axis, split=split, tables=tables)
        if all(
            _fits(values, one, parts.zero(at, zero), inexact[:_PROBED_CHANNELS])
            and _fits(values, one, parts.zero(at, zero), slice(None))
            for at, one in enumerate(tables)
        ):
            return parts
    return None


def _fits(values: Array, table: Array, zero: int, channels: list[int] | slice) -> bool:
    return None not in fit_channels(values, table[:, channels], zero)


def _split_values(table: Array, zero: int) -> Iterator[int]:
    low, high = int(table.min()), int(table.max())
    yield zero
    for share in _SPLITS:
        split = low + round((high - low) * share)
        if low < split < high and split != zero:
            yield split


def _divide(table: Array, split: int, zero: int) -> tuple[Array, ...] | None:
    """Return monotone parts, or None if there are too many, or only one.

    The bounds of the last part include the zero point, which lanes without a channel have.
    """
    parts: list[Array] = []
    halves = [np.maximum(table, split), np.minimum(table, split)]
    for half in halves if zero <= split else reversed(halves):
        first, second = _monotone_parts(half, split)
        parts += [one for one in (first, second) if (one != split).any()]
    return tuple(parts) if 1 < len(parts) <= _MAX_PARTS else None


def _monotone_parts(half: Array, split: int) -> tuple[Array, Array]:
    """Divide columns that turn at the split value. Others stay in the first part."""
    steps = np.diff(half, axis=0)
    turns = (steps < 0).any(axis=0) & (steps > 0).any(axis=0)
    rows = np.arange(len(half))[:, None]
    is_second = turns & (rows > (half == split).argmax(axis=0))
    return np.where(is_second, split, half), np.where(is_second, half, split)


class _Division:
    def __init__(self, graph: Graph, found: Mapping[str, _Parts]) -> None:
        self._old = graph
        self._tensors, self._constants = dict(graph.tensors), dict(graph.constants)
        self._names = Names()
        self._names.reserve([*graph.tensors, *(node.name for node in graph.nodes)])
        self.stages: dict[str, tuple[FusedNodes, ...]] = {}
        nodes: list[Node] = []
        for node in graph.nodes:
            parts = found.get(node.output)
            nodes += [node] if parts is None else self._sum(node, parts)
        used = {name for node in nodes for name in node.inputs} | {*graph.outputs}
        constants = {name: one for name, one in self._constants.items() if name in used}
        self.graph = with_nodes(graph, nodes, tensors=self._tensors.values(), constants=constants)

    def _sum(self, node: Node, parts: _Parts) -> list[Node]:
        out = self._old.tensors[node.output]
        scale, total, nodes, stages = float(out.scale_and_zero[0]), "", [], []
        out_zero = int(out.scale_and_zero[1])
        for at, table in enumerate(parts.tables):
            quantization = Quantization.of(scale, parts.zero(at, out_zero))
            name = self._tensor(f"{node.output}/part{at + 1}", replace(out, quantization=quantization))
            entries = np.ascontiguousarray(table.T.astype(out.dtype))
            constant = self._tensor(
                f"{name}/table", replace(out, shape=entries.shape, quantization=quantization)
            )
            self._constants[constant] = entries
            label = self._names.fresh(f"{node.name}/part{at + 1}")
            operator = ChannelTable(axis=parts.axis)
            part = Node(name=label, operator=operator, inputs=(node.inputs[0], constant), output=name)
            nodes.append(part)
            if not at:
                total = name
                stages.append(FusedNodes(main=part))
                continue
            is_last = at == len(parts.tables) - 1
            result = out.name if is_last else self._tensor(f"{node.output}/sum{at + 1}", self._tensors[name])
            label = self._names.fresh(f"{node.name}/sum{at + 1}")
            addition = Node(name=label, operator=Add(), inputs=(total, name), output=result)
            nodes.append(addition)
            stages.append(FusedNodes(main=part, combination=addition))
            total = result
        self.stages[node.output] = tuple(stages)
        return nodes

    def _tensor(self, name: str, like: Tensor) -> str:
        fresh = self._names.fresh(name)
        self._tensors[fresh] = replace(like, name=fresh)
        return fresh


def _choose(graph: Graph, node: Node, divided: _Division, config: Config) -> FusionChoice | None:
    """Return None if a layer does not exist."""
    stages = divided.stages[node.output]
    cost = ZERO_COST
    try:
        for fused in stages:
            cost += machine_cost(divided.graph, fused, lower(divided.graph, fused), config)
    except (NotOnMachine, ScheduleError, ShapeError):
        return None
    whole = FusedNodes(main=node)
    alternatives: list[tuple[Cost, tuple[str, ...]]] = [
        (cost, tuple(fused.operators() for fused in stages)),
        (host_cost(graph, whole, config, switches=True), (f"{whole.operators()} on the host",)),
    ]
    ranked = sorted(alternatives, key=lambda one: one[0].cycles)
    return FusionChoice(
        name=node.name, alternatives=tuple(Alternative(stages=names, cost=one) for one, names in ranked)
    )
