"""The cycle-level simulation of a program: four units and the two halves of the bus."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from accel.core.config import Config
from accel.core.events import Event, EventKind, UnitCycles
from accel.core.faults import STOPPED, Cause, Fault, instruction_faults, timeout_fault
from accel.core.isa import Instruction, Unit
from accel.core.timing_rules import WRITE_DELAY, dispatch_depth
from accel.core.token_rules import deadlock_place, explain_deadlock, stuck
from accel.sim.timing.compute import ComputeUnit
from accel.sim.timing.engine import Engine, Stop
from accel.sim.timing.fetch import Fetch
from accel.sim.timing.intervals import Interval, IntervalArray, covered
from accel.sim.timing.load import LoadUnit
from accel.sim.timing.pads import PadWriter
from accel.sim.timing.plan import Plan, Step
from accel.sim.timing.port import BurstLog, BurstRecord, ReadPort, quiet_cycle
from accel.sim.timing.recurring import NEVER
from accel.sim.timing.repeats import Repeats
from accel.sim.timing.store import StoreUnit
from accel.sim.timing.unit import Worker

DEFAULT_MAX_CYCLES = 10**10
"""Cycles that a run may take unless the caller says otherwise."""


UNKNOWN = -1
"""In columns, a cycle that is not known."""


class Columns(NamedTuple):
    """What is known of each instruction, int64[instructions]; see :class:`~accel.sim.timing.plan.Step`."""

    arrival: npt.NDArray[np.int64]
    dispatch: npt.NDArray[np.int64]
    ready: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]
    retire: npt.NDArray[np.int64]

    @classmethod
    def of(cls, plan: Plan, fetch: Fetch, workers: Sequence[Worker]) -> "Columns":
        """What is known at the end of a simulation."""
        found = cls(*(np.full(len(plan), UNKNOWN, dtype=np.int64) for _ in cls._fields))
        found.arrival[: len(fetch.arrivals)] = fetch.arrivals
        found.dispatch[: len(fetch.dispatches)] = fetch.dispatches
        for worker in workers:
            members = plan.members[worker.UNIT]
            waits = [] if worker.ready == NEVER else [worker.ready]
            for column, cycles in (
                (found.ready, [*worker.readies, *waits]),
                (found.start, worker.starts),
                (found.retire, worker.retires),
            ):
                column[members[: len(cycles)]] = cycles
        return found


@dataclass(frozen=True, kw_only=True)
class TimingRun:
    """When everything happened, up to the end or the first error.

    Attributes:
        cycles: length of the run: up to and including the last cycle in which anything happens; cut short
            by an error, the cycles before the one in which it was found.
        plan: the instructions.
        columns: their cycles.
        logs: the bursts, reads and writes of each unit apart.
        pad_writes: per unit, when it writes pad words into a scratchpad.
        stop: the error that ended the run, or None.
    """

    config: Config
    cycles: int
    plan: Plan
    columns: Columns
    logs: tuple[BurstLog, ...]
    pad_writes: dict[Unit, list[Interval]]
    stop: Stop | None

    @cached_property
    def steps(self) -> list[Step]:
        """The instructions, with the cycles of hand-out, start and retirement; those that lie behind an error
        are not to be looked at (:meth:`events` leaves them out)."""
        shapes = map(self.plan.shapes.__getitem__, self.plan.numbers.tolist())
        cycles = [[None if c == UNKNOWN else c for c in column.tolist()] for column in self.columns]
        return [
            Step(shape, index, *of)
            for index, (shape, of) in enumerate(zip(shapes, zip(*cycles, strict=True), strict=True))
        ]

    @property
    def bursts(self) -> list[BurstRecord]:
        """All bursts in order of their grant within the reads and the writes of each unit; none granted
        behind an error."""
        found = [burst for log in self.logs for burst in log.records()]
        return found if self.stop is None else [b for b in found if b.grant <= self.stop.cycle]

    def writes(self, unit: Unit) -> IntervalArray:
        """When a unit writes, also behind an error: a scratchpad, or in the case of STOREs the bus."""
        logs = [log for log in self.logs if log.unit is unit]
        data = [log.busy() + (0 if log.writes else WRITE_DELAY) for log in logs]
        pads = np.array(self.pad_writes.get(unit, []), dtype=np.int64).reshape(-1, 2)
        return np.concatenate([*data, pads])

    def events(self) -> list[Event]:
        """All events, sorted; none behind an error."""
        found: list[Event] = []
        for step in self.steps:
            _step_events(step, found)
        for burst in self.bursts:
            of = burst.instruction, burst.beats
            found.append(Event(burst.grant, burst.unit, EventKind.BURST_GRANT, *of))
            found.append(Event(burst.last, burst.unit, EventKind.BURST_LAST, *of))
        if self.stop is not None:
            found = [event for event in found if event.cycle <= self.stop.cycle]
        return sorted(found)

    def retirements(self) -> list[tuple[int, int]]:
        """Each instruction that retired, by its index, and the cycle; none behind an error."""
        end = self.cycles if self.stop is None else self.stop.cycle
        retire = self.columns.retire
        found = np.flatnonzero((retire != UNKNOWN) & (retire <= end))
        return list(zip(found.tolist(), retire[found].tolist(), strict=True))

    @cached_property
    def unit_cycles(self) -> dict[Unit, UnitCycles]:
        """Where each unit's cycles went."""
        return {unit: _unit_cycles(self, unit) for unit in Unit}


def _step_events(step: Step, found: list[Event]) -> None:
    index, unit = step.index, step.unit
    if step.dispatch is not None:
        found.append(Event(step.dispatch, Unit.FETCH, EventKind.QUEUE_PUSH, index, unit))
    if step.start is not None:
        found.append(Event(step.start, unit, EventKind.QUEUE_POP, index, unit))
        found.extend(Event(step.start, unit, EventKind.TOKEN_POP, index, c) for c in step.pops)
        found.append(Event(step.start, unit, EventKind.START, index, 0))
    if step.retire is not None:
        found.append(Event(step.retire, unit, EventKind.RETIRE, index, 0))
        found.extend(Event(step.retire, unit, EventKind.TOKEN_PUSH, index, c) for c in step.pushes)


def simulate_timing(
    instructions: Sequence[Instruction],
    config: Config,
    *,
    address: int,
    faults: Mapping[int, tuple[int, Fault]] | None = None,
    max_cycles: int = DEFAULT_MAX_CYCLES,
    stop_at: int | None = None,
    bus_timeout: int = 0,
    tokens: tuple[int, int, int, int] = (0, 0, 0, 0),
    checked: Sequence[Fault | None] | None = None,
) -> TimingRun:
    """Simulate a program's timing, which does not depend on tensor data.

    Args:
        instructions: the decoded program.
        config: geometry and timing.
        address: of the first instruction in DRAM, a multiple of 16.
        faults: what functional execution found wrong with micro-ops, by instruction.
        max_cycles: a longer run ends in cycle ``max_cycles`` with the cause ``limit``, which goes before
            any other error of that cycle.
        stop_at: the cycle in which the run is stopped, if it has not ended.
        bus_timeout: cycles without a transfer on the bus, although it owes one, that end the run; 0: none do.
        tokens: counters at the start.
        checked: what is wrong with each instruction by itself, if the caller knows it.

    Cost is linear in instructions and bursts.
    """
    if checked is None:
        checked = instruction_faults(instructions, config)
    plan = Plan(instructions, config, faults or {}, checked)
    last = max_cycles if stop_at is None else min(max_cycles, stop_at)
    engine = Engine(config, tokens, last)
    load, compute, store = LoadUnit(engine, plan), ComputeUnit(engine, plan), StoreUnit(engine, plan)
    fetch = Fetch(engine, plan, address, (load, compute, store))
    logs = (fetch.log, load.log, compute.log, store.log, store.writes)
    readers = (compute, store, load, fetch) if config.post else (compute, load, fetch)
    port = ReadPort(config, readers)
    repeats = Repeats(plan, engine, port, fetch, load, compute, store)
    _run(engine, port, (load.pads, compute.pads), fetch, repeats)
    engine.find_overflow(plan)
    stop = engine.stop
    columns = Columns.of(plan, fetch, (load, compute, store))
    retire = columns.retire
    if stop is None and (retire == UNKNOWN).any() and not engine.cut:
        stop = _deadlock(instructions, config, tokens, _last_cycle(columns, logs, config))
    message = f"the run takes more than {max_cycles} cycles (max_cycles)"
    whole = [(max_cycles, Fault(cause=Cause.LIMIT, message=message))]
    whole += [] if stop_at is None else [(stop_at, STOPPED)]
    if bus_timeout:
        whole.append((quiet_cycle(logs, bus_timeout), timeout_fault(bus_timeout)))
    cycle, fault = min(whole, key=lambda one: one[0])  # of several in a cycle the first
    late = np.flatnonzero((retire == UNKNOWN) | (retire >= cycle))
    if len(late) and (stop is None or stop.cycle >= cycle):
        stop = Stop(cycle, Unit.FETCH, int(late[0]), fault)
    cycles = stop.cycle if stop is not None else int(retire.max(initial=-1)) + 1
    return TimingRun(
        config=config,
        cycles=cycles,
        plan=plan,
        columns=columns,
        logs=logs,
        pad_writes={Unit.LOAD: load.pads.writes(), Unit.COMPUTE: compute.pads.writes()},
        stop=stop,
    )


def _run(
    engine: Engine, port: ReadPort, writers: Sequence[PadWriter], fetch: Fetch, repeats: Repeats
) -> None:
    """Let everything happen. When no unit can go ahead by itself, the earliest decision is due: whatever is
    not known yet comes later, since it follows from this decision or from those after it."""
    while True:
        engine.advance()
        if fetch.asked == repeats.next:
            repeats.look()
        grant = port.next_cycle()
        writer = min(writers, key=lambda writer: writer.finish)
        if not engine.reaches(min(grant, writer.finish)):
            return
        if writer.finish <= grant:
            writer.settle()
        else:
            port.grant(grant, writer.finish)


def _last_cycle(columns: Columns, logs: Sequence[BurstLog], config: Config) -> int:
    """The last cycle in which anything is known to happen, or an instruction gets into its queue."""
    known = [int(one.max(initial=0)) for one in (columns.start, columns.retire)]
    queued = int(columns.dispatch.max(initial=UNKNOWN)) + dispatch_depth(config) - 1
    return max([0, *known, queued, *(cycle for log in logs for cycle in log.lasts[-1:])])


def _deadlock(
    instructions: Sequence[Instruction], config: Config, tokens: tuple[int, int, int, int], last_cycle: int
) -> Stop:
    """The deadlock in words, found again by the token machine, which knows who could push."""
    waiting = stuck(instructions, config, tokens)
    fault = Fault(cause=Cause.DEADLOCK, message=explain_deadlock(waiting))
    unit, index = deadlock_place(waiting)
    return Stop(last_cycle + 1, unit, index, fault)


def _unit_cycles(run: TimingRun, unit: Unit) -> UnitCycles:
    """Classify each cycle: busy, else in flight, else waiting, else idle."""
    end, columns = run.cycles, run.columns
    if unit is Unit.FETCH:
        handed = int((columns.dispatch != UNKNOWN).sum())
        arrived = min(handed + 1, int((columns.arrival != UNKNOWN).sum()))
        dispatch = columns.dispatch[:handed]
        free = np.concatenate([[0], dispatch + 1])
        arrival = columns.arrival[:arrived]
        given = np.concatenate([dispatch, [end]])[:arrived]
        flight = _intervals(free[:arrived], arrival)
        if arrived == handed < len(columns.arrival):
            flight = np.concatenate([flight, _intervals(free[-1:], np.array([end]))])
        waits = _intervals(np.maximum(free[:arrived], arrival), given)
        work = [_intervals(dispatch, dispatch + 1)]
    else:
        found = run.plan.members[unit]
        found = found[columns.ready[found] != UNKNOWN]
        ready, start, retire = columns.ready[found], columns.start[found], columns.retire[found]
        waits = _intervals(ready, np.where(start == UNKNOWN, end, start))
        pipelined = np.array([one.pipelined for one in run.plan.shapes], dtype=bool)[run.plan.numbers[found]]
        taken = np.array([one.slots for one in run.plan.shapes], dtype=np.int64)[run.plan.numbers[found]]
        slots, loads = pipelined & (start != UNKNOWN), ~pipelined & (start != UNKNOWN)
        flight = _intervals(start[loads], np.where(retire == UNKNOWN, end, retire + 1)[loads])
        work = [_intervals(start[slots], start[slots] + taken[slots]), run.writes(unit)]
    at_work = covered(work, end)
    with_flight = covered([*work, flight], end)
    with_waits = covered([*work, flight, waits], end)
    return UnitCycles(
        busy=at_work,
        memory_stall=with_flight - at_work,
        token_stall=with_waits - with_flight,
        idle=end - with_waits,
    )


def _intervals(starts: npt.NDArray[np.int64], stops: npt.NDArray[np.int64]) -> IntervalArray:
    return np.stack([starts, stops], axis=1)
