"""Tokens from dependence analysis.

Two instructions of neighbouring units that touch the same memory, one of them writing, must keep their
program order. Of all such pairs between two units only those are given a token that no other pair implies:
from instruction i to j, unless a token already goes from i or later to j or earlier. Since i and j both grow
from token to token, no instruction needs more than one of each kind, and the k-th push meets the k-th pop.

Load and store unit are no neighbours, but meet in DRAM where a program reads what it has stored. Their order
goes through an instruction of the compute unit between the two that comes after the first one anyway, or else
takes a token from it. Where there is none, or it takes one already, an empty instruction carries the tokens.
The store unit's own LOADs overlap its STOREs: one that reads what a STORE before it writes is ordered in the
same way, unless a SET, which waits for all before it, is between the two.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from accel.core.access import AccessSets, Elements, Touch, element_classes
from accel.core.config import Config
from accel.core.faults import acc_settings
from accel.core.isa import Gemm, Instruction, Loops, Set, Transfer, Unit
from accel.core.memories import UOP, scratchpads_of
from accel.proof.shared_dram import SharedDram

_CHAIN = (Unit.LOAD, Unit.COMPUTE, Unit.STORE)
_OTHERS = [tuple(int(other) for other in _CHAIN if other is not unit) for unit in Unit]
_NEIGHBOURS = [tuple(n for n in (unit.previous, unit.next) if n is not None) for unit in Unit]
"""By unit."""
_FLAGS = ("pop_prev", "pop_next", "push_prev", "push_next")
_POP_PREV, _POP_NEXT, _PUSH_PREV, _PUSH_NEXT = (1 << n for n in range(4))


CARRIER = -1
"""In place of a number where an instruction was not given, but carries tokens."""


class Ordered(NamedTuple):
    """A program with its tokens."""

    instructions: list[Instruction]
    sources: list[int]
    """For each instruction its number in what was given, or ``CARRIER``."""


_FEW = 16
"""Classes of elements that are looked at one by one."""


class _Last:
    """For each element of a memory: the last instruction of each unit that read or wrote it.

    Args:
        depth: of the memory.
        sets: the sets of elements that are touched, each once; they are known by their numbers. More of them
            can be added.
    """

    def __init__(self, depth: int, sets: Sequence[Elements] = ()) -> None:
        self._depth = depth
        self._sets = list(sets)
        self._of: dict[int, np.ndarray] = {}
        """By unit and kind of access, positions."""

    def add(self, elements: Elements) -> int:
        """The number of one more set."""
        self._sets.append(elements)
        return len(self._sets) - 1

    def latest(self, unit: int, write: bool, number: int) -> int:
        """The latest such access to any element of a set, as the unit's position; -1 if there is none."""
        last = self._of.get(2 * unit + write)
        return -1 if last is None else int(last[self._sets[number]].max())

    def record(self, unit: int, write: bool, number: int, position: int) -> None:
        """A set is accessed."""
        key = 2 * unit + write
        if key not in self._of:
            self._of[key] = np.full(self._depth, -1, dtype=np.int64)
        self._of[key][self._sets[number]] = position


class _LastOfClasses:
    """:class:`_Last` where each set is of few classes of elements, which are looked at one by one.

    Args:
        classes: of each set.
    """

    def __init__(self, classes: Sequence[Sequence[int]]) -> None:
        self._sets = classes
        self._depth = 1 + max((max(one) for one in classes), default=-1)
        self._of: dict[int, list[int]] = {}

    def latest(self, unit: int, write: bool, number: int) -> int:
        """As :meth:`_Last.latest`."""
        last = self._of.get(2 * unit + write)
        return -1 if last is None else max([last[one] for one in self._sets[number]])

    def record(self, unit: int, write: bool, number: int, position: int) -> None:
        """As :meth:`_Last.record`."""
        key = 2 * unit + write
        if key not in self._of:
            self._of[key] = [-1] * self._depth
        last = self._of[key]
        for one in self._sets[number]:
            last[one] = position


def _last(depth: int, sets: Sequence[Elements], touches: int) -> _Last | _LastOfClasses:
    """What keeps the last accesses to a memory of which these sets are touched, so often in all."""
    if len(sets) <= max(_FEW, touches // _FEW):
        _, classes = element_classes(sets, np.zeros(depth, dtype=np.int64))
        if max(map(len, classes), default=0) <= _FEW:
            return _LastOfClasses([one.tolist() for one in classes])
    return _Last(depth, sets)


_Access = tuple[_Last | _LastOfClasses, bool, int]
"""A memory, whether it is written, and the number of a set of its elements."""


class _Program:
    """Instructions in program order with the tokens that their dependences need."""

    def __init__(self) -> None:
        units = range(max(_CHAIN) + 1)
        self.instructions: list[Instruction] = []
        self.sources: list[int] = []
        self.flags: list[int] = []
        self.members: list[list[int]] = [[] for _ in units]
        """By unit."""
        self.synced = [[-1] * len(units) for _ in units]
        """How far the second unit is sure that the first one has come."""
        self.passed: tuple[tuple[Unit, list[int]], ...] = ((Unit.LOAD, []), (Unit.STORE, []))
        """The same of the load and store unit, for every instruction of the compute unit."""

    def append(self, instruction: Instruction, source: int, after: list[int]) -> None:
        """Add an instruction, the one of number ``source``, that must come after these positions of other
        units; the list is changed."""
        unit = instruction.unit
        if unit is not Unit.COMPUTE:
            for end, passed in self.passed:
                if after[end] >= 0:
                    after[Unit.COMPUTE] = max(after[Unit.COMPUTE], self._after(end, passed, after[end]))
        index = len(self.instructions)
        self.instructions.append(instruction)
        self.sources.append(source)
        self.flags.append(0)
        self.members[unit].append(index)
        for other in _NEIGHBOURS[unit]:
            if after[other] > self.synced[other][unit]:
                self._order(other, after[other], unit, index)
        if unit is Unit.COMPUTE:
            for end, passed in self.passed:
                passed.append(self.synced[end][unit])

    def _order(self, first: Unit, position: int, second: Unit, index: int) -> None:
        """A token from the first unit's instruction at ``position`` to instruction ``index``."""
        forward = first is second.previous
        self.flags[self.members[first][position]] |= _PUSH_NEXT if forward else _PUSH_PREV
        self.flags[index] |= _POP_PREV if forward else _POP_NEXT
        self.synced[first][second] = position

    def _after(self, end: Unit, passed: list[int], needed: int) -> int:
        """Position of an instruction of the compute unit that comes after ``needed`` of the load or store
        unit; the earliest, or the last one if it is made to."""
        position = bisect_left(passed, needed)
        if position < len(passed):
            return position
        last = self.members[Unit.COMPUTE][-1] if passed else -1
        pop = _POP_PREV if end is Unit.LOAD else _POP_NEXT
        if last > self.members[end][needed] and not self.flags[last] & pop:
            self._order(end, needed, Unit.COMPUTE, last)
            passed[-1] = needed
        else:
            after = [-1] * len(self.members)
            after[end] = needed
            self.append(Gemm(), CARRIER, after)
        return len(passed) - 1

    def finished(self) -> Ordered:
        """The instructions with their flags; those that are the same object before are so behind."""
        known: dict[tuple[int, int], Instruction] = {}
        found = []
        for instruction, flags in zip(self.instructions, self.flags, strict=True):
            key = (id(instruction), flags)
            if key not in known:
                names = [name for n, name in enumerate(_FLAGS) if flags >> n & 1]
                known[key] = replace(instruction, **dict.fromkeys(names, True))
            found.append(known[key])
        return Ordered(found, self.sources)


class Dependences(NamedTuple):
    """What each instruction of a program has to wait for."""

    units: list[Unit]
    """Its own."""
    needed: list[tuple[int, ...]]
    """By unit, the position of the last of its instructions that conflicts with it; -1 if none does."""


def insert_tokens(
    instructions: Sequence[Instruction],
    config: Config,
    uop_words: np.ndarray,
    shared: SharedDram | None = None,
    after: Mapping[int, int] | None = None,
) -> Ordered:
    """The same program with the tokens that its dependences need, and no others but those of ``after``.

    Args:
        instructions, config, uop_words, shared: as :func:`dependences` takes them.
        after: as :func:`with_tokens` takes it.
    """
    return with_tokens(instructions, dependences(instructions, config, uop_words, shared), after)


def dependences(
    instructions: Sequence[Instruction],
    config: Config,
    uop_words: np.ndarray,
    shared: SharedDram | None = None,
) -> Dependences:
    """What each instruction of a program has to wait for.

    Args:
        instructions: in program order; LOADs of micro-ops count ``dram_base`` from the start of
            ``uop_words``.
        config: the machine.
        uop_words: all micro-ops in DRAM.
        shared: what of DRAM these instructions both write and read; nothing if not given.
    """
    touched, numbers = _touched(instructions, config, uop_words)
    pads = {name: pad.depth(config) for name, pad in scratchpads_of(config).items()}
    accesses = _accesses(touched, pads, len(instructions))
    dram = _Last(shared.segments if shared is not None else 0)
    counts = [0] * (max(_CHAIN) + 1)
    found = Dependences([], [])
    drained = 0
    """The store unit's position before which all has retired when what comes next starts."""
    for index, (instruction, number) in enumerate(zip(instructions, numbers, strict=True)):
        unit = instruction.unit
        own_unit = int(unit)
        touches = accesses[number]
        if shared is not None and (segments := shared.elements(index)) is not None:
            assert isinstance(instruction, Transfer)
            touches = (*touches, (dram, not instruction.FILLS, dram.add(segments)))
        needed = [-1] * len(counts)
        for other in _OTHERS[unit]:
            latest = -1
            for memory, write, which in touches:
                latest = max(latest, memory.latest(other, True, which))
                if write:
                    latest = max(latest, memory.latest(other, False, which))
            needed[other] = latest
        position = counts[own_unit]
        if unit is Unit.STORE:
            own = max(
                (
                    dram.latest(unit, True, which)
                    for memory, write, which in touches
                    if memory is dram and not write
                ),
                default=-1,
            )
            if own >= drained:
                needed[own_unit] = own
            if isinstance(instruction, Set):
                drained = position
        found.units.append(unit)
        found.needed.append(tuple(needed))
        counts[own_unit] += 1
        for memory, write, which in touches:
            memory.record(own_unit, write, which, position)
    return found


def _touched(
    instructions: Sequence[Instruction], config: Config, uop_words: np.ndarray
) -> tuple[list[tuple[Touch, ...]], list[int]]:
    """What instructions touch of scratchpads but that of micro-ops, each list once, and which of these lists
    is an instruction's."""
    sets = AccessSets(config)
    settings = acc_settings(instructions)
    uops = np.zeros(config.uop_depth, dtype=np.uint32)
    generation = 0
    """How often micro-ops have been loaded."""
    lists: list[tuple[Touch, ...]] = [()]
    known: dict[object, int] = {}
    by_content: dict[int, int] = {}
    """By the id of what the sets have found, which they keep."""
    numbers = []
    for index, instruction in enumerate(instructions):
        number = 0
        if isinstance(instruction, Transfer):
            found = known.get(id(instruction))
            if found is None:
                touches = sets.transfer(instruction)
                if touches and touches[0].memory == UOP.name:
                    begin = instruction.dram_base
                    uops[touches[0].elements] = uop_words[begin : begin + instruction.x_size]
                    generation += 1
                else:
                    found = known[id(instruction)] = len(lists)
                    lists.append(touches)
            number = found or 0
        elif isinstance(instruction, Loops) and instruction.uop_count:
            key = id(instruction), generation, id(settings[index])
            found = known.get(key)
            if found is None:
                words = uops[instruction.uop_begin : instruction.uop_end]
                touches = sets.loops(instruction, words, settings[index]).touches
                found = by_content.get(id(touches))
                if found is None:
                    found = by_content[id(touches)] = len(lists)
                    lists.append(tuple(one for one in touches if one.memory != UOP.name))
                known[key] = found
            number = found
        numbers.append(number)
    return lists, numbers


def _accesses(
    lists: Sequence[tuple[Touch, ...]], depths: Mapping[str, int], touches: int
) -> list[tuple[_Access, ...]]:
    """What :func:`_touched` has found as accesses to memories of these depths."""
    sets: dict[str, list[Elements]] = {name: [] for name in depths}
    numbers: dict[tuple[str, object], int] = {}
    for name, _, elements in (one for found in lists for one in found):
        key = name, _key(elements)
        if key not in numbers:
            numbers[key] = len(sets[name])
            sets[name].append(elements)
    memories = {name: _last(depth, sets[name], touches) for name, depth in depths.items()}
    return [
        tuple((memories[name], write, numbers[name, _key(elements)]) for name, write, elements in found)
        for found in lists
    ]


def _key(elements: Elements) -> object:
    return (elements.start, elements.stop) if isinstance(elements, slice) else elements.tobytes()


def with_tokens(
    instructions: Sequence[Instruction],
    found: Dependences,
    after: Mapping[int, int] | None = None,
) -> Ordered:
    """A program with tokens for its dependences.

    Args:
        instructions: in program order, without token flags.
        found: the :func:`dependences` of them.
        after: for some instructions, by number, an earlier one of another unit that they have to wait for
            though no memory says so.
    """
    program = _Program()
    places: list[list[int]] = [[] for _ in range(max(_CHAIN) + 1)]
    """Of each unit's instructions the positions, those that carry tokens counted, too."""
    positions = _positions(found.units, after) if after else {}
    for index, (instruction, unit, needed) in enumerate(zip(instructions, *found, strict=True)):
        wanted = [places[other][last] if last >= 0 else -1 for other, last in enumerate(needed)]
        if after is not None and index in after:
            other = found.units[after[index]]
            wanted[other] = max(wanted[other], places[other][positions[after[index]]])
        program.append(instruction, index, wanted)
        places[unit].append(len(program.members[unit]) - 1)
    return program.finished()


def _positions(units: Sequence[Unit], after: Mapping[int, int]) -> dict[int, int]:
    """The places in their units of the instructions that others have to wait for."""
    wanted = set(after.values())
    counts = [0] * (max(_CHAIN) + 1)
    positions = {}
    for index, unit in enumerate(units):
        if index in wanted:
            positions[index] = counts[unit]
        counts[unit] += 1
    return positions
