"""Tokens: all that the dependences need, none that they do not."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

import accel
from accel.compiler.dependence import insert_tokens
from accel.config import NAMED
from accel.dram import Dram
from accel.errors import ScheduleError
from accel.faults import Cause
from accel.isa import Gemm, Instruction, Load, Memory, Store, encode_uops
from accel.order import Counter, pops, pushes
from accel.program import Program
from accel.sim.functional.executor import Executor, run_functional
from accel.sim.functional.scratchpads import Scratchpads
from accel.sim.simulator import simulate
from accel.tokens import TokenReport, check_tokens
from tests.compiler import gemms
from tests.strategies import examples

TINY = NAMED["tiny"]
UOPS = encode_uops([(0, 0, 0), (1, 0, 0)], TINY)


def tokens(*instructions: Instruction) -> list[str]:
    """The flags of each instruction."""
    load = Load(memory=Memory.UOP, y_size=1, x_size=2, x_stride=2)
    found = insert_tokens([load, *instructions], TINY, UOPS)[1:]
    names = ("pop_prev", "pop_next", "push_prev", "push_next")
    return [" ".join(name for name in names if getattr(i, name)) for i in found]


def inp(base: int, count: int = 1) -> Load:
    return Load(memory=Memory.INP, sram_base=base, y_size=1, x_size=count, x_stride=count)


def acc(base: int, count: int = 1) -> Load:
    return Load(memory=Memory.ACC, sram_base=base, y_size=1, x_size=count, x_stride=count)


def out(base: int, count: int = 1) -> Store:
    return Store(sram_base=base, y_size=1, x_size=count, x_stride=count)


GEMM = Gemm(uop_end=1)
"""Reads inp 0 and wgt 0, adds to acc 0."""
OTHER = Gemm(uop_begin=1, uop_end=2)
"""The same, adds to acc 1."""
ZERO = Gemm(reset=True, uop_end=1)


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ([inp(0), GEMM], ["push_next", "pop_prev"]),
        ([inp(1), GEMM], ["", ""]),
        ([inp(0), ZERO], ["", ""]),
        ([inp(0), inp(0), GEMM], ["", "push_next", "pop_prev"]),
        ([inp(0), inp(1), GEMM], ["push_next", "", "pop_prev"]),
        ([inp(0), GEMM, OTHER], ["push_next", "pop_prev", ""]),
        ([inp(0), GEMM, inp(0), GEMM], ["push_next", "pop_prev push_prev", "pop_next push_next", "pop_prev"]),
        ([inp(0), GEMM, inp(1), inp(0)], ["push_next", "pop_prev push_prev", "", "pop_next"]),
        ([inp(0), GEMM, OTHER, inp(0)], ["push_next", "pop_prev", "push_prev", "pop_next"]),
        ([ZERO, out(0)], ["push_next", "pop_prev"]),
        ([ZERO, out(1)], ["", ""]),
        ([acc(0), out(0)], ["push_next", "pop_prev"]),
        ([ZERO, out(0), out(0)], ["push_next", "pop_prev", ""]),
        ([ZERO, out(0), ZERO], ["push_next", "pop_prev push_prev", "pop_next"]),
        ([out(0), acc(0), GEMM], ["push_prev", "pop_next", ""]),
        ([out(0, 2), OTHER, ZERO], ["push_prev", "pop_next", ""]),
        ([replace(inp(0), y_size=0, x_size=0), GEMM], ["", ""]),
        ([inp(0), replace(GEMM, iter_out=0)], ["", ""]),
    ],
)
def test_tokens_follow_from_what_is_touched(program: Sequence[Instruction], expected: list[str]) -> None:
    assert tokens(*program) == expected


# --- compiled programs -------------------------------------------------------------------------------


def listing_style(name: str) -> Program:
    m = accel.machine(name)
    return accel.build(gemms.tensorized(gemms.gemm(5, 9, 12), m), m)


PROGRAMS: dict[str, Callable[[], Program]] = {
    "gemm8x8": lambda: accel.build(accel.gemm(300, 40, 200), "gemm8x8"),
    "vta": lambda: accel.build(accel.gemm(40, 200, 300, transpose_a=True), "vta"),
    "tiny": lambda: accel.build(accel.gemm(40, 24, 24), "tiny"),
    "tiny, epilogue": lambda: accel.build(accel.gemm(24, 40, 10, bias=True, relu=True, shift=4), "tiny"),
    "ecp5, epilogue": lambda: accel.build(accel.gemm(64, 72, 40, bias=True), "ecp5"),
    "tiny, small uop memory": lambda: accel.build(
        accel.gemm(24, 40, 10, bias=True, shift=2), accel.machine("tiny", uop_bytes=16)
    ),
    "gemm8x8, one tile per copy": lambda: listing_style("gemm8x8"),
    "tiny, one tile per copy": lambda: listing_style("tiny"),
    "vta, one block": lambda: accel.build(accel.gemm(1, 1, 1), "vta"),
}


@pytest.fixture(params=PROGRAMS, ids=list(PROGRAMS))
def program(request: pytest.FixtureRequest) -> Program:
    return PROGRAMS[request.param]()


def check(program: Program, instructions: Sequence[Instruction], memory: Dram) -> TokenReport:
    return check_tokens(instructions, program.config, memory=memory)


def flags(instructions: Sequence[Instruction]) -> Iterator[tuple[int, str, Counter]]:
    """Every push and pop: the instruction, the flag, and the counter that it concerns."""
    for index, instruction in enumerate(instructions):
        for kind, counters in (("pop", pops(instruction)), ("push", pushes(instruction))):
            for counter in counters:
                other = counter.target if kind == "push" else counter.source
                side = "prev" if other is instruction.unit.previous else "next"
                yield index, f"{kind}_{side}", counter


def matched(instructions: Sequence[Instruction]) -> Iterator[list[tuple[int, str]]]:
    """The k-th push and the k-th pop of each counter."""
    for counter in Counter:
        mine = [(index, name) for index, name, at in flags(instructions) if at is counter]
        pushed = [flag for flag in mine if flag[1].startswith("push")]
        popped = [flag for flag in mine if flag[1].startswith("pop")]
        assert len(pushed) == len(popped)
        yield from ([push, pop] for push, pop in zip(pushed, popped, strict=True))


def without(instructions: Sequence[Instruction], *removed: tuple[int, str]) -> list[Instruction]:
    changed = list(instructions)
    for index, name in removed:
        changed[index] = replace(changed[index], **{name: False})
    return changed


def test_programs_are_proven_and_leave_no_tokens(program: Program) -> None:
    report = program.check()
    assert report.ok
    assert report.left_over == (0, 0, 0, 0)


def no_push_and_no_pop_can_be_missing(program: Program) -> None:
    memory = program.dram()
    for index, name, _ in flags(program.instructions):
        report = check(program, without(program.instructions, (index, name)), memory)
        assert report.race_count or report.deadlock is not None or any(report.left_over), (index, name)


def no_token_is_redundant(program: Program) -> None:
    memory = program.dram()
    pairs = list(matched(program.instructions))
    for pair in pairs:
        report = check(program, without(program.instructions, *pair), memory)
        assert report.race_count, pair
        assert report.deadlock is None
    assert len(pairs) * 2 == len(list(flags(program.instructions)))


def test_no_push_and_no_pop_can_be_missing(program: Program) -> None:
    no_push_and_no_pop_can_be_missing(program)


def test_a_missing_push_or_pop_never_hangs() -> None:
    """The machine stops where the check says that it does."""
    program = PROGRAMS["tiny, epilogue"]()
    memory = program.dram()
    verdicts = set()
    for index, name, _ in flags(program.instructions):
        changed = without(program.instructions, (index, name))
        stuck = check(program, changed, memory).deadlock is not None
        pads = Scratchpads.random(program.config, 0)
        run = simulate(changed, program.config, memory.copy(), pads, address=1 << 20, max_cycles=100_000)
        assert (run.functional.deadlock is not None) == stuck
        assert run.timing is not None
        assert (run.timing.stop.fault.cause if run.timing.stop else None) == (
            Cause.DEADLOCK if stuck else None
        )
        verdicts.add((name.split("_")[0], stuck))
    assert verdicts == {("push", True), ("pop", False)}


def test_no_token_is_redundant(program: Program) -> None:
    no_token_is_redundant(program)


@examples(25)
@given(st.integers(0, 1 << 32))
def test_any_schedules_tokens_are_just_enough(seed: int) -> None:
    rng = Random(seed)
    m = accel.machine(rng.choice(("tiny", "gemm8x8")))
    M, N, K = (rng.randint(1, 3 * width) for width in gemms.block(m.config))
    g = gemms.gemm(M, N, K)
    s = gemms.random_schedule(rng, g, m)
    try:
        program = accel.build(s, m)
    except ScheduleError:
        reject()
    no_push_and_no_pop_can_be_missing(program)
    no_token_is_redundant(program)


def test_tokens_go_forward_in_program_order(program: Program) -> None:
    """So that program order itself is legal, and serial mode does not deadlock."""
    waiting: dict[Counter, deque[int]] = {counter: deque() for counter in Counter}
    for index, instruction in enumerate(program.instructions):
        for counter in pops(instruction):
            assert waiting[counter].popleft() < index
        for counter in pushes(instruction):
            waiting[counter].append(index)


def test_all_orders_give_the_same(program: Program) -> None:
    """Random ones, with endless queues."""
    inputs = program.random_inputs()
    want = program.reference(inputs)
    packed = program.dram()
    program._pack(packed, inputs)
    for seed in range(12):
        dram = packed.copy()
        executor = Executor(program.config, dram, Scratchpads.random(program.config, seed))
        run = run_functional(program.instructions, executor, order="random", seed=seed, bounded=False)
        run.raise_if_bad()
        assert run.tokens == (0, 0, 0, 0)
        np.testing.assert_array_equal(program._unpack(dram)["C"], want["C"])


def test_orders_differ() -> None:
    """The test above sees more than one."""
    program = PROGRAMS["tiny, epilogue"]()
    orders = {
        tuple(program.run(backend="functional", order="random", seed=seed).simulation.functional.order)
        for seed in range(6)
    }
    assert len(orders) == 6
