"""Small float networks of known architectures, as input for ONNX Runtime's quantizer.

Each keeps the characteristics of one architecture: its blocks, their connections, and the nodes that
exporters write for them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.formats.float_network import FloatNetwork

Architecture = Callable[[FloatNetwork], str | list[str]]
ARCHITECTURES: dict[str, Architecture] = {}
"""Functions that add an architecture's layers and return its outputs."""


def build(name: str, opset: int, seed: int = 0) -> FloatNetwork:
    """Build an architecture with random weights."""
    network = FloatNetwork(seed, opset)
    outputs = ARCHITECTURES[name](network)
    network.outputs = [outputs] if isinstance(outputs, str) else outputs
    return network


def _architecture(layers: Architecture) -> Architecture:
    ARCHITECTURES[layers.__name__] = layers
    return layers


# --- pictures: chains ------------------------------------------------------------------------------


@_architecture
def lenet(net: FloatNetwork) -> str:
    """Both kinds of pooling, Gemms with and without transposed weights, a Softmax."""
    x = net.conv_relu(net.input(1, 1, 20, 20), 1, 6, 5)
    x = net.pool("AveragePool", x, 2, 2)
    x = net.conv_relu(x, 6, 16, 5, pads=0)
    x = net.add("Flatten", net.pool("MaxPool", x, 2, 2))
    x = net.relu(net.gemm(x, 16 * 9, 40))
    x = net.relu(net.gemm(x, 40, 20, transposed=False))
    return net.softmax(net.gemm(x, 20, 10))


@_architecture
def lenet_tanh(net: FloatNetwork) -> str:
    """The original LeNet: Tanh instead of Relu, average pooling that counts the padding."""
    x = net.add("Tanh", net.conv(net.input(1, 1, 16, 16), 1, 6, 3))
    x = net.pool("AveragePool", x, 2, 2, pads=[1] * 4, count_include_pad=1)
    x = net.add("Sigmoid", net.conv(x, 6, 8, 3))
    return net.gemm(net.reshape(x, 1, -1), 8 * 81, 10)


@_architecture
def vgg(net: FloatNetwork) -> str:
    """Pairs of convolutions, a large dense layer, a Dropout."""
    x = net.input(1, 3, 16, 16)
    for inner, outer in ((3, 16), (16, 32)):
        x = net.conv_relu(net.conv_relu(x, inner, outer, 3), outer, outer, 3)
        x = net.pool("MaxPool", x, 2, 2)
    x = net.add("Dropout", net.relu(net.gemm(net.add("Flatten", x), 512, 64)))
    return net.gemm(x, 64, 10)


@_architecture
def mobilenet_v1(net: FloatNetwork) -> str:
    """Alternating depthwise and pointwise convolutions with ReLU6, and a 1x1 convolution as
    classifier."""
    x = net.conv_relu6(net.input(1, 3, 16, 16), 3, 8, 3, 2)
    for inner, outer, stride in ((8, 16, 1), (16, 24, 2)):
        x = net.conv_relu6(x, inner, inner, 3, stride, group=inner)
        x = net.conv_relu6(x, inner, outer, 1)
    x = net.conv(net.mean(x, [2, 3]), 24, 10, 1)
    return net.softmax(net.squeeze(x, [2, 3]))


@_architecture
def from_tensorflow(net: FloatNetwork) -> str:
    """Nodes that converters from TensorFlow write: channels last at the border, a separate
    Pad, SAME_UPPER."""
    x = net.transpose(net.input(1, 12, 12, 3), 0, 3, 1, 2)
    x = net.conv_relu6(net.pad(x, 0, 0, 0, 0, 0, 0, 1, 1), 3, 16, 3, 2, pads=0)
    x = net.conv_relu6(x, 16, 16, 3, 2, group=16, auto_pad="SAME_UPPER")
    x = net.transpose(net.conv(x, 16, 16, 1), 0, 2, 3, 1)
    return net.gemm(net.add("Flatten", x), 144, 5, transposed=False)


@_architecture
def normalized(net: FloatNetwork) -> str:
    """An input that the network itself normalizes, and a global maximum."""
    x = net.add("Sub", net.input(1, 3, 10, 10), net.floats([0.4, 0.5, 0.6], 1, 3, 1, 1))
    x = net.add("Div", x, net.floats([0.2, 0.25, 0.3], 1, 3, 1, 1))
    x = net.add("GlobalMaxPool", net.conv_relu(x, 3, 8, 3))
    return net.gemm(net.squeeze(x, [2, 3]), 8, 3)


@_architecture
def dynamic_batch(net: FloatNetwork) -> str:
    """A batch of any size, and a Reshape to a computed shape, as PyTorch's ``view`` exports it."""
    x = net.conv_relu(net.input("N", 3, 8, 8), 3, 16, 3, 2)
    size = net.add("Gather", net.add("Shape", x), net.constant(np.int64(0)), axis=0)
    shape = net.add("Concat", net.squeeze(size, [0], "Unsqueeze"), net.integers(-1), axis=0)
    return net.gemm(net.add("Reshape", x, shape), 256, 5)


@_architecture
def activations(net: FloatNetwork) -> str:
    x = net.add("LeakyRelu", net.conv(net.input(1, 3, 10, 10), 3, 16, 3), alpha=0.1)
    x = net.add("Elu", net.conv(x, 16, 16, 3))
    x = net.add("PRelu", net.conv(x, 16, 16, 3), net.floats([0.2] * 16, 16, 1, 1))
    x = net.clip(net.conv(x, 16, 16, 1), -1, 1)
    x = net.add("Softplus", net.conv(x, 16, 16, 1))
    return net.add("HardSigmoid", net.conv(x, 16, 4, 1))


@_architecture
def depthwise_only(net: FloatNetwork) -> str:
    """Depthwise convolutions with large and uneven windows, and with two output channels per
    input channel."""
    x = net.conv_relu(net.input(1, 20, 9, 9), 20, 20, 5, 2, group=20, pads=[2, 1, 1, 2])
    return net.conv(net.conv_relu(x, 20, 40, 3, group=20), 40, 4, 1)


@_architecture
def one_channel(net: FloatNetwork) -> str:
    return net.conv(net.conv_relu(net.input(1, 1, 6, 9), 1, 1, 3), 1, 1, 1)


@_architecture
def odd_sizes(net: FloatNetwork) -> str:
    """No size is a multiple of another. The Gemm has alpha and beta."""
    x = net.conv_relu(net.input(3, 5, 7, 11), 5, 17, 3, pads=[0, 1, 2, 0])
    x = net.conv_relu(x, 17, 33, 1, 3, pads=0)
    return net.gemm(net.add("Flatten", x), 33 * 12, 9, alpha=0.5, beta=2.0)


@_architecture
def scaled(net: FloatNetwork) -> str:
    """Mul and Add with a constant per channel, which an unfolded BatchNormalization leaves."""
    x = net.conv(net.input(1, 8, 8, 8), 8, 16, 3)
    x = net.relu(net.add("Add", net.add("Mul", x, net.scales(1, 16, 1, 1)), net.scales(1, 16, 1, 1)))
    x = net.add("Add", net.conv(x, 16, 16, 1), net.floats(1))
    return net.conv(net.relu(x), 16, 4, 1)


# --- pictures: additions ---------------------------------------------------------------------------


@_architecture
def resnet(net: FloatNetwork) -> str:
    """Two residual blocks, one with a convolution in its shortcut."""
    x = net.relu(net.batch_norm(net.conv(net.input(1, 3, 16, 16), 3, 16, 3, bias=False), 16))
    x = net.pool("MaxPool", x, 3, 2, pads=[1] * 4)
    y = net.conv(net.conv_relu(x, 16, 16, 3), 16, 16, 3)
    x = net.relu(net.add("Add", y, x))
    y = net.conv(net.conv_relu(x, 16, 32, 3, 2), 32, 32, 3)
    x = net.relu(net.add("Add", net.conv(x, 16, 32, 1, 2), y))
    return net.gemm(net.pooled(x), 32, 10)


@_architecture
def resnet_preact(net: FloatNetwork) -> str:
    """Residual blocks that begin with a BatchNormalization, which no convolution can absorb."""
    x = net.conv(net.input(1, 3, 12, 12), 3, 16, 3)
    for _ in range(2):
        y = net.conv(net.relu(net.batch_norm(x, 16)), 16, 16, 3, bias=False)
        y = net.conv(net.relu(net.batch_norm(y, 16)), 16, 16, 3)
        x = net.add("Add", x, y)
    x = net.relu(net.batch_norm(x, 16))
    return net.gemm(net.mean(x, [2, 3], keep=False), 16, 10)


@_architecture
def resnext(net: FloatNetwork) -> str:
    """A residual block with a grouped convolution, for a batch of two."""
    x = net.conv_relu(net.input(2, 3, 10, 10), 3, 32, 3)
    y = net.conv_relu(net.conv_relu(x, 32, 32, 1), 32, 32, 3, group=4)
    x = net.relu(net.add("Add", net.conv(y, 32, 32, 1), x))
    return net.conv(net.add("GlobalAveragePool", x), 32, 10, 1)


@_architecture
def mobilenet_v2(net: FloatNetwork) -> str:
    x = net.conv_relu6(net.input(1, 3, 16, 16), 3, 8, 3, 2)
    for _ in range(2):
        y = net.conv_relu6(net.conv_relu6(x, 8, 48, 1), 48, 48, 3, group=48)
        x = net.add("Add", x, net.conv(y, 48, 8, 1))
    return net.gemm(net.reshape(net.add("GlobalAveragePool", x), 0, -1), 8, 10)


@_architecture
def mobilenet_v3(net: FloatNetwork) -> str:
    x = net.hard_swish(net.conv(net.input(1, 3, 16, 16), 3, 16, 3, 2))
    y = net.conv_relu(x, 16, 16, 3, group=16)
    gate = net.conv_relu(net.add("GlobalAveragePool", y), 16, 8, 1)
    gate = net.add("HardSigmoid", net.conv(gate, 8, 16, 1))
    x = net.add("Add", x, net.conv(net.add("Mul", y, gate), 16, 16, 1))
    return net.gemm(net.pooled(x), 16, 10)


@_architecture
def efficientnet(net: FloatNetwork) -> str:
    """Swish everywhere, squeeze and excitation by ReduceMean."""
    x = net.swish(net.conv(net.input(1, 3, 14, 14), 3, 16, 3, 2))
    y = net.swish(net.conv(x, 16, 32, 1))
    y = net.swish(net.conv(y, 32, 32, 5, group=32))
    gate = net.swish(net.conv(net.mean(y, [2, 3]), 32, 8, 1))
    gate = net.add("Sigmoid", net.conv(gate, 8, 32, 1))
    x = net.add("Add", net.conv(net.add("Mul", gate, y), 32, 16, 1), x)
    return net.gemm(net.pooled(x), 16, 10)


@_architecture
def additions(net: FloatNetwork) -> str:
    """Additions whose operands are additions, with operands that other nodes also read."""
    a = net.conv_relu(net.input(1, 3, 8, 8), 3, 16, 3)
    b = net.conv_relu(a, 16, 16, 3)
    c = net.add("Add", a, b)
    d = net.add("Add", c, a)
    e = net.relu(net.add("Add", d, c))
    return net.gemm(net.pooled(net.conv(e, 16, 16, 3)), 16, 4)


@_architecture
def relu_apart(net: FloatNetwork) -> str:
    """A Relu that cannot fuse with its convolution, since another node reads the
    convolution's result."""
    a = net.conv(net.input(1, 16, 8, 8), 16, 16, 3)
    b = net.conv(net.relu(a), 16, 16, 1)
    x = net.relu(net.add("Add", a, b))
    return net.conv(net.pool("MaxPool", x, 2, 1, auto_pad="SAME_LOWER"), 16, 8, 3)


# --- pictures: branches ----------------------------------------------------------------------------


@_architecture
def squeezenet(net: FloatNetwork) -> str:
    """Fire blocks, a MaxPool with ``ceil_mode``, and a global mean after the last convolution."""
    x = net.conv_relu(net.input(1, 3, 16, 16), 3, 16, 3, 2)
    s = net.conv_relu(x, 16, 8, 1)
    x = net.add("Concat", net.conv_relu(s, 8, 16, 1), net.conv_relu(s, 8, 16, 3), axis=1)
    x = net.pool("MaxPool", x, 3, 2, ceil_mode=1)
    s = net.conv_relu(x, 32, 16, 1)
    x = net.add("Concat", net.conv_relu(s, 16, 24, 1), net.conv_relu(s, 16, 24, 3), axis=1)
    x = net.conv_relu(net.add("Dropout", x), 48, 10, 1)
    return net.softmax(net.pooled(x), 1)


@_architecture
def densenet(net: FloatNetwork) -> str:
    x, channels = net.conv(net.input(1, 3, 12, 12), 3, 16, 3), 16
    for _ in range(3):
        y = net.conv(net.relu(net.batch_norm(x, channels)), channels, 16, 1, bias=False)
        y = net.conv(net.relu(net.batch_norm(y, 16)), 16, 12, 3, bias=False)
        x, channels = net.add("Concat", x, y, axis=1), channels + 12
    x = net.conv(net.relu(net.batch_norm(x, channels)), channels, 26, 1)
    return net.gemm(net.pooled(net.relu(net.pool("AveragePool", x, 2, 2))), 26, 10)


@_architecture
def inception(net: FloatNetwork) -> str:
    """Four branches, one with average pooling, then two branches with strides."""
    x = net.conv_relu(net.input(1, 3, 14, 14), 3, 16, 3, 2)
    branches = [
        net.conv_relu(x, 16, 16, 1),
        net.conv_relu(net.conv_relu(x, 16, 8, 1), 8, 24, 3),
        net.conv_relu(net.conv_relu(x, 16, 4, 1), 4, 8, 5),
        net.conv_relu(net.pool("AveragePool", x, 3, 1, pads=[1] * 4), 16, 8, 1),
    ]
    x = net.add("Concat", *branches, axis=1)
    x = net.add("Concat", net.pool("MaxPool", x, 3, 2), net.conv_relu(x, 56, 16, 3, 2, pads=0), axis=1)
    return net.gemm(net.pooled(x), 72, 10)


@_architecture
def dilated(net: FloatNetwork) -> str:
    """Growing dilations, joined as in a U-Net. The output is a mask of the picture's size."""
    a = net.conv_relu(net.input(1, 2, 16, 16), 2, 16, 3)
    b = net.conv_relu(a, 16, 24, 3, dilation=2)
    c = net.conv_relu(b, 24, 16, 3, dilation=4)
    return net.add("Sigmoid", net.conv(net.add("Concat", c, b, a, axis=1), 56, 1, 1))


@_architecture
def shufflenet(net: FloatNetwork) -> str:
    """Grouped pointwise convolutions and a channel shuffle."""
    x = net.conv_relu(net.input(1, 3, 12, 12), 3, 24, 3, 2)
    y = net.shuffle(net.conv_relu(x, 24, 24, 1, group=3), 3, 24, 6, 6)
    y = net.conv(net.conv(y, 24, 24, 3, group=24), 24, 24, 1, group=3)
    x = net.relu(net.add("Add", x, y))
    return net.gemm(net.reshape(net.add("GlobalAveragePool", x), 1, 24), 24, 10)


@_architecture
def shufflenet_v2(net: FloatNetwork) -> str:
    """Channels are split in two, joined again and shuffled."""
    x = net.conv_relu(net.input(1, 3, 12, 12), 3, 32, 3, 2)
    a, b = net.split(x, 1, 16, 16)
    b = net.conv(net.conv_relu(b, 16, 16, 1), 16, 16, 3, group=16)
    x = net.shuffle(net.add("Concat", a, net.conv_relu(b, 16, 16, 1), axis=1), 2, 32, 6, 6)
    return net.gemm(net.pooled(net.conv_relu(x, 32, 32, 1)), 32, 10)


@_architecture
def yolo(net: FloatNetwork) -> list[str]:
    """Blocks that split and join channels, and a neck with a Resize and a Concat."""

    def block(x: str, inner: int, half: int) -> str:
        a, b = net.split(net.conv_relu(x, inner, 2 * half, 1), 1, half, half)
        c = net.add("Add", b, net.conv_relu(net.conv_relu(b, half, half, 3), half, half, 3))
        return net.conv_relu(net.add("Concat", a, b, c, axis=1), 3 * half, 2 * half, 1)

    x = net.conv_relu(net.input(1, 3, 16, 16), 3, 16, 3, 2)
    fine = block(x, 16, 12)
    coarse = block(net.conv_relu(fine, 24, 32, 3, 2), 32, 16)
    up = net.repeated(coarse, 2)
    top = block(net.add("Concat", up, fine, axis=1), 56, 12)
    down = net.conv_relu(top, 24, 24, 3, 2)
    low = block(net.add("Concat", down, coarse, axis=1), 56, 16)
    return [net.conv(top, 24, 18, 1), net.conv(low, 32, 18, 1)]


@_architecture
def unet(net: FloatNetwork) -> str:
    """Two levels, joined by Resize and Concat."""
    a = net.conv_relu(net.input(1, 3, 16, 16), 3, 12, 3)
    b = net.conv_relu(net.pool("MaxPool", a, 2, 2), 12, 20, 3)
    c = net.conv_relu(net.pool("MaxPool", b, 2, 2), 20, 24, 3)
    y = net.conv_relu(net.add("Concat", net.repeated(c, 2), b, axis=1), 44, 20, 3)
    y = net.conv_relu(net.add("Concat", net.repeated(y, 2), a, axis=1), 32, 12, 3)
    return net.conv(y, 12, 2, 1)


@_architecture
def super_resolution(net: FloatNetwork) -> str:
    """Pixels become channels, and channels pixels."""
    x = net.conv_relu(net.input(1, 3, 12, 12), 3, 16, 3)
    x = net.conv_relu(net.add("SpaceToDepth", x, blocksize=2), 64, 24, 3)
    x = net.conv_relu(net.add("DepthToSpace", x, blocksize=2), 6, 12, 3)
    return net.conv(net.add("DepthToSpace", x, blocksize=2), 3, 3, 3)


@_architecture
def face(net: FloatNetwork) -> list[str]:
    """Shortcuts with more channels than before."""
    x = net.conv_relu(net.input(1, 3, 16, 16), 3, 20, 3, 2)
    for inner, outer, stride in ((20, 28, 1), (28, 36, 2), (36, 36, 1)):
        y = net.conv(net.conv(x, inner, inner, 3, stride, group=inner), inner, outer, 1)
        shortcut = net.pool("MaxPool", x, 2, 2) if stride > 1 else x
        if outer > inner:
            shortcut = net.pad(shortcut, 0, 0, 0, 0, 0, outer - inner, 0, 0)
        x = net.relu(net.add("Add", shortcut, y))
    return [net.conv(x, 36, 6, 3), net.conv(x, 36, 2, 3)]


@_architecture
def two_heads(net: FloatNetwork) -> list[str]:
    """Classes and boxes, as detectors output them."""
    x = net.conv_relu(net.input(1, 3, 16, 16), 3, 16, 3, 2)
    classes = net.transpose(net.conv(x, 16, 4, 1), 0, 2, 3, 1)
    boxes = net.transpose(net.conv(x, 16, 8, 1), 0, 2, 3, 1)
    return [net.softmax(net.reshape(classes, 1, -1, 2), 2), net.reshape(boxes, 1, -1, 4)]


@_architecture
def two_inputs(net: FloatNetwork) -> str:
    """Two inputs with names that are no identifiers."""
    a = net.conv(net.input(1, 8, 8, 8, name="left:0"), 8, 16, 3)
    b = net.conv(net.input(1, 8, 8, 8, name="right.in/b"), 8, 16, 3)
    return net.conv(net.add("Concat", net.add("Add", a, b), net.add("Mul", a, b), axis=1), 32, 4, 1)


@_architecture
def pools(net: FloatNetwork) -> list[str]:
    """AveragePool with ``ceil_mode`` and without the padding in its count. MaxPool with
    large windows."""
    x = net.conv_relu(net.input(1, 8, 13, 13), 8, 16, 3)
    a = net.conv(net.pool("AveragePool", x, 3, 2, ceil_mode=1), 16, 8, 1)
    b = net.pool("AveragePool", x, 2, 2, pads=[0, 0, 1, 1], count_include_pad=0)
    b = net.conv(b, 16, 8, 1, auto_pad="VALID")
    c = net.pool("MaxPool", net.conv(x, 16, 8, 1), 5, 1, pads=[2] * 4)
    return [net.add("GlobalAveragePool", one) for one in (a, b, c)]


@_architecture
def rolled(net: FloatNetwork) -> str:
    """A picture rolled with slices, as in a Swin transformer."""
    x = net.conv(net.input(1, 8, 8, 8), 8, 16, 3)
    halves = [
        net.add("Slice", x, net.integers(begin), net.integers(end), net.integers(2))
        for begin, end in ((4, 99), (0, 4))
    ]
    return net.conv(net.add("Concat", *halves, axis=2), 16, 4, 3)


@_architecture
def extremes(net: FloatNetwork) -> str:
    """Min and Max of two branches."""
    x = net.input(1, 8, 6, 6)
    a, b = net.conv(x, 8, 16, 3), net.conv(x, 8, 16, 1)
    return net.conv(net.add("Max", a, net.add("Min", b, a)), 16, 4, 1)


# --- sounds and sequences --------------------------------------------------------------------------


@_architecture
def keywords(net: FloatNetwork) -> str:
    """Keyword spotting in audio: convolutions along one axis."""
    x = net.conv_relu(net.input(1, 10, 49), 10, 16, 5, 2, rank=1)
    x = net.conv_relu(x, 16, 16, 3, group=16, rank=1)
    x = net.conv_relu(x, 16, 32, 1, rank=1)
    x = net.add("MaxPool", x, kernel_shape=[2], strides=[2])
    return net.softmax(net.gemm(net.pooled(x), 32, 12))


@_architecture
def temporal(net: FloatNetwork) -> str:
    """Causal convolutions with growing dilations, and residuals."""
    x = net.input(1, 8, 32)
    for dilation in (1, 2, 4):
        y = net.conv_relu(x, 8, 8, 3, dilation=dilation, pads=[2 * dilation, 0], rank=1)
        x = net.relu(net.add("Add", net.conv(y, 8, 8, 1, rank=1), x))
    return net.conv(x, 8, 4, 1, rank=1)


@_architecture
def mixer(net: FloatNetwork) -> str:
    """Patches of a picture. Dense layers mix them along both axes."""
    x = net.conv(net.input(1, 3, 16, 16), 3, 32, 4, 4, pads=0)
    x = net.transpose(net.reshape(x, 1, 32, 16), 0, 2, 1)
    y = net.relu(net.dense(net.transpose(x, 0, 2, 1), 16, 24))
    x = net.add("Add", x, net.transpose(net.dense(y, 24, 16), 0, 2, 1))
    y = net.relu(net.dense(x, 32, 48))
    x = net.add("Add", x, net.dense(y, 48, 32))
    return net.gemm(net.mean(x, [1], keep=False), 32, 10)


@_architecture
def gated_mixer(net: FloatNetwork) -> str:
    """Gelu, and one half of the channels as a gate for the other."""
    x = net.input(1, 12, 16)
    u, v = net.split(net.gelu(net.dense(x, 16, 32)), 2, 16, 16)
    v = net.transpose(net.dense(net.transpose(v, 0, 2, 1), 12, 12), 0, 2, 1)
    return net.add("Add", x, net.matmul(net.add("Mul", u, v), 16, 16))


@_architecture
def autoencoder(net: FloatNetwork) -> str:
    """Dense layers with a batch of four."""
    x = net.input(4, 64)
    for inner, outer in ((64, 32), (32, 8), (8, 32)):
        x = net.relu(net.dense(x, inner, outer))
    return net.gemm(x, 32, 64)


@_architecture
def scores(net: FloatNetwork) -> str:
    """Products of two computed tensors, as in attention."""
    x = net.input(2, 6, 16)
    queries, keys = net.matmul(x, 16, 16), net.matmul(x, 16, 16)
    found = net.add("MatMul", queries, net.transpose(keys, 0, 2, 1))
    return net.add("MatMul", net.relu(found), x)
