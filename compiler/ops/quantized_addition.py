"""Additions of quantized tensors in integers, equal to floating point for every pair of values.

ONNX Runtime computes ``y = sat(rne(fma(left, l, fma(right, r, c))))`` in float32, with ``l = left_scale /
scale``, ``r = right_scale / scale`` and ``c = zero - fma(l, left_zero, r * right_zero)``. Cutting planes find
the two multipliers of ``accel.core.requantize.add`` with the widest offset range, see ``offset_search``.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from accel.base.errors import ShapeError
from accel.compiler.expr.quantization import Order, Quantization
from accel.compiler.expr.quantized_expressions import Addition, float_add
from accel.compiler.ops.offset_search import (
    MAX_MULTIPLIER,
    MAX_OFFSET,
    Integers,
    clamped_offset,
    extreme_offsets,
    most_frequent_offset,
    shifts_to_try,
    zero_points,
)
from accel.core.requantize import add

__all__ = ["Addition", "Quantization", "find_addition", "float_add"]

_MAX_DISTANCE = 1 << 20
"""Largest distance of a multiplier from the nearest one."""
_MAX_CUTS = 60

_Floats = npt.NDArray[np.float64]


def find_addition(
    left: Quantization,
    right: Quantization,
    out: Quantization,
    *,
    low: int | None = None,
    high: int | None = None,
    order: Order = "left",
) -> Addition:
    """Return the exact integers for an addition, or those with the fewest differences.

    For example, with three equal scales both multipliers are ``2**30`` and the shift is 30. ``low`` and
    ``high`` default to the bounds of the sum's type.
    """
    low = out.low if low is None else max(low, out.low)
    high = out.high if high is None else min(high, out.high)
    ratios = left.scale / out.scale, right.scale / out.scale
    shifts = _shifts(max(ratios))
    pairs = _Pairs(left, right, low, high, float_add(left, right, out, low, high, order))
    nearest = [
        _Candidate((round(ratios[0] * 2**shift), round(ratios[1] * 2**shift)), shift, zero)
        for shift in shifts
        for zero in zero_points(out.zero)
    ]
    for candidate in nearest:
        if pairs.offset_range(candidate).width >= 0:
            return pairs.addition(candidate)
    tried = [*nearest]
    for candidate in _cutting_plane_candidates(pairs, nearest[0]):
        if pairs.offset_range(candidate).width >= 0:
            return pairs.addition(candidate)
        tried.append(candidate)
    return min(map(pairs.addition, tried), key=lambda one: one.differences)


class _Candidate(Struct, frozen=True):
    multipliers: tuple[int, int]
    shift: int
    zero: int


class _OffsetRange(Struct, frozen=True):
    """The offsets from ``floor`` to ``ceiling`` that all pairs of values allow, none if ``floor > ceiling``.

    Attributes:
        slope: change of the width per unit of each multiplier, while the same pairs bound it.
    """

    floor: int
    ceiling: int
    slope: tuple[int, int]

    @property
    def width(self) -> int:
        return self.ceiling - self.floor


class _Pairs:
    """All pairs of values with their sums, and the bounds that they put on an offset.

    Sums and products increase with both values. So only pairs whose lower neighbours have smaller sums bound
    the smallest offset, and only those whose upper neighbours have larger sums the largest.
    """

    def __init__(self, left: Quantization, right: Quantization, low: int, high: int, sums: Integers) -> None:
        self._left, self._right, self._bounds, self._sums = left, right, (low, high), sums
        self._rows, self._columns = left.values() - left.zero, right.values() - right.zero
        rises = [np.diff(sums, axis=axis) != 0 for axis in (0, 1)]
        first = (sums > low) & _framed(rises[0], 0, 0) & _framed(rises[1], 1, 0)
        last = (sums < high) & _framed(rises[0], 0, 1) & _framed(rises[1], 1, 1)
        self._least, self._most = (np.nonzero(one) for one in (first, last))

    def offset_range(self, candidate: _Candidate) -> _OffsetRange:
        floor, below = self._extreme(self._least, candidate, 1)
        ceiling, above = self._extreme(self._most, candidate, -1)
        return _OffsetRange(floor, ceiling, (below[0] - above[0], below[1] - above[1]))

    def _extreme(
        self, places: tuple[Integers, ...], candidate: _Candidate, sign: int
    ) -> tuple[int, tuple[int, int]]:
        """Return the largest lower bound (``sign`` 1) or the smallest upper bound (-1), and its values."""
        if not len(places[0]):
            return -sign * MAX_OFFSET, (0, 0)
        rows, columns = self._rows[places[0]], self._columns[places[1]]
        products = _products(rows, columns, candidate)
        found = extreme_offsets(self._sums[places], products, candidate.shift, candidate.zero, sign)
        at = int((sign * found).argmax())
        return int(found[at]), (int(rows[at]), int(columns[at]))

    def addition(self, candidate: _Candidate) -> Addition:
        offset_range = self.offset_range(candidate)
        middle = (offset_range.floor + offset_range.ceiling) // 2
        offset = clamped_offset(middle if offset_range.width >= 0 else self._most_frequent_offset(candidate))
        low, high = self._bounds
        found = add(
            self._left.values()[:, None],
            self._right.values()[None, :],
            multipliers=candidate.multipliers,
            shift=candidate.shift,
            offset=offset,
            zeros=(self._left.zero, self._right.zero),
            zero=candidate.zero,
            low=low,
            high=high,
        )
        differences = int((found != self._sums).sum())
        return Addition(
            multipliers=candidate.multipliers,
            shift=candidate.shift,
            offset=offset,
            zero=candidate.zero,
            differences=differences,
        )

    def _most_frequent_offset(self, candidate: _Candidate) -> int:
        products = _products(self._rows[:, None], self._columns[None, :], candidate)
        least, most = (
            extreme_offsets(self._sums, products, candidate.shift, candidate.zero, sign) for sign in (1, -1)
        )
        return most_frequent_offset(self._sums, least, most, self._bounds)


def _products(rows: Integers, columns: Integers, candidate: _Candidate) -> Integers:
    found: Integers = rows * candidate.multipliers[0] + columns * candidate.multipliers[1]
    return found


def _framed(rises: npt.NDArray[np.bool_], axis: int, side: int) -> npt.NDArray[np.bool_]:
    """Whether sums differ from those of the previous (``side=0``) or the next value. At the edge they do."""
    around = [(0, 0), (0, 0)]
    around[axis] = (1, 0) if side == 0 else (0, 1)
    return np.pad(rises, around, constant_values=True)


def _cutting_plane_candidates(pairs: _Pairs, start: _Candidate) -> Iterator[_Candidate]:
    """Yield multipliers that may have a wider offset range, by Kelley's cutting planes.

    Tangent planes bound the concave width. The next candidate is the maximum of the lowest planes.
    """
    a, b = start.multipliers
    up, down = (
        [min(_MAX_DISTANCE, offset_range) for offset_range in distances]
        for distances in ((MAX_MULTIPLIER - a, MAX_MULTIPLIER - b), (a, b))
    )
    planes = np.array([[1, 0, 0, up[0]], [-1, 0, 0, down[0]], [0, 1, 0, up[1]], [0, -1, 0, down[1]]], float)
    at, seen = (0, 0), set[tuple[int, int]]()
    for _ in range(_MAX_CUTS):
        seen.add(at)
        offset_range = pairs.offset_range(_Candidate((a + at[0], b + at[1]), start.shift, start.zero))
        x, y = offset_range.slope
        planes = np.vstack([planes, [-x, -y, 1, offset_range.width - x * at[0] - y * at[1]]])
        top = _highest(planes)
        if top is None or top[2] < 0:
            return
        at = (round(top[0]), round(top[1]))
        if at in seen:
            return
        yield _Candidate((a + at[0], b + at[1]), start.shift, start.zero)


def _highest(planes: _Floats) -> _Floats | None:
    """Return the highest point (x, y, t) below planes that is on the last plane, or None. A plane is a row
    ``p`` with ``p[:3] @ point <= p[3]``."""
    last, others = planes[-1], planes[:-1]
    one, other = np.triu_indices(len(others), 1)
    first, second = others[one], others[other]
    normal = np.cross(first[:, :3], second[:, :3])
    volume = normal @ last[:3]
    points = (
        last[3] * normal
        + first[:, 3:] * np.cross(second[:, :3], last[:3])
        + second[:, 3:] * np.cross(last[:3], first[:, :3])
    )[volume != 0] / volume[volume != 0, None]
    below = points @ planes[:, :3].T <= planes[:, 3] + 1e-6 * (1 + np.abs(planes[:, 3]))
    points = points[below.all(axis=1)]
    return points[points[:, 2].argmax()] if len(points) else None


def _shifts(ratio: float) -> range:
    found = shifts_to_try(ratio)
    if not found:
        raise ShapeError(
            f"an operand's scale is {ratio:.4g} times that of the sum; "
            f"up to {MAX_MULTIPLIER} times can be added"
        )
    return found
