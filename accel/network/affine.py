"""Functions of one quantized operand that the store unit computes: a line within bounds."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from accel.core.requantize import Scale, requantize

_Integers = npt.NDArray[np.int64]

_WEIGHTS = np.arange(1, 128)
_TRIED = 6
"""How many weights are tried, of those with which a whole bias comes closest to the line's offset."""
_HALVINGS = 60
"""Steps in which the best slope is found."""


@dataclass(frozen=True, kw_only=True)
class Affine:
    """``clamp(rne(float32(value * weight + bias) * scale) + zero, low, high)``.

    Attributes:
        weight: int8, not zero.
        bias: int32.
        scale: float32, positive.
        low, high: bounds of the result.
    """

    weight: int
    bias: int
    scale: float
    low: int
    high: int

    def values(self, values: _Integers, zero: int, bounds: tuple[int, int] | None = None) -> _Integers:
        """Its results, perhaps within other bounds.

        Args:
            values: of the operand, less its zero point.
            zero: the results' zero point.
            bounds: in place of its own.
        """
        word = Scale.of(self.scale)
        low, high = bounds or (self.low, self.high)
        return requantize(
            values * self.weight, self.bias, word.multiplier, word.exponent, zero=zero, low=low, high=high
        )


def find_affine(values: _Integers, results: _Integers, zero: int) -> Affine | None:
    """The function with a result for each value; None where no line has them.

    Args:
        values: of the operand, less its zero point, ascending.
        results: one for each.
        zero: the results' zero point.
    """
    return _find(tuple(values.tolist()), tuple(results.tolist()), zero)


@lru_cache(maxsize=4096)
def _find(values: tuple[int, ...], results: tuple[int, ...], zero: int) -> Affine | None:
    x, y = np.array(values), np.array(results)
    steps = np.diff(y)
    if (steps < 0).any() and (steps > 0).any():
        return None
    sign = -1 if (steps < 0).any() else 1
    low, high = int(y.min()), int(y.max())
    for weight, bias, scale in _candidates(sign * x, y - zero, low - zero, high - zero):
        found = Affine(weight=sign * weight, bias=bias, scale=scale, low=low, high=high)
        if np.array_equal(found.values(x, zero), y):
            return found
    return None


def _candidates(x: _Integers, y: _Integers, low: int, high: int) -> Iterator[tuple[int, int, float]]:
    """Weights, biases and scales of lines that come close to rising results."""
    origin = _through_origin(x, y, low, high)
    if origin is not None:
        yield 1, 0, float(np.float32(origin))
    slope, offset = _line(x, y, low, high)
    if not slope > 0:  # all results are one
        yield 1, 0, 1.0
        return
    biases = offset / slope * _WEIGHTS
    distances = np.abs(np.rint(biases) - biases) / _WEIGHTS
    for at in np.argsort(distances, kind="stable")[:_TRIED].tolist():
        yield at + 1, round(biases[at]), float(np.float32(slope / (at + 1)))


def _through_origin(x: _Integers, y: _Integers, low: int, high: int) -> float | None:
    """The middle of the slopes that a line through zero may have; None if there is none."""
    above, below = (y > low) & (x != 0), (y < high) & (x != 0)
    floors, ceilings = (y[above] - 0.5) / x[above], (y[below] + 0.5) / x[below]
    least = max(floors[x[above] > 0].max(initial=0), ceilings[x[below] < 0].max(initial=0))
    most = min(ceilings[x[below] > 0].min(initial=np.inf), floors[x[above] < 0].min(initial=np.inf))
    middle = (least + most) / 2
    return float(middle) if 0 < middle < np.inf else None


def _line(x: _Integers, y: _Integers, low: int, high: int) -> tuple[float, float]:
    """Slope and offset with the most room: each result allows offsets for a slope, and how many of them all
    results allow is concave in the slope."""
    above, below = y > low, y < high
    if not above.any():
        return 0.0, 0.0
    floors, ceilings = (x[above], y[above] - 0.5), (x[below], y[below] + 0.5)
    least, most = 0.0, float(high - low + 1)
    for _ in range(_HALVINGS):
        slope = (least + most) / 2
        first = (floors[1] - slope * floors[0]).argmax()
        last = (ceilings[1] - slope * ceilings[0]).argmin()
        if floors[0][first] > ceilings[0][last]:
            least = slope
        else:
            most = slope
    slope = (least + most) / 2
    floor = (floors[1] - slope * floors[0]).max()
    ceiling = (ceilings[1] - slope * ceilings[0]).min()
    return slope, float(floor + ceiling) / 2
