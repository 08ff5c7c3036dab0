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

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from accel.base.interned_sequence import Distinct
from accel.core.config import Config
from accel.core.instruction_access import element_classes
from accel.core.isa import Gemm, Instruction, Loops, Set, Transfer, Unit
from accel.core.program_conflicts import Conflicts, Numbers, Order, rows_of, scratchpad_touches
from accel.core.scratchpad_specs import UOP, scratchpads_of
from accel.proof.shared_dram import SharedDram

_ENDS = (Unit.LOAD, Unit.STORE)
"""Units that are neighbours of the compute unit, and not of each other."""
_FLAGS = ("pop_prev", "pop_next", "push_prev", "push_next")
_POP_PREV, _POP_NEXT, _PUSH_PREV, _PUSH_NEXT = (1 << n for n in range(4))


CARRIER = -1
"""In place of a number where an instruction was not given, but carries tokens."""


class Ordered(NamedTuple):
    """A program with its tokens."""

    program: Distinct[Instruction]
    sources: Numbers
    """For each instruction its number in the input, or ``CARRIER``."""


class Dependences(NamedTuple):
    """The instructions that each instruction of a program waits for."""

    program: Distinct[Instruction]
    order: Order
    needed: dict[Unit, Numbers]
    """By unit, how many of that unit's instructions there are up to the last one that conflicts with each
    instruction, or 0 if none does."""


def insert_tokens(
    instructions: Sequence[Instruction] | Distinct[Instruction],
    config: Config,
    uop_words: npt.NDArray[np.uint32],
    shared: SharedDram | None = None,
    after: Mapping[int, int] | None = None,
) -> Ordered:
    """The same program with the tokens that its dependences need, and no others but those of ``after``."""
    return with_tokens(dependences(instructions, config, uop_words, shared), after)


def dependences(
    instructions: Sequence[Instruction] | Distinct[Instruction],
    config: Config,
    uop_words: npt.NDArray[np.uint32],
    shared: SharedDram | None = None,
) -> Dependences:
    """The instructions that each instruction of a program waits for.

    Args:
        instructions: in program order, without token flags; LOADs of micro-ops count ``dram_base`` from the
            start of ``uop_words``.
        shared: the part of DRAM that these instructions both write and read, or None.
    """
    program = Distinct.of(instructions)
    order = Order(program)
    conflicts = Conflicts(order)
    touches = scratchpad_touches(program, config, _Uops(config, uop_words))
    for name, pad in scratchpads_of(config).items():
        accesses = touches.of(name)
        if accesses.sets and pad is not UOP:  # those are the compute unit's alone
            _, classes = element_classes(accesses.sets, np.zeros(pad.depth(config), dtype=np.int64))
            for rows in rows_of(accesses, classes):
                conflicts.add(rows)
    if shared is not None and shared.segments:
        dram, segments = shared.accesses(np.arange(len(program)))
        for rows in rows_of(dram, segments):
            conflicts.add(rows, own=True)
        stores = order.members[Unit.STORE]
        waits = program.column(lambda one: isinstance(one, Set))[stores]
        drained = np.maximum.accumulate(np.where(waits, np.arange(len(stores)), 0))
        """The store unit's position before which all has retired when what comes next starts."""
        own = conflicts.written[stores]
        conflicts.needed[Unit.STORE][stores] = np.where(own > drained, own, 0)
    return Dependences(program, order, conflicts.needed)


class _Uops:
    """The micro-op memory of a program that loads it from some words."""

    def __init__(self, config: Config, words: npt.NDArray[np.uint32]) -> None:
        self._words = words
        self._held = np.zeros(config.uop_depth, dtype=np.uint32)

    def load(self, instruction: Transfer) -> None:
        first, begin, count = instruction.sram_base, instruction.dram_base, instruction.x_size
        self._held[first : first + count] = self._words[begin : begin + count]

    def words(self, instruction: Loops) -> npt.NDArray[np.uint32]:
        return self._held[instruction.uop_begin : instruction.uop_end]


# --- tokens ----------------------------------------------------------------------------------------


def with_tokens(found: Dependences, after: Mapping[int, int] | None = None) -> Ordered:
    """A program with tokens for its dependences.

    Args:
        after: for some instructions, by number, an earlier one of another unit that they have to wait for
            though no memory says so.
    """
    order = found.order
    needed = {unit: wanted.copy() for unit, wanted in found.needed.items()}
    for late, early in (after or {}).items():
        wanted = needed[Unit(int(order.units[early]))]
        wanted[late] = max(wanted[late], order.positions[early] + 1)
    return _Ways(order, needed).finished(found.program)


class _Ways:
    """The paths from load unit to store unit through the compute unit.

    Args:
        needed: the instructions that each instruction waits for. It is changed.
    """

    def __init__(self, order: Order, needed: dict[Unit, Numbers]) -> None:
        self._order = order
        self._needed = needed
        self._compute = order.members[Unit.COMPUTE]
        self._reached = {end: np.maximum.accumulate(needed[end][self._compute]) for end in _ENDS}
        """For each of the two units, how many of its instructions have surely retired before each
        instruction of the compute unit."""
        self._made: dict[Unit, tuple[list[int], list[int]]] = {end: ([], []) for end in _ENDS}
        """By end, how many instructions others of the compute unit are made to wait for, and their positions
        in that unit, carriers counted; both grow."""
        self._carriers: list[int] = []
        """The instruction before which each carrier stands."""
        self._before: list[int] = []
        """How many instructions of the compute unit there are before each, not counting carriers."""
        self._carried: list[dict[Unit, int]] = []
        """The instructions that each one waits for."""
        through: dict[int, int] = {}
        for index, end in sorted(self._crossing()):
            position = self._through(index, end, int(needed[end][index]))
            through[index] = max(through.get(index, 0), position + 1)
        counts = needed[Unit.COMPUTE]
        counts += np.searchsorted(self._before, counts - 1, side="right").astype(np.int32)
        for index, count in through.items():
            counts[index] = max(counts[index], count)

    def _crossing(self) -> list[tuple[int, Unit]]:
        """Return the instructions that wait for an instruction without a direct token, and its unit.
        Instructions after another one with the same wait are left out."""
        found = []
        for unit in _ENDS:
            members = self._order.members[unit]
            for end in _ENDS:
                wait = members[_rising(self._needed[end][members])]
                found += [(index, end) for index in wait.tolist()]
        return found

    def _through(self, index: int, end: Unit, needed: int) -> int:
        """Return the position of the earliest instruction of the compute unit before ``index`` that comes
        after ``count`` instructions of the load or store unit. If there is none, the last one is made to
        wait."""
        own = int(np.searchsorted(self._compute, index))
        found = []
        at = int(np.searchsorted(self._reached[end], needed))
        if at < own:
            found.append(self._position(at))
        counts, positions = self._made[end]
        at = bisect_left(counts, needed)
        if at < len(counts):
            found.append(positions[at])
        if found:
            return min(found)
        position = self._made_to_wait(index, end, needed, own)
        counts.append(needed)
        positions.append(position)
        return position

    def _made_to_wait(self, index: int, end: Unit, needed: int, own: int) -> int:
        """Have the last instruction of the compute unit wait, or a new carrier if that cannot be.

        Args:
            own: how many instructions of the compute unit there are before, not counting carriers.
        """
        behind = int(self._order.members[end][needed - 1])
        if self._before and self._before[-1] == own:
            if end not in self._carried[-1] and behind < self._carriers[-1]:
                self._carried[-1][end] = needed
                return own + len(self._carriers) - 1
        elif own:
            last, position = int(self._compute[own - 1]), self._position(own - 1)
            if behind < last and not self._waits(end, own - 1, position):
                self._needed[end][last] = needed
                return position
        self._carriers.append(index)
        self._before.append(own)
        self._carried.append({end: needed})
        return own + len(self._carriers) - 1

    def _waits(self, end: Unit, own: int, position: int) -> bool:
        """Whether an instruction of the compute unit, the last one so far, takes a token from an end."""
        counts, positions = self._made[end]
        before = max(self._reached[end][own - 1] if own else 0, counts[-1] if counts else 0)
        made = bool(positions) and positions[-1] == position
        return made or bool(self._needed[end][self._compute[own]] > before)

    def _position(self, own: int) -> int:
        return own + bisect_right(self._before, own)

    def finished(self, program: Distinct[Instruction]) -> Ordered:
        """Return the program with carriers and flags. Equal objects stay shared if their flags are equal."""
        at = self._carriers
        units = np.insert(self._order.units, at, int(Unit.COMPUTE))
        needed = {Unit.COMPUTE: np.insert(self._needed[Unit.COMPUTE], at, 0)}
        for end in _ENDS:
            needed[end] = np.insert(self._needed[end], at, [one.get(end, 0) for one in self._carried])
        flags = _flags(units, needed)
        every = [*program.every, Gemm()]
        numbers = np.insert(program.places, at, len(every) - 1)
        keys, which = np.unique(numbers << len(_FLAGS) | flags, return_inverse=True)
        flagged = [
            replace(
                every[key >> len(_FLAGS)], **{name: True for n, name in enumerate(_FLAGS) if key >> n & 1}
            )
            for key in keys.tolist()
        ]
        sources = np.insert(np.arange(len(program), dtype=np.int32), at, CARRIER)
        return Ordered(Distinct.chosen(flagged, which), sources)


def _flags(units: npt.NDArray[np.int8], needed: Mapping[Unit, Numbers]) -> npt.NDArray[np.uint8]:
    members = {unit: np.flatnonzero(units == unit) for unit in needed}
    flags = np.zeros(len(units), dtype=np.uint8)
    for first, second in (pair for end in _ENDS for pair in ((end, Unit.COMPUTE), (Unit.COMPUTE, end))):
        forward = first is second.previous
        waits = needed[first][members[second]]
        fresh = _rising(waits)
        flags[members[second][fresh]] |= _POP_PREV if forward else _POP_NEXT
        flags[members[first][waits[fresh] - 1]] |= _PUSH_NEXT if forward else _PUSH_PREV
    return flags


def _rising(values: Numbers) -> npt.NDArray[np.bool_]:
    """Where values are above zero and all before them."""
    before = np.maximum.accumulate(np.concatenate([np.zeros(1, dtype=values.dtype), values]))[:-1]
    return values > before
