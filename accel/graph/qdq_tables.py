"""Regions of functions of one 8-bit tensor as tables: one for all channels, or one for each."""

from collections.abc import Collection

import numpy as np
from msgspec import Struct, field

from accel.graph.elementwise_operators import (
    Add,
    Binary,
    ChannelTable,
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


class _Region(Struct):
    """Nodes that compute each value from one value.

    Attributes:
        leaves: dequantized tensors.
        constants: one number each, or one for each channel along ``axis``.
    """

    nodes: dict[str, Node] = field(default_factory=dict)
    leaves: set[str] = field(default_factory=set)
    constants: dict[str, Array] = field(default_factory=dict)
    axis: int | None = None

    def add_constant(self, name: str, numbers: Array, shape: Shape) -> bool:
        """Add a constant unless it needs several numbers for a channel. Return whether it is added."""
        if numbers.size > 1:
            padded = (1,) * (len(shape) - numbers.ndim) + numbers.shape
            axes = [axis for axis, size in enumerate(padded) if size > 1]
            if len(axes) > 1 or len(padded) > len(shape) or padded[axes[0]] != shape[axes[0]]:
                return False
            if self.axis not in {None, axes[0]}:
                return False
            self.axis = axes[0]
        self.constants[name] = numbers
        return True


def table_emitter(rewriting: QdqRewriting, name: str, after: Collection[Node], out: Tensor) -> Emitter | None:
    """Return an emitter of a table for the region that ends at the float tensor ``name``, if possible.

    For example, PRelu with constants that differ by channel is a table for each channel.

    Args:
        after: the nodes from the region to the Quantize, the only readers of the region.
    """
    region = _find_region(rewriting, name)
    if region is None or not region.nodes or not _is_closed(rewriting, region, after):
        return None
    sources = {rewriting.integers[leaf] for leaf in region.leaves}
    if len(sources) != 1:
        return None
    source = rewriting.new.tensors[sources.pop()]
    channels = 1 if region.axis is None else rewriting.old.tensors[name].shape[region.axis]
    shape = (256,) if region.axis is None else (256, channels)
    graph = _region_graph(rewriting, region, name, source, out, shape)
    entries = rewriting.evaluate_table(graph, all_values(source.dtype).repeat(channels).reshape(shape))
    label = region.nodes[name].name
    if region.axis is None:
        return rewriting.emitter(Table(values=tuple(entries.tolist())), [source.name], out, label)
    table = np.ascontiguousarray(entries.T)
    axis = region.axis

    def emit(output: str) -> str:
        constant = rewriting.new.constant(rewriting.integer_name(f"{name}/table"), table, out.quantization)
        return rewriting.emitter(ChannelTable(axis=axis), [source.name, constant], out, label)(output)

    return emit


def _find_region(rewriting: QdqRewriting, name: str) -> _Region | None:
    region, shape = _Region(), rewriting.old.tensors[name].shape
    pending = [name]
    while pending:
        name = pending.pop()
        if name in region.nodes:
            continue
        has_shape = rewriting.old.tensors[name].shape == shape
        if rewriting.byte_source(name) is not None and has_shape:
            region.leaves.add(name)
        elif (numbers := rewriting.constant_numbers(name)) is not None and region.add_constant(
            name, numbers, shape
        ):
            continue
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
    rewriting: QdqRewriting, region: _Region, result: str, source: Tensor, out: Tensor, shape: Shape
) -> Graph:
    """Return a graph from ``x``, the 256 values for each channel, to ``y``."""
    builder = Builder()
    x = Tensor(name="x", shape=shape, dtype=source.dtype, quantization=source.quantization)
    builder.input(x)
    builder.reserve(region.nodes)
    leaf = builder.emit(Dequantize(), ["x"], builder.fresh("numbers"), dtype="float32")
    names = dict.fromkeys(region.leaves, leaf)
    for name, numbers in region.constants.items():
        names[name] = builder.constant(builder.fresh(name), np.asarray(numbers, np.float32).reshape(-1))
    for node in rewriting.old.nodes:
        if node.output in region.nodes:
            inputs = [names[name] for name in node.inputs]
            output = builder.fresh(node.output)
            names[node.output] = builder.emit(node.operator, inputs, output, dtype="float32")
    builder.emit(Quantize(), [names[result]], "y", dtype=out.dtype, quantization=out.quantization)
    return builder.graph("table", ["y"])


def evaluate_table(graph: Graph, values: Array) -> Array:
    return evaluate(graph, {"x": values})["y"]
