"""LOAD and STORE: boxes of rows between DRAM and the scratchpads."""

import numpy as np

from accel.core.access import dram_rows
from accel.core.config import Config
from accel.core.isa import Load, Memory, Store
from accel.image.dram import Dram
from accel.sim.functional.scratchpads import Scratchpads


def execute_load(instruction: Load, config: Config, dram: Dram, pads: Scratchpads) -> None:
    """Fill ``height`` rows of ``width`` elements, zero where there are pads."""
    if not instruction.sram_elements:
        return
    scratchpad = pads.of(instruction.memory)
    rows = dram_rows(instruction, config)
    begin, elements = instruction.sram_base, instruction.sram_elements
    padded = elements != instruction.y_size * instruction.x_size
    if rows is not None and not padded and instruction.memory != Memory.ACC_8BIT:
        target = scratchpad[begin : begin + elements].view(np.uint8)
        target.reshape(rows.rows, rows.row_bytes)[...] = dram.view_rows(rows)
        return
    box = scratchpad[begin : begin + elements]
    box = box.reshape(instruction.height, instruction.width, *scratchpad.shape[1:])
    if padded:
        box[...] = 0
    if rows is None:
        return
    dtype = np.dtype("i1") if instruction.memory == Memory.ACC_8BIT else scratchpad.dtype
    data = dram.read_rows(rows).view(dtype)
    top, left = instruction.y_pad_0, instruction.x_pad_0
    inner = box[top : top + instruction.y_size, left : left + instruction.x_size]
    inner[...] = data.reshape(inner.shape)


def execute_store(instruction: Store, config: Config, dram: Dram, pads: Scratchpads) -> None:
    """Write the low 8 bits of the accumulators."""
    rows = dram_rows(instruction, config)
    if rows is None:
        return
    begin = instruction.sram_base
    low = pads.acc[begin : begin + instruction.sram_elements].astype(np.int8)
    dram.write_rows(rows, low.view(np.uint8).reshape(rows.rows, rows.row_bytes))
