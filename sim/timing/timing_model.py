"""The cycle-level simulation of a program."""

from collections.abc import Mapping, Sequence

import numpy as np

from accel.base.run_choices import DEFAULT_MAX_CYCLES
from accel.core.config import Config
from accel.core.fault_causes import STOPPED, Cause, Fault, instruction_faults, timeout_fault
from accel.core.isa import Instruction, Unit
from accel.core.timing_rules import dispatch_depth
from accel.core.token_rules import deadlock_place, explain_deadlock, stuck
from accel.sim.timing.bus_ports import BurstLog, ReadPort, timeout_cycle
from accel.sim.timing.compute import ComputeUnit
from accel.sim.timing.fast_forward import FastForward
from accel.sim.timing.fetch import FetchUnit
from accel.sim.timing.load import LoadUnit
from accel.sim.timing.pad_writer import PadWriter
from accel.sim.timing.store import StoreUnit
from accel.sim.timing.timed_program import MAX_BUS_INTERVALS, InstructionTiming, TimedProgram
from accel.sim.timing.timing_kernel import Stop, TimingKernel
from accel.sim.timing.timing_run import UNKNOWN, InstructionCycles, TimingRun


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
    sound: dict[int, InstructionTiming] | None = None,
) -> TimingRun:
    """Simulate a program's timing, independent of tensor data, in time linear in instructions and bursts.

    Args:
        address: of the first instruction in DRAM, a multiple of 16.
        faults: by instruction, the micro-op and fault that functional execution found.
        max_cycles, stop_at, bus_timeout: end the run as in ``docs/reference/timing.md``. A ``bus_timeout`` of
            0 does not.
        sound: timings of fault-free instructions by ``id``, for programs that share them. The caller keeps
            these alive. New timings are added.
    """
    if checked is None:
        checked = instruction_faults(instructions, config)
    program = TimedProgram(instructions, config, faults or {}, checked, sound)
    horizon = max_cycles if stop_at is None else min(max_cycles, stop_at)
    if 2 * horizon > MAX_BUS_INTERVALS:  # at most one read and one write per cycle
        program.check_bus_intervals(instructions)
    kernel = TimingKernel(config, tokens, horizon)
    load, compute, store = LoadUnit(kernel, program), ComputeUnit(kernel, program), StoreUnit(kernel, program)
    fetch = FetchUnit(kernel, program, address, (load, compute, store))
    port = ReadPort(config, (compute, store, load, fetch) if config.post else (compute, load, fetch))
    fast_forward = FastForward(program, kernel, port, fetch, load, compute, store)
    _run(kernel, port, (load.pads, compute.pads), fetch, fast_forward)
    kernel.check_overflow(program)
    logs = (fetch.log, load.log, compute.log, store.log, store.writes)
    columns = InstructionCycles.of(program, fetch, (load, compute, store))
    stop = kernel.stop
    if stop is None and (columns.retire == UNKNOWN).any() and not kernel.passed_horizon:
        stop = _deadlock(instructions, config, tokens, _last_cycle(columns, logs, config))
    stop = _end_from_outside(stop, columns, logs, max_cycles, stop_at, bus_timeout)
    return TimingRun(
        config=config,
        cycles=int(columns.retire.max(initial=-1)) + 1 if stop is None else stop.cycle,
        program=program,
        columns=columns,
        logs=logs,
        pad_writes={Unit.LOAD: load.pads.writes(), Unit.COMPUTE: compute.pads.writes()},
        stop=stop,
    )


def _run(
    kernel: TimingKernel,
    port: ReadPort,
    pad_writers: tuple[PadWriter, PadWriter],
    fetch: FetchUnit,
    fast_forward: FastForward,
) -> None:
    """Simulate to the end or the horizon. When no unit can proceed, take the earliest read grant or
    completion of pad words: all unknown events are later."""
    of_loads, of_compute = pad_writers
    while True:
        kernel.run_units()
        if fetch.granted == fast_forward.next_check:
            fast_forward.check()
        grant = port.next_grant()
        writer = of_compute if of_compute.completion < of_loads.completion else of_loads
        completion = writer.completion
        if not kernel.reaches(grant if grant < completion else completion):
            return
        if completion <= grant:
            writer.complete_first()
        else:
            port.grant(grant, completion)


def _last_cycle(columns: InstructionCycles, logs: Sequence[BurstLog], config: Config) -> int:
    known = [int(column.max(initial=0)) for column in (columns.start, columns.retire)]
    queued = int(columns.dispatch.max(initial=UNKNOWN)) + dispatch_depth(config) - 1
    return max([0, *known, queued, *(cycle for log in logs for cycle in log.lasts[-1:])])


def _deadlock(
    instructions: Sequence[Instruction], config: Config, tokens: tuple[int, int, int, int], last_cycle: int
) -> Stop:
    waiting = stuck(instructions, config, tokens)
    fault = Fault(cause=Cause.DEADLOCK, message=explain_deadlock(waiting))
    unit, index = deadlock_place(waiting)
    return Stop(last_cycle + 1, unit, index, fault)


def _end_from_outside(
    stop: Stop | None,
    columns: InstructionCycles,
    logs: Sequence[BurstLog],
    max_cycles: int,
    stop_at: int | None,
    bus_timeout: int,
) -> Stop | None:
    """Return the earliest end. In one cycle, the limit precedes software, a bus timeout and ``stop``."""
    message = f"the run takes more than {max_cycles} cycles (max_cycles)"
    ends = [(max_cycles, Fault(cause=Cause.LIMIT, message=message))]
    if stop_at is not None:
        ends.append((stop_at, STOPPED))
    if bus_timeout:
        ends.append((timeout_cycle(logs, bus_timeout), timeout_fault(bus_timeout)))
    cycle, fault = min(ends, key=lambda one: one[0])
    unretired = np.flatnonzero((columns.retire == UNKNOWN) | (columns.retire >= cycle))
    if len(unretired) and (stop is None or stop.cycle >= cycle):
        return Stop(cycle, Unit.FETCH, int(unretired[0]), fault)
    return stop
