"""TensorFlow Lite models as graphs: layouts, rules, and refused models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accel.base.errors import AccelError, GraphError
from accel.base.records import replace
from accel.formats.compare_with_runtime import compare, random_inputs
from accel.formats.tflite_file import FileOperator, FileTensor, TfliteFile, read_tflite_model
from accel.formats.tflite_import import import_tflite_file, import_tflite_model, load_tflite
from accel.graph.graph import Graph
from accel.graph.graph_evaluation import evaluate
from accel.graph.graph_tensor import Array
from tests.expect import refused

RNG = np.random.default_rng(0)
WORK = 10**6
"""Damaged models with at most this many values are also evaluated."""
WINDOW = {"activation": 0, "padding": 0, "strides": (1, 1)}


class Model:
    """A model in the form that the file reader returns."""

    def __init__(self) -> None:
        self.tensors: list[FileTensor] = []
        self.operators: list[FileOperator] = []

    def tensor(
        self,
        shape: Sequence[int],
        *,
        scale: Sequence[float] = (0.05,),
        zero: int = -3,
        dtype: str = "int8",
        values: Array | None = None,
        axis: int = 0,
    ) -> int:
        """Add a tensor and return its index."""
        made = FileTensor(
            name=f"t{len(self.tensors)}",
            shape=tuple(shape),
            open_axes=() if self.tensors else (0,),
            dtype=dtype if values is None else values.dtype.name,
            scale=tuple(scale),
            zero=(zero,) * len(scale),
            axis=axis,
            values=values,
        )
        self.tensors.append(made)
        return len(self.tensors) - 1

    def known(self, values: Array, *, scale: Sequence[float] = (0.02,), zero: int = 0, axis: int = 0) -> int:
        return self.tensor(values.shape, scale=scale, zero=zero, values=values, axis=axis)

    def add(self, kind: str, inputs: Sequence[int], output: int, **options: Any) -> int:
        self.operators.append(
            FileOperator(kind=kind, inputs=tuple(inputs), outputs=(output,), options=options)
        )
        return output

    def graph(self, *outputs: int, batch: int | None = None) -> Graph:
        file = TfliteFile(
            name="made",
            tensors=tuple(self.tensors),
            operators=tuple(self.operators),
            inputs=(0,),
            outputs=outputs,
        )
        return import_tflite_file(file, batch=batch)


def weights(*shape: int) -> Array:
    return RNG.integers(-127, 128, shape).astype(np.int8)


def computed(graph: Graph) -> tuple[Array, list[Array]]:
    """Return a random input and the outputs. Each operator is compared with ONNX Runtime."""
    tensor = graph.tensors[graph.inputs[0]]
    feeds = {tensor.name: RNG.integers(-128, 128, tensor.shape).astype(tensor.dtype)}
    compare(graph, feeds).raise_if_bad()
    values = evaluate(graph, feeds)
    return feeds[tensor.name], [values[name] for name in graph.outputs]


def padded(image: Array, kernel: Sequence[int], strides: Sequence[int]) -> Array:
    """Pad as SAME does, with channels last."""
    around = [(0, 0)]
    for size, k, s in zip(image.shape[1:3], kernel, strides, strict=True):
        need = max(0, (-(-size // s) - 1) * s + k - size)
        around.append((need // 2, need - need // 2))
    return np.pad(image, [*around, (0, 0)])


def quantized(numbers: Array, model: Model, place: int) -> Array:
    tensor = model.tensors[place]
    return (np.rint(numbers / tensor.scale[0]) + tensor.zero[0]).clip(-128, 127)


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("strides", [(1, 1), (2, 3)])
@pytest.mark.parametrize("activation", [0, 1, 3])
def test_convolutions(deep: bool, strides: tuple[int, int], activation: int) -> None:
    """Compare with a convolution of real numbers with channels last, within one step of the
    integers."""
    model = Model()
    x = model.tensor((1, 7, 8, 3))
    scales = [0.01, 0.02, 0.03, 0.015, 0.01, 0.02]
    kernel = weights(1, 3, 2, 6) if deep else weights(6, 3, 2, 3)
    w = model.known(kernel, scale=scales, axis=3 if deep else 0)
    b = model.known(RNG.integers(-900, 900, 6).astype(np.int32), scale=())
    out = [1, -(-7 // strides[0]), -(-8 // strides[1]), 6]
    y = model.tensor(out, scale=(0.2,), zero=-100)
    kind = "DEPTHWISE_CONV_2D" if deep else "CONV_2D"
    model.add(kind, [x, w, b], y, **(WINDOW | {"strides": strides, "activation": activation}))
    image, (found,) = computed(model.graph(y))
    numbers = padded((image.astype(float) + 3) * 0.05, (3, 2), strides)
    wanted = np.zeros(out)
    bias = model.tensors[b].values
    assert bias is not None
    for o in range(6):
        total = bias[o] * 0.05 * scales[o]
        for ky in range(3):
            for kx in range(2):
                under = numbers[:, ky : ky + strides[0] * (out[1] - 1) + 1 : strides[0]]
                under = under[:, :, kx : kx + strides[1] * (out[2] - 1) + 1 : strides[1]]
                tap = kernel[0, ky, kx, o] if deep else kernel[o, ky, kx]
                total = total + (under[..., o // 2] * tap if deep else under @ tap) * scales[o]
        wanted[..., o] = total
    low, high = {0: (None, None), 1: (0, None), 3: (0, 6)}[activation]
    bounded = wanted if low is None else wanted.clip(low, high)
    assert found.shape == tuple(out)
    assert np.abs(found - quantized(bounded, model, y)).max() <= 1


def test_layouts_change_at_the_edges_only() -> None:
    model = Model()
    x = model.tensor((1, 6, 6, 4))
    first = model.add("CONV_2D", [x, model.known(weights(4, 3, 3, 4))], model.tensor((1, 6, 6, 4)), **WINDOW)
    total = model.add("ADD", [first, first], model.tensor((1, 6, 6, 4), scale=(0.1,)), activation=1)
    options = WINDOW | {"strides": (2, 2), "kernel": (2, 2)}
    pool = model.add("MAX_POOL_2D", [total], model.tensor((1, 3, 3, 4), scale=(0.1,)), **options)
    mean = model.add("AVERAGE_POOL_2D", [pool], model.tensor((1, 2, 2, 4), scale=(0.1,)), **options)
    joined = model.tensor((1, 2, 2, 8), scale=(0.1,))
    model.add("CONCATENATION", [mean, mean], joined, axis=-1, activation=0)
    flat = model.add("RESHAPE", [joined], model.tensor((1, 32), scale=(0.1,)))
    scores = model.tensor((1, 5), scale=(0.3,))
    model.add("FULLY_CONNECTED", [flat, model.known(weights(5, 32)), -1], scores, activation=0, format=0)
    soft = model.add("SOFTMAX", [scores], model.tensor((1, 5), scale=(1 / 256,), zero=-128), beta=1.0)
    graph = model.graph(soft, joined)
    kinds = [node.operator.kind for node in graph.nodes]
    assert kinds.count("Transpose") == 2
    assert kinds[0] == "Transpose"
    assert graph.outputs == ("t" + str(soft), "t" + str(joined))
    assert graph.tensors[f"t{joined}"].shape == (1, 2, 2, 8)
    _, (shares, pictures) = computed(graph)
    np.testing.assert_array_equal(pictures[..., :4], pictures[..., 4:])
    assert 250 < (shares.astype(int) + 128).sum() < 262
    wide = model.graph(soft, joined, batch=3)
    assert [wide.tensors[name].shape for name in wide.outputs] == [(3, 5), (3, 2, 2, 8)]
    computed(wide)


def test_other_operators() -> None:
    model = Model()
    x = model.tensor((1, 4, 4, 2))
    pads = model.known(np.array([[0, 0], [1, 2], [0, 1], [0, 0]], np.int32), scale=())
    pad = model.add("PAD", [x, pads], model.tensor((1, 7, 5, 2)))
    relu = model.add("RELU6", [pad], model.tensor((1, 7, 5, 2), scale=(0.03,)))
    gate = model.add("LOGISTIC", [relu], model.tensor((1, 7, 5, 2), scale=(1 / 256,), zero=-128))
    product = model.add("MUL", [relu, gate], model.tensor((1, 7, 5, 2)), activation=0)
    axes = model.known(np.array([1, 2], np.int32), scale=())
    mean = model.add("MEAN", [product, axes], model.tensor((1, 2), scale=(0.02,)), keep=False)
    kept = model.add("MEAN", [product, axes], model.tensor((1, 1, 1, 2), scale=(0.02,)), keep=True)
    order = model.known(np.array([0, 3, 1, 2], np.int32), scale=())
    turned = model.add("TRANSPOSE", [product, order], model.tensor((1, 2, 7, 5)))
    again = model.add("QUANTIZE", [mean], model.tensor((1, 2), scale=(0.5,), zero=9))
    numbers = model.add("DEQUANTIZE", [again], model.tensor((1, 2), dtype="float32", scale=()))
    image, (padding, means, kept_means, back, halves) = computed(
        model.graph(pad, mean, kept, turned, numbers)
    )
    wanted = np.pad(image, [(0, 0), (1, 2), (0, 1), (0, 0)], constant_values=-3)
    np.testing.assert_array_equal(padding, wanted)
    np.testing.assert_array_equal(means, kept_means.reshape(1, 2))
    assert back.shape == (1, 2, 7, 5)
    assert halves.dtype == np.float32


@pytest.mark.parametrize(
    ("kind", "function"),
    [("SUB", np.subtract), ("DIV", np.divide), ("MAXIMUM", np.maximum), ("MINIMUM", np.minimum)],
)
@pytest.mark.parametrize("scale", [0.05, 0.11])
def test_operators_of_two_tensors(kind: str, function: Any, scale: float) -> None:
    """In integers where all scales are equal and values are compared, otherwise in float32."""
    model = Model()
    x = model.tensor((1, 4, 6, 3))
    other = model.known(RNG.integers(1, 100, (3,)).astype(np.int8), scale=(scale,), zero=-3)
    result = model.tensor((1, 4, 6, 3), scale=(scale,))
    model.add(kind, [x, other], result)
    image, (found,) = computed(model.graph(result))
    numbers = [
        (values.astype(np.float32) + np.float32(3)) * np.float32(one)
        for values, one in ((image, 0.05), (model.tensors[other].values, scale))
    ]
    np.testing.assert_array_equal(found, quantized(function(*numbers), model, result))


@pytest.mark.parametrize("axes", [[1], [1, 2], [-1], [0, 3]])
def test_maxima_along_axes(axes: list[int]) -> None:
    model = Model()
    x = model.tensor((2, 5, 7, 3))
    wanted = np.zeros((2, 5, 7, 3)).max(axis=tuple(axes)).shape
    known = model.known(np.array(axes, np.int32), scale=())
    result = model.add("REDUCE_MAX", [x, known], model.tensor(wanted))
    image, (found,) = computed(model.graph(result))
    np.testing.assert_array_equal(found, image.max(axis=tuple(axes)))


def test_float_operators() -> None:
    model = Model()
    x = model.tensor((2, 5, 6), dtype="float32", scale=())
    axes = model.known(np.array([1], np.int32), scale=())
    mean = model.add("MEAN", [x, axes], model.tensor((2, 1, 6), dtype="float32", scale=()), keep=True)
    matrix = model.known(RNG.normal(size=(2, 4, 6)).astype(np.float32), scale=())
    product = model.tensor((2, 1, 4), dtype="float32", scale=())
    model.add("BATCH_MATMUL", [mean, matrix], product, adj_left=False, adj_right=True)
    square = model.add("MUL", [product, product], model.tensor((2, 1, 4), dtype="float32", scale=()))
    root = model.add("RSQRT", [square], model.tensor((2, 1, 4), dtype="float32", scale=()))
    graph = model.graph(root)
    data = RNG.normal(size=(2, 5, 6)).astype(np.float32)
    found = evaluate(graph, {graph.inputs[0]: data})[graph.outputs[0]]
    values = model.tensors[matrix].values
    assert values is not None
    wanted = 1 / np.abs(data.mean(axis=1, keepdims=True) @ values.transpose(0, 2, 1))
    np.testing.assert_allclose(found, wanted, rtol=1e-4)
    compare(graph, random_inputs(graph)).raise_if_bad()


@pytest.mark.parametrize("kind", ["FULLY_CONNECTED", "CONV_2D", "DEPTHWISE_CONV_2D"])
def test_weights_of_dynamic_range_models(kind: str) -> None:
    """Data is float32, and weights are int8 with scales. The products are integers."""
    model = Model()
    is_matrix = kind == "FULLY_CONNECTED"
    x = model.tensor((4, 6) if is_matrix else (1, 5, 4, 6), dtype="float32", scale=())
    sizes = {"FULLY_CONNECTED": (5, 6), "CONV_2D": (5, 3, 3, 6), "DEPTHWISE_CONV_2D": (1, 3, 3, 6)}[kind]
    channels = 6 if kind == "DEPTHWISE_CONV_2D" else 5
    matrix = model.known(weights(*sizes), scale=[0.02] * channels, axis=3 if channels == 6 else 0)
    bias = model.known(RNG.normal(size=channels).astype(np.float32), scale=())
    result = model.tensor((4, 5) if is_matrix else (1, 5, 4, channels), dtype="float32", scale=())
    options = {"format": 0} if is_matrix else {"padding": 0, "strides": (1, 1), "dilations": (1, 1)}
    model.add(kind, [x, matrix, bias], result, activation=0, **options)
    graph = model.graph(result)
    data = RNG.normal(size=graph.tensors[graph.inputs[0]].shape).astype(np.float32) + 1
    found = evaluate(graph, {graph.inputs[0]: data})[graph.outputs[0]]
    model.tensors[matrix] = replace(
        model.tensors[matrix],
        dtype="float32",
        scale=(),
        values=(model.tensors[matrix].values.astype(np.float32) * np.float32(0.02)),
    )
    exact = model.graph(result)
    wanted = evaluate(exact, {exact.inputs[0]: data})[exact.outputs[0]]
    assert np.abs(found - wanted).max() < 0.3
    assert np.abs(found - wanted).max() > 0
    assert any(tensor.dtype == "int32" and tensor.quantization is None for tensor in graph.tensors.values())


def test_unsupported_models_are_refused() -> None:
    model = Model()
    x = model.tensor((2, 3))
    y = model.tensor((2, 3))
    model.add("CUSTOM 'odd'", [x], y)
    model.add("HASHTABLE", [x], y)
    message = (
        "the model has operators that cannot be imported: CUSTOM 'odd' of tensor 't1' is not known; "
        "HASHTABLE of tensor 't1' is not known"
    )
    with refused(GraphError, message):
        model.graph(y)


@pytest.mark.parametrize(
    ("kind", "inputs", "options", "message"),
    [
        ("ADD", [0], {"activation": 0}, "ADD has the inputs (0,); it needs 2"),
        ("ADD", [0, 2], {"activation": 0}, "tensor 't2' comes from nowhere"),
        ("ADD", [0, 0], {"activation": 4}, "its fused activation is 4; it must be one of [0, 1, 2, 3]"),
        ("SOFTMAX", [0], {"beta": -2.0}, "its beta is -2.0; it must be positive and finite"),
        (
            "FULLY_CONNECTED",
            [0, 0],
            {"activation": 0, "format": 1},
            "the format of its weights is 1; it must be 0",
        ),
        ("CONV_2D", [0, 3], dict(WINDOW), "its data is (2, 3) and its weights are (3,); both need four axes"),
    ],
)
def test_operators_that_do_not_fit(
    kind: str, inputs: list[int], options: dict[str, Any], message: str
) -> None:
    model = Model()
    model.tensor((2, 3))
    y = model.tensor((2, 3))
    model.tensor((2, 3))
    model.known(weights(3))
    model.add(kind, inputs, y, **options)
    with refused(GraphError, f"node 't1': {message}"):
        model.graph(y)


# --- files -----------------------------------------------------------------------------------------


def written(values: Array) -> bytes:
    """A file with one addition of its input and a constant."""
    flatbuffers = pytest.importorskip("flatbuffers")
    lite: Any = pytest.importorskip("tflite")
    out = flatbuffers.Builder(1024)

    def numbers(start: Any, prepend: Any, items: Sequence[Any]) -> Any:
        start(out, len(items))
        for item in reversed(items):
            prepend(item)
        return out.EndVector()

    def tensor(name: str, buffer: int) -> Any:
        label = out.CreateString(name)
        shape = numbers(lite.TensorStartShapeVector, out.PrependInt32, values.shape)
        signature = numbers(lite.TensorStartShapeSignatureVector, out.PrependInt32, (-1, *values.shape[1:]))
        scale = numbers(lite.QuantizationParametersStartScaleVector, out.PrependFloat32, [0.5])
        zero = numbers(lite.QuantizationParametersStartZeroPointVector, out.PrependInt64, [7])
        lite.QuantizationParametersStart(out)
        lite.QuantizationParametersAddScale(out, scale)
        lite.QuantizationParametersAddZeroPoint(out, zero)
        quantization = lite.QuantizationParametersEnd(out)
        lite.TensorStart(out)
        lite.TensorAddName(out, label)
        lite.TensorAddShape(out, shape)
        lite.TensorAddShapeSignature(out, signature)
        lite.TensorAddType(out, lite.TensorType.INT8)
        lite.TensorAddBuffer(out, buffer)
        lite.TensorAddQuantization(out, quantization)
        return lite.TensorEnd(out)

    def buffer(content: bytes) -> Any:
        data = out.CreateByteVector(content) if content else None
        lite.BufferStart(out)
        if data is not None:
            lite.BufferAddData(out, data)
        return lite.BufferEnd(out)

    lite.AddOptionsStart(out)
    lite.AddOptionsAddFusedActivationFunction(out, 1)
    options = lite.AddOptionsEnd(out)
    takes = numbers(lite.OperatorStartInputsVector, out.PrependInt32, [0, 1])
    makes = numbers(lite.OperatorStartOutputsVector, out.PrependInt32, [2])
    lite.OperatorStart(out)
    lite.OperatorAddOpcodeIndex(out, 0)
    lite.OperatorAddInputs(out, takes)
    lite.OperatorAddOutputs(out, makes)
    lite.OperatorAddBuiltinOptionsType(out, lite.BuiltinOptions.AddOptions)
    lite.OperatorAddBuiltinOptions(out, options)
    operator = lite.OperatorEnd(out)
    tensors = [tensor(name, place) for name, place in (("a", 0), ("b", 1), ("a", 0))]
    tensors = numbers(lite.SubGraphStartTensorsVector, out.PrependUOffsetTRelative, tensors)
    operators = numbers(lite.SubGraphStartOperatorsVector, out.PrependUOffsetTRelative, [operator])
    inputs = numbers(lite.SubGraphStartInputsVector, out.PrependInt32, [0])
    outputs = numbers(lite.SubGraphStartOutputsVector, out.PrependInt32, [2])
    lite.SubGraphStart(out)
    lite.SubGraphAddTensors(out, tensors)
    lite.SubGraphAddInputs(out, inputs)
    lite.SubGraphAddOutputs(out, outputs)
    lite.SubGraphAddOperators(out, operators)
    graph = lite.SubGraphEnd(out)
    lite.OperatorCodeStart(out)
    lite.OperatorCodeAddDeprecatedBuiltinCode(out, lite.BuiltinOperator.ADD)
    code = lite.OperatorCodeEnd(out)
    buffers = [buffer(b""), buffer(values.tobytes())]
    buffers = numbers(lite.ModelStartBuffersVector, out.PrependUOffsetTRelative, buffers)
    codes = numbers(lite.ModelStartOperatorCodesVector, out.PrependUOffsetTRelative, [code])
    graphs = numbers(lite.ModelStartSubgraphsVector, out.PrependUOffsetTRelative, [graph])
    lite.ModelStart(out)
    lite.ModelAddVersion(out, 3)
    lite.ModelAddOperatorCodes(out, codes)
    lite.ModelAddSubgraphs(out, graphs)
    lite.ModelAddBuffers(out, buffers)
    out.Finish(lite.ModelEnd(out), b"TFL3")
    return bytes(out.Output())


def test_a_file(tmp_path: Path) -> None:
    values = weights(1, 5)
    path = tmp_path / "model.tflite"
    path.write_bytes(written(values))
    graph = load_tflite(path)
    assert (graph.inputs, graph.outputs) == (("a",), ("a:2",))
    data, (found,) = computed(graph)
    wanted = data.astype(int) + values - 7
    np.testing.assert_array_equal(found, wanted.clip(7, 127))
    assert load_tflite(path, batch=4).tensors["a:2"].shape == (4, 5)
    file = read_tflite_model(path.read_bytes())
    assert [one.open_axes for one in file.tensors] == [(0,)] * 3
    assert file.operators[0].options == {"activation": 1}


def test_files_that_are_no_models(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    with refused(GraphError, f"{str(path)!r} cannot be read: No such file or directory"):
        load_tflite(path)
    path.write_bytes(b"\x08\0\0\0TFL2" * 9)
    with refused(
        GraphError, f"{str(path)!r}: this is not a TensorFlow Lite model; its identifier is not TFL3"
    ):
        load_tflite(path)
    path.write_bytes(b"\xff\xff\xff\0TFL3" * 9)
    with refused(GraphError, f"{str(path)!r}: this is not a TensorFlow Lite model; it is damaged"):
        load_tflite(path)


def test_files_that_are_damaged() -> None:
    rng = np.random.default_rng(0)
    content = written(weights(1, 5))
    found = []
    for _ in range(800):
        changed = bytearray(content)
        for _ in range(int(rng.integers(1, 3))):
            place = int(rng.integers(8, len(changed)))
            changed[place] = int(rng.choice([0, 1, 255, changed[place] ^ (1 << int(rng.integers(8)))]))
        try:
            graph = import_tflite_model(bytes(changed))
            if sum(one.size for one in graph.tensors.values()) < WORK:
                evaluate(graph, random_inputs(graph))
            found.append("")
        except AccelError as error:
            found.append(str(error))
    assert all(one.isprintable() for one in found)
    assert len(set(found)) > 20


# --- moves, and operators of ONNX Runtime -------------------------------------------------------------


def moved(
    kind: str, shape: Sequence[int], result: Sequence[int], *more: Array, **options: Any
) -> tuple[Array, Array]:
    """Return a random input and the result of an operator on integers with further constant inputs."""
    model = Model()
    x = model.tensor(shape)
    known = [model.known(np.asarray(one, np.int32), scale=()) for one in more]
    output = model.add(kind, [x, *known], model.tensor(result), **options)
    image, (found,) = computed(model.graph(output))
    return image, found


SLICE = {"begin": 0, "end": 0, "ellipsis": 0, "new": 0, "shrink": 0}


def test_slices() -> None:
    image, found = moved(
        "STRIDED_SLICE", (1, 5, 6, 3), (1, 2, 6, 3), [0, 1, 0, 0], [1, 5, 6, 3], [1, 2, 1, 1], **SLICE
    )
    np.testing.assert_array_equal(found, image[:, 1:5:2])
    masks = SLICE | {"begin": 0b0101, "end": 0b0101, "shrink": 0b0010}
    image, found = moved(
        "STRIDED_SLICE", (1, 5, 6, 3), (1, 6, 2), [0, -1, 0, 1], [0, 0, 0, 3], [1, 1, 1, 1], **masks
    )
    np.testing.assert_array_equal(found, image[:, -1, :, 1:3])
    image, found = moved("SLICE", (1, 5, 6, 3), (1, 4, 2, 3), [0, 1, 2, 0], [1, -1, 2, 3])
    np.testing.assert_array_equal(found, image[:, 1:, 2:4])


def test_blocks_of_pixels() -> None:
    image, found = moved("DEPTH_TO_SPACE", (1, 3, 4, 8), (1, 6, 8, 2), block=2)
    wanted = image.reshape(1, 3, 4, 2, 2, 2).transpose(0, 1, 3, 2, 4, 5).reshape(1, 6, 8, 2)
    np.testing.assert_array_equal(found, wanted)
    image, found = moved("SPACE_TO_DEPTH", (1, 6, 8, 2), (1, 3, 4, 8), block=2)
    wanted = image.reshape(1, 3, 2, 4, 2, 2).transpose(0, 1, 3, 2, 4, 5).reshape(1, 3, 4, 8)
    np.testing.assert_array_equal(found, wanted)


def test_tensors_are_taken_apart_and_joined() -> None:
    model = Model()
    x = model.tensor((1, 4, 6, 3))
    axis = model.known(np.array([2], np.int32), scale=())
    halves = [model.tensor((1, 4, 3, 3)) for _ in range(2)]
    rows = [model.tensor((1, 6, 3)) for _ in range(4)]
    operators = [("SPLIT", (axis, x), halves, {}), ("UNPACK", (x,), rows, {"axis": 1})]
    for kind, inputs, outputs, options in operators:
        model.operators.append(
            FileOperator(kind=kind, inputs=inputs, outputs=tuple(outputs), options=options)
        )
    packed = model.add("PACK", [rows[3], rows[0]], model.tensor((1, 6, 2, 3)), axis=2)
    index = model.known(np.array([2, 0], np.int32), scale=())
    taken = model.add("GATHER", [x, index], model.tensor((1, 2, 6, 3)), axis=1, batch=0)
    image, (left, right, last, joined, picked) = computed(model.graph(*halves, rows[3], packed, taken))
    np.testing.assert_array_equal(np.concatenate([left, right], axis=2), image)
    np.testing.assert_array_equal(last, image[:, 3])
    np.testing.assert_array_equal(joined, np.stack([image[:, 3], image[:, 0]], axis=2))
    np.testing.assert_array_equal(picked, image[:, [2, 0]])


@pytest.mark.parametrize(("strides", "padding"), [((2, 2), 0), ((2, 3), 1), ((1, 1), 0)])
def test_transposed_convolutions(strides: tuple[int, int], padding: int) -> None:
    model = Model()
    x = model.tensor((1, 4, 5, 6))
    kernel = (3, 2)
    sizes = [
        n * s if padding == 0 else (n - 1) * s + k for n, s, k in zip((4, 5), strides, kernel, strict=True)
    ]
    matrix = model.known(weights(7, *kernel, 6), scale=RNG.uniform(0.01, 0.02, 7).tolist(), axis=0)
    shape = model.known(np.array([1, *sizes, 7], np.int32), scale=())
    result = model.tensor((1, *sizes, 7), scale=(0.5,), zero=4)
    model.add("TRANSPOSE_CONV", [shape, matrix, x], result, strides=strides, padding=padding, activation=0)
    graph = model.graph(result)
    image, (found,) = computed(graph)
    whole = np.zeros(
        (1, *(max(n, (m - 1) * s + k) for n, m, s, k in zip(sizes, (4, 5), strides, kernel, strict=True)), 7)
    )
    values = model.tensors[matrix].values
    assert values is not None
    real = (image.astype(float) + 3) * 0.05
    for y in range(kernel[0]):
        for x_tap in range(kernel[1]):
            part = real @ (values[:, y, x_tap] * np.array(model.tensors[matrix].scale)[:, None]).T
            whole[
                :, y : y + 3 * strides[0] + 1 : strides[0], x_tap : x_tap + 4 * strides[1] + 1 : strides[1]
            ] += part
    cut = [(w - n) // 2 for w, n in zip(whole.shape[1:3], sizes, strict=True)]
    kept = whole[:, cut[0] : cut[0] + sizes[0], cut[1] : cut[1] + sizes[1]]
    assert np.abs(found - quantized(kept, model, result)).max() <= 1


def test_resized_pictures() -> None:
    options = {"corners": False, "half": False}
    image, found = moved("RESIZE_NEAREST_NEIGHBOR", (1, 3, 4, 2), (1, 6, 8, 2), [6, 8], **options)
    np.testing.assert_array_equal(found, image.repeat(2, axis=1).repeat(2, axis=2))
    _, found = moved("RESIZE_BILINEAR", (1, 3, 4, 2), (1, 5, 7, 2), [5, 7], corners=False, half=True)
    assert found.shape == (1, 5, 7, 2)


@pytest.mark.parametrize("kind", ["PRELU", "SQUARED_DIFFERENCE", "POW"])
def test_operators_of_onnx_runtime(kind: str) -> None:
    model = Model()
    x = model.tensor((1, 4, 4, 3))
    other = model.known(RNG.integers(1, 5, (1, 1, 3)).astype(np.int8), scale=(0.5,))
    result = model.add(kind, [x, other], model.tensor((1, 4, 4, 3), scale=(0.1,)))
    image, (found,) = computed(model.graph(result))
    numbers = (image.astype(np.float32) + 3) * np.float32(0.05)
    values = model.tensors[other].values
    assert values is not None
    second = values.astype(np.float32) * np.float32(0.5)
    with np.errstate(invalid="ignore"):
        wanted = {
            "PRELU": np.where(numbers < 0, numbers * second, numbers),
            "SQUARED_DIFFERENCE": (numbers - second) ** 2,
            "POW": np.power(numbers, second),
        }[kind]
    finite = np.isfinite(wanted)
    assert np.abs(found - quantized(np.nan_to_num(wanted), model, result))[finite].max() <= 1


def test_an_lstm_of_float32() -> None:
    model = Model()
    x = model.tensor((2, 5, 3), dtype="float32", scale=())
    hidden = 4

    def gate(*shape: int) -> int:
        return model.known((RNG.normal(size=shape) * 0.5).astype(np.float32), scale=())

    own, again = [gate(hidden, 3) for _ in range(4)], [gate(hidden, hidden) for _ in range(4)]
    biases = [gate(hidden) for _ in range(4)]
    inputs = [x, *own, *again, -1, -1, -1, *biases, -1, -1, -1, -1, -1, -1, -1, -1]
    result = model.tensor((2, 5, hidden), dtype="float32", scale=())
    options = {"lstm": 4, "cell": 0.0, "projection": 0.0, "time": False}
    model.add("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, result, **options)
    graph = model.graph(result)
    data = RNG.normal(size=(2, 5, 3)).astype(np.float32)
    found = evaluate(graph, {graph.inputs[0]: data})[graph.outputs[0]]
    h, c = np.zeros((2, hidden)), np.zeros((2, hidden))

    def value(place: int) -> Array:
        values = model.tensors[place].values
        assert values is not None
        return values

    def sigmoid(a: Array) -> Array:
        return np.asarray(1 / (1 + np.exp(-a)))

    for step in range(5):
        i, f, g, o = (
            data[:, step] @ value(a).T + h @ value(b).T + value(d)
            for a, b, d in zip(own, again, biases, strict=True)
        )
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        np.testing.assert_allclose(found[:, step], h, atol=1e-5)


def test_weights_in_half_precision() -> None:
    model = Model()
    x = model.tensor((2, 6), dtype="float32", scale=())
    half = model.known(RNG.normal(size=(5, 6)).astype(np.float16), scale=())
    full = model.add("DEQUANTIZE", [half], model.tensor((5, 6), dtype="float32", scale=()))
    result = model.tensor((2, 5), dtype="float32", scale=())
    model.add("FULLY_CONNECTED", [x, full], result, format=0, activation=0)
    graph = model.graph(result)
    data = RNG.normal(size=(2, 6)).astype(np.float32)
    found = evaluate(graph, {graph.inputs[0]: data})[graph.outputs[0]]
    values = model.tensors[half].values
    assert values is not None
    np.testing.assert_allclose(found, data @ values.astype(np.float32).T, rtol=1e-5)
