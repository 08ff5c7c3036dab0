"""Regions of functions of one 8-bit tensor as tables."""

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from accel.graph.elementwise_operators import (
    Add,
    Binary,
    Clip,
    Dequantize,
    Function,
    Mul,
    Quantize,
    Table,
)
from accel.graph.graph import Graph, Node
from accel.graph.graph_builder import Builder
from accel.graph.graph_evaluation import evaluate
from accel.graph.graph_tensor import Array, Shape, Tensor
from accel.graph.qdq_rewriting import Emitter, QdqRewriting
from accel.graph.quantize_values import all_values


@dataclass
class _Region:
    """Nodes that compute each value from one value."""

    nodes: dict[str, Node] = field(default_factory=dict)
    leaves: set[str] = field(default_factory=set)
    constants: set[str] = field(default_factory=set)


def table_emitter(rewriting: QdqRewriting, name: str, after: Collection[Node], out: Tensor) -> Emitter | None:
    """Return an emitter of a table for the region that ends at a float tensor, if possible.

    For example, ``x * HardSigmoid(x)`` is a table of all values of x.

    Args:
        name: the region's result.
        after: the nodes from the region to the Quantize, which no other node may bypass.
        out: dtype and quantization of the table's result.
    """
    region = _find_region(rewriting, name, rewriting.old.tensors[name].shape)
    if region is None or not region.nodes or not _is_closed(rewriting, region, after):
        return None
    sources = {rewriting.integers[leaf] for leaf in region.leaves}
    if len(sources) != 1:
        return None
    source = rewriting.new.tensors[sources.pop()]
    graph = _region_graph(rewriting, region, name, source, out)
    entries = rewriting.evaluate_table(graph, all_values(source.dtype))
    label = region.nodes[name].name
    return rewriting.emitter(Table(values=tuple(entries.tolist())), [source.name], out, label)


def _find_region(rewriting: QdqRewriting, name: str, shape: Shape) -> _Region | None:
    """Follow operands back to dequantized tensors and single constants."""
    region = _Region()
    pending = [name]
    while pending:
        name = pending.pop()
        if name in region.nodes:
            continue
        has_shape = rewriting.old.tensors[name].shape == shape
        if rewriting.byte_source(name) is not None and has_shape:
            region.leaves.add(name)
        elif (numbers := rewriting.constant_numbers(name)) is not None and numbers.size == 1:
            region.constants.add(name)
        else:
            node = rewriting.old.producers.get(name)
            if node is None or not has_shape:
                return None
            if not isinstance(node.operator, Function | Clip | Add | Mul | Binary):
                return None
            region.nodes[name] = node
            pending.extend(node.inputs)
    return region


def _is_closed(rewriting: QdqRewriting, region: _Region, after: Collection[Node]) -> bool:
    inside = {one.name for one in (*after, *region.nodes.values())}
    return all(
        name not in rewriting.old.outputs and all(one.name in inside for one in rewriting.consumers[name])
        for name in region.nodes
    )


def _region_graph(
    rewriting: QdqRewriting, region: _Region, result: str, source: Tensor, out: Tensor
) -> Graph:
    """Return the region as a graph from ``x``, the 256 values, to ``y``."""
    builder = Builder()
    x = Tensor(name="x", shape=(256,), dtype=source.dtype, quantization=source.quantization)
    builder.input(x)
    builder.reserve(region.nodes)
    leaf = builder.emit(Dequantize(), ["x"], builder.fresh("numbers"), dtype="float32")
    names = dict.fromkeys(region.leaves, leaf)
    for name in region.constants:
        numbers = rewriting.constant_numbers(name)
        assert numbers is not None
        names[name] = builder.constant(builder.fresh(name), np.asarray(numbers, np.float32).reshape(1))
    for node in rewriting.old.nodes:
        if node.output in region.nodes:
            inputs = [names[name] for name in node.inputs]
            output = builder.fresh(node.output)
            names[node.output] = builder.emit(node.operator, inputs, output, dtype="float32")
    builder.emit(Quantize(), [names[result]], "y", dtype=out.dtype, quantization=out.quantization)
    return builder.graph("table", ["y"])


def evaluate_table(graph: Graph, values: Array) -> Array:
    """Compute ``y`` of a graph from ``x`` in numpy."""
    return evaluate(graph, {"x": values})["y"]
