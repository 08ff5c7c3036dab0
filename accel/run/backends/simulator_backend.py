"""The simulators as backends."""

from accel.base.errors import LimitExceeded, MachineError
from accel.base.run_choices import TIMED, UNTIMED
from accel.image.dram import Dram
from accel.image.image import Image
from accel.run.backends.backend import Backend, Execution
from accel.run.run_options import RunOptions
from accel.sim.functional.scratchpads import Scratchpads
from accel.sim.simulator import Simulation, simulate


class Simulator(Backend):
    """The cycle-level simulator, or without ``timed`` the functional one."""

    def __init__(self, *, timed: bool) -> None:
        self.name = TIMED if timed else UNTIMED
        self.timed = timed

    def reset(self) -> None: ...

    def close(self) -> None: ...

    def execute(self, program: Image, dram: Dram, pads: Scratchpads, options: RunOptions) -> Execution:
        try:
            simulation = self.simulate(program, dram, pads, options)
        except LimitExceeded as excess:
            return Execution(error=excess, uops=None, tokens=program.start.tokens, timing=None)
        error: MachineError | None = None
        try:
            simulation.raise_if_bad()
        except MachineError as found:
            error = found
        functional = simulation.functional
        return Execution(
            error=error, uops=functional.uops, tokens=functional.tokens, timing=simulation.timing
        )

    def simulate(self, program: Image, dram: Dram, pads: Scratchpads, options: RunOptions) -> Simulation:
        options = options.within(program.start)
        return simulate(
            program.instructions,
            program.config,
            dram,
            pads.fill(program.start.contents),
            address=program.config.mem_base + program.code_offset,
            tokens=program.start.tokens,
            timed=self.timed,
            order=options.order,
            seed=options.seed,
            max_cycles=options.max_cycles,
            max_uops=options.max_uops,
            stop_at=options.stop_at,
            bus_timeout=options.bus_timeout,
        )
