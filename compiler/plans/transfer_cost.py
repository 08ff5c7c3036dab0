"""Bus beats, bursts and instructions of LOADs and STOREs, for many plans at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from accel.compiler.plans.plan_arrays import BoolArray, FloatArray, IntArray, ceil_div
from accel.core.config import PAGE_BYTES, Config


class Transfer(NamedTuple):
    """The cost of one or several LOADs or STOREs.

    Attributes:
        beats: cycles in which data is on the bus.
        bytes: bytes of the tensor. Beats can carry unused bytes in addition.
        stall_cycles: cycles without a beat, because a LOAD has the largest allowed number of outstanding
            bursts. The first bursts, requested during the previous transfer, do not stall.
    """

    beats: FloatArray
    bursts: FloatArray
    instructions: FloatArray
    bytes: FloatArray
    stall_cycles: FloatArray

    def where(self, is_present: BoolArray) -> Transfer:
        return Transfer(*(part * is_present for part in self))

    def times(self, count: Count) -> Transfer:
        return Transfer(*(part * count for part in self))


Count = IntArray | int


def box_transfer(
    config: Config, element_bytes: int, boxes: tuple[Count, Count], rows: tuple[Count, Count], row: Count
) -> Transfer:
    """Return the cost of a box of a tensor, moved by as few instructions as possible.

    Contiguous rows merge into one run. One instruction moves many rows of equal distance. For example, 56
    rows of 14 elements from a picture that is 56 wide are one LOAD with 56 runs.

    The addresses are unknown, so beats and bursts are expected values: an unaligned run may take one beat
    more, and one across pages one burst more.

    Args:
        boxes, rows: how often boxes, and rows within a box, repeat, and their distance in elements.
    """
    (box_count, box_step), (row_count, row_step) = boxes, rows
    rows_merge = (row_count == 1) | (np.asarray(row_step) == row)
    run = np.where(rows_merge, row * np.asarray(row_count), row)
    inner = np.where(rows_merge, 1, row_count)
    boxes_merge = rows_merge & ((np.asarray(box_count) == 1) | (np.asarray(box_step) == run))
    run = np.where(boxes_merge, run * box_count, run)
    outer = np.where(boxes_merge, 1, box_count)
    is_evenly_spaced = rows_merge | (np.asarray(box_step) == np.asarray(row_count) * row_step)
    instructions = np.where(is_evenly_spaced, 1, outer)
    runs = inner * outer
    beats, bursts = _run_cost(config, element_bytes, run, runs, np.where(rows_merge, box_step, row_step))
    is_present = runs * run > 0
    stalls = np.maximum(runs * bursts / np.maximum(instructions, 1) / config.outstanding - 1, 0.0)
    beats_per_burst = beats / np.maximum(bursts, 1.0)
    idle = np.maximum(config.read_latency - beats_per_burst * (config.outstanding - 1), 0.0)
    return Transfer(
        beats=np.where(is_present, runs * beats, 0.0),
        bursts=np.where(is_present, runs * bursts, 0.0),
        instructions=np.where(is_present, instructions, 0.0),
        bytes=np.where(is_present, runs * (run * element_bytes), 0) * 1.0,
        stall_cycles=np.where(is_present, instructions * stalls * idle, 0.0),
    )


def _run_cost(
    config: Config, element_bytes: int, run: IntArray, runs: IntArray, step: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return the expected beats and bursts of one of several runs of elements that lie a step apart."""
    size, bus = run * element_bytes, config.bus_bytes
    elements_per_beat = max(1, bus // element_bytes)
    beats = ceil_div(size, bus) * 1.0
    if elements_per_beat > 1:
        is_unaligned = (runs > 1) & (step // elements_per_beat * elements_per_beat != step)
        beats = np.where(is_unaligned, (run + elements_per_beat - 1) / elements_per_beat, beats)
    longest = min(PAGE_BYTES, config.max_burst_beats * bus)
    is_cut = (runs > 1) | (size // longest * longest != size)
    crossings = np.where(is_cut, _modulo(size - element_bytes, longest) / PAGE_BYTES, 0.0)
    return beats, ceil_div(size, longest) + crossings


def _modulo(values: IntArray, divisor: int) -> IntArray:
    """Return ``values % divisor``. numpy has a fast division by one number, but no fast remainder."""
    return np.asarray(values - values // divisor * divisor)
