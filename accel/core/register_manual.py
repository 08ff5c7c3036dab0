"""Generate ``docs/reference/registers.md`` and the C header."""

from accel.core.fault_causes import Cause
from accel.core.isa_manual import cause_table
from accel.core.markdown_table import table
from accel.core.registers import ID, MAP_VERSION, REGISTERS, WORD_BYTES, Access, Register

_INTRODUCTION = """\
This page is for authors of drivers and of systems that contain the core. It lists every register with its
address, width, access and meaning.

The core is controlled through an AXI4-Lite port with 32-bit words. A register with more than 32 bits occupies
two words, the low one first. Writes obey their byte strobes. The core answers OKAY, or SLVERR in these cases:

- no register has the address
- a write to a register that is read only
- a write to a setting during a run
- a command that is refused

A write that is answered with SLVERR changes nothing.

## A run

1. Write the settings.
2. Write `start`.
3. Wait for `irq`, or poll `status` until `done` is set.
4. Check `error`. If it is set, `cause` and `fault_index` describe the error.

For example, a program of 100 instructions at byte address 0x1000, in a window of 256 MiB from address 0:

| access | address | register | value |
| --- | --- | --- | --- |
| write | `0x100` | `program_address`, low word | 0x1000 |
| write | `0x104` | `program_address`, high word | 0 |
| write | `0x108` | `program_length` | 100 |
| write | `0x110` | `mem_base`, low word | 0 |
| write | `0x118` | `mem_size`, low word | 0x10000000 |
| write | `0x008` | `control` | 1: `start` |
| read | `0x00c` | `status` | 1: `running` |
| read | `0x00c` | `status` | 2: `done` |
| read | `0x200` | `cycles`, low word | length of the run |

Settings, scratchpad contents and token counters keep their values from run to run. `clear` and a reset set
the token counters to zero. A reset also sets the settings to their values after reset. `start` is refused
with bad settings:

- `program_address` is not a multiple of 16
- `mem_base` is not a multiple of 4096
- the window reaches beyond 2^40
- the program does not lie in the window

## Access

| access | meaning |
| --- | --- |
| constant | read only; fixed when the hardware is built |
| read | read only; changes during a run |
| counter | read only; reading the low word latches the high word, which the next read of it returns |
| setting | read at any time, written while no run is in progress |
| read, write | read and written at any time |
| command | writing a one executes a command; reads as zero |
| ones clear | read at any time; writing a one clears the bit |

## Registers"""


def registers_manual() -> str:
    """Return the page as Markdown."""
    registers = [
        (f"`{r.offset:#05x}`", f"`{r.name}`", f"{r.width}", r.access.value, _reset_value(r), r.doc)
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


def _reset_value(register: Register) -> str:
    if register.access is Access.CONSTANT:
        return "as built"
    return f"{register.reset:#x}" if register.reset else "0"


def c_header() -> str:
    """Return the C header."""
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
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
