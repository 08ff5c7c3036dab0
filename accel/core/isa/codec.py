"""Encode and decode programs, one array per field. Equal instructions are processed once."""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from accel.base.errors import ProgramError
from accel.base.interned_sequence import Distinct
from accel.core.config import INSTRUCTION_BYTES, Config
from accel.core.isa.field_widths import MEMORY_AT, MEMORY_ID_BITS, OPCODE_BITS, PART_AT
from accel.core.isa.instruction_base import Instruction, Unknown
from accel.core.isa.instruction_fields import WORD_BITS, Slot, class_slots, missing_fields
from accel.core.isa.instruction_set import (
    CLASSES,
    PARTED,
    absence,
    class_of,
    classes_of,
    exists,
    machines_with,
    variants_of,
)
from accel.core.isa.micro_op import MicroOp

T = TypeVar("T", bound=Instruction)

Words = npt.NDArray[np.uint64]
UopArray = npt.NDArray[np.int64]
"""Rows (dst, src, wgt)."""


def encode(instructions: Sequence[Instruction] | Distinct[Instruction], config: Config) -> bytes:
    """Encode instructions as 128-bit little-endian words in program order. Unused bits are zero.

    Raises:
        ProgramError: a value does not fit its field, or the machine lacks an instruction.
    """
    program = Distinct.of(instructions)
    words = np.zeros((len(program.every), INSTRUCTION_BYTES * 8 // WORD_BITS), dtype="<u8")
    groups: dict[type[Instruction], list[int]] = {}
    for number, instruction in enumerate(program.every):
        groups.setdefault(type(instruction), []).append(number)
    variants = variants_of(config)
    for cls, members in groups.items():
        one = [program.every[m] for m in members]
        if not exists(cls, config):
            raise ProgramError(
                f"instruction {_first_position(program, members[0])} is {one[0].mnemonic}; configuration "
                f"{config.name!r} has {absence(cls)}"
            )
        for name, required in missing_fields(cls, config):
            used = next((n for n, instruction in enumerate(one) if getattr(instruction, name)), None)
            if used is not None:
                raise ProgramError(
                    f"{name} of instruction {_first_position(program, members[used])} is "
                    f"{int(getattr(one[used], name))}; only {machines_with(required)} have the field, and "
                    f"configuration {config.name!r} has {required}=0"
                )
        rows = np.array(members, dtype=np.intp)
        for slot in class_slots(cls, config):
            values = [getattr(instruction, slot.name) for instruction in one]
            bad = _first_misfit(values, slot)
            if bad is not None:
                where = f" (instruction {_first_position(program, members[bad])})"
                raise _does_not_fit(values[bad], slot, cls, config, where)
            bits = _column(values, slot) << np.uint64(slot.offset % WORD_BITS)
            words[rows, slot.offset // WORD_BITS] |= bits
        if any(issubclass(cls, CLASSES[opcode]) for opcode, _, _ in variants):
            _check_class(cls, members, program, config)
    return words[program.places].tobytes()


def _first_position(program: Distinct[Instruction], number: int) -> int:
    return int(np.flatnonzero(program.places == number)[0])


def _check_class(
    cls: type[Instruction], members: Sequence[int], program: Distinct[Instruction], config: Config
) -> None:
    """Refuse an instruction whose memory id :func:`decode` would read as another class."""
    known: dict[tuple[int, int], type[Instruction] | None] = {}
    for number in members:
        instruction = program.every[number]
        key = memory, part = getattr(instruction, "memory", 0), getattr(instruction, "part", 0)
        if key not in known:
            known[key] = class_of(cls.OPCODE, memory, config, part=part)
        decoded = known[key]
        if decoded is not cls and decoded is not None:
            raise ProgramError(
                f"instruction {_first_position(program, number)} is a {cls.__name__} with the memory id of "
                f"{instruction.mnemonic}; that is a {decoded.__name__} in configuration {config.name!r}"
            )


def decode(data: bytes, config: Config) -> list[Instruction]:
    """Decode the output of :func:`encode`. Unused bits are ignored. Equal words become one object.

    Unknown opcodes become :class:`Unknown`.

    Raises:
        ProgramError: the length is not a multiple of 16 bytes.
    """
    if len(data) % INSTRUCTION_BYTES:
        raise ProgramError(
            f"the instructions are {len(data)} bytes; they must be a multiple of {INSTRUCTION_BYTES}"
        )
    every = np.frombuffer(data, dtype=f"V{INSTRUCTION_BYTES}").tolist()
    distinct = dict.fromkeys(every)
    words = np.frombuffer(b"".join(distinct), dtype="<u8").reshape(-1, INSTRUCTION_BYTES * 8 // WORD_BITS)
    low = words[:, 0].astype(np.int64)
    opcodes = low & ((1 << OPCODE_BITS) - 1)
    result: list[Instruction] = [Unknown(opcode=(1 << OPCODE_BITS) - 1)] * len(words)
    memories = low >> MEMORY_AT & ((1 << MEMORY_ID_BITS) - 1)
    varied = np.isin(opcodes, [opcode for opcode, _, _ in variants_of(config)])
    keys = np.where(varied, memories, 0) << OPCODE_BITS | opcodes
    parted = np.isin(keys, [memory << OPCODE_BITS | opcode for opcode, memory in PARTED])
    keys |= np.where(parted, low >> PART_AT & 1, 0) << (OPCODE_BITS + MEMORY_ID_BITS)
    for key in set(keys.tolist()):
        rows = np.flatnonzero(keys == key)
        rest, opcode = divmod(key, 1 << OPCODE_BITS)
        part, memory = divmod(rest, 1 << MEMORY_ID_BITS)
        cls = class_of(opcode, memory, config, part=part) or Unknown
        for row, instruction in zip(rows.tolist(), _decode_class(cls, words[rows], config), strict=True):
            result[row] = instruction
    return list(map(dict(zip(distinct, result, strict=True)).__getitem__, every))


def _decode_class(cls: type[T], words: Words, config: Config) -> Iterable[T]:
    slots = class_slots(cls, config)
    columns: list[list[Any]] = [_extract(words, slot).tolist() for slot in slots]
    for position, slot in enumerate(slots):
        if slot.spec.enum is None and slot.spec.width == 1:  # a flag, not a one-bit number
            columns[position] = [bool(v) for v in columns[position]]
        if slot.name == "alu_op":  # a code knows the name of its operation
            named = {code: code for code in config.operations}
            columns[position] = [named.get(code, code) for code in columns[position]]
    names = [slot.name for slot in slots]
    return (cls(**dict(zip(names, values, strict=True))) for values in zip(*columns, strict=True))


def _extract(words: Words, slot: Slot) -> npt.NDArray[np.int64]:
    word, shift = divmod(slot.offset, WORD_BITS)
    raw = (words[:, word] >> np.uint64(shift)) & np.uint64((1 << slot.width) - 1)
    values = raw.astype(np.int64)
    if slot.spec.signed:
        values -= (values >> (slot.width - 1)) << slot.width
    return values + slot.spec.base


def _column(values: Sequence[int], slot: Slot) -> Words:
    column = (np.array(values, dtype=np.int64) - slot.spec.base).astype(np.uint64)
    return column & np.uint64((1 << slot.width) - 1)


def _first_misfit(values: Sequence[int], slot: Slot) -> int | None:
    if not values or (slot.low <= min(values) and max(values) <= slot.high):
        return None
    return next(n for n, value in enumerate(values) if not slot.low <= value <= slot.high)


def _does_not_fit(value: int, slot: Slot, cls: type[Any], config: Config, where: str = "") -> ProgramError:
    return ProgramError(
        f"{cls.__name__}.{slot.name} is {value}{where}; it has {slot.width} bits "
        f"({slot.low}..{slot.high}) in configuration {config.name!r}"
    )


def add_to_field(code: bytes, slot: Slot, rows: npt.NDArray[np.intp], values: npt.NDArray[np.int64]) -> bytes:
    """Add ``values[k]`` to one field of instruction ``rows[k]`` in an encoded program.

    Raises:
        ProgramError: a sum does not fit the field.
    """
    words = np.frombuffer(code, dtype="<u8").reshape(-1, INSTRUCTION_BYTES * 8 // WORD_BITS).copy()
    sums = _extract(words[rows], slot) + values
    bad = np.flatnonzero((sums < slot.low) | (sums > slot.high))
    if len(bad):
        raise ProgramError(
            f"{slot.name} of instruction {rows[bad[0]]} becomes {sums[bad[0]]}; "
            f"it has {slot.width} bits ({slot.low}..{slot.high})"
        )
    word, shift = divmod(slot.offset, WORD_BITS)
    mask = np.uint64((1 << slot.width) - 1)
    kept = words[rows, word] & ~(mask << np.uint64(shift))
    words[rows, word] = kept | (sums.astype(np.uint64) & mask) << np.uint64(shift)
    return words.tobytes()


def encode_uops(uops: npt.ArrayLike, config: Config) -> npt.NDArray[np.uint32]:
    """Encode rows (dst, src, wgt) as 32-bit micro-ops.

    Raises:
        ProgramError: an index does not fit its field.
    """
    try:
        rows = np.asarray(uops, dtype=np.int64).reshape(-1, 3)
    except OverflowError:  # the check below refuses indices beyond int64
        rows = np.asarray(uops, dtype=object).reshape(-1, 3)
    result = np.zeros(len(rows), dtype=np.uint32)
    for slot, column in zip(class_slots(MicroOp, config), rows.T, strict=True):
        bad = np.flatnonzero((column < slot.low) | (column > slot.high))
        if len(bad):
            raise _does_not_fit(int(column[bad[0]]), slot, MicroOp, config)
        result |= column.astype(np.uint32) << np.uint32(slot.offset)
    return result


def decode_uops(words: npt.ArrayLike, config: Config) -> UopArray:
    raw = np.asarray(words, dtype=np.uint32)
    columns = [
        (raw >> np.uint32(slot.offset)) & np.uint32((1 << slot.width) - 1)
        for slot in class_slots(MicroOp, config)
    ]
    return np.stack(columns, axis=-1).astype(np.int64)


def check_encodable(config: Config) -> None:
    """Raise a ConfigError unless the fields of instructions and micro-ops fit their words."""
    for cls in (*classes_of(config).values(), *variants_of(config).values()):
        class_slots(cls, config)
    class_slots(MicroOp, config)
