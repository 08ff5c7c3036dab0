"""Export of pools and means over windows."""

from collections.abc import Sequence

import numpy as np

from accel.base.errors import GraphError
from accel.formats.onnx_exporter import Exporter, window_attributes, writer
from accel.formats.onnx_file import MICROSOFT
from accel.graph.graph import Node
from accel.graph.pooling_operators import AveragePool, GlobalAveragePool, MaxPool


@writer(MaxPool)
def _max_pool(exporter: Exporter, node: Node) -> None:
    assert isinstance(node.operator, MaxPool)
    exporter.write("MaxPool", node.inputs, node.output, **window_attributes(node.operator.windows))


@writer(AveragePool)
def _average_pool(exporter: Exporter, node: Node) -> None:
    operator, out = node.operator, exporter.tensor(node.output)
    assert isinstance(operator, AveragePool)
    attributes = window_attributes(operator.windows)
    attributes["count_include_pad"] = int(operator.count_padding)
    if out.dtype == "float32":
        exporter.write("AveragePool", node.inputs, node.output, **attributes)
        return
    if operator.in_float32:
        exporter.through_floats(node, lambda numbers: exporter.write("AveragePool", [numbers], **attributes))
        return
    source = exporter.tensor(node.inputs[0])
    ends = [*exporter.pair(source), *exporter.pair(out)]
    if max(attributes.pop("dilations")) > 1:
        _dilated(exporter, node, ends)
        return
    exporter.write("QLinearAveragePool", [source.name, *ends], node.output, domain=MICROSOFT, **attributes)


def _dilated(exporter: Exporter, node: Node, ends: Sequence[str]) -> None:
    """QLinearAveragePool has no dilations, so Gather first copies windows' values together."""
    operator, source = node.operator, exporter.tensor(node.inputs[0])
    assert isinstance(operator, AveragePool)
    windows, data = operator.windows, source.name
    if any(windows.begin + windows.end):
        if not operator.count_padding:
            raise GraphError(
                f"node {node.name!r}: ONNX Runtime has no average pool with dilations that excludes padding"
            )
        pads = [0, 0, *windows.begin, 0, 0, *windows.end]
        value = exporter.constant(source.scale_and_zero[1], source.dtype)
        data = exporter.write("Pad", [data, exporter.constant(pads, "int64"), value])
    outputs = list(windows.outputs(source.shape[2:]))
    outputs[-1] += 1  # repeat the last window, since a single one would become a global mean
    for axis, count in enumerate(outputs):
        taps = np.arange(windows.kernel[axis]) * windows.dilations[axis]
        last = axis == len(outputs) - 1
        starts = np.minimum(np.arange(count), count - 1 - last) * windows.strides[axis]
        places = exporter.constant((starts[:, None] + taps).reshape(-1), "int64")
        data = exporter.write("Gather", [data, places], axis=axis + 2)
    pooled = exporter.write(
        "QLinearAveragePool",
        [data, *ends],
        domain=MICROSOFT,
        kernel_shape=list(windows.kernel),
        strides=list(windows.kernel),
    )
    cut = [exporter.constant([one], "int64") for one in (0, outputs[-1] - 1, len(outputs) + 1)]
    exporter.write("Slice", [pooled, *cut], node.output)


@writer(GlobalAveragePool)
def _global_average_pool(exporter: Exporter, node: Node) -> None:
    out = exporter.tensor(node.output)
    if out.dtype == "float32":
        exporter.write("GlobalAveragePool", node.inputs, node.output)
        return
    source = exporter.tensor(node.inputs[0])
    data, plane = source.name, len(source.shape) == 4  # the only rank of ONNX Runtime
    if not plane:
        sizes = exporter.constant([*source.shape[:2], 1, -1], "int64")
        data = exporter.write("Reshape", [data, sizes])
    made = exporter.write(
        "QLinearGlobalAveragePool",
        [data, *exporter.pair(source), *exporter.pair(out)],
        node.output if plane else None,
        domain=MICROSOFT,
        channels_last=0,
    )
    if not plane:
        exporter.write("Reshape", [made, exporter.constant(out.shape, "int64")], node.output)
