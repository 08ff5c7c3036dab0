"""Differences between simulator and hardware."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
from msgspec import Struct

from accel.core.config import PAGE_BYTES
from accel.core.events import Event, listed_events
from accel.core.fault_causes import Cause
from accel.core.instruction_access import dram_rows
from accel.core.isa import Instruction, Store, Unit, format_instruction
from accel.core.scratchpad_specs import scratchpads_of
from accel.core.token_rules import Counter
from accel.energy.access_counts import count_accesses
from accel.hw.engines.engine_driver import Engine
from accel.hw.engines.hardware_run import HardwareRun
from accel.image.dram import Dram
from accel.image.image import Image
from accel.run.backends.rtl_backend import copy_contents
from accel.run.lockstep_scope import Scope
from accel.sim.functional.scratchpads import Scratchpads
from accel.sim.simulator import Simulation
from accel.sim.timing.timing_run import TimingRun

_CONTEXT_EVENTS = 4


class Difference(Struct, frozen=True, kw_only=True):
    """The first difference.

    Attributes:
        what: ``events``, ``outcome``, ``counters``, ``memory``, ``tokens`` or ``scratchpads`` (left over),
            ``accesses``, or ``rules`` (of the bus).
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


def compare(
    program: Image, scope: Scope, sim: TimingRun, rtl: HardwareRun, sim_dram: Dram, rtl_dram: Dram
) -> Difference | None:
    """Compare events, outcome, counters and memory, in this order."""
    found = (
        _event_difference(program.instructions, listed_events(sim), listed_events(rtl))
        or _outcome_difference(sim, rtl)
        or _counter_difference(sim, rtl)
    )
    if found is None and scope is Scope.EVERYTHING:
        found = _memory_difference(program, sim_dram, rtl_dram)
    return found


def compare_results(
    program: Image, scope: Scope, sim: TimingRun, rtl: HardwareRun, sim_dram: Dram, rtl_dram: Dram
) -> Difference | None:
    """Compare memory after runs with hostile memory that should end well."""
    if sim.stop is not None or rtl.cause is Cause.TOKEN_OVERFLOW:
        return None
    if rtl.cause is not Cause.NONE:
        return _outcome_difference(sim, rtl)
    return _memory_difference(program, sim_dram, rtl_dram) if scope is Scope.EVERYTHING else None


def compare_leftovers(
    simulation: Simulation, pads: Scratchpads, run: HardwareRun, engine: Engine
) -> Difference | None:
    """Compare tokens and scratchpads after runs that ended well."""
    ours = simulation.functional.tokens
    if ours != run.tokens:
        return Difference(
            what="tokens", message="the tokens left over differ", sim=(f"{ours}",), rtl=(f"{run.tokens}",)
        )
    theirs = pads.copy()
    copy_contents(theirs, engine.peek())
    for name in scratchpads_of(engine.config):
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


def compare_accesses(program: Image, run: HardwareRun) -> Difference | None:
    """Compare the hardware's accesses with those that the instructions imply."""
    if run.accesses is None:
        return None
    config = program.config
    address = config.mem_base + program.code_offset
    ours = count_accesses(program.instructions, config, address=address)
    for name, count in run.accesses.items():
        if ours[name] != count:
            return Difference(
                what="accesses",
                message=f"the counts of {name.replace('_', ' ')} differ",
                sim=(f"{name} {ours[name]}",),
                rtl=(f"{name} {count}",),
            )
    return None


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
    for position in range(max(0, at - _CONTEXT_EVENTS), min(len(events), at + _CONTEXT_EVENTS + 1)):
        yield ("> " if position == at else "  ") + event_text(events[position])
    if at >= len(events):
        yield "> (nothing more)"


def event_text(event: Event) -> str:
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
    """Return the registers ``read_bytes`` and ``written_bytes``."""
    beats = {"read_bytes": 0, "written_bytes": 0}
    for burst in run.bursts:
        name = "written_bytes" if burst.writes else "read_bytes"
        beats[name] += max(0, min(burst.last + 1, run.cycles) - burst.first) // burst.pace
    return {name: count * run.config.bus_bytes for name, count in beats.items()}


def _memory_difference(program: Image, sim: Dram, rtl: Dram) -> Difference | None:
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


def _writer(program: Image, address: int) -> int | None:
    for index in reversed(range(len(program.instructions))):
        instruction = program.instructions[index]
        rows = dram_rows(instruction, program.config) if isinstance(instruction, Store) else None
        if rows is None:
            continue
        offsets = (address - rows.start - y * rows.stride for y in range(rows.rows))
        if any(0 <= offset < rows.row_bytes for offset in offsets):
            return index
    return None
