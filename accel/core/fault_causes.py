"""The causes that stop a run, and the checks of instructions, for simulators, token check and hardware.

The fetch unit checks the shape of the program. Each unit checks its next instruction before anything moves,
and micro-op indices one at a time.
"""

import warnings
from collections.abc import Sequence
from enum import IntEnum
from itertools import pairwise
from math import gcd

from msgspec import Struct

from accel.base.errors import (
    BusTimeout,
    DeadlockError,
    LimitExceeded,
    MachineError,
    ProgramError,
    RunStopped,
)
from accel.base.interned_sequence import Distinct
from accel.core.config import Config
from accel.core.isa import (
    SETTINGS,
    Alu,
    Finish,
    Instruction,
    Load,
    LoadRes,
    Loops,
    Mac,
    Memory,
    MicroOp,
    Set,
    SetAcc,
    SetBytes,
    SetOut,
    Store,
    StoreAdd,
    StoreReq,
    Transfer,
    Unit,
    Unknown,
    classes_of,
    exists,
    field_specs,
    routes_of,
)
from accel.core.requantize import MAX_ADD_SHIFT
from accel.core.scratchpad_specs import RES, UOP, Scratchpad


class Cause(IntEnum):
    """Cause of a run's early end. The numbers are those of the cause register.

    ``post``: only machines with ``post=1`` report it.
    """

    doc: str
    post: bool

    def __new__(cls, value: int, doc: str = "", post: bool = False) -> "Cause":
        member = int.__new__(cls, value)
        member._value_ = value
        member.doc = doc
        member.post = post
        return member

    NONE = 0, "no error"
    OPCODE = 1, "the opcode does not exist; the fetch unit reports it"
    EARLY_FINISH = 2, "FINISH is not the last instruction; the fetch unit reports it"
    NO_FINISH = 3, "the last instruction is not FINISH, or the program is empty; the fetch unit reports it"
    NEIGHBOUR = 4, "a token flag names a unit that does not exist: before the load unit, after the store unit"
    MEMORY_ID = 5, "the LOAD, STORE or SET does not know its memory id"
    STORE_PAD = 6, "a transfer of the store unit has pads"
    ALU_OP = 7, "the ALU operation does not exist"
    SRAM_RANGE = 8, "a transfer reaches beyond its scratchpad; nothing has moved"
    DRAM_RANGE = 9, "a transfer reaches beyond the DRAM window; nothing has moved"
    UOP_RANGE = 10, "the range of micro-ops reaches beyond the micro-op memory"
    DST_INDEX = 11, "the dst of a micro-op is beyond acc; earlier micro-ops have executed"
    SRC_INDEX = 12, "the src of a micro-op is beyond inp (GEMM, MAC) or acc (ALU), and it is used"
    WGT_INDEX = 13, "the wgt of a micro-op is beyond wgt, and it is used"
    TOKEN_OVERFLOW = 14, "an instruction pushes a token into a full counter"
    BUS = 15, "the memory answers a burst with an error, or with a wrong number of beats"
    LIMIT = 16, "the run has not ended in cycle max_cycles; simulators: more than max_uops micro-ops execute"
    DEADLOCK = 17, "nothing moves, and the first instruction of every queue that is not empty lacks a token"
    RESERVED = (
        18,
        "a reserved value: sram_base of a LOAD of RES; both par_y and par_x of a STORE; a shift of SET.OUT "
        f"above {MAX_ADD_SHIFT}; more taps of SET.ACC than banks of inp or columns of wgt allow; a depthwise "
        "MAC without taps, or on a machine whose block_in and block_out differ",
        True,
    )
    ZERO_POINT = 19, "the zero point of SET.INP or SET.WGT is not a value of the byte type", True
    RESIDUAL_FULL = (
        20,
        "with this LOAD of RES, RES would hold more elements than its depth, in program order",
        True,
    )
    RESIDUAL_EMPTY = 21, "a STORE takes more elements than RES holds, in program order", True
    STOPPED = 22, "software has written `stop`"
    TIMEOUT = 23, "the memory owes an answer and has done nothing for bus_timeout cycles"

    @property
    def label(self) -> str:
        return self.name.lower().replace("_", "-")


CAUSE_BITS = max(Cause).bit_length()

INDEX_CAUSES = {name: Cause[f"{name.upper()}_INDEX"] for name in field_specs(MicroOp)}
"""Causes of an index out of range, by micro-op field."""


class Fault(Struct, frozen=True, kw_only=True):
    """A cause and a message."""

    cause: Cause
    message: str


EMPTY_PROGRAM = Fault(cause=Cause.NO_FINISH, message="the program is empty; it must end with FINISH")
"""It counts as the fault of instruction 0."""


def fault_error(fault: Fault, index: int, cycle: int | None = None) -> MachineError:
    """Return the exception for a fault."""
    when = "" if cycle is None else f" (cycle {cycle})"
    if fault.cause is Cause.DEADLOCK:
        return DeadlockError(f"{fault.message}{when}", cause=fault.cause, index=index, cycle=cycle)
    kind = _EXCEPTION_CLASSES.get(fault.cause, MachineError)
    return kind(f"instruction {index}{when}: {fault.message}", cause=fault.cause, index=index, cycle=cycle)


_EXCEPTION_CLASSES: dict[Cause, type[MachineError]] = {
    Cause.LIMIT: LimitExceeded,
    Cause.STOPPED: RunStopped,
    Cause.TIMEOUT: BusTimeout,
}
"""Deadlocks also have an exception class, with another message."""


STOPPED = Fault(cause=Cause.STOPPED, message="the run was stopped")


def timeout_fault(bus_timeout: int) -> Fault:
    """Return the fault of a memory that has not answered for ``bus_timeout`` cycles."""
    return Fault(cause=Cause.TIMEOUT, message=f"memory did nothing for {bus_timeout} cycles (bus_timeout)")


def overflow_fault(counter: str, config: Config) -> Fault:
    """Return the fault of a push into a full token counter."""
    message = (
        f"the counter of tokens from {counter} overflows; "
        f"token_bits={config.token_bits} holds {config.token_limit}"
    )
    return Fault(cause=Cause.TOKEN_OVERFLOW, message=message)


def fetch_fault(instruction: Instruction, index: int, count: int, config: Config) -> Fault | None:
    """Return the fetch unit's fault for an instruction, if any."""
    if isinstance(instruction, Unknown):
        known = [f"{cls.OPCODE.name} {opcode}" for opcode, cls in sorted(classes_of(config).items())]
        return Fault(
            cause=Cause.OPCODE,
            message=f"the opcode is {instruction.opcode}; {_joined_names(known, 'and')} exist",
        )
    finish = isinstance(instruction, Finish)
    if finish and index != count - 1:
        return Fault(
            cause=Cause.EARLY_FINISH,
            message=f"FINISH is instruction {index} of {count}; it must be the last",
        )
    if not finish and index == count - 1:
        return Fault(
            cause=Cause.NO_FINISH,
            message=f"the last instruction is {instruction.mnemonic}; it must be FINISH",
        )
    return None


def fetch_faults(program: Distinct[Instruction], config: Config) -> dict[int, Fault]:
    """Return the fetch unit's faults by index, in order, none for an empty program."""
    count = len(program)
    special = program.where(lambda one: isinstance(one, Unknown | Finish)).tolist()
    found = {}
    for index in dict.fromkeys([*special, *([count - 1] if count else [])]):
        fault = fetch_fault(program.every[program.places[index]], index, count, config)
        if fault is not None:
            found[index] = fault
    return found


def instruction_fault(instruction: Instruction, config: Config) -> Fault | None:
    """Return the fault of an instruction before it starts, if any.

    ``docs/reference/isa.md`` lists the checks in order. :func:`residual_fault` and :func:`taps_fault` follow,
    which depend on earlier instructions.
    """
    if (instruction.pop_prev or instruction.push_prev) and instruction.unit.previous is None:
        return _neighbour_fault(instruction, "previous")
    if (instruction.pop_next or instruction.push_next) and instruction.unit.next is None:
        return _neighbour_fault(instruction, "next")
    if isinstance(instruction, Transfer):
        return _transfer_fault(instruction, config) if instruction.x_size else None
    if isinstance(instruction, Loops):
        return _loops_fault(instruction, config)
    if isinstance(instruction, Set):
        return _set_fault(instruction, config)
    return None


def instruction_faults(instructions: Sequence[Instruction], config: Config) -> list[Fault | None]:
    """Return the fault of each instruction before it starts, if any."""
    program = Distinct(instructions)
    alone = [instruction_fault(one, config) for one in program.every]
    found = list(map(alone.__getitem__, program.places.tolist()))
    if config.post:
        held = 0
        for index in program.where(lambda one: isinstance(one, LoadRes | StoreAdd)).tolist():
            if found[index] is None:
                fault = found[index] = residual_fault(instructions[index], held, config)
                held += 0 if fault is not None else residual_change(instructions[index])
        depthwise = program.where(lambda one: isinstance(one, Mac) and one.depthwise).tolist()
        settings = acc_settings(instructions) if depthwise else ()
        for index in depthwise:
            if found[index] is None:
                found[index] = taps_fault(instructions[index], settings[index])
    return found


NOTHING_SET = SetAcc()
"""At the start of a run depthwise MACs have no taps."""


def acc_settings(instructions: Sequence[Instruction]) -> list[SetAcc]:
    """Return for each instruction the last SET.ACC before it, or :data:`NOTHING_SET`."""
    found = [NOTHING_SET] * len(instructions)
    sets = Distinct(instructions).where(lambda one: isinstance(one, SetAcc)).tolist()
    for index, following in pairwise([*sets, len(instructions)]):
        setting = instructions[index]
        assert isinstance(setting, SetAcc)
        found[index + 1 : following + 1] = [setting] * (min(following, len(instructions) - 1) - index)
    return found


def taps_fault(instruction: Instruction, setting: SetAcc) -> Fault | None:
    """Return the fault of a depthwise MAC without taps, if it is one."""
    if not isinstance(instruction, Mac) or not instruction.depthwise or setting.taps:
        return None
    message = "a depthwise MAC has no taps; a SET.ACC before it must say how many"
    return Fault(cause=Cause.RESERVED, message=message)


def residual_change(instruction: Instruction) -> int:
    """Return the elements that an instruction adds to RES, perhaps negative."""
    if isinstance(instruction, StoreAdd):
        return -instruction.taken_residuals
    return instruction.x_size * instruction.y_size if isinstance(instruction, LoadRes) else 0


def residual_fault(instruction: Instruction, held: int, config: Config) -> Fault | None:
    """Return the fault of an instruction that overfills RES or takes more than it holds, if any.

    ``held``: elements loaded minus elements taken before.
    """
    after = held + residual_change(instruction)
    depth = RES.depth(config)
    if after < 0:
        message = f"{instruction.mnemonic} takes {_element_count(held - after)} of res, which holds {held}"
        return Fault(cause=Cause.RESIDUAL_EMPTY, message=message)
    if after > depth and after > held:
        loaded = _element_count(after - held)
        message = f"{instruction.mnemonic} loads {loaded}; res holds {held} of at most {depth}"
        return Fault(cause=Cause.RESIDUAL_FULL, message=message)
    return None


def _element_count(count: int) -> str:
    return f"{count} element{'' if count == 1 else 's'}"


def _neighbour_fault(instruction: Instruction, side: str) -> Fault:
    return Fault(
        cause=Cause.NEIGHBOUR,
        message=f"{instruction.mnemonic} has a token flag toward the {side} unit; "
        f"the {instruction.unit.label} unit has none",
    )


def _transfer_fault(instruction: Transfer, config: Config) -> Fault | None:
    name = instruction.mnemonic
    route = instruction.route
    if route is None:
        return Fault(cause=Cause.MEMORY_ID, message=_unknown_memory_message(instruction, config))
    padded = (instruction.width, instruction.height) != (instruction.x_size, instruction.y_size)
    if padded and route.unit is Unit.STORE:
        known = [one.name for _, one in sorted(Load.ROUTES.items())]
        able = "LOAD" if isinstance(instruction, Store) else f"LOAD of {_joined_names(known, 'or')}"
        return Fault(cause=Cause.STORE_PAD, message=f"{name} has pads; only {able} can pad")
    fault = _reserved_fault(instruction)
    if fault is not None:
        return fault
    for pad, begin, elements in sram_ranges(instruction):
        depth = pad.depth(config)
        end = begin + elements
        if end > depth:
            return Fault(
                cause=Cause.SRAM_RANGE,
                message=f"{name} touches {pad} elements {begin}..{max(begin, end - 1)}; "
                f"the scratchpad has {depth}",
            )
    start, stop = dram_span(instruction, config)
    if start < stop and (stop > config.mem_base + config.mem_size):
        return Fault(
            cause=Cause.DRAM_RANGE,
            message=f"{name} touches DRAM bytes {start:#x}..{stop - 1:#x}; the window is "
            f"{config.mem_base:#x}..{config.mem_base + config.mem_size - 1:#x}",
        )
    return None


def _reserved_fault(instruction: Transfer) -> Fault | None:
    if isinstance(instruction, LoadRes) and instruction.sram_base:
        message = f"the sram_base of {instruction.mnemonic} is {instruction.sram_base}; it must be zero"
        return Fault(cause=Cause.RESERVED, message=message)
    if isinstance(instruction, StoreReq) and instruction.par_y and instruction.par_x:
        message = f"{instruction.mnemonic} has both par_y and par_x; the element of par follows one of them"
        return Fault(cause=Cause.RESERVED, message=message)
    return None


def sram_ranges(instruction: Transfer) -> tuple[tuple[Scratchpad, int, int], ...]:
    """Return scratchpad, first element and number of elements of a transfer, except for RES."""
    route = instruction.route
    if route is None or isinstance(instruction, LoadRes):
        return ()
    own = (route.scratchpad, instruction.sram_base, instruction.sram_elements)
    operands = (one for one in instruction.OPERANDS if one.used_by(instruction))
    return own, *((one.scratchpad, one.first(instruction), one.count(instruction)) for one in operands)


def operand_ranges(instruction: Instruction) -> tuple[tuple[Scratchpad, int, int], ...]:
    """Return scratchpad, first element and end of the store unit's operands that an instruction accesses.

    The store unit orders instructions whose ranges overlap.
    """
    if not isinstance(instruction, Transfer) or instruction.unit is not Unit.STORE:
        return ()
    return tuple(
        (pad, begin, begin + count)
        for pad, begin, count in sram_ranges(instruction)
        if count and pad.filled_by is Unit.STORE
    )


def _unknown_memory_message(instruction: Transfer, config: Config) -> str:
    cls = classes_of(config)[instruction.OPCODE]
    assert issubclass(cls, Transfer)
    known = [route.name for _, route in sorted(routes_of(cls, config).items())]
    does = "fills" if instruction.FILLS else "writes"
    return (
        f"{instruction.mnemonic} has memory id {instruction.memory}; "
        f"{instruction.OPCODE.name} {does} {_joined_names(known, 'or')}"
    )


def _joined_names(names: Sequence[str], last: str) -> str:
    return f" {last} ".join([*filter(None, [", ".join(names[:-1])]), names[-1]])


def dram_element_bytes(instruction: Transfer, config: Config) -> int:
    """Return ``element_bytes`` of the transfer's route.

    Raises:
        ProgramError: the memory id is unknown.
    """
    if instruction.route is None:
        raise ProgramError(_unknown_memory_message(instruction, config))
    return instruction.route.element_bytes(config)


def scratchpad(memory: int) -> str:
    """Deprecated: return the scratchpad's name. Use :attr:`Transfer.route`."""
    warnings.warn(
        "accel.faults.scratchpad goes with the next release; an instruction's route says the same",
        DeprecationWarning,
        stacklevel=2,
    )
    return str({**Load.ROUTES, **Store.ROUTES}[memory].scratchpad)


def scratchpad_depth(memory: int, config: Config) -> int:
    """Deprecated: return the scratchpad's depth."""
    warnings.warn(
        "accel.faults.scratchpad_depth goes with the next release; Scratchpad.depth is the same",
        DeprecationWarning,
        stacklevel=2,
    )
    return {**Load.ROUTES, **Store.ROUTES}[memory].scratchpad.depth(config)


def dram_span(instruction: Transfer, config: Config) -> tuple[int, int]:
    """Return the first byte of a transfer and the byte after the last, equal if there is none."""
    route = instruction.route
    if route is None or not (instruction.x_size and instruction.y_size):
        return config.mem_base, config.mem_base
    element = route.element_bytes(config)
    start = config.mem_base + instruction.dram_base * element
    elements = (instruction.y_size - 1) * instruction.x_stride + instruction.x_size
    return start, start + elements * element


def _loops_fault(instruction: Loops, config: Config) -> Fault | None:
    if isinstance(instruction, Alu) and instruction.alu_op not in config.operations:
        return Fault(
            cause=Cause.ALU_OP,
            message=f"the ALU operation is {instruction.alu_op}; "
            + ", ".join(f"{one.mnemonic} {int(code)}" for code, one in config.operations.items())
            + " exist",
        )
    if isinstance(instruction, Mac) and instruction.depthwise and not config.depthwise:
        message = (
            f"a MAC is depthwise; block_in is {config.block_in} and block_out {config.block_out}, "
            "and they must be equal"
        )
        return Fault(cause=Cause.RESERVED, message=message)
    depth = UOP.depth(config)
    if instruction.uop_count and instruction.uop_end > depth:
        return Fault(
            cause=Cause.UOP_RANGE,
            message=f"{instruction.mnemonic} runs micro-ops "
            f"{instruction.uop_begin}..{instruction.uop_end - 1}; the micro-op memory has {depth}",
        )
    return None


def most_taps(step: int, config: Config) -> int:
    """Return the most taps that a step allows: each tap needs a bank of inp and a column of wgt."""
    return min(config.tap_banks // gcd(step, config.tap_banks), config.block_in)


def _set_fault(instruction: Set, config: Config) -> Fault | None:
    if type(instruction) is Set:
        present = (one for one in SETTINGS if one.REQUIRES == Set.REQUIRES or exists(one, config))
        known = [Memory(memory).name for memory in dict.fromkeys(one().memory for one in present)]
        return Fault(
            cause=Cause.MEMORY_ID,
            message=f"{instruction.mnemonic} has memory id {instruction.memory}; "
            f"SET knows {_joined_names(known, 'and')}",
        )
    if isinstance(instruction, SetBytes):
        low, high = instruction.byte_range
        if not low <= instruction.zero <= high:
            return Fault(
                cause=Cause.ZERO_POINT,
                message=f"the zero point is {instruction.zero}; "
                f"a byte read as {'uint8' if instruction.unsigned else 'int8'} is in {low}..{high}",
            )
    if isinstance(instruction, SetAcc) and instruction.taps > most_taps(instruction.step, config):
        return Fault(
            cause=Cause.RESERVED,
            message=f"taps is {instruction.taps} with step={instruction.step}; with inp_banks="
            f"{config.tap_banks} and block_in={config.block_in} it must be at most "
            f"{most_taps(instruction.step, config)}",
        )
    if isinstance(instruction, SetOut) and instruction.shift > MAX_ADD_SHIFT:
        return Fault(
            cause=Cause.RESERVED, message=f"the shift is {instruction.shift}; {MAX_ADD_SHIFT} is the most"
        )
    return None
