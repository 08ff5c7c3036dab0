"""LOAD and STORE: boxes of rows between DRAM and the scratchpads."""

import numpy as np
import numpy.typing as npt

from accel.access import dram_rows
from accel.config import Config
from accel.dram import Dram
from accel.isa import Load, Memory, Store
from accel.sim.functional.scratchpads import Scratchpads


def execute_load(instruction: Load, config: Config, dram: Dram, pads: Scratchpads) -> None:
    """Fill ``height`` rows of ``width`` elements, zero where there are pads."""
    if not instruction.sram_elements:
        return
    target, dtype = _target(instruction.memory, pads)
    begin = instruction.sram_base
    box = target[begin : begin + instruction.sram_elements]
    box = box.reshape(instruction.height, instruction.width, *target.shape[1:])
    if instruction.sram_elements != instruction.y_size * instruction.x_size:
        box[...] = 0
    rows = dram_rows(instruction, config)
    if rows is None:
        return
    data = dram.read_rows(rows).view(dtype).reshape(instruction.y_size, instruction.x_size, *target.shape[1:])
    top, left = instruction.y_pad_0, instruction.x_pad_0
    box[top : top + instruction.y_size, left : left + instruction.x_size] = data


def execute_store(instruction: Store, config: Config, dram: Dram, pads: Scratchpads) -> None:
    """Write the low 8 bits of the accumulators."""
    rows = dram_rows(instruction, config)
    if rows is None:
        return
    begin = instruction.sram_base
    low = pads.acc[begin : begin + instruction.sram_elements].astype(np.int8)
    dram.write_rows(rows, low.view(np.uint8).reshape(rows.rows, rows.row_bytes))


def _target(memory: int, pads: Scratchpads) -> tuple[npt.NDArray[np.generic], str]:
    """The scratchpad that a memory id fills, and the dtype of its elements in DRAM."""
    if memory == Memory.UOP:
        return pads.uop, "<u4"
    if memory == Memory.WGT:
        return pads.wgt, "i1"
    if memory == Memory.INP:
        return pads.inp, "i1"
    return pads.acc, "i1" if memory == Memory.ACC_8BIT else "<i4"
