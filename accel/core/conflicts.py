"""What the instructions of a program conflict with, on arrays over the whole program.

Two accesses to an element conflict if one of them writes. Every memory is cut into classes of elements that
no instruction tells apart. With the accesses in the order of classes, and of the program within each, the
last one of each unit and kind is a running maximum. That is how the compiler knows what an instruction has to
wait for, and the token check what it must be sure of.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from accel.base.distinct import Distinct
from accel.core.access import AccessSets, Elements, Touch
from accel.core.config import Config
from accel.core.faults import NOTHING_SET
from accel.core.isa import Instruction, Loops, SetAcc, Transfer, Unit
from accel.core.memories import UOP
from accel.core.token_rules import WORKERS

Ints = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]
"""Of instructions, sets of elements and classes, of which there are many at a time."""

_AT_ONCE = 1 << 18
"""Rows that are looked at together, unless one class has more."""


class Accesses(NamedTuple):
    """Accesses to one memory, in the order of the program; what an instruction reads before what it
    writes."""

    sets: Sequence[Elements]
    """Of elements, each once."""
    instructions: Numbers
    writes: npt.NDArray[np.bool_]
    which: Numbers
    """Of the sets."""


class Touches:
    """What every instruction of a program touches, as it is found out.

    Attributes:
        complete: whether that is all; not so where micro-ops are at fault, or not known.
    """

    def __init__(self) -> None:
        self.complete = True
        self._numbers: dict[str, dict[tuple[int, int] | bytes, int]] = {}
        self._sets: dict[str, list[Elements]] = {}
        self._found: dict[str, list[tuple[Numbers, bool, int]]] = {}

    def add(self, instructions: Numbers, touches: Sequence[Touch]) -> None:
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

    def of(self, memory: str) -> Accesses:
        """All of one memory's."""
        found = self._found.get(memory, [])
        counts = [len(instructions) for instructions, _, _ in found]
        instructions = np.concatenate([np.zeros(0, dtype=np.int32), *(one for one, _, _ in found)])
        writes = np.repeat(np.array([write for _, write, _ in found], dtype=bool), counts)
        which = np.repeat(np.array([number for _, _, number in found], dtype=np.int32), counts)
        order = np.argsort(2 * instructions.astype(np.int64) + writes, kind="stable")
        return Accesses(self._sets.get(memory, []), instructions[order], writes[order], which[order])


class UopSource(Protocol):
    """The micro-op memory, as a program that is gone through in order finds it."""

    def load(self, instruction: Transfer, /) -> None:
        """A LOAD of micro-ops takes place."""

    def words(self, instruction: Loops, /) -> npt.NDArray[np.uint32] | None:
        """The encoded micro-ops of an instruction, or None where one of them is not known."""


def scratchpad_touches(program: Distinct[Instruction], config: Config, uops: UopSource) -> Touches:
    """What the instructions touch of scratchpads; of the micro-op memory, only what LOADs do.

    Args:
        program: without a fault that shows in an instruction by itself, but for what :class:`Touches` leaves
            out where it is not complete.
        config: the machine.
        uops: as the program finds them.
    """
    found = Touches()
    sets = AccessSets(config)
    places_of = _groups(program.places, len(program.every))
    changing: list[int] = []
    """LOADs of micro-ops, and SETs of taps."""
    for number, instruction in enumerate(program.every):
        if isinstance(instruction, Transfer):
            touches = sets.transfer(instruction)
            if any(one.memory == UOP.name for one in touches):
                changing.append(number)
            found.add(places_of[number], touches)
        elif isinstance(instruction, SetAcc):
            changing.append(number)
    changes = np.sort(np.concatenate([np.zeros(0, dtype=np.int32), *(places_of[n] for n in changing)]))
    running = program.where(lambda one: isinstance(one, Loops) and one.uop_count > 0)
    ends = np.searchsorted(running, changes).tolist()
    setting = NOTHING_SET
    known: dict[tuple[int, bytes, int, int], list[Touch] | None] = {}
    for place, begin, end in zip([-1, *changes.tolist()], [0, *ends], [*ends, len(running)], strict=True):
        change = program.every[program.places[place]] if place >= 0 else None
        if isinstance(change, SetAcc):
            setting = change
        elif isinstance(change, Transfer):
            uops.load(change)
        members = running[begin:end].astype(np.int32)
        numbers, which = np.unique(program.places[members], return_inverse=True)
        for number, same in zip(numbers.tolist(), _groups(which, len(numbers)), strict=True):
            instruction = program.every[number]
            assert isinstance(instruction, Loops)
            words = uops.words(instruction)
            if words is None:
                found.complete = False
                continue
            key = number, words.tobytes(), setting.taps, setting.step
            if key not in known:
                access = sets.loops(instruction, words, setting)
                own = [one for one in access.touches if one.memory != UOP.name]
                known[key] = own if access.fault is None else None
            touched = known[key]
            if touched is None:
                found.complete = False
            else:
                found.add(members[same], touched)
    return found


def _groups(numbers: npt.NDArray[np.integer], count: int) -> list[Numbers]:
    """For each number below ``count``, where it stands, in order."""
    order = np.argsort(numbers, kind="stable").astype(np.int32)
    return np.split(order, np.cumsum(np.bincount(numbers, minlength=count))[:-1]) if count else []


class Rows(NamedTuple):
    """Accesses to classes of elements, by class, then in the order of the program."""

    classes: Numbers
    instructions: Numbers
    writes: npt.NDArray[np.bool_]


def row_count(accesses: Accesses, sets: Sequence[npt.NDArray[np.integer]]) -> int:
    """How many rows there are if sets are of these classes: one for each class of each access."""
    sizes = np.array([len(one) for one in sets], dtype=np.int64)
    return int(sizes[accesses.which].sum())


def rows_of(accesses: Accesses, sets: Sequence[npt.NDArray[np.integer]]) -> Iterator[Rows]:
    """One row for each class of each access, some classes at a time.

    Args:
        accesses: to one memory.
        sets: the classes of each of its sets, in order.
    """
    sizes = np.array([len(one) for one in sets], dtype=np.int64)
    classes = np.concatenate([np.zeros(0, dtype=np.int32), *sets]).astype(np.int32)
    owners = np.repeat(np.arange(len(sets)), sizes)
    uses = np.bincount(accesses.which, minlength=len(sets))
    rows = np.cumsum(np.bincount(classes, weights=uses[owners]).astype(np.int64))
    begin = 0
    while begin < len(rows):
        before = int(rows[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(rows, before + _AT_ONCE, side="right")))
        inside = (begin <= classes) & (classes < end)
        yield _rows(accesses, classes[inside], np.bincount(owners[inside], minlength=len(sets)), begin)
        begin = end


def _rows(accesses: Accesses, classes: Numbers, sizes: Ints, lowest: int) -> Rows:
    """The rows of some classes, those of each set one behind the other, so many of each."""
    counts = sizes[accesses.which]
    begins = (np.cumsum(sizes) - sizes)[accesses.which]
    total = int(counts.sum())
    back = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    within = np.arange(total) + np.repeat(begins - (np.cumsum(counts) - counts), counts)
    found = classes[within]
    order = np.argsort(_short(found - np.int32(lowest)), kind="stable")
    back = back[order]
    return Rows(found[order], accesses.instructions[back], accesses.writes[back])


def _short(values: Numbers) -> npt.NDArray[np.integer]:
    """Values from 0 on in 16 bits if they fit, which are sorted several times as fast."""
    return values.astype(np.uint16) if values.max(initial=0) < 1 << 16 else values


class Order:
    """The order in which a program stands.

    Args:
        program: its instructions.

    Attributes:
        units: of each instruction, int8[n].
        members: by unit, the places of its instructions.
        positions: the place of each instruction among those of its unit, int32[n].
    """

    def __init__(self, program: Distinct[Instruction]) -> None:
        self.units = program.column(lambda one: int(one.unit), np.int8)
        self.members = {unit: np.flatnonzero(self.units == unit).astype(np.int32) for unit in WORKERS}
        self.positions = np.zeros(len(program), dtype=np.int32)
        for members in self.members.values():
            self.positions[members] = np.arange(len(members))


class Conflicts:
    """What each instruction of a program conflicts with before it.

    Args:
        order: of the program.

    Attributes:
        needed: by unit, for each instruction of another unit how many of that unit's instructions there are
            up to the last one that it conflicts with, int32[n]; 0 if there is none.
        written: the same of the store unit's own STOREs before a LOAD of the store unit, in the memories in
            which the unit may race with itself.
        read: the same of its own LOADs before a STORE.
    """

    def __init__(self, order: Order) -> None:
        self._order = order
        count = len(order.units)
        self.needed = {unit: np.zeros(count, dtype=np.int32) for unit in WORKERS}
        self.written = np.zeros(count, dtype=np.int32)
        self.read = np.zeros(count, dtype=np.int32)

    def add(self, rows: Rows, *, own: bool = False) -> None:
        """Some classes' accesses, all that there are.

        Args:
            rows: the accesses.
            own: whether the store unit may race with itself in this memory.
        """
        units, positions = self._order.units[rows.instructions], self._order.positions[rows.instructions]
        base = (rows.classes - rows.classes.min(initial=0)) * np.int64(len(self._order.units) + 1)
        for unit in WORKERS:
            others = units != unit
            for wrote in (False, True):
                theirs = ~others & (rows.writes == wrote)
                if not theirs.any():
                    continue
                last = np.maximum.accumulate(base + np.where(theirs, positions + 1, 0)) - base
                _raise(self.needed[unit], rows, last, others & (last > 0) & (rows.writes | wrote))
                if own and unit is Unit.STORE:
                    mine = ~others & (last > 0) & (rows.writes != wrote)
                    _raise(self.written if wrote else self.read, rows, last, mine)


def _raise(found: Numbers, rows: Rows, last: Ints, where: npt.NDArray[np.bool_]) -> None:
    """Have the instructions of some rows need what these rows say."""
    np.maximum.at(found, rows.instructions[where], last[where].astype(np.int32))
