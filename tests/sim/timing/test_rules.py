"""Single rules of the timing contract, in cycles that can be counted by hand."""

from itertools import pairwise
from typing import Any

import pytest

from accel.base.records import replace
from accel.core.config import NAMED, Config
from accel.core.events import EventKind
from accel.core.fault_causes import Cause, Fault
from accel.core.isa import (
    Alu,
    AluOp,
    Finish,
    Gemm,
    Instruction,
    Load,
    LoadPar,
    LoadRes,
    Memory,
    SetOut,
    SetSum,
    Store,
    StoreAdd,
    StoreMul,
    StoreReq,
    Unit,
    Unknown,
)
from accel.core.timing_rules import INDEX_CHECK, compute_depth
from accel.sim.timing.timing_model import simulate_timing
from tests.sim.timing.cycle_stepped_machine import assert_same, step_by_step

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
    """Return the cycles of dispatch, start and retirement of each instruction."""
    run = simulate_timing(program, config, address=0, **options)
    assert_same(run, step_by_step(program, config, **options))
    return [(step.dispatch, step.start, step.retire) for step in run.instruction_runs]


def test_the_shortest_program() -> None:
    """Requested in cycle 1, two beats from 65 on, dispatched when written, two cycles in the compute unit."""
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


def test_products_of_the_alu_take_their_slots() -> None:
    """All other operations take one, and so does a product without micro-ops."""
    config = FAST.override({"mul_slots": 4})
    mul, depth = Alu(alu_op=AluOp.MUL, uop_end=3), compute_depth(FAST)
    program = [mul, replace(mul, uop_end=0), replace(mul, alu_op=AluOp.ADD), Finish()]
    assert cycles_of(program, config) == [
        (6, 7, 7 + 11 + depth),
        (7, 19, 19 + depth),
        (8, 20, 20 + 2 + depth),
        (9, 23 + depth, 24 + depth),
    ]
    run = simulate_timing(program, config, address=0)
    assert run.unit_cycles[Unit.COMPUTE].busy == 12 + 3


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
    """The first LOAD fills inp elements 8 to 11. The second one may start after its grant, or after it has
    retired."""
    first = Load(memory=Memory.INP, sram_base=8, x_size=4, y_size=1)
    second = Load(memory=memory, sram_base=base, x_size=4, y_size=1)
    found = cycles_of([first, second, Finish()])
    assert found[0] == (6, 7, 13)
    assert found[1][1] == (14 if waits else 9)


def test_a_faulty_load_does_not_wait_for_the_range_that_it_names() -> None:
    """The fault is found after the last grant of the previous LOAD."""
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
def test_the_limit_precedes_other_errors_of_its_cycle(program: list[Instruction]) -> None:
    cycle = stop_of(program)[0]
    assert stop_of(program, max_cycles=cycle) == (cycle, Unit.FETCH, 0, Cause.LIMIT)
    assert stop_of(program, max_cycles=cycle + 1) == stop_of(program)
    assert stop_of(program, max_cycles=1 << 99) == stop_of(program)


def test_an_index_is_checked_when_it_has_been_added() -> None:
    fault = Fault(cause=Cause.SRC_INDEX, message="far")
    program = [Gemm(uop_end=9), Store(), Finish()]
    assert stop_of(program, faults={0: (5, fault)}) == (7 + 5 + INDEX_CHECK, Unit.COMPUTE, 0, Cause.SRC_INDEX)


def test_a_pop_in_the_cycle_of_a_push_makes_room() -> None:
    """The counter holds one token. It overflows only if none is popped in that cycle."""
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


def test_serial_mode_dispatches_one_at_a_time() -> None:
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


# --- the store unit of the second generation -----------------------------------------------------

POST = NAMED["tiny-int8"].override(
    {"bus_bits": 128, "read_latency": 4, "write_latency": 3, "post_stages": 1, "post_lanes": 4}
)
"""A beat has four elements of out or res, of 4 bytes each. An element of par has 32 bytes, two beats. A write
takes three cycles from its grant to the first beat, and a requantized beat takes four."""
PAR_1 = LoadPar(x_size=1, y_size=1)
"""Started in t: granted in t + 1, on the bus in t + 5 and t + 6, written and retired in t + 7."""
RES_4 = LoadRes(x_size=4, y_size=1)
"""One beat less."""
REQ_4 = StoreReq(x_size=4, y_size=1, sram_base=0)
"""Started in t: granted in t + 1, its beat begins in t + 4 and is on the bus in t + 7; retires in t + 10."""
ADD_4 = StoreAdd(x_size=4, y_size=1, sram_base=0)
OUT_4 = Store(x_size=4, y_size=1, sram_base=0)
"""On the bus in t + 4; retires in t + 7."""


def test_transfers_of_the_store_unit_by_themselves() -> None:
    assert cycles_of([PAR_1, Finish()], POST)[0] == (6, 7, 14)
    assert cycles_of([RES_4, Finish()], POST)[0] == (6, 7, 13)
    assert cycles_of([REQ_4, Finish()], POST)[0] == (6, 7, 17)
    assert cycles_of([OUT_4, Finish()], POST)[0] == (6, 7, 14)
    assert cycles_of([replace(PAR_1, x_size=0), replace(RES_4, y_size=0), Finish()], POST)[:2] == [
        (6, 7, 8),
        (7, 8, 9),
    ]


@pytest.mark.parametrize(
    ("lanes", "bus_bits", "pace"), [(4, 64, 2), (4, 128, 4), (2, 128, 8), (1, 64, 8), (1, 256, 32)]
)
def test_a_beat_goes_through_the_lanes_a_few_bytes_at_a_time(lanes: int, bus_bits: int, pace: int) -> None:
    """A row of 16 bytes that starts in the middle of a beat. A partial beat takes as long as a full one, and
    no cycle is lost between two bursts."""
    config = POST.override({"post_lanes": lanes, "bus_bits": bus_bits})
    bus = bus_bits // 8
    store = replace(REQ_4, y_size=2, x_stride=16, dram_base=bus // 8)
    run = simulate_timing([store, Finish()], config, address=0)
    assert_same(run, step_by_step([store, Finish()], config))
    one, other = (burst for burst in run.bursts if burst.writes)
    beats = 16 // bus + 1
    start = run.instruction_runs[0].start
    assert start is not None
    assert (one.beats, one.pace, one.grant, one.first, one.last) == (
        beats,
        pace,
        start + 1,
        start + 4,
        start + 3 + beats * pace,
    )
    assert (other.grant, other.first, other.last) == (one.last - 2, one.last + 1, one.last + beats * pace)
    assert run.unit_cycles[Unit.STORE].busy == one.beats + other.beats


def test_beats_of_all_stores_stay_in_order() -> None:
    """The second STORE's beat takes one cycle, but must wait for the first one's four."""
    assert cycles_of([REQ_4, OUT_4, REQ_4, Finish()], POST)[:3] == [
        (6, 7, 17),
        (7, 9, 18),  # granted in 12, on the bus in 15
        (8, 13, 23),  # granted in 14, in the lanes from 17 on
    ]


@pytest.mark.parametrize(
    ("par", "flags", "waits"),
    [
        (2, {}, False),
        (3, {}, True),
        (4, {}, True),
        (5, {}, False),
        (0, {"par_x": True}, True),
        (0, {"par_y": True}, False),
        (2, {"par_y": True}, True),
        (5, {"par_x": True}, False),
    ],
)
def test_a_store_waits_until_its_par_elements_are_written(
    par: int, flags: dict[str, bool], waits: bool
) -> None:
    """Elements 3 and 4 are written in cycle 16 and can be read in the next one."""
    load = LoadPar(x_size=2, y_size=1, sram_base=3)
    store = replace(REQ_4, y_size=2, par=par, **flags)
    found = cycles_of([load, store, Finish()], POST)
    assert found[0] == (6, 7, 16)
    assert found[1][1] == (17 if waits else 8)


@pytest.mark.parametrize(("base", "waits"), [(0, False), (1, True), (2, True), (3, False)])
def test_a_load_overwrites_par_when_its_readers_have_retired(base: int, waits: bool) -> None:
    found = cycles_of(
        [replace(REQ_4, par=1, par_x=True, x_size=2), replace(PAR_1, sram_base=base), Finish()], POST
    )
    assert found[0] == (6, 7, 17)
    assert found[1] == (7, *((18, 25) if waits else (8, 18)))


def test_a_reader_of_par_retires_in_order() -> None:
    """The STORE's response comes in 18, but the LOAD before it is written in 39."""
    found = cycles_of([RES_4, REQ_4, PAR_1, Finish()], POST.override({"read_latency": 30}))
    first = found[0][0]
    assert first is not None
    assert [(one[1], one[2]) for one in found[:3]] == [
        (first + 1, first + 33),
        (first + 2, first + 34),
        (first + 35, first + 68),
    ]


def test_loads_of_par_that_overlap_wait_for_one_another() -> None:
    found = cycles_of([PAR_1, PAR_1, replace(PAR_1, sram_base=1), Finish()], POST)
    assert found[:3] == [(6, 7, 14), (7, 15, 22), (8, 17, 24)]


def test_residuals_are_consumed_when_the_last_of_them_is_written() -> None:
    """The second LOAD's beat is written in 15, the third one's in 17."""
    found = cycles_of([RES_4, RES_4, RES_4, ADD_4, replace(ADD_4, x_size=5), Finish()], POST)
    assert [one[1] for one in found[:5]] == [7, 9, 11, 14, 18]
    found = cycles_of([RES_4, RES_4, RES_4, replace(ADD_4, x_size=8), ADD_4, Finish()], POST)
    assert [one[1] for one in found[:5]] == [7, 9, 11, 16, 18]


@pytest.mark.parametrize(("first", "waits"), [(12, False), (13, True), (16, True)])
def test_a_load_of_residuals_waits_for_room(first: int, waits: bool) -> None:
    """Sixteen elements fill RES. Four are freed when the STORE that consumes them has retired."""
    found = cycles_of([replace(RES_4, x_size=first), ADD_4, RES_4, Finish()], POST)
    retired = found[1][2]
    assert retired is not None
    assert found[1][1] == (16 if first == 12 else 17)
    assert found[2][1] == (retired + 1 if waits else 17)


def test_a_late_retirement_makes_room_late() -> None:
    """Two STOREs consume eight elements. The LOAD of five waits for both, the LOAD of four for the first
    one."""
    program = [replace(RES_4, x_size=16), ADD_4, ADD_4, RES_4, Finish()]
    found = cycles_of(program, POST)
    assert found[3][1] == found[1][2] + 1  # type: ignore[operator]
    found = cycles_of([*program[:3], replace(RES_4, x_size=5), Finish()], POST)
    assert found[3][1] == found[2][2] + 1  # type: ignore[operator]


PRODUCTS = POST.override({"res_mul": 1})


@pytest.mark.parametrize("kind", [StoreAdd, StoreMul])
def test_a_store_that_holds_a_residual_takes_one(kind: type[StoreAdd]) -> None:
    """RES is full. Two STOREs of eight elements start when the first residual is written, in 13. A LOAD has
    room for one element when the first STORE has retired, and for two when the second one has."""
    store = kind(x_size=4, y_size=2, x_stride=4, hold=True)
    program = [RES_4, replace(RES_4, x_size=12), store, store]
    found = cycles_of([*program, replace(RES_4, x_size=1), replace(RES_4, x_size=1), Finish()], PRODUCTS)
    assert found[0] == (6, 7, 13)
    assert found[2][1] == 14
    assert (found[4][1], found[5][1]) == (found[2][2] + 1, found[3][2] + 1)  # type: ignore[operator]
    found = cycles_of([*program, replace(RES_4, x_size=2), Finish()], PRODUCTS)
    assert found[4][1] == found[3][2] + 1  # type: ignore[operator]


def test_a_store_that_holds_a_residual_needs_one() -> None:
    hold = StoreMul(x_size=4, y_size=2, x_stride=4, hold=True)
    nothing = replace(hold, y_size=0)
    program = [replace(RES_4, x_size=1), hold, nothing, hold, Finish()]
    assert stop_of(program, PRODUCTS)[2:] == (3, Cause.RESIDUAL_EMPTY)


def test_loads_and_stores_retire_in_order_and_do_not_wait_for_each_others_grants() -> None:
    """The LOAD's last write is in cycle 15, before the STORE's response in 17. The next STORE waits only for
    the first one's grant."""
    rows = replace(OUT_4, y_size=3, x_stride=8)
    found = cycles_of([rows, PAR_1, OUT_4, Finish()], POST)
    assert found[:3] == [(6, 7, 16), (7, 8, 17), (8, 11, 18)]


@pytest.mark.parametrize(
    ("timing", "starts"),
    [
        ({}, [7, 9, 10, 12]),
        ({"loads_in_flight": 1}, [7, 15, 16, 18]),
        ({"stores_in_flight": 1}, [7, 9, 10, 18]),
    ],
)
def test_loads_and_stores_in_flight_are_counted_apart(timing: dict[str, int], starts: list[int]) -> None:
    program = [PAR_1, replace(PAR_1, sram_base=1), OUT_4, OUT_4, Finish()]
    found = cycles_of(program, POST.override(timing))
    assert [one[1] for one in found[:4]] == starts


def test_a_set_starts_when_the_store_unit_is_empty() -> None:
    found = cycles_of([PAR_1, SetOut(), REQ_4, SetSum(), OUT_4, Finish()], POST)
    assert found[:5] == [(6, 7, 14), (7, 15, 16), (8, 17, 27), (9, 28, 29), (10, 30, 37)]


@pytest.mark.parametrize(
    ("bad", "cause"),
    [
        (replace(PAR_1, sram_base=1, x_size=16), Cause.SRAM_RANGE),
        (replace(REQ_4, par=1, par_y=True, par_x=True), Cause.RESERVED),
        (replace(RES_4, x_size=13), Cause.RESIDUAL_FULL),
        (replace(ADD_4, x_size=5), Cause.RESIDUAL_EMPTY),
    ],
)
def test_faulty_instructions_do_not_wait_for_shared_memories(bad: Instruction, cause: Cause) -> None:
    """LOADs are accepted after the last grant of the previous one, STOREs at once."""
    program = [replace(PAR_1, sram_base=1), RES_4, bad, Finish()]
    start = 9 + (2 if isinstance(bad, Load) else 1)
    assert stop_of(program, POST) == (start, Unit.STORE, 2, cause)


def test_of_equal_instructions_one_may_be_faulty_and_another_not() -> None:
    assert stop_of([RES_4, ADD_4, ADD_4, Finish()], POST) == (16, Unit.STORE, 2, Cause.RESIDUAL_EMPTY)


def test_the_read_port_grants_compute_then_store_then_load() -> None:
    """They start one after the other, and all request bursts after the first one's bursts are granted."""
    rows = Load(memory=Memory.ACC, x_size=1, y_size=5, x_stride=64)
    loads = [Load(memory=Memory.INP, x_size=1, y_size=2, x_stride=64), replace(PAR_1, y_size=2)]
    run = simulate_timing([rows, *loads, Finish()], POST, address=0)
    assert_same(run, step_by_step([rows, *loads, Finish()], POST))
    reads = sorted((b.grant, b.unit) for b in run.bursts if not b.writes and b.unit is not Unit.FETCH)
    assert reads == [
        *((cycle, Unit.COMPUTE) for cycle in range(8, 13)),
        (13, Unit.STORE),
        (14, Unit.STORE),
        (15, Unit.LOAD),
        (16, Unit.LOAD),
    ]


def test_the_store_unit_may_have_a_read_and_a_write_granted_in_one_cycle() -> None:
    program = [replace(OUT_4, y_size=3, x_stride=64), replace(PAR_1, y_size=2, x_stride=2), Finish()]
    run = simulate_timing(program, POST, address=0)
    assert_same(run, step_by_step(program, POST))
    grants = [(event.cycle, event.instruction) for event in run.events() if event.unit is Unit.STORE]
    assert {(9, 0), (9, 1)} <= set(grants)
    kinds = [event for event in run.events() if event.kind == EventKind.BURST_GRANT and event.cycle == 9]
    assert [(one.unit, one.instruction) for one in kinds] == [(Unit.STORE, 0), (Unit.STORE, 1)]
    assert run.unit_cycles[Unit.STORE].busy == 3 + 4
