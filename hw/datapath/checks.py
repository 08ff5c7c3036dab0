"""What is wrong with an instruction by itself, as :func:`accel.core.faults.instruction_fault` has it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import data

from accel.core.config import DRAM_ADDRESS_BITS, Config
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
from accel.hw.datapath.layouts import log2, sram_bits, view


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
        beyond: whether it touches elements of another scratchpad that there are not.
    """

    unpadded: Value
    reserved: Value
    unbounded: Value
    beyond: Value


class WordLayout(data.StructLayout):
    """What an instruction's word says of its faults: the ``cause`` of the first one, if the word alone has
    one; whether its box must end in a scratchpad of ``depth`` elements (``in_sram``), and whether in a memory
    that holds ``room`` of its elements (``in_dram``)."""

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


@dataclass(frozen=True, kw_only=True)
class _Bounds:
    """Where a box must end, as in :class:`WordLayout`."""

    in_sram: Value
    depth: Value
    in_dram: Value
    room: Value


def transfer_faults(
    transfer: Any,
    mem_size: Value,
    kinds: Sequence[Kind],
    *,
    pads: bool,
    special: _Special | None = None,
) -> tuple[list[tuple[Value, Cause]], _Bounds]:
    """Faults of a LOAD or STORE that its word alone has, and where its box must end; neither if ``x_size`` is
    zero. ``pads``: whether it may have some."""
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
    """What the word of a unit's instruction says of what is wrong with it."""
    transfer, alu = view(Load, config, word), view(Alu, config, word)
    sides = {"previous": unit.previous is not None, "following": unit.next is not None}
    faults = [(neighbour_fault(transfer, **sides), Cause.NEIGHBOUR)]
    if unit is Unit.STORE and config.post:
        found, bounds = store_unit_faults(word, mem_size, config)
    else:
        stores = unit is Unit.STORE
        kinds = kinds_of(Store if stores else Load, unit, config)
        moving: Value = Const(1, 1) if stores else transfer.opcode == Opcode.LOAD
        of_transfer, bounds = transfer_faults(transfer, mem_size, kinds, pads=not stores)
        found, bounds = _only(moving, of_transfer), _bounded(moving, bounds)
    faults += found
    if unit is Unit.LOAD and config.post:
        faults += inp_set_faults(view(SetInp, config, word))
    if unit is Unit.COMPUTE:
        loops = reduce(or_, (transfer.opcode == cls.OPCODE for cls in loops_of(config)))
        faults += _only(loops, loops_faults(alu, config))
        if config.post:
            faults += compute_set_faults(view(SetAcc, config, word), config)
    known = Signal(WordLayout(config), name=f"{unit.label}_known")
    m.d.comb += [
        known.cause.eq(first_fault(m, faults)),
        *(getattr(known, name).eq(value) for name, value in vars(bounds).items()),
    ]
    return known


def cause_of(m: Module, known: data.View, box: Any) -> Signal:
    """What is wrong with an instruction by itself: with its fields, as :func:`known_of` has it, or with the
    memory that it covers. Both ends are known late, and little is left to do behind them."""
    beyond = [
        (known.in_sram & (box.end > known.depth), Cause.SRAM_RANGE),
        (known.in_dram & (box.stop > known.room), Cause.DRAM_RANGE),
    ]
    return first_fault(m, [(known.cause != 0, known.cause), *beyond])


def inp_set_faults(setting: Any) -> list[tuple[Value, Cause]]:
    """Faults of a SET that the load unit executes."""
    low, high = (Mux(setting.unsigned, *ends) for ends in ((0, -128), (255, 127)))
    beyond = (setting.zero < low) | (setting.zero > high)
    return [((setting.opcode == Opcode.SET) & beyond, Cause.ZERO_POINT)]


def store_unit_faults(
    word: Value, mem_size: Value, config: Config
) -> tuple[list[tuple[Value, Cause]], _Bounds]:
    """Faults of what the store unit executes with ``post=1``, but for neighbours and residuals, that the word
    alone has, and where a box must end."""
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
    stored, store_bounds = transfer_faults(load, mem_size, stores, pads=False, special=of_store)
    loaded, load_bounds = transfer_faults(load, mem_size, loads, pads=False, special=of_load)
    faults = [
        *_only(~is_load & ~is_set, stored),
        *_only(is_load, loaded),
        (is_set & is_out & (setting.shift > MAX_ADD_SHIFT), Cause.RESERVED),
    ]
    either = zip(vars(load_bounds).values(), vars(store_bounds).values(), strict=True)
    bounds = _Bounds(**dict(zip(vars(load_bounds), (Mux(is_load, *both) for both in either), strict=True)))
    return faults, _bounded(~is_set, bounds)


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


def _bounded(condition: Value, bounds: _Bounds) -> _Bounds:
    """Bounds of a kind of instruction."""
    return replace(bounds, in_sram=condition & bounds.in_sram, in_dram=condition & bounds.in_dram)


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
