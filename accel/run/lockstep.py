"""Simulator and hardware side by side: the same program from the same state, and everything compared."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt

from accel.base.errors import HardwareError
from accel.core.faults import Cause
from accel.hw.engines.driver import Engine
from accel.hw.engines.run import Behaviour
from accel.run.backends.rtl import run_on_hardware
from accel.run.backends.simulator import Simulator
from accel.run.difference import Difference, compare, compare_ends, event_text, left_difference, moved_bytes
from accel.run.options import RunOptions
from accel.run.program import Program
from accel.run.scope import Scope, scope_of
from accel.sim.functional.executor import DEFAULT_MAX_UOPS
from accel.sim.functional.scratchpads import Scratchpads
from accel.sim.timing.model import DEFAULT_MAX_CYCLES

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

_PATIENCE = 100_000
"""Clock cycles that the hardware may take longer than the simulator before it is given up."""


@dataclass(frozen=True, kw_only=True)
class Lockstep:
    """What came of a comparison.

    Attributes:
        cycles: of the simulator; compared only if the scope has cycles.
        cause: how the run ended in the simulator.
        events: how many were compared; None if the scope has no cycles.
        scope: what was compared.
        difference: the first, or None.
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
        program: with the timing of this run.
        engine: the hardware, after a reset.
        inputs: arrays by name; those not given are random.
        seed: of random inputs, scratchpad contents, and hostile memory.
        max_cycles, max_uops: limits; that of micro-ops holds for both sides' programs as a whole, and the
            program's own is left out.
        hostile: let the hardware's memory answer late and refuse at random. Cycles differ then; memory must
            not, where the program ends well.

    Raises:
        LimitExceeded: the program has more micro-ops.
        ShapeError: an input does not fit.
    """
    options = RunOptions(seed=seed, max_cycles=max_cycles, max_uops=max_uops)
    program, sim_dram = program.prepared(inputs, options.seed)
    program = replace(program, start=replace(program.start, max_uops=None))  # hardware does not count them
    rtl_dram = sim_dram.copy()
    pads = Scratchpads.random(program.config, seed)
    sim_pads = pads.copy()
    simulation = Simulator(timed=True).simulate(program, sim_dram, sim_pads, options)
    if simulation.timing is None:
        simulation.raise_if_bad()
    assert simulation.timing is not None
    stop = simulation.timing.stop
    proven = scope_of(program)
    scope = proven.whatever_memory_does(ends_well=stop is None) if hostile else proven
    try:
        run = run_on_hardware(
            program,
            rtl_dram,
            pads,
            engine,
            max_cycles=DEFAULT_MAX_CYCLES if hostile else options.within(program.start).max_cycles,
            behaviour=Behaviour(hostile=hostile, seed=seed),
            record=True,
            patience=100 * simulation.timing.cycles + _PATIENCE,
        )
    except HardwareError as error:
        difference: Difference | None = Difference(what="rules", message=str(error))
    else:
        if hostile and run.cause is Cause.TOKEN_OVERFLOW:
            scope = Scope.END  # legal where counters may overflow, and then what is done depends on time
        if proven is Scope.END:
            difference = None
        elif hostile:
            difference = compare_ends(program, proven, simulation.timing, run, sim_dram, rtl_dram)
        else:
            difference = compare(program, proven, simulation.timing, run, sim_dram, rtl_dram)
        well = stop is None and run.cause is Cause.NONE
        if difference is None and well and proven is Scope.EVERYTHING:
            difference = left_difference(simulation, sim_pads, run, engine)
    return Lockstep(
        cycles=simulation.timing.cycles,
        cause=Cause.NONE if stop is None else stop.fault.cause,
        events=len(simulation.timing.events()) if scope.has_cycles else None,
        scope=scope,
        difference=difference,
    )
