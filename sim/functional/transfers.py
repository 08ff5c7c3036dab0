"""LOAD and STORE: boxes of rows between DRAM and the scratchpads, and what SETs say about them."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from accel.core.access import dram_rows
from accel.core.config import Config
from accel.core.faults import NOTHING_SET, residual_change
from accel.core.isa import (
    Load,
    LoadRes,
    Opcode,
    Set,
    SetAcc,
    SetInp,
    SetOut,
    SetSum,
    Store,
    StoreAdd,
    StoreReq,
    class_of,
)
from accel.core.memories import Route
from accel.core.requantize import add, multipliers_and_exponents, requantize
from accel.image.dram import Dram
from accel.sim.functional.scratchpads import Scratchpads


class Copy(NamedTuple):
    """A LOAD that copies bytes as they are, worth looking at once."""

    instruction: Load
    target: npt.NDArray[np.uint8]
    source: npt.NDArray[np.uint8]
    """Views of scratchpad and DRAM, of one shape."""
    moves: int
    """Of the DRAM, while which the view of it is good."""


def copy_of(instruction: Load, config: Config, dram: Dram, pads: Scratchpads) -> Copy | None:
    """The copy that a LOAD is, which is not at fault; None if it is more than that, or no view shows it."""
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


class RunState:
    """What a run has besides memory: what its SETs have set, and which elements of RES are in use."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._last: dict[type[Set], Set] = {}
        self._loaded = 0
        self._taken = 0

    # --- settings: all zero where there was no SET -------------------------------------------------

    def take_setting(self, setting: Set) -> None:
        """Execute a SET."""
        self._last[type(setting)] = setting

    def loads(self, route: Route) -> SetInp | SetAcc | None:
        """What was set of LOADs through a route; None if nothing was, or nothing ever is."""
        kind = None if route.set_by is None else class_of(Opcode.SET, route.set_by, self._config)
        found = self._last.get(kind) if kind is not None and issubclass(kind, Set) else None
        return found if isinstance(found, SetInp | SetAcc) else None

    @property
    def acc(self) -> SetAcc:
        """What was set of LOADs of ACC_8BIT and of depthwise MACs."""
        found = self._last.get(SetAcc)
        return found if isinstance(found, SetAcc) else NOTHING_SET

    @property
    def out(self) -> SetOut:
        """What was set of requantized values."""
        found = self._last.get(SetOut)
        return found if isinstance(found, SetOut) else SetOut()

    @property
    def sum(self) -> SetSum:
        """What was set of sums with residuals."""
        found = self._last.get(SetSum)
        return found if isinstance(found, SetSum) else SetSum()

    # --- residuals: loaded in the run and not yet taken, the oldest first --------------------------

    @property
    def held(self) -> int:
        """How many elements of RES are in use."""
        return self._loaded - self._taken

    def load_residuals(self, count: int) -> npt.NDArray[np.intp]:
        """The elements of RES that the next ``count`` operands go to."""
        self._loaded += count
        return self._places(self._loaded - count, count)

    def take_residuals(self, count: int) -> npt.NDArray[np.intp]:
        """The elements of RES that hold the oldest ``count`` operands."""
        self._taken += count
        return self._places(self._taken - count, count)

    def _places(self, first: int, count: int) -> npt.NDArray[np.intp]:
        return np.arange(first, first + count, dtype=np.intp) % self._config.res_depth


def execute_load(
    instruction: Load,
    config: Config,
    dram: Dram,
    pads: Scratchpads,
    state: RunState,
) -> None:
    """Fill ``height`` rows of ``width`` elements, zero where there are pads; or append them to RES."""
    route = instruction.route
    if route is None or not instruction.sram_elements:
        return
    scratchpad = pads.of(route.scratchpad)
    rows = dram_rows(instruction, config)
    if isinstance(instruction, LoadRes):
        if rows is not None:
            places = state.load_residuals(residual_change(instruction))
            scratchpad[places] = dram.read_rows(rows).view(route.dtype).reshape(-1, *scratchpad.shape[1:])
        return
    begin, elements = instruction.sram_base, instruction.sram_elements
    padded = elements != instruction.y_size * instruction.x_size
    box = scratchpad[begin : begin + elements]
    box = box.reshape(instruction.height, instruction.width, *scratchpad.shape[1:])
    if padded:
        box[...] = 0
    if rows is None:
        return
    setting = state.loads(route)
    unsigned = setting is not None and setting.unsigned
    data = dram.read_rows(rows).view(f"u{route.dtype}" if unsigned else route.dtype)
    top, left = instruction.y_pad_0, instruction.x_pad_0
    inner = box[top : top + instruction.y_size, left : left + instruction.x_size]
    inner[...] = data.reshape(inner.shape)
    if isinstance(setting, SetInp) and setting.zero:
        inner -= setting.zero


def execute_store(
    instruction: Store,
    config: Config,
    dram: Dram,
    pads: Scratchpads,
    state: RunState,
) -> None:
    """Write elements, of accumulators the low bits or all, or what they are finished to, as the memory id
    says."""
    rows = dram_rows(instruction, config)
    if rows is not None:
        dram.write_rows(rows, stored(instruction, pads, state).reshape(rows.rows, rows.row_bytes))


def stored(instruction: Store, pads: Scratchpads, state: RunState) -> npt.NDArray[np.uint8]:
    """The bytes that a STORE writes, in order, uint8[bytes]; STORE.ADD takes its operands for that.

    Args:
        instruction: one that is not at fault and moves something.
        pads: the scratchpads; they are not changed.
        state: of the run; changed.
    """
    route = instruction.route
    assert route is not None
    begin = instruction.sram_base
    values: npt.NDArray[Any] = pads.of(route.scratchpad)[begin : begin + instruction.sram_elements]
    if isinstance(instruction, StoreReq):
        values = _requantized(instruction, values, pads, state.out)
    if isinstance(instruction, StoreAdd):
        assert pads.res is not None
        places = state.take_residuals(-residual_change(instruction))
        right = pads.res[places]
        values = _sums(values, right.view(np.uint8) if state.out.unsigned else right, state)
    return values.astype(route.dtype).view(np.uint8).reshape(-1)


def _requantized(
    instruction: StoreReq, sums: npt.NDArray[np.int32], pads: Scratchpads, setting: SetOut
) -> npt.NDArray[np.int64]:
    """Accumulators [elements, batch, block_out] by the elements of PAR that the instruction says."""
    assert pads.par is not None
    found = pads.par[instruction.par : instruction.par + instruction.par_elements]
    if instruction.par_y:
        found = np.repeat(found, instruction.x_size, axis=0)
    elif instruction.par_x:
        found = np.tile(found, (instruction.y_size, 1, 1))
    bias, scale = found[:, None, :, 0], found[:, None, :, 1]
    return requantize(
        sums,
        bias,
        *multipliers_and_exponents(scale),
        zero=setting.zero,
        low=setting.low,
        high=setting.high,
    )


def _sums(left: npt.NDArray[np.int64], right: npt.NDArray[Any], state: RunState) -> npt.NDArray[np.int64]:
    """Requantized values plus residuals."""
    out, total = state.out, state.sum
    return add(
        left,
        right,
        multipliers=(total.left_multiplier, total.right_multiplier),
        shift=out.shift,
        offset=out.offset,
        zeros=(out.left_zero, out.right_zero),
        zero=total.zero,
        low=total.low,
        high=total.high,
    )
