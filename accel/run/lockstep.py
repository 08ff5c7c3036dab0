"""Lockstep of simulator and hardware."""

from collections.abc import Mapping
from typing import Any, NamedTuple, TypedDict

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from accel.base.errors import HardwareError
from accel.base.records import replace
from accel.base.run_choices import DEFAULT_MAX_CYCLES, DEFAULT_MAX_UOPS
from accel.core.config import INSTRUCTION_BYTES, Config
from accel.core.events import listed_events
from accel.core.fault_causes import Cause
from accel.core.timing_rules import compute_depth, dispatch_depth, store_depth
from accel.hw.engines.engine_driver import Engine
from accel.hw.engines.hardware_run import Behaviour, HardwareRun
from accel.image.dram import Dram
from accel.run.backends.rtl_backend import run_on_hardware
from accel.run.backends.simulator_backend import Simulator
from accel.run.lockstep_difference import (
    Difference,
    compare,
    compare_accesses,
    compare_leftovers,
    compare_results,
    event_text,
    moved_bytes,
)
from accel.run.lockstep_scope import Scope, scope_of
from accel.run.program import Program
from accel.run.run_options import RunOptions
from accel.sim.functional.scratchpads import Scratchpads
from accel.sim.simulator import Simulation
from accel.sim.timing.timed_program import TimedProgram
from accel.sim.timing.timing_run import TimingRun

__all__ = [
    "Difference",
    "Lockstep",
    "Scope",
    "compare",
    "event_text",
    "lockstep",
    "moved_bytes",
    "scope_of",
]

_SLOWDOWN = 100
"""On hostile memory, a run takes at most :func:`cycles_without_overlap` times this factor. Such memory
accepts an address or a beat in half of the cycles, and answers up to 63 cycles late."""
_GRACE_CYCLES = 100_000
"""Hardware that runs this long after its limit hangs."""


class Lockstep(Struct, frozen=True, kw_only=True):
    """The result of a comparison.

    Attributes:
        cycles: the simulator's cycles. The hardware's are equal if the scope has cycles.
        cause: the end of the simulator's run.
        events: compared events, if the scope has cycles.
    """

    cycles: int
    cause: Cause
    events: int | None
    scope: Scope
    difference: Difference | None

    @property
    def equal(self) -> bool:
        return self.difference is None

    def to_dict(self) -> dict[str, Any]:
        return {
            "equal": self.equal,
            "cycles": self.cycles,
            "cause": self.cause.label,
            "events": self.events,
            "scope": self.scope.value,
            "difference": None if self.difference is None else self.difference.to_dict(),
        }


def lockstep(
    program: Program,
    engine: Engine,
    inputs: Mapping[str, npt.NDArray[Any]] | None = None,
    *,
    seed: int = 0,
    max_cycles: int = DEFAULT_MAX_CYCLES,
    max_uops: int = DEFAULT_MAX_UOPS,
    hostile: bool = False,
) -> Lockstep:
    """Run a program on both sides, from equal memory and scratchpads, and compare.

    Args:
        seed: of all random values.
        max_cycles: limit of the run. With ``hostile``, it holds for the hardware only if the simulator
            reached it.
        max_uops: the simulator's limit, instead of the program's.
        hostile: let the hardware's memory answer late and refuse at random.

    Raises:
        LimitExceeded: the program has more micro-ops.
        AccelError: the run has too many events.
        ShapeError: an input does not fit.
    """
    options = RunOptions(seed=seed, max_cycles=max_cycles, max_uops=max_uops)
    program, sim_dram = program.prepared(inputs, options.seed)
    program = replace(program, start=replace(program.start, max_uops=None))  # hardware has no limit
    rtl_dram = sim_dram.copy()
    pads = Scratchpads.random(program.config, seed)
    sim_pads = pads.copy()
    simulation = Simulator(timed=True).simulate(program, sim_dram, sim_pads, options)
    if simulation.timing is None:
        simulation.raise_if_bad()
    assert simulation.timing is not None
    stop = simulation.timing.stop
    proven = scope_of(program)
    max_cycles = options.within(program.start).max_cycles
    is_exact = not hostile and proven.has_cycles
    limits = _hardware_limits(simulation.timing, max_cycles, exact=is_exact)
    scope = proven.on_hostile_memory(ends_well=stop is None) if hostile else proven
    difference: Difference | None
    memory = Behaviour(hostile=hostile, seed=seed)
    try:
        run = run_on_hardware(program, rtl_dram, pads, engine, **limits, behaviour=memory, record=True)
    except HardwareError as error:
        difference = Difference(what="rules", message=str(error))
    else:
        if hostile and run.cause is Cause.TOKEN_OVERFLOW:
            scope = Scope.END  # memory decides whether a counter overflows, and so which instructions run
        sides = _Sides(program, simulation, sim_dram, sim_pads, run, rtl_dram, engine)
        difference = _difference(sides, proven, hostile=hostile)
    return Lockstep(
        cycles=simulation.timing.cycles,
        cause=Cause.NONE if stop is None else stop.fault.cause,
        events=len(listed_events(simulation.timing)) if scope.has_cycles else None,
        scope=scope,
        difference=difference,
    )


class _Sides(NamedTuple):
    program: Program
    simulation: Simulation
    sim_dram: Dram
    sim_pads: Scratchpads
    run: HardwareRun
    rtl_dram: Dram
    engine: Engine


def _difference(sides: _Sides, proven: Scope, *, hostile: bool) -> Difference | None:
    timing, run = sides.simulation.timing, sides.run
    assert timing is not None
    if proven is Scope.END:
        return None
    comparison = compare_results if hostile else compare
    difference = comparison(sides.program, proven, timing, run, sides.sim_dram, sides.rtl_dram)
    ends_well = timing.stop is None and run.cause is Cause.NONE
    if difference is None and ends_well and proven is Scope.EVERYTHING:
        difference = compare_leftovers(sides.simulation, sides.sim_pads, run, sides.engine)
        difference = difference or compare_accesses(sides.program, run)
    return difference


class _HardwareLimits(TypedDict):
    max_cycles: int
    patience: int


def _hardware_limits(timing: TimingRun, max_cycles: int, *, exact: bool) -> _HardwareLimits:
    longest = min(DEFAULT_MAX_CYCLES, _SLOWDOWN * cycles_without_overlap(timing.program, timing.config))
    reached = timing.stop is not None and timing.stop.fault.cause is Cause.LIMIT
    limit = max_cycles if exact or reached else longest
    return {"max_cycles": limit, "patience": min(limit, longest) + _GRACE_CYCLES}


def cycles_without_overlap(program: TimedProgram, config: Config) -> int:
    """Return an upper bound on a program's cycles."""
    latency = max(config.read_latency, config.write_latency) + store_depth(config)
    fetched = latency + -(-INSTRUCTION_BYTES // config.bus_bytes)
    pipeline = dispatch_depth(config) + compute_depth(config)
    total = 0
    for timing, count in zip(program.timings, np.bincount(program.numbers).tolist(), strict=True):
        moved = latency * len(timing.bursts) + timing.beat_cycles * sum(timing.bursts) + timing.pad_words
        total += count * (fetched + pipeline + max(1, timing.slots) + moved)
    return total
