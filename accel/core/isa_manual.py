"""The reference of the instruction set, written from the declarations: ``accel isa``, ``docs/isa.md``."""

import inspect
from collections.abc import Iterable, Sequence
from typing import Any

from accel.core.config import Config
from accel.core.faults import Cause
from accel.core.isa import (
    TRANSFERS,
    Alu,
    AluOp,
    Loops,
    MicroOp,
    class_slots,
    classes_of,
    routes_of,
    variants_of,
)
from accel.core.memories import UOP, Scratchpad

_INTRODUCTION = """\
Four units work in parallel and meet only in queues and token counters. *Fetch* hands out the instructions in
order; *load* executes LOADs of INP and WGT, *store* executes STOREs{own},
*compute* everything else. In the chain load, compute, store each unit has a counter of tokens from each
neighbour: an instruction starts when every token that it pops is there, and pushes its tokens when its last
write can be seen. RAW tokens run with the chain, WAR tokens against it. No other order holds between
instructions of different units.

An instruction is a 128-bit little-endian word, a micro-op a 32-bit one. Fields are packed upward from bit 0;
one that would cross a 64-bit boundary starts at it. Bits that no field uses are ignored when read and written
as zero. The widths below are those of {config}; `accel isa --config NAME` prints those of any other."""

_ERRORS = """\
The first error ends the run, with a cause and the instruction's index; among errors of one cycle it is that
of fetch, load, compute, store, in this order. After it nothing starts. Nothing is ever written outside the
DRAM window."""

_ALU = {
    AluOp.MIN: "min(x, y)",
    AluOp.MAX: "max(x, y)",
    AluOp.ADD: "x + y",
    AluOp.SHR: "x >> y; x << -y where y is negative",
    AluOp.MUL: "x * y",
}


def isa_manual(config: Config) -> str:
    """The instruction set of a machine as Markdown."""
    sections = [
        "# The instruction set",
        _INTRODUCTION.format(
            config=f"`{config.label}`", own=" and LOADs of PAR and RES" if config.post else ""
        ),
        "## Memories",
        _memories(config),
        "## Instructions",
        "The lowest seven bits are the same in all of them. Columns `a:b` are bits, `b` the lowest.",
    ]
    for cls in classes_of(config).values():
        sections += [f"### {cls.OPCODE.name} ({cls.OPCODE.value})", *_only(cls.POST)]
        sections += [_prose(cls), _fields(cls, config)]
        if cls is Alu:
            operations = ((f"{op.value}", op.name, f"`{_ALU[op]}`") for op in AluOp)
            sections.append(table(("alu_op", "name", "result of x = acc[dst] and y"), operations))
        for (opcode, memory, part), one in variants_of(config).items():
            if opcode == cls.OPCODE:
                parts = "" if one.PART is None else f", part {part}"
                title = f"#### {one().mnemonic} ({opcode}, memory {memory}{parts})"
                sections += [title, *_only(one.POST and not cls.POST), _prose(one), _fields(one, config)]
    sections += [
        "## Micro-ops",
        _prose(MicroOp),
        _prose(Loops).split("\n\n", 1)[1],
        _fields(MicroOp, config),
        "## Errors",
        _ERRORS,
        cause_table([cause for cause in Cause if config.post or not cause.post]),
    ]
    return "\n\n".join(sections) + "\n"


def _only(post: bool) -> list[str]:
    """What to say of an instruction that not every machine has."""
    return ["Only machines of the second generation, with `post=1`, have it."] if post else []


def cause_table(causes: Iterable[Cause]) -> str:
    """Causes with their numbers and meanings; the same in the manuals of instructions and of registers."""
    rows = ((f"{c.value}", f"`{c.label}`", c.doc + ("; only where post=1" if c.post else "")) for c in causes)
    return table(("number", "cause", "meaning"), rows)


def _prose(cls: type[Any]) -> str:
    return inspect.cleandoc(cls.__doc__ or "").replace("``", "`")


def _memories(config: Config) -> str:
    """What the memory ids stand for."""
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


def _fields(cls: type[Any], config: Config) -> str:
    rows = []
    for slot in sorted(class_slots(cls, config), key=lambda slot: slot.offset):
        high = slot.offset + slot.width - 1
        bits = f"{slot.offset}" if slot.width == 1 else f"{high}:{slot.offset}"
        rows.append((bits, f"`{slot.name}`", slot.spec.doc + (", signed" if slot.spec.signed else "")))
    return table(("bits", "field", "meaning"), rows)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
