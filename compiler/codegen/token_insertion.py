"""Tokens from dependence analysis, see docs/explain/latency-hiding.md.

Two instructions of neighbouring units that touch the same memory, at least one of them writing, must keep
their program order. They get a token unless another token implies the order, so an instruction pushes and
pops at most one token per counter, and the k-th pop takes the k-th push.

Load and store unit share no counter, but a LOAD may read DRAM that a STORE has written. Then an instruction
of the compute unit between the two passes the order on: one that waits for the first instruction anyway, or
else the last one, which then pops another token. If it pops such a token already, or there is none, an empty
GEMM (a carrier) is inserted. A LOAD of the store unit that reads an earlier STORE's result is ordered in the
same way, unless a SET, which waits for all before it, is between them.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from accel.base.interned_sequence import Distinct
from accel.base.records import replace
from accel.core.config import Config
from accel.core.instruction_access import element_classes
from accel.core.isa import TOKEN_FLAGS, Gemm, Instruction, Loops, Set, Transfer, Unit
from accel.core.program_conflicts import Conflicts, Numbers, Order, rows_of, scratchpad_touches
from accel.core.scratchpad_specs import UOP, scratchpads_of
from accel.proof.shared_dram import SharedDram

_OUTER_UNITS = (Unit.LOAD, Unit.STORE)
_POP_PREV, _POP_NEXT, _PUSH_PREV, _PUSH_NEXT = (1 << n for n in range(4))
_FLAGS_SET: list[dict[str, Any]] = [
    {name: True for n, name in enumerate(TOKEN_FLAGS) if flags >> n & 1}
    for flags in range(1 << len(TOKEN_FLAGS))
]
"""The fields of each combination of flags."""


CARRIER = -1
"""Source of a carrier, which the input lacks."""


class Ordered(NamedTuple):
    program: Distinct[Instruction]
    sources: Numbers
    """Each instruction's number in the input, or ``CARRIER``."""


class Dependences(NamedTuple):
    program: Distinct[Instruction]
    order: Order
    needed: dict[Unit, Numbers]
    """By unit, for each instruction, how many instructions of that unit must retire before it starts: 3 if it
    conflicts with the unit's third instruction and no later one."""
    flagged: dict[int, Instruction]
    """Instructions by number and token flags, which the programs of :func:`with_tokens` share."""


def insert_tokens(
    instructions: Sequence[Instruction] | Distinct[Instruction],
    config: Config,
    uop_words: npt.NDArray[np.uint32],
    shared: SharedDram | None = None,
    after: Mapping[int, int] | None = None,
) -> Ordered:
    return with_tokens(dependences(instructions, config, uop_words, shared), after)


def dependences(
    instructions: Sequence[Instruction] | Distinct[Instruction],
    config: Config,
    uop_words: npt.NDArray[np.uint32],
    shared: SharedDram | None = None,
) -> Dependences:
    """Return the instructions that each instruction of a program waits for.

    Args:
        instructions: in program order, without token flags. LOADs of micro-ops count ``dram_base`` from the
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
        """For each store unit instruction, the position of the last SET. Earlier ones have retired."""
        own = conflicts.written[stores]
        conflicts.needed[Unit.STORE][stores] = np.where(own > drained, own, 0)
    return Dependences(program, order, conflicts.needed, {})


class _Uops:
    """The micro-op memory while a program loads it from ``words``."""

    def __init__(self, config: Config, words: npt.NDArray[np.uint32]) -> None:
        self._words = words
        self._held = np.zeros(config.uop_depth, dtype=np.uint32)

    def load(self, instruction: Transfer) -> None:
        first, begin, count = instruction.sram_base, instruction.dram_base, instruction.x_size
        self._held[first : first + count] = self._words[begin : begin + count]

    def words(self, instruction: Loops) -> npt.NDArray[np.uint32]:
        return self._held[instruction.uop_begin : instruction.uop_end]


def with_tokens(found: Dependences, after: Mapping[int, int] | None = None) -> Ordered:
    """Return a program with tokens.

    ``after`` maps instructions to earlier ones of another unit to wait for without a conflict.
    """
    order = found.order
    needed = {unit: wanted.copy() for unit, wanted in found.needed.items()}
    for late, early in (after or {}).items():
        wanted = needed[Unit(int(order.units[early]))]
        wanted[late] = max(wanted[late], order.positions[early] + 1)
    return _IndirectWaits(order, needed).with_flags(found.program, found.flagged)


class _IndirectWaits:
    """Waits between load and store unit as waits of and for the compute unit. ``needed`` is changed."""

    def __init__(self, order: Order, needed: dict[Unit, Numbers]) -> None:
        self._order = order
        self._needed = needed
        self._compute = order.members[Unit.COMPUTE]
        self._retired = {unit: np.maximum.accumulate(needed[unit][self._compute]) for unit in _OUTER_UNITS}
        """By unit, how many of its instructions have retired before each compute instruction."""
        self._added: dict[Unit, tuple[list[int], list[int]]] = {unit: ([], []) for unit in _OUTER_UNITS}
        """By unit, the waits added to compute instructions and carriers: the number of retired instructions,
        and the position of the waiting one. Both ascend."""
        self._carriers: list[int] = []
        """Carriers stand before these instructions."""
        self._before: list[int] = []
        """Compute instructions before each carrier, without carriers."""
        self._carried: list[dict[Unit, int]] = []
        """Instructions of each unit that each carrier waits for."""
        through: dict[int, int] = {}
        for index, unit in sorted(self._waits_without_counter()):
            position = self._wait_through_compute(index, unit, int(needed[unit][index]))
            through[index] = max(through.get(index, 0), position + 1)
        counts = needed[Unit.COMPUTE]
        counts += np.searchsorted(self._before, counts - 1, side="right").astype(np.int32)
        for index, count in through.items():
            counts[index] = max(counts[index], count)

    def _waits_without_counter(self) -> list[tuple[int, Unit]]:
        """Return waits of load and store instructions for units in :data:`_OUTER_UNITS`, except those that an
        earlier instruction of the same unit has already."""
        found = []
        for waiting in _OUTER_UNITS:
            members = self._order.members[waiting]
            for unit in _OUTER_UNITS:
                indices = members[_rising(self._needed[unit][members])]
                found += [(index, unit) for index in indices.tolist()]
        return found

    def _wait_through_compute(self, index: int, unit: Unit, needed: int) -> int:
        """Return the position of the earliest compute instruction before ``index`` that starts after
        ``needed`` instructions of ``unit`` have retired. If there is none, add a wait."""
        own = int(np.searchsorted(self._compute, index))
        found = []
        at = int(np.searchsorted(self._retired[unit], needed))
        if at < own:
            found.append(self._position(at))
        counts, positions = self._added[unit]
        at = bisect_left(counts, needed)
        if at < len(counts):
            found.append(positions[at])
        if found:
            return min(found)
        position = self._add_wait(index, unit, needed, own)
        counts.append(needed)
        positions.append(position)
        return position

    def _add_wait(self, index: int, unit: Unit, needed: int, own: int) -> int:
        """Let the last of ``own`` compute instructions before ``index`` wait, or a new carrier if that is
        impossible."""
        source = int(self._order.members[unit][needed - 1])
        if self._before and self._before[-1] == own:
            if unit not in self._carried[-1] and source < self._carriers[-1]:
                self._carried[-1][unit] = needed
                return own + len(self._carriers) - 1
        elif own:
            last, position = int(self._compute[own - 1]), self._position(own - 1)
            if source < last and not self._pops(unit, own - 1, position):
                self._needed[unit][last] = needed
                return position
        self._carriers.append(index)
        self._before.append(own)
        self._carried.append({unit: needed})
        return own + len(self._carriers) - 1

    def _pops(self, unit: Unit, own: int, position: int) -> bool:
        counts, positions = self._added[unit]
        before = max(self._retired[unit][own - 1] if own else 0, counts[-1] if counts else 0)
        is_added = bool(positions) and positions[-1] == position
        return is_added or bool(self._needed[unit][self._compute[own]] > before)

    def _position(self, own: int) -> int:
        return own + bisect_right(self._before, own)

    def with_flags(self, program: Distinct[Instruction], known: dict[int, Instruction]) -> Ordered:
        """Equal objects stay shared if their flags are equal.

        New instructions are added to ``known``, which is ``Dependences.flagged``.
        """
        at = self._carriers
        units = np.insert(self._order.units, at, int(Unit.COMPUTE))
        needed = {Unit.COMPUTE: np.insert(self._needed[Unit.COMPUTE], at, 0)}
        for unit in _OUTER_UNITS:
            needed[unit] = np.insert(self._needed[unit], at, [one.get(unit, 0) for one in self._carried])
        flags = _flags(units, needed)
        every = [*program.every, Gemm()]
        numbers = np.insert(program.places, at, len(every) - 1)
        keys, which = np.unique(numbers << len(TOKEN_FLAGS) | flags, return_inverse=True)
        mask = (1 << len(TOKEN_FLAGS)) - 1
        for key in keys.tolist():
            if key not in known:
                one = every[key >> len(TOKEN_FLAGS)]
                known[key] = replace(one, **_FLAGS_SET[key & mask]) if key & mask else one
        flagged = [known[key] for key in keys.tolist()]
        sources = np.insert(np.arange(len(program), dtype=np.int32), at, CARRIER)
        return Ordered(Distinct.chosen(flagged, which), sources)


def _flags(units: npt.NDArray[np.int8], needed: Mapping[Unit, Numbers]) -> npt.NDArray[np.uint8]:
    members = {unit: np.flatnonzero(units == unit) for unit in needed}
    flags = np.zeros(len(units), dtype=np.uint8)
    pairs = [pair for unit in _OUTER_UNITS for pair in ((unit, Unit.COMPUTE), (Unit.COMPUTE, unit))]
    for first, second in pairs:
        forward = first is second.previous
        waits = needed[first][members[second]]
        fresh = _rising(waits)
        flags[members[second][fresh]] |= _POP_PREV if forward else _POP_NEXT
        flags[members[first][waits[fresh] - 1]] |= _PUSH_NEXT if forward else _PUSH_PREV
    return flags


def _rising(values: Numbers) -> npt.NDArray[np.bool_]:
    """Return where a value exceeds zero and every earlier value."""
    before = np.maximum.accumulate(np.concatenate([np.zeros(1, dtype=values.dtype), values]))[:-1]
    return values > before
