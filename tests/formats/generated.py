"""Random quantized networks, each as two models: in QOperator and in QDQ format.

Tensors have the same names in both. A seed determines scales, zero points, sizes and attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.formats.runtime import model, node

Array = npt.NDArray[Any]
FUNCTIONS = ("Abs", "Elu", "Exp", "HardSigmoid", "HardSwish", "Softplus", "Tanh")
"""Float operators that stand between Dequantize and Quantize in both formats."""


MEANS = (2.0**-30, 2.0**7)
"""Range of scale ratios that ONNX Runtime accepts for global means, with a margin."""

LEAST = 2.0**-28
"""Least scale, relative to the largest numbers. ONNX Runtime saturates its sums, products and means as
integers; where these exceed 32 bits, the result wraps to the wrong end."""


@dataclass(frozen=True)
class Made:
    """A quantized tensor of the network."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    scale: np.float32
    zero: int

    @property
    def real(self) -> float:
        """The rough size of its largest numbers."""
        return float(self.scale) * 128


def _takes_mean(data: Made, made: Made) -> bool:
    return MEANS[0] < float(data.scale / made.scale) / np.prod(data.shape[2:]) < MEANS[1]


@dataclass
class Network:
    rng: np.random.Generator
    dtype: str
    inputs: dict[str, tuple[str, Sequence[int]]] = field(default_factory=dict)
    live: list[Made] = field(default_factory=list)
    constants: dict[str, Any] = field(default_factory=dict)
    qoperator: list[Any] = field(default_factory=list)
    qdq: list[Any] = field(default_factory=list)
    floats: set[str] = field(default_factory=set)
    count: int = 0

    # --- parts -------------------------------------------------------------------------------------

    def name(self, what: str) -> str:
        self.count += 1
        return f"{what}.{self.count}"

    def integer(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def choice(self, options: Sequence[Any]) -> Any:
        return options[self.integer(0, len(options) - 1)]

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def constant(self, what: str, value: Any) -> str:
        name = self.name(what)
        self.constants[name] = value
        return name

    def scale_near(self, real: float) -> np.float32:
        """Choose a scale for numbers of this size, or rarely one that is far too large or small."""
        spread = 4.0 if self.chance(0.1) else 0.7
        found = real / 128 * 10 ** self.rng.uniform(-spread, spread)
        return np.float32(min(max(found, 1e-12), 1e6))

    def zero(self, dtype: str) -> int:
        bounds = np.iinfo(dtype)
        middle = 0 if dtype == "int8" else 128
        options = (self.integer(bounds.min, bounds.max), bounds.min, bounds.max, middle)
        return int(self.choice(options))

    def new(
        self, shape: Sequence[int], real: float, like: Made | None = None, name: str | None = None
    ) -> Made:
        """Add a tensor with the scale of another one, or with a scale that fits numbers of the
        given size."""
        if like is not None:
            return Made(name or self.name("t"), tuple(shape), like.dtype, like.scale, like.zero)
        scale = np.float32(max(self.scale_near(real), real * LEAST))
        return Made(name or self.name("t"), tuple(shape), self.dtype, scale, self.zero(self.dtype))

    def input(self, shape: Sequence[int]) -> None:
        real = 10 ** self.rng.uniform(-3, 2)
        made = self.new(shape, real, name=self.choice(["x", "in:0", "a/b=c"]) + str(len(self.inputs)))
        if self.chance(0.3):
            self.inputs[f"{made.name}.float"] = ("float32", shape)
            for nodes in (self.qoperator, self.qdq):
                nodes.append(node("QuantizeLinear", [f"{made.name}.float", *self.pair(made)], made.name))
        else:
            self.inputs[made.name] = (made.dtype, shape)
        self.live.append(made)

    def pair(self, made: Made) -> list[str]:
        """Add constants for scale and zero point."""
        names = [f"{made.name}.scale", f"{made.name}.zero"]
        self.constants[names[0]] = made.scale
        self.constants[names[1]] = np.array(made.zero, made.dtype)
        return names

    def three(self, made: Made) -> list[str]:
        """Tensor, scale and zero point, as QOperators read them."""
        return [made.name, *self.pair(made)]

    def float_of(self, made: Made) -> str:
        """Return the tensor's Dequantize in the QDQ model. Its readers usually share one."""
        name = f"{made.name}.dq"
        if name in self.floats:
            if self.chance(0.8):
                return name
            name = self.name(name)
        self.floats.add(name)
        self.qdq.append(node("DequantizeLinear", self.three(made), name))
        return name

    def quantize(self, name: str, made: Made) -> None:
        """End a region of the QDQ model with a Quantize."""
        self.qdq.append(node("QuantizeLinear", [name, *self.pair(made)], made.name))

    def region(
        self, kind: str, operands: Sequence[Made], made: Made, *others: str, **attributes: Any
    ) -> None:
        """Add an operator between Dequantizes and a Quantize to the QDQ model."""
        inner = self.name(f"{made.name}.float")
        names = [self.float_of(one) for one in operands]
        self.qdq.append(node(kind, [*names, *others], inner, **attributes))
        self.quantize(inner, made)

    def moved(self, kind: str, source: Made, shape: Sequence[int], *others: str, **attributes: Any) -> None:
        """Add an operator that moves integers without arithmetic."""
        made = self.new(shape, 0, like=source)
        self.qoperator.append(node(kind, [source.name, *others], made.name, **attributes))
        self.region(kind, [source], made, *others, **attributes)
        self.live.append(made)

    def pick(self, ranks: Sequence[int]) -> Made | None:
        """Pick a tensor whose number of axes is in `ranks`, preferably a late one."""
        options = [one for one in self.live if len(one.shape) in ranks]
        if not options:
            return None
        late = options[-3:]
        return self.choice(late if self.chance(0.8) else options)  # type: ignore[no-any-return]

    # --- operators ---------------------------------------------------------------------------------

    def weights(self, shape: Sequence[int], axis: int, zeros: str) -> tuple[list[str], Array, Array]:
        """Add constant weights with scales and zero points. The second result is the scales of the channels.

        Args:
            axis: axis of the output channels.
            zeros: "one", or "each" where channels may have different zero points.
        """
        dtype = "int8" if self.dtype == "int8" or self.chance(0.7) else "uint8"
        bounds = np.iinfo(dtype)
        values = self.rng.integers(bounds.min, bounds.max + 1, shape).astype(dtype)
        channels = shape[axis]
        scales = (10 ** self.rng.uniform(-3, -1, channels)).astype(np.float32)
        if self.chance(0.1):
            scales = (10 ** self.rng.uniform(-9, 1, channels)).astype(np.float32)
        middle = 0 if dtype == "int8" else 128
        zero = np.full(channels, middle if self.chance(0.6) else self.zero(dtype), dtype)
        if zeros == "each" and self.chance(0.3):
            zero = self.rng.integers(bounds.min, bounds.max + 1, channels).astype(dtype)
        if self.chance(0.4):
            scales, zero = scales[:1].reshape(()), zero[:1].reshape(())
        names = [self.constant("w", values), self.constant("w.scale", scales), self.constant("w.zero", zero)]
        real = (values.astype(np.int64) - middle) * np.float64(scales.max())
        return names, np.broadcast_to(scales, (channels,)), real

    def bias(self, data: Made, scales: Array, real: float, alpha: float = 1.0) -> tuple[str, str]:
        unit = (np.float32(alpha) * data.scale) * scales
        with np.errstate(all="ignore"):
            values = np.rint(self.rng.normal(0, 1, len(scales)) * real / unit)
        values = np.nan_to_num(values).clip(-(2**30), 2**30).astype(np.int32)
        name = self.constant("bias", values)
        unit = np.asarray(unit, np.float32)
        operands = [
            name,
            self.constant("bias.scale", unit),
            self.constant("bias.zero", np.zeros_like(values)),
        ]
        made = self.name("bias.dq")
        self.qdq.append(node("DequantizeLinear", operands, made, axis=0))
        return name, made

    def weights_float(self, names: Sequence[str], axis: int) -> str:
        made = self.name("w.dq")
        self.qdq.append(node("DequantizeLinear", names, made, axis=axis))
        return made

    def finish(self, inner: str, made: Made, qoperator: Any) -> None:
        """End a region with a Quantize, sometimes after a Relu or Clip."""
        if not self.chance(0.3):
            self.qoperator.append(qoperator(made.name))
            self.quantize(inner, made)
            return
        sums, bounded = self.name("t"), self.name(f"{made.name}.clipped")
        self.qoperator.append(qoperator(sums))
        if self.chance(0.5):
            low, high = 0.0, None
            self.qdq.append(node("Relu", [inner], bounded))
        else:
            low, high = 0.0, float(np.float32(made.real * self.rng.uniform(0.05, 2)))
            bounds = [self.constant("low", np.float32(low)), self.constant("high", np.float32(high))]
            self.qdq.append(node("Clip", [inner, *bounds], bounded))
        self.quantize(bounded, made)
        limits = np.iinfo(made.dtype)
        ints = [
            np.clip(np.rint(np.float32(one) / made.scale) + made.zero, limits.min, limits.max)
            for one in ([low] if high is None else [low, high])
        ]
        names = [self.constant("bound", np.array(one, made.dtype)) for one in ints]
        self.qoperator.append(node("Clip", [sums, *names], made.name))

    def conv(self, groups: str = "one") -> None:
        data = self.pick([3, 4])
        if data is None:
            return
        rank = len(data.shape) - 2
        channels = data.shape[1]
        divisors = [one for one in range(1, channels + 1) if channels % one == 0]
        count = {"one": 1, "some": self.choice(divisors), "all": channels}[groups]
        outer = count * self.integer(1, 3)
        kernel = [self.integer(1, min(4, size + 1)) for size in data.shape[2:]]
        dilations = [self.integer(1, 2) if k > 1 and self.chance(0.2) else 1 for k in kernel]
        extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
        strides = [self.integer(1, 3) for _ in kernel]
        attributes: dict[str, Any] = {
            "kernel_shape": kernel,
            "strides": strides,
            "dilations": dilations,
            "group": count,
        }
        sizes = data.shape[2:]
        if self.chance(0.2) and max(dilations) == 1:
            attributes["auto_pad"] = self.choice(["SAME_UPPER", "SAME_LOWER"])
            out = [-(-n // s) for n, s in zip(sizes, strides, strict=True)]
        else:
            begin = [self.integer(0, k - 1) for k in kernel]
            end = [
                max(self.integer(0, k - 1), e - n - b)
                for k, e, n, b in zip(kernel, extents, sizes, begin, strict=True)
            ]
            attributes["pads"] = [*begin, *end]
            out = [
                (n + b + a - e) // s + 1
                for n, b, a, e, s in zip(sizes, begin, end, extents, strides, strict=True)
            ]
        names, scales, real = self.weights([outer, channels // count, *kernel], 0, "one")
        depth = real[0].size
        size = float(np.abs(real).mean()) * data.real * depth**0.5
        made = self.new([data.shape[0], outer, *out], size)
        ends: list[str] = []
        more: list[str] = []
        if self.chance(0.7):
            name, dequantized = self.bias(data, scales, size)
            ends, more = [name], [dequantized]
        inner = self.name(f"{made.name}.float")
        operands = [self.float_of(data), self.weights_float(names, 0), *more]
        self.qdq.append(node("Conv", operands, inner, **attributes))
        takes = [*self.three(data), *names, *self.pair(made), *ends]
        self.finish(inner, made, lambda output: node("QLinearConv", takes, output, **attributes))
        self.live.append(made)
        assert rank

    def matmul(self) -> None:
        data = self.pick([2, 3, 4])
        if data is None:
            return
        rows, columns = data.shape[-1], self.integer(1, 9)
        names, _, real = self.weights([rows, columns], 1, "each")
        made = self.new([*data.shape[:-1], columns], float(np.abs(real).mean()) * data.real * rows**0.5)
        inner = self.name(f"{made.name}.float")
        self.qdq.append(node("MatMul", [self.float_of(data), self.weights_float(names, 1)], inner))
        takes = [*self.three(data), *names, *self.pair(made)]
        self.finish(inner, made, lambda output: node("QLinearMatMul", takes, output))
        self.live.append(made)

    def product(self) -> None:
        """Multiply two tensors, of which the second is transposed, as queries and keys are."""
        data = self.pick([2, 3, 4])
        if data is None:
            return
        other = self.choice([one for one in self.live if one.shape == data.shape])
        *several, rows, depth = data.shape
        order = [*range(len(several)), len(several) + 1, len(several)]
        self.moved("Transpose", other, [*several, depth, rows], perm=order)
        turned = self.live[-1]
        made = self.new([*several, rows, rows], data.real * other.real * depth**0.5)
        inner = self.name(f"{made.name}.float")
        self.qdq.append(node("MatMul", [self.float_of(data), self.float_of(turned)], inner))
        takes = [*self.three(data), *self.three(turned), *self.pair(made)]
        self.finish(inner, made, lambda output: node("QLinearMatMul", takes, output))
        self.live.append(made)

    def gemm(self) -> None:
        data = self.pick([2])
        if data is None:
            self.flatten()
            data = self.pick([2])
        assert data is not None
        rows, columns = data.shape[1], self.integer(1, 9)
        turned = self.integer(0, 1)
        alpha = 1.0 if self.chance(0.7) else float(np.float32(self.rng.uniform(0.1, 3)))
        shape = [columns, rows] if turned else [rows, columns]
        names, scales, real = self.weights(shape, 1 - turned, "each")
        size = float(np.abs(real).mean()) * data.real * rows**0.5 * alpha
        made = self.new([data.shape[0], columns], size)
        ends: list[str] = [""]
        more: list[str] = []
        if self.chance(0.7):
            name, dequantized = self.bias(data, scales, size, alpha)
            ends, more = [name], [dequantized]
        inner = self.name(f"{made.name}.float")
        operands = [self.float_of(data), self.weights_float(names, 1 - turned), *more]
        attributes = {"transB": turned, "alpha": alpha}
        self.qdq.append(node("Gemm", operands, inner, **attributes))
        takes = [*self.three(data), *names, *ends, *self.pair(made)]
        self.finish(inner, made, lambda output: node("QGemm", takes, output, **attributes))
        self.live.append(made)

    def sides(self, kind: str) -> None:
        one = self.pick([2, 3, 4])
        if one is None:
            return
        vector = (*one.shape[:2], *[1] * (len(one.shape) - 2))
        same = [other for other in self.live if other.shape in (one.shape, vector)]
        other = self.choice(same)
        if self.chance(0.3):
            shape = [size if self.chance(0.5) else 1 for size in one.shape]
            bounds = np.iinfo(self.dtype)
            other = self.new(shape, one.real)
            self.constants[other.name] = self.rng.integers(bounds.min, bounds.max + 1, shape).astype(
                self.dtype
            )
        pair = [one, other] if self.chance(0.5) else [other, one]
        real = one.real + other.real if kind == "Add" else one.real * other.real
        made = self.new(one.shape, real)
        inner = self.name(f"{made.name}.float")
        names = [self.float_of(pair[0])]
        names.append(names[0] if pair[0] == pair[1] else self.float_of(pair[1]))
        self.qdq.append(node(kind, names, inner))
        takes = [*self.three(pair[0]), *self.three(pair[1]), *self.pair(made)]
        self.finish(inner, made, lambda output: node(f"QLinear{kind}", takes, output))
        self.live.append(made)

    def average(self) -> None:
        data = self.pick([3, 4])
        if data is None:
            return
        kernel = [self.integer(1, min(4, size)) for size in data.shape[2:]]
        strides = [self.integer(1, 3) for _ in kernel]
        pads = [self.integer(0, k - 1) for k in [*kernel, *kernel]]
        out = [
            (n + pads[i] + pads[i + len(kernel)] - k) // s + 1
            for i, (n, k, s) in enumerate(zip(data.shape[2:], kernel, strides, strict=True))
        ]
        made = self.new([*data.shape[:2], *out], data.real)
        if not _takes_mean(data, made):
            made = self.new(made.shape, 0, like=data)
        attributes = {
            "kernel_shape": kernel,
            "strides": strides,
            "pads": pads,
            "count_include_pad": self.integer(0, 1),
        }
        takes = [*self.three(data), *self.pair(made)]
        self.qoperator.append(node("QLinearAveragePool", takes, made.name, **attributes))
        self.region("AveragePool", [data], made, **attributes)
        self.live.append(made)

    def mean(self) -> None:
        data = self.pick([4])
        if data is None:
            return
        shape = [*data.shape[:2], *[1] * (len(data.shape) - 2)]
        made = self.new(shape, data.real)
        if not _takes_mean(data, made):
            made = self.new(shape, 0, like=data)
        takes = [*self.three(data), *self.pair(made)]
        self.qoperator.append(node("QLinearGlobalAveragePool", takes, made.name, channels_last=0))
        self.region("GlobalAveragePool", [data], made)
        self.live.append(made)

    def maximum(self) -> None:
        data = self.pick([3, 4])
        if data is None:
            return
        kernel = [self.integer(1, min(4, size)) for size in data.shape[2:]]
        strides = [self.integer(1, 3) for _ in kernel]
        begin, end = ([self.integer(0, k - 1) for k in kernel] for _ in range(2))
        out = [
            (n + b + a - k) // s + 1
            for n, b, a, k, s in zip(data.shape[2:], begin, end, kernel, strides, strict=True)
        ]
        attributes = {"kernel_shape": kernel, "strides": strides, "pads": [*begin, *end]}
        self.moved("MaxPool", data, [*data.shape[:2], *out], **attributes)

    def activation(self) -> None:
        data = self.pick([2, 3, 4])
        assert data is not None
        kind = self.choice(["Sigmoid", "LeakyRelu"])
        attributes = {} if kind == "Sigmoid" else {"alpha": float(np.float32(self.rng.uniform(0, 1)))}
        made = self.new(data.shape, 1.0 if kind == "Sigmoid" else data.real)
        takes = [*self.three(data), *self.pair(made)]
        self.qoperator.append(node(f"QLinear{kind}", takes, made.name, **attributes))
        self.region(kind, [data], made, **attributes)
        self.live.append(made)

    def function(self) -> None:
        """Add a function that ONNX Runtime has no quantized operator for, or only a requantization."""
        data = self.pick([2, 3, 4])
        assert data is not None
        kind = self.choice(["", *FUNCTIONS])
        made = self.new(data.shape, data.real if kind in {"", "Abs"} else 1.0)
        numbers = self.name("numbers")
        self.qoperator.append(node("DequantizeLinear", self.three(data), numbers))
        if kind:
            self.qoperator.append(node(kind, [numbers], f"{numbers}.after"))
        last = f"{numbers}.after" if kind else numbers
        self.qoperator.append(node("QuantizeLinear", [last, *self.pair(made)], made.name))
        if kind:
            self.region(kind, [data], made)
        else:
            self.quantize(self.float_of(data), made)
        self.live.append(made)

    def clip(self) -> None:
        """Add a bound at zero: a Clip of integers as QOperator, and a region with Relu and one
        scale as QDQ."""
        data = self.pick([2, 3, 4])
        assert data is not None
        made = self.new(data.shape, 0, like=data)
        bound = self.constant("zero", np.array(data.zero, data.dtype))
        self.qoperator.append(node("Clip", [data.name, bound], made.name))
        self.region("Relu", [data], made)
        self.live.append(made)

    def concat(self) -> None:
        one = self.pick([2, 3, 4])
        assert one is not None
        axis = self.integer(0, len(one.shape) - 1) if self.chance(0.3) else 1
        fits = [
            other
            for other in self.live
            if len(other.shape) == len(one.shape)
            and all(a == b or i == axis for i, (a, b) in enumerate(zip(one.shape, other.shape, strict=True)))
        ]
        parts = [one, *(self.choice(fits) for _ in range(self.integer(0, 2)))]
        shape = list(one.shape)
        shape[axis] = sum(part.shape[axis] for part in parts)
        made = self.new(shape, max(part.real for part in parts), like=one if self.chance(0.3) else None)
        takes = self.pair(made)
        for part in parts:
            takes += self.three(part)
        self.qoperator.append(node("QLinearConcat", takes, made.name, axis=axis))
        self.region("Concat", parts, made, axis=axis)
        self.live.append(made)

    def split(self) -> None:
        data = self.pick([2, 3, 4])
        assert data is not None
        axes = [axis for axis, size in enumerate(data.shape) if size > 1]
        if not axes:
            return
        axis = self.choice(axes)
        first = self.integer(1, data.shape[axis] - 1)
        parts = []
        for size in (first, data.shape[axis] - first):
            shape = list(data.shape)
            shape[axis] = size
            parts.append(self.new(shape, 0, like=data))
        sizes = self.constant("sizes", np.array([one.shape[axis] for one in parts], np.int64))
        self.qoperator.append(node("Split", [data.name, sizes], *(one.name for one in parts), axis=axis))
        inner = [self.name(f"{one.name}.float") for one in parts]
        self.qdq.append(node("Split", [self.float_of(data), sizes], *inner, axis=axis))
        for name, made in zip(inner, parts, strict=True):
            self.quantize(name, made)
        self.live += parts

    def flatten(self) -> None:
        data = self.pick([2, 3, 4])
        assert data is not None
        axis = 1 if self.chance(0.7) else self.integer(0, len(data.shape))
        shape = [int(np.prod(data.shape[:axis])), int(np.prod(data.shape[axis:]))]
        self.moved("Flatten", data, shape, axis=axis)

    def reshape(self) -> None:
        data = self.pick([2, 3, 4])
        assert data is not None
        kind = self.choice(["Reshape", "Squeeze", "Unsqueeze"])
        if kind == "Squeeze" and 1 in data.shape and len(data.shape) > 2:
            axis = data.shape.index(1)
            shape = [size for place, size in enumerate(data.shape) if place != axis]
            self.moved("Squeeze", data, shape, self.constant("axes", np.array([axis], np.int64)))
        elif kind == "Unsqueeze" and len(data.shape) < 4:
            axis = self.integer(0, len(data.shape))
            shape = [*data.shape[:axis], 1, *data.shape[axis:]]
            self.moved("Unsqueeze", data, shape, self.constant("axes", np.array([axis], np.int64)))
        else:
            order = [int(one) for one in self.rng.permutation(data.shape)]
            wanted = [*order[:-1], -1]
            self.moved("Reshape", data, order, self.constant("shape", np.array(wanted, np.int64)))

    def transpose(self) -> None:
        data = self.pick([2, 3, 4])
        assert data is not None
        order = [int(one) for one in self.rng.permutation(len(data.shape))]
        self.moved("Transpose", data, [data.shape[axis] for axis in order], perm=order)

    def pad(self) -> None:
        data = self.pick([2, 3, 4])
        assert data is not None
        rank = len(data.shape)
        begin, end = ([self.integer(0, 2) if self.chance(0.5) else 0 for _ in range(rank)] for _ in range(2))
        shape = [b + n + a for b, n, a in zip(begin, data.shape, end, strict=True)]
        pads = self.constant("pads", np.array([*begin, *end], np.int64))
        made = self.new(shape, 0, like=data)
        value = self.constant("value", np.array(data.zero, data.dtype))
        self.qoperator.append(node("Pad", [data.name, pads, value], made.name))
        self.region("Pad", [data], made, pads)
        self.live.append(made)

    def identity(self) -> None:
        data = self.pick([2, 3, 4])
        assert data is not None
        self.moved("Identity", data, data.shape)


KINDS: Mapping[str, Callable[[Network], None]] = {
    "conv": Network.conv,
    "grouped": lambda network: network.conv("some"),
    "depthwise": lambda network: network.conv("all"),
    "matmul": Network.matmul,
    "product": Network.product,
    "gemm": Network.gemm,
    "add": lambda network: network.sides("Add"),
    "mul": lambda network: network.sides("Mul"),
    "average": Network.average,
    "mean": Network.mean,
    "maximum": Network.maximum,
    "activation": Network.activation,
    "function": Network.function,
    "clip": Network.clip,
    "concat": Network.concat,
    "split": Network.split,
    "flatten": Network.flatten,
    "reshape": Network.reshape,
    "transpose": Network.transpose,
    "pad": Network.pad,
    "identity": Network.identity,
}
"""Functions that add an operator, by kind."""
LARGEST = 20_000
"""Number of values in a tensor at which a network stops growing."""


def generate(kinds: Sequence[str], seed: int) -> Network:
    """Generate a network of these kinds of operators in order. Kinds that fit no tensor are skipped."""
    rng = np.random.default_rng(seed)
    network = Network(rng, dtype="int8" if rng.random() < 0.5 else "uint8")
    batch, channels = network.integer(1, 2), network.integer(1, 6)
    sizes = [network.integer(1, 11) for _ in range(network.choice([1, 2, 2]))]
    network.input([batch, channels, *sizes])
    if network.chance(0.2):
        network.input(network.live[0].shape)
    given = len(network.live)
    for kind in kinds:
        KINDS[kind](network)
        if max(int(np.prod(one.shape)) for one in network.live) > LARGEST:
            network.live.pop()
            break
    if len(network.live) == given:
        network.identity()
    return network


def models(network: Network) -> tuple[bytes, bytes, list[str]]:
    """Return the QOperator model, the QDQ model, and the names of the tensors that both output."""
    made = [one.name for one in network.live if one.name not in network.inputs]
    used = {name for nodes in (network.qoperator, network.qdq) for one in nodes for name in one.input}
    constants = {name: value for name, value in network.constants.items() if name in used}
    both = [model(nodes, network.inputs, made, constants) for nodes in (network.qoperator, network.qdq)]
    return both[0], both[1], made


def feeds(network: Network) -> dict[str, Array]:
    found: dict[str, Array] = {}
    for name, (dtype, shape) in network.inputs.items():
        if dtype == "float32":
            made = next(one for one in network.live if f"{one.name}.float" == name)
            bounds = np.iinfo(made.dtype)
            numbers = network.rng.uniform(bounds.min - 9, bounds.max + 9, shape) - made.zero
            found[name] = (numbers * made.scale).astype(np.float32)
        else:
            bounds = np.iinfo(dtype)
            found[name] = network.rng.integers(bounds.min, bounds.max + 1, shape).astype(dtype)
    return found
