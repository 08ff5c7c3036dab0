"""The C header of a machine's instructions."""

import re
from collections.abc import Iterable, Iterator

from accel.core.alu_operations import operations_by_code
from accel.core.config import Config
from accel.core.isa import TRANSFERS, Instruction, class_slots, classes_of, routes_of, variants_of
from accel.core.isa.instruction_fields import INSTRUCTION_BITS


def isa_c_header(config: Config) -> str:
    """Return the C header.

    For example, ``ACCEL_ALU_OP_ADD`` is 2, a value of ALU's field ``alu_op``. The field starts at bit
    ``ACCEL_ALU_ALU_OP_BIT`` of the word and has ``ACCEL_ALU_ALU_OP_BITS`` bits.
    """
    lines = [
        f"/* Instructions of {config}; written by `accel isa --c`. */",
        "#ifndef ACCEL_ISA_H",
        "#define ACCEL_ISA_H",
        "",
        f"#define ACCEL_INSTRUCTION_BYTES {INSTRUCTION_BITS // 8}u",
        "",
        *_enumeration("opcode", ((cls.OPCODE.name, code, "") for code, cls in classes_of(config).items())),
    ]
    for transfer in TRANSFERS:
        name = f"{_name(transfer)}_memory"
        routes = routes_of(transfer, config).items()
        lines += _enumeration(name.lower(), ((route.name, memory, "") for memory, route in routes))
    operations = operations_by_code(config.alu_ops).items()
    lines += _enumeration("alu_op", ((one.name.upper(), code, one.text) for code, one in operations))
    lines += [
        "/* The first bit of each field in the little-endian word, and its number of bits.",
        "   A field with a base holds the value minus the base. */",
    ]
    for cls in dict.fromkeys([*classes_of(config).values(), *variants_of(config).values()]):
        lines += _fields(cls, config)
    return "\n".join([*lines, "", "#endif"]) + "\n"


def _enumeration(name: str, values: Iterable[tuple[str, int, str]]) -> list[str]:
    members = [
        f"    ACCEL_{name.upper()}_{value} = {int(number)}," + (f" /* {text} */" if text else "")
        for value, number, text in values
    ]
    return [f"enum accel_{name} {{", *members, "};", ""]


def _fields(cls: type[Instruction], config: Config) -> Iterator[str]:
    for slot in class_slots(cls, config):
        name = f"ACCEL_{_name(cls)}_{slot.name.upper()}"
        yield f"#define {name}_BIT {slot.offset}u"
        yield f"#define {name}_BITS {slot.width}u"
        if slot.spec.base:
            yield f"#define {name}_BASE {slot.spec.base}u"


def _name(cls: type[Instruction]) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__).upper()
