"""The use of the store unit's scratchpads."""

from collections.abc import Iterator, Sequence

from accel.core.config import Config
from accel.core.events import Event, EventKind
from accel.core.fault_causes import instruction_faults, operand_ranges, residual_change
from accel.core.instruction_access import dram_rows
from accel.core.isa import Instruction, Load, Transfer, Unit
from accel.core.scratchpad_specs import RES, Scratchpad
from accel.core.timing_rules import burst_beats


class StoreUnitMemories:
    """Tracks the store unit with ``post=1`` from events in order."""

    def __init__(self, instructions: Sequence[Instruction], config: Config) -> None:
        self._instructions = instructions
        self._config = config
        self._faults = instruction_faults(instructions, config)
        self._running: list[int] = []
        self._writing: dict[int, int] = {}
        """Missing bursts of LOADs in flight."""
        self._loaded = self._consumed = self._freed = 0
        """RES elements of started LOADs, started STOREs, and retired STOREs."""

    def apply(self, event: Event) -> None:
        index = event.instruction
        if event.unit is not Unit.STORE or event.kind is EventKind.QUEUE_PUSH:
            return
        one = self._instructions[index]
        change = residual_change(one)
        if event.kind is EventKind.START:
            self._running.append(index)
            self._loaded += max(0, change)
            self._consumed += max(0, -change)
            rows = dram_rows(one, self._config)
            if isinstance(one, Load) and rows is not None:
                self._writing[index] = len(burst_beats(rows, self._config))
        elif event.kind is EventKind.BURST_LAST and index in self._writing:
            self._writing[index] -= 1
            if not self._writing[index]:
                del self._writing[index]
        elif event.kind is EventKind.RETIRE:
            self._running.remove(index)
            self._writing.pop(index, None)
            self._freed += max(0, -change)

    def waits(self, index: int) -> Iterator[str]:
        """Describe waits of an instruction other than for tokens."""
        one = self._instructions[index]
        if not isinstance(one, Transfer) or self._faults[index] is not None:
            return
        ranges = operand_ranges(one)
        for other in reversed(self._running):
            shared = [span for span in operand_ranges(self._instructions[other]) if _is_hit(span, ranges)]
            if shared and isinstance(one, Load):
                yield f"until instruction {other}, which uses {_span(shared[0])}, has retired"
                break
            if shared and other in self._writing:
                yield f"until instruction {other} has filled {_span(shared[0])}"
                break
        change, depth = residual_change(one), RES.depth(self._config)
        if change > 0 and self._loaded - self._freed + change > depth:
            yield f"for room in res: {self._loaded - self._freed} of {depth} elements are in use"
        there = self._loaded - sum(max(0, residual_change(self._instructions[n])) for n in self._writing)
        if change < 0 and self._consumed - change > there:
            yield f"for residuals: {max(0, there - self._consumed)} of {-change} have been loaded"


_Span = tuple[Scratchpad, int, int]


def _is_hit(span: _Span, ranges: Sequence[_Span]) -> bool:
    return any(pad is span[0] and begin < span[2] and span[1] < end for pad, begin, end in ranges)


def _span(span: _Span) -> str:
    pad, begin, end = span
    return f"{pad}[{begin}:{end}]"
