"""A builder of float networks: layers in sequence, with weights distributed as after training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.formats.runtime import Array, model, node

Shape = Sequence[int | str]


class FloatNetwork:
    """A float network under construction. Each method adds a layer and returns the name of its result.

    Args:
        seed: seed of the weights.
        opset: version of ONNX's operators; operators are written in the form of this version.
    """

    def __init__(self, seed: int = 0, opset: int = 17) -> None:
        self.opset = opset
        self.inputs: dict[str, Shape] = {}
        self.outputs: list[str] = []
        self._rng = np.random.default_rng(seed)
        self._nodes: list[Any] = []
        self._constants: dict[str, Array] = {}

    def input(self, *shape: int | str, name: str = "x") -> str:
        """Add a float32 input. An axis with a name instead of a size is set by each run."""
        self.inputs[name] = shape
        return name

    def samples(self, seeds: Sequence[int]) -> list[dict[str, Array]]:
        """Return normally distributed inputs for one run per seed. Axes with names have size 1."""
        found = []
        for seed in seeds:
            rng = np.random.default_rng(seed)
            shapes = {name: [1 if isinstance(n, str) else n for n in s] for name, s in self.inputs.items()}
            found.append({name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()})
        return found

    def model(self) -> bytes:
        inputs = {name: ("float32", shape) for name, shape in self.inputs.items()}
        return model(self._nodes, inputs, self.outputs, self._constants, opset=self.opset)

    # --- nodes and constants -----------------------------------------------------------------------

    def several(self, kind: str, *inputs: str, count: int, **attributes: Any) -> list[str]:
        """Add a node with `count` outputs."""
        place = len(self._nodes)
        outputs = [f"{kind.lower()}_{place}" + (f"_{one}" if count > 1 else "") for one in range(count)]
        self._nodes.append(node(kind, inputs, *outputs, name=f"/{kind}_{place}", **attributes))
        return outputs

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output."""
        return self.several(kind, *inputs, count=1, **attributes)[0]

    def constant(self, value: Any) -> str:
        name = f"c{len(self._constants)}"
        self._constants[name] = np.asarray(value)
        return name

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def floats(self, values: Any, *shape: int) -> str:
        """Add a float32 initializer with a shape."""
        return self.constant(np.asarray(values, np.float32).reshape(shape))

    def weights(self, *shape: int) -> str:
        """Add random weights that roughly keep the size of their operand. They vary by channel,
        the first axis."""
        channels = np.exp(self._rng.normal(0, 0.4, shape[0])).reshape(-1, *[1] * (len(shape) - 1))
        return self.floats(self._rng.normal(0, (1.5 / np.prod(shape[1:])) ** 0.5, shape) * channels, *shape)

    def biases(self, count: int) -> str:
        return self.floats(self._rng.normal(0, 0.1, count), count)

    def scales(self, *shape: int) -> str:
        """Random factors around 1."""
        return self.floats(np.exp(self._rng.normal(0, 0.25, shape)), *shape)

    # --- layers ------------------------------------------------------------------------------------

    def conv(
        self,
        data: str,
        inner: int,
        outer: int,
        kernel: int,
        stride: int = 1,
        *,
        pads: int | Sequence[int] | None = None,
        group: int = 1,
        dilation: int = 1,
        bias: bool = True,
        rank: int = 2,
        auto_pad: str | None = None,
    ) -> str:
        """Add a convolution with the same kernel size, stride and dilation on all axes.

        Args:
            data: name of its operand.
            inner: number of input channels.
            outer: number of output channels.
            pads: padding on each side, as one number or one by one. By default it keeps the size.
            rank: number of spatial axes.
            auto_pad: ONNX's ``auto_pad``, instead of pads.
        """
        attributes: dict[str, Any] = {
            "kernel_shape": [kernel] * rank,
            "strides": [stride] * rank,
            "dilations": [dilation] * rank,
            "group": group,
        }
        if auto_pad is not None:
            attributes["auto_pad"] = auto_pad
        else:
            pads = (kernel - 1) * dilation // 2 if pads is None else pads
            attributes["pads"] = [pads] * 2 * rank if isinstance(pads, int) else pads
        weights = self.weights(outer, inner // group, *[kernel] * rank)
        return self.add("Conv", data, weights, *([self.biases(outer)] if bias else []), **attributes)

    def conv_relu(
        self, data: str, inner: int, outer: int, kernel: int, stride: int = 1, **options: Any
    ) -> str:
        return self.relu(self.conv(data, inner, outer, kernel, stride, **options))

    def conv_relu6(
        self, data: str, inner: int, outer: int, kernel: int, stride: int = 1, **options: Any
    ) -> str:
        return self.clip(self.conv(data, inner, outer, kernel, stride, **options), 0, 6)

    def gemm(self, data: str, inner: int, outer: int, *, transposed: bool = True, **attributes: Any) -> str:
        """Add a dense layer as Gemm."""
        weights = self.weights(*((outer, inner) if transposed else (inner, outer)))
        return self.add("Gemm", data, weights, self.biases(outer), transB=int(transposed), **attributes)

    def dense(self, data: str, inner: int, outer: int) -> str:
        """Add a dense layer as MatMul and Add."""
        return self.add("Add", self.matmul(data, inner, outer), self.biases(outer))

    def matmul(self, data: str, inner: int, outer: int) -> str:
        """Add a product with constant weights."""
        return self.add("MatMul", data, self.weights(inner, outer))

    def batch_norm(self, data: str, channels: int) -> str:
        scale, mean = self.scales(channels), self.biases(channels)
        return self.add("BatchNormalization", data, scale, self.biases(channels), mean, self.scales(channels))

    def relu(self, data: str) -> str:
        return self.add("Relu", data)

    def clip(self, data: str, low: float, high: float) -> str:
        if self.opset < 11:
            return self.add("Clip", data, min=float(low), max=float(high))
        return self.add("Clip", data, self.floats(low), self.floats(high))

    def swish(self, data: str) -> str:
        """Add swish: ``x * Sigmoid(x)``."""
        return self.add("Mul", data, self.add("Sigmoid", data))

    def hard_swish(self, data: str) -> str:
        """Add a HardSwish, or equivalent nodes in old opsets."""
        if self.opset >= 14:
            return self.add("HardSwish", data)
        return self.add("Mul", data, self.add("HardSigmoid", data, alpha=1 / 6, beta=0.5))

    def gelu(self, data: str) -> str:
        """Add a Gelu, or a swish in opsets without it."""
        return self.add("Gelu", data) if self.opset >= 20 else self.swish(data)

    def softmax(self, data: str, axis: int = -1) -> str:
        return self.add("Softmax", data, axis=axis)

    def pool(self, kind: str, data: str, kernel: int, stride: int, **attributes: Any) -> str:
        return self.add(kind, data, kernel_shape=[kernel] * 2, strides=[stride] * 2, **attributes)

    def mean(self, data: str, axes: Sequence[int], *, keep: bool = True) -> str:
        if self.opset < 18:
            return self.add("ReduceMean", data, axes=axes, keepdims=int(keep))
        return self.add("ReduceMean", data, self.integers(*axes), keepdims=int(keep))

    def repeated(self, data: str, factor: int) -> str:
        """Add a nearest Resize by a whole factor."""
        scales = self.floats([1, 1, factor, factor], 4)
        if self.opset < 11:
            return self.add("Resize", data, scales, mode="nearest")
        attributes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric"}
        region = self.floats(np.zeros(8), 8) if self.opset < 13 else ""
        return self.add("Resize", data, region, scales, nearest_mode="floor", **attributes)

    def pooled(self, data: str) -> str:
        """Add the mean of each channel, as a matrix."""
        return self.add("Flatten", self.add("GlobalAveragePool", data))

    def reshape(self, data: str, *shape: int) -> str:
        return self.add("Reshape", data, self.integers(*shape))

    def transpose(self, data: str, *order: int) -> str:
        return self.add("Transpose", data, perm=order)

    def squeeze(self, data: str, axes: Sequence[int], kind: str = "Squeeze") -> str:
        if self.opset < 13:
            return self.add(kind, data, axes=axes)
        return self.add(kind, data, self.integers(*axes))

    def split(self, data: str, axis: int, *sizes: int) -> list[str]:
        if self.opset < 13:
            return self.several("Split", data, count=len(sizes), axis=axis, split=sizes)
        return self.several("Split", data, self.integers(*sizes), count=len(sizes), axis=axis)

    def pad(self, data: str, *pads: int) -> str:
        if self.opset < 11:
            return self.add("Pad", data, pads=pads)
        return self.add("Pad", data, self.integers(*pads))

    def shuffle(self, data: str, groups: int, channels: int, *sizes: int) -> str:
        """Add a channel shuffle between groups."""
        apart = self.reshape(data, 1, groups, channels // groups, *sizes)
        return self.reshape(self.transpose(apart, 0, 2, 1, 3, 4), 1, channels, *sizes)
