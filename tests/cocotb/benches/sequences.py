"""Several programs without a reset: the state that must survive, the state that must not, and the cycle in
which a run is done."""

from collections.abc import Sequence
from typing import Any

import cocotb
import numpy as np

from accel.base.records import replace
from accel.core.fault_causes import Cause
from accel.core.isa import Finish, Instruction, Memory, encode
from accel.run.program import Program
from tests.cocotb.bench import Bench
from tests.cocotb.programs import CODE, DATA, RESULT, ZERO, Maker, program
from tests.programs import gemm_program

GEMMS = (
    ((3, 9, 5), {}),
    ((17, 8, 12), {"shift": 4, "relu": True}),
    ((5, 24, 31), {"bias": True}),
    ((1, 1, 1), {}),
    ((12, 19, 20), {"bias": True, "shift": 6}),
)


@cocotb.test()
async def products_in_a_row(dut: Any) -> None:
    """Different programs and inputs use the same addresses. No data of an earlier one may remain."""
    bench = await Bench.begin(dut)
    for calm in (True, False) if bench.thorough else (False,):
        for n, (sizes, options) in enumerate(GEMMS):
            traffic = "" if calm else bench.disturb()
            compiled = gemm_program(*sizes, config=bench.config, **options)
            inputs = compiled.random_inputs(n)
            cocotb.log.info("%s %s: %s", sizes, options, traffic)
            await bench.run(compiled, inputs, serial=int(n == 1))
            found = compiled.config.mem_base
            expected = compiled.reference(inputs)
            for tensor in compiled.tensors:
                if tensor.role == "output":
                    raw = bench.twin.dram.read(found + tensor.offset, tensor.nbytes)
                    assert np.array_equal(tensor.unpack(raw), expected[tensor.name])


@cocotb.test()
async def the_same_program_again_reads_memory_again(dut: Any) -> None:
    """Neither fetch nor a unit may use data that it read in the run before."""
    bench = await Bench.begin(dut)
    make = Maker(bench.config)
    for n in range(3 if bench.thorough else 2):
        await bench.run(make.micro_ops(np.random.default_rng(n)))
        other = program(
            bench.config, [make.move(Memory.ACC, 2 * n, DATA, 5 + n), *make.show(RESULT + 0x2000 * n)]
        )
        assert other.code_offset == CODE
        await bench.run(other)


@cocotb.test()
async def scratchpads_survive(dut: Any) -> None:
    bench = await Bench.begin(dut)
    config, make = bench.config, Maker(bench.config)
    await bench.run(make.define(np.random.default_rng(1)))
    last = config.uop_depth - 1
    for n in range(3 if bench.thorough else 2):
        bench.disturb()
        body: list[Instruction] = [make.gemm((n, n + 3)), make.move(Memory.UOP, last, ZERO, 1)]
        await bench.run(program(config, [*body, *make.show(RESULT + 0x2000)]))
        await bench.run(program(config, [make.move(Memory.OUT, 1, RESULT, 9)]))


def raw(bench: Bench, instructions: Sequence[Instruction]) -> Program:
    """A program with exactly these tokens."""
    return Program(
        config=bench.config, code=encode([*instructions, Finish()], bench.config), code_offset=CODE
    )


def token_programs(bench: Bench) -> tuple[Program, Program]:
    """Return a program that leaves one token in every counter, and one that needs them."""
    make = Maker(bench.config)
    load, compute, store = (make.move(memory, 0, 0, 0) for memory in (Memory.INP, Memory.UOP, Memory.OUT))
    leaves = [
        replace(load, push_next=True),
        replace(compute, push_prev=True, push_next=True),
        replace(store, push_prev=True),
    ]
    needs = [
        replace(store, pop_prev=True),
        replace(load, pop_next=True),
        replace(compute, pop_prev=True, pop_next=True),
    ]
    return raw(bench, leaves), raw(bench, needs)


@cocotb.test()
async def tokens_survive_until_they_are_cleared(dut: Any) -> None:
    bench = await Bench.begin(dut)
    leaves, needs = token_programs(bench)
    await bench.run(leaves)
    assert bench.twin.tokens == (1, 1, 1, 1)
    await bench.run(needs)
    assert bench.twin.tokens == (0, 0, 0, 0)

    async def deadlocks() -> None:
        await bench.launch(needs)
        outcome = await bench.finish()
        assert (outcome.cause, outcome.index) == (Cause.DEADLOCK, 1)

    await deadlocks()
    await bench.clear()
    assert await bench.read("status", "cause", "interrupt") == {"status": 0, "cause": 0, "interrupt": 0}
    await bench.run(leaves)
    await bench.clear()
    await deadlocks()
    await bench.clear()
    await bench.run(leaves)
    await bench.reset()
    await deadlocks()


@cocotb.test()
async def done_comes_after_the_last_write_has_been_answered(dut: Any) -> None:
    bench = await Bench.begin(dut)
    make = Maker(bench.config)
    size = bench.config.out_element_bytes
    stores = [make.move(Memory.OUT, 0, RESULT + n * 0x1000, 3, 2, 7 + 4096 // size) for n in range(4)]
    compiled = program(
        bench.config, [make.move(Memory.ACC, 0, DATA, 16), *stores], (DATA, bytes(range(256)) * 2)
    )
    answers = bench.memory_channels["b"]
    answers.queue_occupancy_limit = 64
    for wait in (1, 7, 300):
        answers.pause = True
        await bench.launch(compiled)
        bench.twin.run(compiled).raise_if_bad()
        while bench.axi.answers_due < min(8, bench.config.outstanding):
            await bench.cycles(1)
        await bench.cycles(wait)
        assert not int(dut.irq.value)
        assert await bench.read("status") == {"status": 1}
        answers.pause = False
        assert (await bench.finish()).cause is Cause.NONE
        bench.compare()


@cocotb.test()
async def write_data_stand_still_while_they_wait(dut: Any) -> None:
    """The monitor checks this. Addresses come long after data, and data long after addresses."""
    bench = await Bench.begin(dut)
    await bench.run(Maker(bench.config).define(np.random.default_rng(0)))
    for shares in (
        {"w": (0.9, 3)},
        {"w": (0.5, 1), "aw": (0.9, 40)},
        {"w": (0.9, 40), "aw": (0.5, 1)},
        {"aw": (0.9, 200), "b": (0.9, 200)},
    ):
        bench.pause(**shares)
        await bench.run(program(bench.config, Maker(bench.config).show(RESULT + 0x3000)))
    assert bench.axi.waits["w"] > 100
