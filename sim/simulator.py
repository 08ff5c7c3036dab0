"""A simulated run: first function, then timing.

Functional execution finds faults in micro-ops, the timing model the earliest error. After an error, memory
has the data of all granted write bursts, as on the machine.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from accel.base.blas import one_blas_thread
from accel.base.run_choices import DEFAULT_MAX_CYCLES, DEFAULT_MAX_UOPS
from accel.core.config import Config
from accel.core.fault_causes import Cause, fault_error, instruction_faults
from accel.core.instruction_access import dram_rows
from accel.core.isa import Instruction, Store, Unit
from accel.core.timing_rules import transfer_bursts
from accel.image.dram import Dram
from accel.sim.functional.executor import Executor, FunctionalRun, Order, run_functional
from accel.sim.functional.load_store import stored_bytes
from accel.sim.functional.scratchpads import Scratchpads
from accel.sim.timing.timing_model import simulate_timing
from accel.sim.timing.timing_run import TimingRun


class Simulation(Struct, frozen=True, kw_only=True):
    """``timing`` is None for functional execution."""

    functional: FunctionalRun
    timing: TimingRun | None

    def raise_if_bad(self) -> None:
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
        dram, pads: changed in place.
        timed: simulate cycles. Otherwise execute only, in ``order``.
    """
    before = (dram.copy(), pads.copy()) if timed else None
    checked = instruction_faults(instructions, config)
    executor = Executor(config, dram, pads)
    with one_blas_thread():
        functional = run_functional(
            instructions,
            executor,
            order=order,
            seed=seed,
            max_uops=max_uops,
            tokens=tokens,
            overflows=not timed,  # overflows depend on time
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
        dram.assign(before[0])
        pads.assign(before[1])
        _run_until(timing, instructions, Executor(config, dram, pads))
    return Simulation(functional=functional, timing=timing)


def _run_until(timing: TimingRun, instructions: Sequence[Instruction], executor: Executor) -> None:
    """Execute the instructions started before the end, STOREs only as far as bursts were granted."""
    assert timing.stop is not None
    granted: Counter[int] = Counter()
    for log in timing.logs:
        if log.unit is Unit.STORE:
            granted.update(log.instructions[: bisect_right(log.grants, timing.stop.cycle)])
    started = [s for s in timing.instruction_runs if s.start is not None and s.start <= timing.stop.cycle]
    for step in sorted(started, key=lambda s: (s.start, s.index)):
        instruction = instructions[step.index]
        if isinstance(instruction, Store) and granted[step.index] < len(step.bursts):
            _store_bursts(instruction, executor, granted[step.index])
        else:
            executor.execute(instruction)


def _store_bursts(instruction: Store, executor: Executor, count: int) -> None:
    rows = dram_rows(instruction, executor.config)
    assert rows is not None
    data = stored_bytes(instruction, executor.pads, executor.state)
    bus = executor.config.bus_bytes
    position = 0
    row_end = rows.row_bytes
    for burst in transfer_bursts(rows, executor.config)[:count]:
        length = min((burst.address // bus + burst.beats) * bus - burst.address, row_end - position)
        executor.dram.write(burst.address, data[position : position + length])
        position += length
        if position == row_end:
            row_end += rows.row_bytes
