"""LOADs and STOREs."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from accel.core.config import Config
from accel.core.fault_causes import NOTHING_SET, residual_change
from accel.core.instruction_access import dram_rows
from accel.core.isa import (
    Load,
    LoadRes,
    Set,
    SetAcc,
    SetBytes,
    SetOut,
    SetSum,
    Store,
    StoreAdd,
    StoreMul,
    StoreReq,
    setting_of,
)
from accel.core.requantize import add, multipliers_and_exponents, multiply, requantize
from accel.core.scratchpad_specs import TABLE_BYTES, Route
from accel.image.dram import Dram
from accel.sim.functional.scratchpads import Scratchpads


class Copy(NamedTuple):
    instruction: Load
    target: npt.NDArray[np.uint8]
    source: npt.NDArray[np.uint8]
    moves: int
    """The value of ``Dram.moves`` for which ``source`` is valid."""


def copy_of(instruction: Load, config: Config, dram: Dram, pads: Scratchpads) -> Copy | None:
    """Return a fault-free LOAD's views, or None if it does more than copy bytes."""
    route = instruction.route
    if route is None or isinstance(instruction, LoadRes) or not route.copies(config):
        return None
    rows = dram_rows(instruction, config)
    begin, elements = instruction.sram_base, instruction.sram_elements
    if rows is None or elements != instruction.y_size * instruction.x_size:
        return None
    source = dram.lasting_rows(rows)
    if source is None:
        return None
    target = pads.of(route.scratchpad)[begin : begin + elements].view(np.uint8)
    return Copy(instruction, target.reshape(rows.rows, rows.row_bytes), source, dram.moves)


class ControlState:
    """The state apart from memories: settings of SETs, and the use of RES."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._settings: dict[type[Set], Set] = {}
        self._loaded = 0
        self._consumed = 0

    def apply_setting(self, setting: Set) -> None:
        self._settings[type(setting)] = setting

    def load_setting(self, route: Route) -> SetBytes | SetAcc | None:
        kind = setting_of(route, self._config)
        found = None if kind is None else self._settings.get(kind)
        return found if isinstance(found, SetBytes | SetAcc) else None

    @property
    def acc_setting(self) -> SetAcc:
        found = self._settings.get(SetAcc)
        return found if isinstance(found, SetAcc) else NOTHING_SET

    @property
    def out_setting(self) -> SetOut:
        found = self._settings.get(SetOut)
        return found if isinstance(found, SetOut) else SetOut()

    @property
    def sum_setting(self) -> SetSum:
        found = self._settings.get(SetSum)
        return found if isinstance(found, SetSum) else SetSum()

    @property
    def residual_count(self) -> int:
        return self._loaded - self._consumed

    def load_residuals(self, count: int) -> npt.NDArray[np.intp]:
        self._loaded += count
        return self._residual_elements(self._loaded - count, count)

    def consume_residuals(self, count: int) -> npt.NDArray[np.intp]:
        self._consumed += count
        return self._residual_elements(self._consumed - count, count)

    def _residual_elements(self, first: int, count: int) -> npt.NDArray[np.intp]:
        return np.arange(first, first + count, dtype=np.intp) % self._config.res_depth


def execute_load(
    instruction: Load,
    config: Config,
    dram: Dram,
    pads: Scratchpads,
    state: ControlState,
) -> None:
    """Fill ``height`` rows of ``width`` elements, with zeros in the pads, or append residuals to RES."""
    route = instruction.route
    if route is None or not instruction.sram_elements:
        return
    scratchpad = pads.of(route.scratchpad)
    rows = dram_rows(instruction, config)
    if isinstance(instruction, LoadRes):
        if rows is not None:
            residuals = state.load_residuals(residual_change(instruction))
            scratchpad[residuals] = dram.read_rows(rows).view(route.dtype).reshape(-1, *scratchpad.shape[1:])
        return
    begin, elements = instruction.sram_base, instruction.sram_elements
    padded = elements != instruction.y_size * instruction.x_size
    box = scratchpad[begin : begin + elements]
    box = box.reshape(instruction.height, instruction.width, *scratchpad.shape[1:])
    if padded:
        box[...] = 0
    if rows is None:
        return
    setting = state.load_setting(route)
    unsigned = setting is not None and setting.unsigned
    data = dram.read_rows(rows).view(f"u{route.dtype}" if unsigned else route.dtype)
    top, left = instruction.y_pad_0, instruction.x_pad_0
    inner = box[top : top + instruction.y_size, left : left + instruction.x_size]
    inner[...] = data.reshape(inner.shape)
    if isinstance(setting, SetBytes) and setting.zero:
        inner -= setting.zero


def execute_store(
    instruction: Store,
    config: Config,
    dram: Dram,
    pads: Scratchpads,
    state: ControlState,
) -> None:
    """Write accumulators to DRAM: low bytes, all bytes, or requantized values."""
    rows = dram_rows(instruction, config)
    if rows is not None:
        dram.write_rows(rows, stored_bytes(instruction, pads, state).reshape(rows.rows, rows.row_bytes))


def stored_bytes(instruction: Store, pads: Scratchpads, state: ControlState) -> npt.NDArray[np.uint8]:
    """Return the bytes that a STORE writes, uint8[bytes], and remove its residuals from RES."""
    route = instruction.route
    assert route is not None
    begin = instruction.sram_base
    values: npt.NDArray[Any] = pads.of(route.scratchpad)[begin : begin + instruction.sram_elements]
    if isinstance(instruction, StoreReq):
        values = _requantized(instruction, values, pads, state.out_setting)
    if isinstance(instruction, StoreAdd):
        assert pads.res is not None
        residuals = state.consume_residuals(-residual_change(instruction))
        right = pads.res[residuals]
        right = right.view(np.uint8) if state.out_setting.unsigned else right
        values = _combined(instruction, values, right, state)
    return values.astype(route.dtype).view(np.uint8).reshape(-1)


def _requantized(
    instruction: StoreReq, sums: npt.NDArray[np.int32], pads: Scratchpads, setting: SetOut
) -> npt.NDArray[np.int32]:
    assert pads.par is not None
    found = pads.par[instruction.par : instruction.par + instruction.par_elements]
    if instruction.par_y:
        found = np.repeat(found, instruction.x_size, axis=0)
    elif instruction.par_x:
        found = np.tile(found, (instruction.y_size, 1, 1))
    bias, scale = found[:, None, :, 0], found[:, None, :, 1]
    result = requantize(
        sums,
        bias,
        *multipliers_and_exponents(scale),
        zero=setting.zero,
        low=setting.low,
        high=setting.high,
    )
    if not instruction.table:
        return result
    assert pads.tab is not None
    kind = np.uint8 if setting.table_unsigned else np.int8
    table: npt.NDArray[np.int32] = pads.tab[instruction.table - 1, 0].view(kind).astype(np.int32)
    return np.take(table, result & (TABLE_BYTES - 1))


def _combined(
    instruction: StoreAdd, left: npt.NDArray[np.int32], right: npt.NDArray[Any], state: ControlState
) -> npt.NDArray[np.int32]:
    out, total = state.out_setting, state.sum_setting
    settings: dict[str, Any] = {
        "shift": out.shift,
        "offset": out.offset,
        "zeros": (out.left_zero, out.right_zero),
        "zero": total.zero,
        "low": total.low,
        "high": total.high,
    }
    if isinstance(instruction, StoreMul):
        return multiply(left, right, multiplier=total.left_multiplier, **settings)
    return add(left, right, multipliers=(total.left_multiplier, total.right_multiplier), **settings)
