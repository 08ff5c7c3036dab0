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

from accel.core.access import AccessSets, Elements, Touch
from accel.core.config import Config
from accel.core.faults import acc_settings
from accel.core.isa import Gemm, Instruction, Loops, Set, Transfer, Unit
from accel.core.memories import UOP, scratchpads_of
from accel.proof.shared_dram import SharedDram

_CHAIN = (Unit.LOAD, Unit.COMPUTE, Unit.STORE)
_OTHERS = {unit: tuple(other for other in _CHAIN if other is not unit) for unit in _CHAIN}
_NEIGHBOURS = {unit: tuple(n for n in (unit.previous, unit.next) if n is not None) for unit in _CHAIN}
_FLAGS = ("pop_prev", "pop_next", "push_prev", "push_next")
_POP_PREV, _POP_NEXT, _PUSH_PREV, _PUSH_NEXT = (1 << n for n in range(4))


CARRIER = -1
"""In place of a number where an instruction was not given, but carries tokens."""


class Ordered(NamedTuple):
    """A program with its tokens."""

    instructions: list[Instruction]
    sources: list[int]
    """For each instruction its number in what was given, or ``CARRIER``."""


class _Last:
    """For each element of a memory: the last instruction of each unit that read or wrote it."""

    def __init__(self, depth: int) -> None:
        self._of: dict[tuple[Unit, bool], np.ndarray] = {}
        self._depth = depth

    def latest(self, unit: Unit, write: bool, elements: Elements) -> int:
        """The latest such access to any of ``elements``, as the unit's position; -1 if there is none."""
        last = self._of.get((unit, write))
        return -1 if last is None else int(last[elements].max())

    def record(self, unit: Unit, write: bool, elements: Elements, position: int) -> None:
        key = (unit, write)
        if key not in self._of:
            self._of[key] = np.full(self._depth, -1, dtype=np.int64)
        self._of[key][elements] = position


class _Program:
    """Instructions in program order with the tokens that their dependences need."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self.sources: list[int] = []
        self.flags: list[int] = []
        self.members: dict[Unit, list[int]] = {unit: [] for unit in _CHAIN}
        self.synced: dict[tuple[Unit, Unit], int] = {}
        """How far the second unit is sure that the first one has come."""
        self.passed: dict[Unit, list[int]] = {Unit.LOAD: [], Unit.STORE: []}
        """The same of the load and store unit, for every instruction of the compute unit."""

    def append(self, instruction: Instruction, source: int, needed: Mapping[Unit, int]) -> None:
        """Add an instruction, the one of number ``source``, that must come after position ``needed`` of other
        units."""
        unit = instruction.unit
        after = dict(needed)
        if unit is not Unit.COMPUTE:
            for end in (Unit.LOAD, Unit.STORE):
                if after.get(end, -1) >= 0:
                    after[Unit.COMPUTE] = max(after.get(Unit.COMPUTE, -1), self._after(end, after[end]))
        index = len(self.instructions)
        self.instructions.append(instruction)
        self.sources.append(source)
        self.flags.append(0)
        self.members[unit].append(index)
        for other in _NEIGHBOURS[unit]:
            if after.get(other, -1) > self.synced.get((other, unit), -1):
                self._order(other, after[other], unit, index)
        if unit is Unit.COMPUTE:
            for end, passed in self.passed.items():
                passed.append(self.synced.get((end, unit), -1))

    def _order(self, first: Unit, position: int, second: Unit, index: int) -> None:
        """A token from the first unit's instruction at ``position`` to instruction ``index``."""
        forward = first is second.previous
        self.flags[self.members[first][position]] |= _PUSH_NEXT if forward else _PUSH_PREV
        self.flags[index] |= _POP_PREV if forward else _POP_NEXT
        self.synced[first, second] = position

    def _after(self, end: Unit, needed: int) -> int:
        """Position of an instruction of the compute unit that comes after ``needed`` of the load or store
        unit; the earliest, or the last one if it is made to."""
        passed = self.passed[end]
        position = bisect_left(passed, needed)
        if position < len(passed):
            return position
        last = self.members[Unit.COMPUTE][-1] if passed else -1
        pop = _POP_PREV if end is Unit.LOAD else _POP_NEXT
        if last > self.members[end][needed] and not self.flags[last] & pop:
            self._order(end, needed, Unit.COMPUTE, last)
            passed[-1] = needed
        else:
            self.append(Gemm(), CARRIER, {end: needed})
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


class Dependence(NamedTuple):
    """What an instruction has to wait for."""

    unit: Unit
    """Its own."""
    position: int
    """Which of its unit's instructions it is."""
    needed: Mapping[Unit, int]
    """By unit, the position of the last instruction that conflicts with it; -1 if none does."""


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
) -> list[Dependence]:
    """What each instruction of a program has to wait for.

    Args:
        instructions: in program order; LOADs of micro-ops count ``dram_base`` from the start of
            ``uop_words``.
        config: the machine.
        uop_words: all micro-ops in DRAM.
        shared: what of DRAM these instructions both write and read; nothing if not given.
    """
    sets = AccessSets(config)
    settings = acc_settings(instructions)
    memories = {
        name: _Last(pad.depth(config)) for name, pad in scratchpads_of(config).items() if pad is not UOP
    }
    memories["dram"] = _Last(shared.segments if shared is not None else 0)
    uops = np.zeros(config.uop_depth, dtype=np.uint32)
    counts = dict.fromkeys(_CHAIN, 0)
    found: list[Dependence] = []
    drained = 0
    """The store unit's position before which all has retired when what comes next starts."""
    for index, instruction in enumerate(instructions):
        unit = instruction.unit
        touches: tuple[Touch, ...] = ()
        if isinstance(instruction, Transfer):
            touches = sets.transfer(instruction)
            if touches and touches[0].memory == UOP.name:
                begin = instruction.dram_base
                uops[touches[0].elements] = uop_words[begin : begin + instruction.x_size]
                touches = ()
            elif shared is not None and (segments := shared.elements(index)) is not None:
                touches = (*touches, Touch("dram", not instruction.FILLS, segments))
        elif isinstance(instruction, Loops) and instruction.uop_count:
            words = uops[instruction.uop_begin : instruction.uop_end]
            touches = tuple(
                t for t in sets.loops(instruction, words, settings[index]).touches if t.memory != UOP.name
            )
        needed = _needed(unit, touches, memories)
        position = counts[unit]
        if unit is Unit.STORE:
            own = _own_needed(touches, memories["dram"])
            if own >= drained:
                needed[unit] = own
            if isinstance(instruction, Set):
                drained = position
        found.append(Dependence(unit, position, needed))
        counts[unit] += 1
        for memory, write, elements in touches:
            memories[memory].record(unit, write, elements, position)
    return found


def with_tokens(
    instructions: Sequence[Instruction],
    found: Sequence[Dependence],
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
    places: dict[Unit, list[int]] = {unit: [] for unit in _CHAIN}
    """Of each unit's instructions the positions, those that carry tokens counted, too."""
    for index, (instruction, (unit, _, needed)) in enumerate(zip(instructions, found, strict=True)):
        wanted = {other: places[other][last] for other, last in needed.items() if last >= 0}
        if after is not None and index in after:
            other, least, _ = found[after[index]]
            wanted[other] = max(wanted.get(other, -1), places[other][least])
        program.append(instruction, index, wanted)
        places[unit].append(len(program.members[unit]) - 1)
    return program.finished()


def _own_needed(touches: Sequence[Touch], dram: _Last) -> int:
    """Of the store unit, the position of the last STORE that writes what a LOAD of its own reads; or -1."""
    reads = (elements for memory, write, elements in touches if memory == "dram" and not write)
    return max((dram.latest(Unit.STORE, True, elements) for elements in reads), default=-1)


def _needed(unit: Unit, touches: Sequence[Touch], memories: Mapping[str, _Last]) -> dict[Unit, int]:
    """Of each other unit, the position of the last instruction that conflicts."""
    needed = {}
    for other in _OTHERS[unit]:
        latest = -1
        for memory, write, elements in touches:
            latest = max(latest, memories[memory].latest(other, True, elements))
            if write:
                latest = max(latest, memories[memory].latest(other, False, elements))
        needed[other] = latest
    return needed
