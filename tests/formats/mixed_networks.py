"""Random networks of quantized layers, float operators, and operators that only ONNX Runtime has.

    python -m tests.formats.mixed_networks [--count 2000] [--seed 0] [--machine vta-int8]

Each network is imported and compared with ONNX Runtime twice, as ``accel verify`` does: operator by
operator, and with the original file under all optimizations. Then it is compiled, run on the functional
simulator, and every result of the machine is compared with numpy.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from accel.formats.compare_with_original import compare_with_original
from accel.formats.compare_with_runtime import Comparison, compare
from accel.formats.onnx_import import load_onnx
from accel.formats.onnx_runtime import saturates
from accel.network.network import Network
from tests.formats.runtime import model, node

Shape = tuple[int, ...]


@dataclass
class Mixed:
    """A network in the making. ``name`` is its latest float tensor, with channels along axis 1."""

    rng: np.random.Generator
    shape: Shape
    name: str = "x"
    size: float = 1.0
    """Rough size of the latest tensor's numbers."""
    nodes: list[Any] = field(default_factory=list)
    constants: dict[str, Any] = field(default_factory=dict)
    inputs: dict[str, tuple[str, Shape]] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    count: int = 0

    def fresh(self, what: str) -> str:
        self.count += 1
        return f"{what}{self.count}"

    def integer(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def constant(self, value: Any) -> str:
        name = self.fresh("c")
        self.constants[name] = np.asarray(value)
        return name

    def add(
        self, kind: str, inputs: list[str], shape: Shape | None = None, size: float = 1.0, **more: Any
    ) -> str:
        """Add a node on float tensors. It becomes the latest if its shape is given."""
        output = self.fresh("t")
        self.nodes.append(node(kind, inputs, output, **more))
        if shape is not None:
            self.name, self.shape, self.size = output, shape, self.size * size
        return output

    def quantized(self, name: str, size: float) -> str:
        """Return the tensor after QuantizeLinear and DequantizeLinear."""
        dtype = np.uint8 if self.chance(0.3) else np.int8
        zero = dtype(self.integer(100, 150) if dtype is np.uint8 else self.integer(-20, 20))
        scale = self.constant(np.float32(size / 128 * 10 ** self.rng.uniform(-0.4, 0.4)))
        pair = [scale, self.constant(zero)]
        integers = self.add("QuantizeLinear", [name, *pair])
        return self.add("DequantizeLinear", [integers, *pair])

    def weights(self, shape: Shape, axis: int) -> tuple[str, float]:
        """Return dequantized int8 weights, and the size of their numbers."""
        values = self.rng.integers(-127, 128, shape).astype(np.int8)
        per_channel = self.chance(0.5)
        count = shape[axis] if per_channel else 1
        scales = self.rng.uniform(0.001, 0.01, count).astype(np.float32)
        pair = [self.constant(scales if per_channel else scales[0])]
        pair.append(self.constant(np.zeros(count, np.int8) if per_channel else np.int8(0)))
        return self.add("DequantizeLinear", [self.constant(values), *pair], axis=axis), 0.4

    def end(self) -> None:
        """Quantize the latest tensor, or leave it in float."""
        if self.chance(0.8):
            self.name = self.quantized(self.name, self.size)


def _conv(net: Mixed) -> None:
    data = net.quantized(net.name, net.size)
    channels, outputs = net.shape[1], net.integer(1, 20)
    kernel = tuple(net.integer(1, min(3, n)) for n in net.shape[2:])
    weights, size = net.weights((outputs, channels, *kernel), 0)
    operands = [data, weights]
    if net.chance(0.5):
        operands.append(net.constant(net.rng.normal(size=outputs).astype(np.float32)))
    sizes = tuple(n - k + 1 for n, k in zip(net.shape[2:], kernel, strict=True))
    grown = size * float(np.sqrt(channels * np.prod(kernel)))
    net.add("Conv", operands, (net.shape[0], outputs, *sizes), grown)
    net.end()


def _conv_transpose(net: Mixed) -> None:
    data = net.quantized(net.name, net.size)
    channels, outputs = net.shape[1], net.integer(1, 9)
    rank = len(net.shape) - 2
    kernel, stride = net.integer(1, 3), net.integer(1, 2)
    weights, size = net.weights((channels, outputs, *[kernel] * rank), 1)
    sizes = tuple((n - 1) * stride + kernel for n in net.shape[2:])
    grown = size * float(np.sqrt(channels) * kernel)
    shape = (net.shape[0], outputs, *sizes)
    net.add("ConvTranspose", [data, weights], shape, grown, strides=[stride] * rank)
    net.end()


def _dynamic(net: Mixed) -> None:
    """A convolution as quantize_dynamic writes it."""
    channels, outputs = net.shape[1], net.integer(1, 12)
    kernel = tuple(net.integer(1, min(3, n)) for n in net.shape[2:])
    values, scale, zero = (net.fresh("d") for _ in range(3))
    net.nodes.append(node("DynamicQuantizeLinear", [net.name], values, scale, zero))
    weights = net.constant(net.rng.integers(-127, 128, (outputs, channels, *kernel)).astype(np.int8))
    pads = [net.integer(0, k - 1) for k in kernel * 2]
    sums = net.add("ConvInteger", [values, weights, zero, net.constant(np.int8(0))], pads=pads)
    numbers = net.add("Cast", [sums], to=1)
    factor = net.add("Mul", [scale, net.constant(np.float32(0.005))])
    rank = len(kernel)
    around = [a + b for a, b in zip(pads[:rank], pads[rank:], strict=True)]
    sizes = tuple(n - k + 1 + more for n, k, more in zip(net.shape[2:], kernel, around, strict=True))
    grown = 0.4 * float(np.sqrt(channels * np.prod(kernel)))
    net.add("Mul", [numbers, factor], (net.shape[0], outputs, *sizes), grown)
    net.end()


def _two_quantizes(net: Mixed) -> None:
    scale, zero = net.constant(np.float32(net.size / 100)), net.constant(np.int8(5))
    both = []
    for _ in range(2):
        integers = net.add("QuantizeLinear", [net.name, scale, zero])
        both.append(net.add("DequantizeLinear", [integers, scale, zero]))
    net.add("Add", both, net.shape, 2.0)
    net.end()


def _channels_last(net: Mixed) -> None:
    rank = len(net.shape)
    there, back = [0, *range(2, rank), 1], [0, rank - 1, *range(1, rank - 1)]
    turned = net.add("Transpose", [net.name], perm=there)
    channels = net.shape[1]
    factor = net.constant(net.rng.uniform(0.5, 2, channels).astype(np.float32))
    summand = net.constant((net.rng.normal(size=channels) * net.size).astype(np.float32))
    scaled = net.add("Mul", [turned, factor])
    if net.chance(0.5):
        scaled = net.quantized(scaled, net.size * 2)
    net.add("Transpose", [net.add("Add", [scaled, summand])], net.shape, 3.0, perm=back)
    net.end()


def _maximum(net: Mixed) -> None:
    data = net.quantized(net.name, net.size)
    axis = net.integer(1, len(net.shape) - 1)
    shape = tuple(1 if n == axis else size for n, size in enumerate(net.shape))
    net.add("ReduceMax", [data], shape, axes=[axis], keepdims=1)
    net.end()


def _unary(kind: str, size: float = 1.0, **attributes: Any) -> Callable[[Mixed], None]:
    def step(net: Mixed) -> None:
        net.add(kind, [net.name], net.shape, size, **attributes)
        if kind in {"Sigmoid", "Tanh", "Softmax", "LayerNormalization"}:
            net.size = 2.0
        net.end()

    return step


def _resize(net: Mixed) -> None:
    rank = len(net.shape) - 2
    scales = net.constant(np.float32([1, 1, *[2] * rank]))
    shape = (*net.shape[:2], *(2 * n for n in net.shape[2:]))
    mode = ("nearest", "linear")[net.integer(0, 1)]
    net.add("Resize", [net.name, net.constant(np.zeros(0, np.float32)), scales], shape, mode=mode)
    net.end()


def _normalize(net: Mixed) -> None:
    length = net.shape[-1]
    operands = [
        net.name,
        net.constant(np.ones(length, np.float32)),
        net.constant(np.zeros(length, np.float32)),
    ]
    net.add("LayerNormalization", operands, net.shape, axis=-1)
    net.size = 2.0
    net.end()


def _einsum(net: Mixed) -> None:
    letters = "nc" + "ijk"[: len(net.shape) - 2]
    matrix = net.constant((net.rng.normal(size=(net.shape[1], 5)) * 0.3).astype(np.float32))
    result = letters.replace("c", "o")
    equation = f"{letters},co->{result}"
    net.add("Einsum", [net.name, matrix], (net.shape[0], 5, *net.shape[2:]), 2.0, equation=equation)
    net.end()


def _lstm(net: Mixed) -> None:
    """Channels become steps, and the rest one vector each."""
    length, steps = int(np.prod(net.shape[2:])), net.shape[1]
    flat = net.add("Reshape", [net.name, net.constant(np.array([steps, net.shape[0], length]))])
    hidden = net.integer(1, 6)
    weights = [
        net.constant((net.rng.normal(size=(1, 4 * hidden, n)) * 0.3).astype(np.float32))
        for n in (length, hidden)
    ]
    every = net.add("LSTM", [flat, *weights], hidden_size=hidden)
    shape = (net.shape[0], steps, hidden, 1)
    net.add("Reshape", [every, net.constant(np.array(shape))], shape)
    net.size = 1.0
    net.end()


def _masked(net: Mixed) -> None:
    mask = net.add("Greater", [net.name, net.constant(np.float32(0))])
    net.add("Where", [mask, net.name, net.constant(np.float32(0.1))], net.shape)
    net.end()


def _second_input(net: Mixed) -> None:
    name = net.fresh("in")
    shape = (net.shape[1], *[1] * (len(net.shape) - 2))
    net.inputs[name] = ("float32", shape)
    net.add("Add", [net.name, name], net.shape)
    net.size += 1
    net.end()


def _output(net: Mixed) -> None:
    if net.name != "x" and net.name not in net.outputs:
        net.outputs.append(net.name)


def _function(net: Mixed) -> None:
    """Quantized on both sides, as x * Sigmoid(x)."""
    data = net.quantized(net.name, net.size)
    gate = net.add("Sigmoid", [data])
    net.add("Mul", [data, gate], net.shape)
    net.name = net.quantized(net.name, net.size)


STEPS: dict[str, Callable[[Mixed], None]] = {
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "ConvInteger": _dynamic,
    "two Quantizes": _two_quantizes,
    "channels last": _channels_last,
    "ReduceMax": _maximum,
    "Relu": _unary("Relu"),
    "LeakyRelu": _unary("LeakyRelu", alpha=0.1),
    "Elu": _unary("Elu"),
    "Tanh": _unary("Tanh"),
    "Softmax": _unary("Softmax", axis=1),
    "Resize": _resize,
    "LayerNormalization": _normalize,
    "Einsum": _einsum,
    "LSTM": _lstm,
    "Where": _masked,
    "second input": _second_input,
    "output": _output,
    "x * Sigmoid(x)": _function,
}


def generate(seed: int) -> tuple[bytes, dict[str, Shape], list[str]]:
    """Return a random model, the shapes of its inputs, and the steps that made it."""
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 3))
    net = Mixed(rng, (1, int(rng.integers(1, 20)), *(int(n) for n in rng.integers(3, 9, rank))))
    shape = net.shape
    net.inputs["x"] = ("float32", shape)
    names = list(STEPS)
    for _ in range(net.integer(2, 7)):
        kind = names[net.integer(0, len(names) - 1)]
        if np.prod(net.shape) > 4000 and kind in {"Resize", "ConvTranspose"}:
            continue
        STEPS[kind](net)
        net.kinds.append(kind)
    if net.name == "x":
        _conv(net)
    if net.name not in net.outputs:
        net.outputs.append(net.name)
    if net.chance(0.2):
        positive = net.add("Greater", [net.name, net.constant(np.float32(0))])
        net.outputs.append(net.add("NonZero", [positive]))
        net.kinds.append("NonZero")
    shapes = {name: sizes for name, (_, sizes) in net.inputs.items()}
    declared: dict[str, Any] = dict(net.inputs)
    if net.chance(0.3):
        declared["x"] = ("float32", (1, shape[1], *(f"size{n}" for n in range(rank))))
        net.kinds.append("open sizes")
    return model(net.nodes, declared, net.outputs, net.constants), shapes, net.kinds


def differing(comparison: Comparison) -> set[str]:
    return {one.name for one in comparison.tensors if one.differing}


def check(seed: int, machine: str) -> list[str]:
    """Import, compare, compile and run one network.

    Returns:
        The steps that made it.

    Raises:
        Exception: it cannot be imported or compiled, or a tensor differs from ONNX Runtime's with and without
            optimizations. With them it removes a Quantize between two others, for example.
    """
    content, shapes, kinds = generate(seed)
    rng = np.random.default_rng(seed)
    inputs = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "mixed.onnx")
        path.write_bytes(content)
        graph = load_onnx(path, shapes=shapes)
        compare(graph, inputs).raise_if_bad()
        if not saturates():
            original = compare_with_original(graph, path, inputs)
            if original.first is not None:
                plain = compare_with_original(graph, path, inputs, optimized=False)
                if differing(original) & differing(plain):
                    original.raise_if_bad()
    result = Network(graph=graph).build(machine).run(inputs, backend="functional")
    result.raise_if_wrong()
    assert list(result.outputs) == list(graph.result_names)
    return kinds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=2000, help="number of networks")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first network")
    parser.add_argument("--machine", default="vta-int8", help="configuration")
    chosen = parser.parse_args()
    found: Counter[str] = Counter()
    for seed in range(chosen.seed, chosen.seed + chosen.count):
        try:
            found.update(check(seed, chosen.machine))
        except Exception as error:
            raise SystemExit(f"seed {seed}, {generate(seed)[2]}: {error}") from error
        found["networks"] += 1
    print(f"networks: {found.pop('networks', 0)}")
    print(", ".join(f"{count} {kind}" for kind, count in sorted(found.items())))


if __name__ == "__main__":
    main()
