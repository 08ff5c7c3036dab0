"""Each instruction's causes in words, for the manual."""

from collections.abc import Iterator
from typing import NamedTuple

from accel.core.config import Config
from accel.core.fault_causes import Cause
from accel.core.isa import (
    Alu,
    Finish,
    Gemm,
    Instruction,
    Load,
    LoadRes,
    Loops,
    Mac,
    Set,
    SetAcc,
    SetBytes,
    SetOut,
    SetSum,
    Store,
    StoreAdd,
    StoreReq,
    Transfer,
    Unit,
)
from accel.core.requantize import MAX_ADD_SHIFT


class Condition(NamedTuple):
    cause: Cause
    text: str


def conditions_of(cls: type[Instruction], config: Config) -> list[Condition]:
    """Return an instruction class's conditions in the order of checks.

    Left out are ``limit``, ``deadlock``, ``stopped``, ``timeout``, and ``no-finish``.
    """
    found = [*_neighbour_conditions(cls)]
    if issubclass(cls, Finish):
        found.append(
            Condition(Cause.EARLY_FINISH, "it is not the last instruction; the fetch unit reports it")
        )
    elif issubclass(cls, Transfer):
        found += _transfer_conditions(cls, config)
    elif issubclass(cls, Loops):
        found += _loops_conditions(cls)
    elif issubclass(cls, Set):
        found += _set_conditions(cls)
    found.append(Condition(Cause.TOKEN_OVERFLOW, "it pushes a token into a full counter"))
    return found


def _neighbour_conditions(cls: type[Instruction]) -> Iterator[Condition]:
    previous, following = "`pop_prev` or `push_prev` is set", "`pop_next` or `push_next` is set"
    if cls is Load:
        yield Condition(
            Cause.NEIGHBOUR, f"LOAD of INP or WGT: {previous}; the load unit has no previous unit"
        )
    elif issubclass(cls, SetBytes):
        yield Condition(Cause.NEIGHBOUR, f"{previous}; the load unit has no previous unit")
    elif issubclass(cls, Store | SetOut | SetSum) or _is_load_of_store_unit(cls):
        yield Condition(Cause.NEIGHBOUR, f"{following}; the store unit has no next unit")


def _is_load_of_store_unit(cls: type[Instruction]) -> bool:
    return issubclass(cls, Load) and cls().unit is Unit.STORE


def _transfer_conditions(cls: type[Transfer], config: Config) -> Iterator[Condition]:
    if cls in (Load, Store):
        yield Condition(
            Cause.MEMORY_ID, f"`memory` is not an id of a {cls.OPCODE.name}, see the table of memories"
        )
    if _is_load_of_store_unit(cls) or (issubclass(cls, Store) and not issubclass(cls, StoreReq)):
        yield Condition(Cause.STORE_PAD, "a pad field is not zero")
    if issubclass(cls, LoadRes):
        yield Condition(Cause.RESERVED, "`sram_base` is not zero")
    if issubclass(cls, StoreReq):
        yield Condition(Cause.RESERVED, "`par_y` and `par_x` are both set")
    if not issubclass(cls, LoadRes):
        names = [one.scratchpad.name.upper() for one in cls.OPERANDS if one.scratchpad.exists(config)]
        others = f", or an element after the end of {' or '.join(names)}" if names else ""
        yield Condition(Cause.SRAM_RANGE, f"it accesses an element after the end of the scratchpad{others}")
    yield Condition(Cause.DRAM_RANGE, "it accesses a byte after the end of the DRAM window")
    if issubclass(cls, LoadRes):
        text = "in program order, RES would hold more elements than its depth"
        yield Condition(Cause.RESIDUAL_FULL, text)
    if issubclass(cls, StoreAdd):
        text = "in program order, RES holds fewer elements than the STORE takes"
        yield Condition(Cause.RESIDUAL_EMPTY, text)
    yield Condition(Cause.BUS, "the memory answers a burst with an error or with a wrong number of beats")


def _loops_conditions(cls: type[Loops]) -> Iterator[Condition]:
    if issubclass(cls, Alu):
        yield Condition(Cause.ALU_OP, "`alu_op` is not an operation of the table above")
    if issubclass(cls, Mac):
        text = "`depthwise` is set, and `block_in` and `block_out` of the machine differ"
        yield Condition(Cause.RESERVED, text)
    yield Condition(
        Cause.UOP_RANGE, "`uop_end` is beyond the micro-op memory, and at least one micro-op would execute"
    )
    if issubclass(cls, Mac):
        yield Condition(Cause.RESERVED, "`depthwise` is set, and SET.ACC has set no taps")
    unless = " and `reset` is not set" if issubclass(cls, Gemm) else ""
    taps = "; with `depthwise` the last tap counts" if issubclass(cls, Mac) else ""
    yield Condition(Cause.DST_INDEX, "a micro-op's dst is beyond acc")
    if issubclass(cls, Alu):
        yield Condition(Cause.SRC_INDEX, "a micro-op's src is beyond acc and `use_imm` is not set")
    else:
        yield Condition(Cause.SRC_INDEX, f"a micro-op's src is beyond inp{unless}{taps}")
        yield Condition(Cause.WGT_INDEX, f"a micro-op's wgt is beyond wgt{unless}")


def _set_conditions(cls: type[Set]) -> Iterator[Condition]:
    if cls is Set:
        yield Condition(Cause.MEMORY_ID, "`memory` selects no setting")
    if issubclass(cls, SetBytes):
        text = "`zero` is not in 0..255 with `unsigned`, or not in -128..127 without"
        yield Condition(Cause.ZERO_POINT, text)
    if issubclass(cls, SetAcc):
        yield Condition(Cause.RESERVED, "`taps` is too large for `step`, see above")
    if issubclass(cls, SetOut):
        yield Condition(Cause.RESERVED, f"`shift` is greater than {MAX_ADD_SHIFT}")
