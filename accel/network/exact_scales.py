"""Scales of quantized models for which the machine's integers give float32's results.

For some scales of a sum, product, average or Resize, a few results differ from float32's by a step, and the
host must compute the layer. A slightly different scale often has none. For example, a 2x2 average with equal
scales has a tie for every other sum. If they differ by 1/2048, it has none.
"""

from collections.abc import Iterator, Mapping
from math import prod

import numpy as np
from msgspec import Struct

from accel.base.errors import ShapeError
from accel.base.records import replace
from accel.formats.linear_resize import RESIZE_TITLE, is_exact_resize
from accel.formats.onnx_file import onnx, read_model
from accel.formats.onnx_import import import_file
from accel.formats.quantized_model import QuantizedModel
from accel.graph.elementwise_operators import Add, Dequantize, Mul, Quantize
from accel.graph.foreign_operator import Foreign
from accel.graph.graph import Graph, Node
from accel.graph.graph_tensor import QUANTIZED, Quantization, Shape, Tensor
from accel.graph.pooling_operators import AveragePool
from accel.network.exact_averages import exact_average_scale
from accel.network.fused_nodes import FusedNodes
from accel.network.lowering.lowered_layer import NotOnMachine
from accel.network.lowering.lowering_table import lower

_STEP = 1 / 2048
"""Relative difference of consecutive candidates."""
_MAX_STEPS = 32
"""Tried scales differ by at most 1.6 %, a fiftieth of a bit."""
_MAX_ROUNDS = 6
"""A new scale changes the operands of later additions, which then may need another one."""


class _NewScale(Struct, frozen=True, kw_only=True):
    """A scale for which a node is exact.

    Attributes:
        result: the node's result, which no longer shares the scale of its operand.
    """

    tensor: str
    scale: float
    result: str


def with_exact_scales(content: bytes, shapes: Mapping[str, Shape] | None = None) -> bytes:
    """Change scales of a model in QDQ format."""
    work = QuantizedModel(onnx().load_from_string(content))
    for _ in range(_MAX_ROUNDS):
        graph = import_file(read_model(content), shapes=shapes)
        count = sum(_set_scale(work, one) for one in _new_scales(graph))
        if not count:
            break
        work.match_biases()
        work.finish()
        content = work.content()
    return content


def _new_scales(graph: Graph) -> Iterator[_NewScale]:
    """Yield a smaller scale for an average's operand without other readers, since the result may share its
    scale with operands of a Concat. All other results get a larger scale.
    """
    consumers = graph.consumers()
    for node in graph.nodes:
        if not _depends_on_scales(graph, node) or _is_exact(graph, node):
            continue
        is_operand = isinstance(node.operator, AveragePool) and len(consumers[node.inputs[0]]) == 1
        target = graph.tensors[node.inputs[0] if is_operand else node.output]
        scale, zero = target.scale_and_zero
        for step in range(1, _MAX_STEPS + 1):
            factor = 1 + step * _STEP
            new = float(np.float32(scale / factor if is_operand else scale * factor))
            changed = replace(target, quantization=Quantization.of(new, int(zero)))
            if _is_exact(replace(graph, tensors={**graph.tensors, target.name: changed}), node):
                yield _NewScale(tensor=target.name, scale=new, result=node.output)
                break


def _depends_on_scales(graph: Graph, node: Node) -> bool:
    """Whether a node computes or resizes integers in float32."""
    if isinstance(node.operator, Quantize):
        return _resized(graph, node) is not None
    names = [*node.inputs, node.output]
    is_integer = all(graph.tensors[name].dtype in QUANTIZED for name in names)
    varies = graph.constants.keys().isdisjoint(names)
    return is_integer and varies and isinstance(node.operator, Add | Mul | AveragePool)


def _resized(graph: Graph, node: Node) -> tuple[Tensor, Foreign] | None:
    resize = graph.producers.get(node.inputs[0])
    if resize is None or not isinstance(resize.operator, Foreign) or resize.operator.title != RESIZE_TITLE:
        return None
    before = graph.producers.get(resize.inputs[0])
    if before is None or not isinstance(before.operator, Dequantize):
        return None
    return graph.tensors[before.inputs[0]], resize.operator


def _is_exact(graph: Graph, node: Node) -> bool:
    """Return True also if the machine lacks the operator for another reason."""
    if isinstance(node.operator, Quantize):
        found = _resized(graph, node)
        assert found is not None
        return is_exact_resize(found[1], found[0], graph.tensors[node.output]) is not False
    if isinstance(node.operator, AveragePool):
        (data,), windows, out = graph.operands(node), node.operator.windows, graph.tensors[node.output]
        counts = [int(one) for one in np.unique(node.operator.counts(data.shape[2:]))]
        if node.operator.has_single_window(data.shape[2:]):
            return True
        if len(counts) == 1:
            return exact_average_scale(data, out, prod(windows.kernel), counts[0]) is not None
        return all(exact_average_scale(data, out, count, count) is not None for count in counts)
    try:
        return not lower(graph, FusedNodes(main=node), approximate=True).differences
    except (NotOnMachine, ShapeError):
        return True


def _set_scale(work: QuantizedModel, new: _NewScale) -> bool:
    result, quantize = (work.producers.get(name) for name in (new.result, new.tensor))
    if result is None or quantize is None or work.parameters(quantize) is None:
        return False
    work.separate(result)
    parameters = work.parameters(quantize)
    assert parameters is not None
    old = work.values(parameters[0])
    assert old is not None
    work.set_values(parameters[0], np.full_like(old, new.scale))
    return True
