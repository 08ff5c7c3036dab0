"""Operators of a float network in forms that become integer layers of the machine when quantized.

docs/how-to/run-an-onnx-network.md lists most of them. Two more:

| operator | becomes |
|---|---|
| a Gemm whose third operand is no constant, as in a cell of an LSTM | a Gemm and an Add |
| Mul or Div by a number after a product and moves, as in attention | part of the product's weights |

Float results stay the same except for rounding.
"""

from math import prod
from typing import Any

import numpy as np

from accel.formats.editable_model import EditableModel, Sizes, attributes
from accel.graph.graph_tensor import Array

_MOVES = ("Flatten", "Reshape", "Squeeze", "Transpose", "Unsqueeze")
_PRODUCTS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
_EPSILON = 1e-5


def rewrite_float(model: Any) -> int:
    """Rewrite a float model of opset 13 or later in place, and count rewritten operators."""
    work = EditableModel(model)
    count = _bounds(work) + _varying_biases(work) + _into_transposed_convolutions(work)
    count += _batch_norms(work, work.shapes())
    count += _biased_products(work, work.shapes())
    count += _factors(work)
    work.finish()
    return count


def _bounds(work: EditableModel) -> int:
    count = 0
    for node in work.of_kind("Max", "Min"):
        if len(node.input) != 2:
            continue
        numbers = {name: work.constant(name) for name in node.input}
        bounds = [name for name, value in numbers.items() if value is not None and value.size == 1]
        data = [name for name in node.input if numbers[name] is None]
        if len(data) != 1 or len(bounds) != 1:
            continue
        value = numbers[bounds[0]]
        assert value is not None
        bound = work.add_constant(f"{node.output[0]}/bound", value.reshape(()))
        inputs = [data[0], bound] if node.op_type == "Max" else [data[0], "", bound]
        work.replace([node], [work.node("Clip", inputs, node.output[0], node.name or node.output[0])])
        count += 1
    return count


def _into_transposed_convolutions(work: EditableModel) -> int:
    count = 0
    for conv in work.of_kind("ConvTranspose"):
        weights, group = work.constant(conv.input[1]), attributes(conv).get("group", 1)
        bias = work.constants(name for name in conv.input[2:] if name)
        if weights is None or group != 1 or bias is None:
            continue
        shift = bias[0] if bias else np.zeros(weights.shape[1])
        folded = [conv]
        while (node := work.reader(folded[-1].output[0])) is not None:
            affine = _affine_of(work, node, folded[-1].output[0], weights)
            if affine is None:
                break
            factor, addend = affine
            weights = weights * factor.reshape(1, -1, *[1] * (weights.ndim - 2))
            shift = shift * factor + addend
            folded.append(node)
        if len(folded) > 1:
            count += len(folded) - 1
            _set_weights(work, folded, weights, shift)
    return count


def _affine_of(work: EditableModel, node: Any, source: str, weights: Array) -> tuple[Array, Array] | None:
    channels = weights.shape[1]
    if node.op_type == "BatchNormalization" and node.input[0] == source:
        return _normalization(work, node)
    if node.op_type == "Add":
        others = [name for name in node.input if name != source]
        values = work.constant(others[0]) if len(others) == 1 else None
        if values is not None and _is_per_channel(values, channels, weights.ndim):
            return np.ones(channels), np.broadcast_to(values.reshape(-1), (channels,))
    return None


def _is_per_channel(values: Array, channels: int, rank: int) -> bool:
    shape = (1,) * (rank - values.ndim) + values.shape
    return len(shape) == rank and shape[1] in (1, channels) and prod(shape) == shape[1]


def _normalization(work: EditableModel, node: Any) -> tuple[Array, Array] | None:
    values = attributes(node)
    parameters = work.constants(node.input[1:5])
    if parameters is None or values.get("training_mode", 0) or any(node.output[1:]):
        return None
    scale, shift, mean, variance = parameters
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(variance + values.get("epsilon", _EPSILON))
    addend = shift - mean * factor
    return (factor, addend) if np.isfinite(factor).all() and np.isfinite(addend).all() else None


def _set_weights(work: EditableModel, folded: list[Any], weights: Array, shift: Array) -> None:
    conv, output = folded[0], folded[-1].output[0]
    inputs = [
        conv.input[0],
        work.add_constant(f"{output}/weights", weights),
        work.add_constant(f"{output}/bias", shift),
    ]
    made = work.node("ConvTranspose", inputs, output, conv.name or output, **attributes(conv))
    work.replace(folded, [made])


def _batch_norms(work: EditableModel, shapes: dict[str, Sizes]) -> int:
    count = 0
    for node in work.of_kind("BatchNormalization"):
        rank, affine = len(shapes.get(node.input[0], ())), _normalization(work, node)
        if rank < 3 or affine is None:
            continue
        factor, addend = affine
        output = node.output[0]
        weights = work.add_constant(f"{output}/weights", factor.reshape(-1, 1, *[1] * (rank - 2)))
        inputs = [node.input[0], weights, work.add_constant(f"{output}/bias", addend)]
        kernel = [1] * (rank - 2)
        made = work.node("Conv", inputs, output, node.name or output, group=len(factor), kernel_shape=kernel)
        work.replace([node], [made])
        count += 1
    return count


def _varying_biases(work: EditableModel) -> int:
    """Both the Gemm's and the Add's result then get a scale."""
    count = 0
    for gemm in work.of_kind("Gemm"):
        bias, options = [*gemm.input[2:], ""][0], attributes(gemm)
        if not bias or work.constant(bias) is not None or options.pop("beta", 1.0) != 1:
            continue
        output = gemm.output[0]
        product = work.fresh(f"{output}/product")
        work.replace(
            [gemm],
            [
                work.node("Gemm", gemm.input[:2], product, gemm.name or product, **options),
                work.node("Add", [product, bias], output, f"{gemm.name or output}/sum"),
            ],
        )
        count += 1
    return count


def _biased_products(work: EditableModel, shapes: dict[str, Sizes]) -> int:
    """The bias of a Gemm is part of the integer sum."""
    count = 0
    for add in work.of_kind("Add"):
        for product, bias in (tuple(add.input), tuple(reversed(add.input))):
            matmul = work.producer(product, "MatMul")
            if matmul is not None and _has_bias(work, matmul, add, bias, shapes):
                _make_gemm(work, matmul, add, bias, shapes)
                count += 1
                break
    return count


def _has_bias(work: EditableModel, matmul: Any, add: Any, bias: str, shapes: dict[str, Sizes]) -> bool:
    weights, values = work.constant(matmul.input[1]), work.constant(bias)
    rows, result = shapes.get(matmul.input[0], ()), shapes.get(matmul.output[0], ())
    return (
        weights is not None
        and weights.ndim == 2
        and values is not None
        and values.size == values.shape[-1:].count(weights.shape[1]) * weights.shape[1] > 0
        and len(rows) >= 2
        and result.count(None) <= 1
        and len(result) == len(rows)
        and values.ndim <= len(rows)
        and work.reader(matmul.output[0]) is add
    )


def _make_gemm(work: EditableModel, matmul: Any, add: Any, bias: str, shapes: dict[str, Sizes]) -> None:
    values, weights = work.constant(bias), work.constant(matmul.input[1])
    assert values is not None
    assert weights is not None
    output, data, result = add.output[0], matmul.input[0], shapes[matmul.output[0]]
    vector = work.add_constant(f"{output}/bias", values.reshape(-1))
    nodes = []
    target = output
    if len(result) != 2:
        flat = work.add_constant(f"{output}/flat", np.array([-1, weights.shape[0]], np.int64))
        rows = work.fresh(f"{output}/rows")
        nodes.append(work.node("Reshape", [data, flat], rows, rows))
        data, target = rows, work.fresh(f"{output}/products")
    nodes.append(work.node("Gemm", [data, matmul.input[1], vector], target, matmul.name or output))
    if len(result) != 2:
        sizes = np.array([-1 if size is None else size for size in result], np.int64)
        shape = work.add_constant(f"{output}/shape", sizes)
        nodes.append(work.node("Reshape", [target, shape], output, add.name or output))
    work.replace([matmul, add], nodes)


def _factors(work: EditableModel) -> int:
    count = 0
    for node in work.of_kind("Mul", "Div"):
        for data, number in (tuple(node.input), tuple(reversed(node.input))):
            value = work.constant(number)
            if value is None or value.size != 1 or (node.op_type == "Div" and number != node.input[1]):
                continue
            factor = (
                float(value.reshape(())) if node.op_type == "Mul" else 1 / float(value.reshape(()) or np.nan)
            )
            product = _product_before(work, data, node)
            if product is not None and np.isfinite(factor) and value.ndim <= 1:
                _scale_product(work, product, factor)
                work.bypass(node, data)
                count += 1
                break
    return count


def _product_before(work: EditableModel, name: str, reader: Any) -> Any | None:
    """Return the product with constant weights before a node and perhaps moves."""
    while work.reader(name) is reader:
        node = work.producer(name, *_MOVES, *_PRODUCTS)
        if node is None or node.op_type in _MOVES:
            if node is None:
                return None
            name, reader = node.input[0], node
            continue
        constants = work.constants(one for one in node.input[1:] if one)
        is_plain = not {"alpha", "beta"} & attributes(node).keys()
        return node if constants is not None and is_plain else None
    return None


def _scale_product(work: EditableModel, product: Any, factor: float) -> None:
    for at, name in enumerate(product.input):
        values = work.constant(name) if at and name else None
        if values is not None:
            product.input[at] = work.add_constant(f"{name}/scaled", values * factor)
