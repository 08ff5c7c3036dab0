"""What is wrong with an instruction by itself, as :func:`accel.core.faults.instruction_fault` has it."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Const, Module, Signal, Value

from accel.core.config import Config
from accel.core.faults import CAUSE_BITS, Cause
from accel.core.isa import AluOp, Mac, Opcode
from accel.hw.datapath.layouts import view
from accel.hw.datapath.transfer import Kind, choose, kind_number


def first_fault(m: Module, faults: Sequence[tuple[Value, Cause]]) -> Signal:
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


def transfer_faults(
    transfer: Any, box: Any, mem_size: Value, kinds: Sequence[Kind], *, pads: bool
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
        faults.append((moves & any_pad, Cause.STORE_PAD))
    depth = choose(number, [Const(kind.depth) for kind in kinds])
    end = transfer.dram_base + box.extent
    stop = choose(number, [end * kind.element_bytes for kind in kinds])
    faults.append((moves & (transfer.sram_base + box.elements > depth), Cause.SRAM_RANGE))
    faults.append((moves & (transfer.y_size != 0) & (stop > mem_size), Cause.DRAM_RANGE))
    return faults


def loops_faults(alu: Any, config: Config) -> list[tuple[Value, Cause]]:
    """Faults of an instruction with micro-ops, seen as an ALU instruction."""
    operation = (alu.opcode == Opcode.ALU) & (alu.alu_op > max(AluOp))
    reserved = []
    if config.post:
        mac = view(Mac, config, Value.cast(alu))
        reserved.append(((mac.opcode == Opcode.MAC) & mac.depthwise, Cause.RESERVED))
    return [
        (operation, Cause.ALU_OP),
        *reserved,
        (loops_run(alu) & (alu.uop_end > config.uop_depth), Cause.UOP_RANGE),
    ]


def loops_run(loops: Any) -> Value:
    """Whether an instruction executes any micro-op."""
    return (loops.iter_out != 0) & (loops.iter_in != 0) & (loops.uop_begin < loops.uop_end)
