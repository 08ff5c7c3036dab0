"""A simulated run that can be stopped in any cycle.

The run is simulated once. Steps apply its events to a :class:`MachineState`, and retired instructions to
copies of DRAM and scratchpads.
"""

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from accel.base.errors import AccelError, MachineError
from accel.base.run_choices import DEFAULT_MAX_CYCLES, DEFAULT_MAX_UOPS, SIMULATORS
from accel.core.events import Event, EventKind, listed_events
from accel.core.fault_causes import acc_settings, instruction_faults
from accel.core.instruction_access import AccessSets, dram_rows, residual_touches
from accel.core.isa import Instruction, Load, Loops, Store, decode_uops
from accel.debug.breakpoints import Breakpoint
from accel.debug.machine_state import MachineState, functional_events
from accel.debug.memory_locations import MemoryLocation
from accel.debug.store_memories import StoreUnitMemories
from accel.image.dram import Dram
from accel.run.backends.open_backend import check_backend
from accel.run.program import Program
from accel.sim.functional.executor import Executor
from accel.sim.functional.scratchpads import Scratchpads


class Halt(Struct, frozen=True, kw_only=True):
    cycle: int
    event: Event | None = None
    breakpoint: Breakpoint | None = None
    end: str | None = None
    error: MachineError | None = None


class Debugger:
    """A run of a program.

    Args:
        backend: ``sim``, or ``functional``, whose "cycles" count instructions.

    Attributes:
        cycle: the current cycle, whose events have happened, from -1.
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
            self._events = listed_events(timing)
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
        return self.program.instructions

    @property
    def dram(self) -> Dram:
        return self._executor.dram

    @property
    def pads(self) -> Scratchpads:
        return self._executor.pads

    @property
    def ended(self) -> bool:
        return self._over

    def restart(self) -> None:
        dram, pads = self._before
        self._executor = Executor(self.program.config, dram.copy(), pads.copy())
        self.state = MachineState(self.instructions, self.program.start.tokens, has_queues=self.timed)
        self.store_memories = StoreUnitMemories(self.instructions, self.program.config)
        self.cycle = -1
        self._position = 0
        self._over = False

    def step(self) -> Halt:
        """Continue to a retirement, a breakpoint, or the end of the run."""
        return self._advance(None, one=True)

    def run_to(self, cycle: int | None = None) -> Halt:
        """Continue to a cycle, or without one to a breakpoint or the end."""
        return self._advance(cycle, one=False)

    def events_between(self, before: int, last: int) -> list[Event]:
        first, stop = (bisect_right(self._cycles, cycle) for cycle in (before, last))
        return self._events[first:stop]

    def _advance(self, target: int | None, *, one: bool) -> Halt:
        if self._over:
            return self._end()
        later = [b for b in self.breakpoints.values() if b.cycle is not None and b.cycle > self.cycle]
        numbered = min(later, key=lambda b: b.cycle or 0, default=None)
        if numbered is not None and numbered.cycle is not None:
            if target is None or numbered.cycle <= target:
                target = numbered.cycle
            else:
                numbered = None
        while self._position < len(self._events):
            cycle = self._events[self._position].cycle
            if target is not None and cycle > target:
                break
            halt = self._apply_cycle(cycle)
            self.cycle = cycle
            if halt is not None and (halt.breakpoint is not None or one):
                return halt
        if target is not None and target < self._length - 1:
            self.cycle = target
            return Halt(cycle=target, breakpoint=numbered)
        return self._end()

    def _apply_cycle(self, cycle: int) -> Halt | None:
        found: Halt | None = None
        while self._position < len(self._events) and self._events[self._position].cycle == cycle:
            event = self._events[self._position]
            self._position += 1
            met = next((b for b in self.breakpoints.values() if self._is_hit(b, event)), None)
            self.state.apply(event)
            self.store_memories.apply(event)
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

    def add(self, breakpoint: Breakpoint) -> int:
        self._numbers += 1
        self.breakpoints[self._numbers] = breakpoint
        return self._numbers

    def _is_hit(self, breakpoint: Breakpoint, event: Event) -> bool:
        if breakpoint.counter is not None:
            kinds = (EventKind.TOKEN_POP, EventKind.TOKEN_PUSH)
            return event.kind in kinds and event.value == breakpoint.counter
        if event.kind is not EventKind.START:
            return False
        if breakpoint.index is not None:
            return event.instruction == breakpoint.index
        return breakpoint.location is not None and self._touches(event.instruction, breakpoint)

    def _touches(self, index: int, breakpoint: Breakpoint) -> bool:
        instruction, location = self.instructions[index], breakpoint.location
        assert location is not None
        if self._faults[index] is not None:
            return False
        if location.memory == "dram":
            rows = dram_rows(instruction, self.program.config)
            if rows is None or not breakpoint.applies_to(isinstance(instruction, Store)):
                return False
            first = rows.start - self.program.config.mem_base
            starts = first + np.arange(rows.rows, dtype=np.int64) * rows.stride
            return bool(((starts < location.stop) & (location.first < starts + rows.row_bytes)).any())
        if isinstance(instruction, Load | Store):
            touches = self._sets.transfer(instruction)
            if index in self._residuals:
                touches = (*touches, self._residuals[index])
        elif isinstance(instruction, Loops) and instruction.uop_count:
            words = self.pads.uop[instruction.uop_begin : instruction.uop_end]
            touches = self._sets.loops(instruction, words, self._settings[index]).touches
        else:
            return False
        every = np.zeros(int(getattr(self.program.config, f"{location.memory}_depth")), dtype=bool)
        for touch in touches:
            if touch.memory == location.memory and breakpoint.applies_to(touch.write):
                every[touch.elements] = True
        return bool(every[location.first : location.stop].any())

    def read(self, location: MemoryLocation) -> npt.NDArray[Any]:
        """Return DRAM as bytes, micro-ops as rows of dst, src and wgt."""
        if location.memory == "dram":
            return self.dram.read(
                self.program.config.mem_base + location.first, location.stop - location.first
            )
        array: npt.NDArray[Any] = getattr(self.pads, location.memory)[location.first : location.stop].copy()
        return decode_uops(array, self.program.config) if location.memory == "uop" else array

    def tensor(self, name: str) -> npt.NDArray[Any] | None:
        base = self.program.config.mem_base
        for tensor in self.program.tensors:
            if tensor.name == name:
                return tensor.unpack(self.dram.read(base + tensor.offset, tensor.nbytes))
        return None

    def instruction(self, index: int) -> Instruction:
        if not 0 <= index < len(self.instructions):
            raise AccelError(f"instruction {index} does not exist; the program has {len(self.instructions)}")
        return self.instructions[index]
