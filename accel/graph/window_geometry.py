"""Windows that slide over the last axes of a tensor."""

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np
from msgspec import Struct

from accel.base.errors import GraphError
from accel.base.records import replace
from accel.graph.graph_tensor import Array, Shape

MAX_TAPS = 1 << 20


class Windows(Struct, frozen=True, kw_only=True):
    """Each attribute has one number for each sliding axis.

    Attributes:
        dilations: distances between the taps of a window.
    """

    kernel: Shape
    strides: Shape
    dilations: Shape
    begin: Shape
    end: Shape

    def __post_init__(self) -> None:
        attributes = (self.kernel, self.strides, self.dilations, self.begin, self.end)
        text = (
            f"a window has kernel {self.kernel}, strides {self.strides}, dilations {self.dilations} and "
            f"pads {self.begin} and {self.end}"
        )
        if len({len(one) for one in attributes}) != 1 or not self.kernel:
            raise GraphError(f"{text}; each must have one number for each axis")
        if min(*self.kernel, *self.strides, *self.dilations) < 1 or min(*self.begin, *self.end) < 0:
            raise GraphError(f"{text}; pads must be 0 or more, the others 1 or more")
        if prod(self.kernel) > MAX_TAPS:
            raise GraphError(f"a window has {prod(self.kernel)} taps; it may have {MAX_TAPS}")

    @property
    def rank(self) -> int:
        return len(self.kernel)

    @property
    def extents(self) -> Shape:
        return tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True))

    def outputs(self, sizes: Shape) -> Shape:
        if len(sizes) != self.rank:
            raise GraphError(f"windows slide along {self.rank} axes; the tensor has {len(sizes)} of them")
        padded = tuple(n + a + b for n, a, b in zip(sizes, self.begin, self.end, strict=True))
        if any(n < extent for n, extent in zip(padded, self.extents, strict=True)):
            raise GraphError(
                f"a window covers {self.extents}; the padded input has {padded}, where none fits"
            )
        return self._count_windows(padded)

    def _count_windows(self, padded: Shape) -> Shape:
        return tuple(
            (n - extent) // stride + 1
            for n, extent, stride in zip(padded, self.extents, self.strides, strict=True)
        )

    def transposed_sizes(self, sizes: Shape) -> Shape:
        """Return the sizes that one window for each value covers, without cropping."""
        return tuple(
            (n - 1) * stride + extent
            for n, stride, extent in zip(sizes, self.strides, self.extents, strict=True)
        )

    def same_padding(self, sizes: Shape) -> Shape:
        """Return the padding that gives ``ceil(size / stride)`` windows."""
        counts = tuple(-(-n // stride) for n, stride in zip(sizes, self.strides, strict=True))
        needed = self.transposed_sizes(counts)
        return tuple(max(0, need - n) for need, n in zip(needed, sizes, strict=True))

    def with_padding(self, totals: Sequence[int], *, more_at_end: bool = True) -> "Windows":
        """Of an odd total, one side gets one more."""
        less, more = tuple(n // 2 for n in totals), tuple(n - n // 2 for n in totals)
        begin, end = (less, more) if more_at_end else (more, less)
        return replace(self, begin=begin, end=end)

    def taps_inside(self, sizes: Shape) -> list[Array]:
        """Return which taps of windows lie in the unpadded tensor: bool (windows, taps) for each axis."""
        found = []
        for axis, (size, count) in enumerate(zip(sizes, self.outputs(sizes), strict=True)):
            starts = np.arange(count) * self.strides[axis] - self.begin[axis]
            places = starts[:, None] + np.arange(self.kernel[axis]) * self.dilations[axis]
            found.append(np.asarray((places >= 0) & (places < size)))
        return found

    def padded(self, values: Array, fill: float | int) -> Array:
        around = [(0, 0)] * (values.ndim - self.rank) + list(zip(self.begin, self.end, strict=True))
        return np.pad(values, around, constant_values=fill) if any(map(any, around)) else values

    def taps(self, padded: Array) -> Iterator[tuple[Shape, Array]]:
        outputs = self._count_windows(padded.shape[padded.ndim - self.rank :])
        for tap in product(*map(range, self.kernel)):
            slices: list[Any] = [...]
            slices += (
                slice(t * d, t * d + (count - 1) * s + 1, s)
                for t, d, s, count in zip(tap, self.dilations, self.strides, outputs, strict=True)
            )
            yield tap, padded[tuple(slices)]
