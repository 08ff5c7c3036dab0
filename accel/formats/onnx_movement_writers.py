"""Export of operators that move values."""

import numpy as np

from accel.formats.onnx_exporter import Exporter, writer
from accel.graph.graph import Node
from accel.graph.movement_operators import (
    Concat,
    DepthToSpace,
    Pad,
    Reshape,
    Slice,
    SpaceToDepth,
    Take,
    Transpose,
)


@writer(Reshape)
def _reshape(exporter: Exporter, node: Node) -> None:
    assert isinstance(node.operator, Reshape)
    sizes = exporter.constant(node.operator.sizes, "int64")
    exporter.write("Reshape", [*node.inputs, sizes], node.output)


@writer(Transpose)
def _transpose(exporter: Exporter, node: Node) -> None:
    assert isinstance(node.operator, Transpose)
    exporter.write("Transpose", node.inputs, node.output, perm=list(node.operator.permutation))


@writer(Slice)
def _slice(exporter: Exporter, node: Node) -> None:
    operator = node.operator
    assert isinstance(operator, Slice)
    ends = [
        start + count * step if start + count * step >= 0 else np.iinfo(np.int64).min
        for start, count, step in zip(operator.starts, operator.sizes, operator.steps, strict=True)
    ]
    numbers = (operator.starts, ends, range(len(ends)), operator.steps)
    operands = [exporter.constant(list(one), "int64") for one in numbers]
    exporter.write("Slice", [*node.inputs, *operands], node.output)


@writer(Concat)
def _concat(exporter: Exporter, node: Node) -> None:
    assert isinstance(node.operator, Concat)
    exporter.write("Concat", node.inputs, node.output, axis=node.operator.axis)


@writer(Pad)
def _pad(exporter: Exporter, node: Node) -> None:
    operator, out = node.operator, exporter.tensor(node.output)
    assert isinstance(operator, Pad)
    operands = [exporter.constant([*operator.begin, *operator.end], "int64")]
    if operator.mode == "constant":
        operands.append(exporter.constant(operator.value, out.dtype))
    exporter.write("Pad", [*node.inputs, *operands], node.output, mode=operator.mode)


@writer(Take)
def _take(exporter: Exporter, node: Node) -> None:
    assert isinstance(node.operator, Take)
    indices = exporter.constant(list(node.operator.indices), "int64")
    exporter.write("Gather", [*node.inputs, indices], node.output, axis=node.operator.axis)


@writer(DepthToSpace)
def _depth_to_space(exporter: Exporter, node: Node) -> None:
    assert isinstance(node.operator, DepthToSpace)
    mode = "DCR" if node.operator.columns_first else "CRD"
    exporter.write("DepthToSpace", node.inputs, node.output, blocksize=node.operator.block, mode=mode)


@writer(SpaceToDepth)
def _space_to_depth(exporter: Exporter, node: Node) -> None:
    assert isinstance(node.operator, SpaceToDepth)
    exporter.write("SpaceToDepth", node.inputs, node.output, blocksize=node.operator.block)
