"""Pooling computed without the compiler, and random workloads."""

from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

import accel
from accel.core.config import Config

Array = npt.NDArray[Any]


def windows(workload: accel.Workload, data: Array) -> list[list[Array]]:
    """Values of the input in each window, row by row: arrays (N, C, elements)."""
    sizes = workload.parameters
    (KH, KW), (SY, SX), (DY, DX) = sizes["kernel"], sizes["stride"], sizes["dilation"]
    top, left, bottom, right = sizes["padding"]
    rows = range(-top, sizes["H"] + bottom - (KH - 1) * DY, SY)
    columns = range(-left, sizes["W"] + right - (KW - 1) * DX, SX)
    return [
        [
            np.stack(
                [
                    data[:, :, y + dy * DY, x + dx * DX]
                    for dy, dx in product(range(KH), range(KW))
                    if 0 <= y + dy * DY < sizes["H"] and 0 <= x + dx * DX < sizes["W"]
                ],
                axis=-1,
            )
            for x in columns
        ]
        for y in rows
    ]


def maxima(workload: accel.Workload, data: Array) -> Array:
    rows = [[window.max(axis=-1) for window in row] for row in windows(workload, data)]
    return np.array(rows).transpose(2, 3, 0, 1)


def sums_and_counts(workload: accel.Workload, data: Array) -> tuple[Array, Array]:
    """Sums (N, C, OH, OW) in int64, and the number of values in each window (OH, OW)."""
    found = windows(workload, data)
    sums = np.array([[window.sum(axis=-1, dtype=np.int64) for window in row] for row in found])
    counts = np.array([[window.shape[-1] for window in row] for row in found])
    if workload.parameters["count_padding"]:
        counts[:] = np.prod(workload.parameters["kernel"])
    return sums.transpose(2, 3, 0, 1), counts


def some_data(workload: accel.Workload, seed: int) -> Array:
    """Random int8 values with many extremes."""
    sizes = workload.parameters
    rng = np.random.default_rng(seed)
    data = rng.integers(-128, 128, [sizes[n] for n in "NCHW"], dtype=np.int8)
    if seed % 3 == 0:
        data = np.where(rng.integers(0, 2, data.shape), np.int8(127 if seed % 2 else -128), data)
    return data


def is_seen(size: int, kernel: int, stride: int, dilation: int, before: int, after: int) -> bool:
    """Whether at least one window exists, and each contains some of the input."""
    reach = (kernel - 1) * dilation + 1
    starts = range(-before, size + after - reach + 1, stride)
    return len(starts) > 0 and all(
        any(0 <= start + n * dilation < size for n in range(kernel)) for start in starts
    )


@st.composite
def pools(draw: st.DrawFn, config: Config, kind: str, most: int = 2) -> accel.Workload:
    """Draw up to ``most`` blocks of channels, and windows that each contain some of the input."""

    def line() -> tuple[int, ...]:
        numbers = st.tuples(
            *(st.integers(*ends) for ends in ((1, 9), (1, 4), (1, 4), (1, 2), (0, 3), (0, 3)))
        )
        return draw(numbers.filter(lambda n: is_seen(*n)))

    (height, width), kernel, stride, dilation, (top, left), (bottom, right) = zip(line(), line(), strict=True)
    channels = draw(st.integers(1, most * config.block_out))
    batch = draw(st.integers(1, 2 * config.batch)) if config.batch < 8 else draw(st.sampled_from([1, 9]))
    shape = batch, channels, height, width, kernel
    window = {"stride": stride, "padding": (top, left, bottom, right), "dilation": dilation}
    if kind == "max":
        return accel.max_pool2d(*shape, **window)
    return accel.avg_pool2d(*shape, **window, count_padding=draw(st.booleans()))
