"""Simulator and hardware side by side: the same program from the same state, and everything compared."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt

from accel.base.errors import HardwareError
from accel.core.access import dram_rows
from accel.core.config import PAGE_BYTES, Config
from accel.core.events import Event
from accel.core.faults import Cause, Fault, dram_span
from accel.core.isa import Finish, Instruction, Load, Memory, Store, Transfer, Unit, format_instruction
from accel.core.memories import SCRATCHPADS
from accel.core.token_rules import Counter
from accel.hw.engines.driver import Engine
from accel.hw.engines.run import Behaviour, HardwareRun
from accel.image.dram import Dram
from accel.proof.check import Race, TokenReport, check_tokens
from accel.run.backends.rtl import run_on_hardware, take_contents
from accel.run.backends.simulator import Simulator
from accel.run.options import RunOptions
from accel.run.program import Program
from accel.sim.functional.executor import DEFAULT_MAX_UOPS
from accel.sim.functional.scratchpads import Scratchpads
from accel.sim.simulator import Simulation
from accel.sim.timing.model import DEFAULT_MAX_CYCLES, TimingRun

_AROUND = 4
"""Events that are shown before and after the first that differs."""
_PATIENCE = 100_000
"""Clock cycles that the hardware may take longer than the simulator before it is given up."""


class Scope(Enum):
    """What must be equal in a program."""

    EVERYTHING = "everything"
    """Nothing depends on timing."""
    ALL_BUT_MEMORY = "all but memory"
    """Data may race; what is executed, and when, does not depend on it."""
    END = "a clean end"
    """Micro-ops or instructions may depend on a race."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The first difference between simulator and hardware.

    Attributes:
        what: ``events``, ``outcome``, ``counters``, ``memory``, ``tokens`` or ``scratchpads`` (left over), or
            ``rules`` (of the bus).
        message: in words.
        cycle, unit, instruction: where, as far as it is known.
        sim, rtl: what both sides show around it, a line each.
    """

    what: str
    message: str
    cycle: int | None = None
    unit: Unit | None = None
    instruction: int | None = None
    sim: tuple[str, ...] = ()
    rtl: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        unit = None if self.unit is None else self.unit.label
        return {
            "what": self.what,
            "message": self.message,
            "cycle": self.cycle,
            "unit": unit,
            "instruction": self.instruction,
            "sim": list(self.sim),
            "rtl": list(self.rtl),
        }


@dataclass(frozen=True, kw_only=True)
class Lockstep:
    """What came of a comparison.

    Attributes:
        cycles: of the simulator; None if it did not get that far.
        cause: how the run ended in the simulator.
        events: how many were compared.
        scope: what was compared.
        difference: the first, or None.
    """

    cycles: int
    cause: Cause
    events: int
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
    scope = scope_of(program)
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
        if scope is Scope.END:
            difference = None
        elif hostile:
            difference = _tolerant(program, scope, simulation.timing, run, sim_dram, rtl_dram)
        else:
            difference = compare(program, scope, simulation.timing, run, sim_dram, rtl_dram)
        well = simulation.timing.stop is None and run.cause is Cause.NONE
        if difference is None and well and scope is Scope.EVERYTHING:
            difference = _left_difference(simulation, sim_pads, run, engine)
    stop = simulation.timing.stop
    return Lockstep(
        cycles=simulation.timing.cycles,
        cause=Cause.NONE if stop is None else stop.fault.cause,
        events=len(simulation.timing.events()),
        scope=scope,
        difference=difference,
    )


def compare(
    program: Program, scope: Scope, sim: TimingRun, rtl: HardwareRun, sim_dram: Dram, rtl_dram: Dram
) -> Difference | None:
    """The first difference of two runs from the same state: events, then outcome, counters, memory."""
    found = (
        _event_difference(program.instructions, sim.events(), rtl.events() or [])
        or _outcome_difference(sim, rtl)
        or _counter_difference(sim, rtl)
    )
    if found is None and scope is Scope.EVERYTHING:
        found = _memory_difference(program, sim_dram, rtl_dram)
    return found


def _tolerant(
    program: Program, scope: Scope, sim: TimingRun, rtl: HardwareRun, sim_dram: Dram, rtl_dram: Dram
) -> Difference | None:
    """What must be equal whatever memory does: the result of a run that ends well."""
    if sim.stop is not None or rtl.cause is Cause.TOKEN_OVERFLOW:
        return None
    if rtl.cause is not Cause.NONE:
        return _outcome_difference(sim, rtl)
    return _memory_difference(program, sim_dram, rtl_dram) if scope is Scope.EVERYTHING else None


# --- what may depend on timing -----------------------------------------------------------------------


def scope_of(program: Program) -> Scope:
    """What the token check proves to be independent of timing.

    Instructions at fault do nothing, so the check is made of the program without them; those with a bad
    index somewhere do something.
    """
    instructions: Sequence[Instruction] = program.instructions
    while True:
        report = _check(program, instructions)
        if report.unknown_uops or report.race_count > len(report.races):
            return Scope.END
        if any(_steers(program, race) for race in report.races):
            return Scope.END
        removable = [(i, f) for i, f in report.faults if f.cause is not Cause.TOKEN_OVERFLOW]
        if not removable:
            return Scope.ALL_BUT_MEMORY if report.races else Scope.EVERYTHING
        instructions = _without(instructions, removable, program.config)


def _steers(program: Program, race: Race) -> bool:
    """Whether instructions or micro-ops may depend on a race."""
    if race.memory != "dram":
        return race.memory == "uop"
    base = program.config.mem_base + program.code_offset
    spans = [(base, base + len(program.code))]
    for instruction in program.instructions:
        if isinstance(instruction, Load) and instruction.memory == Memory.UOP and instruction.x_size:
            spans.append(dram_span(instruction, program.config))
    low, high = race.where
    return any(start <= high and low < stop for start, stop in spans)


def _check(program: Program, instructions: Sequence[Instruction]) -> TokenReport:
    base = program.config.mem_base + program.code_offset
    return check_tokens(
        instructions,
        program.config,
        memory=program.dram(),
        program_span=(base, base + len(program.code)),
        tokens=program.start.tokens,
        contents=program.start.contents,
    )


_FETCH_CAUSES = (Cause.OPCODE, Cause.EARLY_FINISH, Cause.NO_FINISH)
_INDEX_CAUSES = (Cause.DST_INDEX, Cause.SRC_INDEX, Cause.WGT_INDEX)
_CARRIERS: dict[Unit, Transfer] = {
    Unit.LOAD: Load(memory=Memory.INP),
    Unit.COMPUTE: Load(memory=Memory.UOP),
    Unit.STORE: Store(),
}


def _without(
    instructions: Sequence[Instruction], faults: Sequence[tuple[int, Fault]], config: Config
) -> list[Instruction]:
    """The program without instructions at fault, of which only the tokens stay.

    Fetch hands out none from the first on that it finds wrong. Micro-ops before one with a bad index have
    executed: such an instruction may have written any accumulator.
    """
    kept = list(instructions)
    for index, fault in faults:
        if fault.cause in _FETCH_CAUSES:
            return [*kept[:index], Finish()]
        unit = kept[index].unit
        harmless: Transfer = _CARRIERS[unit]
        if fault.cause in _INDEX_CAUSES:
            harmless = Load(memory=Memory.ACC, x_size=config.acc_depth, y_pad_0=1)
        kept[index] = replace(
            harmless,
            pop_prev=kept[index].pop_prev and unit.previous is not None,
            pop_next=kept[index].pop_next and unit.next is not None,
            push_prev=kept[index].push_prev and unit.previous is not None,
            push_next=kept[index].push_next and unit.next is not None,
        )
    return kept


# --- differences -------------------------------------------------------------------------------------


def _event_difference(
    instructions: Sequence[Instruction], sim: list[Event], rtl: list[Event]
) -> Difference | None:
    if sim == rtl:
        return None
    both = enumerate(zip_longest(sim, rtl))
    at, pair = next((at, pair) for at, pair in both if pair[0] != pair[1])
    first = min(event for event in pair if event is not None)
    index = first.instruction
    text = format_instruction(instructions[index]) if index < len(instructions) else "no instruction"
    return Difference(
        what="events",
        message=f"in cycle {first.cycle} the {first.unit.label} unit differs at instruction {index}, {text}",
        cycle=first.cycle,
        unit=first.unit,
        instruction=index,
        sim=tuple(_surroundings(sim, at)),
        rtl=tuple(_surroundings(rtl, at)),
    )


def _surroundings(events: list[Event], at: int) -> Iterator[str]:
    for position in range(max(0, at - _AROUND), min(len(events), at + _AROUND + 1)):
        yield ("> " if position == at else "  ") + event_text(events[position])
    if at >= len(events):
        yield "> (nothing more)"


def event_text(event: Event) -> str:
    """An event in a line."""
    kind = event.kind.name.lower().replace("_", " ")
    value = ""
    if event.kind.name.startswith("TOKEN"):
        value = f" {Counter(event.value).label}"
    elif event.kind.name.startswith("QUEUE"):
        value = f" {Unit(event.value).label}"
    elif event.kind.name.startswith("BURST"):
        value = f" {event.value} beats"
    return f"cycle {event.cycle} {event.unit.label} {kind}{value}, instruction {event.instruction}"


def _outcome_difference(sim: TimingRun, rtl: HardwareRun) -> Difference | None:
    stop = sim.stop
    ours = (Cause.NONE, 0, sim.cycles) if stop is None else (stop.fault.cause, stop.index, sim.cycles)
    theirs = (rtl.cause, rtl.index if rtl.cause is not Cause.NONE else 0, rtl.cycles)
    if ours == theirs:
        return None
    return Difference(
        what="outcome",
        message="the runs end differently",
        cycle=min(ours[2], theirs[2]),
        unit=None if stop is None else stop.unit,
        instruction=None if stop is None else stop.index,
        sim=(_outcome_text(*ours),),
        rtl=(_outcome_text(*theirs),),
    )


def _outcome_text(cause: Cause, index: int, cycles: int) -> str:
    if cause is Cause.NONE:
        return f"it ends well after {cycles} cycles"
    return f"it ends in cycle {cycles} with {cause.label} at instruction {index}"


def _counter_difference(sim: TimingRun, rtl: HardwareRun) -> Difference | None:
    for unit in Unit:
        ours, theirs = sim.unit_cycles[unit].to_dict(), rtl.unit_cycles[unit].to_dict()
        for name, count in ours.items():
            if count != theirs[name]:
                return Difference(
                    what="counters",
                    message=f"the {unit.label} unit's cycles differ: {name.replace('_', ' ')}",
                    unit=unit,
                    sim=(f"{name} {count} of {sim.cycles}",),
                    rtl=(f"{name} {theirs[name]} of {rtl.cycles}",),
                )
    moved = moved_bytes(sim)
    for name, total in moved.items():
        if total != rtl.counters[name]:
            return Difference(
                what="counters",
                message=f"{name} differ",
                sim=(f"{name} {total}",),
                rtl=(f"{name} {rtl.counters[name]}",),
            )
    return None


def moved_bytes(run: TimingRun) -> dict[str, int]:
    """What the registers ``read_bytes`` and ``written_bytes`` hold after a run."""
    beats = {"read_bytes": 0, "written_bytes": 0}
    for burst in run.bursts:
        name = "written_bytes" if burst.unit is Unit.STORE else "read_bytes"
        beats[name] += max(0, min(burst.last + 1, run.cycles) - burst.first)
    return {name: count * run.config.bus_bytes for name, count in beats.items()}


def _memory_difference(program: Program, sim: Dram, rtl: Dram) -> Difference | None:
    ours, theirs = dict(sim.pages()), dict(rtl.pages())
    empty = np.zeros(PAGE_BYTES, dtype=np.uint8)
    count = 0
    first: tuple[int, int, int] | None = None
    for address in sorted(ours.keys() | theirs.keys()):
        page, other = ours.get(address, empty), theirs.get(address, empty)
        wrong = np.flatnonzero(page != other)
        if len(wrong) and first is None:
            at = int(wrong[0])
            first = (address + at, int(page[at]), int(other[at]))
        count += len(wrong)
    if first is None:
        return None
    index = _writer(program, first[0])
    text = "" if index is None else f"; instruction {index} writes there last"
    return Difference(
        what="memory",
        message=f"{count} bytes of memory differ, the first at {first[0]:#x}{text}",
        unit=Unit.STORE,
        instruction=index,
        sim=(f"{first[0]:#x} holds {first[1]:#04x}",),
        rtl=(f"{first[0]:#x} holds {first[2]:#04x}",),
    )


def _left_difference(
    simulation: Simulation, pads: Scratchpads, run: HardwareRun, engine: Engine
) -> Difference | None:
    """Of what a run that ended well leaves for the next one."""
    ours = simulation.functional.tokens
    if ours != run.tokens:
        return Difference(
            what="tokens", message="the tokens left over differ", sim=(f"{ours}",), rtl=(f"{run.tokens}",)
        )
    theirs = pads.copy()
    take_contents(theirs, engine.peek())
    for name in SCRATCHPADS:
        mine, other = getattr(pads, name), getattr(theirs, name)
        wrong = np.unique(np.nonzero(mine != other)[0])
        if len(wrong):
            at = int(wrong[0])
            return Difference(
                what="scratchpads",
                message=f"{len(wrong)} elements of {name} differ, the first is {name}[{at}]",
                sim=(f"{name}[{at}] holds {mine[at].tolist()}",),
                rtl=(f"{name}[{at}] holds {other[at].tolist()}",),
            )
    return None


def _writer(program: Program, address: int) -> int | None:
    """The last STORE, in program order, that writes a byte."""
    for index in reversed(range(len(program.instructions))):
        instruction = program.instructions[index]
        rows = dram_rows(instruction, program.config) if isinstance(instruction, Store) else None
        if rows is None:
            continue
        offsets = (address - rows.start - y * rows.stride for y in range(rows.rows))
        if any(0 <= offset < rows.row_bytes for offset in offsets):
            return index
    return None
