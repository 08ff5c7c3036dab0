"""What the store unit's instructions share at one moment of a run: par and res, who fills and who reads."""

from collections.abc import Iterator, Sequence

from accel.core.access import dram_rows
from accel.core.config import Config
from accel.core.events import Event, EventKind
from accel.core.faults import instruction_faults, residual_change, sram_ranges
from accel.core.isa import Instruction, Load, Store, Transfer, Unit
from accel.core.memories import PAR, RES
from accel.core.timing_rules import burst_beats


class Sharing:
    """Follows the store unit of a machine with ``post=1``; give it the events of a run in order.

    Args:
        instructions: the program.
        config: the machine.
    """

    def __init__(self, instructions: Sequence[Instruction], config: Config) -> None:
        self._instructions = instructions
        self._config = config
        self._faults = instruction_faults(instructions, config)
        self._running: list[int] = []
        self._writing: dict[int, int] = {}
        """LOADs in flight, and how many of their bursts have not come."""
        self._loaded = self._taken = self._left = 0
        """RES elements of the LOADs that have started, of the STOREs, and of the STOREs that have retired."""

    def apply(self, event: Event) -> None:
        """Take in what happens next."""
        index = event.instruction
        if event.unit is not Unit.STORE or event.kind is EventKind.QUEUE_PUSH:
            return
        one = self._instructions[index]
        change = residual_change(one)
        if event.kind is EventKind.START:
            self._running.append(index)
            self._loaded += max(0, change)
            self._taken += max(0, -change)
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
            self._left += max(0, -change)

    def waits(self, index: int) -> Iterator[str]:
        """For what the unit's next instruction waits besides tokens, each in words."""
        one = self._instructions[index]
        if not isinstance(one, Transfer) or self._faults[index] is not None:
            return
        ranges = _par_ranges(one)
        for other in reversed(self._running):
            shared = [span for span in _par_ranges(self._instructions[other]) if _meets(span, ranges)]
            if shared and isinstance(one, Load):
                yield f"until instruction {other}, which uses {_par(shared[0])}, has retired"
                break
            if shared and other in self._writing:
                yield f"until instruction {other} has filled {_par(shared[0])}"
                break
        change, depth = residual_change(one), RES.depth(self._config)
        if change > 0 and self._loaded - self._left + change > depth:
            yield f"for room in res: {self._loaded - self._left} of {depth} elements are in use"
        there = self._loaded - sum(max(0, residual_change(self._instructions[n])) for n in self._writing)
        if change < 0 and self._taken - change > there:
            yield f"for residuals: {max(0, there - self._taken)} of {-change} have been loaded"


def _par_ranges(one: Instruction) -> list[tuple[int, int]]:
    """The elements of par that an instruction fills or reads; none if it does not use them."""
    if not isinstance(one, Load | Store):
        return []
    return [(begin, begin + count) for pad, begin, count in sram_ranges(one) if pad is PAR and count]


def _meets(span: tuple[int, int], ranges: Sequence[tuple[int, int]]) -> bool:
    return any(begin < span[1] and span[0] < end for begin, end in ranges)


def _par(span: tuple[int, int]) -> str:
    return f"{PAR}[{span[0]}:{span[1]}]"
