from collections.abc import Sequence

import numpy as np

from accel.graph.elementwise_operators import Add, Clip, Function, Softmax
from accel.graph.graph import Graph
from accel.graph.graph_builder import Builder
from accel.graph.graph_evaluation import evaluate
from accel.graph.graph_tensor import Quantization, Tensor
from accel.graph.movement_operators import Reshape
from accel.graph.pooling_operators import GlobalAveragePool, MaxPool
from accel.graph.product_operators import Conv, MatMul
from accel.graph.window_geometry import Windows
from accel.network.network import Network
from accel.network.network_program import NetworkProgram

MACHINE = "vta-int8"


def windows(kernel: int, *, stride: int = 1, pad: int = 0, rank: int = 2) -> Windows:
    """Windows with the same attributes along all axes."""
    return Windows(
        kernel=(kernel,) * rank,
        strides=(stride,) * rank,
        dilations=(1,) * rank,
        begin=(pad,) * rank,
        end=(pad,) * rank,
    )


class Small:
    """A builder of graphs with one input ``x``."""

    def __init__(self, shape: Sequence[int], *, dtype: str = "int8", seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.builder = Builder()
        self.zero = 117 if dtype == "uint8" else -11
        self.zero_out: int | None = None
        quantization = Quantization.of(0.05, self.zero)
        self.builder.input(Tensor(name="x", shape=tuple(shape), dtype=dtype, quantization=quantization))

    def weights(self, name: str, shape: Sequence[int], *, dtype: str = "int8", zero: int = 0) -> str:
        bounds = np.iinfo(dtype)
        values = self.rng.integers(bounds.min, bounds.max, tuple(shape), dtype, endpoint=True)
        return self.builder.constant(name, values, Quantization.of(0.01, zero))

    def conv(
        self,
        source: str,
        output: str,
        channels: int,
        kernel: int = 3,
        *,
        stride: int = 1,
        pad: int = 0,
        groups: int = 1,
        dtype: str | None = None,
        weights: tuple[str, int] = ("int8", 0),
    ) -> str:
        data = self.builder.tensors[source]
        rank = len(data.shape) - 2
        shape = (channels, data.shape[1] // groups, *[kernel] * rank)
        names = [source, self.weights(f"{output}_w", shape, dtype=weights[0], zero=weights[1])]
        bias = self.rng.integers(-5000, 5000, channels, np.int32)
        names.append(self.builder.constant(f"{output}_b", bias))
        operator = Conv(windows=windows(kernel, stride=stride, pad=pad, rank=rank), groups=groups)
        return self._emit(operator, names, output, 0.3, dtype)

    def matmul(
        self, source: str, output: str, columns: int, *, weights: tuple[str, int] = ("int8", 0)
    ) -> str:
        depth = self.builder.tensors[source].shape[-1]
        shape = (depth, columns)
        names = [source, self.weights(f"{output}_w", shape, dtype=weights[0], zero=weights[1])]
        return self._emit(MatMul(), names, output, 0.2, None)

    def add(self, left: str, right: str, output: str) -> str:
        return self._emit(Add(), [left, right], output, 0.35, None)

    def clip(self, source: str, output: str, low: int | None, high: int | None) -> str:
        return self.builder.emit(Clip(low=low, high=high), [source], output)

    def sigmoid(self, source: str, output: str) -> str:
        """Add a function that no scale and bias compute, so that machines without tables leave it to the
        host."""
        return self._emit(Function(function="Sigmoid"), [source], output, 1 / 256, None)

    def softmax(self, source: str, output: str) -> str:
        return self._emit(Softmax(axes=(1,)), [source], output, 1 / 256, None)

    def mean(self, source: str, output: str) -> str:
        return self._emit(GlobalAveragePool(), [source], output, 0.1, None)

    def largest(self, source: str, output: str) -> str:
        return self.builder.emit(MaxPool(windows=windows(3, stride=2, pad=1)), [source], output)

    def graph(self, *outputs: str) -> Graph:
        return self.builder.graph("small", outputs)

    def _emit(self, operator, names, output, scale, dtype) -> str:  # type: ignore[no-untyped-def]
        kind = dtype or self.builder.tensors[names[0]].dtype
        zero = 100 if kind == "uint8" else 3
        zero = zero if self.zero_out is None else self.zero_out
        return self.builder.emit(
            operator, names, output, dtype=kind, quantization=Quantization.of(scale, zero)
        )


def divided_network() -> Graph:
    """Two programs with a Softmax between them, which the host computes."""
    small = Small((1, 32, 9, 9))
    first = small.conv("x", "a", 64, pad=1)
    small.conv(small.softmax(first, "t"), "b", 16, 1)
    return small.graph("b")


def residual_network(dtype: str = "int8") -> Graph:
    """Two convolutions with a residual, bounds, a mean and a matrix product."""
    small = Small((1, 20, 9, 7), dtype=dtype)
    small.conv("x", "a", 24, pad=1, stride=2)
    small.clip("a", "a_relu", 120 if dtype == "uint8" else 10, None)
    small.conv("a_relu", "b", 24, pad=1)
    small.add("a_relu", "b", "c")
    small.clip("c", "c_relu", None, 200 if dtype == "uint8" else 100)
    small.mean("c_relu", "m")
    small.builder.emit(Reshape(sizes=(1, 24)), ["m"], "f")
    small.matmul("f", "y", 10)
    return small.graph("y")


def assert_programs(graph: Graph, count: int, on: str = MACHINE) -> NetworkProgram:
    """Check the number of a network's programs, and its outputs for random inputs."""
    program = Network(graph=graph).build(on)
    assert len(program.chains) == count
    inputs = program.random_inputs()
    result = program.run(inputs)
    result.raise_if_wrong()
    expected = evaluate(graph, inputs)
    for name in graph.outputs:
        assert np.array_equal(result.outputs[name], expected[name])
    return program
