"""Networks with branches, in float with random weights, for searches over rewritten graphs."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from end_to_end import Builder, resnet18
from onnx import TensorProto, helper

_FIRE = ((16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256))
"""Squeezed and expanded channels of SqueezeNet 1.1."""
_RESNET_50 = ((3, 64), (4, 128), (6, 256), (3, 512))
"""Blocks and bottleneck channels of each stage."""


def _relu(net: Builder, data: str, shape: tuple[int, int], kernel: int, stride: int = 1) -> str:
    return net.add("Relu", [net.conv(data, shape, kernel, stride)])


def squeezenet(size: int = 224, seed: int = 0) -> Any:
    """Return SqueezeNet 1.1: each module expands with 1x1 and 3x3 kernels, and concatenates."""
    net = Builder(seed)
    pool = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    data, channels = net.add("MaxPool", [_relu(net, "picture", (3, 64), 3, 2)], **pool), 64
    for number, (squeezed, expanded) in enumerate(_FIRE):
        inner = _relu(net, data, (channels, squeezed), 1)
        branches = [_relu(net, inner, (squeezed, expanded), kernel) for kernel in (1, 3)]
        data, channels = net.add("Concat", branches, axis=1), 2 * expanded
        if number in {1, 3}:
            data = net.add("MaxPool", [data], **pool)
    net.classes(data, channels)
    return net.model("squeezenet", size)


def inception_v3(size: int = 35, seed: int = 0) -> Any:
    """Return the first three blocks of Inception-v3, which have 1x1, 5x5, double 3x3 and pooled branches."""
    net = Builder(seed)
    data, channels = _relu(net, "picture", (3, 192), 1), 192
    for pooled in (32, 64, 64):
        five = _relu(net, _relu(net, data, (channels, 48), 1), (48, 64), 5)
        three = _relu(net, data, (channels, 64), 1)
        for shape in ((64, 96), (96, 96)):
            three = _relu(net, three, shape, 3)
        window = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}
        average = net.add("AveragePool", [data], **window)
        branches = [
            _relu(net, data, (channels, 64), 1),
            five,
            three,
            _relu(net, average, (channels, pooled), 1),
        ]
        data, channels = net.add("Concat", branches, axis=1), 64 + 64 + 96 + pooled
    net.classes(data, channels)
    return net.model("inception_v3", size)


def resnet50(size: int = 224, seed: int = 0) -> Any:
    """Return ResNet-50 with strides in the 1x1 convolutions, as published: a shortcut has the same stride."""
    net = Builder(seed)
    data = _relu(net, "picture", (3, 64), 7, 2)
    data = net.add("MaxPool", [data], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for stage, (blocks, narrow) in enumerate(_RESNET_50):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            inner = _relu(net, data, (channels, narrow), 1, stride)
            inner = net.conv(_relu(net, inner, (narrow, narrow), 3), (narrow, 4 * narrow), 1, gain=1)
            if not block:
                data = net.conv(data, (channels, 4 * narrow), 1, stride, gain=1)
            data, channels = net.add("Relu", [net.add("Add", [inner, data])]), 4 * narrow
    net.classes(data, channels)
    return net.model("resnet50", size)


def densenet(size: int = 28, seed: int = 0) -> Any:
    """Return a block of DenseNet-121 with 6 layers, without batch normalization after each Concat."""
    net = Builder(seed)
    features = [_relu(net, "picture", (3, 64), 3)]
    for layer in range(6):
        data = net.add("Concat", features, axis=1) if layer else features[0]
        features.append(_relu(net, _relu(net, data, (64 + 32 * layer, 128), 1), (128, 32), 3))
    net.classes(net.add("Concat", features, axis=1), 64 + 32 * 6)
    return net.model("densenet", size)


def _model(net: Builder, name: str, shape: Sequence[int], outputs: Sequence[str]) -> Any:
    """Return a network with the input ``data``."""
    model = net.model(name, 1)
    del model.graph.input[:], model.graph.output[:]
    model.graph.input.append(helper.make_tensor_value_info("data", TensorProto.FLOAT, list(shape)))
    model.graph.output.extend(helper.make_tensor_value_info(one, TensorProto.FLOAT, None) for one in outputs)
    return model


def _matrix(net: Builder, rng: np.random.Generator, rows: int, columns: int) -> str:
    values = rng.normal(0, rows**-0.5, (rows, columns)).astype(np.float32)
    return net.constant(f"matrix_{rng.integers(1 << 30)}", values)


def lstm(steps: int = 8, width: int = 64, seed: int = 0) -> Any:
    """Return an LSTM unrolled over its steps. Each gate has a product of the input and one of the state."""
    net, rng = Builder(seed), np.random.default_rng(seed)
    gates = [(_matrix(net, rng, width, width), _matrix(net, rng, width, width)) for _ in range(4)]
    axes = net.constant("axes", np.array([0], np.int64))
    state = cell = ""
    for step in range(steps):
        ends = [net.constant(f"{side}_{step}", np.array([step + n], np.int64)) for n, side in enumerate("ab")]
        x = net.add("Slice", ["data", *ends, axes])
        values = []
        for number, (weights, recurrent) in enumerate(gates):
            total = net.add("MatMul", [x, weights])
            if state:
                total = net.add("Add", [total, net.add("MatMul", [state, recurrent])])
            values.append(net.add("Tanh" if number == 2 else "Sigmoid", [total]))
        update, forget, new, output = values
        change = net.add("Mul", [update, new])
        cell = net.add("Add", [net.add("Mul", [forget, cell]), change]) if cell else change
        state = net.add("Mul", [output, net.add("Tanh", [cell])])
    return _model(net, "lstm", (steps, width), ["scores"])


def attention(tokens: int = 64, width: int = 128, seed: int = 0) -> Any:
    """Return the products Q, K and V of one attention layer, and the product of Q and K."""
    net, rng = Builder(seed), np.random.default_rng(seed)
    query, key, value = (net.add("MatMul", ["data", _matrix(net, rng, width, width)]) for _ in range(3))
    scores = net.add("MatMul", [query, net.add("Transpose", [key], perm=[0, 2, 1])])
    net.add("MatMul", [scores, value])
    return _model(net, "attention", (1, tokens, width), ["scores"])


NETWORKS = {
    "squeezenet": squeezenet,
    "inception_v3": inception_v3,
    "resnet18": resnet18,
    "resnet50": resnet50,
    "densenet": densenet,
    "lstm": lstm,
    "attention": attention,
}
