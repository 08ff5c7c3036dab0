"""What LOADs and STOREs of boxes take on the bus, of many plans at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from accel.compiler.plans.arrays import BoolArray, FloatArray, IntArray
from accel.core.config import PAGE_BYTES, Config


class Moved(NamedTuple):
    """One or several LOADs or STOREs together, an element for each plan.

    Attributes:
        beats: on the bus.
        bursts, instructions: how many.
        bytes: of the tensor.
        waits: cycles without a beat, as only so many bursts of a LOAD may be in flight; as many are asked for
            beside what comes before it.
    """

    beats: FloatArray
    bursts: FloatArray
    instructions: FloatArray
    bytes: FloatArray
    waits: FloatArray

    def where(self, there: BoolArray) -> Moved:
        """Nothing where it is not."""
        return Moved(*(one * there for one in self))

    def times(self, count: IntArray) -> Moved:
        """So often."""
        return Moved(*(one * count for one in self))


Count = IntArray | int


def moved(
    config: Config, element: int, boxes: tuple[Count, Count], rows: tuple[Count, Count], row: Count
) -> Moved:
    """Runs of ``row`` elements in as few instructions as possible.

    Rows that are not aligned to the bus meet one beat more as often as their start may lie anywhere in one,
    and rows that are not aligned to pages one burst more as often as one lies across a border.

    Args:
        config: the machine.
        element: bytes.
        boxes, rows: how often the runs repeat, and how far apart, in elements.
        row: elements.
    """
    (box_count, box_step), (row_count, row_step) = boxes, rows
    joined = (row_count == 1) | (np.asarray(row_step) == row)
    length = np.where(joined, row * np.asarray(row_count), row)
    inner = np.where(joined, 1, row_count)
    merged = joined & ((np.asarray(box_count) == 1) | (np.asarray(box_step) == length))
    length = np.where(merged, length * box_count, length)
    outer = np.where(merged, 1, box_count)
    even = joined | (np.asarray(box_step) == np.asarray(row_count) * row_step)  # boxes go on where rows end
    instructions = np.where(even, 1, outer)
    runs = inner * outer
    step = np.where(joined, box_step, row_step)
    size = length * element
    bus = config.bus_bytes
    lanes = max(1, bus // element)
    beats = -(-size // bus) * 1.0
    if lanes > 1:
        anywhere = (runs > 1) & (step % lanes != 0)
        beats = np.where(anywhere, (length + lanes - 1) / lanes, beats)
    longest = min(PAGE_BYTES, config.max_burst_beats * bus)
    across = np.where((runs > 1) | (size % longest != 0), (size - element) % longest / PAGE_BYTES, 0.0)
    bursts = -(-size // longest) + across
    there = runs * length > 0
    turns = np.maximum(runs * bursts / np.maximum(instructions, 1) / config.outstanding - 1, 0.0)
    each = beats / np.maximum(bursts, 1.0)
    unused = np.maximum(config.read_latency - each * (config.outstanding - 1), 0.0)
    return Moved(
        beats=np.where(there, runs * beats, 0.0),
        bursts=np.where(there, runs * bursts, 0.0),
        instructions=np.where(there, instructions, 0.0),
        bytes=np.where(there, runs * size, 0) * 1.0,
        waits=np.where(there, instructions * turns * unused, 0.0),
    )
