"""Opcodes and memory ids."""

from enum import IntEnum


class Opcode(IntEnum):
    """The operation of an instruction, in its lowest three bits."""

    LOAD = 0
    STORE = 1
    GEMM = 2
    FINISH = 3
    ALU = 4
    MAC = 5
    SET = 6
    ALU_HIGH = 7


class Memory(IntEnum):
    """Memory ids. LOAD and STORE each declare what an id selects."""

    UOP = 0
    WGT = 1
    INP = 2
    ACC = 3
    OUT = 4
    ACC_8BIT = 5


class OwnMemory(IntEnum):
    """Memory ids of LOADs into the store unit's own scratchpads."""

    TAB = 4
    PAR = 6
    RES = 7


class Finishing(IntEnum):
    """Memory ids of STOREs that requantize. ADD also adds a residual, MUL multiplies by one."""

    MUL = 5
    REQ = 6
    ADD = 7


MEMORY_NAMES = {memory.value: memory.name for memory in Memory}
