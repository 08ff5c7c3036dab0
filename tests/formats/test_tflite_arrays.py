"""TensorFlow Lite's operators that look up, sort or rearrange values, and windows and LSTMs of float32.

Expected values are numpy's. They were also compared with TensorFlow Lite's reference kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from accel.base.errors import GraphError
from accel.formats.tflite_import import import_tflite_model
from accel.graph.elementwise_operators import Function
from accel.graph.graph_evaluation import evaluate
from accel.graph.graph_tensor import Array
from tests.expect import refused
from tests.formats.tflite_writer import FilledTensor, WrittenGraph, write_tflite

RNG = np.random.default_rng(0)
QUANTIZED = {"scale": 0.05, "zero": -3}
MASKS = ("BeginMask", "EndMask", "EllipsisMask", "NewAxisMask", "ShrinkAxisMask")


def floats(*shape: int) -> Array:
    return RNG.normal(size=shape).astype(np.float32)


def bytes_of(*shape: int) -> Array:
    return RNG.integers(-128, 128, shape).astype(np.int8)


def computed(
    kind: str,
    operands: Sequence[Array],
    results: Sequence[Array],
    *,
    constants: Sequence[Array] = (),
    quantized: dict[str, Any] | None = None,
    options: str = "",
    batch: int | None = None,
    **fields: Any,
) -> list[Array]:
    """Run one operator, whose constant inputs follow the others.

    Args:
        results: arrays with the shapes and dtypes of the results.
        quantized: scale and zero point of all int8 tensors.
    """
    graph = WrittenGraph()

    def tensor(values: Array, name: str) -> int:
        own = quantized or {} if values.dtype == np.int8 else {}
        return graph.tensor(*values.shape, dtype=values.dtype.name, name=name, **own)

    inputs = [tensor(one, f"x{n}") for n, one in enumerate(operands)]
    known = [graph.known(one, one.dtype.name) for one in constants]
    outputs = [tensor(one, f"y{n}") for n, one in enumerate(results)]
    graph.add(kind, [*inputs, *known], *outputs, options=options, **fields)
    graph.inputs, graph.outputs = inputs, outputs
    imported = import_tflite_model(write_tflite(graph), batch=batch)
    found = evaluate(imported, dict(zip(imported.inputs, operands, strict=True)))
    return [found[name] for name in imported.outputs]


def check(kind: str, operands: Sequence[Array], *wanted: Array, **others: Any) -> None:
    for found, one in zip(computed(kind, operands, wanted, **others), wanted, strict=True):
        if one.dtype == np.float32:
            np.testing.assert_allclose(found, one, rtol=1e-4, atol=1e-6)
        else:
            np.testing.assert_array_equal(found, one)
            assert found.dtype == one.dtype


def numbers(*values: int) -> Array:
    return np.array(values, np.int32)


# --- moves --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("begin", "end", "step", "masks", "index"),
    [
        ((0, 1), (0, 3), (1, 1), {"EllipsisMask": 1}, np.s_[..., 1:3]),
        ((1, 0, 1), (2, 0, 3), (1, 1, 1), {"EllipsisMask": 2}, np.s_[1:2, ..., 1:3]),
        ((0, 0, 0), (2, 0, 3), (1, 1, 1), {"NewAxisMask": 2}, np.s_[0:2, None, 0:3]),
        ((0, 0), (0, 0), (1, 1), {"EllipsisMask": 1, "NewAxisMask": 2}, np.s_[..., None]),
        ((-1, 0), (0, 0), (1, 1), {"ShrinkAxisMask": 1, "EllipsisMask": 2}, np.s_[-1, ...]),
        ((1, 0, 2), (2, 0, 0), (1, 1, 1), {"NewAxisMask": 2, "ShrinkAxisMask": 5}, np.s_[1, None, 2]),
    ],
)
@pytest.mark.parametrize("kind", [floats, bytes_of])
def test_slices_with_ellipses_and_new_axes(
    kind: Callable[..., Array],
    begin: Sequence[int],
    end: Sequence[int],
    step: Sequence[int],
    masks: dict[str, int],
    index: Any,
) -> None:
    data = kind(2, 3, 4, 5)
    fields = dict.fromkeys(MASKS, 0) | masks
    constants = [numbers(*one) for one in (begin, end, step)]
    check(
        "STRIDED_SLICE",
        [data],
        data[index],
        constants=constants,
        quantized=QUANTIZED,
        options="StridedSliceOptions",
        **fields,
    )


def test_slices_that_do_not_fit() -> None:
    for masks, message in (
        ({"EllipsisMask": 3}, "it slices 0 of 2 axes, with 2 ellipses; it may have one"),
        ({}, "it slices 3 of 2 axes, with 0 ellipses; it may have one"),
    ):
        bounds = [numbers(*[1] * (3 - len(masks)))] * 3
        fields = dict.fromkeys(MASKS, 0) | masks
        with refused(GraphError, f"node 'y0': {message}"):
            computed(
                "STRIDED_SLICE",
                [floats(2, 3)],
                [floats(2, 3)],
                constants=bounds,
                options="StridedSliceOptions",
                **fields,
            )


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("count", [1, -1])
def test_a_slice_of_an_open_batch(batch: int, count: int) -> None:
    """A size of -1 takes the whole batch of a run, and a size of 1 its first sample."""
    graph = WrittenGraph()
    x = graph.tensor(1, 6, 4, name="x", signature=(-1, 6, 4))
    y = graph.tensor(1, 3, 4, name="y", signature=(-1, 3, 4))
    graph.add("SLICE", [x, graph.known([0, 1, 0], "int32"), graph.known([count, 3, 4], "int32")], y)
    graph.inputs, graph.outputs = [x], [y]
    data = floats(batch, 6, 4)
    found = evaluate(import_tflite_model(write_tflite(graph), batch=batch), {"x": data})["y"]
    np.testing.assert_array_equal(found, data[: count if count > 0 else None, 1:4])


@pytest.mark.parametrize("kind", [floats, bytes_of])
def test_reversal_and_symmetric_pads(kind: Callable[..., Array]) -> None:
    data = kind(2, 3, 4)
    check("REVERSE_V2", [data], data[:, ::-1], constants=[numbers(1)], quantized=QUANTIZED)
    pads = np.array([[0, 2], [3, 0], [1, 1]], np.int32)
    wanted = np.pad(data, pads, "symmetric")
    check(
        "MIRROR_PAD",
        [data],
        wanted,
        constants=[pads],
        quantized=QUANTIZED,
        options="MirrorPadOptions",
        Mode=1,
    )
    with refused(
        GraphError,
        "node 'y0': its pads are [[0, 3], [0, 0], [0, 0]]; they must be from 0 to the sizes (2, 3, 4)",
    ):
        computed(
            "MIRROR_PAD",
            [data],
            [kind(5, 3, 4)],
            constants=[numbers(0, 3, 0, 0, 0, 0).reshape(3, 2)],
            options="MirrorPadOptions",
            Mode=1,
        )


@pytest.mark.parametrize("kind", [floats, bytes_of])
def test_blocks_in_the_batch(kind: Callable[..., Array]) -> None:
    data, block = kind(2, 3, 5, 3), numbers(2, 3)
    pads = np.array([[1, 2], [2, 2]], np.int32)
    fill = -3 if data.dtype == np.int8 else 0
    padded = np.pad(data, [(0, 0), *pads, (0, 0)], constant_values=fill)
    cut = padded.reshape(2, 3, 2, 3, 3, 3).transpose(2, 4, 0, 1, 3, 5).reshape(12, 3, 3, 3)
    check("SPACE_TO_BATCH_ND", [data], cut, constants=[block, pads], quantized=QUANTIZED)
    check("BATCH_TO_SPACE_ND", [cut], data, constants=[block, pads], quantized=QUANTIZED)
    none = np.zeros((2, 2), np.int32)
    check("BATCH_TO_SPACE_ND", [cut], padded, constants=[block, none], quantized=QUANTIZED)
    with refused(GraphError, "node 'y0': its padded sizes (3, 5) are no multiples of its blocks (2, 3)"):
        computed("SPACE_TO_BATCH_ND", [data], [cut], constants=[block, none])
    with refused(GraphError, "node 'y0': its batch is 2, which is no multiple of its blocks (2, 3)"):
        computed("BATCH_TO_SPACE_ND", [data], [cut], constants=[block, none])


# --- look-ups -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "indices", "axis", "batch"),
    [((2, 7, 3), (2, 4), 1, 1), ((2, 3, 7, 3), (2, 4), 2, 1), ((2, 3, 7), (2, 3, 2, 2), 2, 2)],
)
@pytest.mark.parametrize("kind", [floats, bytes_of])
def test_a_gather_with_shared_axes(
    kind: Callable[..., Array], sizes: tuple[int, ...], indices: tuple[int, ...], axis: int, batch: int
) -> None:
    data = kind(*sizes)
    places = RNG.integers(0, sizes[axis], indices).astype(np.int32)
    shape = (*sizes[:axis], *indices[batch:], *sizes[axis + 1 :])
    wanted = np.empty(shape, data.dtype)
    for at in np.ndindex(*sizes[:batch]):
        wanted[at] = data[at].take(places[at], axis - batch)
    fields = {"options": "GatherOptions", "Axis": axis, "BatchDims": batch}
    check("GATHER", [data, places], wanted, quantized=QUANTIZED, **fields)
    start = f"node 'y0': its batch_dims is {axis + 1}; it must be from 0 to its axis"
    with refused(GraphError, f"{start}, {axis}, and to the {len(indices)} axes of its indices"):
        computed("GATHER", [data, places], [wanted], **fields | {"BatchDims": axis + 1})


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8", "int32", "int64"])
def test_tables_of_any_dtype(dtype: str) -> None:
    table = RNG.integers(0, 100, (7, 3)).astype(dtype)
    places = numbers(6, 0, 2, 2)
    graph = WrittenGraph()
    known, x = graph.known(table, dtype), graph.tensor(4, dtype="int32", name="x")
    y, z = (graph.tensor(4, 3, dtype=dtype, name=name) for name in "yz")
    graph.add("GATHER", [known, x], y, options="GatherOptions", Axis=0)
    graph.add("EMBEDDING_LOOKUP", [x, known], z)
    graph.inputs, graph.outputs = [x], [y, z]
    found = evaluate(import_tflite_model(write_tflite(graph)), {"x": places})
    for name in "yz":
        np.testing.assert_array_equal(found[name], table[places])


def test_lookups_by_several_indices() -> None:
    data, places = floats(3, 4, 2), numbers(0, 1, 2, 3).reshape(2, 2)
    check("GATHER_ND", [data, places], data[[0, 2], [1, 3]])
    rows = bytes_of(3, 4) // 4
    summed = np.zeros((6, 4), np.int8)
    np.add.at(summed, [1, 4, 1], rows)
    operands = [numbers(1, 4, 1).reshape(3, 1), rows]
    check("SCATTER_ND", operands, summed, constants=[numbers(6, 4)], quantized=QUANTIZED)


def test_hot_places() -> None:
    """Indices outside of the depth have no place."""
    places = numbers(0, 4, 7, -1)
    wanted = np.where(np.arange(5) == places[:, None], 3, -2).astype(np.float32)
    constants = [np.array(5, np.int32), np.array(3, np.float32), np.array(-2, np.float32)]
    fields = {"constants": constants, "options": "OneHotOptions"}
    check("ONE_HOT", [places], wanted, Axis=-1, **fields)
    check("ONE_HOT", [places], wanted.T.copy(), Axis=0, **fields)


def test_the_largest_values() -> None:
    data = RNG.permutation(60).reshape(4, 15)
    order = np.argsort(-data)[:, :4]
    for dtype in ("float32", "int8", "int32"):
        values = data.astype(dtype)
        wanted = [np.take_along_axis(values, order, 1), order.astype(np.int32)]
        check("TOPK_V2", [values], *wanted, constants=[np.array(4, np.int32)], quantized=QUANTIZED)


# --- integers and sums ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32"])
def test_divisions_by_varying_numbers(dtype: str) -> None:
    """ONNX Runtime refuses to divide integers by the zeros with which shapes are found."""
    left = RNG.integers(-40, 40, (4, 8)).astype(dtype)
    right = (RNG.integers(1, 7, (4, 8)) * RNG.choice([-1, 1], (4, 8))).astype(dtype)
    options = {"options": "DivOptions", "FusedActivationFunction": 0}
    exact = left.astype(np.float64) / right
    if dtype != "float32":
        exact = np.trunc(exact)
    check("DIV", [left, right], exact.astype(dtype), **options)
    check("FLOOR_DIV", [left, right], np.floor_divide(left, right))
    check("FLOOR_MOD", [left, right], np.mod(left, right))
    if dtype == "int32":
        with pytest.raises(GraphError, match="Integer division by zero"):
            computed("DIV", [left, right * 0], [left], **options)


def test_conversions_of_integers() -> None:
    """The integers of a quantized tensor are converted, not its numbers."""
    data = bytes_of(2, 5)
    for quantized in (None, QUANTIZED):
        for dtype in ("float32", "int32", "int64", "bool", "int16"):
            check("CAST", [data], data.astype(dtype), quantized=quantized, options="CastOptions")
    check("CAST", [floats(2, 5) * 0 + 7], np.full((2, 5), 7, np.int8), options="CastOptions")


def test_running_sums() -> None:
    data = floats(2, 6)
    last = [np.array(-1, np.int32)]
    options = {"constants": last, "options": "CumsumOptions"}
    check("CUMSUM", [data], data.cumsum(1), **options)
    check("CUMSUM", [data], data.cumsum(1) - data, Exclusive=True, **options)
    check("CUMSUM", [data], data[:, ::-1].cumsum(1)[:, ::-1].copy(), Reverse=True, **options)
    several = [floats(2, 3) for _ in range(3)]
    check("ADD_N", several, several[0] + several[1] + several[2])
    flags = RNG.random((4, 5)) > 0.4
    for kind, wanted in (("REDUCE_ANY", flags.any(1)), ("REDUCE_ALL", flags.all(1))):
        fields = {"constants": [numbers(1)], "options": "ReducerOptions", "KeepDims": False}
        check(kind, [flags], wanted, **fields)


# --- functions --------------------------------------------------------------------------------------------


def test_softmax_with_a_factor() -> None:
    data = floats(3, 6)
    powers = np.exp(data * 2.5)
    softmax = powers / powers.sum(1, keepdims=True)
    check("SOFTMAX", [data], softmax, options="SoftmaxOptions", Beta=2.5)
    integers = bytes_of(3, 6)
    graph = WrittenGraph()
    x = graph.tensor(3, 6, dtype="int8", name="x", **QUANTIZED)
    y = graph.tensor(3, 6, dtype="int8", name="y", scale=1 / 256, zero=-128)
    graph.add("SOFTMAX", [x], y, options="SoftmaxOptions", Beta=2.5)
    graph.inputs, graph.outputs = [x], [y]
    found = evaluate(import_tflite_model(write_tflite(graph)), {"x": integers})["y"]
    powers = np.exp((integers + 3.0) * 0.05 * 2.5)
    wanted = np.rint(powers / powers.sum(1, keepdims=True) * 256 - 128).clip(-128, 127)
    assert np.abs(found - wanted).max() <= 1
    with refused(GraphError, "node 'y0': its beta is 0.0; it must be positive and finite"):
        computed("SOFTMAX", [data], [data], options="SoftmaxOptions", Beta=0.0)


def test_functions_have_the_tables_of_onnx_runtime() -> None:
    graph = WrittenGraph()
    x = graph.tensor(2, 5, dtype="int8", name="x", scale=0.03)
    y = graph.tensor(2, 5, dtype="int8", name="y", scale=1e-3)
    graph.add("LOGISTIC", [x], y)
    graph.inputs, graph.outputs = [x], [y]
    (node,) = import_tflite_model(write_tflite(graph)).nodes
    assert isinstance(node.operator, Function)
    assert len(node.operator.entries) == 256


def test_gelu_in_two_forms() -> None:
    data = floats(2, 50)
    root = np.sqrt(2 / np.pi)
    wanted = 0.5 * data * (1 + np.tanh(root * (data + 0.044715 * data**3)))
    check("GELU", [data], wanted.astype(np.float32), options="GeluOptions", Approximate=True)
    (exact,) = computed("GELU", [data], [data])
    assert 1e-5 < np.abs(exact - wanted).max() < 1e-2
    check("RELU_0_TO_1", [data], data.clip(0, 1))


# --- windows ----------------------------------------------------------------------------------------------


def direct(data: Array, weights: Array, bias: Array) -> Array:
    """Convolve with channels last and windows that lie inside."""
    kernel = weights.shape[:-2]
    counts = [size - k + 1 for size, k in zip(data.shape[1:-1], kernel, strict=True)]
    out = np.zeros((data.shape[0], *counts, weights.shape[-1]), np.float32)
    for tap in np.ndindex(*kernel):
        part = tuple(slice(t, t + count) for t, count in zip(tap, counts, strict=True))
        out += data[(slice(None), *part)] @ weights[tap]
    return out + bias


def test_varying_weights() -> None:
    """Weights may be an input. The host then computes the layer."""
    window = {"Padding": 1, "StrideH": 1, "StrideW": 1, "FusedActivationFunction": 0}
    data, weights, bias = floats(1, 6, 5, 2), floats(3, 3, 2, 2), floats(3)
    wanted = direct(data, weights.transpose(1, 2, 3, 0), bias)
    fields = window | {"DilationHFactor": 1, "DilationWFactor": 1}
    check("CONV_2D", [data, weights, bias], wanted, options="Conv2DOptions", **fields)
    deep = floats(1, 3, 2, 2)
    full = np.zeros((3, 2, 2, 2), np.float32)
    full[..., [0, 1], [0, 1]] = deep[0]
    wanted = direct(data, full, bias[:2])
    check(
        "DEPTHWISE_CONV_2D",
        [data, deep, bias[:2]],
        wanted,
        options="DepthwiseConv2DOptions",
        DepthMultiplier=1,
        **fields,
    )
    rows, matrix = floats(2, 4), floats(5, 4)
    check("FULLY_CONNECTED", [rows, matrix], rows @ matrix.T, options="FullyConnectedOptions")


def test_volumes() -> None:
    data, weights, bias = floats(1, 4, 5, 3, 2), floats(2, 3, 2, 2, 3), floats(3)
    fields = {f"Stride{axis}": 1 for axis in "DHW"} | {f"Dilation{axis}Factor": 1 for axis in "DHW"}
    options = {"constants": [weights, bias], "options": "Conv3DOptions", "Padding": 1, **fields}
    check("CONV_3D", [data], direct(data, weights, bias), **options)


def test_roots_of_mean_squares_and_local_responses() -> None:
    data = floats(1, 4, 4, 6)
    squares = data**2
    wanted = np.sqrt(sum(squares[:, a::2, b::2] for a in (0, 1) for b in (0, 1)) / 4)
    window = {"Padding": 1, "StrideH": 2, "StrideW": 2, "FilterHeight": 2, "FilterWidth": 2}
    check("L2_POOL_2D", [data], wanted, options="Pool2DOptions", **window)
    sums = np.stack([squares[..., max(0, c - 2) : c + 2].sum(-1) for c in range(6)], -1)
    fields = {"Radius": 2, "Bias": 1.5, "Alpha": 0.5, "Beta": 0.75}
    options = "LocalResponseNormalizationOptions"
    wanted = data * (1.5 + 0.5 * sums) ** np.float32(-0.75)
    check("LOCAL_RESPONSE_NORMALIZATION", [data], wanted.astype(np.float32), options=options, **fields)


# --- LSTM -------------------------------------------------------------------------------------------------


def sigmoid(values: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-values)))


@pytest.mark.parametrize("is_int8", [False, True])
@pytest.mark.parametrize("has_input_gate", [False, True])
@pytest.mark.parametrize("has_peepholes", [False, True])
def test_an_lstm(is_int8: bool, has_input_gate: bool, has_peepholes: bool) -> None:
    hidden, graph = 4, WrittenGraph()
    x = graph.tensor(2, 5, 3, name="x")
    values: dict[int, Array] = {-1: np.zeros(0)}

    def gate(*shape: int) -> int:
        if not is_int8 or len(shape) < 2:
            one = floats(*shape) * np.float32(0.5)
            place = graph.known(one)
            values[place] = one
            return place
        integers = bytes_of(*shape)
        graph.tensors.append(FilledTensor(shape=shape, dtype="int8", values=integers, scale=0.01))
        values[len(graph.tensors) - 1] = integers * 0.01
        return len(graph.tensors) - 1

    own, again, biases = (
        [gate(*shape) for _ in range(4)] for shape in ((hidden, 3), (hidden, hidden), (hidden,))
    )
    peepholes = [gate(hidden) if has_peepholes else -1 for _ in range(3)]
    if not has_input_gate:
        own[0] = again[0] = biases[0] = peepholes[0] = -1
    y = graph.tensor(2, 5, hidden, name="y")
    states = [graph.tensor(2, hidden, is_variable=True) for _ in range(2)]
    operands = [x, *own, *again, *peepholes, *biases, -1, -1, *states, -1, -1, -1, -1]
    name = "UNIDIRECTIONAL_SEQUENCE_LSTM"
    graph.add(name, operands, y, options="UnidirectionalSequenceLSTMOptions", FusedActivationFunction=4)
    graph.inputs, graph.outputs = [x], [y]
    data = floats(2, 5, 3)
    found = evaluate(import_tflite_model(write_tflite(graph)), {"x": data})["y"]
    h, c = np.zeros((2, hidden)), np.zeros((2, hidden))

    def total(n: int, step: int, peephole: int = -1) -> Array:
        added = 0 if peephole < 0 or not has_peepholes else values[peepholes[peephole]] * c
        return data[:, step] @ values[own[n]].T + h @ values[again[n]].T + values[biases[n]] + added

    for step in range(5):
        f = sigmoid(total(1, step, 1))
        i = sigmoid(total(0, step, 0)) if has_input_gate else 1 - f
        c = f * c + i * np.tanh(total(2, step))
        h = sigmoid(total(3, step, 2)) * np.tanh(c)
        np.testing.assert_allclose(found[:, step], h, atol=1e-5)
