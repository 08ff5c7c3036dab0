"""A whole run: function and time of one program.

Timing does not depend on tensor data, so the two are computed one after the other: execution finds what
micro-ops are wrong, the timing model finds which error comes first. If there is one, memory is brought
to the state in which the machine leaves it: whatever was granted to the write port has been written.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from accel.base.blas import one_blas_thread
from accel.core.access import dram_rows
from accel.core.config import Config
from accel.core.faults import Cause, fault_error, instruction_faults
from accel.core.isa import Instruction, Store, Unit
from accel.core.timing_rules import transfer_bursts
from accel.image.dram import Dram
from accel.sim.functional.executor import (
    DEFAULT_MAX_UOPS,
    Executor,
    FunctionalRun,
    Order,
    run_functional,
)
from accel.sim.functional.scratchpads import Scratchpads
from accel.sim.functional.transfers import stored
from accel.sim.timing.model import DEFAULT_MAX_CYCLES, TimingRun, simulate_timing


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """What a simulated run gave; ``timing`` is None for functional execution."""

    functional: FunctionalRun
    timing: TimingRun | None

    def raise_if_bad(self) -> None:
        """Raise what ended the run early.

        Raises:
            MachineError, LimitExceeded, DeadlockError: with cause, instruction and cycle.
        """
        if self.timing is None or Cause.LIMIT in {f.cause for _, f in self.functional.faults.values()}:
            self.functional.raise_if_bad()
        elif self.timing.stop is not None:
            stop = self.timing.stop
            raise fault_error(stop.fault, stop.index, stop.cycle)


def simulate(
    instructions: Sequence[Instruction],
    config: Config,
    dram: Dram,
    pads: Scratchpads,
    *,
    address: int,
    tokens: tuple[int, int, int, int] = (0, 0, 0, 0),
    timed: bool = True,
    order: Order = "program",
    seed: int = 0,
    max_cycles: int = DEFAULT_MAX_CYCLES,
    max_uops: int = DEFAULT_MAX_UOPS,
    stop_at: int | None = None,
    bus_timeout: int = 0,
) -> Simulation:
    """Run a program.

    Args:
        instructions: the decoded program.
        config: geometry and timing.
        dram: memory before the run; it is changed.
        pads: scratchpads before the run; they are changed.
        address: of the first instruction in DRAM.
        tokens: the counters before the run.
        timed: simulate cycles; otherwise only what the program computes, in ``order``.
        order, seed: see :func:`~accel.sim.functional.executor.run_functional`.
        max_cycles, max_uops: limits; a run that would pass one ends with the cause ``limit``.
        stop_at, bus_timeout: see :func:`~accel.sim.timing.model.simulate_timing`.
    """
    before = (dram.copy(), pads.copy()) if timed else None
    checked = instruction_faults(instructions, config)
    with one_blas_thread():
        functional = run_functional(
            instructions,
            Executor(config, dram, pads),
            order=order,
            seed=seed,
            max_uops=max_uops,
            tokens=tokens,
            overflows=not timed,  # whether a counter overflows is a matter of time
            checked=checked,
        )
    if before is None or any(f.cause is Cause.LIMIT for _, f in functional.faults.values()):
        return Simulation(functional=functional, timing=None)
    timing = simulate_timing(
        instructions,
        config,
        address=address,
        faults=functional.faults,
        max_cycles=max_cycles,
        stop_at=stop_at,
        bus_timeout=bus_timeout,
        tokens=tokens,
        checked=checked,
    )
    if timing.stop is not None:
        _restore(dram, pads, *before)
        _run_until(timing, instructions, Executor(config, dram, pads))
    return Simulation(functional=functional, timing=timing)


def _restore(dram: Dram, pads: Scratchpads, old_dram: Dram, old_pads: Scratchpads) -> None:
    dram.assign(old_dram)
    for pad in pads.held:
        np.copyto(pads.of(pad), old_pads.of(pad))


def _run_until(timing: TimingRun, instructions: Sequence[Instruction], executor: Executor) -> None:
    """Execute what had started when the run ended; STOREs as far as their bursts were granted."""
    assert timing.stop is not None
    granted: dict[int, int] = {}
    for burst in timing.bursts:
        if burst.unit is Unit.STORE:
            granted[burst.instruction] = granted.get(burst.instruction, 0) + 1
    started = [s for s in timing.steps if s.start is not None and s.start <= timing.stop.cycle]
    for step in sorted(started, key=lambda s: (s.start, s.index)):
        instruction = instructions[step.index]
        if isinstance(instruction, Store) and granted.get(step.index, 0) < len(step.bursts):
            _store_bursts(instruction, executor, granted.get(step.index, 0))
        else:
            executor.execute(instruction)


def _store_bursts(instruction: Store, executor: Executor, count: int) -> None:
    """Write the first ``count`` bursts of a STORE."""
    rows = dram_rows(instruction, executor.config)
    assert rows is not None
    data = stored(instruction, executor.pads, executor.state)
    bus = executor.config.bus_bytes
    position = 0
    row_end = rows.row_bytes
    for burst in transfer_bursts(rows, executor.config)[:count]:
        length = min((burst.address // bus + burst.beats) * bus - burst.address, row_end - position)
        executor.dram.write(burst.address, data[position : position + length])
        position += length
        if position == row_end:
            row_end += rows.row_bytes
