"""Start of sums: zeros written before, or a first step that overwrites.

On machines with ``post=0``, the reset of a tile's sums is a pass over the accumulators. With ``post=1``, this
module only notes them. The first step of each sum is then the intrinsic's compute form, which overwrites, not
its update form, which adds:

    reset(S)                        S[0:8] = B*A for dy = 1, which is there for every y
    for dy in range(3):             for dy in 0, 2:
        for y in range(8):              for y in range(8):
            if 0 < y+dy < 9:                if 0 < y+dy < 9:
                update(S[y], ...)               update(S[y], ...)

A sum without any step is set to zero before another statement reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from accel.base.fast_unique import distinct
from accel.base.records import replace
from accel.compiler.expr.guarded_loops import Ranges
from accel.compiler.expr.scalar_expressions import IterVar
from accel.compiler.nest.nest import Call
from accel.compiler.target.builtin_emitters import fill_zero
from accel.compiler.target.emitter_registry import AccessPtr, Emitted, Target
from accel.core.config import Config

_STARTED = -1
"""In place of a statement's number: the accumulator holds its value."""

Elements = npt.NDArray[np.intp]


def first_step(update: Call) -> Call:
    return replace(update, form="compute")


class UnstartedSums:
    """Accumulators that the nest has reset, but that still contain other values."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._reset_by = np.full(config.acc_depth, _STARTED, dtype=np.int64)
        self.any = False

    def reset(self, elements: Elements, statement: int) -> None:
        self._reset_by[elements] = statement
        self.any = True

    def among(self, elements: Elements) -> npt.NDArray[np.bool_]:
        """Return which elements are unstarted. Those outside the accumulator memory are not.

        Iterations that conditions exclude may address such elements. For example, a transposed convolution
        with kernel 1 and stride 3 runs over whole groups of three columns, and the last one may be
        incomplete.
        """
        inside = (elements >= 0) & (elements < len(self._reset_by))
        return np.asarray(inside & (self._reset_by[np.where(inside, elements, 0)] != _STARTED))

    def start(self, elements: Elements) -> None:
        self._reset_by[elements] = _STARTED
        self.any = bool((self._reset_by != _STARTED).any())

    def settled(self, begin: int, end: int) -> list[Emitted]:
        """Return instructions that write the missing zeros among accumulators ``begin..end-1``."""
        missing = begin + np.flatnonzero(self._reset_by[begin:end] != _STARTED)
        emitted = []
        for statement in distinct(self._reset_by[missing]).tolist():
            mine = missing[self._reset_by[missing] == statement]
            for first, count, apart, length in rows_of(mine.tolist()):
                target = Target(config=self._config, extents=(count, length))
                pointer = AccessPtr("acc_buffer", first, (apart, 1))
                emitted += [replace(one, statement=statement) for one in fill_zero(target, pointer)]
        self.start(missing)
        return emitted


def rows_of(elements: Sequence[int]) -> Iterator[tuple[int, int, int, int]]:
    """Yield ascending numbers as rows: first number, count, distance and length."""
    runs: list[tuple[int, int]] = []
    for element in elements:
        if runs and element == sum(runs[-1]):
            runs[-1] = runs[-1][0], runs[-1][1] + 1
        else:
            runs.append((element, 1))
    position = 0
    while position < len(runs):
        (first, length), behind = runs[position], position + 1
        apart = runs[behind][0] - first if behind < len(runs) else length
        while behind < len(runs) and runs[behind] == (first + (behind - position) * apart, length):
            behind += 1
        yield first, behind - position, apart, length
        position = behind


def boxes_of(mask: npt.NDArray[np.bool_], loops: Sequence[IterVar], ranges: Ranges) -> list[Ranges]:
    """Return where a mask is set, as disjoint boxes. Its first entry is the first iteration of ``ranges``."""
    left = mask.copy()
    found = []
    while left.any():
        corner = np.unravel_index(int(left.argmax()), left.shape)
        box = [slice(int(n), int(n) + 1) for n in corner]
        for d in reversed(range(left.ndim)):
            while box[d].stop < left.shape[d]:
                grown = [*box[:d], slice(box[d].stop, box[d].stop + 1), *box[d + 1 :]]
                if not left[tuple(grown)].all():
                    break
                box[d] = slice(box[d].start, box[d].stop + 1)
        left[tuple(box)] = False
        firsts = [ranges[v][0] for v in loops]
        found.append(
            {v: (n + part.start, n + part.stop) for v, n, part in zip(loops, firsts, box, strict=True)}
        )
    return found
