"""Rows of zeros above and below what LOADs bring are written once.

    LOAD 0+4x3 pads 1, 1    in one buffer           LOAD 0+4x3 pads 1, 1
    LOAD 0+4x3 pads 1, 1    the next picture        LOAD 3+2x3 pads 0, 0

Padding is written in cycles in which no data come. Where these come without a pause, a LOAD's zeros wait for
the data of all that was asked for behind it, and what is computed from them waits, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from accel.compiler.target.registry import Emitted
from accel.core.config import Config
from accel.core.isa import Load
from accel.core.memories import INP, WGT


def zeros_once(emitted: Sequence[Emitted], config: Config) -> list[Emitted]:
    """The same program, whose LOADs of operands leave out rows of zeros that a buffer still has.

    Args:
        emitted: the program, in the order in which its LOADs are carried out.
        config: the machine.
    """
    if not any(isinstance(one.instruction, Load) and _rows_of(one.instruction) for one in emitted):
        return list(emitted)
    zeros = {memory: np.zeros(memory.depth(config), dtype=bool) for memory in (INP, WGT)}
    found = []
    for one in emitted:
        load = one.instruction
        if not isinstance(load, Load) or load.route is None or load.route.scratchpad not in zeros:
            found.append(one)
            continue
        there = zeros[load.route.scratchpad]
        needed = _without(load, there) if _rows_of(load) else load
        _mark(there, load)
        found.append(one if needed is load else replace(one, instruction=needed))
    return found


def _rows_of(load: Load) -> bool:
    """Whether it writes rows of zeros around others."""
    return bool((load.y_pad_0 or load.y_pad_1) and load.y_size and load.x_size)


def _without(load: Load, there: np.ndarray) -> Load:
    """A LOAD without those rows of zeros above or below that are ``there``."""
    above, below = load.y_pad_0 * load.width, load.y_pad_1 * load.width
    begin, end = load.sram_base, load.sram_base + load.sram_elements
    if above and there[begin : begin + above].all():
        load = replace(load, sram_base=begin + above, y_pad_0=0)
    if below and there[end - below : end].all():
        load = replace(load, y_pad_1=0)
    return load


def _mark(there: np.ndarray, load: Load) -> None:
    """Which elements are zeros once a LOAD has been carried out."""
    begin, end = load.sram_base, load.sram_base + load.sram_elements
    box = there[begin:end].reshape(-1, load.width or 1)
    box[:] = True
    rows = slice(load.y_pad_0, load.y_pad_0 + load.y_size)
    box[rows, load.x_pad_0 : load.x_pad_0 + load.x_size] = False
