"""What is wrong with an instruction by itself, as :func:`accel.core.faults.instruction_fault` has it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value

from accel.core.config import Config
from accel.core.faults import CAUSE_BITS, Cause, most_taps
from accel.core.isa import (
    Alu,
    AluOp,
    Finishing,
    Load,
    Mac,
    Opcode,
    OwnMemory,
    SetAcc,
    SetInp,
    SetOut,
    Store,
    StoreReq,
    Unit,
    loops_of,
)
from accel.core.isa.instructions import TAPS_BITS
from accel.core.memories import PAR
from accel.core.requantize import MAX_ADD_SHIFT
from accel.hw.datapath.kinds import Kind, choose, kind_number, kinds_of
from accel.hw.datapath.layouts import log2, view


def first_fault(m: Module, faults: Sequence[tuple[Value, Value | Cause]]) -> Signal:
    """Cause of the first fault that is there, or NONE."""
    cause = Signal(CAUSE_BITS)
    for position, (fault, name) in enumerate(faults):
        with m.If(fault) if position == 0 else m.Elif(fault):
            m.d.comb += cause.eq(name)
    return cause


def neighbour_fault(flags: Any, *, previous: bool, following: bool) -> Value:
    """A token flag toward a neighbour that the unit does not have."""
    found: Value = Const(0, 1)
    if not previous:
        found = found | flags.pop_prev | flags.push_prev
    if not following:
        found = found | flags.pop_next | flags.push_next
    return found


@dataclass(frozen=True, kw_only=True)
class _Special:
    """What else is wrong with a LOAD or STORE of some kinds, and what is not.

    Attributes:
        unpadded: whether the bits of pads mean something else.
        reserved: whether it has what it must not have.
        unbounded: whether it touches other elements of its scratchpad than ``sram_base`` and its size say.
        beyond: whether it touches more elements than there are of another scratchpad.
    """

    unpadded: Value
    reserved: Value
    unbounded: Value
    beyond: Value


def transfer_faults(
    transfer: Any,
    box: Any,
    mem_size: Value,
    kinds: Sequence[Kind],
    *,
    pads: bool,
    special: _Special | None = None,
) -> list[tuple[Value, Cause]]:
    """Faults of a LOAD or STORE; none if ``x_size`` is zero. ``pads``: whether it may have some."""
    moves = transfer.x_size != 0
    known: Value = Const(0, 1)
    for kind in kinds:
        known = known | (transfer.memory == kind.memory)
    number = kind_number(transfer.memory, kinds)
    faults = [(moves & ~known, Cause.MEMORY_ID)]
    if not pads:
        any_pad = (transfer.y_pad_0 | transfer.y_pad_1 | transfer.x_pad_0 | transfer.x_pad_1) != 0
        if special is not None:
            any_pad = any_pad & ~special.unpadded
        faults.append((moves & any_pad, Cause.STORE_PAD))
    if special is not None:
        faults.append((moves & special.reserved, Cause.RESERVED))
    depth = choose(number, [Const(kind.depth) for kind in kinds])
    stop = choose(number, [box.stop * kind.element_bytes for kind in kinds])
    outside = box.end > depth
    if special is not None:
        outside = (outside & ~special.unbounded) | special.beyond
    faults.append((moves & outside, Cause.SRAM_RANGE))
    faults.append((moves & (transfer.y_size != 0) & (stop > mem_size), Cause.DRAM_RANGE))
    return faults


def cause_of(m: Module, unit: Unit, word: Value, box: Any, mem_size: Value, config: Config) -> Signal:
    """What is wrong with an instruction of a unit by itself: with its fields, or with the memory that it
    covers."""
    transfer, alu = view(Load, config, word), view(Alu, config, word)
    sides = {"previous": unit.previous is not None, "following": unit.next is not None}
    faults = [(neighbour_fault(transfer, **sides), Cause.NEIGHBOUR)]
    if unit is Unit.STORE and config.post:
        faults += store_unit_faults(word, box, mem_size, config)
    else:
        stores = unit is Unit.STORE
        kinds = kinds_of(Store if stores else Load, unit, config)
        moving: Value = Const(1, 1) if stores else transfer.opcode == Opcode.LOAD
        faults += _only(moving, transfer_faults(transfer, box, mem_size, kinds, pads=not stores))
    if unit is Unit.LOAD and config.post:
        faults += inp_set_faults(view(SetInp, config, word))
    if unit is Unit.COMPUTE:
        loops = reduce(or_, (transfer.opcode == cls.OPCODE for cls in loops_of(config)))
        faults += _only(loops, loops_faults(alu, config))
        if config.post:
            faults += compute_set_faults(view(SetAcc, config, word), config)
    return first_fault(m, faults)


def inp_set_faults(setting: Any) -> list[tuple[Value, Cause]]:
    """Faults of a SET that the load unit executes."""
    low, high = (Mux(setting.unsigned, *ends) for ends in ((0, -128), (255, 127)))
    beyond = (setting.zero < low) | (setting.zero > high)
    return [((setting.opcode == Opcode.SET) & beyond, Cause.ZERO_POINT)]


def store_unit_faults(word: Value, box: Any, mem_size: Value, config: Config) -> list[tuple[Value, Cause]]:
    """Faults of what the store unit executes with ``post=1``, but for neighbours and residuals."""
    stores, loads = kinds_of(Store, Unit.STORE, config), kinds_of(Load, Unit.STORE, config)
    store, load, setting = (view(cls, config, word) for cls in (StoreReq, Load, SetOut))
    no = Const(0, 1)
    finished = is_finished(store.memory)
    of_store = _Special(
        unpadded=finished,
        reserved=finished & store.par_y & store.par_x,
        unbounded=no,
        beyond=finished & (par_end(store) > PAR.depth(config)),
    )
    of_res = load.memory == OwnMemory.RES
    of_load = _Special(unpadded=no, reserved=of_res & (load.sram_base != 0), unbounded=of_res, beyond=no)
    is_load, is_set = load.opcode == Opcode.LOAD, load.opcode == Opcode.SET
    is_out = setting.part == SetOut.PART
    return [
        *_only(
            ~is_load & ~is_set, transfer_faults(load, box, mem_size, stores, pads=False, special=of_store)
        ),
        *_only(is_load, transfer_faults(load, box, mem_size, loads, pads=False, special=of_load)),
        (is_set & is_out & (setting.shift > MAX_ADD_SHIFT), Cause.RESERVED),
    ]


def is_finished(memory: Value) -> Value:
    """Whether a STORE's memory id is that of values that are requantized."""
    return reduce(or_, (memory == one for one in Finishing))


def par_end(store: Any) -> Value:
    """The element of PAR behind the last one that a STORE uses, which is finished."""
    extent = Mux(store.par_y, store.y_size, Mux(store.par_x, store.x_size, 1))
    return store.par + Mux((store.x_size != 0) & (store.y_size != 0), extent, 0)


def _only(condition: Value, faults: Sequence[tuple[Value, Cause]]) -> list[tuple[Value, Cause]]:
    """Faults of a kind of instruction."""
    return [(condition & fault, cause) for fault, cause in faults]


def loops_faults(alu: Any, config: Config) -> list[tuple[Value, Cause]]:
    """Faults of an instruction with micro-ops, seen as an ALU instruction."""
    operation = (alu.opcode == Opcode.ALU) & (alu.alu_op > max(AluOp))
    reserved = []
    if config.post and not config.depthwise:
        mac = view(Mac, config, Value.cast(alu))
        reserved.append(((mac.opcode == Opcode.MAC) & mac.depthwise, Cause.RESERVED))
    return [
        (operation, Cause.ALU_OP),
        *reserved,
        (loops_run(alu) & (alu.uop_end > config.uop_depth), Cause.UOP_RANGE),
    ]


def compute_set_faults(setting: Any, config: Config) -> list[tuple[Value, Cause]]:
    """Faults of a SET that the compute unit executes, seen as SET.ACC: it finds unknown memory ids, too."""
    is_set, known = setting.opcode == Opcode.SET, setting.memory == SetAcc.MEMORY
    return [
        (is_set & ~known, Cause.MEMORY_ID),
        (is_set & known & _taps_beyond(setting, config), Cause.RESERVED),
    ]


def _taps_beyond(setting: Any, config: Config) -> Value:
    """Whether a SET.ACC has more taps than its step allows."""
    banks = config.tap_banks
    most: Value = Const(most_taps(0, config), TAPS_BITS)
    for bit in reversed(range(log2(banks))):
        most = Mux(setting.step[bit], most_taps(1 << bit, config), most)
    return setting.taps > most


def loops_run(loops: Any) -> Value:
    """Whether an instruction executes any micro-op."""
    return (loops.iter_out != 0) & (loops.iter_in != 0) & (loops.uop_begin < loops.uop_end)
