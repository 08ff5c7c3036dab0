"""The cycle-level simulation of a program: four units and the two halves of the bus."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from accel.core.config import Config
from accel.core.events import Event, EventKind, UnitCycles
from accel.core.faults import Cause, Fault, instruction_faults
from accel.core.isa import Instruction, Unit
from accel.core.timing_rules import WRITE_DELAY
from accel.core.token_rules import deadlock_place, explain_deadlock, stuck
from accel.sim.timing.compute import ComputeUnit
from accel.sim.timing.engine import Engine, Stop
from accel.sim.timing.fetch import Fetch
from accel.sim.timing.intervals import Interval, IntervalArray, covered
from accel.sim.timing.load import LoadUnit
from accel.sim.timing.pads import PadWriter
from accel.sim.timing.plan import Step, plan_steps
from accel.sim.timing.port import BurstLog, BurstRecord, ReadPort
from accel.sim.timing.store import StoreUnit

DEFAULT_MAX_CYCLES = 10**10
"""Cycles that a run may take unless the caller says otherwise."""


@dataclass(frozen=True, kw_only=True)
class TimingRun:
    """When everything happened, up to the end or the first error.

    Attributes:
        cycles: length of the run: up to and including the last cycle in which anything happens; cut short
            by an error, the cycles before the one in which it was found.
        steps: the instructions, with the cycles of hand-out, start and retirement; those that lie
            behind an error are not to be looked at (:meth:`events` leaves them out).
        logs: the bursts, reads and writes of each unit apart.
        pad_writes: per unit, when it writes pad words into a scratchpad.
        stop: the error that ended the run, or None.
    """

    config: Config
    cycles: int
    steps: list[Step]
    logs: tuple[BurstLog, ...]
    pad_writes: dict[Unit, list[Interval]]
    stop: Stop | None

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
        return [
            (step.index, step.retire) for step in self.steps if step.retire is not None and step.retire <= end
        ]

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
        tokens: counters at the start.
        checked: what is wrong with each instruction by itself, if the caller knows it.

    Cost is linear in instructions and bursts.
    """
    if checked is None:
        checked = instruction_faults(instructions, config)
    steps = plan_steps(instructions, config, faults or {}, checked)
    engine = Engine(config, tokens, max_cycles)
    fetch = Fetch(engine, steps, address)
    load = LoadUnit(engine, fetch.queues[Unit.LOAD])
    compute = ComputeUnit(engine, fetch.queues[Unit.COMPUTE])
    store = StoreUnit(engine, fetch.queues[Unit.STORE])
    logs = (fetch.log, load.log, compute.log, store.log, store.writes)
    readers = (compute, store, load, fetch) if config.post else (compute, load, fetch)
    _run(engine, ReadPort(config, readers), (load.pads, compute.pads))
    engine.find_overflow(steps)
    stop = engine.stop
    complete = all(step.retire is not None for step in steps)
    if stop is None and not complete and not engine.cut:
        stop = _deadlock(instructions, config, tokens, _last_cycle(steps, logs))
    late = [step.index for step in steps if step.retire is None or step.retire >= max_cycles]
    if late and (stop is None or stop.cycle >= max_cycles):
        message = f"the run takes more than {max_cycles} cycles (max_cycles)"
        stop = Stop(max_cycles, Unit.FETCH, late[0], Fault(cause=Cause.LIMIT, message=message))
    last = max((step.retire for step in steps if step.retire is not None), default=-1)
    cycles = stop.cycle if stop is not None else last + 1
    return TimingRun(
        config=config,
        cycles=cycles,
        steps=steps,
        logs=logs,
        pad_writes={Unit.LOAD: load.pads.writes(), Unit.COMPUTE: compute.pads.writes()},
        stop=stop,
    )


def _run(engine: Engine, port: ReadPort, writers: Sequence[PadWriter]) -> None:
    """Let everything happen. When no unit can go ahead by itself, the earliest decision is due: whatever is
    not known yet comes later, since it follows from this decision or from those after it."""
    while True:
        engine.advance()
        grant = port.next_cycle()
        writer = min(writers, key=lambda writer: writer.finish)
        if not engine.reaches(min(grant, writer.finish)):
            return
        if writer.finish <= grant:
            writer.settle()
        else:
            port.grant(grant, writer.finish)


def _last_cycle(steps: Sequence[Step], logs: Sequence[BurstLog]) -> int:
    """The last cycle in which anything is known to happen."""
    known = [
        cycle for step in steps for cycle in (step.dispatch, step.start, step.retire) if cycle is not None
    ]
    return max([0, *known, *(cycle for log in logs for cycle in log.lasts)])


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
    busy: list[Interval] = []
    flight: list[Interval] = []
    waits: list[Interval] = []
    if unit is Unit.FETCH:
        free = 0
        for step in run.steps:
            if step.arrival is None:
                flight.append((free, run.cycles))
                break
            handed = run.cycles if step.dispatch is None else step.dispatch
            flight.append((free, step.arrival))
            waits.append((max(free, step.arrival), handed))
            busy.append((handed, handed + 1))
            if step.dispatch is None:
                break
            free = handed + 1
    else:
        for step in run.steps:
            if step.unit is not unit or step.ready is None:
                continue
            waits.append((step.ready, run.cycles if step.start is None else step.start))
            if step.start is not None and step.pipelined:
                busy.append((step.start, step.start + step.uops))
            elif step.start is not None:
                flight.append((step.start, run.cycles if step.retire is None else step.retire + 1))
    work: list[list[Interval] | IntervalArray] = [busy]
    if unit is not Unit.FETCH:
        work.append(run.writes(unit))
    at_work = covered(work, run.cycles)
    with_flight = covered([*work, flight], run.cycles)
    with_waits = covered([*work, flight, waits], run.cycles)
    return UnitCycles(
        busy=at_work,
        memory_stall=with_flight - at_work,
        token_stall=with_waits - with_flight,
        idle=run.cycles - with_waits,
    )
