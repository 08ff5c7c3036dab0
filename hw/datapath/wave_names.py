"""Instructions and states as text in waves."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from accel.core.alu_operations import AluOp
from accel.core.config import Config
from accel.core.isa import (
    CLASSES,
    VARIANTS,
    Alu,
    Instruction,
    Load,
    Opcode,
    Set,
    Transfer,
    Unit,
    alu_of,
    classes_of,
    memory_names,
    variants_of,
)
from accel.core.isa.field_widths import FIRST_HIGH_OP, PART_AT
from accel.core.token_rules import WORKERS
from accel.hw.datapath.word_layouts import view

STATES = ("idle", "busy", "memory", "token")
NOTHING = "-"


def mnemonics(
    classes: Mapping[int, type[Instruction]],
    variants: Mapping[tuple[int, int, int], type[Instruction]],
    operations: Iterable[int] = tuple(AluOp),
) -> Iterator[tuple[int, int | None, str]]:
    """Return opcode, memory or ALU operation, and name. Of several with the same numbers, the first is
    right."""
    for (opcode, memory, part), cls in variants.items():
        if not part:
            yield opcode, memory, cls().mnemonic
    for opcode, cls in classes.items():
        if issubclass(cls, Transfer | Set):
            for memory in memory_names(cls):
                yield opcode, memory, cls(memory=memory).mnemonic
        elif issubclass(cls, Alu):
            for code in operations:
                if alu_of(code) is cls:
                    yield opcode, code % FIRST_HIGH_OP, cls(alu_op=code).mnemonic
        else:
            yield opcode, None, Opcode(opcode).name


LENGTH = max(len(name) for _, _, name in mnemonics(CLASSES, VARIANTS))
"""Characters of VTA's longest name. Longer names of other operations are cut."""


_STATE_LENGTH = max(map(len, STATES))


def named_signals() -> Iterator[tuple[str, int]]:
    for unit in Unit:
        yield f"{unit.label}_state", 8 * _STATE_LENGTH
        yield f"{unit.label}_next", 8 * LENGTH
        if unit in WORKERS:
            yield f"{unit.label}_last", 8 * LENGTH


def ascii_code(text: str, length: int) -> int:
    """Return ASCII as a number: first character highest, padded with blanks."""
    return int.from_bytes(text.ljust(length).encode("ascii"), "big")


def _text(name: str, length: int) -> Signal:
    return Signal(8 * length, name=name, attrs={"keep": 1})


class Names(wiring.Component):
    """Drives the texts that docs/explain/hardware.md lists.

    Inputs of each unit: it is ``busy`` or waits for ``memory`` or a ``token``, and its next instruction's
    ``word``, ``valid`` and ``start``.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        ports: dict[str, Any] = {}
        for unit in Unit:
            ports |= {f"{unit.label}_{state}": In(1) for state in STATES[1:]}
            ports |= {f"{unit.label}_valid": In(1), f"{unit.label}_word": In(Instruction.BITS)}
            ports[f"{unit.label}_start"] = In(1)
        super().__init__(ports)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        for unit in Unit:
            state = _text(f"{unit.label}_state", _STATE_LENGTH)
            m.d.comb += state.eq(ascii_code("idle", _STATE_LENGTH))
            for position, name in enumerate(STATES[1:]):
                there = getattr(self, f"{unit.label}_{name}")
                with m.If(there) if position == 0 else m.Elif(there):
                    m.d.comb += state.eq(ascii_code(name, _STATE_LENGTH))
            following = self._name(m, unit)
            if unit in WORKERS:
                last = _text(f"{unit.label}_last", LENGTH)
                with m.If(getattr(self, f"{unit.label}_start")):
                    m.d.sync += last.eq(following)
        return m

    def _name(self, m: Module, unit: Unit) -> Signal:
        word: Value = getattr(self, f"{unit.label}_word")
        alu, transfer = view(Alu, self._config, word), view(Load, self._config, word)
        name = _text(f"{unit.label}_next", LENGTH)
        m.d.comb += name.eq(ascii_code("UNKNOWN", LENGTH))
        with m.If(~getattr(self, f"{unit.label}_valid")):
            m.d.comb += name.eq(ascii_code(NOTHING, LENGTH))
        for (opcode, memory, part), cls in variants_of(self._config).items():
            if part:
                same = (alu.opcode == opcode) & (transfer.memory == memory) & word[PART_AT]
                with m.Elif(same):
                    m.d.comb += name.eq(ascii_code(cls().mnemonic, LENGTH))
        found = mnemonics(classes_of(self._config), variants_of(self._config), self._config.operations)
        for opcode, detail, text in found:
            same = alu.opcode == opcode
            if detail is not None:
                same &= (alu.alu_op if opcode in (Opcode.ALU, Opcode.ALU_HIGH) else transfer.memory) == detail
            with m.Elif(same):
                m.d.comb += name.eq(ascii_code(text[:LENGTH], LENGTH))
        return name
