"""A program as the timing model sees it."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from accel.base.errors import MachineError
from accel.base.interned_sequence import Distinct
from accel.core.config import Config
from accel.core.fault_causes import Cause, Fault, fault_error, fetch_faults, operand_ranges, residual_change
from accel.core.instruction_access import dram_rows
from accel.core.isa import Instruction, Load, Loops, Set, StoreReq, Transfer, Unit
from accel.core.timing_rules import beat_cycles, burst_beats, busy_slots
from accel.core.token_rules import WORKERS, Counter, pops, pushes

MAX_BUS_INTERVALS = 1 << 24
"""Limit for a simulated program. Each interval takes about 100 bytes."""


class StoreUnitUse(NamedTuple):
    ranges: tuple[tuple[str, int, int], ...]
    """Scratchpad, first element and end of the operands it fills or reads."""
    residuals: int
    """RES elements it loads or consumes."""
    beat_cycles: int


class InstructionTiming(NamedTuple):
    """Everything that determines an instruction's duration. Equal instructions share one."""

    unit: Unit
    pops: tuple[Counter, ...]
    pushes: tuple[Counter, ...]
    uops: int
    slots: int
    """Slots of all micro-ops."""
    bursts: tuple[int, ...]
    """Beats of each burst."""
    pad_words: int
    """Scratchpad elements written without data from DRAM."""
    sram: tuple[int, int, int] | None
    """Memory id, first element and end of a transfer's range, or None if it moves nothing."""
    is_pipelined: bool
    """Whether it executes micro-ops."""
    runs_alone: bool
    """Whether it is a SET."""
    is_load: bool
    store_unit_use: StoreUnitUse | None
    """None if it uses no scratchpad of the store unit."""

    @property
    def beat_cycles(self) -> int:
        return 1 if self.store_unit_use is None else self.store_unit_use.beat_cycles

    @property
    def bus_intervals(self) -> int:
        """Bursts, or beats if each takes several cycles."""
        return len(self.bursts) if self.beat_cycles == 1 else sum(self.bursts)


class InstructionRun(Struct):
    """The cycles of one instruction, None where unknown.

    ``arrival``: fetch could dispatch it if the queue had room. ``ready``: it headed its queue and its unit
    could accept it. From there to ``start`` it waited for tokens.
    """

    timing: InstructionTiming
    index: int
    arrival: int | None = None
    dispatch: int | None = None
    ready: int | None = None
    start: int | None = None
    retire: int | None = None

    @property
    def unit(self) -> Unit:
        return self.timing.unit

    @property
    def pops(self) -> tuple[Counter, ...]:
        return self.timing.pops

    @property
    def pushes(self) -> tuple[Counter, ...]:
        return self.timing.pushes

    @property
    def uops(self) -> int:
        return self.timing.uops

    @property
    def bursts(self) -> tuple[int, ...]:
        return self.timing.bursts

    @property
    def pad_words(self) -> int:
        return self.timing.pad_words


class TimedProgram:
    """A program for the timing model. Arguments are those of ``simulate_timing``.

    Attributes:
        numbers: each instruction's index in ``timings``, intp[instructions].
        units: each instruction's unit, int8[instructions].
        fetch_faults, start_faults, uop_faults: faults by instruction, found by fetch, before the start, or at
            a micro-op.
    """

    def __init__(
        self,
        instructions: Sequence[Instruction],
        config: Config,
        faults: Mapping[int, tuple[int, Fault]],
        checked: Sequence[Fault | None],
        sound: dict[int, InstructionTiming] | None = None,
    ) -> None:
        program = Distinct(instructions)
        self.fetch_faults = fetch_faults(program, config)
        self.start_faults = {n: one for n, one in enumerate(checked) if one is not None}
        self.uop_faults = {n: found for n, found in faults.items() if found[1].cause in _UOP_CAUSES}
        known: dict[InstructionTiming, int] = {}
        self.numbers = self._number_timings(program, config, known, {} if sound is None else sound)
        for index in self.start_faults:  # equal instructions may differ: RES has room for one
            timing = _timing_of(instructions[index], config, is_faulty=True)
            self.numbers[index] = known.setdefault(timing, len(known))
        self.timings = list(known)
        self.units = np.array([one.unit for one in self.timings], dtype=np.int8)[self.numbers]
        self.members: dict[Unit, npt.NDArray[np.intp]] = {u: np.flatnonzero(self.units == u) for u in WORKERS}

    def _number_timings(
        self,
        program: Distinct[Instruction],
        config: Config,
        known: dict[InstructionTiming, int],
        known_sound: dict[int, InstructionTiming],
    ) -> npt.NDArray[np.intp]:
        is_faulty = np.zeros(len(program), dtype=bool)
        is_faulty[list(self.start_faults)] = True
        is_sound = np.zeros(len(program.every), dtype=bool)
        is_sound[program.places[~is_faulty]] = True
        numbers: list[int] = []
        intervals = 0
        for number, (one, sound) in enumerate(zip(program.every, is_sound.tolist(), strict=True)):
            timing = known_sound.get(id(one)) if sound else None
            if timing is None:
                timing = _timing_of(one, config, is_faulty=not sound)
                if sound:
                    known_sound[id(one)] = timing
            numbers.append(known.setdefault(timing, len(known)))
            intervals += timing.bus_intervals
            if intervals > MAX_BUS_INTERVALS:  # each occurs at least once
                raise _limit_error(one, int(np.argmax(program.places == number)))
        return np.array(numbers, dtype=np.intp)[program.places]

    def check_bus_intervals(self, instructions: Sequence[Instruction]) -> None:
        intervals = np.array([one.bus_intervals for one in self.timings], dtype=np.int64)
        index = int(np.searchsorted(np.cumsum(intervals[self.numbers]), MAX_BUS_INTERVALS, side="right"))
        if index < len(self.numbers):
            raise _limit_error(instructions[index], index)

    def __len__(self) -> int:
        return len(self.numbers)


def _limit_error(instruction: Instruction, index: int) -> MachineError:
    message = (
        f"with {instruction.mnemonic} the program moves data in more than {MAX_BUS_INTERVALS:,} bursts; "
        "the cycle simulator records at most that many"
    )
    return fault_error(Fault(cause=Cause.LIMIT, message=message), index)


_UOP_CAUSES = (Cause.DST_INDEX, Cause.SRC_INDEX, Cause.WGT_INDEX)


def _timing_of(instruction: Instruction, config: Config, *, is_faulty: bool) -> InstructionTiming:
    uops = slots = pads = 0
    bursts: tuple[int, ...] = ()
    sram = None
    if isinstance(instruction, Loops):
        uops, slots = instruction.uop_count, busy_slots(instruction, config)
    elif isinstance(instruction, Transfer) and not is_faulty:
        rows = dram_rows(instruction, config)
        if rows is not None:
            bursts = burst_beats(rows, config)
        if instruction.sram_elements:
            pads = instruction.sram_elements - instruction.x_size * instruction.y_size
            begin = instruction.sram_base
            sram = (int(instruction.memory), begin, begin + instruction.sram_elements)
    return InstructionTiming(
        unit=instruction.unit,
        pops=pops(instruction),
        pushes=pushes(instruction),
        uops=uops,
        slots=slots,
        bursts=bursts,
        pad_words=pads,
        sram=sram,
        is_pipelined=isinstance(instruction, Loops),
        runs_alone=isinstance(instruction, Set),
        is_load=isinstance(instruction, Load),
        store_unit_use=_store_unit_use(instruction, config) if config.post and not is_faulty else None,
    )


def _store_unit_use(instruction: Instruction, config: Config) -> StoreUnitUse | None:
    fills = isinstance(instruction, Load) and instruction.unit is Unit.STORE
    if not fills and not isinstance(instruction, StoreReq):
        return None
    ranges = tuple((pad.name, begin, end) for pad, begin, end in operand_ranges(instruction))
    return StoreUnitUse(ranges, abs(residual_change(instruction)), beat_cycles(instruction, config))


def ranges_overlap(one: InstructionTiming, other: InstructionTiming) -> bool:
    if one.sram is None or other.sram is None:
        return False
    memory, begin, end = one.sram
    other_memory, other_begin, other_end = other.sram
    return memory == other_memory and begin < other_end and other_begin < end
