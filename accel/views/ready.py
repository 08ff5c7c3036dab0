"""From when on a unit could accept each of its instructions, and what it waited for besides tokens.

The rules are those of the timing contract.
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from accel.core.config import Config
from accel.core.faults import instruction_faults, residual_change, sram_ranges
from accel.core.isa import Instruction, Load, Loops, Set, Transfer, Unit
from accel.core.memories import PAR, RES
from accel.core.timing_rules import busy_slots, dispatch_depth
from accel.views.states import NOBODY, Reason
from accel.views.times import Times


class Ready(NamedTuple):
    """When an instruction headed its queue and its unit could accept it."""

    free: int
    """First cycle, but for what it shares with other instructions of the store unit."""
    cycle: int
    """First cycle; from ``free`` to there it waited for the reason below."""
    reason: Reason = Reason.OCCUPIED
    other: int = NOBODY
    """The instruction that it waited for."""


def ready_cycles(
    unit: Unit, times: Times, instructions: Sequence[Instruction], config: Config
) -> dict[int, Ready]:
    """Of each instruction that a unit got, as far as those before it have started."""
    order = times.order[unit]
    granted = {burst.instruction: burst.grant for burst in times.bursts[unit]}
    kinds: dict[type[Instruction], list[int]] = {}
    shared = _Shared(times, instructions, config) if unit is Unit.STORE and config.post else None
    found: dict[int, Ready] = {}
    for place, index in enumerate(order):
        handed = times.handed[index]
        assert handed is not None
        instruction, ready = instructions[index], handed + dispatch_depth(config)
        kind: type[Instruction] = Load if isinstance(instruction, Load) else Transfer
        same = kinds.setdefault(kind, [])
        alone = isinstance(instruction, Set)
        if place:
            before = order[place - 1]
            begun = times.start[before]
            if begun is None:
                break
            if unit is Unit.COMPUTE:
                ready = max(ready, _compute_free(before, begun, instruction, instructions, times, config))
            elif alone or isinstance(instructions[before], Set):
                ready = max(ready, _behind(times.retire[before], times))
                alone = True
            else:
                ready = max(ready, begun + 1)
        if unit is not Unit.COMPUTE and not alone:
            ready = max(ready, _stream_free(unit, same, instruction, granted, times, instructions, config))
        one = Ready(ready, ready)
        if shared is not None and not alone:
            one = shared.ready(index, ready)
        found[index] = one._replace(free=min(one.free, times.cycles), cycle=min(one.cycle, times.cycles))
        if not isinstance(instruction, Set):
            same.append(index)
        if shared is not None:
            shared.start(index)
    return found


def _behind(cycle: int | None, times: Times) -> int:
    """The cycle behind one; the end of the run if that has not come."""
    return times.cycles if cycle is None else cycle + 1


def _compute_free(
    before: int,
    begun: int,
    instruction: Instruction,
    instructions: Sequence[Instruction],
    times: Times,
    config: Config,
) -> int:
    one = instructions[before]
    if isinstance(one, Loops) and isinstance(instruction, Loops):
        return begun + max(1, busy_slots(one, config))
    return _behind(times.retire[before], times)


def _stream_free(
    unit: Unit,
    same: Sequence[int],
    instruction: Instruction,
    granted: dict[int, int],
    times: Times,
    instructions: Sequence[Instruction],
    config: Config,
) -> int:
    """When those of its kind before have been granted, and leave room in flight and in the scratchpad."""
    ready = 0
    if same:
        begun = times.start[same[-1]]
        assert begun is not None
        ready = granted.get(same[-1], begun) + 1
    limit = config.loads_in_flight if isinstance(instruction, Load) else config.stores_in_flight
    recent = same[max(0, len(same) - limit) :]
    for one in recent:
        full = len(recent) == limit and one == recent[0]
        if full or (unit is Unit.LOAD and _overlap(instructions[one], instruction)):
            ready = max(ready, _behind(times.retire[one], times))
    return ready


def _overlap(one: Instruction, other: Instruction) -> bool:
    """Whether two LOADs fill overlapping ranges of one scratchpad."""
    if not (isinstance(one, Load) and isinstance(other, Load)) or one.memory != other.memory:
        return False
    return (
        one.sram_base < other.sram_base + other.sram_elements
        and other.sram_base < one.sram_base + one.sram_elements
    )


class _Shared:
    """What the store unit's LOADs fill and its STOREs use: PAR and RES."""

    def __init__(self, times: Times, instructions: Sequence[Instruction], config: Config) -> None:
        self._times = times
        self._instructions = instructions
        self._faults = instruction_faults(instructions, config)
        self._depth = RES.depth(config)
        self._written = {
            burst.instruction: burst.stop for burst in times.bursts[Unit.STORE] if not burst.writes
        }
        """Of LOADs, the cycle in which their last beat was written."""
        self._par: list[tuple[int, int, int]] = []
        """Instruction and range of elements."""
        self._loaded: list[tuple[int, int]] = []
        self._taken: list[tuple[int, int]] = []
        """RES elements with each LOAD, or STORE, those before included, and the instruction."""

    def ready(self, index: int, free: int) -> Ready:
        """When an instruction that could start in cycle ``free`` found its elements, or room for them."""
        one = self._instructions[index]
        found = Ready(free, free)
        if not isinstance(one, Transfer) or self._faults[index] is not None:
            return found
        for other, begin, end in reversed(self._par):
            retired = self._times.retire[other]
            if retired is not None and retired < free:
                break  # and so have all before
            if not any(a < end and begin < b for a, b in _par_ranges(one)):
                continue
            fills = isinstance(self._instructions[other], Load)
            if one.FILLS:
                return self._wait(found, self._times.retire[other], Reason.PAR_IN_USE, other)
            if fills:
                found = self._wait(found, self._write_of(other), Reason.PAR_LOADED, other)
                break
        change = residual_change(one)
        if change < 0:
            total = (self._taken[-1][0] if self._taken else 0) - change
            place = bisect_left(self._loaded, (total, 0))
            if place < len(self._loaded):
                other = self._loaded[place][1]
                found = self._wait(found, self._write_of(other), Reason.RES_LOADED, other)
        elif change > 0:
            leaves = (self._loaded[-1][0] if self._loaded else 0) + change - self._depth
            place = bisect_left(self._taken, (leaves, 0))
            if leaves > 0 and place < len(self._taken):
                other = self._taken[place][1]
                found = self._wait(found, self._times.retire[other], Reason.RES_FULL, other)
        return found

    def start(self, index: int) -> None:
        """An instruction starts behind those before."""
        one = self._instructions[index]
        if not isinstance(one, Transfer):
            return
        self._par += [(index, *span) for span in _par_ranges(one)]
        change = residual_change(one)
        if change:
            sums = self._loaded if change > 0 else self._taken
            sums.append(((sums[-1][0] if sums else 0) + abs(change), index))

    def _write_of(self, index: int) -> int | None:
        """The cycle of a LOAD's last write, if it has come."""
        cycle = self._written.get(index)
        return cycle if cycle is not None and cycle < self._times.cycles else None

    def _wait(self, found: Ready, cycle: int | None, reason: Reason, other: int) -> Ready:
        """With a wait for what happens in ``cycle``, if that is later."""
        behind = _behind(cycle, self._times)
        return found if behind <= found.cycle else Ready(found.free, behind, reason, other)


def _par_ranges(one: Transfer) -> list[tuple[int, int]]:
    return [(begin, begin + count) for pad, begin, count in sram_ranges(one) if pad is PAR and count]
