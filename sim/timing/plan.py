"""A program as the timing model sees it: per instruction, what decides how long it takes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from accel.core.access import dram_rows
from accel.core.config import Config
from accel.core.faults import Cause, Fault, fetch_fault, residual_change, sram_ranges
from accel.core.isa import Instruction, Load, LoadPar, LoadRes, Loops, Set, StoreReq, Transfer, Unit
from accel.core.memories import PAR
from accel.core.timing_rules import beat_cycles, burst_beats
from accel.core.token_rules import Counter, pops, pushes


class Shared(NamedTuple):
    """What an instruction shares with others of the store unit."""

    par_begin: int
    par_end: int
    """The PAR elements that it fills or reads, from the first to the highest; equal if there are none."""
    res: int
    """RES elements that it loads or takes."""
    pace: int
    """Cycles that a beat takes."""


@dataclass(slots=True)
class Step:
    """One instruction. Cycles are None until they are known.

    ``arrival`` is the first cycle in which fetch could hand it out, were it alone;
    ``ready`` is the first cycle in which it headed its queue and its unit could accept it;
    from there to ``start`` it waited for tokens.
    """

    unit: Unit
    pops: tuple[Counter, ...]
    pushes: tuple[Counter, ...]
    uops: int
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
    index: int
    fetch_fault: Fault | None
    start_fault: Fault | None
    uop_fault: tuple[int, Fault] | None
    arrival: int | None = None
    dispatch: int | None = None
    ready: int | None = None
    start: int | None = None
    retire: int | None = None


def plan_steps(
    instructions: Sequence[Instruction],
    config: Config,
    faults: Mapping[int, tuple[int, Fault]],
    checked: Sequence[Fault | None],
) -> list[Step]:
    """The steps of a program.

    Args:
        instructions: the decoded program.
        config: the machine.
        faults: what functional execution found, by instruction.
        checked: what is wrong with each instruction by itself.
    """
    count = len(instructions)
    known: dict[tuple[int, bool], _Shape] = {}
    steps = []
    for index, instruction in enumerate(instructions):
        key = id(instruction), checked[index] is None  # what RES holds may differ
        shape = known.get(key)
        if shape is None:
            shape = known[key] = _shape(instruction, config, checked[index])
        found = faults.get(index)
        steps.append(
            Step(
                *shape,
                index=index,
                fetch_fault=fetch_fault(instruction, index, count, config),
                start_fault=checked[index],
                uop_fault=found if found is not None and found[1].cause in _IN_UOP else None,
            )
        )
    return steps


_IN_UOP = (Cause.DST_INDEX, Cause.SRC_INDEX, Cause.WGT_INDEX)


class _Shape(NamedTuple):
    """The part of a step that equal instructions share: its first fields."""

    unit: Unit
    pops: tuple[Counter, ...]
    pushes: tuple[Counter, ...]
    uops: int
    bursts: tuple[int, ...]
    pads: int
    sram: tuple[int, int, int] | None
    pipelined: bool
    alone: bool
    fills: bool
    shared: Shared | None


def _shape(instruction: Instruction, config: Config, start_fault: Fault | None) -> _Shape:
    uops = pads = 0
    bursts: tuple[int, ...] = ()
    sram = None
    if isinstance(instruction, Loops):
        uops = instruction.uop_count
    elif isinstance(instruction, Transfer) and start_fault is None:
        rows = dram_rows(instruction, config)
        if rows is not None:
            bursts = burst_beats(rows, config)
        if instruction.sram_elements:
            pads = instruction.sram_elements - instruction.x_size * instruction.y_size
            begin = instruction.sram_base
            sram = (instruction.memory, begin, begin + instruction.sram_elements)
    return _Shape(
        unit=instruction.unit,
        pops=pops(instruction),
        pushes=pushes(instruction),
        uops=uops,
        bursts=bursts,
        pads=pads,
        sram=sram,
        pipelined=isinstance(instruction, Loops),
        alone=isinstance(instruction, Set),
        fills=isinstance(instruction, Load),
        shared=_shared(instruction, config) if config.post and start_fault is None else None,
    )


def _shared(instruction: Instruction, config: Config) -> Shared | None:
    if not isinstance(instruction, LoadPar | LoadRes | StoreReq):
        return None
    own = [(begin, begin + count) for pad, begin, count in sram_ranges(instruction) if pad is PAR]
    begin, end = own[0] if own else (0, 0)
    return Shared(begin, end, abs(residual_change(instruction)), beat_cycles(instruction, config))
