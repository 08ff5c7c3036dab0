"""Functions of one quantized operand that the store unit computes: linear, rounded and clamped."""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from accel.core.requantize import Scale, requantize

_Integers = npt.NDArray[np.int64] | npt.NDArray[np.int32]
_Floats = npt.NDArray[np.float64]

_WEIGHTS = np.arange(1, 128)
_TRIED_WEIGHTS = 6
_BISECTION_STEPS = 60
"""They find the best slope to the precision of float64."""
_BIAS_DISTANCES = np.arange(-1, 2)
"""The thorough search's biases relative to the nearest integer."""
_TRIED_PAIRS = 16
"""The thorough search evaluates the pairs of weight and bias with the most possible scales."""
_CONSTANT_SHIFT = 15
"""A constant c is the bias ``c << 15`` with the scale ``2**-15``: the operand's 9 bits round to zero."""
_MAX_BIAS = 1 << 30
_LINE_TOLERANCE = 1e-9
_SLOPE_DISTANCES = (16, 64)
_ROUNDING = 1e-3
"""More than float32 can change a result before it is rounded to an integer."""


class ClampedLinear(Struct, frozen=True, kw_only=True):
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
        """``values`` are an operand's, minus its zero point."""
        word = Scale.of(self.scale)
        low, high = bounds or (self.low, self.high)
        return requantize(
            values * self.weight, self.bias, word.multiplier, word.exponent, zero=zero, low=low, high=high
        )


def fit_clamped_linear(values: _Integers, results: _Integers, zero: int) -> ClampedLinear | None:
    """Find the function with exactly these results, for example a ReLU6 of uint8, but no sigmoid.

    Args:
        values: the operand's values minus its zero point, ascending.
    """
    return fit_channels(values, results[:, None], zero)[0]


def fit_channels(values: _Integers, table: _Integers, zero: int) -> tuple[ClampedLinear | None, ...]:
    """Find a function, or None, for each column of results [values, channels], all with the table's extremes
    as bounds.

    For example, batch normalization and ReLU of 64 channels have the bounds 0 and 127.
    """
    columns, places = np.asarray(table), np.zeros(1, dtype=np.intp)
    if table.shape[1] != 1:  # unique is slow
        columns, places = np.unique(table, axis=1, return_inverse=True)
    contiguous = np.ascontiguousarray(columns.astype(np.int64))
    fits = _fit(tuple(values.tolist()), contiguous.tobytes(), contiguous.shape, zero)
    return tuple(fits[place] for place in places.ravel().tolist())


@lru_cache(maxsize=256)
def _fit(
    values: tuple[int, ...], content: bytes, shape: tuple[int, int], zero: int
) -> tuple[ClampedLinear | None, ...]:
    columns = _Columns(np.array(values), np.frombuffer(content, np.int64).reshape(shape), zero)
    columns.fit()
    return tuple(columns.found)


class _Pair(Struct, frozen=True):
    weights: _Integers
    biases: _Integers
    scales: npt.NDArray[np.float32]


class _Columns:
    def __init__(self, values: _Integers, table: _Integers, zero: int) -> None:
        self._values, self._table, self._zero = values, table, zero
        self._low, self._high = int(table.min()), int(table.max())
        steps = np.diff(table, axis=0)
        falls, rises = (steps < 0).any(axis=0), (steps > 0).any(axis=0)
        self._signs = np.where(falls, -1, 1)
        self._open: npt.NDArray[np.bool_] = ~(falls & rises) & _may_be_lines(values, table)
        """Columns that may have a function, and have none yet. All are monotone."""
        self.found: list[ClampedLinear | None] = [None] * table.shape[1]

    def fit(self) -> None:
        """Try a line through the origin, the best line, then all weights."""
        at = self._unfitted()
        x, y, lows, highs = self._lines(at)
        slopes = _slopes_through_origin(x, y, lows, highs)
        inside = np.isfinite(slopes)
        ones, nothing = np.ones(inside.sum(), np.int64), np.zeros(inside.sum(), np.int64)
        self._try(at[inside], _Pair(ones, nothing, slopes[inside].astype(np.float32)))
        at = self._unfitted()
        for pair in self._near_best_lines(at):
            self._try(at, pair)
        for column in self._unfitted().tolist():
            self._search(column)

    def _unfitted(self) -> npt.NDArray[np.int64]:
        return np.flatnonzero(self._open)

    def _lines(self, at: _Integers) -> tuple[_Integers, _Integers, _Integers, _Integers]:
        y = self._table[:, at] - self._zero
        return self._values[:, None] * self._signs[at], y, y.min(axis=0), y.max(axis=0)

    def _try(self, at: _Integers, pair: _Pair) -> None:
        usable = self._open[at] & (np.abs(pair.biases) < _MAX_BIAS) & (pair.scales > 0)
        for chosen in np.array_split(np.flatnonzero(usable), 1 + usable.sum() // 256):
            if not len(chosen):
                continue
            columns, scales = at[chosen], pair.scales[chosen]
            words = [Scale.of(one) for one in scales]
            weights, biases = self._signs[columns] * pair.weights[chosen], pair.biases[chosen]
            results = requantize(
                self._values[:, None] * weights,
                biases,
                [word.multiplier for word in words],
                [word.exponent for word in words],
                zero=self._zero,
                low=self._low,
                high=self._high,
            )
            equal = (results == self._table[:, columns]).all(axis=0)
            for place in np.flatnonzero(equal).tolist():
                self._open[columns[place]] = False
                self.found[columns[place]] = ClampedLinear(
                    weight=int(weights[place]),
                    bias=int(biases[place]),
                    scale=float(scales[place]),
                    low=self._low,
                    high=self._high,
                )

    def _near_best_lines(self, at: _Integers) -> Iterator[_Pair]:
        """Yield weights, first those with which an integer bias comes closest to the best line's offset."""
        slopes, offsets, _ = _best_lines(*self._lines(at))
        constant = ~(slopes > 0)
        slopes, offsets = np.where(constant, 1.0, slopes), np.where(constant, 0.0, offsets)
        biases = (offsets / slopes) * _WEIGHTS[:, None]
        distances = np.abs(np.rint(biases) - biases) / _WEIGHTS[:, None]
        order = np.argsort(distances, axis=0, kind="stable")[:_TRIED_WEIGHTS]
        for row in order:
            chosen = np.rint(np.take_along_axis(biases, row[None], axis=0)[0])
            scales = (slopes / (row + 1)).astype(np.float32)
            yield _Pair(row + 1, chosen.clip(-_MAX_BIAS, _MAX_BIAS).astype(np.int64), scales)

    def _search(self, column: int) -> None:
        """Try all weights with biases for which some scale gives the results in exact arithmetic."""
        at = np.array([column])
        x, y, _, _ = self._lines(at)
        low, high = np.array([self._low - self._zero]), np.array([self._high - self._zero])
        if (y == y[0]).all():
            bias, scale = y[0] << _CONSTANT_SHIFT, np.array([2.0**-_CONSTANT_SHIFT], np.float32)
            self._try(at, _Pair(np.ones(1, np.int64), bias, scale))
            return
        slopes, offsets, gaps = _best_lines(x, y, low, high)
        if gaps[0] < -_LINE_TOLERANCE or not slopes[0] > 0:
            return
        biases = np.rint(offsets[0] / slopes[0] * _WEIGHTS)[:, None] + _BIAS_DISTANCES
        sums = _WEIGHTS[:, None, None] * x[:, 0] + biases[..., None]
        least, most = _scale_ranges(sums, y[:, 0], low[0], high[0])
        widths = np.where(most >= least, (most - least) / most, -1.0).ravel()
        for place in np.argsort(-widths, kind="stable")[:_TRIED_PAIRS].tolist():
            row, step = divmod(place, len(_BIAS_DISTANCES))
            if widths[place] < 0 or not self._open[column]:
                return
            one, bias = _WEIGHTS[row : row + 1], biases[row, step : step + 1].astype(np.int64)
            ends = least[row, step], most[row, step]
            for scale in (sum(ends) / 2, *ends):
                self._try(at, _Pair(one, bias, np.array([scale], np.float32)))


def _may_be_lines(values: _Integers, table: _Integers) -> npt.NDArray[np.bool_]:
    """Return False for columns without a line within 1/2 of all results between the least and the greatest.

    Two results y and z of values d apart bound a line's slope: it is from (z - y - 1) / d to (z - y + 1) / d.
    """
    is_between = (table > table.min(axis=0)) & (table < table.max(axis=0))
    least, most = np.full(table.shape[1], -np.inf), np.full(table.shape[1], np.inf)
    for distance in _SLOPE_DISTANCES:
        if distance >= len(values):
            continue
        bounds = is_between[distance:] & is_between[:-distance]
        rises, runs = table[distance:] - table[:-distance], (values[distance:] - values[:-distance])[:, None]
        floors, ceilings = (rises - 1 - _ROUNDING) / runs, (rises + 1 + _ROUNDING) / runs
        least = np.maximum(least, np.where(bounds, floors, -np.inf).max(axis=0))
        most = np.minimum(most, np.where(bounds, ceilings, np.inf).min(axis=0))
    return np.asarray(least <= most)


def _scale_ranges(sums: _Floats, y: _Integers, low: int, high: int) -> tuple[_Floats, _Floats]:
    """Return the least and the greatest scale with which sums round to results, along the last axis."""
    floors, ceilings = np.where(y > low, y - 0.5, -np.inf), np.where(y < high, y + 0.5, np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        least = np.where(sums > 0, floors / sums, ceilings / sums)
        most = np.where(sums > 0, ceilings / sums, floors / sums)
    allows_zero = (floors <= 0) & (ceilings >= 0)
    least = np.where(sums == 0, np.where(allows_zero, 0, np.inf), least)
    most = np.where(sums == 0, np.where(allows_zero, np.inf, 0), most)
    return least.max(axis=-1, initial=0), most.min(axis=-1)


def _slopes_through_origin(x: _Integers, y: _Integers, low: _Integers, high: _Integers) -> _Floats:
    above, below = (y > low) & (x != 0), (y < high) & (x != 0)
    divisors = np.where(x == 0, 1, x)
    floors, ceilings = (y - 0.5) / divisors, (y + 0.5) / divisors
    least = np.maximum(
        np.where(above & (x > 0), floors, 0).max(axis=0), np.where(below & (x < 0), ceilings, 0).max(axis=0)
    ).clip(0)
    most = np.minimum(
        np.where(below & (x > 0), ceilings, np.inf).min(axis=0),
        np.where(above & (x < 0), floors, np.inf).min(axis=0),
    )
    middle = (least + most) / 2
    return np.where(middle > 0, middle, np.inf)


def _best_lines(
    x: _Integers, y: _Integers, low: _Integers, high: _Integers
) -> tuple[_Floats, _Floats, _Floats]:
    """Return slopes and offsets of the lines farthest from rounding thresholds, and the distances.

    For a slope, each result allows an interval of offsets. Bisection finds the longest intersection, since
    its length is concave in the slope. A column of equal results has the slope 0.
    """
    above, below = y > low, y < high
    floors, ceilings = np.where(above, y - 0.5, -np.inf), np.where(below, y + 0.5, np.inf)
    least, most = np.zeros(y.shape[1]), (high - low + 1).astype(np.float64)
    numbers, columns = x.astype(np.float64), np.arange(y.shape[1])
    for _ in range(_BISECTION_STEPS):
        slopes = (least + most) / 2
        lines = slopes * numbers
        first, last = (floors - lines).argmax(axis=0), (ceilings - lines).argmin(axis=0)
        rises = numbers[first, columns] > numbers[last, columns]
        least, most = np.where(rises, slopes, least), np.where(rises, most, slopes)
    slopes = (least + most) / 2
    floor, ceiling = (floors - slopes * x).max(axis=0), (ceilings - slopes * x).min(axis=0)
    varies = above.any(axis=0)
    with np.errstate(invalid="ignore"):
        offsets, gaps = (floor + ceiling) / 2, ceiling - floor
    return np.where(varies, slopes, 0.0), np.where(varies, offsets, 0.0), gaps
