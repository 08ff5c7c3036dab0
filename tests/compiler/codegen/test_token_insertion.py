"""Token insertion: all tokens that the dependences need, and no others."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

import accel
from accel.base.errors import ScheduleError, TensorizeError
from accel.base.records import replace
from accel.compiler.codegen.token_insertion import insert_tokens
from accel.compiler.schedule.schedule_steps import apply_steps
from accel.core.config import NAMED
from accel.core.fault_causes import Cause
from accel.core.isa import Gemm, Instruction, Load, Memory, Store, encode_uops
from accel.core.token_rules import Counter, pops, pushes
from accel.image.dram import Dram
from accel.proof.shared_dram import SharedDram
from accel.proof.token_check import TokenReport, check_tokens
from accel.run.program import Program
from accel.sim.functional.executor import Executor, run_functional
from accel.sim.functional.scratchpads import Scratchpads
from accel.sim.simulator import Simulation, simulate
from tests.compiler import gemms
from tests.expect import refused
from tests.strategies import examples
from tests.thorough import also

TINY = NAMED["tiny"]
UOPS = encode_uops([(0, 0, 0), (1, 0, 0)], TINY)


def tokens(*instructions: Instruction) -> list[str]:
    load = Load(memory=Memory.UOP, y_size=1, x_size=2, x_stride=2)
    _, *found = insert_tokens([load, *instructions], TINY, UOPS).program
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
"""Like GEMM, but adds to acc 1."""
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
def test_tokens_follow_from_accessed_elements(program: Sequence[Instruction], expected: list[str]) -> None:
    assert tokens(*program) == expected


# --- through DRAM ----------------------------------------------------------------------------------


def shared_tokens(*instructions: Instruction) -> list[str]:
    """The mnemonic and flags of each instruction, including carriers."""
    found = insert_tokens(instructions, TINY, UOPS[:0], SharedDram(instructions, TINY)).program
    names = ("pop_prev", "pop_next", "push_prev", "push_next")
    return [" ".join([i.mnemonic, *(name for name in names if getattr(i, name))]) for i in found]


# in DRAM, an element of inp has 4 bytes, one of out 8, and one of acc 32
READ = replace(inp(0), dram_base=2)
"""Reads DRAM bytes 8..11 into inp 0."""
WRITE = replace(out(0), dram_base=1)
"""Writes acc 0 to DRAM bytes 8..15."""
BOTH = "GEMM pop_next push_prev"
IDLE = replace(acc(5), dram_base=100)
"""An unrelated instruction of the compute unit."""
OVER = replace(acc(0), dram_base=100)
"""Overwrites the accumulator that WRITE stores."""


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ([WRITE, READ], ["STORE.OUT push_prev", BOTH, "LOAD.INP pop_next"]),
        ([READ, WRITE], ["LOAD.INP push_next", "GEMM pop_prev push_next", "STORE.OUT pop_prev"]),
        ([WRITE, replace(READ, dram_base=4)], ["STORE.OUT", "LOAD.INP"]),
        ([READ, READ, replace(READ, dram_base=3)], ["LOAD.INP"] * 3),
        ([WRITE, WRITE], ["STORE.OUT"] * 2),
        ([WRITE, IDLE, READ], ["STORE.OUT push_prev", "LOAD.ACC pop_next push_prev", "LOAD.INP pop_next"]),
        ([IDLE, WRITE, READ], ["LOAD.ACC", "STORE.OUT push_prev", BOTH, "LOAD.INP pop_next"]),
        # later instructions are already ordered
        ([WRITE, READ, READ], ["STORE.OUT push_prev", BOTH, "LOAD.INP pop_next", "LOAD.INP"]),
        ([WRITE, WRITE, READ], ["STORE.OUT", "STORE.OUT push_prev", BOTH, "LOAD.INP pop_next"]),
        # the compute unit waits for the first STORE anyway, and an instruction waits once
        (
            [WRITE, OVER, READ],
            ["STORE.OUT push_prev", "LOAD.ACC pop_next push_prev", "LOAD.INP pop_next"],
        ),
        (
            [WRITE, replace(WRITE, sram_base=9), OVER, READ],
            ["STORE.OUT push_prev", "STORE.OUT push_prev", "LOAD.ACC pop_next", BOTH, "LOAD.INP pop_next"],
        ),
        # neighbouring units need no carrier
        ([WRITE, replace(acc(7), dram_base=0)], ["STORE.OUT push_prev", "LOAD.ACC pop_next"]),
        ([replace(acc(7), dram_base=0), WRITE], ["LOAD.ACC push_next", "STORE.OUT pop_prev"]),
    ],
)
def test_load_and_store_meet_in_dram(program: Sequence[Instruction], expected: list[str]) -> None:
    assert shared_tokens(*program) == expected


def test_carriers_are_counted() -> None:
    """A carrier is needed between the STORE of a single row of tiles and its LOAD. With a second row, the
    compute unit has other instructions between them."""
    for name, rows, early, expected in (
        ("gemm8x8", 8, True, 1),
        ("gemm8x8", 5, True, 1),
        ("gemm8x8", 8, False, 0),
        ("gemm8x8", 16, True, 0),
        ("vta", 1, True, 1),
        ("vta", 2, True, 0),
    ):
        result = two_stages(name, rows, 12, 40, 24, early=early).run()
        assert (result.mismatches, result.to_dict()["carriers"]) == (0, expected), (name, rows, early)


@examples(15)
@given(st.integers(0, 1 << 32))
def test_two_stages_of_any_size(seed: int) -> None:
    rng = Random(seed)
    m = accel.machine("vta" if rng.random() < 0.3 else "gemm8x8")
    rows, columns, _ = gemms.block(m.config)
    sizes = (rng.randint(1, 3 * rows), *(rng.randint(1, 2 * columns) for _ in range(3)))
    tiles = (rng.randint(1, 2), rng.randint(1, 2))
    program = accel.build(gemms.two_stages(m, *sizes, early=rng.random() < 0.5, tiles=tiles), m)
    no_push_and_no_pop_can_be_missing(program)
    no_token_is_redundant(program)
    for order in range(5):
        assert program.run(backend="functional", order="random", seed=order).mismatches == 0


def test_a_tensor_that_is_read_again_has_one_layout() -> None:
    """On tiny, an element of inp has 4 columns and one of acc 8."""
    m = accel.machine("tiny")
    with refused(
        TensorizeError,
        "T is stored in elements [dim 0: 1, dim 1: 8] and loaded into TL2 in elements "
        "[dim 0: 1, dim 1: 4]; a tensor that the program writes has one layout",
    ):
        accel.build(gemms.two_stages(m, 4, 4, 4, 4), m)


def test_a_tensor_that_is_read_again_is_computed_outside_loops() -> None:
    m = accel.machine("gemm8x8")
    s = gemms.two_stages(m, 16, 8, 8, 8)
    s["T"].compute_at(s["D"], "yo")
    with refused(
        TensorizeError,
        "T is computed inside a loop and kept in DRAM; compute it outside of all loops, or give it a scope",
    ):
        accel.build(s, m)


def test_an_output_may_be_read_again() -> None:
    m = accel.machine("gemm8x8")
    first = gemms.two_stages(m, 16, 12, 20, 8)
    s = accel.te.create_schedule([first.tensor("T"), first.tensor("D")])
    apply_steps(s, first.steps, m.intrinsic, m.scope)
    result = accel.build(s, m).run()
    assert sorted(result.outputs) == ["D", "T"]
    assert result.mismatches == 0


def test_short_blocks_of_stored_tensors_are_refused() -> None:
    """Zeros follow only the end of inputs."""
    m = accel.machine("gemm8x8")
    assert accel.build(gemms.two_stages(m, 8, 8, 13, 8), m).run().mismatches == 0
    with pytest.raises(TensorizeError, match="do not end with ni, whose last block is short"):
        accel.build(gemms.two_stages(m, 8, 8, 13, 8, more_rows=50), m)


# --- compiled programs -------------------------------------------------------------------------------


def listing_style(name: str) -> Program:
    m = accel.machine(name)
    return accel.build(gemms.tensorized(gemms.gemm(5, 9, 12), m), m)


def two_stages(name: str, *sizes: int, **options: bool) -> Program:
    m = accel.machine(name)
    return accel.build(gemms.two_stages(m, *sizes, **options), m)  # type: ignore[arg-type]


PROGRAMS: dict[str, Callable[[], Program]] = {
    "gemm8x8": lambda: accel.build(accel.gemm(150, 40, 100), "gemm8x8"),
    "vta": lambda: accel.build(accel.gemm(20, 100, 150, transpose_a=True), "vta"),
    "gemm8x8, larger": lambda: accel.build(accel.gemm(300, 40, 200), "gemm8x8"),
    "vta, larger": lambda: accel.build(accel.gemm(40, 200, 300, transpose_a=True), "vta"),
    "tiny": lambda: accel.build(accel.gemm(40, 24, 24), "tiny"),
    "tiny, epilogue": lambda: accel.build(accel.gemm(16, 20, 10, bias=True, relu=True, shift=4), "tiny"),
    "ecp5, epilogue": lambda: accel.build(accel.gemm(64, 72, 40, bias=True), "ecp5"),
    "tiny, small uop memory": lambda: accel.build(
        accel.gemm(16, 20, 10, bias=True, shift=2), accel.machine("tiny", uop_bytes=16)
    ),
    "gemm8x8, one tile per copy": lambda: listing_style("gemm8x8"),
    "tiny, one tile per copy": lambda: listing_style("tiny"),
    "vta, one block": lambda: accel.build(accel.gemm(1, 1, 1), "vta"),
    "vta, two threads": lambda: accel.build(accel.gemm(6, 40, 70, bias=True, shift=3), "vta", vthreads=2),
    "tiny, four threads": lambda: accel.build(accel.gemm(9, 40, 24, relu=True), "tiny", vthreads=4),
    "gemm8x8, two stages": lambda: two_stages("gemm8x8", 20, 12, 30, 10),
    "gemm8x8, two stages, early loads": lambda: two_stages("gemm8x8", 20, 12, 30, 10, early=True),
    "vta, two stages, a carrier": lambda: two_stages("vta", 1, 40, 40, 20, early=True),
}


AGAIN = {
    "gemm8x8",
    "gemm8x8, larger",
    "vta, larger",
    "ecp5, epilogue",
    "tiny, one tile per copy",
    "tiny, four threads",
    "gemm8x8, two stages, early loads",
}
"""Programs that repeat others on another machine or with larger sizes."""


@pytest.fixture(params=[also(name) if name in AGAIN else name for name in PROGRAMS], ids=list(PROGRAMS))
def program(request: pytest.FixtureRequest) -> Program:
    return PROGRAMS[request.param]()


def check(program: Program, instructions: Sequence[Instruction], memory: Dram) -> TokenReport:
    return check_tokens(instructions, program.config, memory=memory)


def flags(instructions: Sequence[Instruction]) -> Iterator[tuple[int, str, Counter]]:
    """All pushes and pops, each with its instruction, flag and counter."""
    for index, instruction in enumerate(instructions):
        for kind, counters in (("pop", pops(instruction)), ("push", pushes(instruction))):
            for counter in counters:
                other = counter.target if kind == "push" else counter.source
                side = "prev" if other is instruction.unit.previous else "next"
                yield index, f"{kind}_{side}", counter


def matched(instructions: Sequence[Instruction]) -> Iterator[list[tuple[int, str]]]:
    """Pairs of the k-th push and the k-th pop of each counter."""
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
    """The machine stops where the check predicts it."""
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
    """So program order is legal, and serial mode does not deadlock."""
    waiting: dict[Counter, deque[int]] = {counter: deque() for counter in Counter}
    for index, instruction in enumerate(program.instructions):
        for counter in pops(instruction):
            assert waiting[counter].popleft() < index
        for counter in pushes(instruction):
            waiting[counter].append(index)


def test_all_orders_give_the_same(program: Program) -> None:
    """Orders are random, with unlimited queues."""
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
        found = program._unpack(dram)
        for name, values in want.items():
            np.testing.assert_array_equal(found[name], values)


def _execute(program: Program, seed: int) -> Simulation:
    pads = Scratchpads.random(program.config, seed)
    return program.simulate(program.dram(), pads, timed=False, order="random", seed=seed)


def test_orders_differ() -> None:
    """So the test above covers more than one order."""
    program = PROGRAMS["tiny, epilogue"]()
    orders = {tuple(_execute(program, seed).functional.order) for seed in range(6)}
    assert len(orders) == 6
