"""Debugging a run: events, memory and waits at every cycle."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from accel.assembly import assemble
from accel.base.errors import AccelError
from accel.core.events import EventKind
from accel.core.token_rules import WORKERS, Counter, pops, pushes
from accel.debug import Debugger
from accel.debug.breakpoints import Breakpoint
from accel.debug.debugger_commands import Session
from accel.debug.memory_locations import MemoryLocation, parse_location
from accel.run.program import Program, as_program
from accel.run.replay import load_test
from accel.sim.functional.scratchpads import Scratchpads
from tests.expect import refused
from tests.programs import gemm_program
from tests.test_directed import FILES
from tests.views.runs import EPILOGUES

PROGRAMS = {
    "gemm": lambda: gemm_program(20, 16, 40, shift=3),
    "bias": lambda: gemm_program(9, 17, 30, bias=True, relu=True, shift=2),
}


@cache
def program(name: str) -> Program:
    return PROGRAMS[name]()


def scratchpads(one: Scratchpads) -> list[np.ndarray]:
    return [one.uop, one.inp, one.wgt, one.acc]


# --- the whole run -------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["sim", "functional"])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_memory_at_the_end_is_that_of_a_run(path: Path, backend: str) -> None:
    """This also holds if an error ends the run."""
    one = load_test(path)
    assert one.expected is not None
    if one.expected.racy:
        return
    dram, pads = one.dram(), Scratchpads.random(one.config, 0)
    one.execute(dram, pads, backend=backend)
    debugger = Debugger(one, backend=backend)
    while debugger.step().end is None:
        pass
    assert debugger.ended
    assert debugger.dram == dram
    for mine, right in zip(scratchpads(debugger.pads), scratchpads(pads), strict=True):
        np.testing.assert_array_equal(mine, right)


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_instruction_is_stepped_over_once_and_the_output_is_right(name: str) -> None:
    one = program(name)
    debugger = Debugger(one, seed=3)
    retired: list[int] = []
    before = -1
    while (halt := debugger.step()).end is None:
        events = debugger.events_between(before, halt.cycle)
        retired += [e.instruction for e in events if e.kind is EventKind.RETIRE]
        before = halt.cycle
    assert sorted(retired) == list(range(len(one.instructions)))
    expected = one.run(seed=3).outputs["C"]
    found = debugger.tensor("C")
    assert found is not None
    np.testing.assert_array_equal(found, expected)
    assert debugger.cycle == (one.run(seed=3).cycles or 0) - 1


@pytest.mark.parametrize("name", PROGRAMS)
def test_memory_changes_when_instructions_retire(name: str) -> None:
    """The sums of a GEMM appear in the cycle in which it retires, not in the cycle before."""
    debugger = Debugger(program(name))
    for index, instruction in enumerate(debugger.instructions):
        if instruction.mnemonic != "STORE.OUT":
            continue
        debugger.restart()
        retired = next(
            e.cycle
            for e in debugger.events_between(-1, 1 << 40)
            if e.kind is EventKind.RETIRE and e.instruction == index
        )
        debugger.run_to(retired - 1)
        before = debugger.dram.copy()
        debugger.run_to(retired)
        assert debugger.dram != before


@pytest.mark.parametrize("backend", ["sim", "functional"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_state_in_every_cycle(name: str, backend: str) -> None:
    """Tokens are pushes minus pops. A waiting unit waits for an instruction that has not retired, and starts
    its own one after that."""
    one = program(name)
    debugger = Debugger(one, backend=backend)
    state = debugger.state
    waited = 0
    while (halt := debugger.run_to(debugger.cycle + 1)).end is None:
        done = [
            e
            for e in debugger.events_between(-1, halt.cycle)
            if e.kind in (EventKind.START, EventKind.RETIRE)
        ]
        started = {e.instruction for e in done if e.kind is EventKind.START}
        retired = {e.instruction for e in done if e.kind is EventKind.RETIRE}
        for counter in Counter:
            sent = sum(counter in pushes(one.instructions[i]) for i in retired)
            taken = sum(counter in pops(one.instructions[i]) for i in started)
            assert state.tokens[counter] == sent - taken >= 0
        for unit in WORKERS:
            assert set(state.units[unit].running) == {
                i for i in started - retired if one.instructions[i].unit is unit
            }
            head = state.head(unit)
            for counter, sender in state.missing_tokens(head) if head is not None else ():
                waited += 1
                assert sender is not None
                assert sender not in retired
                assert counter in pushes(one.instructions[sender])
    assert waited
    assert not any(state.units[unit].unstarted for unit in WORKERS)


def test_no_instruction_sends_the_token_of_a_deadlock() -> None:
    debugger = Debugger(load_test(Path(__file__).parents[1] / "programs" / "fault_deadlock.s"))
    halt = debugger.run_to()
    assert halt.end is not None
    assert "deadlock" in halt.end
    assert debugger.state.missing_tokens(1) == [(Counter.STORE_TO_COMPUTE, None)]
    [(counter, sender)] = debugger.state.missing_tokens(2)
    assert (counter, sender) == (Counter.COMPUTE_TO_STORE, None)


# --- moving --------------------------------------------------------------------------------------------


def test_any_sequence_of_moves_reaches_the_same_state() -> None:
    one = program("gemm")
    straight, stepped = Debugger(one), Debugger(one)
    last = Debugger(one).run_to().cycle
    for target in (0, last // 8, last // 6, last // 2, last - 3, last - 2, last):
        straight.restart()
        straight.run_to(target)
        while stepped.cycle < target:
            stepped.run_to(stepped.cycle + 1)
        assert straight.cycle == stepped.cycle == target
        assert straight.dram == stepped.dram
        assert straight.state.tokens == stepped.state.tokens
        for mine, right in zip(scratchpads(straight.pads), scratchpads(stepped.pads), strict=True):
            np.testing.assert_array_equal(mine, right)


def test_the_end_is_the_end() -> None:
    debugger = Debugger(program("gemm"))
    for halt in (debugger.run_to(), debugger.step(), debugger.run_to(5), debugger.run_to()):
        assert halt.end is not None
    debugger.restart()
    assert not debugger.ended
    assert debugger.step().end is None


# --- breakpoints ---------------------------------------------------------------------------------------


def stops(debugger: Debugger, breakpoint: Breakpoint) -> list[tuple[int, int | None]]:
    """Return the cycles and instructions at which a breakpoint stops the run."""
    debugger.restart()
    debugger.breakpoints.clear()
    debugger.add(breakpoint)
    found = []
    while (halt := debugger.run_to()).end is None:
        assert halt.breakpoint is breakpoint
        found.append((halt.cycle, None if halt.event is None else halt.event.instruction))
    return found


def test_breakpoints_stop_at_every_hit() -> None:
    one = program("bias")
    debugger = Debugger(one)
    events = debugger.events_between(-1, 1 << 40)
    starts = {e.instruction: e.cycle for e in events if e.kind is EventKind.START}
    for index in range(len(one.instructions)):
        assert stops(debugger, Breakpoint(index=index)) == [(starts[index], index)]
    for counter in Counter:
        kinds = (EventKind.TOKEN_POP, EventKind.TOKEN_PUSH)
        cycles = sorted({e.cycle for e in events if e.kind in kinds and e.value == counter})
        assert [cycle for cycle, _ in stops(debugger, Breakpoint(counter=counter))] == cycles
    last = debugger.cycle
    for cycle in (0, 1, 150, last - 1):
        assert stops(debugger, Breakpoint(cycle=cycle)) == [(cycle, None)]
    assert stops(debugger, Breakpoint(cycle=last + 10)) == []


def test_a_run_stops_before_an_access_changes_memory() -> None:
    one = program("bias")
    debugger = Debugger(one)
    out = parse_location("C", one)
    stores = [i for i, x in enumerate(one.instructions) if x.mnemonic == "STORE.OUT"]
    assert [index for _, index in stops(debugger, Breakpoint(location=out, reads=False))] == stores
    assert stops(debugger, Breakpoint(location=out, writes=False)) == []
    loads = [i for i, x in enumerate(one.instructions) if x.mnemonic == "LOAD.INP"]
    found = [index for _, index in stops(debugger, Breakpoint(location=parse_location("A", one)))]
    assert found == loads


def test_access_to_scratchpads() -> None:
    one = load_test(Path(__file__).parents[1] / "programs" / "tokens_war.s")
    debugger = Debugger(one)

    def indices(location: str, **options: bool) -> list[int | None]:
        return [
            index
            for _, index in stops(debugger, Breakpoint(location=parse_location(location, one), **options))
        ]

    assert indices("inp[0]") == [0, 1, 3, 4, 6, 7]
    assert indices("inp[0]", reads=False) == [0, 3, 6]
    assert indices("inp[1:128]") == []
    assert indices("acc[0:2]", writes=False) == [1, 2, 4, 5, 7, 8]
    assert indices("uop[0]") == [1, 4, 7]
    assert indices("dram[x+4:x+8]") == [3]
    assert indices("dram[y:]", writes=True) == [2, 5, 8]
    assert indices("dram[0:x]") == []


def test_several_breakpoints_the_nearest_first() -> None:
    debugger = Debugger(program("gemm"))
    numbers = [debugger.add(Breakpoint(cycle=cycle)) for cycle in (300, 100)]
    numbers.append(debugger.add(Breakpoint(index=4)))
    assert numbers == [1, 2, 3]
    found = []
    while (halt := debugger.run_to()).end is None:
        found.append(str(halt.breakpoint))
    assert found == ["cycle 100", "instruction 4", "cycle 300"]
    debugger.restart()
    del debugger.breakpoints[1]
    assert str(debugger.run_to(99).breakpoint) == "None"
    assert debugger.cycle == 99


# --- locations -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "location"),
    [
        ("acc", ("acc", 0, 128)),
        ("acc[3]", ("acc", 3, 4)),
        ("acc[3:8]", ("acc", 3, 8)),
        ("acc[:8]", ("acc", 0, 8)),
        ("acc[120:]", ("acc", 120, 128)),
        ("inp[ 0x10 : 0x20 ]", ("inp", 16, 32)),
        ("dram[0x1000:0x1040]", ("dram", 4096, 4160)),
        ("dram[x]", ("dram", 4096, 4097)),
        ("dram[x+4:y-2]", ("dram", 4100, 4110)),
        ("y", ("dram", 4112, 4136)),
    ],
)
def test_locations(text: str, location: tuple[str, int, int]) -> None:
    one = load_test(Path(__file__).parents[1] / "programs" / "tokens_war.s")
    memory, first, stop = location
    assert parse_location(text, one) == MemoryLocation(memory=memory, first=first, stop=stop)
    assert parse_location(str(parse_location(text, one)), one) == parse_location(text, one)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is not a location; write acc[3], acc[3:8], dram[0x1000:0x1040] or a name"),
        ("acc[3", "'acc[3' is not a location; write acc[3], acc[3:8], dram[0x1000:0x1040] or a name"),
        ("ac[3]", "'ac[3]' is not a location; did you mean 'acc'?"),
        ("x[3]", "'x[3]' is not a location; did you mean 'x'?"),
        ("acc[128]", "'acc[128]' is empty or outside of acc, which has 128 elements"),
        ("acc[8:8]", "'acc[8:8]' is empty or outside of acc, which has 128 elements"),
        ("acc[4:200]", "'acc[4:200]' is empty or outside of acc, which has 128 elements"),
        ("acc[q]", "'q' is not a name; valid are x, y"),
        ("acc[1+2]", "'1+2' is not a number"),
        ("acc[09]", "'09' is not a number"),
        ("dram", "all of DRAM is too large; dram[FIRST:STOP] names a part of it"),
        ("dram[x+:y]", "'x+' is not a number"),
    ],
)
def test_texts_that_are_not_locations(text: str, message: str) -> None:
    one = load_test(Path(__file__).parents[1] / "programs" / "tokens_war.s")
    with refused(AccelError, message):
        parse_location(text, one)


def test_bad_input() -> None:
    count = len(program("gemm").instructions)
    with refused(AccelError, f"instruction {count} does not exist; the program has {count}"):
        Debugger(program("gemm")).instruction(count)
    with refused(AccelError, "the seed is -1; it must be an integer from 0 on"):
        Debugger(program("gemm"), seed=-1)


def test_where_names_the_waits_of_the_store_unit_other_than_tokens() -> None:
    session = Session(Debugger(as_program(assemble(EPILOGUES))))
    found = {}
    for cycle in (65, 85, 102, 125, 144):
        session.run(f"goto {cycle}")
        lines = session.run("where").splitlines()
        found[cycle] = [line for line in lines if "waits at" in line or "next, with" in line]
    heads = {cycle: [line.strip().partition(": ")[0] for line in lines] for cycle, lines in found.items()}
    assert heads == {
        65: ["waits at 3 until instruction 1 has filled par[0:2]"],
        85: ["waits at 5 for room in res"],
        102: ["waits at 7 for residuals"],
        125: ["waits at 8 until instruction 7, which uses par[0:1], has retired"],
        144: [],
    }
    assert ": 16 of 16 elements are in use: LOAD.RES" in found[85][0]
    assert ": 0 of 8 have been loaded: STORE.ADD" in found[102][0]
