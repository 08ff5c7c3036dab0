"""A program as the timing model sees it: per instruction, what decides how long it takes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from accel.access import dram_rows
from accel.config import Config
from accel.faults import Cause, Fault, fetch_fault
from accel.isa import Instruction, Loops, Transfer, Unit
from accel.order import Counter, pops, pushes
from accel.timing import burst_beats


@dataclass(kw_only=True, slots=True)
class Step:
    """One instruction. Cycles are None until they are known.

    ``arrival`` is the first cycle in which fetch could hand it out, were it alone;
    ``ready`` is the first cycle in which it headed its queue and its unit could accept it;
    from there to ``start`` it waited for tokens.
    """

    index: int
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
    """GEMM and ALU may start while others drain."""
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
    return [
        _plan(index, instruction, count, config, wrong, faults.get(index))
        for index, (instruction, wrong) in enumerate(zip(instructions, checked, strict=True))
    ]


_IN_UOP = (Cause.DST_INDEX, Cause.SRC_INDEX, Cause.WGT_INDEX)


def _plan(
    index: int,
    instruction: Instruction,
    count: int,
    config: Config,
    start_fault: Fault | None,
    found: tuple[int, Fault] | None,
) -> Step:
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
    return Step(
        index=index,
        unit=instruction.unit,
        pops=pops(instruction),
        pushes=pushes(instruction),
        uops=uops,
        bursts=bursts,
        pads=pads,
        sram=sram,
        pipelined=isinstance(instruction, Loops),
        fetch_fault=fetch_fault(instruction, index, count),
        start_fault=start_fault,
        uop_fault=found if found is not None and found[1].cause in _IN_UOP else None,
    )
