"""Generate ``docs/reference/isa.md``."""

import inspect
from collections.abc import Iterable
from typing import Any

from accel.core.config import Config
from accel.core.fault_causes import Cause
from accel.core.fault_conditions import conditions_of
from accel.core.isa import (
    TRANSFERS,
    Alu,
    Instruction,
    Load,
    Loops,
    MicroOp,
    SetInp,
    SetWgt,
    Unit,
    alu_of,
    class_slots,
    classes_of,
    exists,
    routes_of,
    variants_of,
)
from accel.core.isa.instruction_set import machines_with
from accel.core.markdown_table import table
from accel.core.scratchpad_specs import UOP, Scratchpad

_INTRODUCTION = """\
This page is for readers of programs, authors of compilers and hardware designers. It lists every instruction
of a machine: its fields, its operation and the errors it reports. Four units work in parallel:

| unit | executes |
| --- | --- |
| fetch | nothing; it reads the program and dispatches each instruction to the queue of its unit, in order |
| load | {load} |
| compute | everything else |
| store | {store} |

Units wait for one another only through queues and token counters. In the chain load, compute, store there is
a counter from each unit to each neighbour. An instruction starts when every token that it pops exists. It
pushes its tokens when its last write is visible. Tokens along the chain are RAW tokens: the data is written
and may be read. Tokens against the chain are WAR tokens: the data was read and may be overwritten. For
example, a LOAD with `push_next` and a GEMM with `pop_prev` make the GEMM wait for the loaded data. Nothing
else orders instructions of different units.

An instruction is a 128-bit little-endian word, a micro-op a 32-bit one. Fields are packed upward from bit 0.
A field that would cross a 64-bit boundary starts at the boundary. Decoding ignores bits that no field uses,
encoding writes them as zero. The widths below are those of {config}. `accel isa --config NAME` prints those
of any other machine, [configuration](configuration.md) lists the machines."""

_INSTRUCTIONS = """\
All instructions have the same lowest seven bits. In the tables, bits `a:b` are bits `a` to `b`, `b` the
lowest. *Element* is an element of the scratchpad or DRAM area that the instruction accesses, as the table of
memories defines it. For example, `dram_base=4` of a LOAD of INP on `vta` is byte 64 of the DRAM window,
because an element has 16 bytes.

Each instruction has a second table of the errors that it reports, in the order in which they are checked. A
LOAD or STORE with `x_size` zero checks only its token flags. In addition any instruction can be the one at
which the run ends with `no-finish`, `limit`, `deadlock`, `stopped` or `timeout`."""

_ERRORS = """\
The first error ends the run, with a cause and the index of the instruction. Of several errors in one cycle,
the first in the order fetch, load, compute, store is reported. After an error no instruction starts. The
machine never writes outside the DRAM window. For example, a LOAD that fills inp elements up to index 2048 on
a machine with the elements 0 to 2047 ends the run with `sram-range`, and it has moved nothing.

The Python API raises these errors as [exceptions](../api/errors.rst). Hardware reports them in the register
[`cause`](registers.md)."""


def isa_manual(config: Config) -> str:
    """Return the page of a machine as Markdown."""
    load_sets = [cls for cls in (SetInp, SetWgt) if exists(cls, config)]
    sections = [
        "# The instruction set",
        _INTRODUCTION.format(
            config=f"`{config.label}`",
            load=", ".join(("LOAD of INP and WGT", *(one().mnemonic for one in load_sets))),
            store="STORE" + (f", {_loads_of_store_unit(config)}, SET.OUT, SET.SUM" if config.post else ""),
        ),
        "## Memories",
        _memory_table(config),
        "## Instructions",
        _INSTRUCTIONS,
    ]
    for cls in classes_of(config).values():
        sections += [f"### {cls.OPCODE.name} ({cls.OPCODE.value})", *_generation_note(cls.REQUIRES)]
        sections += [_description(cls), _field_table(cls, config)]
        if issubclass(cls, Alu):
            operations = (
                (f"{int(code)}", one.mnemonic, f"`{one.description}`")
                for code, one in config.operations.items()
                if alu_of(code) is cls
            )
            heads = ("alu_op", "name", "result of x = acc[dst] and y = acc[src] or imm")
            sections.append(table(heads, operations))
        sections.append(_error_table(cls, config))
        for (opcode, memory, part), one in variants_of(config).items():
            if opcode == cls.OPCODE:
                parts = "" if one.PART is None else f", part {part}"
                title = f"#### {one().mnemonic} ({opcode}, memory {memory}{parts})"
                sections += [
                    title,
                    *_generation_note("" if one.REQUIRES == cls.REQUIRES else one.REQUIRES),
                    _description(one),
                ]
                sections += [_field_table(one, config), _error_table(one, config)]
    sections += [
        "## Micro-ops",
        _description(MicroOp),
        _description(Loops).split("\n\n", 1)[1],
        _field_table(MicroOp, config),
        "## Errors",
        _ERRORS,
        cause_table([cause for cause in Cause if config.post or not cause.post]),
    ]
    return "\n\n".join(sections) + "\n"


def _loads_of_store_unit(config: Config) -> str:
    *names, last = (one.name for one in routes_of(Load, config).values() if one.unit is Unit.STORE)
    return f"LOAD of {', '.join(names)} and {last}"


def _generation_note(required: str) -> list[str]:
    if not required:
        return []
    return [_GENERATION_NOTES.get(required, f"Only {machines_with(required)} have it.")]


_GENERATION_NOTES = {"post": "Only machines of the second generation, with `post=1`, have it."}


def cause_table(causes: Iterable[Cause]) -> str:
    rows = ((f"{c.value}", f"`{c.label}`", c.doc + ("; only where post=1" if c.post else "")) for c in causes)
    return table(("number", "cause", "meaning"), rows)


def _description(cls: type[Any]) -> str:
    return inspect.cleandoc(cls.__doc__ or "").replace("``", "`")


def _memory_table(config: Config) -> str:
    rows = []
    moved = [
        (memory, mover, route) for mover in TRANSFERS for memory, route in routes_of(mover, config).items()
    ]
    for memory, mover, route in sorted(moved, key=lambda one: one[0]):
        pad = route.scratchpad
        element = "micro-op" if pad is UOP else f"{route.dtype}{_shape(pad, config)}{route.doc}"
        by = f"{mover.OPCODE.name}, in the {route.unit.label} unit"
        rows.append((f"{memory}", route.name, element, pad.name, f"{pad.depth(config)}", by))
    return table(("id", "name", "element in DRAM", "scratchpad", "elements", "moved by"), rows)


def _shape(pad: Scratchpad, config: Config) -> str:
    return "".join(f"[{extent}]" for extent in pad.shape(config))


def _field_table(cls: type[Any], config: Config) -> str:
    selecting = (("opcode", "OPCODE"), ("memory", "MEMORY"), ("part", "PART"))
    fixed = {
        name: f"{int(getattr(cls, constant))}"
        for name, constant in selecting
        if getattr(cls, constant, None) is not None
    }
    rows = []
    for slot in sorted(class_slots(cls, config), key=lambda slot: slot.offset):
        high = slot.offset + slot.width - 1
        bits = f"{slot.offset}" if slot.width == 1 else f"{high}:{slot.offset}"
        unit = slot.spec.unit or ("flag" if slot.width == 1 else "code" if slot.spec.enum else "")
        meaning = slot.spec.doc + (", signed" if slot.spec.signed else "")
        values = fixed.get(slot.name, f"{slot.low}..{slot.high}")
        rows.append((bits, f"`{slot.name}`", meaning, unit, f"{slot.width}", values))
    return table(("bits", "field", "meaning", "unit", "width", "values"), rows)


def _error_table(cls: type[Instruction], config: Config) -> str:
    rows = ((f"`{cause.label}`", text) for cause, text in conditions_of(cls, config))
    return table(("error", "reported if"), rows)
