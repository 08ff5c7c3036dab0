"""Single rules of the timing contract, in cycles that can be counted by hand."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from accel.core.config import NAMED, Config
from accel.core.events import EventKind
from accel.core.faults import Cause, Fault
from accel.core.isa import Alu, Finish, Gemm, Instruction, Load, Memory, Store, Unit, Unknown
from accel.core.timing_rules import INDEX_CHECK, compute_depth
from accel.sim.timing.model import simulate_timing
from tests.sim.timing.cycles import assert_same, step_by_step

TINY = NAMED["tiny"]
FAST = TINY.override({"bus_bits": 128, "read_latency": 4})
"""An instruction arrives in each cycle from 6 on."""
BAD_LOAD = Load(memory=Memory.INP, x_size=1, y_size=1, sram_base=999)
BAD_STORE = Store(x_size=1, y_size=1, sram_base=999)
BAD_ALU = Alu(alu_op=7)
LOAD_NOTHING = Load(memory=Memory.INP)
UOPS_NOTHING = Load(memory=Memory.UOP)


def cycles_of(
    program: list[Instruction], config: Config = FAST, **options: Any
) -> list[tuple[int | None, ...]]:
    """Cycles of hand-out, start and retirement of each instruction."""
    run = simulate_timing(program, config, address=0, **options)
    assert_same(run, step_by_step(program, config, **options))
    return [(step.dispatch, step.start, step.retire) for step in run.steps]


def test_the_shortest_program() -> None:
    """Request in cycle 1, two beats from 65 on, handed out when written, two cycles in the compute unit."""
    run = simulate_timing([Finish()], TINY, address=0)
    assert run.cycles == 70
    assert run.events() == [
        (1, Unit.FETCH, EventKind.BURST_GRANT, 0, 2),
        (66, Unit.FETCH, EventKind.BURST_LAST, 0, 2),
        (67, Unit.FETCH, EventKind.QUEUE_PUSH, 0, Unit.COMPUTE),
        (68, Unit.COMPUTE, EventKind.QUEUE_POP, 0, Unit.COMPUTE),
        (68, Unit.COMPUTE, EventKind.START, 0, 0),
        (69, Unit.COMPUTE, EventKind.RETIRE, 0, 0),
    ]
    assert run.unit_cycles[Unit.FETCH].to_dict() == {
        "busy": 1,
        "memory_stall": 67,
        "token_stall": 0,
        "idle": 2,
    }


def test_micro_ops_follow_one_another_while_earlier_instructions_drain() -> None:
    gemm = Gemm(uop_end=5)
    depth = compute_depth(FAST)
    assert cycles_of([gemm, gemm, Alu(uop_end=0), Finish()]) == [
        (6, 7, 7 + 4 + depth),
        (7, 12, 12 + 4 + depth),
        (8, 17, 17 + depth),
        (9, 18 + depth, 19 + depth),
    ]


def test_a_long_instruction_is_simulated_at_once() -> None:
    """69 thousand million micro-ops."""
    count = 256 * 16383**2
    program = [Gemm(uop_end=256, iter_out=16383, iter_in=16383), Finish()]
    run = simulate_timing(program, FAST, address=0, max_cycles=1 << 40)
    assert run.cycles == 7 + count + compute_depth(FAST) + 2
    assert run.unit_cycles[Unit.COMPUTE].busy == count


def test_pads_are_written_in_cycles_without_data() -> None:
    """Four beats of data, in 12..15, and ten pad words from 8 on."""
    load = Load(memory=Memory.INP, x_size=16, y_size=1, x_pad_0=5, x_pad_1=5)
    assert cycles_of([load, Finish()])[0] == (6, 7, 21)
    assert cycles_of([replace(load, x_pad_0=1, x_pad_1=1), Finish()])[0] == (6, 7, 16)


@pytest.mark.parametrize(
    ("memory", "base", "waits"),
    [
        (Memory.INP, 5, True),
        (Memory.INP, 8, True),
        (Memory.INP, 11, True),
        (Memory.INP, 4, False),
        (Memory.INP, 12, False),
        (Memory.WGT, 8, False),
    ],
)
def test_loads_that_overlap_wait_for_one_another(memory: Memory, base: int, waits: bool) -> None:
    """The first fills inp elements 8 to 11; the second may start when it has had its grant, else when it
    has retired."""
    first = Load(memory=Memory.INP, sram_base=8, x_size=4, y_size=1)
    second = Load(memory=memory, sram_base=base, x_size=4, y_size=1)
    found = cycles_of([first, second, Finish()])
    assert found[0] == (6, 7, 13)
    assert found[1][1] == (14 if waits else 9)


def test_a_faulty_load_does_not_wait_for_the_range_that_it_names() -> None:
    """It is found when the one before has had its last grant."""
    program = [
        Load(memory=Memory.INP, x_size=4, y_size=1),
        replace(BAD_LOAD, sram_base=0, x_size=999),
        Finish(),
    ]
    assert stop_of(program) == (9, Unit.LOAD, 1, Cause.SRAM_RANGE)


def stop_of(
    program: list[Instruction], config: Config = FAST, **options: Any
) -> tuple[int, Unit, int, Cause]:
    run = simulate_timing(program, config, address=0, **options)
    assert_same(run, step_by_step(program, config, **options))
    assert run.stop is not None
    return run.stop.cycle, run.stop.unit, run.stop.index, run.stop.fault.cause


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ([BAD_LOAD, Unknown(opcode=6), Finish()], (7, Unit.FETCH, 1, Cause.OPCODE)),
        ([UOPS_NOTHING, BAD_LOAD, Unknown(opcode=6), Finish()], (8, Unit.FETCH, 2, Cause.OPCODE)),
        (
            [replace(LOAD_NOTHING, push_next=True), replace(BAD_ALU, pop_prev=True), BAD_LOAD, Finish()],
            (9, Unit.LOAD, 2, Cause.SRAM_RANGE),
        ),
        (
            [replace(UOPS_NOTHING, push_next=True), replace(BAD_STORE, pop_prev=True), BAD_ALU, Finish()],
            (9, Unit.COMPUTE, 2, Cause.ALU_OP),
        ),
        ([BAD_LOAD, BAD_ALU, BAD_STORE, Finish()], (7, Unit.LOAD, 0, Cause.SRAM_RANGE)),
        ([BAD_ALU, BAD_LOAD, Finish()], (7, Unit.COMPUTE, 0, Cause.ALU_OP)),
    ],
    ids=[
        "fetch, load",
        "fetch, load again",
        "load, compute",
        "compute, store",
        "first load",
        "first compute",
    ],
)
def test_the_earliest_error_wins_then_the_unit(
    program: list[Instruction], expected: tuple[int, Unit, int, Cause]
) -> None:
    assert stop_of(program) == expected


@pytest.mark.parametrize(
    "program", [[BAD_LOAD, Finish()], [Unknown(opcode=7)], [replace(LOAD_NOTHING, pop_next=True), Finish()]]
)
def test_the_limit_goes_before_any_other_error_of_its_cycle(program: list[Instruction]) -> None:
    cycle = stop_of(program)[0]
    assert stop_of(program, max_cycles=cycle) == (cycle, Unit.FETCH, 0, Cause.LIMIT)
    assert stop_of(program, max_cycles=cycle + 1) == stop_of(program)
    assert stop_of(program, max_cycles=1 << 99) == stop_of(program)


def test_an_index_is_checked_when_it_has_been_added() -> None:
    fault = Fault(cause=Cause.SRC_INDEX, message="far")
    program = [Gemm(uop_end=9), Store(), Finish()]
    assert stop_of(program, faults={0: (5, fault)}) == (7 + 5 + INDEX_CHECK, Unit.COMPUTE, 0, Cause.SRC_INDEX)


def test_a_pop_in_the_cycle_of_a_push_makes_room() -> None:
    """The counter holds one: it overflows only if nothing is taken out of it in that cycle."""
    push = replace(LOAD_NOTHING, push_next=True)
    pop = replace(UOPS_NOTHING, pop_prev=True)
    config = FAST.override({"token_bits": 1})
    assert stop_of([push, push, Finish()], config) == (9, Unit.LOAD, 1, Cause.TOKEN_OVERFLOW)
    assert cycles_of([push, push, pop, Finish()], config)[1:3] == [(7, 8, 9), (8, 9, 10)]


def test_errors_in_words() -> None:
    run = simulate_timing([replace(UOPS_NOTHING, pop_prev=True), Finish()], FAST, address=0)
    assert run.stop is not None
    assert run.stop.fault.message == (
        "deadlock: compute waits at instruction 0 for a token from load; no instruction left in the load "
        "unit pushes one"
    )
    assert (run.cycles, run.stop.cycle, run.stop.fault.cause) == (8, 8, Cause.DEADLOCK)
    run = simulate_timing([Finish()], FAST, address=0, max_cycles=8)
    assert run.stop is not None
    assert run.stop.fault.message == "the run takes more than 8 cycles (max_cycles)"
    assert simulate_timing([Finish()], FAST, address=0, max_cycles=9).stop is None
    run = simulate_timing(
        [replace(LOAD_NOTHING, push_next=True)] * 2 + [Finish()], FAST.override({"token_bits": 1}), address=0
    )
    assert run.stop is not None
    assert run.stop.fault.message == (
        "the counter of tokens from load to compute overflows; token_bits=1 holds 1"
    )


def test_an_empty_program() -> None:
    run = simulate_timing([], TINY, address=0)
    assert run.stop is not None
    assert (run.stop.cycle, run.stop.unit, run.stop.index) == (1, Unit.FETCH, 0)
    assert run.stop.fault.message == "the program is empty; it must end with FINISH"
    assert (run.cycles, run.events()) == (1, [])


def test_serial_mode_hands_out_one_at_a_time() -> None:
    program = [
        Load(memory=Memory.INP, x_size=4, y_size=1),
        Gemm(uop_end=3),
        Store(x_size=1, y_size=1),
        Finish(),
    ]
    found = cycles_of(program, FAST.override({"serial": 1}))
    for before, after in pairwise(found):
        assert before[2] is not None
        assert after[0] == before[2] + 1
