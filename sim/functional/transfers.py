"""LOAD and STORE: boxes of rows between DRAM and the scratchpads."""

from collections.abc import Mapping

import numpy as np

from accel.core.access import dram_rows
from accel.core.config import Config
from accel.core.isa import Load, Set, SetAcc, SetInp, Store
from accel.image.dram import Dram
from accel.sim.functional.scratchpads import Scratchpads


def execute_load(
    instruction: Load, config: Config, dram: Dram, pads: Scratchpads, settings: Mapping[int, Set]
) -> None:
    """Fill ``height`` rows of ``width`` elements, zero where there are pads; ``settings``: by memory id."""
    route = instruction.route
    if route is None or not instruction.sram_elements:
        return
    scratchpad = pads.of(route.scratchpad)
    rows = dram_rows(instruction, config)
    begin, elements = instruction.sram_base, instruction.sram_elements
    padded = elements != instruction.y_size * instruction.x_size
    if rows is not None and not padded and route.copies(config):
        target = scratchpad[begin : begin + elements].view(np.uint8)
        target.reshape(rows.rows, rows.row_bytes)[...] = dram.view_rows(rows)
        return
    box = scratchpad[begin : begin + elements]
    box = box.reshape(instruction.height, instruction.width, *scratchpad.shape[1:])
    if padded:
        box[...] = 0
    if rows is None:
        return
    setting = None if route.set_by is None else settings.get(route.set_by)
    unsigned = isinstance(setting, SetInp | SetAcc) and setting.unsigned
    data = dram.read_rows(rows).view(f"u{route.dtype}" if unsigned else route.dtype)
    top, left = instruction.y_pad_0, instruction.x_pad_0
    inner = box[top : top + instruction.y_size, left : left + instruction.x_size]
    inner[...] = data.reshape(inner.shape)
    if isinstance(setting, SetInp) and setting.zero:
        inner -= setting.zero


def execute_store(instruction: Store, config: Config, dram: Dram, pads: Scratchpads) -> None:
    """Write elements, of accumulators the low bits or all, as the memory id says."""
    route, rows = instruction.route, dram_rows(instruction, config)
    if route is None or rows is None:
        return
    begin = instruction.sram_base
    low = pads.of(route.scratchpad)[begin : begin + instruction.sram_elements].astype(route.dtype)
    dram.write_rows(rows, low.view(np.uint8).reshape(rows.rows, rows.row_bytes))
