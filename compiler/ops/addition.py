"""Additions of quantized tensors in integers, equal to those in floating point on every pair of values.

ONNX Runtime computes ``y = sat(rne(fma(left, l, fma(right, r, c))))`` in float32, with
``l = left_scale / scale``, ``r = right_scale / scale`` and ``c = zero - fma(l, left_zero, r * right_zero)``.
Integers do the same with two multipliers, a shift and an offset, see :func:`accel.core.requantize.add`. For
multipliers and shift, each of the 65,536 pairs of values allows an interval of offsets; where these have one
in common, it is exact. How wide that is, is a concave function of the multipliers. So its maximum is found,
by cutting planes, and where it is below zero there are no integers at all.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from accel.base.errors import ShapeError
from accel.compiler.expr.quantized import Addition, Order, Quantization, float_add
from accel.core.requantize import ADD_MULTIPLIER_BITS, ADD_OFFSET_BITS, MAX_ADD_SHIFT, add

__all__ = ["Addition", "Quantization", "find_addition", "float_add"]

_SHIFTS = 4
"""How many shifts are tried, from the largest on whose multipliers have their bits."""
_REACH = 1 << 20
"""How far from the nearest multipliers others are looked for."""
_CUTS = 60
"""How many cutting planes are tried."""
_LARGEST = (1 << ADD_MULTIPLIER_BITS) - 1
_LIMIT = (1 << (ADD_OFFSET_BITS - 1)) - 1

_Integers = npt.NDArray[np.int64]
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
    """Integers for an addition: without differences where there are such, else of those tried the ones with
    the fewest.

    Args:
        left, right: the operands.
        out: the sum.
        low, high: bounds of the sum, those of its type if not given.
        order: how floating point adds.

    Raises:
        ShapeError: an operand's scale is too large for the sum's.
    """
    low = out.low if low is None else max(low, out.low)
    high = out.high if high is None else min(high, out.high)
    ratios = left.scale / out.scale, right.scale / out.scale
    shifts = _shifts(max(ratios))
    pairs = _Pairs(left, right, low, high, float_add(left, right, out, low, high, order))
    # where halves occur, they are rounded to even before the zero point is added here, and after it there
    zeros = (out.zero, out.zero - 1) if out.zero & 1 else (out.zero,)
    nearest = [
        _Choice((round(ratios[0] * 2**shift), round(ratios[1] * 2**shift)), shift, zero)
        for shift in shifts
        for zero in zeros
    ]
    for choice in nearest:
        if pairs.room(choice).width >= 0:
            return pairs.addition(choice)
    tried = [*nearest]
    for choice in _wider(pairs, nearest[0]):
        if pairs.room(choice).width >= 0:
            return pairs.addition(choice)
        tried.append(choice)
    return min(map(pairs.addition, tried), key=lambda one: one.differences)


@dataclass(frozen=True)
class _Choice:
    """All of an addition but its offset."""

    multipliers: tuple[int, int]
    shift: int
    zero: int


@dataclass(frozen=True)
class _Room:
    """The offsets that all pairs of values allow.

    Attributes:
        floor, ceiling: the least and the largest; there are none where they cross.
        slope: how much wider it gets with each multiplier, as long as the same pairs decide.
    """

    floor: int
    ceiling: int
    slope: tuple[int, int]

    @property
    def width(self) -> int:
        return self.ceiling - self.floor


class _Pairs:
    """All pairs of values with their sums, and what these ask of an offset.

    Sums rise with both values, and so do products. So the least offset follows from those pairs whose
    neighbours below have lesser sums, and the largest from those whose neighbours above have larger ones.
    """

    def __init__(self, left: Quantization, right: Quantization, low: int, high: int, sums: _Integers) -> None:
        self._left, self._right, self._bounds, self._sums = left, right, (low, high), sums
        self._rows, self._columns = left.values() - left.zero, right.values() - right.zero
        rises = [np.diff(sums, axis=axis) != 0 for axis in (0, 1)]
        first = (sums > low) & _framed(rises[0], 0, 0) & _framed(rises[1], 1, 0)
        last = (sums < high) & _framed(rises[0], 0, 1) & _framed(rises[1], 1, 1)
        self._least, self._most = (np.nonzero(one) for one in (first, last))

    def room(self, choice: _Choice) -> _Room:
        """The offsets that all pairs allow."""
        floor, below = self._extreme(self._least, choice, 1)
        ceiling, above = self._extreme(self._most, choice, -1)
        return _Room(floor, ceiling, (below[0] - above[0], below[1] - above[1]))

    def _extreme(
        self, places: tuple[_Integers, ...], choice: _Choice, sign: int
    ) -> tuple[int, tuple[int, int]]:
        """The largest of the least offsets, or the least of the largest, and the values that ask for it."""
        if not len(places[0]):
            return -sign * _LIMIT, (0, 0)
        rows, columns = self._rows[places[0]], self._columns[places[1]]
        found = self._offsets(rows, columns, self._sums[places], choice, sign)
        at = int((sign * found).argmax())
        return int(found[at]), (int(rows[at]), int(columns[at]))

    @staticmethod
    def _offsets(
        rows: _Integers, columns: _Integers, sums: _Integers, choice: _Choice, sign: int
    ) -> _Integers:
        """The least offsets that give sums, with a sign of 1, or the largest, with -1."""
        wanted = sums - choice.zero
        half = (1 << choice.shift) >> 1
        open_end = wanted & 1 if choice.shift else np.zeros_like(wanted)  # half is rounded to even
        products = rows * choice.multipliers[0] + columns * choice.multipliers[1]
        found: _Integers = (wanted << choice.shift) - products - sign * (half - open_end)
        return found

    def addition(self, choice: _Choice) -> Addition:
        """With the middle of the offsets that all pairs allow, or else one that most of them do."""
        room = self.room(choice)
        offset = (room.floor + room.ceiling) // 2 if room.width >= 0 else self._frequent(choice)
        offset = min(max(offset, -_LIMIT), _LIMIT)
        low, high = self._bounds
        found = add(
            self._left.values()[:, None],
            self._right.values()[None, :],
            multipliers=choice.multipliers,
            shift=choice.shift,
            offset=offset,
            zeros=(self._left.zero, self._right.zero),
            zero=choice.zero,
            low=low,
            high=high,
        )
        differences = int((found != self._sums).sum())
        return Addition(
            multipliers=choice.multipliers,
            shift=choice.shift,
            offset=offset,
            zero=choice.zero,
            differences=differences,
        )

    def _frequent(self, choice: _Choice) -> int:
        """The offset that the most pairs allow."""
        low, high = self._bounds
        rows, columns = self._rows[:, None], self._columns[None, :]
        least, most = (self._offsets(rows, columns, self._sums, choice, sign) for sign in (1, -1))
        begins = np.where(self._sums > low, least, -_LIMIT).ravel()
        ends = np.where(self._sums < high, most, _LIMIT).ravel() + 1
        places = np.concatenate([begins, ends])
        steps = np.repeat([1, -1], len(begins))
        order = np.lexsort((steps, places))
        return int(places[order][steps[order].cumsum().argmax()])


def _framed(rises: npt.NDArray[np.bool_], axis: int, side: int) -> npt.NDArray[np.bool_]:
    """Whether sums change from each value to the one before it or, with a side of 1, behind it; at the edge
    they do."""
    around = [(0, 0), (0, 0)]
    around[axis] = (1, 0) if side == 0 else (0, 1)
    return np.pad(rises, around, constant_values=True)


def _wider(pairs: _Pairs, start: _Choice) -> Iterator[_Choice]:
    """Multipliers with room for offsets, if any have it: Kelley's cutting planes, each from the last choice.

    The room's width at some multipliers bounds it everywhere, by the plane that touches it there; next come
    the multipliers where the least of all planes is highest. Where that is below zero, there is no room.
    """
    a, b = start.multipliers
    up, down = ([min(_REACH, room) for room in rooms] for rooms in ((_LARGEST - a, _LARGEST - b), (a, b)))
    planes = np.array([[1, 0, 0, up[0]], [-1, 0, 0, down[0]], [0, 1, 0, up[1]], [0, -1, 0, down[1]]], float)
    at, seen = (0, 0), set[tuple[int, int]]()
    for _ in range(_CUTS):
        seen.add(at)
        room = pairs.room(_Choice((a + at[0], b + at[1]), start.shift, start.zero))
        x, y = room.slope
        planes = np.vstack([planes, [-x, -y, 1, room.width - x * at[0] - y * at[1]]])
        top = _highest(planes)
        if top is None or top[2] < 0:
            return
        at = (round(top[0]), round(top[1]))
        if at in seen:
            return
        yield _Choice((a + at[0], b + at[1]), start.shift, start.zero)


def _highest(planes: _Floats) -> _Floats | None:
    """The highest point (x, y, t) below planes, rows ``p`` with ``p[:3] @ point <= p[3]``, on the last one of
    them; None if there is none."""
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
    """The shifts that are tried for multipliers of ``2**shift`` times at most ``ratio``.

    Raises:
        ShapeError: not even without a shift do they have their bits.
    """
    largest = next((s for s in range(MAX_ADD_SHIFT, -1, -1) if round(ratio * 2**s) <= _LARGEST), None)
    if largest is None:
        raise ShapeError(
            f"an operand's scale is {ratio:.4g} times that of the sum; up to {_LARGEST} times can be added"
        )
    return range(largest, max(-1, largest - _SHIFTS), -1)
