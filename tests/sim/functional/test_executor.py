"""Whole programs: orders, tokens, errors and limits of functional runs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel.base.errors import AccelError, DeadlockError, LimitExceeded, MachineError
from accel.core.config import NAMED, Config
from accel.core.fault_causes import Cause
from accel.core.isa import Alu, AluOp, Finish, Gemm, Instruction, Load, Memory, Store, Unknown, encode_uops
from accel.core.token_rules import Stepper
from accel.image.dram import Dram
from accel.sim.functional.executor import Executor, FunctionalRun, Order, run_functional
from accel.sim.functional.scratchpads import Scratchpads
from tests.reference import Reference, assert_same_pads
from tests.strategies import examples, micro_ops, programs, small_machines

TINY = NAMED["tiny"]


def run(instructions: list[Instruction], config: Config = TINY, **arguments: object) -> FunctionalRun:
    """Run from zeros, with micro-ops (n, 0, 0) at n."""
    executor = Executor(config, Dram.of(config), Scratchpads.zeros(config))
    rows = [(n % config.acc_depth, 0, 0) for n in range(config.uop_depth)]
    executor.pads.uop[:] = encode_uops(rows, config)
    return run_functional(instructions, executor, **arguments)  # type: ignore[arg-type]


@examples(150)
@given(st.data())
def test_programs_equal_the_scalar_interpreter_in_the_same_order(data: st.DataObject) -> None:
    config = data.draw(small_machines)
    program = data.draw(programs(config, dram_bytes=256, wild=True, finishing=True))
    pads = Scratchpads.random(config, data.draw(st.integers(0, 99)))
    pads.uop[:] = data.draw(micro_ops(config))
    dram = Dram.of(config)
    dram.write(0, np.random.default_rng(5).integers(0, 256, 256, dtype=np.uint8))
    reference = Reference(config, pads, dram)
    order: Order = data.draw(st.sampled_from(["program", "random"]))
    found = run_functional(
        program, Executor(config, dram, pads), order=order, seed=data.draw(st.integers(0, 9))
    )
    for index in found.order:
        assert reference.execute(program[index]) is None
    for index, (position, fault) in found.faults.items():
        if fault.cause not in (Cause.OPCODE, Cause.EARLY_FINISH, Cause.NO_FINISH):
            assert reference.execute(program[index]) == (position, fault.cause.label)
    if not found.faults:
        assert_same_pads(pads, reference.pads())
        assert dram == reference.memory()


def test_instructions_run_in_program_order_if_tokens_allow_it() -> None:
    program: list[Instruction] = [
        Load(memory=Memory.INP),
        Alu(pop_prev=True),
        Store(),
        Load(memory=Memory.WGT, push_next=True),
        Finish(),
    ]
    assert run(program).order == [0, 2, 3, 1, 4]


def test_random_orders_are_token_legal_differ_and_repeat_by_seed() -> None:
    program: list[Instruction] = [
        Load(memory=Memory.INP, push_next=True),
        Load(memory=Memory.INP),
        Load(memory=Memory.INP),
        Alu(pop_prev=True, push_next=True),
        Alu(),
        Store(pop_prev=True),
        Store(),
        Finish(),
    ]
    orders = [tuple(run(program, order="random", seed=seed).order) for seed in range(20)]
    assert len(set(orders)) > 5
    assert orders == [tuple(run(program, order="random", seed=seed).order) for seed in range(20)]
    for order in orders:
        stepper = Stepper(program, TINY)
        for index in order:
            assert index in stepper.heads()
            stepper.run(index)
        assert stepper.done


def test_queues_bound_random_orders_unless_disabled() -> None:
    """With one entry in the load queue, fetch cannot reach the STORE before the first LOAD has run."""
    program: list[Instruction] = [Load(memory=Memory.INP), Load(memory=Memory.INP), Store(), Finish()]
    config = TINY.override({"load_queue": 1})
    firsts = {run(program, config, order="random", seed=seed).order[0] for seed in range(20)}
    assert firsts == {0}
    free = {run(program, config, order="random", seed=seed, bounded=False).order[0] for seed in range(20)}
    assert free == {0, 2, 3}


def test_an_unknown_order_is_refused() -> None:
    with pytest.raises(AccelError, match=r"^order is 'reverse'; it must be 'program' or 'random'$"):
        run([Finish()], order="reverse")


def test_tokens_before_and_after_a_run() -> None:
    program: list[Instruction] = [Load(memory=Memory.INP, push_next=True), Alu(pop_next=True), Finish()]
    assert run(program, tokens=(2, 0, 0, 1)).tokens == (3, 0, 0, 0)


def test_micro_ops_are_counted_and_limited() -> None:
    program: list[Instruction] = [
        Alu(uop_end=3, iter_out=2, iter_in=5),
        Gemm(uop_end=2, reset=True),
        Gemm(iter_out=0, uop_end=2),
        Finish(),
    ]
    assert run(program, max_uops=32).uops == 32
    limited = run(program, max_uops=31)
    assert limited.uops == 30
    with pytest.raises(LimitExceeded) as error:
        limited.raise_if_bad()
    assert str(error.value) == (
        "instruction 1: GEMM runs 2 micro-ops after 30 before it; at most 31 are allowed (max_uops)"
    )
    assert (error.value.cause, error.value.index, error.value.cycle) == (Cause.LIMIT, 1, None)


def test_a_loop_of_a_million_million_micro_ops_is_refused_before_it_starts() -> None:
    loop = Gemm(uop_end=256, iter_out=16383, iter_in=16383)
    with pytest.raises(LimitExceeded, match=r"runs 68711088384 micro-ops after 0 before it"):
        run([loop, Finish()]).raise_if_bad()


def test_a_deadlock_is_explained() -> None:
    program: list[Instruction] = [Load(memory=Memory.INP, pop_next=True), Alu(pop_prev=True), Finish()]
    found = run(program)
    assert found.order == []
    with pytest.raises(DeadlockError) as error:
        found.raise_if_bad()
    assert str(error.value) == (
        "deadlock: load waits at instruction 0 for a token from compute; no instruction left in the "
        "compute unit pushes one; compute waits at instruction 1 for a token from load; no instruction "
        "left in the load unit pushes one"
    )
    assert (error.value.cause, error.value.index) == (Cause.DEADLOCK, 0)


def test_a_token_counter_overflows() -> None:
    program: list[Instruction] = [*[Load(memory=Memory.INP, push_next=True)] * 4, Finish()]
    run(program, TINY.override({"token_bits": 3})).raise_if_bad()
    with pytest.raises(MachineError) as error:
        run(program, TINY.override({"token_bits": 1})).raise_if_bad()
    assert str(error.value) == (
        "instruction 1: the counter of tokens from load to compute overflows; token_bits=1 holds 1"
    )
    assert (error.value.cause, error.value.index) == (Cause.TOKEN_OVERFLOW, 1)


@pytest.mark.parametrize(
    ("program", "index", "cause"),
    [
        ([], 0, Cause.NO_FINISH),
        ([Alu()], 0, Cause.NO_FINISH),
        ([Alu(), Finish(), Finish()], 1, Cause.EARLY_FINISH),
        ([Alu(), Unknown(opcode=6), Finish()], 1, Cause.OPCODE),
        ([Unknown(opcode=6)], 0, Cause.OPCODE),
    ],
)
def test_faults_at_which_fetch_stops(program: list[Instruction], index: int, cause: Cause) -> None:
    found = run(program)
    assert found.order == list(range(index))
    with pytest.raises(MachineError) as error:
        found.raise_if_bad()
    assert (error.value.cause, error.value.index) == (cause, index)


def test_a_fault_stops_its_unit_and_leaves_the_others_running() -> None:
    """The first fault in program order is raised. The micro-ops before the bad one have executed."""
    program: list[Instruction] = [
        Alu(uop_end=8, iter_in=2, dst_factor_in=123, alu_op=AluOp.ADD, use_imm=True, imm=7),
        Load(memory=Memory.INP),
        Load(memory=Memory.INP, sram_base=128, x_size=1, y_size=1),
        Load(memory=Memory.WGT),
        Store(x_size=1, y_size=1),
        Finish(),
    ]
    executor = Executor(TINY, Dram.of(TINY), Scratchpads.zeros(TINY))
    executor.pads.uop[:] = range(TINY.uop_depth)
    found = run_functional(program, executor)
    assert found.order == [1, 4]
    assert sorted(found.faults) == [0, 2]
    assert found.faults[0][0] == 8 + 5
    assert executor.pads.acc[:, 0, 0].nonzero()[0].tolist() == [*range(8), *range(123, 128)]
    assert executor.dram.read(0, 8).tolist() == [7] * 8
    with pytest.raises(MachineError) as error:
        found.raise_if_bad()
    assert str(error.value) == (
        "instruction 0: ALU.ADD has dst index 128 in micro-op 13 of its 16; that scratchpad has 128 elements"
    )


def test_equal_instructions_with_other_micro_ops_are_distinguished() -> None:
    """Instructions are analyzed once, but the micro-ops at their addresses may change."""
    pads = Scratchpads.zeros(TINY)
    dram = Dram.of(TINY)
    dram.write(0, encode_uops([(3, 0, 0)], TINY).tobytes())
    add = Alu(uop_end=1, alu_op=AluOp.ADD, use_imm=True, imm=1)
    program = [add, add, Load(memory=Memory.UOP, x_size=1, y_size=1), add, Finish()]
    run_functional(program, Executor(TINY, dram, pads)).raise_if_bad()
    assert pads.acc[:4, 0, 0].tolist() == [2, 0, 0, 1]


def test_an_alu_pattern_computed_for_one_operation_names_the_other_in_its_fault() -> None:
    executor = Executor(TINY, Dram.of(TINY), Scratchpads.zeros(TINY))
    for op in (AluOp.MIN, AluOp.MAX):
        found = executor.execute(Alu(alu_op=op, uop_end=2, iter_in=129, dst_factor_in=1))
        assert found is not None
        assert found[1].message.startswith(f"ALU.{op.name} has dst index 128 in micro-op 256 of its 258;")
