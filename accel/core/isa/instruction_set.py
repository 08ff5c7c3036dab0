"""The classes of all instructions."""

from accel.core.config import SPECS, Config
from accel.core.isa.field_widths import FIRST_HIGH_OP
from accel.core.isa.instruction_base import Finish, Instruction
from accel.core.isa.loop_instructions import Alu, AluHigh, Gemm, Loops, Mac
from accel.core.isa.opcodes import MEMORY_NAMES
from accel.core.isa.operands import StoreOperand
from accel.core.isa.set_instructions import Set, SetAcc, SetInp, SetOut, SetSum, SetWgt
from accel.core.isa.transfer_instructions import (
    Load,
    LoadPar,
    LoadRes,
    LoadTab,
    Store,
    StoreAcc,
    StoreAdd,
    StoreMul,
    StoreReq,
    Transfer,
)
from accel.core.scratchpad_specs import Route

CLASSES: dict[int, type[Instruction]] = {
    cls.OPCODE: cls for cls in (Load, Store, Gemm, Finish, Alu, Mac, Set, AluHigh)
}
"""By opcode. :data:`VARIANTS` overrides some memory ids."""

VARIANTS: dict[tuple[int, int, int], type[Instruction]] = {
    (cls.OPCODE, cls.MEMORY, cls.PART or 0): cls
    for cls in (
        LoadPar,
        LoadRes,
        LoadTab,
        StoreAcc,
        StoreReq,
        StoreAdd,
        StoreMul,
        SetInp,
        SetWgt,
        SetAcc,
        SetOut,
        SetSum,
    )
    if cls.MEMORY is not None
}
"""By opcode, memory id and part, which is 0 if the id selects only one class."""

PARTED: frozenset[tuple[int, int]] = frozenset(
    (opcode, memory) for (opcode, memory, _), cls in VARIANTS.items() if cls.PART is not None
)
"""Opcodes and memory ids that select two classes by the bit :data:`PART_AT`."""

SETTINGS: tuple[type[Set], ...] = tuple(cls for cls in VARIANTS.values() if issubclass(cls, Set))

TRANSFERS: tuple[type[Transfer], ...] = tuple(cls for cls in CLASSES.values() if issubclass(cls, Transfer))
LOOPS: tuple[type[Loops], ...] = tuple(cls for cls in CLASSES.values() if issubclass(cls, Loops))


def exists(cls: type[Instruction], config: Config) -> bool:
    if issubclass(cls, AluHigh):
        return max(config.operations, default=0) >= FIRST_HIGH_OP
    return not cls.REQUIRES or bool(getattr(config, cls.REQUIRES))


def absence(cls: type[Instruction]) -> str:
    """Return why a machine lacks a class, after "configuration NAME has"."""
    if issubclass(cls, AluHigh):
        return f"no ALU operation from number {FIRST_HIGH_OP} on"
    return f"{cls.REQUIRES}=0, and only {machines_with(cls.REQUIRES)} have it"


def machines_with(required: str) -> str:
    """Return for example ``machines with post=1``."""
    return f"machines with {required}=1" if SPECS[required].high == 1 else f"machines with {required} above 0"


def classes_of(config: Config) -> dict[int, type[Instruction]]:
    return {opcode: cls for opcode, cls in CLASSES.items() if exists(cls, config)}


def variants_of(config: Config) -> dict[tuple[int, int, int], type[Instruction]]:
    return {key: cls for key, cls in VARIANTS.items() if exists(cls, config)}


def class_of(opcode: int, memory: int, config: Config, *, part: int = 0) -> type[Instruction] | None:
    """Return the class of an instruction word, or None.

    Args:
        opcode: the lowest three bits.
        memory: the bits of the memory id.
        part: the bit after the memory id.
    """
    key = opcode, memory, part if (opcode, memory) in PARTED else 0
    return variants_of(config).get(key, classes_of(config).get(opcode))


def routes_of(cls: type[Transfer], config: Config) -> dict[int, Route]:
    found = dict(cls.ROUTES)
    for variant in variants_of(config).values():
        if variant.OPCODE is cls.OPCODE and issubclass(variant, Transfer):
            found |= variant.ROUTES
    return found


def setting_of(route: Route, config: Config) -> type[Set] | None:
    """Return the SET that determines how a machine reads the bytes of a route, or None."""
    cls = None if route.set_by is None else class_of(Set.OPCODE, route.set_by, config)
    return cls if cls is not None and cls is not Set and issubclass(cls, Set) else None


def store_operands_of(config: Config) -> tuple[StoreOperand, ...]:
    return tuple(one for one in StoreReq.OPERANDS if one.scratchpad.exists(config))


def loops_of(config: Config) -> tuple[type[Loops], ...]:
    return tuple(cls for cls in classes_of(config).values() if issubclass(cls, Loops))


def memory_names(cls: type[Instruction]) -> dict[int, str]:
    """Return the names of memory ids, of unknown ones as in :class:`Memory`."""
    if not issubclass(cls, Transfer):
        return dict(MEMORY_NAMES)
    return MEMORY_NAMES | {memory: route.name for memory, route in cls.ROUTES.items()}
