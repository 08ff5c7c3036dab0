"""Sums of products in blocks of the GEMM core, as plans see them: matrix products and convolutions alike.

The output has channels and pixels (rows and columns), a sum runs over blocks of depth and a kernel's taps.
A matrix product has its rows as pixels and its columns as channels. What operators differ in is what of the
operands a part of the output meets, and how tensors lie in DRAM.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, TypeVar

import numpy as np

from accel.compiler.plans.arrays import BoolArray, IntArray
from accel.compiler.plans.transfers import Count, Moved, moved
from accel.core.config import Config

SumsT = TypeVar("SumsT", bound="Sums")
_FINISHED_BY = 3
"""Passes from that which adds a residual on: the two that saturate are behind it."""


@dataclass(frozen=True, kw_only=True)
class Sums(ABC):
    """Sums in blocks of the GEMM core.

    Attributes:
        groups: of channels, merged to whole blocks.
        batches, channels, depth: blocks of the batch, and of a group's output and input channels.
        rows, columns: of the output.
        kernel: rows and columns of its taps.
        weighted: whether there are weights; else one block is all that products need.
        diagonal: whether each block of output channels has a block of input channels of its own, in place of
            sums over all blocks of depth; then ``depth`` is 1.
        bias: whether there is one.
        residual: whether another tensor is added to each tile.
        folded: whether reset and bias are one operation.
        passes: operations on each accumulator besides GEMM.
        pass_slots: that these take, for each accumulator.
        resets: those of them in front of the sums, 0 or 1.
        stored: whether the store unit finishes the sums, with parameters that it loads.
        alike: whether those are the same for all channels.
        square: whether the GEMM core's blocks are, so that it can add a residual.
        residual_product: whether it does: the residual is loaded like an operand, and multiplied by a block.
    """

    groups: int
    batches: int
    channels: int
    depth: int
    rows: int
    columns: int
    kernel: tuple[int, int]
    weighted: bool
    bias: bool
    residual: bool
    folded: bool
    passes: int
    pass_slots: int
    resets: int
    stored: bool
    alike: bool
    square: bool
    residual_product: bool = False
    diagonal: bool = False
    padded: ClassVar[bool] = False
    """Whether LOADs of the input may write zeros around it."""

    @property
    def cut(self) -> bool:
        """Whether padding is cut off in front of columns, or behind them."""
        return False

    @property
    def taps(self) -> int:
        """Elements of the kernel."""
        return self.kernel[0] * self.kernel[1]

    @property
    def outputs(self) -> int:
        """Blocks of the output."""
        return self.groups * self.batches * self.channels * self.rows * self.columns

    @property
    def biases(self) -> int:
        """Blocks of the bias, or of what the store unit has in its place."""
        return 1 if self.stored and self.alike else self.groups * self.channels

    @property
    def gemms(self) -> int:
        """Micro-ops of GEMM that any plan takes."""
        blocks = self.groups * self.batches * self.channels * self.depth
        down, across = (int(self.met(way)[-1, -1]) for way in (0, 1))
        return blocks * down * across

    @property
    def slots(self) -> int:
        """Slots that any plan takes."""
        return self.gemms + self.outputs * self.pass_slots

    @property
    def residual_loaded(self) -> bool:
        """Whether the compute unit loads a residual."""
        return self.residual and not self.stored and not self.residual_product

    def store_pace(self, config: Config) -> float:
        """Cycles that a beat of a STORE takes: as many as the lanes need that finish it."""
        return config.bus_bytes / config.lanes if self.stored else 1.0

    def choices(self: SumsT) -> list[SumsT]:
        """All ways to have a residual added."""
        able = self.residual and self.square and not self.stored
        return [self, replace(self, residual_product=True)] if able else [self]

    bias_first: ClassVar[bool] = False
    """Whether LOADs of operands wait for that of a bias that stays."""

    # --- what operators differ in ----------------------------------------------------------------------

    @abstractmethod
    def met(self, way: int) -> IntArray:
        """How many pairs there are of an output above (``way`` 0) or left of (1) a place, and of a tap before
        another, that meet in an element of the input; (outputs + 1, taps + 1)."""

    @abstractmethod
    def seen(self, way: int, outputs: Count, taps: Count) -> IntArray:
        """Most rows or columns of the input that so many outputs and taps side by side load."""

    @abstractmethod
    def loaded(self, way: int, output: Count, outputs: Count, tap: Count, taps: Count) -> IntArray:
        """Rows or columns of the input that outputs and taps from these on load, without padding."""

    @abstractmethod
    def sizes(self, way: int, most: int) -> list[int]:
        """Rows or columns of tiles of the output that are worth trying, about so many."""

    @abstractmethod
    def inputs_moved(self, config: Config, rows: IntArray, columns: IntArray, depth: IntArray) -> Moved:
        """Of the input."""

    @abstractmethod
    def weights_moved(self, config: Config, channels: IntArray, depth: IntArray, taps: IntArray) -> Moved:
        """Of the weights; ``taps`` are rows of the kernel."""

    @abstractmethod
    def outputs_moved(self, config: Config, channels: IntArray, rows: IntArray, columns: IntArray) -> Moved:
        """Of the output, or of the residual."""

    def same_rows(self, below: IntArray, taps: IntArray) -> BoolArray:
        """Whether the last ones of the kernel's rows, so many at a time, meet the same rows of the input as
        the first ones of outputs so many rows below."""
        del below
        return np.zeros_like(taps, dtype=bool)

    def zeros(
        self,
        row: Count,
        rows: Count,
        column: Count,
        columns: Count,
        tap: Count,
        taps: Count,
        *,
        between: BoolArray,
    ) -> IntArray:
        """Elements of zeros that LOADs write around what such outputs and taps meet, for a block of depth;
        where they write ``between`` rows of zeros, only those beside what is read."""
        del rows, column, columns, tap, taps, between
        return np.asarray(0 * row)

    def bias_stays(self, pixels_outer: BoolArray, room: BoolArray) -> BoolArray:
        """Whether the bias of all channels lies in the accumulators throughout, by the order of loops and by
        whether there is room."""
        del pixels_outer
        return room

    @property
    def passes_before(self) -> int:
        """Passes between the products and that which adds a residual."""
        return self.passes - self.resets - _FINISHED_BY

    # --- what they have in common ----------------------------------------------------------------------

    def row_moved(self, element: int, config: Config, channels: IntArray) -> Moved:
        """Something of each of some blocks of channels, side by side."""
        return moved(config, element, (1, 1), (1, 1), channels)

    def kinds(self, way: int, part: int, taps: int) -> int:
        """How many kinds of tiles of so many outputs there are, in steps of so many taps, by what meets."""
        return _kinds(self, way, part, taps)

    def loaded_by(self, way: int, part: int, taps: int) -> int:
        """Rows or columns of the input that all tiles of so many outputs load together, in steps of so many
        taps."""
        return _loaded_by(self, way, part, taps)


@lru_cache(maxsize=1 << 14)
def _kinds(shape: Sums, way: int, part: int, taps: int) -> int:
    pairs = shape.met(way)
    whole, kernel = pairs.shape[0] - 1, pairs.shape[1] - 1
    if int(pairs[-1, -1]) == whole * kernel:
        return 2 if whole % part else 1
    met = np.diff(np.diff(pairs, axis=0), axis=1) > 0
    boxes = (
        met[at : at + part, tap : tap + taps]
        for at in range(0, whole, part)
        for tap in range(0, kernel, taps)
    )
    return len({(box.shape, box.tobytes()) for box in boxes})


@lru_cache(maxsize=1 << 14)
def _loaded_by(shape: Sums, way: int, part: int, taps: int) -> int:
    whole = (shape.rows, shape.columns)[way]
    output = np.arange(0, whole, part)[:, None]
    tap = np.arange(0, shape.kernel[way], taps)
    outputs, some = np.minimum(part, whole - output), np.minimum(taps, shape.kernel[way] - tap)
    return int(shape.loaded(way, output, outputs, tap, some).sum())


def part_sizes(size: int, most: int) -> list[int]:
    """Sizes that cut ``size`` into different numbers of parts, ``most`` of them, spread evenly by ratio."""
    every = list(every_part(size))
    if len(every) <= most:
        return every
    picked = np.unique(np.geomspace(1, len(every), most).round().astype(int)) - 1
    return [every[i] for i in picked]


@lru_cache(maxsize=1 << 10)
def every_part(size: int) -> tuple[int, ...]:
    """The smallest size for each number of parts that ``size`` can be cut into."""
    found, parts = [], 1
    while True:
        part = -(-size // parts)
        found.append(part)
        if part == 1:
            return tuple(reversed(found))
        parts = -(-size // (part - 1))
