"""Format and parse one instruction as text.

    LOAD.INP    sram_base=0 dram_base=256 y_size=4 x_size=16 x_stride=64  <compute >compute

``docs/reference/assembly.md`` describes the syntax.
"""

import re
from collections.abc import Callable

from accel.base.errors import ProgramError, nearest
from accel.core.config import Config
from accel.core.config.alu_ops_field import MAX_ALU_OPS
from accel.core.isa.field_widths import FIRST_HIGH_OP, OPCODE_BITS
from accel.core.isa.instruction_base import TOKEN_FLAGS, Instruction, Unknown
from accel.core.isa.instruction_fields import class_slots, field_specs
from accel.core.isa.instruction_set import (
    CLASSES,
    VARIANTS,
    class_of,
    classes_of,
    exists,
    machines_with,
    memory_names,
    routes_of,
    variants_of,
)
from accel.core.isa.loop_instructions import Alu, AluHigh, alu_of
from accel.core.isa.set_instructions import Set
from accel.core.isa.transfer_instructions import Transfer

_TOKEN_ARROWS = {flag: "<" if flag.startswith("pop") else ">" for flag in TOKEN_FLAGS}
_FIELDS_IN_MNEMONIC = {"opcode", "memory", "part", "alu_op"}

Place = Callable[[str, Transfer], int]
"""Converts a name to a ``dram_base``."""
PlaceName = Callable[[Transfer], str | None]
"""Inverts it, or returns None for an address without a name."""


def format_instruction(instruction: Instruction, place_name: PlaceName | None = None) -> str:
    """Format an instruction for :func:`parse_instruction`."""
    operands = []
    for name, default in _defaults(type(instruction)).items():
        value = getattr(instruction, name)
        if name in _FIELDS_IN_MNEMONIC or name in _TOKEN_ARROWS:
            continue
        by_name = None
        if name == "dram_base" and place_name is not None and isinstance(instruction, Transfer):
            by_name = place_name(instruction)
        if by_name is not None or value != default:
            operands.append(f"{name}={by_name or int(value)}")
    parts = [f"{instruction.mnemonic:<13} " + " ".join(operands)]
    arrows = [
        arrow + _neighbour(instruction, flag)
        for flag, arrow in _TOKEN_ARROWS.items()
        if getattr(instruction, flag)
    ]
    return "  ".join(part for part in (parts[0].rstrip(), " ".join(arrows)) if part)


def parse_instruction(text: str, config: Config, place: Place | None = None) -> Instruction:
    """Parse a line of text: mnemonic in either case, operands and tokens.

    Raises:
        ProgramError: unknown mnemonic, field or name, or a value that does not fit.
    """
    words = text.split()
    if not words:
        raise ProgramError("the line is empty; an instruction starts with its mnemonic")
    cls, values = _parse_mnemonic(words[0], config)
    names = field_specs(cls)
    slots = {slot.name: slot for slot in class_slots(cls, config)}
    arrows = []
    for word in words[1:]:
        if word[0] in "<>":
            arrows.append(word)
            continue
        name, equals, value = word.partition("=")
        if not equals or name not in names or name in _FIELDS_IN_MNEMONIC or name in _TOKEN_ARROWS:
            valid = [n for n in names if n not in _FIELDS_IN_MNEMONIC and n not in _TOKEN_ARROWS]
            hint = nearest(name, valid) if valid else "it takes none"
            raise ProgramError(f"{word!r} is not an operand of {words[0]}; {hint}")
        if name in values:
            raise ProgramError(f"{name} stands twice")
        by_name = re.fullmatch(r"([A-Za-z_][\w.]*)(?:([+-])(.+))?", value)
        if name == "dram_base" and place is not None and by_name is not None:
            transfer = cls(**values)  # type: ignore[arg-type]
            assert isinstance(transfer, Transfer)
            number = place(by_name[1], transfer)
            if by_name[2]:
                number += _integer(name, by_name[2] + by_name[3])
        else:
            number = _integer(name, value)
        if name not in slots:
            required = names[name].requires
            raise ProgramError(f"{name} exists on {_where(machines_with(required), required, config)}")
        slot = slots[name]
        if not slot.low <= number <= slot.high:
            raise ProgramError(
                f"{name} is {number}; it has {slot.width} bits ({slot.low}..{slot.high}) "
                f"in configuration {config.name!r}"
            )
        values[name] = bool(number) if isinstance(_defaults(cls)[name], bool) else number
    instruction = cls(**values)  # type: ignore[arg-type]
    flags: dict[str, bool] = {}
    for arrow in arrows:
        flag = {f: a + _neighbour(instruction, f) for f, a in _TOKEN_ARROWS.items()}
        by_side = {f: a + f.split("_")[1] for f, a in _TOKEN_ARROWS.items()}
        found = [f for f in _TOKEN_ARROWS if arrow in (flag[f], by_side[f])]
        if not found:
            raise ProgramError(f"{arrow!r} is not a token of {words[0]}; {nearest(arrow, flag.values())}")
        flags[found[0]] = True
    return cls(**(values | flags))  # type: ignore[arg-type]


def _parse_mnemonic(word: str, config: Config) -> tuple[type[Instruction], dict[str, int]]:
    known = classes_of(config)
    name, _, detail = word.upper().partition(".")
    match = re.fullmatch(r"UNKNOWN(\d)", name)
    if match and int(match[1]) not in known and int(match[1]) < 1 << OPCODE_BITS and not detail:
        return Unknown, {"opcode": int(match[1])}
    cls = next((cls for cls in known.values() if cls.OPCODE.name == name), None)
    if cls is not None and issubclass(cls, Transfer | Set):
        for (opcode, memory, _), variant in VARIANTS.items():
            if opcode != cls.OPCODE or variant().mnemonic != f"{name}.{detail}":
                continue
            if exists(variant, config):
                return variant, {"memory": memory}
            if detail not in memory_names(cls).values():
                raise _lacks(word, variant, config)
        names = {label: memory for memory, label in memory_names(cls).items()}
        memory = _mnemonic_number(detail, names, "MEM", word, config)
        return class_of(cls.OPCODE, memory, config) or cls, {"memory": memory}
    if cls is Alu:
        codes = {one.mnemonic: code for code, one in config.operations.items()}
        most = MAX_ALU_OPS if exists(AluHigh, config) else FIRST_HIGH_OP
        code = _mnemonic_number(detail, codes, "OP", word, config, most=most)
        return alu_of(code), {"alu_op": code}
    if cls is not None and not detail:
        return cls, {}
    lacking = next(
        (one for one in CLASSES.values() if one.OPCODE not in known and one.OPCODE.name == name), None
    )
    if lacking is not None:
        raise _lacks(word, lacking, config)
    raise ProgramError(f"{word!r} is not a mnemonic; {nearest(word.upper(), mnemonics(config))}")


def _lacks(word: str, cls: type[Instruction], config: Config) -> ProgramError:
    required = cls.REQUIRES
    return ProgramError(f"{word!r} exists on {_where(machines_with(required), required, config)}")


def _where(machines: str, required: str, config: Config) -> str:
    return f"{machines}; configuration {config.name!r} has {required}=0"


def _mnemonic_number(
    detail: str, names: dict[str, int], unknown: str, word: str, config: Config, *, most: int = 8
) -> int:
    if detail in names:
        return names[detail]
    if (match := re.fullmatch(unknown + r"(\d{1,2})", detail)) and int(match[1]) < most:
        return int(match[1])
    raise ProgramError(f"{word!r} is not a mnemonic; {nearest(word.upper(), mnemonics(config))}")


def mnemonics(config: Config) -> list[str]:
    """Return a machine's mnemonics."""
    found = []
    for cls in classes_of(config).values():
        if issubclass(cls, Transfer):
            found += [
                f"{cls.OPCODE.name}.{route.name}" for _, route in sorted(routes_of(cls, config).items())
            ]
        elif cls is Set:
            found += [one().mnemonic for one in variants_of(config).values() if issubclass(one, Set)]
        elif cls is Alu:
            found += [f"{cls.OPCODE.name}.{one.mnemonic}" for one in config.operations.values()]
        elif cls is AluHigh:
            continue  # its mnemonics are ALU's
        else:
            found.append(cls.OPCODE.name)
    return found


def _integer(name: str, text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise ProgramError(f"{name} is {text!r}; it must be an integer") from None


def _defaults(cls: type[Instruction]) -> dict[str, object]:
    return {name: spec.default for name, spec in field_specs(cls).items()}


def _neighbour(instruction: Instruction, flag: str) -> str:
    side = flag.split("_")[1]
    unit = instruction.unit.previous if side == "prev" else instruction.unit.next
    return side if unit is None else unit.label
