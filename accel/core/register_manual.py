"""The reference of the control registers and their C header: ``accel registers``, ``docs/registers.md``."""

from accel.core.faults import Cause
from accel.core.isa_manual import cause_table, table
from accel.core.registers import ID, MAP_VERSION, REGISTERS, WORD_BYTES, Access, Register

_INTRODUCTION = """\
The core is controlled through an AXI4-Lite port of 32-bit words; a register wider than that takes two, the
low one first. Writes obey their byte strobes. Answers are OKAY, or SLVERR for an address without a register,
a write to a register that is only read, a setting while a run is going on, and a command that cannot be
carried out; a write that is answered with SLVERR changes nothing.

A run: write the settings, write `start`, wait for `irq` or for `done`, look at `error`. Settings stay from
run to run; so do scratchpad contents and tokens, until `clear` or a reset. Settings are bad if
`program_address` is no multiple of 16, `mem_base` no multiple of 4096, the window reaches beyond 2^40, or the
program does not lie within the window."""


def registers_manual() -> str:
    """The register map as Markdown."""
    registers = [
        (f"`{r.offset:#05x}`", f"`{r.name}`", f"{r.width}", r.access.value, _reset(r), r.doc)
        for r in REGISTERS.values()
    ]
    bits = [
        (f"`{r.name}`", f"{bit.position}", f"`{bit.name}`", bit.doc)
        for r in REGISTERS.values()
        for bit in r.bits
    ]
    return (
        "\n\n".join(
            [
                "# The control registers",
                _INTRODUCTION,
                table(("address", "name", "bits", "access", "after reset", "meaning"), registers),
                "## Bits",
                table(("register", "bit", "name", "meaning"), bits),
                "## Causes",
                cause_table(Cause),
            ]
        )
        + "\n"
    )


def _reset(register: Register) -> str:
    if register.access is Access.CONSTANT:
        return "as built"
    return f"{register.reset:#x}" if register.reset else "0"


def c_header() -> str:
    """The register map as a C header."""
    lines = [
        "/* Control registers of the accelerator; written by `accel registers --c`. */",
        "#ifndef ACCEL_REGISTERS_H",
        "#define ACCEL_REGISTERS_H",
        "",
        f"#define ACCEL_ID_VALUE {ID:#010x}u",
        f"#define ACCEL_VERSION_VALUE {MAP_VERSION}u",
        "",
        "/* Byte addresses. */",
    ]
    for register in REGISTERS.values():
        name = f"ACCEL_{register.name.upper()}"
        if register.words == 1:
            lines.append(f"#define {name} {register.offset:#05x}u /* {register.access.value} */")
        else:
            lines.append(f"#define {name}_LOW {register.offset:#05x}u /* {register.access.value} */")
            lines.append(f"#define {name}_HIGH {register.offset + WORD_BYTES:#05x}u")
        for bit in register.bits:
            lines.append(f"#define {name}_{bit.name.upper()} {1 << bit.position:#x}u /* {bit.doc} */")
    lines += ["", "/* Values of ACCEL_CAUSE. */", "enum accel_cause {"]
    lines += [f"    ACCEL_CAUSE_{cause.name} = {cause.value}, /* {cause.doc} */" for cause in Cause]
    lines += ["};", "", "/* The causes of errors, for tables: USE(number, name, meaning). */"]
    lines.append("#define ACCEL_CAUSES(USE) \\")
    errors = [cause for cause in Cause if cause]
    lines += [f"    USE({cause.value}, {cause.name}, {_c_string(cause.doc)}) \\" for cause in errors[:-1]]
    lines += [f"    USE({cause.value}, {cause.name}, {_c_string(cause.doc)})" for cause in errors[-1:]]
    lines += ["", "#endif"]
    return "\n".join(lines) + "\n"


def _c_string(text: str) -> str:
    """Text as a C string literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
