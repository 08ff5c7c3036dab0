"""The result of a timing simulation."""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from accel.core.config import Config
from accel.core.events import MAX_RECORDS, Event, EventKind, UnitCycles
from accel.core.isa import Unit
from accel.core.timing_rules import WRITE_DELAY
from accel.sim.timing.bus_ports import BurstLog, BurstRecord
from accel.sim.timing.cycle_intervals import NO_INTERVALS, IntervalArray, covered_cycles
from accel.sim.timing.fetch import FetchUnit
from accel.sim.timing.periodic_state import NEVER
from accel.sim.timing.queued_unit import QueuedUnit
from accel.sim.timing.timed_program import InstructionRun, TimedProgram
from accel.sim.timing.timing_kernel import Stop

UNKNOWN = -1
"""An unknown cycle."""


class InstructionCycles(NamedTuple):
    """The cycles of all instructions, int64[instructions] each, as in ``InstructionRun``."""

    arrival: npt.NDArray[np.int64]
    dispatch: npt.NDArray[np.int64]
    ready: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]
    retire: npt.NDArray[np.int64]

    @classmethod
    def of(cls, program: TimedProgram, fetch: FetchUnit, units: Sequence[QueuedUnit]) -> "InstructionCycles":
        found = cls(*(np.full(len(program), UNKNOWN, dtype=np.int64) for _ in cls._fields))
        found.arrival[: len(fetch.arrivals)] = fetch.arrivals
        found.dispatch[: len(fetch.dispatches)] = fetch.dispatches
        for unit in units:
            members = program.members[unit.UNIT]
            waiting = [] if unit.ready == NEVER else [unit.ready]
            for column, cycles in (
                (found.ready, [*unit.readies, *waiting]),
                (found.start, unit.starts),
                (found.retire, unit.retires),
            ):
                column[members[: len(cycles)]] = cycles
        return found


class TimingRun(Struct, frozen=True, kw_only=True, dict=True):
    """The cycles of a run. Cycles and bursts after an error are not valid.

    Attributes:
        cycles: length of the run, or the cycles before the error.
        logs: each unit's reads, and the store unit's writes.
        pad_writes: by unit, the cycles in which it writes pad words.
        stop: the error that ended the run, or None.
    """

    config: Config
    cycles: int
    program: TimedProgram
    columns: InstructionCycles
    logs: tuple[BurstLog, ...]
    pad_writes: dict[Unit, IntervalArray]
    stop: Stop | None

    @cached_property
    def instruction_runs(self) -> list[InstructionRun]:
        """:meth:`events` omits invalid ones."""
        timings = map(self.program.timings.__getitem__, self.program.numbers.tolist())
        cycles = [[None if c == UNKNOWN else c for c in column.tolist()] for column in self.columns]
        return [
            InstructionRun(timing, index, *own)
            for index, (timing, own) in enumerate(zip(timings, zip(*cycles, strict=True), strict=True))
        ]

    @property
    def bursts(self) -> list[BurstRecord]:
        """All bursts granted up to the end, by unit."""
        found = [burst for log in self.logs for burst in log.records()]
        return found if self.stop is None else [b for b in found if b.grant <= self.stop.cycle]

    def writes(self, unit: Unit) -> IntervalArray:
        logs = [log for log in self.logs if log.unit is unit]
        data = [log.busy_intervals() + (0 if log.writes else WRITE_DELAY) for log in logs]
        return np.concatenate([*data, self.pad_writes.get(unit, NO_INTERVALS)])

    @property
    def record_count(self) -> int:
        columns = self.columns.dispatch, self.columns.start, self.columns.retire
        bursts = sum(len(log.grants) for log in self.logs)
        return 2 * bursts + sum(int((column != UNKNOWN).sum()) for column in columns)

    def events(self) -> list[Event] | None:
        if self.record_count > MAX_RECORDS:
            return None
        found: list[Event] = []
        for one in self.instruction_runs:
            _add_instruction_events(one, found)
        for log in self.logs:
            unit = log.unit
            rows = zip(log.instructions, log.beats, log.grants, log.lasts, strict=True)
            for index, beats, grant, last in rows:
                found.append(Event(grant, unit, EventKind.BURST_GRANT, index, beats))
                found.append(Event(last, unit, EventKind.BURST_LAST, index, beats))
        if self.stop is not None:
            found = [event for event in found if event.cycle <= self.stop.cycle]
        found.sort()
        return found

    def retirements(self) -> list[tuple[int, int]]:
        end = self.cycles if self.stop is None else self.stop.cycle
        retire = self.columns.retire
        found = np.flatnonzero((retire != UNKNOWN) & (retire <= end))
        return list(zip(found.tolist(), retire[found].tolist(), strict=True))

    @cached_property
    def unit_cycles(self) -> dict[Unit, UnitCycles]:
        return {unit: _unit_cycles(self, unit) for unit in Unit}


def _add_instruction_events(one: InstructionRun, found: list[Event]) -> None:
    index, unit = one.index, one.unit
    if one.dispatch is not None:
        found.append(Event(one.dispatch, Unit.FETCH, EventKind.QUEUE_PUSH, index, unit))
    if one.start is not None:
        found.append(Event(one.start, unit, EventKind.QUEUE_POP, index, unit))
        found.extend(Event(one.start, unit, EventKind.TOKEN_POP, index, c) for c in one.pops)
        found.append(Event(one.start, unit, EventKind.START, index, 0))
    if one.retire is not None:
        found.append(Event(one.retire, unit, EventKind.RETIRE, index, 0))
        found.extend(Event(one.retire, unit, EventKind.TOKEN_PUSH, index, c) for c in one.pushes)


def _unit_cycles(run: TimingRun, unit: Unit) -> UnitCycles:
    intervals = _fetch_intervals(run) if unit is Unit.FETCH else _worker_intervals(run, unit)
    busy, in_flight, waiting = intervals
    end = run.cycles
    busy_cycles = covered_cycles(busy, end)
    with_flight = covered_cycles([*busy, in_flight], end)
    with_waits = covered_cycles([*busy, in_flight, waiting], end)
    return UnitCycles(
        busy=busy_cycles,
        memory_stall=with_flight - busy_cycles,
        token_stall=with_waits - with_flight,
        idle=end - with_waits,
    )


_StateIntervals = tuple[list[IntervalArray], IntervalArray, IntervalArray]
"""Intervals in which a unit is busy, has something in flight, and waits for tokens or room."""


def _fetch_intervals(run: TimingRun) -> _StateIntervals:
    end, columns = run.cycles, run.columns
    dispatched = int((columns.dispatch != UNKNOWN).sum())
    arrived = min(dispatched + 1, int((columns.arrival != UNKNOWN).sum()))
    dispatch = columns.dispatch[:dispatched]
    free = np.concatenate([[0], dispatch + 1])
    arrival = columns.arrival[:arrived]
    arriving = _intervals(free[:arrived], arrival)
    if arrived == dispatched < len(columns.arrival):
        arriving = np.concatenate([arriving, _intervals(free[-1:], np.array([end]))])
    left = np.concatenate([dispatch, [end]])[:arrived]
    waiting = _intervals(np.maximum(free[:arrived], arrival), left)
    return [_intervals(dispatch, dispatch + 1)], arriving, waiting


def _worker_intervals(run: TimingRun, unit: Unit) -> _StateIntervals:
    end, columns, program = run.cycles, run.columns, run.program
    found = program.members[unit]
    found = found[columns.ready[found] != UNKNOWN]
    ready, start, retire = columns.ready[found], columns.start[found], columns.retire[found]
    waiting = _intervals(ready, np.where(start == UNKNOWN, end, start))
    numbers = program.numbers[found]
    is_pipelined = np.array([one.is_pipelined for one in program.timings], dtype=bool)[numbers]
    slots = np.array([one.slots for one in program.timings], dtype=np.int64)[numbers]
    has_started = start != UNKNOWN
    issues, transfers = is_pipelined & has_started, ~is_pipelined & has_started
    in_flight = _intervals(start[transfers], np.where(retire == UNKNOWN, end, retire + 1)[transfers])
    return [_intervals(start[issues], start[issues] + slots[issues]), run.writes(unit)], in_flight, waiting


def _intervals(starts: npt.NDArray[np.int64], stops: npt.NDArray[np.int64]) -> IntervalArray:
    return np.stack([starts, stops], axis=1)
