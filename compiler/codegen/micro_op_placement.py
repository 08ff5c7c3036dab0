"""Placement of micro-ops: equal lists are stored once, and loaded once if all fit."""

from collections.abc import Mapping, Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from accel.base.errors import ScheduleError
from accel.base.interned_sequence import Distinct
from accel.base.records import replace
from accel.compiler.target.emitter_registry import Emitted
from accel.core.config import Config
from accel.core.isa import Instruction, Load, Loops, Memory, encode_uops

MICRO_OPS = -1
"""Source of LOADs of micro-ops, which were not emitted."""


class PlacedUops(Struct, frozen=True, kw_only=True):
    """A program with its micro-ops placed.

    Attributes:
        program: with LOADs of micro-ops, whose ``dram_base`` counts from the start of ``words``.
        sources: each instruction's number in ``items``, or ``MICRO_OPS``.
    """

    items: Distinct[Emitted]
    program: Distinct[Instruction]
    sources: npt.NDArray[np.int32]
    words: npt.NDArray[np.uint32]

    def renumbered(self, waits: Mapping[int, int]) -> dict[int, int]:
        """Convert emitted positions to positions in ``program``."""
        positions = np.flatnonzero(self.sources != MICRO_OPS)
        return {int(positions[late]): int(positions[early]) for late, early in waits.items()}


def place_uops(emitted: Sequence[Emitted], config: Config) -> PlacedUops:
    """Place every micro-op list, with LOADs where they are first needed."""
    items = Distinct(emitted)
    instructions = [item.instruction for item in items.every]
    chosen = items.places.copy()
    fillings: list[list[npt.NDArray[np.uint32]]] = []
    loads: list[int] = []
    """The items before which they come."""
    offsets: dict[bytes, int] = {}
    used = config.uop_depth + 1
    placed: dict[tuple[int, int], int] = {}
    keys: dict[int, tuple[bytes, npt.NDArray[np.uint32]]] = {}
    looped = items.where(lambda item: isinstance(item.instruction, Loops))
    for at, number in zip(looped.tolist(), chosen[looped].tolist(), strict=True):
        if number not in keys:
            words = encode_uops(items.every[number].uops, config)
            keys[number] = (words.tobytes(), words)
        key, words = keys[number]
        if len(words) > config.uop_depth:
            raise ScheduleError(
                f"{instructions[number].mnemonic} needs {len(words)} micro-ops; "
                f"the memory holds {config.uop_depth}"
            )
        if key not in offsets and used + len(words) > config.uop_depth:
            offsets, used = {}, 0
            fillings.append([])
            loads.append(at)
        if key not in offsets:
            offsets[key] = used
            used += len(words)
            fillings[-1].append(words)
        begin = offsets[key]
        if (number, begin) not in placed:
            placed[number, begin] = len(instructions)
            instructions.append(
                replace(items.every[number].instruction, uop_begin=begin, uop_end=begin + len(words))
            )
        chosen[at] = placed[number, begin]
    added = np.arange(len(loads)) + len(instructions)
    return PlacedUops(
        items=items,
        program=Distinct.chosen([*instructions, *_loads(fillings)], np.insert(chosen, loads, added)),
        sources=np.insert(np.arange(len(emitted), dtype=np.int32), loads, MICRO_OPS),
        words=_concatenated(fillings),
    )


def _loads(fillings: list[list[npt.NDArray[np.uint32]]]) -> list[Load]:
    counts = [sum(len(words) for words in filling) for filling in fillings]
    ends = accumulate(counts)
    return [
        Load(memory=Memory.UOP, dram_base=end - count, y_size=1, x_size=count, x_stride=count)
        for count, end in zip(counts, ends, strict=True)
    ]


def _concatenated(fillings: list[list[npt.NDArray[np.uint32]]]) -> npt.NDArray[np.uint32]:
    every = [words for filling in fillings for words in filling]
    return np.concatenate(every) if every else np.zeros(0, dtype=np.uint32)
