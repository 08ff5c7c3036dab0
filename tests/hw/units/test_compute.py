"""The compute unit alone compared with functional execution. The test supplies inp and wgt."""

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

import accel
from accel.base.records import replace
from accel.core.config import NAMED, Config
from accel.core.fault_causes import Cause, instruction_fault
from accel.core.isa import Alu, AluOp, Finish, Gemm, Instruction, Load, Loops, Memory, Unit, encode_uops
from accel.core.scratchpad_specs import SCRATCHPADS
from accel.core.timing_rules import busy_slots, compute_depth
from accel.hw.engines.open_engine import open_engine
from accel.hw.units.compute import Compute
from accel.hw.units.unit_interfaces import ELSEWHERE
from accel.image.dram import Dram
from accel.run.lockstep import lockstep
from accel.sim.functional.executor import Executor
from accel.sim.functional.scratchpads import Scratchpads
from tests.hw.bench import as_integer, assert_refused, drive, offer, run
from tests.hw.units.transfers import Answers, bursts_of, good_transfer
from tests.strategies import random_loops
from tests.thorough import also

TINY = NAMED["tiny"].override(
    {"uop_bytes": 64, "inp_bytes": 32, "wgt_bytes": 256, "acc_bytes": 512, "mem_size": 1 << 16}
)
"""Sixteen accumulators and micro-ops, eight elements of inp and wgt."""
OWN = [pad for pad in SCRATCHPADS.values() if pad.filled_by is Unit.COMPUTE]


class Operands:
    """The scratchpads of other units: an element arrives in the cycle after its index."""

    def __init__(self, unit: Compute, pads: Scratchpads) -> None:
        self._unit, self._pads = unit, pads
        self._asked = dict.fromkeys(ELSEWHERE, 0)

    def step(self, context: Any) -> None:
        for pad, index in self._asked.items():
            array = self._pads.of(pad)
            word = as_integer(array[index]) if index < len(array) else 0
            context.set(getattr(self._unit.operands, pad.name).element, word)

    def sample(self, context: Any) -> None:
        operands = self._unit.operands
        self._asked = {pad: context.get(getattr(operands, pad.name).index) for pad in ELSEWHERE}


async def preset(context: Any, unit: Compute, pads: Scratchpads) -> None:
    for pad in OWN:
        access = getattr(unit, f"{pad}_access")
        for element, word in enumerate(pads.of(pad)):
            drive(context, access, preload=1, preload_index=element, preload_word=as_integer(word))
            await context.tick()
        context.set(access.preload, 0)


async def assert_holds(context: Any, unit: Compute, pads: Scratchpads) -> None:
    for pad in OWN:
        access = getattr(unit, f"{pad}_access")
        context.set(access.peek, 1)
        for element, word in enumerate(pads.of(pad)):
            context.set(access.peek_index, element)
            await context.tick()
            assert context.get(access.element) == as_integer(word), (pad.name, element)
        context.set(access.peek, 0)


def good_loops(rng: Random, config: Config, executor: Executor) -> Loops:
    """A random GEMM or ALU instruction that is valid with the current micro-ops."""
    while True:
        loops = random_loops(rng, config, iterations=3, uops=4, factor=2)
        trial = Executor(config, executor.dram, executor.pads.copy())
        if instruction_fault(loops, config) is None and trial.execute(loops) is None:
            return loops


def any_uop(rng: Random) -> tuple[int, int, int]:
    """One of few micro-ops, so that instructions use the same accumulators."""
    return rng.randrange(4), rng.randrange(6), rng.randrange(8)


def begin(context: Any, unit: Compute, config: Config) -> None:
    drive(context, unit.control, enable=1, mem_base=config.mem_base)
    context.set(unit.tokens.there, 1)


@pytest.mark.parametrize(
    "values",
    [also({}), also({"tree_stages": 0, "mul_slots": 4}), {"tree_stages": 3, "bus_bits": 128, "mul_slots": 2}],
)
def test_a_program_leaves_the_simulators_state(values: dict[str, int]) -> None:
    """GEMM and ALU instructions on few accumulators follow one another without a gap, with LOADs of micro-ops
    and accumulators between them. They retire in order and in the cycle of the timing contract."""
    config = TINY.override(values)
    unit = Compute(config)
    rng = Random(2)
    pads, dram = Scratchpads.random(config, 7), Dram.of(config)
    pads.uop[:] = encode_uops([any_uop(rng) for _ in range(config.uop_depth)], config)
    dram.write(0, encode_uops([any_uop(rng) for _ in range(2048)], config).tobytes())

    async def bench(context: Any) -> None:
        await preset(context, unit, pads)
        executor, operands = Executor(config, dram, pads), Operands(unit, pads)
        answers = Answers(unit.read, dram, config, rng)
        program: list[Instruction] = []
        ends: dict[int, int] = {}
        retired = 0
        done = False
        begin(context, unit, config)
        following: Instruction | None = None
        for cycle in range(8000):
            operands.step(context)
            answers.step(context)
            if following is None and len(program) < 120:
                if len(program) == 119:
                    following = Finish()
                elif rng.random() < 0.75:
                    following = good_loops(rng, config, executor)
                else:
                    following = good_transfer(rng, config, Unit.COMPUTE)
                    assert isinstance(following, Load)
            head, tokens = following is not None and rng.random() < 0.9, rng.random() < 0.9
            context.set(unit.issue.valid, head)
            context.set(unit.tokens.there, tokens)
            if following is not None:
                offer(context, unit.issue.entry, following, len(program), config)
            assert context.get(unit.fault) == Cause.NONE
            assert context.get(unit.index_fault) == Cause.NONE
            assert context.get(unit.retirement.occupied) == (retired < len(program))
            if context.get(unit.retirement.valid):
                found = context.get(unit.retirement.retired)
                one = program[retired]
                assert (found.index, context.get(unit.retirement.oldest)) == (retired, retired)
                assert (found.push_prev, found.push_next) == (one.push_prev, one.push_next)
                assert ends.get(retired, cycle) == cycle
                done = isinstance(one, Finish)
                retired += 1
            if context.get(unit.issue.start):
                assert head
                assert tokens
                assert following is not None
                if isinstance(following, Loops):
                    ends[len(program)] = (
                        cycle + max(1, busy_slots(following, config)) - 1 + compute_depth(config)
                    )
                elif isinstance(following, Finish):
                    ends[len(program)] = cycle + 1
                assert executor.execute(following) is None
                program.append(following)
                following = None
            operands.sample(context)
            await context.tick()
            if done:
                break
        assert done
        assert retired == len(program) == 120
        assert answers.asked == [(n, b) for n, one in enumerate(program) for b in bursts_of(one, config)]
        await assert_holds(context, unit, pads)

    run(unit, bench)


@pytest.mark.parametrize(("op", "slots"), [(AluOp.ADD, 1), (AluOp.MUL, 1), (AluOp.MUL, 2), (AluOp.MUL, 5)])
def test_a_later_micro_op_reads_the_new_result(op: AluOp, slots: int) -> None:
    """A micro-op may read the result of another one at any distance. The values are x + x or
    x * x, repeatedly."""
    config = replace(TINY, mul_slots=slots)
    unit = Compute(config)
    pads = Scratchpads.zeros(config)
    pads.acc[:] = 3
    distances = (1, 2, 3, 4, 5, 6, 7, 8)

    async def bench(context: Any) -> None:
        pads.uop[:] = encode_uops([(n, n, 0) for n in range(config.uop_depth)], config)
        await preset(context, unit, pads)
        executor, operands = Executor(config, Dram.of(config), pads), Operands(unit, pads)
        begin(context, unit, config)
        for number, distance in enumerate(distances):
            twice = Alu(alu_op=op, uop_end=distance, iter_in=3)
            offer(context, unit.issue.entry, twice, number, config)
            context.set(unit.issue.valid, 1)
            while not context.get(unit.issue.start):
                operands.sample(context)
                await context.tick()
                operands.step(context)
            assert executor.execute(twice) is None
            await context.tick()
        context.set(unit.issue.valid, 0)
        for _ in range(120):
            await context.tick()
        await assert_holds(context, unit, pads)

    run(unit, bench)


INDEX_FAULTS: dict[str, tuple[Loops, Sequence[tuple[int, int, int]]]] = {
    "dst of GEMM": (Gemm(uop_end=2, iter_in=3, dst_factor_in=7), [(1, 0, 0), (3, 1, 1)]),
    "dst of a reset": (Gemm(uop_end=2, iter_in=3, dst_factor_in=7, reset=True), [(1, 0, 0), (3, 1, 1)]),
    "src of GEMM": (Gemm(uop_end=2, iter_in=3, src_factor_in=3), [(1, 0, 0), (3, 2, 1)]),
    "wgt of GEMM": (Gemm(uop_end=2, iter_out=3, wgt_factor_out=4), [(1, 0, 0), (3, 1, 1)]),
    "src of ALU": (Alu(uop_end=2, alu_op=AluOp.ADD, iter_in=3, src_factor_in=8), [(1, 0, 0), (3, 1, 0)]),
    "dst of ALU": (
        Alu(uop_end=2, alu_op=AluOp.ADD, use_imm=True, imm=5, iter_in=4, dst_factor_in=6),
        [(1, 15, 7), (3, 15, 7)],
    ),
}


@pytest.mark.parametrize("name", INDEX_FAULTS)
def test_an_index_out_of_range_stops_at_its_micro_op(name: str) -> None:
    """The micro-ops before it have written their results. It and the later ones have not."""
    instruction, uops = INDEX_FAULTS[name]
    unit = Compute(TINY)
    pads = Scratchpads.random(TINY, 8)
    pads.uop[:2] = encode_uops(uops, TINY)

    async def bench(context: Any) -> None:
        await preset(context, unit, pads)
        operands = Operands(unit, pads)
        begin(context, unit, TINY)
        offer(context, unit.issue.entry, instruction, 41, TINY)
        context.set(unit.issue.valid, 1)
        assert context.get(unit.issue.start)
        expected = Executor(TINY, Dram.of(TINY), pads).execute(instruction)
        assert expected is not None
        executed, fault = expected
        found = []
        for cycle in range(40):
            operands.step(context)
            cause = context.get(unit.index_fault)
            if cause and not found:
                found.append((cycle, cause, context.get(unit.index_fault_at)))
            operands.sample(context)
            await context.tick()
            context.set(unit.issue.valid, 0)
            context.set(unit.control.enable, not found)
        assert found == [(executed + 3, fault.cause, 41)]
        await assert_holds(context, unit, pads)

    run(unit, bench)


def test_indices_that_are_not_used_are_not_checked() -> None:
    unit = Compute(TINY)
    pads = Scratchpads.random(TINY, 9)
    far = {"iter_in": 5, "src_factor_in": 15}
    program: list[Loops] = [
        Gemm(reset=True, uop_end=1, iter_in=5, src_factor_in=7, wgt_factor_in=7),
        Alu(alu_op=AluOp.MAX, use_imm=True, imm=-2, uop_end=1, **far),  # type: ignore[arg-type]
    ]
    pads.uop[:1] = encode_uops([(2, 5, 6)], TINY)

    async def bench(context: Any) -> None:
        await preset(context, unit, pads)
        executor = Executor(TINY, Dram.of(TINY), pads)
        begin(context, unit, TINY)
        for number, instruction in enumerate(program):
            offer(context, unit.issue.entry, instruction, number, TINY)
            context.set(unit.issue.valid, 1)
            assert context.get(unit.issue.start)
            assert executor.execute(instruction) is None
            for _ in range(20):
                await context.tick()
                context.set(unit.issue.valid, 0)
                assert context.get(unit.index_fault) == Cause.NONE
        await assert_holds(context, unit, pads)

    run(unit, bench)


FAULTY: list[Instruction] = [
    Alu(alu_op=5),
    Gemm(uop_begin=15, uop_end=17),
    Load(memory=Memory.OUT, x_size=1),
    Load(memory=Memory.ACC, x_size=17, y_size=1),
    Load(memory=Memory.UOP, x_size=1, y_size=1, dram_base=1 << 14),
]


def test_faults_are_detected_before_any_effect() -> None:
    unit = Compute(TINY)

    async def bench(context: Any) -> None:
        context.set(unit.control.mem_base, TINY.mem_base)
        for number, instruction in enumerate(FAULTY):
            assert_refused(context, unit, instruction, number, TINY)
            await context.tick()
            assert not context.get(unit.retirement.occupied)

    run(unit, bench)


def test_stores_read_the_low_bytes() -> None:
    """The data arrive one cycle after the request, with all writes up to then."""
    unit = Compute(TINY)
    pads = Scratchpads.random(TINY, 11)

    async def bench(context: Any) -> None:
        await preset(context, unit, pads)
        for element in range(TINY.acc_depth):
            drive(context, unit.out.beat, index=element, take=1)
            context.set(unit.out.advance, 1)
            await context.tick()
            drive(context, unit.out.beat, index=0, take=1)
            context.set(unit.out.advance, 0)
            for _ in range(2):
                assert context.get(unit.out.data) == as_integer(pads.acc[element].astype("i1"))
                assert context.get(unit.out.strobe) == 0xFF
                await context.tick()

    run(unit, bench)


def test_a_machine_without_products() -> None:
    config = NAMED["tiny"].override({"alu_ops": "min,max,add,shr", "mul_slots": 4})
    program = accel.build(accel.gemm(2, 9, 5, bias=True, shift=3), config)
    with open_engine(config, "pysim") as engine:
        assert lockstep(program, engine).difference is None
