"""MobileNetV3-Small and DenseNet-121 in float with random weights, as torchvision builds them.

Batch normalization is part of the convolutions, except after a Concat of DenseNet.
"""

from typing import Any

import numpy as np
from end_to_end import CHANNEL_SPREAD, Builder

_MOBILENET_V3_SMALL = (
    # kernel, expanded channels, channels, squeeze-and-excite, hard swish, stride
    (3, 16, 16, True, False, 2),
    (3, 72, 24, False, False, 2),
    (3, 88, 24, False, False, 1),
    (5, 96, 40, True, True, 2),
    (5, 240, 40, True, True, 1),
    (5, 240, 40, True, True, 1),
    (5, 120, 48, True, True, 1),
    (5, 144, 48, True, True, 1),
    (5, 288, 96, True, True, 2),
    (5, 576, 96, True, True, 1),
    (5, 576, 96, True, True, 1),
)
_DENSENET_121 = (6, 12, 24, 16)
"""Layers of each block."""
_GROWTH = 32
_BOTTLENECK = 4
"""Channels of a bottleneck, divided by the growth."""


def _gemm(net: Builder, data: str, channels: int, classes: int) -> str:
    number = len(data), classes
    rng = np.random.default_rng(number)
    weights = rng.normal(0, channels**-0.5, (classes, channels)).astype(np.float32)
    bias = rng.normal(0, 0.1, classes).astype(np.float32)
    names = [net.constant(f"{data}/weight", weights), net.constant(f"{data}/bias", bias)]
    return net.add("Gemm", [data, *names], transB=1)


def _squeeze_and_excite(net: Builder, data: str, channels: int) -> str:
    squeezed = max(8, (channels // 4 + 4) // 8 * 8)
    factor = net.add("GlobalAveragePool", [data])
    factor = net.add("Relu", [net.conv(factor, (channels, squeezed), 1)])
    factor = net.conv(factor, (squeezed, channels), 1, gain=1)
    return net.add("Mul", [data, net.add("HardSigmoid", [factor], alpha=1 / 6, beta=0.5)])


def mobilenet_v3_small(size: int = 224, seed: int = 0) -> Any:
    """Return MobileNetV3-Small, for pictures of ``size`` pixels squared."""
    net = Builder(seed)
    data, channels = net.add("HardSwish", [net.conv("picture", (3, 16), 3, 2)]), 16
    for kernel, wide, count, has_factor, is_swish, stride in _MOBILENET_V3_SMALL:
        function = "HardSwish" if is_swish else "Relu"
        inner = data
        if wide != channels:
            inner = net.add(function, [net.conv(inner, (channels, wide), 1)])
        inner = net.add(function, [net.conv(inner, (wide, wide), kernel, stride, group=wide)])
        if has_factor:
            inner = _squeeze_and_excite(net, inner, wide)
        inner = net.conv(inner, (wide, count), 1, gain=1)
        data = net.add("Add", [data, inner]) if (stride, channels) == (1, count) else inner
        channels = count
    data = net.add("HardSwish", [net.conv(data, (channels, 576), 1)])
    data = net.add("Flatten", [net.add("GlobalAveragePool", [data])])
    data = net.add("HardSwish", [_gemm(net, data, 576, 1024)])
    _gemm(net, data, 1024, 1000)
    return net.model("mobilenet_v3_small", size)


def _normalized(net: Builder, data: str, channels: int) -> str:
    """Add a batch normalization of random parameters, and a Relu."""
    rng = np.random.default_rng((len(data), channels))
    parameters = (
        ("scale", np.exp(rng.normal(0, CHANNEL_SPREAD, channels))),
        ("bias", rng.normal(0, 0.3, channels)),
        ("mean", rng.normal(0, 0.3, channels)),
        ("variance", rng.uniform(0.5, 2, channels)),
    )
    names = [net.constant(f"{data}/{name}", values.astype(np.float32)) for name, values in parameters]
    return net.add("Relu", [net.add("BatchNormalization", [data, *names])])


def densenet_121(size: int = 224, seed: int = 0) -> Any:
    """Return DenseNet-121, for pictures of ``size`` pixels squared."""
    net = Builder(seed)
    data, channels = net.add("Relu", [net.conv("picture", (3, 64), 7, 2)]), 64
    data = net.add("MaxPool", [data], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for block, layers in enumerate(_DENSENET_121):
        features = [data]
        for _ in range(layers):
            inner = net.add("Concat", features, axis=1) if len(features) > 1 else data
            inner = net.conv(_normalized(net, inner, channels), (channels, _BOTTLENECK * _GROWTH), 1)
            inner = net.conv(net.add("Relu", [inner]), (_BOTTLENECK * _GROWTH, _GROWTH), 3, gain=1)
            features.append(inner)
            channels += _GROWTH
        data = net.add("Concat", features, axis=1)
        if block + 1 < len(_DENSENET_121):
            data = net.conv(_normalized(net, data, channels), (channels, channels // 2), 1, gain=1)
            data = net.add("AveragePool", [data], kernel_shape=[2, 2], strides=[2, 2])
            channels //= 2
    net.classes(_normalized(net, data, channels), channels)
    return net.model("densenet_121", size)


STRUCTURES = {"mobilenet_v3_small": mobilenet_v3_small, "densenet_121": densenet_121}
