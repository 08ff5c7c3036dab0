"""A run that can be stopped anywhere: what has happened up to a cycle, and what memory holds then.

The run is simulated once, with its events. Moving through it applies them to :class:`MachineState`, and the
instructions to copies of DRAM and scratchpads: what an instruction does shows when it retires, as the machine
promises to others. Where a run ends with an error, memory at the end is what the machine leaves behind.
"""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from accel.base.errors import AccelError, MachineError
from accel.core.access import AccessSets, dram_rows, residual_touches
from accel.core.events import Event, EventKind
from accel.core.faults import acc_settings, instruction_faults
from accel.core.isa import Instruction, Load, Loops, Store, decode_uops
from accel.debug.breakpoints import Breakpoint
from accel.debug.places import Place
from accel.debug.sharing import Sharing
from accel.debug.state import MachineState, functional_events
from accel.image.dram import Dram
from accel.run.backends.choose import SIMULATORS, check_backend
from accel.run.program import Program
from accel.sim.functional.executor import DEFAULT_MAX_UOPS, Executor
from accel.sim.functional.scratchpads import Scratchpads
from accel.sim.timing.model import DEFAULT_MAX_CYCLES


@dataclass(frozen=True, kw_only=True)
class Halt:
    """Why moving through the run has stopped."""

    cycle: int
    event: Event | None = None
    breakpoint: Breakpoint | None = None
    end: str | None = None
    """How the run ended, if this is its end."""
    error: MachineError | None = None
    """What it ended with, if that is an error."""


class Debugger:
    """A run of a program, at its beginning.

    Args:
        program: what runs.
        inputs: tensors by name; those not given are random.
        backend: ``sim``, or ``functional``, where "cycles" count instructions.
        seed: of what is random.
        max_cycles, max_uops: limits of the run.

    Raises:
        AccelError: an unknown backend.

    Attributes:
        cycle: the last one that has happened, -1 before the first.
        state: queues, instructions in flight and tokens after that cycle.
        sharing: what the store unit's instructions share after that cycle.
        breakpoints: by number.
    """

    def __init__(
        self,
        program: Program,
        inputs: Mapping[str, npt.NDArray[Any]] | None = None,
        *,
        backend: str = "sim",
        seed: int = 0,
        max_cycles: int = DEFAULT_MAX_CYCLES,
        max_uops: int = DEFAULT_MAX_UOPS,
    ) -> None:
        check_backend(backend, SIMULATORS)
        self.program, dram = program.prepared(inputs, seed)
        self.timed = backend == "sim"
        self.breakpoints: dict[int, Breakpoint] = {}
        self._numbers = 0
        pads = Scratchpads.random(program.config, seed).fill(self.program.start.contents)
        self._before = (dram.copy(), pads.copy())
        simulation = self.program.simulate(
            dram, pads, timed=self.timed, seed=seed, max_cycles=max_cycles, max_uops=max_uops
        )
        self._after = (dram, pads)
        self._error: MachineError | None = None
        try:
            simulation.raise_if_bad()
        except MachineError as error:
            self._error = error
        timing = simulation.timing
        if timing is not None:
            self._events = timing.events()
            self._length = timing.cycles
        else:
            self.timed = False
            self._events = list(functional_events(self.instructions, simulation.functional))
            self._length = len(simulation.functional.order)
        self._cycles = [event.cycle for event in self._events]
        self._sets = AccessSets(program.config)
        self._residuals = residual_touches(self.instructions, program.config)
        self._faults = instruction_faults(self.instructions, program.config)
        self._settings = acc_settings(self.instructions)
        self.restart()

    @property
    def instructions(self) -> list[Instruction]:
        """The program."""
        return self.program.instructions

    @property
    def dram(self) -> Dram:
        """DRAM as it is now."""
        return self._executor.dram

    @property
    def pads(self) -> Scratchpads:
        """The scratchpads as they are now."""
        return self._executor.pads

    @property
    def ended(self) -> bool:
        """Whether the run is over."""
        return self._over

    def restart(self) -> None:
        """Go back to before the first cycle; breakpoints stay."""
        dram, pads = self._before
        self._executor = Executor(self.program.config, dram.copy(), pads.copy())
        self.state = MachineState(self.instructions, self.program.start.tokens, queued=self.timed)
        self.sharing = Sharing(self.instructions, self.program.config)
        self.cycle = -1
        self._position = 0
        self._over = False

    # --- moving ----------------------------------------------------------------------------------

    def step(self) -> Halt:
        """Go on until an instruction has retired, a breakpoint is met, or the run ends."""
        return self._move(None, one=True)

    def run_to(self, cycle: int | None = None) -> Halt:
        """Go on until a cycle has happened, a breakpoint is met, or the run ends.

        Args:
            cycle: None for no such cycle.
        """
        return self._move(cycle, one=False)

    def between(self, before: int, last: int) -> list[Event]:
        """The events of the cycles after ``before``, up to ``last``."""
        first, stop = (bisect_right(self._cycles, cycle) for cycle in (before, last))
        return self._events[first:stop]

    def _move(self, target: int | None, *, one: bool) -> Halt:
        """Whole cycles at a time, so that what happens in one cycle is never seen in halves."""
        if self._over:
            return self._end()
        ahead = [b for b in self.breakpoints.values() if b.cycle is not None and b.cycle > self.cycle]
        numbered = min(ahead, key=lambda b: b.cycle or 0, default=None)
        if numbered is not None and numbered.cycle is not None:
            if target is None or numbered.cycle <= target:
                target = numbered.cycle
            else:
                numbered = None
        while self._position < len(self._events):
            cycle = self._events[self._position].cycle
            if target is not None and cycle > target:
                break
            halt = self._happen(cycle)
            self.cycle = cycle
            if halt is not None and (halt.breakpoint is not None or one):
                return halt
        if target is not None and target < self._length - 1:
            self.cycle = target
            return Halt(cycle=target, breakpoint=numbered)
        return self._end()

    def _happen(self, cycle: int) -> Halt | None:
        """Everything of one cycle; the breakpoint that it meets first, else the first instruction that
        retires."""
        found: Halt | None = None
        while self._position < len(self._events) and self._events[self._position].cycle == cycle:
            event = self._events[self._position]
            self._position += 1
            met = next((b for b in self.breakpoints.values() if self._meets(b, event)), None)
            self.state.apply(event)
            self.sharing.apply(event)
            if event.kind is EventKind.RETIRE:
                self._executor.execute(self.instructions[event.instruction])
            if met is not None and (found is None or found.breakpoint is None):
                found = Halt(cycle=cycle, event=event, breakpoint=met)
            elif event.kind is EventKind.RETIRE and found is None:
                found = Halt(cycle=cycle, event=event)
        return found

    def _end(self) -> Halt:
        found = None if self._error is None or not self.timed else self._error.cycle
        self.cycle = max(self._length - 1 if found is None else found, self.cycle)
        if not self._over and self._error is not None:
            dram, pads = self._after
            self._executor = Executor(self.program.config, dram.copy(), pads.copy())
        self._over = True
        unit = "cycles" if self.timed else "instructions"
        how = f"the run has ended after {self._length} {unit}" if self._error is None else str(self._error)
        return Halt(cycle=self.cycle, end=how, error=self._error)

    # --- breakpoints -----------------------------------------------------------------------------

    def add(self, breakpoint: Breakpoint) -> int:
        """Stop wherever ``breakpoint`` is met; returns its number."""
        self._numbers += 1
        self.breakpoints[self._numbers] = breakpoint
        return self._numbers

    def _meets(self, breakpoint: Breakpoint, event: Event) -> bool:
        if breakpoint.counter is not None:
            kinds = (EventKind.TOKEN_POP, EventKind.TOKEN_PUSH)
            return event.kind in kinds and event.value == breakpoint.counter
        if event.kind is not EventKind.START:
            return False
        if breakpoint.index is not None:
            return event.instruction == breakpoint.index
        return breakpoint.place is not None and self._touches(event.instruction, breakpoint)

    def _touches(self, index: int, breakpoint: Breakpoint) -> bool:
        """Whether an instruction that starts now accesses a part of memory."""
        instruction, place = self.instructions[index], breakpoint.place
        assert place is not None
        if self._faults[index] is not None:
            return False
        if place.memory == "dram":
            rows = dram_rows(instruction, self.program.config)
            if rows is None or not breakpoint.concerns(isinstance(instruction, Store)):
                return False
            first = rows.start - self.program.config.mem_base
            starts = first + np.arange(rows.rows, dtype=np.int64) * rows.stride
            return bool(((starts < place.stop) & (place.first < starts + rows.row_bytes)).any())
        if isinstance(instruction, Load | Store):
            touches = self._sets.transfer(instruction)
            if index in self._residuals:
                touches = (*touches, self._residuals[index])
        elif isinstance(instruction, Loops) and instruction.uop_count:
            words = self.pads.uop[instruction.uop_begin : instruction.uop_end]
            touches = self._sets.loops(instruction, words, self._settings[index]).touches
        else:
            return False
        every = np.zeros(int(getattr(self.program.config, f"{place.memory}_depth")), dtype=bool)
        for touch in touches:
            if touch.memory == place.memory and breakpoint.concerns(touch.write):
                every[touch.elements] = True
        return bool(every[place.first : place.stop].any())

    # --- looking ---------------------------------------------------------------------------------

    def read(self, place: Place) -> npt.NDArray[Any]:
        """What a part of memory holds now: micro-ops as rows dst, src, wgt, DRAM as bytes."""
        if place.memory == "dram":
            return self.dram.read(self.program.config.mem_base + place.first, place.stop - place.first)
        array: npt.NDArray[Any] = getattr(self.pads, place.memory)[place.first : place.stop].copy()
        return decode_uops(array, self.program.config) if place.memory == "uop" else array

    def tensor(self, name: str) -> npt.NDArray[Any] | None:
        """The plain values of a tensor as DRAM holds it now, or None if there is no such tensor."""
        base = self.program.config.mem_base
        for tensor in self.program.tensors:
            if tensor.name == name:
                return tensor.unpack(self.dram.read(base + tensor.offset, tensor.nbytes))
        return None

    def instruction(self, index: int) -> Instruction:
        """An instruction by its place in the program.

        Raises:
            AccelError: there is none.
        """
        if not 0 <= index < len(self.instructions):
            raise AccelError(f"instruction {index} does not exist; the program has {len(self.instructions)}")
        return self.instructions[index]
