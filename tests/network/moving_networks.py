"""Random networks of convolutions with moves between them."""

import numpy as np

from accel.graph.elementwise_operators import Add, Clip, Requantize
from accel.graph.graph import Graph
from accel.graph.graph_builder import Builder
from accel.graph.graph_operator import Operator
from accel.graph.graph_tensor import Quantization, Tensor
from accel.graph.movement_operators import (
    Concat,
    DepthToSpace,
    Pad,
    Slice,
    SpaceToDepth,
    Take,
)
from accel.graph.pooling_operators import GlobalAveragePool, MaxPool
from accel.graph.product_operators import Conv
from tests.network.networks import windows

MOST_VALUES = 24 * 1024


class Moving:
    """A builder of random networks, all of whose tensors are int8 (N, C, H, W)."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.builder = Builder()
        self.count = 0
        size = int(self.rng.integers(1, 5)) * 2
        shape = (int(self.rng.choice([1, 1, 1, 2])), int(self.rng.integers(2, 20)), size, size)
        self.builder.input(Tensor(name="x", shape=shape, dtype="int8", quantization=self.quantization()))
        self.names = [self.conv("x")]

    def quantization(self) -> Quantization:
        return Quantization.of(float(self.rng.uniform(0.03, 0.06)), int(self.rng.integers(-20, 20)))

    def fresh(self) -> str:
        self.count += 1
        return f"t{self.count}"

    def shape(self, name: str) -> tuple[int, ...]:
        return self.builder.tensors[name].shape

    def some(self) -> str:
        return str(self.rng.choice(self.names[-5:]))

    def emit(self, operator: Operator, *names: str, new: bool = False) -> str:
        tensor = self.builder.tensors[names[0]]
        quantization = self.quantization() if new else tensor.quantization
        return self.builder.emit(operator, names, self.fresh(), dtype="int8", quantization=quantization)

    def conv(self, source: str, channels: int = 0, *, depthwise: bool = False) -> str:
        data = self.shape(source)
        channels = data[1] if depthwise else channels or int(self.rng.integers(1, 40))
        groups = data[1] if depthwise else 1
        kernel = int(self.rng.choice([1, 3]))
        values = self.rng.integers(-128, 128, (channels, data[1] // groups, kernel, kernel)).astype(np.int8)
        is_wide = self.rng.integers(2)
        scales = self.rng.uniform(0.001, 0.004, channels if is_wide else 1)
        weight_scales = Quantization.of(scales, 0, 0 if is_wide and channels > 1 else None)
        weights = self.builder.constant(f"w{self.count}_{source}", values, weight_scales)
        numbers = self.rng.integers(-5000, 5000, channels).astype(np.int32)
        bias = self.builder.constant(f"b{self.count}_{source}", numbers)
        operator = Conv(windows=windows(kernel, pad=kernel // 2), groups=groups)
        return self.emit(operator, source, weights, bias, new=True)

    def like(self, source: str, other: str) -> str:
        """Return a tensor with the quantization of another one."""
        one, wanted = self.builder.tensors[source], self.builder.tensors[other].quantization
        if one.quantization == wanted:
            return source
        return self.builder.emit(Requantize(), [source], self.fresh(), dtype="int8", quantization=wanted)

    # --- steps, which return a new tensor ----------------------------------------------------------

    def concat(self) -> str:
        first = self.some()
        size = self.shape(first)[2:]
        fitting = [name for name in self.names if self.shape(name)[2:] == size]
        others = [str(self.rng.choice(fitting)) for _ in range(int(self.rng.integers(1, 3)))]
        return self.emit(Concat(axis=1), first, *(self.like(one, first) for one in others))

    def slice(self) -> str:
        source = self.some()
        shape = self.shape(source)
        start = int(self.rng.integers(shape[1]))
        count = int(self.rng.integers(1, shape[1] - start + 1))
        sizes = (shape[0], count, *shape[2:])
        return self.emit(Slice(starts=(0, start, 0, 0), sizes=sizes, steps=(1, 1, 1, 1)), source)

    def shuffle(self) -> str:
        source = self.some()
        order = self.rng.permutation(self.shape(source)[1])
        return self.emit(Take(axis=1, indices=tuple(map(int, order))), source)

    def pad(self) -> str:
        source = self.some()
        quantization = self.builder.tensors[source].quantization
        assert quantization is not None
        begin, end = int(self.rng.choice([0, 0, 3])), int(self.rng.integers(1, 12))
        value = int(self.rng.choice([quantization.zero[0], 5]))
        return self.emit(Pad(begin=(0, begin, 0, 0), end=(0, end, 0, 0), value=value), source)

    def clip(self) -> str:
        return self.emit(Clip(low=int(self.rng.integers(-60, 0))), self.some())

    def pool(self) -> str:
        return self.emit(MaxPool(windows=windows(3, pad=1)), self.some())

    def add(self) -> str:
        source = self.some()
        other = self.conv(source, self.shape(source)[1]) if self.rng.integers(2) else self.some()
        if self.shape(other) != self.shape(source):
            other = source
        return self.emit(Add(), source, other, new=True)

    def repeat(self) -> str:
        source, axis, factor = self.some(), int(self.rng.choice([2, 3])), int(self.rng.choice([2, 3]))
        indices = tuple(np.repeat(np.arange(self.shape(source)[axis]), factor).tolist())
        return self.emit(Take(axis=axis, indices=indices), source)

    def space(self) -> str:
        source = self.some()
        shape = self.shape(source)
        if shape[2] % 2 == 0 and shape[3] % 2 == 0 and self.rng.integers(2):
            return self.emit(SpaceToDepth(block=2), source)
        wide = self.conv(source, 4 * int(self.rng.integers(1, 9)))
        return self.emit(DepthToSpace(block=2, columns_first=bool(self.rng.integers(2))), wide)

    def step(self, kinds: tuple[str, ...]) -> None:
        kind = str(self.rng.choice(kinds))
        if kind in ("conv", "depthwise"):
            name = self.conv(self.some(), depthwise=kind == "depthwise")
        else:
            name = getattr(self, kind)()
        if int(np.prod(self.shape(name))) <= MOST_VALUES:
            self.names.append(name)

    def graph(self) -> Graph:
        """Return the network, whose outputs are a convolution of the last tensor, and its average."""
        last = self.conv(self.names[-1], 5)
        mean = self.emit(GlobalAveragePool(), self.names[-1], new=True)
        outputs = [last, mean]
        if not self.rng.integers(3):
            outputs.append(self.some())
        return self.builder.graph("moving", list(dict.fromkeys(outputs)))


CHANNELS = ("concat", "slice", "shuffle", "pad", "clip", "pool", "add", "conv", "depthwise", "concat")
PIXELS = (*CHANNELS, "repeat", "space")
SUMS = ("add", "concat", "repeat", "slice", "space", "add")


def moving_network(seed: int, steps: int, kinds: tuple[str, ...] = CHANNELS) -> Graph:
    made = Moving(seed)
    for _ in range(steps):
        made.step(kinds)
    return made.graph()
