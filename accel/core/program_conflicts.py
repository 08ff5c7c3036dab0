"""Find the conflicting instructions of a program.

Two accesses to an element conflict if at least one writes. Elements that no instruction distinguishes form a
class. Accesses are sorted by class and program order, so that the last earlier access of each unit and kind
is a running maximum.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from accel.base.interned_sequence import Distinct
from accel.core.config import Config
from accel.core.fault_causes import NOTHING_SET
from accel.core.instruction_access import Elements, Touch, access_sets, index_count
from accel.core.isa import Instruction, Loops, SetAcc, Transfer, Unit
from accel.core.scratchpad_specs import UOP
from accel.core.token_rules import WORKERS

Ints = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]
"""int32 halves the memory of these long arrays."""

_ROWS_AT_ONCE = 1 << 18
"""A temporary array then has about 2 MiB, unless one class has more rows."""


class Accesses(NamedTuple):
    """Accesses to one memory in program order, of each instruction the reads first."""

    sets: Sequence[Elements]
    instructions: Numbers
    writes: npt.NDArray[np.bool_]
    which: Numbers


class Touches:
    """The elements that a program touches."""

    def __init__(self) -> None:
        self.complete = True
        self._numbers: dict[str, dict[tuple[int, int] | bytes, int]] = {}
        self._sets: dict[str, list[Elements]] = {}
        self._found: dict[str, list[tuple[Numbers, bool, int]]] = {}

    def add(self, instructions: Numbers, touches: Sequence[Touch]) -> None:
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
        found = self._found.get(memory, [])
        counts = [len(instructions) for instructions, _, _ in found]
        instructions = np.concatenate([np.zeros(0, dtype=np.int32), *(one for one, _, _ in found)])
        writes = np.repeat(np.array([write for _, write, _ in found], dtype=bool), counts)
        which = np.repeat(np.array([number for _, _, number in found], dtype=np.int32), counts)
        order = np.argsort(2 * instructions.astype(np.int64) + writes, kind="stable")
        return Accesses(self._sets.get(memory, []), instructions[order], writes[order], which[order])


class UopSource(Protocol):
    """The micro-op memory, in program order."""

    def load(self, instruction: Transfer, /) -> None: ...

    def words(self, instruction: Loops, /) -> npt.NDArray[np.uint32] | None:
        """Return None if a micro-op is unknown."""


def scratchpad_touches(
    program: Distinct[Instruction], config: Config, uops: UopSource, max_indices: int | None = None
) -> Touches:
    """Return the touched scratchpad elements, of the micro-op memory only by LOADs.

    The result is incomplete with more than ``max_indices`` indices.
    """
    found = Touches()
    sets = access_sets(config)
    places_of = _positions_by_number(program.places, len(program.every))
    changing: list[int] = []
    """LOADs of micro-ops and SETs of taps, which change the meaning of later instructions."""
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
    setting, indices = NOTHING_SET, 0
    known: dict[tuple[int, bytes, int, int], list[Touch] | None] = {}
    for place, begin, end in zip([-1, *changes.tolist()], [0, *ends], [*ends, len(running)], strict=True):
        change = program.every[program.places[place]] if place >= 0 else None
        if isinstance(change, SetAcc):
            setting = change
        elif isinstance(change, Transfer):
            uops.load(change)
        members = running[begin:end].astype(np.int32)
        numbers, which = np.unique(program.places[members], return_inverse=True)
        for number, same in zip(numbers.tolist(), _positions_by_number(which, len(numbers)), strict=True):
            instruction = program.every[number]
            assert isinstance(instruction, Loops)
            words = uops.words(instruction)
            if words is None:
                found.complete = False
                continue
            key = number, words.tobytes(), setting.taps, setting.step
            if key not in known:
                access = sets.loops(instruction, words, setting)
                indices += index_count(access.touches)
                if max_indices is not None and indices > max_indices:
                    found.complete = False
                    return found
                own = [one for one in access.touches if one.memory != UOP.name]
                known[key] = own if access.fault is None else None
            touched = known[key]
            if touched is None:
                found.complete = False
            else:
                found.add(members[same], touched)
    return found


def _positions_by_number(numbers: npt.NDArray[np.integer], count: int) -> list[Numbers]:
    order = np.argsort(numbers, kind="stable").astype(np.int32)
    return np.split(order, np.cumsum(np.bincount(numbers, minlength=count))[:-1]) if count else []


class Rows(NamedTuple):
    classes: Numbers
    instructions: Numbers
    writes: npt.NDArray[np.bool_]


def row_count(accesses: Accesses, sets: Sequence[npt.NDArray[np.integer]]) -> int:
    sizes = np.array([len(one) for one in sets], dtype=np.int64)
    return int(sizes[accesses.which].sum())


def rows_of(accesses: Accesses, sets: Sequence[npt.NDArray[np.integer]]) -> Iterator[Rows]:
    """Generate rows for some classes at a time."""
    sizes = np.array([len(one) for one in sets], dtype=np.int64)
    classes = np.concatenate([np.zeros(0, dtype=np.int32), *sets]).astype(np.int32)
    owners = np.repeat(np.arange(len(sets)), sizes)
    uses = np.bincount(accesses.which, minlength=len(sets))
    rows = np.cumsum(np.bincount(classes, weights=uses[owners]).astype(np.int64))
    begin = 0
    while begin < len(rows):
        before = int(rows[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(rows, before + _ROWS_AT_ONCE, side="right")))
        inside = (begin <= classes) & (classes < end)
        yield _rows(accesses, classes[inside], np.bincount(owners[inside], minlength=len(sets)), begin)
        begin = end


def _rows(accesses: Accesses, classes: Numbers, sizes: Ints, lowest: int) -> Rows:
    counts = sizes[accesses.which]
    begins = (np.cumsum(sizes) - sizes)[accesses.which]
    total = int(counts.sum())
    back = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    within = np.arange(total) + np.repeat(begins - (np.cumsum(counts) - counts), counts)
    found = classes[within]
    order = np.argsort(_narrowed(found - np.int32(lowest)), kind="stable")
    back = back[order]
    return Rows(found[order], accesses.instructions[back], accesses.writes[back])


def _narrowed(values: Numbers) -> npt.NDArray[np.integer]:
    """Convert to 16 bits if possible, for faster sorting."""
    return values.astype(np.uint16) if values.max(initial=0) < 1 << 16 else values


class Order:
    """The unit of each instruction, int8[n], and its position in that unit, int32[n]."""

    def __init__(self, program: Distinct[Instruction]) -> None:
        self.units = program.column(lambda one: int(one.unit), np.int8)
        self.members = {unit: np.flatnonzero(self.units == unit).astype(np.int32) for unit in WORKERS}
        self.positions = np.zeros(len(program), dtype=np.int32)
        for members in self.members.values():
            self.positions[members] = np.arange(len(members))


class Conflicts:
    """The earlier instructions that each instruction of a program conflicts with.

    Attributes:
        needed: by unit, for each instruction of another unit, the position of the last conflicting
            instruction plus 1, or 0, int32[n].
        written: the same for LOADs of the store unit and its own earlier STOREs.
        read: the same for STOREs and its own earlier LOADs.
    """

    def __init__(self, order: Order) -> None:
        self._order = order
        count = len(order.units)
        self.needed = {unit: np.zeros(count, dtype=np.int32) for unit in WORKERS}
        self.written = np.zeros(count, dtype=np.int32)
        self.read = np.zeros(count, dtype=np.int32)

    def add(self, rows: Rows, *, own: bool = False) -> None:
        units, positions = self._order.units[rows.instructions], self._order.positions[rows.instructions]
        base = (rows.classes - rows.classes.min(initial=0)) * np.int64(len(self._order.units) + 1)
        for unit in WORKERS:
            others = units != unit
            for wrote in (False, True):
                theirs = ~others & (rows.writes == wrote)
                if not theirs.any():
                    continue
                last = np.maximum.accumulate(base + np.where(theirs, positions + 1, 0)) - base
                _raise_needs(self.needed[unit], rows, last, others & (last > 0) & (rows.writes | wrote))
                if own and unit is Unit.STORE:
                    mine = ~others & (last > 0) & (rows.writes != wrote)
                    _raise_needs(self.written if wrote else self.read, rows, last, mine)


def _raise_needs(found: Numbers, rows: Rows, last: Ints, where: npt.NDArray[np.bool_]) -> None:
    np.maximum.at(found, rows.instructions[where], last[where].astype(np.int32))
