"""Micro-ops: equal lists are held once, and loaded once where all of them fit.

The micro-op memory is filled from the start; when a list does not fit any more, filling starts over with
all that is needed from there on. Each filling is one LOAD.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from accel.base.errors import ScheduleError
from accel.compiler.target.registry import Emitted
from accel.core.config import Config
from accel.core.isa import Instruction, Load, Loops, Memory, encode_uops

MICRO_OPS = -1
"""In place of a number where an instruction was not emitted, but loads micro-ops."""


@dataclass(frozen=True, kw_only=True)
class PlacedUops:
    """A program with its micro-ops placed.

    Attributes:
        instructions: LOADs of micro-ops included, their ``dram_base`` counted from ``words``' start.
        sources: for each instruction its number in what was emitted; ``MICRO_OPS`` for those LOADs.
        words: the encoded micro-ops of all fillings.
    """

    instructions: list[Instruction]
    sources: list[int]
    words: npt.NDArray[np.uint32]


def place_uops(emitted: Sequence[Emitted], config: Config) -> PlacedUops:
    """Give every micro-op list its place and put the LOADs where they are first needed.

    Raises:
        ScheduleError: one instruction alone needs more micro-ops than the memory holds.
    """
    instructions: list[Instruction] = []
    sources: list[int] = []
    fillings: list[list[npt.NDArray[np.uint32]]] = []
    loads: list[int] = []
    offsets: dict[bytes, int] = {}
    used = config.uop_depth + 1
    placed: dict[tuple[int, int], Instruction] = {}
    keys: dict[int, tuple[bytes, npt.NDArray[np.uint32]]] = {}
    for number, item in enumerate(emitted):
        instruction = item.instruction
        if not isinstance(instruction, Loops):
            instructions.append(instruction)
            sources.append(number)
            continue
        if id(item) not in keys:
            words = encode_uops(item.uops, config)
            keys[id(item)] = (words.tobytes(), words)
        key, words = keys[id(item)]
        if len(words) > config.uop_depth:
            raise ScheduleError(
                f"{instruction.mnemonic} needs {len(words)} micro-ops; the memory holds {config.uop_depth}"
            )
        if key not in offsets and used + len(words) > config.uop_depth:
            offsets, used = {}, 0
            fillings.append([])
            loads.append(len(instructions))
            instructions.append(Load(memory=Memory.UOP))
            sources.append(MICRO_OPS)
        if key not in offsets:
            offsets[key] = used
            used += len(words)
            fillings[-1].append(words)
        begin = offsets[key]
        where = (id(item), begin)
        if where not in placed:
            placed[where] = replace(instruction, uop_begin=begin, uop_end=begin + len(words))
        instructions.append(placed[where])
        sources.append(number)
    return PlacedUops(
        instructions=_fill_in(instructions, loads, fillings),
        sources=sources,
        words=_concatenated(fillings),
    )


def _fill_in(
    instructions: list[Instruction], loads: list[int], fillings: list[list[npt.NDArray[np.uint32]]]
) -> list[Instruction]:
    base = 0
    for position, filling in zip(loads, fillings, strict=True):
        count = sum(len(words) for words in filling)
        instructions[position] = Load(
            memory=Memory.UOP, dram_base=base, y_size=1, x_size=count, x_stride=count
        )
        base += count
    return instructions


def _concatenated(fillings: list[list[npt.NDArray[np.uint32]]]) -> npt.NDArray[np.uint32]:
    every = [words for filling in fillings for words in filling]
    return np.concatenate(every) if every else np.zeros(0, dtype=np.uint32)
