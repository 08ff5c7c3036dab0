"""Functions of one quantized operand that the store unit computes: linear, rounded and clamped."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from accel.core.requantize import Scale, requantize

_Integers = npt.NDArray[np.int64] | npt.NDArray[np.int32]

_WEIGHTS = np.arange(1, 128)
"""Positive int8 weights."""
_TRIED_WEIGHTS = 6
"""Weights that are tried: those with which an integer bias comes closest to the offset."""
_BISECTION_STEPS = 60
"""Steps that find the best slope to the precision of float64."""


@dataclass(frozen=True, kw_only=True)
class ClampedLinear:
    """``clamp(rne(float32(value * weight + bias) * scale) + zero, low, high)``.

    Attributes:
        weight: int8, not zero.
        bias: int32.
        scale: float32, positive.
    """

    weight: int
    bias: int
    scale: float
    low: int
    high: int

    def values(self, values: _Integers, zero: int, bounds: tuple[int, int] | None = None) -> _Integers:
        """Compute the results of an operand's values minus its zero point."""
        word = Scale.of(self.scale)
        low, high = bounds or (self.low, self.high)
        return requantize(
            values * self.weight, self.bias, word.multiplier, word.exponent, zero=zero, low=low, high=high
        )


def fit_clamped_linear(values: _Integers, results: _Integers, zero: int) -> ClampedLinear | None:
    """Find the function that has exactly these results, or return None.

    For example, it finds a ReLU6 of uint8, but no sigmoid.

    Args:
        values: the operand's values minus its zero point, ascending.
    """
    return _fit(tuple(values.tolist()), tuple(results.tolist()), zero)


@lru_cache(maxsize=4096)
def _fit(values: tuple[int, ...], results: tuple[int, ...], zero: int) -> ClampedLinear | None:
    x, y = np.array(values), np.array(results)
    steps = np.diff(y)
    if (steps < 0).any() and (steps > 0).any():
        return None
    sign = -1 if (steps < 0).any() else 1
    low, high = int(y.min()), int(y.max())
    for weight, bias, scale in _candidates(sign * x, y - zero, low - zero, high - zero):
        function = ClampedLinear(weight=sign * weight, bias=bias, scale=scale, low=low, high=high)
        if np.array_equal(function.values(x, zero), y):
            return function
    return None


def _candidates(x: _Integers, y: _Integers, low: int, high: int) -> Iterator[tuple[int, int, float]]:
    slope = _slope_through_origin(x, y, low, high)
    if slope is not None:
        yield 1, 0, float(np.float32(slope))
    slope, offset = _best_line(x, y, low, high)
    if not slope > 0:  # all results are equal
        yield 1, 0, 1.0
        return
    biases = offset / slope * _WEIGHTS
    distances = np.abs(np.rint(biases) - biases) / _WEIGHTS
    for at in np.argsort(distances, kind="stable")[:_TRIED_WEIGHTS].tolist():
        yield at + 1, round(biases[at]), float(np.float32(slope / (at + 1)))


def _slope_through_origin(x: _Integers, y: _Integers, low: int, high: int) -> float | None:
    above, below = (y > low) & (x != 0), (y < high) & (x != 0)
    floors, ceilings = (y[above] - 0.5) / x[above], (y[below] + 0.5) / x[below]
    least = max(floors[x[above] > 0].max(initial=0), ceilings[x[below] < 0].max(initial=0))
    most = min(ceilings[x[below] > 0].min(initial=np.inf), floors[x[above] < 0].min(initial=np.inf))
    middle = (least + most) / 2
    return float(middle) if 0 < middle < np.inf else None


def _best_line(x: _Integers, y: _Integers, low: int, high: int) -> tuple[float, float]:
    """Return slope and offset of the line that is farthest from rounding thresholds.

    For a given slope, each result allows an interval of offsets. Bisection finds the longest intersection,
    since its length is concave in the slope.
    """
    above, below = y > low, y < high
    if not above.any():
        return 0.0, 0.0
    floors, ceilings = (x[above], y[above] - 0.5), (x[below], y[below] + 0.5)
    least, most = 0.0, float(high - low + 1)
    for _ in range(_BISECTION_STEPS):
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
