"""The rows or columns of an input by their remainder modulo the stride of windows.

Products with an identity matrix copy the elements of each remainder, a *phase*, next to one another. For
example, windows of 3 with stride 2 read taps 0 and 2 from phase 0, and tap 1 from phase 1. Within a phase,
neighbouring windows read neighbouring elements, so maxima can overwrite elements that no other window needs.
"""

from __future__ import annotations

import numpy as np

from accel.compiler.ops.pool2d import Taps
from accel.compiler.ops.sliding_window import Sliding
from accel.compiler.plans.plan_arrays import IntArray


class StridePhases:
    """The phases of one axis of the input (0: rows, 1: columns).

    Attributes:
        is_in_place: whether maxima overwrite the phase that they start from.
        starts_with_outputs: whether that phase has no more elements than there are outputs.
        has_one_start: whether that phase has no other tap.
        taps: by phase, the offsets of its taps within the phase.
    """

    def __init__(self, slide: Sliding, axis: int) -> None:
        taps, self._stride = Taps.of(slide, axis), slide.stride[axis]
        self._size, self.outputs = slide.size[axis], slide.outputs[axis]
        start = taps.first % self._stride
        self.is_in_place = taps.own and 0 <= taps.first < self._stride
        self.starts_with_outputs = self._length(start) == self.outputs
        self.has_one_start = all(tap % self._stride != start for tap in taps.others)
        every = (taps.first, *taps.others)
        self.taps = {
            phase: [tap // self._stride for tap in every if tap % self._stride == phase]
            for phase in sorted({tap % self._stride for tap in every})
        }

    def _length(self, phase: int) -> int:
        return -(-(self._size - phase) // self._stride)

    def _max_of_phase(self, phase: int, part: IntArray) -> IntArray:
        taps = self.taps[phase]
        return np.minimum(self._length(phase), part + (max(taps) - min(taps)))

    def max_elements(self, part: IntArray) -> IntArray:
        return np.asarray(sum(self._max_of_phase(phase, part) for phase in self.taps))

    def elements(self, begin: IntArray, part: IntArray, *, clips_front: bool) -> IntArray:
        """Return the elements of all phases for a part of the outputs.

        Args:
            part: outputs of a part. The last part can have fewer.
            clips_front: whether elements before the input reduce the number. Otherwise the part has more
                elements at its end.
        """
        numbers = []
        for phase, taps in self.taps.items():
            first = np.maximum(begin + min(taps), 0)
            end = (begin + min(taps) if clips_front else first) + part + max(taps) - min(taps)
            numbers.append(np.maximum(np.minimum(end, self._length(phase)) - first, 0))
        return np.asarray(sum(numbers))

    def max_loaded(self, part: IntArray) -> IntArray:
        """Return the most elements of the input that parts of outputs span."""
        spans: list[IntArray] = []
        for is_first in (True, False):
            starts = {
                phase: phase + self._stride * (max(min(taps), 0) if is_first else min(taps))
                for phase, taps in self.taps.items()
            }
            ends = [
                start + self._stride * (self._max_of_phase(phase, part) - 1)
                for phase, start in starts.items()
            ]
            spans.append(np.max(ends, axis=0) - min(starts.values()) + 1)
        has_several_parts = part < self.outputs
        longest = np.where(has_several_parts, np.maximum(*spans), spans[0])
        return np.asarray(np.minimum(self._size, longest))

    def loaded(self, begin: IntArray, part: IntArray) -> IntArray:
        starts = [
            phase + self._stride * np.maximum(begin + min(taps), 0) for phase, taps in self.taps.items()
        ]
        return np.asarray(np.minimum(self.max_loaded(part), self._size - np.min(starts, axis=0)))
