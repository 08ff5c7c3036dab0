"""A program as the timing model sees it: per instruction, what decides how long it takes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from accel.base.distinct import Distinct
from accel.core.access import dram_rows
from accel.core.config import Config
from accel.core.faults import Cause, Fault, fetch_faults, residual_change, sram_ranges
from accel.core.isa import Instruction, Load, LoadPar, LoadRes, Loops, Set, StoreReq, Transfer, Unit
from accel.core.memories import PAR
from accel.core.timing_rules import beat_cycles, burst_beats, busy_slots
from accel.core.token_rules import WORKERS, Counter, pops, pushes


class Shared(NamedTuple):
    """What an instruction shares with others of the store unit."""

    par_begin: int
    par_end: int
    """The PAR elements that it fills or reads, from the first to the highest; equal if there are none."""
    res: int
    """RES elements that it loads or takes."""
    pace: int
    """Cycles that a beat takes."""


class Shape(NamedTuple):
    """What equal instructions share."""

    unit: Unit
    pops: tuple[Counter, ...]
    pushes: tuple[Counter, ...]
    uops: int
    slots: int
    """Slots that the micro-ops take."""
    bursts: tuple[int, ...]
    """Beats of each burst."""
    pads: int
    """Scratchpad words written as zero."""
    sram: tuple[int, int, int] | None
    """Memory id and scratchpad range of a transfer that moves something."""
    pipelined: bool
    """What runs micro-ops may start while others drain."""
    alone: bool
    """A SET starts when its unit is empty, and what follows it when it has retired."""
    fills: bool
    """Whether it is a LOAD."""
    shared: Shared | None
    """Of what fills PAR or RES, or uses it."""


@dataclass(slots=True)
class Step:
    """One instruction as it ran. Cycles are None where they are not known.

    ``arrival`` is the first cycle in which fetch could hand it out, were it alone;
    ``ready`` is the first cycle in which it headed its queue and its unit could accept it;
    from there to ``start`` it waited for tokens.
    """

    shape: Shape
    index: int
    arrival: int | None = None
    dispatch: int | None = None
    ready: int | None = None
    start: int | None = None
    retire: int | None = None

    @property
    def unit(self) -> Unit:
        """The unit that executes it."""
        return self.shape.unit

    @property
    def pops(self) -> tuple[Counter, ...]:
        """The counters that it takes a token from."""
        return self.shape.pops

    @property
    def pushes(self) -> tuple[Counter, ...]:
        """The counters that it adds a token to."""
        return self.shape.pushes

    @property
    def uops(self) -> int:
        """Micro-ops."""
        return self.shape.uops

    @property
    def bursts(self) -> tuple[int, ...]:
        """Beats of each burst."""
        return self.shape.bursts

    @property
    def pads(self) -> int:
        """Scratchpad words written as zero."""
        return self.shape.pads


class Plan:
    """A program for the timing model.

    Args:
        instructions: the decoded program.
        config: the machine.
        faults: what functional execution found, by instruction.
        checked: what is wrong with each instruction by itself.

    Attributes:
        shapes: the different shapes.
        numbers: which of them each instruction has, intp[instructions].
        units: of each instruction, int8[instructions].
        members: of each unit the places of its instructions in the program, in order.
        fetch_faults, start_faults, uop_faults: what is wrong, by instruction, found by fetch, by the unit
            before the start, or at a micro-op.
    """

    def __init__(
        self,
        instructions: Sequence[Instruction],
        config: Config,
        faults: Mapping[int, tuple[int, Fault]],
        checked: Sequence[Fault | None],
    ) -> None:
        program = Distinct(instructions)
        self.fetch_faults = fetch_faults(program, config)
        self.start_faults = {n: one for n, one in enumerate(checked) if one is not None}
        self.uop_faults = {n: found for n, found in faults.items() if found[1].cause in _IN_UOP}
        wrong = np.zeros(len(program), dtype=bool)
        wrong[list(self.start_faults)] = True
        sound = np.zeros(len(program.every), dtype=bool)
        sound[program.places[~wrong]] = True
        known: dict[Shape, int] = {}
        numbers = [
            known.setdefault(_shape(one, config, fault=not right), len(known))
            for one, right in zip(program.every, sound.tolist(), strict=True)
        ]
        self.numbers = np.array(numbers, dtype=np.intp)[program.places]
        for index in self.start_faults:  # what RES holds may differ where one object stands
            shape = _shape(instructions[index], config, fault=True)
            self.numbers[index] = known.setdefault(shape, len(known))
        self.shapes = list(known)
        self.units = np.array([one.unit for one in self.shapes], dtype=np.int8)[self.numbers]
        self.members: dict[Unit, npt.NDArray[np.intp]] = {u: np.flatnonzero(self.units == u) for u in WORKERS}

    def __len__(self) -> int:
        """Instructions."""
        return len(self.numbers)


_IN_UOP = (Cause.DST_INDEX, Cause.SRC_INDEX, Cause.WGT_INDEX)


def _shape(instruction: Instruction, config: Config, *, fault: bool) -> Shape:
    """What decides how long an instruction takes; ``fault``: whether its unit finds it wrong."""
    uops = slots = pads = 0
    bursts: tuple[int, ...] = ()
    sram = None
    if isinstance(instruction, Loops):
        uops, slots = instruction.uop_count, busy_slots(instruction, config)
    elif isinstance(instruction, Transfer) and not fault:
        rows = dram_rows(instruction, config)
        if rows is not None:
            bursts = burst_beats(rows, config)
        if instruction.sram_elements:
            pads = instruction.sram_elements - instruction.x_size * instruction.y_size
            begin = instruction.sram_base
            sram = (int(instruction.memory), begin, begin + instruction.sram_elements)
    return Shape(
        unit=instruction.unit,
        pops=pops(instruction),
        pushes=pushes(instruction),
        uops=uops,
        slots=slots,
        bursts=bursts,
        pads=pads,
        sram=sram,
        pipelined=isinstance(instruction, Loops),
        alone=isinstance(instruction, Set),
        fills=isinstance(instruction, Load),
        shared=_shared(instruction, config) if config.post and not fault else None,
    )


def _shared(instruction: Instruction, config: Config) -> Shared | None:
    if not isinstance(instruction, LoadPar | LoadRes | StoreReq):
        return None
    own = [(begin, begin + count) for pad, begin, count in sram_ranges(instruction) if pad is PAR]
    begin, end = own[0] if own else (0, 0)
    return Shared(begin, end, abs(residual_change(instruction)), beat_cycles(instruction, config))
