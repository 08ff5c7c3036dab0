"""The proof, before a program runs, that its tokens neither deadlock nor race.

Programs are straight-line, so one abstract run decides whether they deadlock, see
:mod:`accel.core.token_rules`. Happens-before is the closure of the order within a unit and of k-th push
before (k + initial)-th pop of the same counter, kept as one vector clock per instruction. Two overlapping
accesses by different units, at least one of them a write, race if happens-before does not order them. Order
that only a full queue enforces does not count. In DRAM the store unit may race with itself, see
:mod:`accel.proof.store_unit_order`.

Scratchpads start with arbitrary content, so the check also records reads of unwritten elements. Programs
without findings are proven on arrays (:mod:`accel.proof.vectorized_proof`), others one instruction at a time.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import Struct

from accel.base.errors import DeadlockError, MachineError, ProgramFault, RaceError
from accel.base.html_summary import Bar, html_summary
from accel.base.interned_sequence import Distinct
from accel.core.config import Config
from accel.core.fault_causes import (
    EMPTY_PROGRAM,
    Cause,
    Fault,
    acc_settings,
    fetch_faults,
    instruction_faults,
)
from accel.core.instruction_access import AccessSets, Elements
from accel.core.isa import Instruction, Loops, Transfer, Unit
from accel.core.scratchpad_specs import UOP, scratchpads_of
from accel.core.token_rules import WORKERS, Counter, Stepper, Waiting, deadlock_place, explain_deadlock
from accel.image.dram import Dram
from accel.image.test_scenario import Contents
from accel.proof.shared_dram import SharedDram
from accel.proof.store_unit_order import OwnOrder
from accel.proof.uop_memory import UopMemory
from accel.proof.vectorized_proof import prove

MOST_REPORTED = 16
"""A report only counts further races and faults."""

_Clock = tuple[int, int, int]
"""Retired instructions of load, compute and store before this one starts."""
_PLACE = {unit: place for place, unit in enumerate(WORKERS)}


class Race(Struct, frozen=True, kw_only=True):
    """Two instructions of different units, or a LOAD and a STORE of the store unit, that touch the same
    memory in no fixed order."""

    first: int
    second: int
    memory: str
    where: tuple[int, int]
    """First and last element (scratchpad) or byte (DRAM)."""
    write: tuple[bool, bool]

    def __str__(self) -> str:
        verbs = tuple("writes" if w else "reads" for w in self.write)
        unit = "bytes" if self.memory == "dram" else "elements"
        low, high = (f"{v:#x}" if self.memory == "dram" else str(v) for v in self.where)
        if self.first < 0:
            return f"instruction {self.second} writes dram bytes {low}..{high}, which hold the program"
        return (
            f"instruction {self.first} {verbs[0]} and instruction {self.second} {verbs[1]} "
            f"{self.memory} {unit} {low}..{high}, and no token orders them"
        )


class Unwritten(Struct, frozen=True, kw_only=True):
    """A read of unwritten scratchpad elements."""

    index: int
    memory: str
    where: tuple[int, int]
    """First and last element."""

    def __str__(self) -> str:
        low, high = self.where
        return (
            f"instruction {self.index} reads {self.memory} elements {low}..{high}, which nothing has written"
        )


PROVEN = "no deadlock, no race: proven"
"""The summary of a report that is ``ok``."""


@dataclass(frozen=True, kw_only=True)
class TokenReport:
    """The result of the token check. ``ok`` means proven."""

    instructions: int
    races: tuple[Race, ...]
    race_count: int
    deadlock: tuple[Waiting, ...] | None
    faults: tuple[tuple[int, Fault], ...]
    left_over: tuple[int, int, int, int]
    """Tokens in each counter when the program has finished, which are legal."""
    peak: tuple[int, int, int, int]
    """Largest value of each counter over all legal orders."""
    unknown_uops: tuple[int, ...]
    """GEMM and ALU instructions whose micro-ops are known only at run time. They are not proven."""
    unwritten: tuple[Unwritten, ...] = ()
    """Reads of scratchpad content of an earlier run, which are legal."""
    unwritten_count: int = 0

    @property
    def ok(self) -> bool:
        return not (self.race_count or self.deadlock is not None or self.faults or self.unknown_uops)

    @property
    def verdict(self) -> str:
        """``proven``, ``fault``, ``deadlock``, ``race`` or ``unknown``."""
        if self.ok:
            return "proven"
        if self.faults:
            return "fault"
        if self.deadlock is not None:
            return "deadlock"
        return "race" if self.race_count else "unknown"

    def _repr_html_(self) -> str:
        rows = [("verdict", self.summary), ("instructions", f"{self.instructions:,}")]
        most = max(1, *self.peak)
        bars = [Bar(f"most {c.label} tokens", self.peak[c] / most, str(self.peak[c])) for c in Counter]
        return html_summary("TokenReport", rows, bars)

    @property
    def leftovers(self) -> str:
        """The tokens left over by counter, in words."""
        return ", ".join(f"{self.left_over[c]} {c.label}" for c in Counter if self.left_over[c])

    @property
    def summary(self) -> str:
        """The verdict with its first reason."""
        try:
            self.raise_if_bad()
        except ProgramFault as error:
            return f"{self.verdict}: {str(error).removeprefix(f'{self.verdict}: ')}"
        return PROVEN

    def raise_if_bad(self) -> None:
        """Raise what was found.

        Raises:
            MachineError: an instruction is wrong, or a counter may overflow.
            DeadlockError: no order of execution reaches the end.
            RaceError: two accesses are not ordered.
            ProgramFault: micro-ops are unknown.
        """
        if self.faults:
            index, fault = self.faults[0]
            raise MachineError(f"instruction {index}: {fault.message}", cause=fault.cause, index=index)
        if self.deadlock is not None:
            _, index = deadlock_place(self.deadlock)
            raise DeadlockError(explain_deadlock(self.deadlock), cause=Cause.DEADLOCK, index=index)
        if self.races:
            more = f" ({self.race_count - 1} more)" if self.race_count > 1 else ""
            raise RaceError(f"race: {self.races[0]}{more}")
        if self.unknown_uops:
            raise ProgramFault(
                f"instruction {self.unknown_uops[0]} runs micro-ops that are not known before the run; "
                f"nothing can be proven of it"
            )


def check_tokens(
    instructions: Sequence[Instruction],
    config: Config,
    *,
    memory: Dram,
    program_span: tuple[int, int] | None = None,
    tokens: Sequence[int] = (0, 0, 0, 0),
    contents: Sequence[Contents] = (),
) -> TokenReport:
    """Prove or refute that a program's result does not depend on timing.

    Args:
        memory: DRAM before the run.
        program_span: bytes ``[start, stop)`` of the instructions, if in ``memory``.
        contents: known scratchpad contents before the run.
    """
    program = Distinct(instructions)
    faults = _static_faults(instructions, program, config)
    if faults:
        return _report(instructions, faults=faults, left_over=tokens, peak=tokens)
    proof = prove(program, config, memory, program_span, tokens, contents)
    if proof is not None:
        return _report(instructions, left_over=proof.left_over, peak=proof.peak)
    return one_by_one(instructions, config, memory, program_span, tokens, contents)


def one_by_one(
    instructions: Sequence[Instruction],
    config: Config,
    memory: Dram,
    program_span: tuple[int, int] | None,
    tokens: Sequence[int],
    contents: Sequence[Contents],
) -> TokenReport:
    """Run :func:`check_tokens` on each instruction in turn, with all details of findings."""
    return _TokenCheck(instructions, config, memory, program_span, tokens, contents).run()


def _static_faults(
    instructions: Sequence[Instruction], program: Distinct[Instruction], config: Config
) -> list[tuple[int, Fault]]:
    if not instructions:
        return [(0, EMPTY_PROGRAM)]
    checked = instruction_faults(instructions, config)
    found = {index: fault for index, fault in enumerate(checked) if fault is not None}
    return sorted((found | fetch_faults(program, config)).items())[:MOST_REPORTED]


def _report(
    instructions: Sequence[Instruction],
    *,
    left_over: Sequence[int],
    peak: Sequence[int],
    races: Sequence[Race] = (),
    race_count: int = 0,
    deadlock: Sequence[Waiting] | None = None,
    faults: Sequence[tuple[int, Fault]] = (),
    unknown_uops: Sequence[int] = (),
    unwritten: Sequence[Unwritten] = (),
    unwritten_count: int = 0,
) -> TokenReport:
    return TokenReport(
        instructions=len(instructions),
        races=tuple(races),
        race_count=race_count,
        deadlock=None if deadlock is None else tuple(deadlock),
        faults=tuple(faults),
        left_over=(left_over[0], left_over[1], left_over[2], left_over[3]),
        peak=(peak[0], peak[1], peak[2], peak[3]),
        unknown_uops=tuple(unknown_uops),
        unwritten=tuple(unwritten),
        unwritten_count=unwritten_count,
    )


class _History:
    """The position of the last access to each element, by worker and kind."""

    def __init__(self, size: int) -> None:
        self.last = {
            (unit, write): np.full(size, -1, dtype=np.int32) for unit in WORKERS for write in (False, True)
        }
        self.used: set[tuple[Unit, bool]] = set()

    def conflicts(
        self, unit: Unit, write: bool, elements: Elements, clock: _Clock, own: OwnOrder | None
    ) -> Iterable[tuple[Unit, bool, int, tuple[int, int]]]:
        """Yield overlapping accesses that may be incomplete: unit, kind, position, and elements.

        Those of the same unit count with ``own``.
        """
        for other, wrote in self.used:
            if not (write or wrote) or (other is unit and (own is None or write == wrote)):
                continue
            done = clock[_PLACE[other]]
            if other is unit and own is not None:
                done = own.retired if wrote else own.read
            positions = self.last[other, wrote][elements]
            if int(positions.max()) >= done:
                hit = np.flatnonzero(positions >= done)
                yield other, wrote, int(positions[hit[0]]), (int(hit[0]), int(hit[-1]))

    def record(self, unit: Unit, write: bool, elements: Elements, position: int) -> None:
        self.last[unit, write][elements] = position
        self.used.add((unit, write))


class _TokenCheck:
    def __init__(
        self,
        instructions: Sequence[Instruction],
        config: Config,
        memory: Dram,
        program_span: tuple[int, int] | None,
        tokens: Sequence[int],
        contents: Sequence[Contents],
    ) -> None:
        self.instructions = instructions
        self.config = config
        self.stepper = Stepper(instructions, config, tokens=tokens)
        self.sets = AccessSets(config)
        self.settings = acc_settings(instructions)
        self.shared = SharedDram(instructions, config, program_span)
        pads = scratchpads_of(config)
        self.histories = {name: _History(pad.depth(config)) for name, pad in pads.items()}
        self.dram_history = _History(self.shared.segments)
        self.own_order = OwnOrder(config)
        self.uops = UopMemory(config, memory, contents)
        self.written = {name: np.zeros(pad.depth(config), dtype=bool) for name, pad in pads.items()}
        for one in contents:
            count = len(one.data) // pads[one.scratchpad].held_bytes(config)
            self.written[one.scratchpad][one.element : one.element + count] = True
        self.unwritten: list[Unwritten] = []
        self.unwritten_count = 0
        self.members: dict[Unit, list[int]] = {unit: [] for unit in WORKERS}
        self.unit_clock: dict[Unit, _Clock] = dict.fromkeys(WORKERS, (0, 0, 0))
        self.in_flight: list[deque[_Clock]] = [deque([(0, 0, 0)] * tokens[c]) for c in Counter]
        self.pushed = list(tokens)
        self.peak = list(tokens)
        self.overflows: dict[Counter, int] = {}
        """The first instruction that may find its counter full."""
        self.pop_positions = self._pop_positions()
        self.races: list[Race] = []
        self.race_count = 0
        self.faults: list[tuple[int, Fault]] = []
        self.unknown: list[int] = []

    def run(self) -> TokenReport:
        stepper = self.stepper
        while (index := stepper.first()) is not None:
            self._step(index)
            stepper.run(index)
            if self.faults:
                break
        if self.overflows and not self.faults:
            self._overflow(min(self.overflows))
        return _report(
            self.instructions,
            races=self.races,
            race_count=self.race_count,
            deadlock=None if stepper.done or self.faults else stepper.waiting(),
            faults=self.faults,
            left_over=stepper.tokens,
            peak=self.peak,
            unknown_uops=self.unknown[:MOST_REPORTED],
            unwritten=self.unwritten,
            unwritten_count=self.unwritten_count,
        )

    def _pop_positions(self) -> list[list[int]]:
        seen = dict.fromkeys(WORKERS, 0)
        positions: list[list[int]] = [[] for _ in Counter]
        for unit, popped in zip(self.stepper.units, self.stepper.pops, strict=True):
            for counter in popped:
                positions[counter].append(seen[unit])
            seen[unit] += 1
        return positions

    def _step(self, index: int) -> None:
        unit = self.stepper.units[index]
        a, b, c = self.unit_clock[unit]
        stored = 0
        for counter in self.stepper.pops[index]:
            x, y, z = self.in_flight[counter].popleft()
            a, b, c = max(a, x), max(b, y), max(c, z)
            stored = max(stored, z)
        clock = (a, b, c)
        position = len(self.members[unit])
        if unit is Unit.STORE:
            self.own_order.start(self.instructions[index], position, stored)
        self._touch(index, unit, clock, position)
        self.members[unit].append(index)
        done = (position + 1, b, c) if unit is Unit.LOAD else (a, position + 1, c)
        if unit is Unit.STORE:
            done = (a, b, position + 1)
        self.unit_clock[unit] = done
        for counter in self.stepper.pushes[index]:
            self.in_flight[counter].append(done)
            self.pushed[counter] += 1
            popped = bisect_left(self.pop_positions[counter], done[_PLACE[counter.target]])
            most = self.pushed[counter] - popped
            self.peak[counter] = max(self.peak[counter], most)
            if most > self.config.token_limit:
                self.overflows.setdefault(counter, index)

    def _touch(self, index: int, unit: Unit, clock: _Clock, position: int) -> None:
        instruction = self.instructions[index]
        if isinstance(instruction, Transfer):
            for memory, write, elements in self.sets.transfer(instruction):
                self._follow(memory, index, write, elements)
                self._access(memory, self.histories[memory], index, unit, write, elements, clock, position)
            self._touch_dram(index, instruction, unit, clock, position)
            segments = self.shared.elements(index)
            stored = self.dram_history.last[Unit.STORE, True]
            self.uops.load(
                instruction, overwritten=segments is not None and bool((stored[segments] >= 0).any())
            )
        elif isinstance(instruction, Loops) and instruction.uop_count:
            self._follow(UOP.name, index, False, slice(instruction.uop_begin, instruction.uop_end))
            words = self.uops.words(instruction)
            if words is None:
                self.unknown.append(index)
                return
            access = self.sets.loops(instruction, words, self.settings[index])
            if access.fault is not None:
                self.faults.append((index, access.fault[1]))
            for memory, write, elements in access.touches:
                if memory != UOP.name:
                    self._follow(memory, index, write, elements)
                    self._access(
                        memory, self.histories[memory], index, unit, write, elements, clock, position
                    )

    def _follow(self, memory: str, index: int, write: bool, elements: Elements) -> None:
        """Record writes, and reads of unwritten elements."""
        written = self.written[memory]
        if write:
            written[elements] = True
        elif not written[elements].all():
            self.unwritten_count += 1
            if len(self.unwritten) < MOST_REPORTED:
                ids = np.arange(elements.start, elements.stop) if isinstance(elements, slice) else elements
                missing = ids[~written[elements]]
                where = (int(missing[0]), int(missing[-1]))
                self.unwritten.append(Unwritten(index=index, memory=memory, where=where))

    def _touch_dram(
        self, index: int, instruction: Transfer, unit: Unit, clock: _Clock, position: int
    ) -> None:
        segments = self.shared.elements(index)
        if segments is None:
            return
        write = not instruction.FILLS
        if write and self.shared.program is not None:
            hit = np.intersect1d(segments, self.shared.program)
            if len(hit):
                where = (self.shared.span(hit[0])[0], self.shared.span(hit[-1])[1])
                self._add_race(Race(first=-1, second=index, memory="dram", where=where, write=(False, True)))
        own = self.own_order if unit is Unit.STORE else None
        self._access("dram", self.dram_history, index, unit, write, segments, clock, position, own)

    def _access(
        self,
        memory: str,
        history: _History,
        index: int,
        unit: Unit,
        write: bool,
        elements: Elements,
        clock: _Clock,
        position: int,
        own: OwnOrder | None = None,
    ) -> None:
        for other, wrote, at, (low, high) in history.conflicts(unit, write, elements, clock, own):
            ids = np.arange(elements.start, elements.stop) if isinstance(elements, slice) else elements
            where = (int(ids[low]), int(ids[high]))
            if memory == "dram":
                where = (self.shared.span(where[0])[0], self.shared.span(where[1])[1])
            first = self.members[other][at]
            self._add_race(Race(first=first, second=index, memory=memory, where=where, write=(wrote, write)))
        history.record(unit, write, elements, position)

    def _add_race(self, race: Race) -> None:
        self.race_count += 1
        if len(self.races) < MOST_REPORTED:
            self.races.append(race)

    def _overflow(self, counter: Counter) -> None:
        message = (
            f"up to {self.peak[counter]} tokens from {counter.label} may be waiting at once; "
            f"a counter of token_bits={self.config.token_bits} holds {self.config.token_limit}"
        )
        fault = Fault(cause=Cause.TOKEN_OVERFLOW, message=message)
        self.faults.append((self.overflows[counter], fault))
