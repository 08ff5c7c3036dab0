"""Earliest start of each instruction, apart from tokens."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from accel.core.config import Config
from accel.core.fault_causes import instruction_faults, operand_ranges, residual_change
from accel.core.isa import Instruction, Load, Loops, Set, Transfer, Unit
from accel.core.scratchpad_specs import RES, Scratchpad
from accel.core.timing_rules import busy_slots, dispatch_depth
from accel.views.activity_records import NO_INSTRUCTION, StateReason
from accel.views.event_times import EventTimes


class EarliestStart(NamedTuple):
    """The first cycle in which the unit could accept an instruction.

    In ``[wait_start, cycle)`` it waits for the store unit's scratchpads.
    """

    wait_start: int
    cycle: int
    reason: StateReason = StateReason.OCCUPIED
    awaited: int = NO_INSTRUCTION


def earliest_starts(
    unit: Unit, times: EventTimes, instructions: Sequence[Instruction], config: Config
) -> dict[int, EarliestStart]:
    """Return starts up to the first instruction that did not start."""
    rules = _StartRules(unit, times, instructions, config)
    has_operands = unit is Unit.STORE and config.post
    scratchpads = _StoreOperands(times, instructions, config) if has_operands else None
    found: dict[int, EarliestStart] = {}
    previous: int | None = None
    for index in times.order[unit]:
        if previous is not None and times.started[previous] is None:
            break
        ready, is_alone = rules.start_after(previous, index)
        earliest = EarliestStart(ready, ready)
        if scratchpads is not None and not is_alone:
            earliest = scratchpads.earliest_start(index, ready)
        found[index] = earliest._replace(
            wait_start=min(earliest.wait_start, times.cycles), cycle=min(earliest.cycle, times.cycles)
        )
        if scratchpads is not None:
            scratchpads.record_start(index)
        previous = index
    return found


class _StartRules:
    def __init__(
        self, unit: Unit, times: EventTimes, instructions: Sequence[Instruction], config: Config
    ) -> None:
        self._unit = unit
        self._times = times
        self._instructions = instructions
        self._config = config
        self._granted = {burst.instruction: burst.granted for burst in times.bursts[unit]}
        self._started: dict[bool, list[int]] = {True: [], False: []}

    def start_after(self, previous: int | None, index: int) -> tuple[int, bool]:
        """Return the cycle, and whether the instruction runs alone in the unit."""
        instruction = self._instructions[index]
        dispatched = self._times.dispatched[index]
        assert dispatched is not None
        ready = dispatched + dispatch_depth(self._config)
        is_alone = isinstance(instruction, Set)
        if previous is not None:
            started = self._times.started[previous]
            assert started is not None
            if self._unit is Unit.COMPUTE:
                ready = max(ready, self._compute_start(previous, started, instruction))
            elif is_alone or isinstance(self._instructions[previous], Set):
                ready = max(ready, _cycle_after(self._times.retired[previous], self._times))
                is_alone = True
            else:
                ready = max(ready, started + 1)
        if self._unit is not Unit.COMPUTE and not is_alone:
            ready = max(ready, self._transfer_start(instruction))
        if not isinstance(instruction, Set):
            self._started[isinstance(instruction, Load)].append(index)
        return ready, is_alone

    def _compute_start(self, previous: int, started: int, instruction: Instruction) -> int:
        """Loops follow one another as soon as slots are free. Others wait for the retirement."""
        before = self._instructions[previous]
        if isinstance(before, Loops) and isinstance(instruction, Loops):
            return started + max(1, busy_slots(before, self._config))
        return _cycle_after(self._times.retired[previous], self._times)

    def _transfer_start(self, instruction: Instruction) -> int:
        """Transfers wait for the last grant, room in flight, and in the load unit overlapping LOADs."""
        earlier = self._started[isinstance(instruction, Load)]
        ready = 0
        if earlier:
            started = self._times.started[earlier[-1]]
            assert started is not None
            ready = self._granted.get(earlier[-1], started) + 1
        is_load = isinstance(instruction, Load)
        limit = self._config.loads_in_flight if is_load else self._config.stores_in_flight
        recent = earlier[max(0, len(earlier) - limit) :]
        for one in recent:
            must_retire = len(recent) == limit and one == recent[0]
            if must_retire or (self._unit is Unit.LOAD and _overlap(self._instructions[one], instruction)):
                ready = max(ready, _cycle_after(self._times.retired[one], self._times))
        return ready


def _cycle_after(cycle: int | None, times: EventTimes) -> int:
    return times.cycles if cycle is None else cycle + 1


def _overlap(one: Instruction, other: Instruction) -> bool:
    if not (isinstance(one, Load) and isinstance(other, Load)) or one.memory != other.memory:
        return False
    return (
        one.sram_base < other.sram_base + other.sram_elements
        and other.sram_base < one.sram_base + one.sram_elements
    )


class _StoreOperands:
    def __init__(self, times: EventTimes, instructions: Sequence[Instruction], config: Config) -> None:
        self._times = times
        self._instructions = instructions
        self._faults = instruction_faults(instructions, config)
        self._depth = RES.depth(config)
        self._written = {
            burst.instruction: burst.stop for burst in times.bursts[Unit.STORE] if not burst.is_write
        }
        self._ranges: list[tuple[int, Scratchpad, int, int]] = []
        self._pushed: list[tuple[int, int]] = []
        self._popped: list[tuple[int, int]] = []
        """Cumulative RES elements of LOADs, or STOREs, with the instruction's number."""

    def earliest_start(self, index: int, ready: int) -> EarliestStart:
        instruction = self._instructions[index]
        found = EarliestStart(ready, ready)
        if not isinstance(instruction, Transfer) or self._faults[index] is not None:
            return found
        return self._after_res(instruction, self._after_operands(instruction, found))

    def _after_operands(self, instruction: Transfer, found: EarliestStart) -> EarliestStart:
        """LOADs wait until overlapping instructions retire, STOREs for data of overlapping LOADs."""
        own = operand_ranges(instruction)
        for other, pad, begin, end in reversed(self._ranges):
            retired = self._times.retired[other]
            if retired is not None and retired < found.wait_start:
                break  # all earlier ones have retired, too
            if not any(pad is p and a < end and begin < b for p, a, b in own):
                continue
            if instruction.FILLS:
                return self._delayed(found, retired, StateReason.OPERAND_IN_USE, other)
            if isinstance(self._instructions[other], Load):
                return self._delayed(found, self._write_cycle(other), StateReason.OPERAND_LOADED, other)
        return found

    def _after_res(self, instruction: Transfer, found: EarliestStart) -> EarliestStart:
        """STOREs wait for their elements, LOADs for room."""
        change = residual_change(instruction)
        if change < 0:
            needed = (self._popped[-1][0] if self._popped else 0) - change
            number = bisect_left(self._pushed, (needed, 0))
            if number < len(self._pushed):
                other = self._pushed[number][1]
                return self._delayed(found, self._write_cycle(other), StateReason.RES_LOADED, other)
        elif change > 0:
            must_pop = (self._pushed[-1][0] if self._pushed else 0) + change - self._depth
            number = bisect_left(self._popped, (must_pop, 0))
            if must_pop > 0 and number < len(self._popped):
                other = self._popped[number][1]
                return self._delayed(found, self._times.retired[other], StateReason.RES_FULL, other)
        return found

    def record_start(self, index: int) -> None:
        instruction = self._instructions[index]
        if not isinstance(instruction, Transfer):
            return
        self._ranges += [(index, *span) for span in operand_ranges(instruction)]
        change = residual_change(instruction)
        if change:
            sums = self._pushed if change > 0 else self._popped
            sums.append(((sums[-1][0] if sums else 0) + abs(change), index))

    def _write_cycle(self, index: int) -> int | None:
        cycle = self._written.get(index)
        return cycle if cycle is not None and cycle < self._times.cycles else None

    def _delayed(
        self, found: EarliestStart, cycle: int | None, reason: StateReason, awaited: int
    ) -> EarliestStart:
        after = _cycle_after(cycle, self._times)
        return found if after <= found.cycle else EarliestStart(found.wait_start, after, reason, awaited)
