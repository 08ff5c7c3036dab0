"""Stages as workloads of the compiler: which operator, with which parameters, on which tensors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from accel.base.errors import ShapeError
from accel.compiler.expr.quantized import Order
from accel.compiler.operators.registry import WORKLOADS
from accel.compiler.ops.quantized import Quantized, QuantizedResidual
from accel.compiler.ops.workload import Workload
from accel.graph.elementwise import (
    Add,
    Clip,
    Function,
    Mul,
    Requantize,
    Table,
    all_values,
    inner_is_scalar,
)
from accel.graph.graph import Graph, Node
from accel.graph.movement import Identity, Movement, Pad, Reshape
from accel.graph.pools import AveragePool, GlobalAveragePool, MaxPool
from accel.graph.products import Conv, MatMul, Product
from accel.graph.tensor import QUANTIZED, Array, Shape, Tensor
from accel.graph.windows import Windows
from accel.network.affine import find_affine
from accel.network.means import exact_mean_scale
from accel.network.stage import Stage, bounds


class NotOnMachine(Exception):
    """A stage has no program; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Operand:
    """What a layer takes as one of its inputs.

    Attributes:
        name: of the layer's input.
        tensor: of the graph.
        shape: in which the layer takes its values; their order is the same.
        copies: how often it takes them, one behind the other along ``axis``. Weights that no int8 holds are
            sums of as many int8 values, which meet the same data.
        axis, groups: the one that copies go along, of the axes of ``whole``, and in how many groups.
        whole: the tensor's shape; it may have another one as part of a program.
        made: values that are no tensor of the graph but made for ``tensor``: int8 or, of a bias, int32; all,
            or those on a matrix' diagonal.
    """

    name: str
    tensor: str
    shape: Shape
    copies: int = 1
    axis: int = 0
    groups: int = 1
    whole: Shape = ()
    made: tuple[int, ...] = ()

    def known(self, graph: Graph) -> Array | None:
        """Its values as the layer takes them, where they are known before a run; else None."""
        if self.made:
            values = np.array(self.made, dtype="int32" if self.name == "bias" else "int8")
            return values.reshape(self.shape) if values.size == prod(self.shape) else np.diag(values)
        if self.tensor in graph.constants:
            return self.values(graph, graph.constants[self.tensor])
        return None

    def values(self, graph: Graph, array: Array) -> Array:
        """A tensor's values as the layer takes them: weights without their zero points."""
        tensor = graph.tensors[self.tensor]
        if self.tensor in graph.constants and tensor.dtype in QUANTIZED and self.name in WEIGHTS:
            summands = _summands(_centered(tensor, array), self.copies)
            return np.concatenate(summands, axis=self.axis).reshape(self.shape)
        if self.copies > 1:
            before, behind = self.whole[: self.axis], self.whole[self.axis + 1 :]
            size = self.whole[self.axis] // self.groups
            divided = array.reshape(*before, self.groups, size, *behind)
            array = np.concatenate([divided] * self.copies, axis=self.axis + 1)
        return np.ascontiguousarray(array).reshape(self.shape)


WEIGHTS = ("weight", "B")
"""Inputs of layers that hold weights."""


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A stage as the compiler sees it.

    Attributes:
        operator: its name in the compiler's registry.
        parameters: of the operator.
        operands: the layer's inputs.
        output: name of the layer's output.
        differences: of 65,536 pairs of values, those whose sum differs; 0 unless that was allowed.
    """

    operator: str
    parameters: Mapping[str, Any]
    operands: tuple[Operand, ...]
    output: str
    differences: int = 0

    def workload(self) -> Workload:
        """What is compiled."""
        return self._workload

    @cached_property
    def _workload(self) -> Workload:
        return WORKLOADS[self.operator](**self.parameters)


def lower(graph: Graph, stage: Stage, *, approximate: bool = False) -> Layer:
    """A stage as a layer.

    Args:
        graph: the stage's.
        stage: one of the graph's.
        approximate: whether additions may differ from floating point.

    Raises:
        NotOnMachine: it is none.
    """
    main = stage.main.operator
    try:
        if isinstance(main, Conv):
            return _conv(graph, stage, main, approximate)
        if isinstance(main, MatMul):
            return _matmul(graph, stage, main, approximate)
        if isinstance(main, GlobalAveragePool):
            return _global_mean(graph, stage, main)
        if isinstance(main, AveragePool):
            return _average(graph, stage, main)
        if isinstance(main, MaxPool):
            return _max_pool(graph, stage, main)
        if isinstance(main, Add) and not any(name in graph.constants for name in stage.main.inputs):
            return _sum(graph, stage, approximate)
        if isinstance(main, Requantize | Clip | Function | Table | Add | Mul):
            return _line(graph, stage)
    except ShapeError as error:
        raise NotOnMachine(str(error)) from None
    raise NotOnMachine(_absence(graph, stage))


def _absence(graph: Graph, stage: Stage) -> str:
    """Why the machine does not have an operator."""
    main, tensors = stage.main.operator, [*graph.operands(stage.main), graph.tensors[stage.main.output]]
    if isinstance(main, Identity | Reshape):
        return "values stay as they are"
    if isinstance(main, Movement):
        return "the machine moves no values"
    if any(tensor.dtype == "float32" for tensor in tensors):
        return "the machine has no float32"
    return f"the machine has no {main.kind}"


def _conv(graph: Graph, stage: Stage, conv: Conv, approximate: bool) -> Layer:
    operands = graph.operands(stage.main)
    data = operands[0]
    weights, copies = _weights(graph, stage, operands[1])
    windows, sizes = _padded(stage, conv.windows), data.shape
    if stage.pad is not None:
        sizes = graph.tensors[stage.pad.inputs[0]].shape
    if windows.rank > 2:
        raise NotOnMachine(f"the machine's convolutions have two axes; this one has {windows.rank}")
    wide = (sizes[0], sizes[1] * copies, *sizes[2:])
    parameters = {
        "N": sizes[0],
        "IC": wide[1],
        **_sizes(sizes, windows),
        "OC": weights.shape[0],
        **_windows(windows),
        "groups": conv.groups,
    }
    out = _two(graph.tensors[stage.output].shape, windows.rank)
    source = stage.main.inputs[0] if stage.pad is None else stage.pad.inputs[0]
    shape = (weights.shape[0], weights.shape[1] * copies, *weights.shape[2:])
    taken = [
        Operand(
            name="data",
            tensor=source,
            shape=_two(wide, windows.rank),
            copies=copies,
            axis=1,
            groups=conv.groups,
            whole=sizes,
        ),
        Operand(name="weight", tensor=weights.name, shape=_two(shape, windows.rank), copies=copies, axis=1),
    ]
    return _product(graph, stage, "conv2d", parameters, taken, out, approximate)


def _matmul(graph: Graph, stage: Stage, _: MatMul, approximate: bool) -> Layer:
    operands = graph.operands(stage.main)
    weights, copies = _weights(graph, stage, operands[1])
    if len(weights.shape) > 2:
        raise NotOnMachine("weights are several matrices; the machine's products have one")
    rows, (depth, columns) = prod(operands[0].shape[:-1]), weights.shape
    depth *= copies
    last = len(operands[0].shape) - 1
    taken = [
        Operand(
            name="A",
            tensor=operands[0].name,
            shape=(rows, depth),
            copies=copies,
            axis=last,
            whole=operands[0].shape,
        ),
        Operand(name="B", tensor=weights.name, shape=(depth, columns), copies=copies),
    ]
    parameters = {"M": rows, "N": columns, "K": depth}
    return _product(graph, stage, "gemm", parameters, taken, (rows, columns), approximate)


def _product(
    graph: Graph,
    stage: Stage,
    operator: str,
    parameters: dict[str, Any],
    taken: list[Operand],
    shape: Shape,
    approximate: bool,
) -> Layer:
    """A convolution or a product with all that is fused."""
    operands, own = graph.operands(stage.main), graph.tensors[stage.main.output]
    assert isinstance(stage.main.operator, Product)
    if own.dtype not in QUANTIZED:
        raise NotOnMachine(f"its result is {own.dtype}; the machine's products are int8 or uint8")
    scales = stage.main.operator.scales(operands, own)
    if len(operands) > 2:
        if operands[2].name not in graph.constants:
            raise NotOnMachine("its bias is no constant")
        taken.append(Operand(name="bias", tensor=operands[2].name, shape=operands[2].shape))
    residual = None
    if stage.addition is not None:
        other = graph.tensors[stage.residual]
        if other.name in graph.constants:
            raise NotOnMachine("what it adds is a constant")
        taken.append(Operand(name="residual", tensor=other.name, shape=shape))
        mine = graph.tensors[stage.result]
        residual = _residual(graph, stage.addition, mine, other, stage.sum_clips)
    quantized = _quantized(operands[0], own, scales, stage, residual)
    quantized, differences = _exact(quantized, approximate)
    return Layer(
        operator=operator,
        parameters=parameters | {"bias": len(operands) > 2, "quantized": quantized},
        operands=tuple(taken),
        output="C" if operator == "gemm" else "out",
        differences=differences,
    )


def _global_mean(graph: Graph, stage: Stage, pool: GlobalAveragePool) -> Layer:
    operands, own = graph.operands(stage.main), graph.tensors[stage.main.output]
    if own.dtype not in QUANTIZED:
        raise NotOnMachine(f"its result is {own.dtype}; the machine's means are int8 or uint8")
    batch, channels, height, *rest = operands[0].shape
    width = prod(rest)
    quantized = _quantized(operands[0], own, np.asarray(pool.scale(operands, own)), stage, None)
    shape = (batch, channels, height, width)
    return Layer(
        operator="global_avg_pool2d",
        parameters={"N": batch, "C": channels, "H": height, "W": width, "quantized": quantized},
        operands=(Operand(name="data", tensor=operands[0].name, shape=shape),),
        output="out",
    )


def mean_of_rows(layer: Layer, strips: int, rows: int) -> Layer:
    """A global mean as a product, whose weights are the picture: a matrix of pixels by channels.

    The weights are the picture in strips, transposed (:mod:`accel.network.layout`), uint8 less 128; the data
    is a matrix of ones and zeros, which says in which rows whose strips lie.

    Args:
        layer: of the operator ``global_avg_pool2d``.
        strips: of each picture.
        rows: of an element.
    """
    sizes, (data,) = layer.parameters, layer.operands
    count, pictures, channels = sizes["H"] * sizes["W"], sizes["N"], sizes["C"]
    elements = count // strips
    chosen = np.zeros((pictures, elements, rows), dtype=np.int64)
    for number in range(pictures):
        chosen[number, :, number * strips : (number + 1) * strips] = 1
    given = sizes["quantized"]
    shift = 128 if given.input_dtype == "uint8" else 0
    bias = count * (shift - given.input_zero)
    depth = elements * rows
    return Layer(
        operator="gemm",
        parameters={
            "M": pictures,
            "N": channels,
            "K": depth,
            "bias": True,
            "quantized": replace(given, input_zero=0, input_dtype="int8"),
        },
        operands=(
            Operand(
                name="A",
                tensor=data.tensor,
                shape=(pictures, depth),
                made=tuple(chosen.reshape(-1).tolist()),
            ),
            Operand(name="B", tensor=data.tensor, shape=(depth, channels)),
            Operand(name="bias", tensor=data.tensor, shape=(channels,), made=(bias,) * channels),
        ),
        output="C",
    )


def _average(graph: Graph, stage: Stage, pool: AveragePool) -> Layer:
    """A mean of windows as a product with weights of one, where floating point cannot round otherwise."""
    data, own = graph.operands(stage.main)[0], graph.tensors[stage.main.output]
    windows = pool.windows
    if data.dtype not in QUANTIZED or own.dtype not in QUANTIZED:
        raise NotOnMachine(_absence(graph, stage))
    if pool.is_global(data.shape[2:]):
        return _global_mean(graph, stage, GlobalAveragePool())
    if windows.rank > 2:
        raise NotOnMachine(f"the machine's windows have two axes; these have {windows.rank}")
    counts = pool.counts(data.shape[2:])
    if counts.min() != counts.max():
        raise NotOnMachine("its windows have different numbers of values")
    scale = exact_mean_scale(data, own, prod(windows.kernel), int(counts.max()))
    if scale is None:
        raise NotOnMachine("floating point may round some of its means to the other side")
    channels = data.shape[1]
    shape = (channels, 1, *_two((1, 1, *windows.kernel), windows.rank)[2:])
    operands = (
        Operand(name="data", tensor=data.name, shape=_two(data.shape, windows.rank)),
        Operand(name="weight", tensor=data.name, shape=shape, made=(1,) * prod(shape)),
    )
    parameters = {
        "N": data.shape[0],
        "IC": channels,
        **_sizes(data.shape, windows),
        "OC": channels,
        **_windows(windows),
        "groups": channels,
        "bias": False,
        "quantized": _quantized(data, own, np.asarray(scale), stage, None),
    }
    return Layer(operator="conv2d", parameters=parameters, operands=operands, output="out")


def _max_pool(graph: Graph, stage: Stage, pool: MaxPool) -> Layer:
    data = graph.operands(stage.main)[0]
    if data.dtype not in QUANTIZED:
        raise NotOnMachine(f"its values are {data.dtype}; the machine's maxima are of int8 or uint8")
    windows = pool.windows
    if windows.rank > 2:
        raise NotOnMachine(f"the machine's windows have two axes; these have {windows.rank}")
    return Layer(
        operator="max_pool2d",
        parameters={
            "N": data.shape[0],
            "C": data.shape[1],
            **_sizes(data.shape, windows),
            **_windows(windows),
            "dtype": data.dtype,
        },
        operands=(Operand(name="data", tensor=data.name, shape=_two(data.shape, windows.rank)),),
        output="out",
    )


# --- value by value --------------------------------------------------------------------------------


def _sum(graph: Graph, stage: Stage, approximate: bool) -> Layer:
    """An addition: its first operand as the result of a layer that changes nothing, the second as what is
    added to it."""
    own, other = graph.operands(stage.main)
    total = graph.tensors[stage.main.output]
    if total.dtype not in QUANTIZED:
        raise NotOnMachine(_absence(graph, stage))
    if not own.shape == other.shape == total.shape:
        raise NotOnMachine(f"it adds {own.shape} and {other.shape}; the machine adds what has one shape")
    zero = int(own.per_tensor[1])
    quantized = Quantized(
        scale=1.0,
        input_zero=zero,
        input_dtype=own.dtype,
        output_zero=zero,
        output_dtype=own.dtype,
        residual=_residual(graph, stage.main, own, other, stage.clips),
    )
    quantized, differences = _exact(quantized, approximate)
    layer = _diagonal(graph, own, [1], [0], quantized)
    added = Operand(name="residual", tensor=other.name, shape=layer.operands[0].shape)
    return replace(layer, operands=(*layer.operands, added), differences=differences)


def _line(graph: Graph, stage: Stage) -> Layer:
    """A function of one operand, perhaps another one for each channel, that a scale and a bias give."""
    out = graph.tensors[stage.output]
    (data, *others), table = _table(graph, stage)
    if others or data.shape != out.shape or not {data.dtype, out.dtype} <= set(QUANTIZED):
        raise NotOnMachine(_absence(graph, stage))
    # what is only bounded may be integers that stand for nothing else
    zero, own_zero = (0 if one.quantization is None else int(one.per_tensor[1]) for one in (out, data))
    values = all_values(data.dtype).astype(np.int64) - own_zero
    lines = [find_affine(values, column, zero) for column in table.T]
    found = [line for line in lines if line is not None]
    if len(found) < len(lines):
        raise NotOnMachine("there is no scale and bias that give all of its values")
    # a channel that does not reach its bounds takes those of the others
    clip = min(line.low for line in found), max(line.high for line in found)
    scales = [line.scale for line in found]
    quantized = Quantized(
        scale=scales[0] if len(scales) == 1 else scales,
        input_zero=own_zero,
        input_dtype=data.dtype,
        output_zero=zero,
        output_dtype=out.dtype,
        clip=clip,
    )
    for line, column in zip(found, table.T, strict=True):
        if (line.low, line.high) != clip and not np.array_equal(line.values(values, zero, clip), column):
            raise NotOnMachine("its channels have bounds of their own")
    weights, biases = [line.weight for line in found], [line.bias for line in found]
    return _diagonal(graph, data, weights, biases, quantized)


def _table(graph: Graph, stage: Stage) -> tuple[list[Tensor], Array]:
    """The operands that are no constants, and the results of all values of a single one: (256, channels), or
    (256, 1) where all channels have the same."""
    operands, out = graph.operands(stage.main), graph.tensors[stage.output]
    given = [one for one in operands if one.name not in graph.constants]
    if len(given) != 1 or given[0].dtype not in QUANTIZED or out.dtype not in QUANTIZED:
        raise NotOnMachine(_absence(graph, stage))
    values = all_values(given[0].dtype)
    rank = len(out.shape)
    axis = rank if rank < 2 or _is_matrix(graph, given[0]) else 2
    arrays = []
    for one in operands:
        array = values.reshape(-1, *[1] * rank)
        if one is not given[0]:
            array = graph.constants[one.name]
            array = array.reshape(*[1] * (rank + 1 - array.ndim), *array.shape)
            if any(size > 1 and place != axis for place, size in enumerate(array.shape)):
                raise NotOnMachine("its constants are more than a number for each channel")
        arrays.append(array)
    table = stage.main.operator.evaluate(operands, arrays, out).astype(np.int64)
    return given, np.clip(table, *bounds(stage.clips, out.dtype)).reshape(len(values), -1)


def _diagonal(
    graph: Graph, data: Tensor, weights: Sequence[int], biases: Sequence[int], quantized: Quantized
) -> Layer:
    """A layer in which each channel is multiplied by a weight of its own.

    Args:
        graph: the tensor's.
        data: what it takes.
        weights, biases: one of each, or one for each channel.
        quantized: what follows.
    """
    sizes, as_product = _channels(graph, data)
    count = sizes[1]
    made, added = (tuple(one) * (count if len(one) == 1 else 1) for one in (weights, biases))
    operands = [Operand(name="A" if as_product else "data", tensor=data.name, shape=sizes)]
    if as_product:
        operands.append(Operand(name="B", tensor=data.name, shape=(count, count), made=made))
        parameters: dict[str, Any] = {"M": sizes[0], "N": count, "K": count}
    else:
        operands.append(Operand(name="weight", tensor=data.name, shape=(count, 1, 1, 1), made=made))
        parameters = {"N": sizes[0], "IC": count, "H": sizes[2], "W": sizes[3], "OC": count}
        parameters |= {"kernel": (1, 1), "groups": count}
    if any(biases):
        operands.append(Operand(name="bias", tensor=data.name, shape=(count,), made=added))
    return Layer(
        operator="gemm" if as_product else "conv2d",
        parameters=parameters | {"bias": any(biases), "quantized": quantized},
        operands=tuple(operands),
        output="C" if as_product else "out",
    )


_ROW = 140
"""Cycles that a convolution of a single place takes, about."""


def _channels(graph: Graph, data: Tensor) -> tuple[Shape, bool]:
    """A tensor as values of channels, (N, C, H, W) or, where a product takes fewer cycles, (M, N)."""
    shape = data.shape
    if not _is_matrix(graph, data):
        if len(shape) > 4:
            raise NotOnMachine(f"the machine's tensors have four axes at most; this one has {len(shape)}")
        return _two(shape, len(shape) - 2), False
    rows, channels = prod(shape[:-1]), shape[-1]
    whole = rows * (-(-channels // 16)) ** 2 + channels**2 // 8
    return ((rows, channels), True) if whole < rows * _ROW else ((rows, channels, 1, 1), False)


def _is_matrix(graph: Graph, tensor: Tensor) -> bool:
    """Whether a tensor's channels are its last axis, as a product leaves them, and not the second."""
    name: str | None = tensor.name
    while name is not None and len(tensor.shape) > 2:
        node = graph.producers.get(name)
        if node is None or isinstance(node.operator, Conv | MaxPool | GlobalAveragePool):
            return False
        if isinstance(node.operator, MatMul):
            return True
        name = next((one for one in node.inputs if graph.tensors[one].shape == tensor.shape), None)
    return len(tensor.shape) <= 2


# --- quantization ----------------------------------------------------------------------------------


def _quantized(
    data: Tensor, own: Tensor, scales: Array, stage: Stage, residual: QuantizedResidual | None
) -> Quantized:
    found = np.atleast_1d(scales)
    return Quantized(
        scale=float(found[0]) if found.size == 1 else found.tolist(),
        input_zero=int(data.per_tensor[1]),
        input_dtype=data.dtype,
        output_zero=int(own.per_tensor[1]),
        output_dtype=own.dtype,
        clip=bounds(stage.clips, own.dtype),
        residual=residual,
    )


def _residual(
    graph: Graph, addition: Node, own: Tensor, other: Tensor, clips: Sequence[Node]
) -> QuantizedResidual:
    """What an addition adds to a result, even if that is possible only approximately."""
    total = graph.tensors[addition.output]
    (scale, zero), (sum_scale, sum_zero) = other.per_tensor, total.per_tensor
    return QuantizedResidual(
        result_scale=float(own.per_tensor[0]),
        scale=float(scale),
        zero=int(zero),
        dtype=other.dtype,
        sum_scale=float(sum_scale),
        sum_zero=int(sum_zero),
        sum_dtype=total.dtype,
        sum_clip=bounds(clips, total.dtype),
        approximate=True,
        order=_order(graph, addition, own),
    )


def _exact(quantized: Quantized, approximate: bool) -> tuple[Quantized, int]:
    """The same, approximate only if it is, and how many sums differ.

    Raises:
        NotOnMachine: some do, and must not.
    """
    if quantized.residual is None or quantized.sum is None:
        return quantized, 0
    differences = quantized.sum.addition.differences
    if differences and not approximate:
        raise NotOnMachine(f"integers would change the sum of {differences} of 65,536 pairs of values")
    residual = replace(quantized.residual, approximate=bool(differences))
    return replace(quantized, residual=residual), differences


def _order(graph: Graph, addition: Node, own: Tensor) -> Order:
    """How floating point adds a layer's own result, on the left, and the residual."""
    operands, out = graph.operands(addition), graph.tensors[addition.output]
    if Add.is_apart(operands, out):
        return "apart"
    last = 1 if inner_is_scalar(operands, out) else 0
    return "left" if addition.inputs[last] == own.name else "right"


def _weights(graph: Graph, stage: Stage, weights: Tensor) -> tuple[Tensor, int]:
    """The weights, and of how many int8 values each of them is the sum."""
    if weights.name not in graph.constants:
        raise NotOnMachine("its weights are no constant")
    if weights.dtype not in QUANTIZED:
        raise NotOnMachine(f"its weights are {weights.dtype}; the machine's are int8")
    centered = _centered(weights, graph.constants[weights.name])
    low, high = int(centered.min()), int(centered.max())
    return weights, max(1, -(low // 128), -(-high // 127))


def _summands(values: Array, count: int) -> list[Array]:
    """So many int8 arrays whose sum is an array of integers."""
    found, rest = [], values.astype(np.int32)
    for _ in range(count):
        found.append(np.clip(rest, -128, 127).astype(np.int8))
        rest = rest - found[-1]
    assert not rest.any()
    return found


def _centered(weights: Tensor, values: Array) -> Array:
    """Weights less their zero points, int32."""
    return np.asarray(values.astype(np.int32) - weights.quantized.zeros_along(values.ndim))


# --- windows ---------------------------------------------------------------------------------------


def _padded(stage: Stage, windows: Windows) -> Windows:
    """Windows with the padding before them."""
    if stage.pad is None:
        return windows
    pad = stage.pad.operator
    assert isinstance(pad, Pad)
    begin, end = (
        tuple(a + b for a, b in zip(mine, theirs[2:], strict=True))
        for mine, theirs in ((windows.begin, pad.begin), (windows.end, pad.end))
    )
    return Windows(
        kernel=windows.kernel, strides=windows.strides, dilations=windows.dilations, begin=begin, end=end
    )


def _two(shape: Shape, rank: int) -> Shape:
    """A shape of two spatial axes."""
    return shape if rank == 2 else (*shape[:2], 1, *shape[2:])


def _sizes(shape: Shape, windows: Windows) -> dict[str, int]:
    height, width = _two(shape, windows.rank)[2:]
    return {"H": height, "W": width}


def _windows(windows: Windows) -> dict[str, Any]:
    """Parameters of the compiler's operators; of a single axis, that from left to right."""
    one = windows.rank == 1
    kernel, strides, dilations, begin, end = (
        (filler, *given) if one else given
        for filler, given in (
            (1, windows.kernel),
            (1, windows.strides),
            (1, windows.dilations),
            (0, windows.begin),
            (0, windows.end),
        )
    )
    return {
        "kernel": kernel,
        "stride": strides,
        "padding": (*begin, *end),
        "dilation": dilations,
    }
