"""Faults of a single instruction, as in ``fault_causes.instruction_fault``."""

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data
from msgspec import Struct

from accel.base.records import field_values, replace
from accel.core.config import DRAM_ADDRESS_BITS, Config
from accel.core.fault_causes import CAUSE_BITS, Cause, most_taps
from accel.core.isa import (
    Alu,
    AluHigh,
    Finishing,
    Load,
    Mac,
    Opcode,
    OwnMemory,
    SetAcc,
    SetBytes,
    SetOut,
    Store,
    StoreOperand,
    StoreReq,
    Unit,
    exists,
    loops_of,
    routes_of,
    store_operands_of,
)
from accel.core.isa.field_widths import TAPS_BITS
from accel.core.requantize import MAX_ADD_SHIFT
from accel.hw.datapath.transfer_memories import RESIDUAL_STORES, Kind, choose, kind_number, kinds_of
from accel.hw.datapath.word_layouts import log2, sram_bits, view


def first_fault(m: Module, faults: Sequence[tuple[Value, Value | Cause]]) -> Signal:
    """Return the first cause whose condition holds, or NONE."""
    cause = Signal(CAUSE_BITS)
    for position, (fault, name) in enumerate(faults):
        with m.If(fault) if position == 0 else m.Elif(fault):
            m.d.comb += cause.eq(name)
    return cause


def neighbour_fault(flags: Any, *, previous: bool, following: bool) -> Value:
    found: Value = Const(0, 1)
    if not previous:
        found = found | flags.pop_prev | flags.push_prev
    if not following:
        found = found | flags.pop_next | flags.push_next
    return found


class _Special(Struct, frozen=True, kw_only=True):
    """Exceptions for some kinds of transfers.

    Attributes:
        unbounded: ``sram_base`` and the size do not tell the accessed elements.
        beyond: elements of another scratchpad are out of range.
    """

    unpadded: Value
    reserved: Value
    unbounded: Value
    beyond: Value


class WordLayout(data.StructLayout):
    """An instruction word's first fault ``cause``. The box must end within a scratchpad of ``depth`` elements
    if ``in_sram``, and within a memory of ``room`` elements if ``in_dram``."""

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "cause": CAUSE_BITS,
                "in_sram": 1,
                "depth": sram_bits(config),
                "in_dram": 1,
                "room": DRAM_ADDRESS_BITS + 1,
            }
        )


class _Bounds(Struct, frozen=True, kw_only=True):
    in_sram: Value
    depth: Value
    in_dram: Value
    room: Value


def transfer_faults(
    transfer: Any,
    mem_size: Value,
    kinds: Sequence[Kind],
    config: Config,
    *,
    pads: bool,
    special: _Special | None = None,
) -> tuple[list[tuple[Value, Cause]], _Bounds]:
    """Return the faults in the word of a LOAD or STORE, and its box's limits, unless ``x_size`` is zero."""
    moves = transfer.x_size != 0
    known: Value = Const(0, 1)
    for kind in kinds:
        known = known | (transfer.memory == kind.memory)
    number = kind_number(transfer.memory, kinds, config)
    faults = [(moves & ~known, Cause.MEMORY_ID)]
    if not pads:
        any_pad = (transfer.y_pad_0 | transfer.y_pad_1 | transfer.x_pad_0 | transfer.x_pad_1) != 0
        if special is not None:
            any_pad = any_pad & ~special.unpadded
        faults.append((moves & any_pad, Cause.STORE_PAD))
    in_sram = moves
    if special is not None:
        in_sram = moves & ~special.unbounded
        faults += [(moves & special.reserved, Cause.RESERVED), (moves & special.beyond, Cause.SRAM_RANGE)]
    bounds = _Bounds(
        in_sram=in_sram,
        depth=choose(number, [Const(kind.depth) for kind in kinds]),
        in_dram=moves & (transfer.y_size != 0),
        room=choose(number, [mem_size >> log2(kind.element_bytes) for kind in kinds]),
    )
    return faults, bounds


def known_of(m: Module, unit: Unit, word: Value, mem_size: Value, config: Config) -> data.View:
    """Check an instruction's word."""
    transfer, alu = view(Load, config, word), view(Alu, config, word)
    sides = {"previous": unit.previous is not None, "following": unit.next is not None}
    faults = [(neighbour_fault(transfer, **sides), Cause.NEIGHBOUR)]
    if unit is Unit.STORE and config.post:
        found, bounds = store_unit_faults(word, mem_size, config)
    else:
        stores = unit is Unit.STORE
        kinds = kinds_of(Store if stores else Load, unit, config)
        moving: Value = Const(1, 1) if stores else transfer.opcode == Opcode.LOAD
        of_transfer, bounds = transfer_faults(transfer, mem_size, kinds, config, pads=not stores)
        found, bounds = _only(moving, of_transfer), _bounded(moving, bounds)
    faults += found
    if unit is Unit.LOAD and config.post:
        faults += byte_set_faults(view(SetBytes, config, word))
    if unit is Unit.COMPUTE:
        loops = reduce(or_, (transfer.opcode == cls.OPCODE for cls in loops_of(config)))
        faults += _only(loops, loops_faults(alu, config))
        if config.post:
            faults += compute_set_faults(view(SetAcc, config, word), config)
    known = Signal(WordLayout(config), name=f"{unit.label}_known")
    m.d.comb += [
        known.cause.eq(first_fault(m, faults)),
        *(getattr(known, name).eq(value) for name, value in field_values(bounds).items()),
    ]
    return known


def cause_of(m: Module, known: data.View, box: Any) -> Signal:
    """Return an instruction's fault: of its word (``known_of``), or of its box, whose ends are known late."""
    beyond = [
        (known.in_sram & (box.end > known.depth), Cause.SRAM_RANGE),
        (known.in_dram & (box.stop > known.room), Cause.DRAM_RANGE),
    ]
    return first_fault(m, [(known.cause != 0, known.cause), *beyond])


def byte_set_faults(setting: Any) -> list[tuple[Value, Cause]]:
    low, high = (Mux(setting.unsigned, *ends) for ends in ((0, -128), (255, 127)))
    beyond = (setting.zero < low) | (setting.zero > high)
    return [((setting.opcode == Opcode.SET) & beyond, Cause.ZERO_POINT)]


def store_unit_faults(
    word: Value, mem_size: Value, config: Config
) -> tuple[list[tuple[Value, Cause]], _Bounds]:
    """Return the store unit's faults with ``post=1``, except for neighbours and residuals, and its boxes'
    limits."""
    stores, loads = kinds_of(Store, Unit.STORE, config), kinds_of(Load, Unit.STORE, config)
    store, load, setting = (view(cls, config, word) for cls in (StoreReq, Load, SetOut))
    no = Const(0, 1)
    finished = is_finished(store.memory, config)
    beyond = (
        operand_end(store, operand) > operand.scratchpad.depth(config)
        for operand in store_operands_of(config)
    )
    of_store = _Special(
        unpadded=finished,
        reserved=finished & store.par_y & store.par_x,
        unbounded=no,
        beyond=finished & reduce(or_, beyond),
    )
    of_res = load.memory == OwnMemory.RES
    of_load = _Special(unpadded=no, reserved=of_res & (load.sram_base != 0), unbounded=of_res, beyond=no)
    is_load, is_set = load.opcode == Opcode.LOAD, load.opcode == Opcode.SET
    is_out = setting.part == SetOut.PART
    stored, store_bounds = transfer_faults(load, mem_size, stores, config, pads=False, special=of_store)
    loaded, load_bounds = transfer_faults(load, mem_size, loads, config, pads=False, special=of_load)
    faults = [
        *_only(~is_load & ~is_set, stored),
        *_only(is_load, loaded),
        (is_set & is_out & (setting.shift > MAX_ADD_SHIFT), Cause.RESERVED),
    ]
    either = zip(field_values(load_bounds).values(), field_values(store_bounds).values(), strict=True)
    bounds = _Bounds(
        **dict(zip(field_values(load_bounds), (Mux(is_load, *both) for both in either), strict=True))
    )
    return faults, _bounded(~is_set, bounds)


def is_finished(memory: Value, config: Config) -> Value:
    """Return whether a STORE's memory id requantizes."""
    return _is_one_of(memory, Finishing, config)


def takes_residuals(memory: Value, config: Config) -> Value:
    return _is_one_of(memory, RESIDUAL_STORES, config)


def _is_one_of(memory: Value, wanted: Iterable[Finishing], config: Config) -> Value:
    present = routes_of(Store, config)
    return reduce(or_, (memory == one for one in wanted if one in present))


def operand_first(store: Any, operand: StoreOperand) -> Value:
    field: Value = getattr(store, operand.field)
    return field - operand.offset if operand.offset else field


def operand_end(store: Any, operand: StoreOperand) -> Value:
    """Return the end of a requantizing STORE's range of an operand, at most 0 if it uses none."""
    extent: Value = Const(1)
    if operand.per_column:
        extent = Mux(getattr(store, operand.per_column), store.x_size, extent)
    if operand.per_row:
        extent = Mux(getattr(store, operand.per_row), store.y_size, extent)
    return operand_first(store, operand) + Mux((store.x_size != 0) & (store.y_size != 0), extent, 0)


def uses_operand(finished: Value, store: Any, operand: StoreOperand) -> Value:
    """Return whether a STORE is ``finished`` (requantizes) and selects an element of an operand."""
    return finished & (getattr(store, operand.field) >= operand.offset) if operand.offset else finished


def _only(condition: Value, faults: Sequence[tuple[Value, Cause]]) -> list[tuple[Value, Cause]]:
    return [(condition & fault, cause) for fault, cause in faults]


def _bounded(condition: Value, bounds: _Bounds) -> _Bounds:
    return replace(bounds, in_sram=condition & bounds.in_sram, in_dram=condition & bounds.in_dram)


def loops_faults(alu: Any, config: Config) -> list[tuple[Value, Cause]]:
    operation = is_alu(alu, config) & lacks_operation(operation_number(alu, config), config)
    reserved = []
    if config.post and not config.depthwise:
        mac = view(Mac, config, Value.cast(alu))
        reserved.append(((mac.opcode == Opcode.MAC) & mac.depthwise, Cause.RESERVED))
    return [
        (operation, Cause.ALU_OP),
        *reserved,
        (loops_run(alu) & (alu.uop_end > config.uop_depth), Cause.UOP_RANGE),
    ]


def is_alu(alu: Any, config: Config) -> Value:
    is_low = alu.opcode == Opcode.ALU
    return is_low | (alu.opcode == Opcode.ALU_HIGH) if exists(AluHigh, config) else is_low


def operation_number(alu: Any, config: Config) -> Value:
    """With ALU_HIGH the opcode is its fourth bit."""
    number: Value = Value.cast(alu.alu_op)
    return Cat(number, alu.opcode == Opcode.ALU_HIGH) if exists(AluHigh, config) else number


def lacks_operation(code: Value, config: Config) -> Value:
    codes = [int(one) for one in config.operations]
    if codes == list(range(len(codes))):
        return code > codes[-1]
    return ~reduce(or_, (code == one for one in codes))


def compute_set_faults(setting: Any, config: Config) -> list[tuple[Value, Cause]]:
    """Return the faults of the compute unit's SET, viewed as SET.ACC, including unknown memory ids."""
    is_set, known = setting.opcode == Opcode.SET, setting.memory == SetAcc.MEMORY
    return [
        (is_set & ~known, Cause.MEMORY_ID),
        (is_set & known & _taps_beyond(setting, config), Cause.RESERVED),
    ]


def _taps_beyond(setting: Any, config: Config) -> Value:
    banks = config.tap_banks
    most: Value = Const(most_taps(0, config), TAPS_BITS)
    for bit in reversed(range(log2(banks))):
        most = Mux(setting.step[bit], most_taps(1 << bit, config), most)
    return setting.taps > most


def loops_run(loops: Any) -> Value:
    return (loops.iter_out != 0) & (loops.iter_in != 0) & (loops.uop_begin < loops.uop_end)
