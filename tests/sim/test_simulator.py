"""Complete runs: function and time together, and the memory that an interrupted run leaves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from accel.base.errors import DeadlockError, LimitExceeded, MachineError
from accel.base.records import replace
from accel.core.config import NAMED, Config
from accel.core.fault_causes import Cause
from accel.core.isa import Alu, AluOp, Finish, Instruction, Load, Memory, Store
from accel.image.dram import Dram
from accel.sim.functional.executor import FunctionalRun, run_functional
from accel.sim.functional.scratchpads import Scratchpads
from accel.sim.simulator import Simulation, simulate
from accel.sim.timing.timing_run import TimingRun
from tests.expect import refused
from tests.reference import Reference, assert_same_pads
from tests.sim.functional.test_load_store import random_dram
from tests.sim.timing.instruction_work import bursts_of_row
from tests.strategies import examples, micro_ops, programs, timings

TINY = NAMED["tiny"]
FAST = TINY.override({"bus_bits": 128, "read_latency": 4})
DRAM_BYTES = 1 << 13


def run(program: list[Instruction], config: Config = FAST, **options: object) -> Simulation:
    """Run from zeros."""
    dram, pads = Dram.of(config), Scratchpads.zeros(config)
    return simulate(program, config, dram, pads, address=0, **options)  # type: ignore[arg-type]


def left_behind(run: TimingRun, program: list[Instruction], reference: Reference) -> None:
    """Execute on ``reference`` the instructions that had started, in that order; of STOREs only the granted
    bursts."""
    assert run.stop is not None
    started = [
        step for step in run.instruction_runs if step.start is not None and step.start <= run.stop.cycle
    ]
    for step in sorted(started, key=lambda step: (step.start, step.index)):
        instruction = program[step.index]
        if isinstance(instruction, Store) and instruction.x_size:
            granted = sum(b.writes and b.instruction == step.index for b in run.bursts)
            store_bursts(instruction, reference, granted)
        else:
            reference.execute(instruction)


def store_bursts(store: Store, reference: Reference, count: int) -> None:
    bus = reference.config.bus_bits // 8
    elements = reference.acc[store.sram_base : store.sram_base + store.x_size * store.y_size]
    data = iter([value & 255 for element in elements for row in element for value in row])
    for row in reference.rows(store):
        word = row.start // bus
        for beats in bursts_of_row(row.start, len(row), reference.config):
            for address in range(max(row.start, word * bus), min(row.stop, (word + beats) * bus)):
                value = next(data)
                if count > 0:
                    reference.write_byte(address, value)
            word += beats
            count -= 1


@examples(200)
@given(st.data())
def test_an_interrupted_run_leaves_started_instructions_and_granted_bursts(data: st.DataObject) -> None:
    config = data.draw(timings(TINY)).override({"mem_size": 2 * DRAM_BYTES})
    program = data.draw(programs(config, wild=True, x_size=20, dram_bytes=DRAM_BYTES))
    dram, pads = random_dram(config, DRAM_BYTES), Scratchpads.random(config, 3)
    pads.uop[:] = data.draw(micro_ops(config))
    reference = Reference(config, pads, dram)
    limit = data.draw(st.integers(40, 400) | st.just(1 << 20))
    found = simulate(program, config, dram, pads, address=0, max_cycles=limit)
    assert found.timing is not None
    if found.timing.stop is None:
        for index in found.functional.order:
            assert reference.execute(program[index]) is None
        assert_same_pads(pads, reference.pads())
    else:
        left_behind(found.timing, program, reference)
    assert dram == reference.memory()


ADD = Alu(uop_end=1, alu_op=AluOp.ADD, use_imm=True, imm=7, iter_in=48, dst_factor_in=1, push_next=True)


@pytest.mark.parametrize(("limit", "grants"), [(66, [63]), (74, [63, 71])])
def test_an_interrupted_store_has_written_complete_bursts(limit: int, grants: list[int]) -> None:
    """Three rows of 128 bytes, a burst each."""
    program = [ADD, Store(y_size=3, x_size=16, x_stride=16, pop_prev=True), Finish()]
    dram, pads = Dram.of(FAST), Scratchpads.zeros(FAST)
    found = simulate(program, FAST, dram, pads, address=0, max_cycles=limit)
    assert found.timing is not None
    assert [burst.grant for burst in found.timing.bursts if burst.writes] == grants
    assert dram.read(0, 384).tolist() == [7] * 128 * len(grants) + [0] * 128 * (3 - len(grants))


def test_functional_runs_have_no_time() -> None:
    found = run([Finish()], timed=False)
    found.raise_if_bad()
    assert found.timing is None


def test_the_earliest_error_in_time_is_raised_not_the_first_in_the_program() -> None:
    """The ALU waits for a LOAD's token. A faulty LOAD after it fails earlier."""
    program = [
        Load(memory=Memory.INP, x_size=4, y_size=1, push_next=True),
        Alu(alu_op=7, pop_prev=True),
        Load(memory=Memory.WGT, x_size=1, y_size=1, sram_base=999),
        Finish(),
    ]
    with refused(
        MachineError,
        "instruction 2 (cycle 9): LOAD.WGT touches wgt elements 999..999; the scratchpad has 128",
    ):
        run(program).raise_if_bad()
    with refused(
        MachineError,
        "instruction 1: the ALU operation is 7; MIN 0, MAX 1, ADD 2, SHR 3, MUL 4 exist",
    ):
        run(program, timed=False).raise_if_bad()


def test_a_counter_that_overflows_in_program_order_only_does_not() -> None:
    """The first STORE's token is popped before the second one retires."""
    config = replace(FAST, token_bits=1, stores_in_flight=1)
    store = Store(y_size=1, x_size=16, x_stride=16, push_prev=True)
    pop = Alu(uop_end=1, alu_op=AluOp.ADD, use_imm=True, pop_next=True)
    program = [store, store, pop, pop, replace(store, dram_base=100), Finish()]
    dram, pads = Dram.of(config), Scratchpads.zeros(config)
    pads.acc[:] = 5
    found = simulate(program, config, dram, pads, address=0)
    found.raise_if_bad()
    assert dram.read(800, 128).tolist() == [5] * 128
    with pytest.raises(MachineError, match="overflows"):
        simulate(program, config, dram, pads, address=0, timed=False).raise_if_bad()


def test_a_deadlock_has_a_cycle() -> None:
    with pytest.raises(DeadlockError, match=r"unit pushes one \(cycle 8\)$") as error:
        run([Alu(pop_prev=True), Finish()]).raise_if_bad()
    assert (error.value.cause, error.value.index, error.value.cycle) == (Cause.DEADLOCK, 0, 8)


def test_limits_of_cycles_and_of_micro_ops() -> None:
    program: list[Instruction] = [ADD, Finish()]
    with refused(LimitExceeded, "instruction 0 (cycle 9): the run takes more than 9 cycles (max_cycles)"):
        run(program, max_cycles=9).raise_if_bad()
    found = run(program, max_uops=47)
    assert found.timing is None
    with refused(
        LimitExceeded,
        "instruction 0: ALU.ADD runs 48 micro-ops after 0 before it; at most 47 are allowed (max_uops)",
    ):
        found.raise_if_bad()


# --- threads -----------------------------------------------------------------------------------------


def blas_threads() -> list[int]:
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_products_take_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread during the run, the previous number after it."""
    seen = []

    def watched(*arguments: object, **options: object) -> FunctionalRun:
        seen.append(blas_threads())
        return run_functional(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("accel.sim.simulator.run_functional", watched)
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        run([Finish()])
        assert blas_threads() == before
    assert before, "numpy has no BLAS that is known"
    assert seen == [[1] * len(before)]
