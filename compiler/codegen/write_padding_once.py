"""Write rows of padding once, if later LOADs into the same buffer would write the same zeros.

For two LOADs of 4 rows of 3 elements with one row of zeros above and below::

    before                                   after
    LOAD.INP 0 +4x3 pads 1, 1                LOAD.INP 0 +4x3 pads 1, 1
    LOAD.INP 0 +4x3 pads 1, 1                LOAD.INP 3 +4x3 pads 0, 0

The load unit writes zeros in cycles without arriving data. If data arrive without a pause, the zeros wait for
the data of all later LOADs in flight, and so do the products that read them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from accel.base.records import replace
from accel.compiler.codegen.reorder_pass import EmittedProgram, ReorderPass
from accel.compiler.target.emitter_registry import Emitted
from accel.core.config import Config
from accel.core.isa import Load
from accel.core.scratchpad_specs import INP, WGT


class WritePaddingOnce(ReorderPass, frozen=True):
    name = "write-padding-once"
    reason = "Products do not wait for zeros that the scratchpad holds already."

    def run(self, program: EmittedProgram) -> EmittedProgram:
        """LOADs must have their final order."""
        loads = (one.instruction for one in program.emitted if isinstance(one.instruction, Load))
        if not any(map(_has_zero_rows, loads)):
            return program
        return program.with_order(_without_redundant_zeros(program.emitted, program.config))


def _without_redundant_zeros(emitted: Sequence[Emitted], config: Config) -> list[Emitted]:
    zeros = {memory: np.zeros(memory.depth(config), dtype=bool) for memory in (INP, WGT)}
    """For each element, whether it is zero because a LOAD has padded it."""
    found = []
    for one in emitted:
        load = one.instruction
        if not isinstance(load, Load) or load.route is None or load.route.scratchpad not in zeros:
            found.append(one)
            continue
        is_zero = zeros[load.route.scratchpad]
        needed = _drop_zero_rows(load, is_zero) if _has_zero_rows(load) else load
        _update_zeros(is_zero, load)
        found.append(one if needed is load else replace(one, instruction=needed))
    return found


def _has_zero_rows(load: Load) -> bool:
    return bool((load.y_pad_0 or load.y_pad_1) and load.y_size and load.x_size)


def _drop_zero_rows(load: Load, is_zero: np.ndarray) -> Load:
    above, below = load.y_pad_0 * load.width, load.y_pad_1 * load.width
    begin, end = load.sram_base, load.sram_base + load.sram_elements
    if above and is_zero[begin : begin + above].all():
        load = replace(load, sram_base=begin + above, y_pad_0=0)
    if below and is_zero[end - below : end].all():
        load = replace(load, y_pad_1=0)
    return load


def _update_zeros(is_zero: np.ndarray, load: Load) -> None:
    begin, end = load.sram_base, load.sram_base + load.sram_elements
    rows = is_zero[begin:end].reshape(-1, load.width or 1)
    rows[:] = True
    data = slice(load.y_pad_0, load.y_pad_0 + load.y_size)
    rows[data, load.x_pad_0 : load.x_pad_0 + load.x_size] = False
