"""The token check of a program with nothing to be said of it, on arrays over the whole program.

Where a program can run as it is written, what its tokens order is known without running it: the k-th pop of
a counter comes behind the push of its token, and a unit knows of another what the last one has brought. Every
memory is cut into classes of elements that no instruction tells apart, and per class the last access of each
unit and kind is a running maximum. Whether anything is wrong is then a comparison of arrays; what is, and
where, is left to the check that goes from instruction to instruction.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from accel.core.access import AccessSets, Elements, Touch, element_classes
from accel.core.config import Config
from accel.core.distinct import Distinct
from accel.core.faults import NOTHING_SET
from accel.core.isa import Load, Loops, SetAcc, Transfer, Unit
from accel.core.memories import UOP, scratchpads_of
from accel.core.token_rules import WORKERS, Counter, TokenFlow
from accel.image.dram import Dram
from accel.image.scenario import Contents
from accel.proof.own_order import OwnOrder
from accel.proof.shared_dram import SharedDram
from accel.proof.uop_memory import UopMemory

_MOST_ROWS = 1 << 24
"""Accesses to classes of elements of one memory that are looked at together; beyond, one by one."""

Ints = npt.NDArray[np.int64]


_Known = dict[tuple[int, bytes, int, int], list[Touch] | None]
"""What instructions with micro-ops touch besides these, by number, micro-ops, taps and their step; None where
they are at fault."""


class Proof(NamedTuple):
    """What is known of the counters of a program that is proven right."""

    left_over: tuple[int, ...]
    peak: tuple[int, ...]
    """Largest value of each counter over all legal orders."""


def prove(
    program: Distinct,
    config: Config,
    memory: Dram,
    program_span: tuple[int, int] | None,
    tokens: Sequence[int],
    contents: Sequence[Contents],
) -> Proof | None:
    """Prove that a program neither deadlocks nor races, and reads of scratchpads only what it has written.

    Args:
        program: without a fault that shows in an instruction by itself.
        config, memory, program_span, tokens, contents: see :func:`~accel.proof.check.check_tokens`.

    Returns:
        None where this is not so, or not known.
    """
    flow = TokenFlow(program, tokens)
    if not flow.in_order:
        return None
    clocks = _Clocks(program, flow)
    peak = clocks.peak(tokens)
    if max(peak) > config.token_limit:
        return None
    shared = SharedDram(program.every, config, program_span)
    touches = _touches(program, config, memory, contents, shared)
    if touches is None:
        return None
    known = {name: np.zeros(pad.depth(config), dtype=bool) for name, pad in scratchpads_of(config).items()}
    for one in contents:
        count = len(one.data) // scratchpads_of(config)[one.scratchpad].held_bytes(config)
        known[one.scratchpad][one.element : one.element + count] = True
    for name, written in known.items():
        if not _ordered(touches.of(name), clocks, written):
            return None
    if shared.segments and not _dram_ordered(program, config, shared, clocks):
        return None
    return Proof(left_over=flow.left_over, peak=peak)


class _Clocks:
    """What each instruction of a program that runs as it is written is sure of.

    Attributes:
        units: of each instruction, int8[n].
        positions: its place among the instructions of its unit, int64[n].
        done: by unit, how many instructions of that unit have surely retired when each instruction starts,
            int64[n]; of the instruction's own unit, nothing is said.
        stored: the same of the store unit, as the tokens say that the instruction itself takes.
    """

    def __init__(self, program: Distinct, flow: TokenFlow) -> None:
        self._flow = flow
        count = len(program)
        self.units = program.column(lambda one: int(one.unit), np.int8)
        self.positions = np.zeros(count, dtype=np.int64)
        self._members = {unit: np.flatnonzero(self.units == unit) for unit in WORKERS}
        for members in self._members.values():
            self.positions[members] = np.arange(len(members))
        self.done = {unit: np.zeros(count, dtype=np.int64) for unit in WORKERS}
        direct = {counter: self._learned(counter, self.positions + 1) for counter in Counter}
        for counter, learned in direct.items():
            self.done[counter.source][self._members[counter.target]] = learned
        for counter, far in ((Counter.COMPUTE_TO_LOAD, Unit.STORE), (Counter.COMPUTE_TO_STORE, Unit.LOAD)):
            self.done[far][self._members[counter.target]] = self._learned(counter, self.done[far])
        self.stored = self._learned(Counter.COMPUTE_TO_STORE, self.done[Unit.STORE])
        """Of each instruction of the store unit."""

    def _learned(self, counter: Counter, values: Ints) -> Ints:
        """For each instruction of a counter's target, what of ``values``, one for each instruction of the
        program, its last token has brought; 0 before the first. What a unit is sure of only grows."""
        pops, pushers = self._flow.pops[counter], self._flow.pushers(counter)
        brought = np.where(pushers >= 0, values[pushers], 0)
        members = self._members[counter.target]
        return np.concatenate([[0], brought])[np.searchsorted(pops, members, side="right")]

    def peak(self, tokens: Sequence[int]) -> tuple[int, ...]:
        """Largest value of each counter over all legal orders."""
        found = []
        for counter in Counter:
            pushes, before = self._flow.pushes[counter], tokens[counter]
            popped = np.searchsorted(
                self.positions[self._flow.pops[counter]], self.done[counter.target][pushes]
            )
            held = before + np.arange(1, len(pushes) + 1) - popped
            found.append(max(before, int(held.max(initial=0))))
        return tuple(found)


# --- accesses --------------------------------------------------------------------------------------


class _Accesses(NamedTuple):
    """Accesses to one memory, in the order of the program; what an instruction reads before what it
    writes."""

    sets: list[Elements]
    """Of elements, each once."""
    instructions: Ints
    writes: npt.NDArray[np.bool_]
    which: Ints
    """Of the sets."""


class _Touches:
    """What every instruction of a program touches, as it is found out."""

    def __init__(self) -> None:
        self._numbers: dict[str, dict[tuple[int, int] | bytes, int]] = {}
        self._sets: dict[str, list[Elements]] = {}
        self._found: dict[str, list[tuple[Ints, bool, int]]] = {}

    def add(self, instructions: Ints, touches: Sequence[Touch]) -> None:
        """These instructions, by their places in the program, touch the same."""
        for memory, write, elements in touches:
            if isinstance(elements, slice):
                if elements.start >= elements.stop:
                    continue
                key: tuple[int, int] | bytes = elements.start, elements.stop
            else:
                key = elements.tobytes()
            sets = self._sets.setdefault(memory, [])
            number = self._numbers.setdefault(memory, {}).setdefault(key, len(sets))
            if number == len(sets):
                sets.append(elements)
            self._found.setdefault(memory, []).append((instructions, write, number))

    def of(self, memory: str) -> _Accesses:
        """All of one memory's."""
        found = self._found.get(memory, [])
        counts = [len(instructions) for instructions, _, _ in found]
        instructions = np.concatenate([np.zeros(0, dtype=np.int64), *(one for one, _, _ in found)])
        writes = np.repeat(np.array([write for _, write, _ in found], dtype=bool), counts)
        which = np.repeat(np.array([number for _, _, number in found], dtype=np.int64), counts)
        order = np.argsort(2 * instructions + writes, kind="stable")
        return _Accesses(self._sets.get(memory, []), instructions[order], writes[order], which[order])


def _touches(
    program: Distinct, config: Config, memory: Dram, contents: Sequence[Contents], shared: SharedDram
) -> _Touches | None:
    """What the instructions touch of scratchpads; None where micro-ops are at fault or not known."""
    found = _Touches()
    sets = AccessSets(config)
    places_of = _groups(program.places, len(program.every))
    loaded: list[int] = []
    for number, instruction in enumerate(program.every):
        if isinstance(instruction, Transfer):
            touches = sets.transfer(instruction)
            if any(one.memory == UOP.name for one in touches):
                if shared.elements(number) is not None:
                    return None  # what a STORE may have written is not known
                loaded.append(number)
            found.add(places_of[number], touches)
    loaded += [number for number, one in enumerate(program.every) if isinstance(one, SetAcc)]
    changes = [np.zeros(0, dtype=np.int64), *(places_of[number] for number in loaded)]
    loads = np.sort(np.concatenate(changes))
    """LOADs of micro-ops, and SETs of taps."""
    setting = NOTHING_SET
    running = program.where(lambda one: isinstance(one, Loops) and one.uop_count > 0)
    ends = np.searchsorted(running, loads).tolist()
    uops = UopMemory(config, memory, contents)
    known: _Known = {}
    for load, begin, end in zip([-1, *loads.tolist()], [0, *ends], [*ends, len(running)], strict=True):
        if load >= 0:
            change = program.every[program.places[load]]
            if isinstance(change, SetAcc):
                setting = change
            else:
                uops.load(change)
        members = running[begin:end]
        numbers, which = np.unique(program.places[members], return_inverse=True)
        for number, same in zip(numbers.tolist(), _groups(which, len(numbers)), strict=True):
            looped = _loop_touches(number, program, uops, setting, sets, known)
            if looped is None:
                return None
            found.add(members[same], looped)
    return found


def _loop_touches(
    number: int,
    program: Distinct,
    uops: UopMemory,
    setting: SetAcc,
    sets: AccessSets,
    known: _Known,
) -> list[Touch] | None:
    """What an instruction with micro-ops, by its number, touches besides these; None where they are at fault
    or not known. ``known``: what has been found out so far."""
    instruction = program.every[number]
    assert isinstance(instruction, Loops)
    words = uops.words(instruction)
    if words is None:
        return None
    key = number, words.tobytes(), setting.taps, setting.step
    if key not in known:
        access = sets.loops(instruction, words, setting)
        touches = [one for one in access.touches if one.memory != UOP.name]
        known[key] = touches if access.fault is None else None
    return known[key]


def _groups(numbers: npt.NDArray[np.intp], count: int) -> list[Ints]:
    """For each number below ``count``, where it stands, in order."""
    order = np.argsort(numbers, kind="stable").astype(np.int64)
    return np.split(order, np.cumsum(np.bincount(numbers, minlength=count))[:-1]) if count else []


# --- order -----------------------------------------------------------------------------------------


def _ordered(accesses: _Accesses, clocks: _Clocks, known: npt.NDArray[np.bool_]) -> bool:
    """Whether tokens order all accesses to a scratchpad, and nothing is read that is not written before;
    ``known``: which elements are at the start."""
    if not accesses.sets:
        return True
    classes, sets = element_classes(accesses.sets, known.astype(np.int64))
    rows = _Rows.of(accesses, sets)
    if rows is None:
        return False
    first = np.full(int(classes.max()) + 1, np.iinfo(np.int64).max, dtype=np.int64)
    written = rows.writes
    np.minimum.at(first, rows.classes[written], rows.instructions[written])
    first[classes[known]] = -1
    read = ~written
    if (first[rows.classes[read]] >= rows.instructions[read]).any():
        return False
    return _apart(rows, clocks)


class _Rows(NamedTuple):
    """Accesses to classes of elements, by class, then in the order of the program."""

    classes: Ints
    instructions: Ints
    writes: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, accesses: _Accesses, sets: list[Ints]) -> "_Rows | None":
        """One for each class of each access; None if they are too many."""
        sizes = np.array([len(one) for one in sets], dtype=np.int64)
        counts = sizes[accesses.which]
        total = int(counts.sum())
        if total > _MOST_ROWS:
            return None
        begins = (np.cumsum(sizes) - sizes)[accesses.which]
        within = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
        classes = np.concatenate(sets)[np.repeat(begins, counts) + within]
        order = np.argsort(classes, kind="stable")
        back = np.repeat(np.arange(len(counts)), counts)[order]
        return cls(classes[order], accesses.instructions[back], accesses.writes[back])


def _apart(rows: _Rows, clocks: _Clocks, own: tuple[Ints, Ints] | None = None) -> bool:
    """Whether of two accesses to a class, one of them a write, the second is sure of the first.

    Args:
        rows: the accesses.
        clocks: what instructions are sure of.
        own: of each instruction of the program, how many of the store unit's before it have surely retired,
            and been read; if the store unit may race with itself.
    """
    units, positions = clocks.units[rows.instructions], clocks.positions[rows.instructions]
    base = rows.classes * (len(clocks.units) + 1)
    for other in WORKERS:
        done = clocks.done[other][rows.instructions]
        for wrote in (False, True):
            theirs = (units == other) & (rows.writes == wrote)
            if not theirs.any():
                continue
            last = np.maximum.accumulate(base + np.where(theirs, positions + 1, 0)) - base
            meets = (units != other) & (rows.writes | wrote)
            if (last[meets] > done[meets]).any():
                return False
            if own is not None and other is Unit.STORE:
                meets = (units == other) & (rows.writes != wrote)
                sure = own[0 if wrote else 1][rows.instructions]
                if (last[meets] > sure[meets]).any():
                    return False
    return True


def _dram_ordered(program: Distinct, config: Config, shared: SharedDram, clocks: _Clocks) -> bool:
    """Whether tokens order all accesses to the part of DRAM that is both written and read."""
    sets: list[Elements] = []
    numbers = np.full(len(program.every), -1, dtype=np.int64)
    writes = np.zeros(len(program.every), dtype=bool)
    for number, instruction in enumerate(program.every):
        elements = shared.elements(number)
        if elements is None:
            continue
        numbers[number], writes[number] = len(sets), not isinstance(instruction, Load)
        sets.append(elements)
        if writes[number] and shared.program is not None and len(np.intersect1d(elements, shared.program)):
            return False
    which = numbers[program.places]
    instructions = np.flatnonzero(which >= 0)
    accesses = _Accesses(sets, instructions, writes[program.places][instructions], which[instructions])
    rows = _Rows.of(accesses, [np.asarray(one, dtype=np.int64) for one in sets])
    return rows is not None and _apart(rows, clocks, _own(program, config, clocks))


def _own(program: Distinct, config: Config, clocks: _Clocks) -> tuple[Ints, Ints] | None:
    """Of each instruction of the store unit how many before it have surely retired, and been read; None if
    the unit cannot race with itself."""
    if not config.post:
        return None
    retired, read = np.zeros(len(program), dtype=np.int64), np.zeros(len(program), dtype=np.int64)
    own = OwnOrder(config)
    members = np.flatnonzero(clocks.units == Unit.STORE)
    for position, (index, stored) in enumerate(zip(members.tolist(), clocks.stored.tolist(), strict=True)):
        own.start(program.every[program.places[index]], position, stored)
        retired[index], read[index] = own.retired, own.read
    return retired, read
