"""The elements of inp, wgt and acc that emitted instructions read and write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from accel.compiler.target.emitter_registry import Emitted
from accel.core.config import Config
from accel.core.instruction_access import COLUMNS
from accel.core.isa import Load, Loops
from accel.core.scratchpad_specs import INP, WGT, Scratchpad


class Span(NamedTuple):
    """A range of a scratchpad's elements, up to ``end - 1``."""

    memory: Scratchpad
    begin: int
    end: int

    def overlaps(self, other: Span) -> bool:
        return self.memory is other.memory and self.begin < other.end and other.begin < self.end


class Spans:
    """The spans of instructions, cached by instruction."""

    def __init__(self, config: Config) -> None:
        self.depths = {memory: memory.depth(config) for memory in (INP, WGT)}
        self._of_loops: dict[int, tuple[Emitted, list[Span], list[Span]]] = {}
        """By ``id`` of an emitted instruction: itself, the read spans of inp and wgt, and the written spans
        of accumulators."""

    def loaded(self, one: Emitted) -> Span | None:
        load = one.instruction
        if not isinstance(load, Load) or load.route is None or load.route.scratchpad not in self.depths:
            return None
        return Span(load.route.scratchpad, load.sram_base, load.sram_base + load.sram_elements)

    def load_span(self, one: Emitted) -> Span:
        span = self.loaded(one)
        assert span is not None
        return span

    def read(self, one: Emitted) -> list[Span]:
        return self._spans(one)[1]

    def written(self, one: Emitted) -> list[Span]:
        return self._spans(one)[2]

    def _spans(self, one: Emitted) -> tuple[Emitted, list[Span], list[Span]]:
        found = self._of_loops.get(id(one))
        if found is None:
            every = [*self._operand_spans(one, one.instruction)] if isinstance(one.instruction, Loops) else []
            read = [span for span in every if span.memory in self.depths]
            found = self._of_loops[id(one)] = one, read, [span for span in every if span not in read]
        return found

    def _operand_spans(self, one: Emitted, loops: Loops) -> Iterator[Span]:
        for operand in loops.OPERANDS:
            reads = operand.memory in self.depths and operand.used_by(loops)
            if not (reads or operand.writes) or not len(one.uops):
                continue
            if operand.tapped_by(loops):
                yield Span(operand.memory, 0, self.depths[operand.memory])
                continue
            column = one.uops[:, COLUMNS[operand.name]]
            outer, inner = (getattr(loops, name) for name in operand.factors)
            reach = (loops.iter_out - 1) * outer + (loops.iter_in - 1) * inner
            yield Span(operand.memory, int(column.min()), int(column.max()) + reach + 1)
