"""Convolutions computed without the compiler, and random ones."""

from collections.abc import Callable, Mapping, Sequence
from itertools import count, product
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

import accel
from accel.core.config import Config
from tests.compiler.verdicts import program_is_right

Array = npt.NDArray[Any]
Operations = st.SearchStrategy[Sequence[tuple[str, int | str]]]
NO_OPERATIONS: Operations = st.just(())


def expected(workload: accel.Workload, inputs: Mapping[str, Array]) -> Array:
    """Compute a convolution or dense layer with numpy's windows and int64 sums."""
    sizes = workload.parameters
    data, weight = (inputs[name].astype(np.int64) for name in ("data", "weight"))
    if workload.name == "dense":
        sums = data @ weight.T
    elif workload.name == "conv2d_transpose":
        sums = scattered(data, weight, sizes)
    else:
        top, left, bottom, right = sizes["padding"]
        down, across = sizes["stride"]
        padded = np.pad(data, ((0, 0), (0, 0), (top, bottom), (left, right)))
        reach = [(k - 1) * d + 1 for k, d in zip(sizes["kernel"], sizes["dilation"], strict=True)]
        windows = np.lib.stride_tricks.sliding_window_view(padded, tuple(reach), axis=(2, 3))
        dy, dx = sizes["dilation"]
        windows = windows[:, :, ::down, ::across, ::dy, ::dx]
        parts = zip(np.split(windows, sizes["groups"], 1), np.split(weight, sizes["groups"]), strict=True)
        sums = np.concatenate([np.einsum("ncyxij,ocij->noyx", *part) for part in parts], axis=1)
    return epilogue(sums, inputs.get("bias"), sizes, inputs.get("residual"), inputs)


def scattered(data: Array, weight: Array, sizes: Mapping[str, Any]) -> Array:
    """Compute a transposed convolution: add multiples of the kernel to the output, then cut
    off the padding."""
    (N, _, H, W), (_, OC, KH, KW) = data.shape, weight.shape
    (SY, SX), (below, beside) = sizes["stride"], sizes["output_padding"]
    top, left, bottom, right = sizes["padding"]
    sums = np.zeros((N, OC, (H - 1) * SY + KH + below, (W - 1) * SX + KW + beside), dtype=np.int64)
    for dy, dx in product(range(KH), range(KW)):
        part = np.einsum("nchw,co->nohw", data, weight[:, :, dy, dx])
        sums[:, :, dy : dy + (H - 1) * SY + 1 : SY, dx : dx + (W - 1) * SX + 1 : SX] += part
    return sums[:, :, top : sums.shape[2] - bottom, left : sums.shape[3] - right]


def epilogue(
    sums: Array,
    bias: Array | None,
    sizes: Mapping[str, Any],
    residual: Array | None = None,
    operands: Mapping[str, Array] = MappingProxyType({}),
) -> Array:
    """Apply the epilogue to sums whose second dimension is the channels."""
    per_channel = (1, -1) + (1,) * (sums.ndim - 2)
    value = sums.astype(np.int32).astype(np.int64)
    if bias is not None:
        value = value + bias.reshape(per_channel)
    value = value.astype(np.int32)
    value = operated(value, sizes.get("operations", ()), per_channel, operands)
    if sizes["shift"] is not None:
        value >>= sizes["shift"]
    if residual is not None:
        value = value + residual.astype(np.int32)
    if sizes["relu"]:
        value = np.maximum(value, 0)
    if residual is not None or sizes["relu"] or sizes["shift"] is not None or sizes["clip"] is not None:
        value = value.clip(*(sizes["clip"] or (-128, 127)))
    return value.astype(np.int8)


OPERATION_FORMULAS: dict[str, Callable[[Array, Array], Array]] = {
    "add": lambda x, y: x + y,
    "max": np.maximum,
    "min": np.minimum,
    "mul": lambda x, y: x * y,
    "shr": lambda x, y: np.where(
        y < 0, np.where(y > -32, x << np.clip(-y, 0, 31), 0), x >> np.clip(y, 0, 31)
    ),
    "t_gap": lambda x, y: abs(x - y),
    "t_product": lambda x, y: (np.sign(x * y) * ((abs(x * y) + (1 << 30)) >> 31)).clip(
        -(1 << 31), (1 << 31) - 1
    ),
    "t_nor": lambda x, y: ~(x | y),
    "t_and": lambda x, y: x & y,
    "t_saturate": lambda x, y: (x + y).clip(-(1 << 31), (1 << 31) - 1),
}
"""The operations on int64 numbers, without their declarations. The low 32 bits of a result count."""


def operated(
    value: Array, operations: Sequence[str], per_channel: tuple[int, ...], operands: Mapping[str, Array]
) -> Array:
    """Apply an epilogue's operations to int32 sums. ``per_channel`` is the shape of an operand."""
    names = (f"operand{number}" for number in count())
    for text in operations:
        name, _, given = text.partition("=")
        operand = np.array(int(given)) if given != "channel" else operands[next(names)].reshape(per_channel)
        value = OPERATION_FORMULAS[name](value.astype(np.int64), operand.astype(np.int64)).astype(np.int32)
    return value


def layer_is_right(program: accel.Program, workload: accel.Workload, seed: int = 0) -> None:
    """Compare with numpy, also when units execute in another order than the program's."""
    inputs = any_inputs(workload, seed)
    program_is_right(program, inputs, expected(workload, inputs))


def any_inputs(workload: accel.Workload, seed: int, bias: int = 1 << 20) -> dict[str, Array]:
    """Operands of all int8 values, and a bias of limited size."""
    rng = np.random.default_rng(seed)
    shapes = {read.tensor.name: read.tensor.shape for read in workload.factors}
    if shapes.keys().isdisjoint(("data", "A")):
        shapes.pop("window", None)
        shapes.pop("spread", None)
        sizes = workload.parameters
        shapes["data"] = (sizes["N"], sizes["IC"], sizes["H"], sizes["W"])
    if workload.residual is not None:
        shapes["residual"] = workload.residual.shape
    inputs: dict[str, Array] = {
        n: rng.integers(-128, 128, shape, dtype=np.int8) for n, shape in shapes.items()
    }
    if workload.bias is not None:
        inputs["bias"] = rng.integers(-bias, bias + 1, workload.bias.shape, dtype=np.int32)
    for tensor in workload.operands:
        values = rng.integers(-(1 << 31), 1 << 31, tensor.shape)
        small = rng.integers(-40, 40, tensor.shape)
        inputs[tensor.name] = np.where(rng.random(tensor.shape) < 0.5, values, small).astype(np.int32)
    return inputs


epilogues = st.fixed_dictionaries(
    {
        "bias": st.booleans(),
        "residual": st.booleans(),
        "relu": st.booleans(),
        "shift": st.none() | st.integers(0, 31),
        "clip": st.none() | st.tuples(st.integers(-128, 0), st.integers(0, 127)),
    }
)

operations = st.lists(
    st.tuples(
        st.sampled_from(sorted(OPERATION_FORMULAS)),
        st.just("channel") | st.integers(-(1 << 15), (1 << 15) - 1) | st.integers(-40, 40),
    ),
    max_size=3,
)
"""An epilogue's operations, which :data:`tests.own_operations.ELEMENTWISE` and VTA declare."""


def _taps(draw: st.DrawFn, size: int) -> tuple[int, int]:
    """Draw length and dilation of a kernel along a dimension of the padded input."""
    taps = draw(st.integers(1, min(5, size)))
    most = (size - 1) // (taps - 1) if taps > 1 else 2
    return taps, draw(st.just(1) | st.integers(1, min(3, most)))


@st.composite
def convolutions(
    draw: st.DrawFn, config: Config, most: int = 3, *, operations: Operations = NO_OPERATIONS
) -> accel.Workload:
    """Draw up to ``most`` blocks of channels, and kernels that may exceed the unpadded input."""
    height, width = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    top, left, bottom, right = (draw(st.integers(0, 3)) for _ in range(4))
    kernel, dilation = zip(
        *(_taps(draw, size) for size in (height + top + bottom, width + left + right)),
        strict=True,
    )
    channels = [draw(st.integers(1, most * n)) for n in (config.block_in, config.block_out)]
    groups = draw(st.just(1) | st.integers(1, most * max(config.block_in, config.block_out)))
    if groups > 1:
        channels = [draw(st.integers(1, -(-n // groups))) * groups for n in channels]
    return accel.conv2d(
        draw(st.integers(1, 2 * config.batch)) if config.batch < 8 else draw(st.sampled_from([1, 3, 9])),
        channels[0],
        height,
        width,
        channels[1],
        kernel,
        groups=groups,
        stride=(draw(st.integers(1, 3)), draw(st.integers(1, 3))),
        padding=(top, left, bottom, right),
        dilation=dilation,
        operations=draw(operations),
        **draw(epilogues),
    )


@st.composite
def transposed(
    draw: st.DrawFn,
    config: Config,
    most: int = 2,
    *,
    longest: int = 5,
    strides: tuple[int, int] = (1, 3),
    operations: Operations = NO_OPERATIONS,
) -> accel.Workload:
    """Draw up to ``most`` blocks of channels and kernels up to ``longest``. Strides may
    exceed the kernel."""

    def line() -> tuple[int, ...]:
        size, kernel, stride = (draw(st.integers(*ends)) for ends in ((1, 5), (1, longest), strides))
        added = draw(st.integers(0, stride - 1))
        whole = (size - 1) * stride + kernel + added
        before = draw(st.integers(0, min(kernel - 1, whole - 1)))
        return size, kernel, stride, added, before, draw(st.integers(0, min(kernel - 1, whole - 1 - before)))

    (height, width), kernel, stride, added, (top, left), (bottom, right) = zip(line(), line(), strict=True)
    return accel.conv2d_transpose(
        draw(st.integers(1, 2 * config.batch)) if config.batch < 8 else draw(st.sampled_from([1, 9])),
        draw(st.integers(1, most * config.block_in)),
        height,
        width,
        draw(st.integers(1, most * config.block_out)),
        kernel,
        stride=stride,
        padding=(top, left, bottom, right),
        output_padding=added,
        operations=draw(operations),
        **draw(epilogues),
    )
